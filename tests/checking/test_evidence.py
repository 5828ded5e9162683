"""What a judge is shown: the passages that bear on the sentences, each page once, within a budget."""

from __future__ import annotations

import time

from nexi.checking.evidence import MAX_TOKENS, MAX_WINDOWS, SentenceQuery, gather_evidence
from nexi.checking.pages import prepare

FILLER = " ".join(f"Sentence number {n} speaks of nothing in particular." for n in range(60))
WAL = prepare(
    f"# Logs\n\n{FILLER}\n\n## Write-ahead logs\n\nReaders do not block writers in [WAL mode](http://sqlite.test/wal). "
    f"A checkpoint moves the log back.\n\n{FILLER}",
    "http://sqlite.test/wal.html",
)
SHORT = prepare("# Locks\n\nA rollback journal blocks readers while it writes.", "http://sqlite.test/lock.html")


def test_the_window_with_the_rare_words_is_found_with_its_headings_and_without_links() -> None:
    evidence = gather_evidence([SentenceQuery("In WAL mode a reader never waits for a writer", (1,))], {1: WAL})
    first = next(p for p in evidence.passages if p.n == evidence.chosen[0][0])
    assert "Readers do not block writers in WAL mode. A checkpoint moves the log back." in first.text
    assert WAL.text[first.start : first.end].startswith(("Sentence number", "## Write", "# Logs", "Readers"))


def test_a_short_page_is_shown_whole_and_every_page_once() -> None:
    queries = [SentenceQuery("Readers are blocked by the rollback journal", (2,)), SentenceQuery("A journal blocks", (2,))]
    evidence = gather_evidence(queries, {1: WAL, 2: SHORT, 3: None})
    assert [p.text for p in evidence.passages if p.page == 2] == [
        "# Locks\n\nA rollback journal blocks readers while it writes."
    ]


def test_pages_that_are_not_cited_are_searched_too() -> None:
    evidence = gather_evidence([SentenceQuery("A rollback journal blocks readers", (1,))], {1: WAL, 2: SHORT})
    assert 2 in {p.page for p in evidence.passages}


def test_the_passages_fit_into_the_budget() -> None:
    queries = [SentenceQuery(f"Sentence number {n} speaks of nothing in particular", (1,)) for n in range(40)]
    assert gather_evidence(queries, {1: WAL}, max_tokens=500).tokens <= 500


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert gather_evidence([SentenceQuery("A journal")], {}).passages == ()
    assert gather_evidence([], {1: WAL}).passages == ()


def test_the_trail_names_the_headings_from_the_outermost() -> None:
    page = prepare(f"# A\n\nOne.\n\n## B\n\nTwo.\n\n### C\n\n{FILLER} A heron stands here.")
    (passage,) = gather_evidence([SentenceQuery("A heron stands.")], {1: page}).passages
    assert (passage.trail, "heron" in passage.text) == ("A > B > C", True)


def test_a_page_of_two_megabytes_takes_no_more_than_seconds() -> None:
    page = prepare("# Long\n\n" + " ".join(f"The machine number {n} was built in {1900 + n % 100}." for n in range(45_000)))
    began = time.process_time()
    evidence = gather_evidence([SentenceQuery(f"Machine {n} was built in 1950", (1,)) for n in range(20)], {1: page})
    assert (evidence.tokens <= 5_000, time.process_time() - began < 20) == (True, True)


def test_a_sentence_with_thirty_citations_is_shown_from_several_of_them_within_the_budget() -> None:
    rain = "Report {n} tells of rain and of little else. "
    pages = {n: prepare("The bridge opened in 1937. " + rain.format(n=n) * 200) for n in range(1, 31)}
    shown = gather_evidence([SentenceQuery("The bridge opened in 1937.", tuple(pages))], pages)
    assert shown.tokens <= MAX_TOKENS
    assert len({passage.page for passage in shown.passages}) == MAX_WINDOWS
