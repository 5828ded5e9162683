"""Over manuals, the built-in model quotes the passages that the knowledge store has found, with their names and their code."""

from __future__ import annotations

from nexi.llm.extractive._found import find_passages, quote_passages
from nexi.llm.extractive.questions import read_question
from nexi.text.excerpts import PASSAGE_GAP
from nexi.types import Hit, PageView

URL, OTHER = "file:///manual/commit.html", "file:///manual/log.html"
AMEND = (
    "# Commit > OPTIONS\n\n`-m`\n\n`--message`\n\nUse the given text as the message of the commit.\n\n`--amend`\n\n"
    "Replace the tip of the branch, for instance to change the message of the last commit. For example:\n\n"
    "```\nif needed:\n    git commit --amend\n```"
)
SIGN = "Sign the `commit` with the default key of the user who wrote it.\n\nThe `key` may be named."
QUESTION = read_question("How do I change the message of the last commit?")


def test_the_passage_that_says_most_comes_first_with_its_names_and_its_code() -> None:
    hits = [Hit(OTHER, "Log", SIGN, backend="local"), Hit(URL, "Commit", PASSAGE_GAP.join((SIGN, AMEND)), backend="local")]
    passages = find_passages(QUESTION, hits)
    assert (passages[0].url, passages[0].text) == (URL, AMEND)
    assert quote_passages(passages[:1], [PageView(URL, 3)]) == (
        "`-m`, `--message`: Use the given text as the message of the commit. [3]\n\n"
        "`--amend`: Replace the tip of the branch, for instance to change the message of the last commit. [3]\n\n"
        "```\nif needed:\n    git commit --amend\n```"
    )


def test_a_page_that_was_not_read_is_not_quoted() -> None:
    passages = find_passages(QUESTION, [Hit(URL, "Commit", AMEND, backend="local")])
    assert quote_passages(passages, [PageView(OTHER, 1)]) == ""


def test_passages_of_prose_and_of_other_languages_are_left_to_the_sentences() -> None:
    prose = "The commission changed the message of the last king. It was read aloud in the harbour."
    assert find_passages(QUESTION, [Hit(URL, "Kings", prose, backend="local")]) == []
    german = read_question("Wie ändere ich die Nachricht der letzten Version in diesem Verzeichnis?")
    assert find_passages(german, [Hit(URL, "Commit", AMEND, backend="local")]) == []
