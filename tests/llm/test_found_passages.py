"""Over manuals, the built-in model quotes the passages that the knowledge store has found, with their names and their code."""

from __future__ import annotations

from nexi.llm.extractive._found import find_passages, quote_passages
from nexi.llm.extractive.questions import read_question
from nexi.text.chunking import PASSAGE_GAP
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
        "Commit, `-m`, `--message`: Use the given text as the message of the commit. [3]\n\n"
        "`--amend`: Replace the tip of the branch, for instance to change the message of the last commit. [3]\n\n"
        "```\nif needed:\n    git commit --amend\n```"
    )


def test_a_passage_is_named_after_its_page_unless_its_heading_or_a_long_title_makes_that_needless() -> None:
    text = "# Manual > Examples\n\nReplace the `tip` and change the message of the last commit."
    pages = [PageView(URL, 1)]
    for title, above in (
        ("amend — a tool of the manual", "amend, Examples"),
        ("3.2. Examples of use", "Examples of use, Examples"),
        ("Chapter 3. Tools", "Tools, Examples"),
        ("What is amended?", "Examples"),
        ("commit.html", "Examples"),
        ("Examples", "Examples"),
        ("How to change the message of a commit", "Examples"),
    ):
        found = find_passages(QUESTION, [Hit(URL, title, text, backend="local")])
        assert quote_passages(found, pages) == f"{above}: Replace the `tip` and change the message of the last commit. [1]"


def test_a_passage_of_a_page_that_was_read_is_quoted_although_the_search_did_not_return_it() -> None:
    hits = [Hit(URL, "Commit", SIGN, backend="local")]
    page = PageView(URL, 1, text=f"{SIGN}\n\n## Options\n\n{'The `log` names every file. ' * 60}\n\n{AMEND}")
    assert "--amend" not in quote_passages(find_passages(QUESTION, hits), [page])
    found = find_passages(QUESTION, hits, [page])
    assert "git commit --amend" in found[0].text
    assert sum(passage.text.count(SIGN) for passage in found) == 1


def test_a_passage_whose_sentences_were_quoted_is_not_quoted_again() -> None:
    hits = [Hit(URL, "Commit", AMEND, backend="local"), Hit(OTHER, "Log", AMEND, backend="local")]
    quoted = quote_passages(find_passages(QUESTION, hits), [PageView(URL, 1), PageView(OTHER, 2)])
    assert (quoted.count("Replace the tip"), "[2]" in quoted) == (1, False)


def test_a_manual_that_marks_no_code_is_told_by_the_names_in_it() -> None:
    text = "Call commit_amend() to change the message of the last commit that the connection made."
    found = find_passages(QUESTION, [Hit(URL, "Commit", text, backend="local")])
    assert quote_passages(found, [PageView(URL, 1)]) == f"Commit: {text} [1]"


def test_a_page_that_was_not_read_is_not_quoted() -> None:
    passages = find_passages(QUESTION, [Hit(URL, "Commit", AMEND, backend="local")])
    assert quote_passages(passages, [PageView(OTHER, 1)]) == ""


def test_passages_of_prose_and_of_other_languages_are_left_to_the_sentences() -> None:
    prose = "The commission changed the message of the last king. It was read aloud in the harbour."
    assert find_passages(QUESTION, [Hit(URL, "Kings", prose, backend="local")]) == []
    german = read_question("Wie ändere ich die Nachricht der letzten Version in diesem Verzeichnis?")
    assert find_passages(german, [Hit(URL, "Commit", AMEND, backend="local")]) == []
