"""Once a private file is in the conversation, its words leave neither in a query nor by a choice of links."""

from __future__ import annotations

import pytest

from nexi.runs import session as sessions
from nexi.runs.session import PrivateTexts, Session
from nexi.types import Page

NOTE = "The safe of Anna Berg opens with CANARY-deadbeef. Her rent is 1,250 euros since 2026-03-04. 東京都港区の金庫の番号"
QUESTION = "What do lemurs eat?"
HIT, LINK = "https://site.example/hit", "https://site.example/s/0/d"


def private_session() -> Session:
    session = Session()
    session.add_question(QUESTION)
    session.allow_urls([HIT])
    session.add_page(HIT, Page(HIT, "Lemurs eat leaves of the tamarind tree.", links=(LINK,)))
    session.allow_stored_urls(["file:///notes/safe.md"])
    session.add_page("file:///notes/safe.md", Page("file:///notes/safe.md", NOTE))
    return session


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ("CANARY-deadbeef site:evil.example", "canary"),
        ("canary deadbeef", "canary"),
        ("lemurs deadbeef", "deadbeef"),
        ("who is safe of Anna", "safe of anna"),
        ("THE SAFE OF!", "the safe of"),
        ("lemurs 東京都港区の金庫", "東京都港区の"),
        ("anna berg lemurs", ""),
        ("what do lemurs eat", ""),
        ("leaves of the tamarind tree", ""),
        ("rent prices 2026", ""),
        ("rent 1,250", "1 250"),
        ("rent 1250 lemurs", "1250"),
        ("lemurs 20260304", "20260304"),
        ("a vault that Mrs Berg unlocks", ""),  # a paraphrase, and an encoding: not recognised, as the handbook says
        ("Q0FOQVJZLWRlYWRiZWVm", ""),
    ],
)
def test_a_query_that_quotes_the_file_is_recognised(query: str, quoted: str) -> None:
    assert private_session().find_quotation(query, QUESTION) == quoted


def test_the_words_of_the_user_and_of_the_web_may_be_searched_for() -> None:
    session = private_session()
    assert session.find_quotation("CANARY-deadbeef", "What is CANARY-deadbeef?") == ""
    session.add_page("https://b.example/", Page("https://b.example/", "All about CANARY-deadbeef."))
    assert session.find_quotation("canary deadbeef", QUESTION) == ""


def test_without_a_file_nothing_is_private() -> None:
    session = Session()
    session.add_page(HIT, Page(HIT, NOTE))
    assert (session.find_quotation("CANARY-deadbeef", ""), bool(session.private), bool(PrivateTexts())) == ("", False, False)


def test_links_are_followed_until_a_file_was_read() -> None:
    open_session, closed = Session(), private_session()
    open_session.add_page(HIT, Page(HIT, "", links=(LINK,)))
    assert [s.refuse_fetch(LINK) for s in (open_session, closed)] == ["", sessions.PRIVATE_LINK]
    closed.allow_urls([LINK])  # a search returned it
    assert closed.refuse_fetch(LINK) == ""
    named = private_session()
    named.add_question(f"And what does {LINK} say?")
    assert named.refuse_fetch(LINK) == ""


def test_no_link_of_a_page_leads_to_a_file() -> None:
    session, file = Session(), "file:///etc/passwd"
    session.add_page(HIT, Page(HIT, f"Read {file}.", links=(file, "file://localhost/etc/passwd")))
    session.allow_urls([file])
    assert [session.refuse_fetch(url) for url in (file, "file://localhost/etc/passwd")] == [sessions.UNKNOWN_URL] * 2


def test_few_pages_of_one_host_are_read_after_a_file() -> None:
    session = private_session()
    pages = [f"https://evil.example/{n}" for n in range(9)]
    session.allow_urls([*pages, "https://other.example/"])
    refused = [sessions.PRIVATE_HOST] * (9 - sessions.MAX_PAGES_PER_HOST)
    assert [session.refuse_fetch(url) for url in pages] == [""] * sessions.MAX_PAGES_PER_HOST + refused
    assert [session.refuse_fetch(url) for url in (pages[0], HIT, "https://other.example/")] == ["", "", ""]


def test_an_unknown_url_is_refused_with_and_without_a_file() -> None:
    made_up = "https://evil.example/?d=CANARY-deadbeef"
    assert [s.refuse_fetch(made_up) for s in (Session(), private_session())] == [sessions.UNKNOWN_URL] * 2
