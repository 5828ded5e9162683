"""What a person is told when a run has no evidence."""

from __future__ import annotations

from nexi.agent.search_failures import describe_failed_web, explain_no_evidence
from nexi.errors import NoEvidenceError
from nexi.types import Failure, Hit, Message, PageView, SearchOutcome, ToolResult


def searched(*failures: Failure, hits: tuple[Hit, ...] = ()) -> Message:
    return Message("tool", "", result=ToolResult((SearchOutcome("moon", hits, "", failures),), ""))


def explain(*messages: Message) -> tuple[str, str, str]:
    error = explain_no_evidence(messages, message="there is no answer", cause="the time is over", fix="wait longer")
    assert isinstance(error, NoEvidenceError)
    return error.message, error.cause, error.fix


def test_services_that_cannot_be_reached_are_one_cause() -> None:
    said = explain(
        searched(Failure("duckduckgo", "dns", "a long dump"), Failure("wikipedia", "dns", "another")),
        searched(Failure("duckduckgo", "network", "a long dump; and more"), Failure("wikipedia", "dns", "another")),
    )
    assert said == (
        "No internet connection",
        "neither DuckDuckGo nor Wikipedia could be reached",
        "check the connection, or answer from the knowledge base with --local; nexi doctor tests every part",
    )


def test_three_services_and_one_are_named_in_plain_english() -> None:
    codes = [Failure(name, "dns", "") for name in ("brave", "arxiv", "wikipedia")]
    assert explain(searched(*codes))[1] == "neither Brave, arXiv nor Wikipedia could be reached"
    assert explain(searched(codes[2]))[1] == "not even Wikipedia could be reached"


def test_a_search_service_of_ones_own_at_a_wrong_address_is_not_a_missing_connection() -> None:
    said = explain(searched(Failure("searxng", "dns", "the host of searxng was not found")))
    assert said == ("there is no answer", "the time is over; searxng: the host of searxng was not found", "wait longer")


def test_a_service_that_answered_shows_that_there_is_a_connection() -> None:
    said = explain(searched(Failure("duckduckgo", "dns", "cannot be reached"), Failure("wikipedia", "empty", "no result")))
    assert said[1] == "the time is over; duckduckgo: cannot be reached; wikipedia: no result"


def test_pages_that_failed_are_named_and_searches_with_hits_are_not() -> None:
    hit = Hit("https://moon.example", "Moon")
    read = Message("tool", "", result=ToolResult((PageView("https://moon.example", error="it is gone"),), ""))
    said = explain(searched(Failure("brave", "dns", "cannot be reached"), hits=(hit,)), read)
    assert said[1] == "the time is over; https://moon.example: it is gone"


def test_a_web_that_failed_is_named_where_only_stored_pages_were_found() -> None:
    down = Failure("searxng", "refused", "searxng refused the connection; it was asked although it is suspended")
    stored = searched(hits=(Hit("file:///notes/shed.txt", "shed.txt", backend="local"),))
    found = searched(hits=(Hit("https://moon.example", "Moon", backend="wikipedia"),))
    away = searched(Failure("duckduckgo", "dns", "a dump"), Failure("wikipedia", "network", "another"))
    assert describe_failed_web((stored, searched(down)), "local") == "searxng refused the connection"
    assert describe_failed_web((stored, away), "local") == "neither DuckDuckGo nor Wikipedia could be reached"
    assert describe_failed_web((stored, searched(down), found), "local") == ""
    assert describe_failed_web((stored,), "local") == ""
