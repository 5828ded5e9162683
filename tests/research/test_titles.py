"""The title of a report is what its question is about, and no prompt."""

from __future__ import annotations

import pytest

from nexi.research.titles import make_heading, make_title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What caused the Great Thaw, how did it spread in Norway, and what were its consequences?", "The Great Thaw"),
        ("What is lazy loading in Angular and how does it relate to routing?", "Lazy loading in Angular"),
        ("How did canals change Holland, who dug them, and what did they cost?", "Canals"),
        ("How are private ferries organised in Spain, Norway and Peru?", "Private ferries: Spain, Norway and Peru"),
        ("Who was Ada Lovelace, and what did Alan Turing build?", "Ada Lovelace and Alan Turing"),
        ("How do hooks work in Zsh, and what are their limits?", "Hooks in Zsh"),
        ("How does Java's garbage collector work, and what are common mistakes?", "Java's garbage collector"),
        (
            "How was water shared and land owned under the Ming dynasty?",
            "The Ming dynasty",
        ),
        (
            "Please write me a report on how old kilns work. Explain how to clean them. Also say what a flue is.",
            "How old kilns work",
        ),
        ("Write a brief on Zorb Motors. Cover the revenue of 2025. Name the launch date of the Z-4.", "Zorb Motors"),
        (
            "We move to Zorb. Write a brief on pruning in Zorb. Cover how a rule is made and how rules are ranked.",
            "Pruning in Zorb",
        ),
        ("I need a short report on Zorb's kilns for my team. What is a flue? How are flues set?", "Zorb's kilns"),
        ("How does tracing in Ruby work: what are spans, and how is it configured?", "Tracing in Ruby"),
        ("Compare thorn pipes and bone pipes, and when should each be used?", "Thorn pipes and bone pipes"),
        ("What is the difference between thorn, bone and clay pipes, and when do I use them?", "Thorn, bone and clay pipes"),
        ("Can I use bark pipes to move Zorb oil? Which pipes are cut, and how do they differ from Clay?", "Bark pipes"),
        (
            "How do I run a program from Zorb and get its output, and what is the risk?",
            "How to run a program from Zorb and get its output",
        ),
        ("Why do Zorb firms use old offices, how is one cleaned, and how are doors locked?", "Old offices"),
        ("What are Zorb pipes good for, and how do I remove one?", "Zorb pipes"),
        ("Why does Zorb not lock its doors by default, and what is a latch?", "Why Zorb does not lock its doors by default"),
        ("Prepare a summary of locks in Zorb: kinds, people who may open them, and prices.", "Locks in Zorb"),
        (
            "How do you wash wool in a Zorb machine, which soaps are there, and how is it dried?",
            "How to wash wool in a Zorb machine",
        ),
        ("When is Zorb a good choice, and when does a big machine work better?", "When Zorb is a good choice"),
        ("Which pipe types does Zorb offer, and when are bent pipes useful?", "Pipe types in Zorb"),
        ("Locks in Zorb: how they work, what a latch is and how errors are handled", "Locks in Zorb"),
        ("What caused the Black Death to spread, and how did it change towns?", "The Black Death"),
        ("What caused the move to remote work, and what came of it?", "The move to remote work"),
        ("What is the difference between zorb weave and zorb knit, and when is which used?", "Zorb weave and zorb knit"),
        ("What are the risks of turning off autolock in Zorb and how is it tuned?", "Autolock in Zorb"),
        ("How does lampio differ from wicks in Zorb, and when should I use oil?", "Lampio"),
        ("How do I set up latches in a Zorb house?", "How to set up latches in a Zorb house"),
        ("How does Zorb handle two writers, and what does the timeout do?", "How Zorb handles two writers"),
        ("How does a kiln dry?", "How a kiln dries"),
        ("When does it pay to lock a door in Zorb, and what are the kinds?", "When it pays to lock a door in Zorb"),
        ("What does AUTOLOCK do in Zorb? Do I need it for a shed?", "What AUTOLOCK does in Zorb"),
        ("Why is 0.1 + 0.2 not 0.3 in Zorb, and when should I use fractions?", "Why 0.1 + 0.2 is not 0.3 in Zorb"),
        ("What threatens the great marsh?", "What threatens the great marsh?"),
        ("Why do small firms rent old offices, how is one found, and who pays?", "Old offices"),
    ],
)
def test_a_title_is_what_the_question_is_about(question: str, title: str) -> None:
    assert make_title(question) == title


@pytest.mark.parametrize(
    ("part", "heading"),
    [
        ("What a flue is (old kilns).", "What a flue is"),
        ("Describe the careers of Éric Rohmer.", "The careers of Éric Rohmer"),
        ("How is the city governed (Warsaw)?", "How is the city governed?"),
        ("Locks in Zorb: how they work", "How they work"),
        ("How errors are handled (Zorb)?", "How errors are handled"),
        ("What a latch is (Zorb)?", "What a latch is"),
        ("How big are latches (Zorb)?", "How big are latches?"),
        ("Why locking is needed (Zorb)?", "Why locking is needed"),
        ("When to run it (Zorb)?", "When to run it"),
        ("What a latch does (Zorb)?", "What a latch does"),
        ("Why is a latch made (Zorb)?", "Why is a latch made?"),
        ("Which latch is the oldest (Zorb)?", "Which latch is the oldest?"),
        ("The revenue of 2025 (Zorb Motors)", "The revenue of 2025"),
        ("How is one cleaned (old offices)?", "How is one cleaned (old offices)?"),
    ],
)
def test_a_heading_is_its_part_without_what_only_the_search_needs(part: str, heading: str) -> None:
    assert make_heading(part) == heading
