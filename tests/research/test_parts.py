"""A broad question falls into the parts it enumerates, each with its subject by name."""

from __future__ import annotations

import pytest

from nexi.research.planner import split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "What is the log mode, how is it switched on, why is it faster, when does it fail, and who should avoid it?",
            [
                "What is the log mode?",
                "How is the log mode switched on?",
                "Why is the log mode faster?",
                "When does the log mode fail?",
                "Who should avoid the log mode?",
            ],
        ),
        (
            "Why do small firms rent old offices, how is one found, and what happens when there is a leak?",
            [
                "Why do small firms rent old offices?",
                "How is one found (old offices)?",
                "What happens when there is a leak (old offices)?",
            ],
        ),
        (
            "How do you back up a database, and when is Postgres a good choice?",
            ["How do you back up a database?", "When is Postgres a good choice?"],
        ),
        (
            "What caused the potato famine, how did it affect the Irish economy, and how did it change farming?",
            [
                "What caused the potato famine?",
                "How did the potato famine affect the Irish economy?",
                "How did the potato famine change farming?",
            ],
        ),
        (
            "What are the causes and effects of ocean tides?",
            ["What are the causes of ocean tides?", "What are the effects of ocean tides?"],
        ),
        (
            "Describe the economy, the schools and the climate of Lisbon.",
            ["Describe the economy of Lisbon.", "Describe the schools of Lisbon.", "Describe the climate of Lisbon."],
        ),
        (
            "How are railways run in Spain, Norway and Peru?",
            ["How are railways run in Spain?", "How are railways run in Norway?", "How are railways run in Peru?"],
        ),
        (
            "How does tracing in Ruby work: what are spans, clocks and sinks, and how is tracing configured?",
            [
                "What are spans (tracing in Ruby)?",
                "What are clocks (tracing in Ruby)?",
                "What are sinks (tracing in Ruby)?",
                "How is tracing configured (Ruby)?",
            ],
        ),
        (
            "Explain the history of the Zorbs: who were they, why did they leave Peru, and where did they settle?",
            ["Who were the Zorbs?", "Why did the Zorbs leave Peru?", "Where did the Zorbs settle?"],
        ),
        (
            "Coastal erosion: how is it measured, what causes it and what effects does it have?",
            [
                "How is coastal erosion measured?",
                "What causes coastal erosion?",
                "What effects does coastal erosion have?",
            ],
        ),
        (
            "Compare thorn pipes and bone pipes, and when should each be used?",
            ["Compare thorn pipes", "Compare bone pipes", "When should each be used (thorn pipes and bone pipes)?"],
        ),
        (
            "Why does Zorb not enforce foreign keys by default, and how do I switch them on?",
            ["Why does Zorb not enforce foreign keys by default?", "How do I switch on foreign keys (Zorb)?"],
        ),
        (
            "Which permits does Zorb need for export, and who grants them?",
            ["Which permits does Zorb need for export?", "Who grants permits (Zorb)?"],
        ),
        (
            "How do I run a program from Zorb and get its output, and what is the risk?",
            ["How do I run a program from Zorb and get its output?", "What is the risk (Zorb)?"],
        ),
        (
            "Can I use thorn pipes to move my oil, and how do they differ from bone pipes?",
            ["Can I use thorn pipes to move my oil?", "How do thorn pipes differ from bone pipes?"],
        ),
        (
            "We move to Zorb. Write a brief on pruning in Zorb for our team. Cover how a rule is made, how its names are "
            "chosen, and how rules are ranked. It should say what a blank rule is.",
            [
                "Pruning in Zorb",
                "How a rule is made (Pruning in Zorb)?",
                "How the rule's names are chosen (Pruning in Zorb)?",
                "How rules are ranked (Pruning in Zorb)?",
                "What a blank rule is (Pruning in Zorb)?",
            ],
        ),
        (
            "Write a report about the Siege of Zorb. It should say who fought, why they fought and what followed.",
            ["Who fought (Siege of Zorb)?", "Why they fought (Siege of Zorb)?", "What followed (Siege of Zorb)?"],
        ),
        (
            "Prepare a summary of locks in Zorb: kinds, people who may open them, and prices.",
            ["Kinds (locks in Zorb)", "People who may open them (locks in Zorb)", "Prices (locks in Zorb)"],
        ),
        (
            "Why do singers use big halls, and how is one built?",
            ["Why do singers use big halls?", "How is one built (big halls)?"],
        ),
        (
            "What happens when a fuse blows inside a lamp, and how is one replaced?",
            ["What happens when a fuse blows inside a lamp?", "How is one replaced (a lamp)?"],
        ),
        ("How do owls hunt, nest and sleep?", ["How do owls hunt?", "How do owls nest?", "How do owls sleep?"]),
        (
            "What is the climate of Peru, is it dry, and who lived there?",
            ["What is the climate of Peru?", "Is Peru dry?", "Who lived in Peru?"],
        ),
        (
            "How was the Senate elected, and how is the city governed?",
            ["How was the Senate elected?", "How is the city governed (the Senate)?"],
        ),
        (
            "Who was Ada Lovelace, and what did Alan Turing build?",
            ["Who was Ada Lovelace?", "What did Alan Turing build?"],
        ),
        (
            "Describe the life of Ada Lovelace and the life of Alan Turing.",
            ["Describe the life of Ada Lovelace.", "Describe the life of Alan Turing."],
        ),
        ("How did England and Scotland trade?", ["How did England trade?", "How did Scotland trade?"]),
        (
            "What are lichens, how do they feed, why does bark crumble, and how can it be protected?",
            [
                "What are lichens?",
                "How do lichens feed?",
                "Why does bark crumble (lichens)?",
                "How can bark be protected (lichens)?",
            ],
        ),
        (
            "What is lazy loading in Angular and how does it relate to routing?",
            ["What is lazy loading in Angular?", "How does lazy loading in Angular relate to routing?"],
        ),
        (
            "How did canals change Holland, who dug them, and what did they cost?",
            ["How did canals change Holland?", "Who dug canals?", "What did canals cost?"],
        ),
        (
            "Please write a report on how old kilns work. Explain how to heat, cool and clean them. Also say what a flue is.",
            [
                "How old kilns work?",
                "How to heat old kilns?",
                "How to cool old kilns?",
                "How to clean old kilns?",
                "What a flue is (old kilns)?",
            ],
        ),
        (
            "Describe the work and the death of John Moss. (John Moss (painter))",
            ["Describe the work of John Moss. (John Moss (painter))", "Describe the death of John Moss. (John Moss (painter))"],
        ),
        (
            "I own a kiosk in Ohio. Which permits do I need? What do they cost?",
            ["Which permits do I need?", "What do permits cost?"],
        ),
        (
            "Write a brief on Zorb Motors. Cover the revenue of 2025. Name the launch date of the Z-4.",
            ["The revenue of 2025 (Zorb Motors)", "The launch date of the Z-4 (Zorb Motors)"],
        ),
        (
            "How do I read and write logs in Zorb, and how do I make sure that one is closed?",
            ["How do I read and write logs in Zorb?", "How do I make sure that one is closed (logs in Zorb)?"],
        ),
        (
            "How do I sort a list of records in Zorb by more than one field, and do equal records keep their order?",
            ["How do I sort a list of records in Zorb by more than one field?", "Do equal records keep their order (Zorb)?"],
        ),
        (
            "How do I run another program from Zorb and get its output, and what is the risk of shell=True?",
            ["How do I run another program from Zorb and get its output?", "What is the risk of shell=True (Zorb)?"],
        ),
        (
            "What is a latch in Zorb, how do I make one, and how do I hang a bell on it?",
            [
                "What is a latch in Zorb?",
                "How do I make a latch in Zorb?",
                "How do I hang a bell on the latch in Zorb?",
            ],
        ),
        (
            "How does log rotation work in Zorb, and how do I set it up for a server?",
            ["How does log rotation work in Zorb?", "How do I set up log rotation in Zorb for a server?"],
        ),
        (
            "What were the causes of the French and Indian War, and what were its results?",
            [
                "What were the causes of the French and Indian War?",
                "What were the French and Indian War's results?",
            ],
        ),
        (
            "How does tracing in Ruby work, how is it configured, and how can threads share a log?",
            [
                "How does tracing in Ruby work?",
                "How is tracing in Ruby configured?",
                "How can threads share a log (tracing in Ruby)?",
            ],
        ),
        (
            "How do hooks work in Zsh, what are their limits, and how do you set a delay?",
            ["How do hooks work in Zsh?", "What are hooks' limits (Zsh)?", "How do you set a delay (hooks in Zsh)?"],
        ),
        (
            "Why does Oracle need pruning, how does the pruner work, and how is it tuned?",
            ["Why does Oracle need pruning?", "How does the pruner work (Oracle)?", "How is the pruner tuned (Oracle)?"],
        ),
        (
            "How do you set up live copies in Oracle, and how does recovery work?",
            ["How do you set up live copies in Oracle?", "How does recovery work (live copies in Oracle)?"],
        ),
        (
            "What are drones used for, what happens when there is a storm, and who owns them?",
            ["What are drones used for?", "What happens when there is a storm (drones)?", "Who owns drones?"],
        ),
        (
            "How do brewers measure the strength of beer, and which kinds of beer are there?",
            ["How do brewers measure the strength of beer?", "Which kinds of beer are there (brewers)?"],
        ),
        ("What is Norman law and Norman art known for?", ["What is Norman law known for?", "What is Norman art known for?"]),
    ],
)
def test_each_part_can_be_understood_on_its_own(question: str, parts: list[str]) -> None:
    assert split_question(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "What were the causes of the French and Indian War?",
        "What do Ada Lovelace and Alan Turing have in common?",
        "Are Ada Lovelace and Alan Turing from the same country?",
        'Which band wrote "Salt and Pepper"?',
        "Which country is home to Alsa Mall and Spencer Plaza?",
        "How did the man who wrote plays and poems die?",
        "Tides and the Moon",
    ],
)
def test_names_comparisons_and_facts_stay_whole(question: str) -> None:
    assert [part.rstrip("?") for part in split_question(question)] == [question.rstrip("?")]


def test_five_parts_in_one_sentence_are_five_questions_that_name_their_subject() -> None:
    question = (
        "When was the Ewell bridge built, who designed it, how long is it, what did it cost, and why was it closed in 1972?"
    )
    assert split_question(question) == [
        "When was the Ewell bridge built?",
        "Who designed the Ewell bridge?",
        "How long is the Ewell bridge?",
        "What did the Ewell bridge cost?",
        "Why was the Ewell bridge closed in 1972?",
    ]
