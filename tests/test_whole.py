"""Which questions are about a document as a whole."""

from __future__ import annotations

import pytest

from nexi.text.whole import asks_about_whole


@pytest.mark.parametrize(
    "question",
    [
        "summarise this",
        "Summarize the attached PDF in 5 bullet points, please",
        "tl;dr",
        "What is this about?",
        "Fasse dieses Dokument zusammen",
        "De quoi parle ce texte ?",
        "¿De qué trata este archivo?",
        "لخص هذا الملف",
        "summarise https://example.org/quay",
    ],
)
def test_a_question_without_a_subject_of_its_own_is_about_the_document(question: str) -> None:
    assert asks_about_whole(question)


@pytest.mark.parametrize(
    "question", ["", "when?", "What does it say about the budget?", "summary of the move", "Who wrote this?", "要約 " * 40]
)
def test_a_question_with_a_subject_is_not(question: str) -> None:
    assert not asks_about_whole(question)
