"""What a person is told when a run has no evidence."""

from __future__ import annotations

from nexi.agent._search_failures import describe_failed_web, describe_idleness, explain_no_evidence
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
    assert explain(searched(codes[2]))[1] == "Wikipedia could not be reached"


def test_a_search_service_of_ones_own_at_a_wrong_address_is_not_a_missing_connection() -> None:
    said = explain(searched(Failure("searxng", "dns", "the host of searxng was not found", "correct the host")))
    assert said == ("there is no answer", "the host of searxng was not found", "correct the host")


def test_the_service_that_failed_has_the_fix_and_the_one_that_answered_shows_a_connection() -> None:
    said = explain(
        searched(Failure("duckduckgo", "dns", "it cannot be reached", "check the network"), Failure("wikipedia", "empty", "no"))
    )
    assert said == ("there is no answer", "it cannot be reached", "check the network")


def test_the_same_words_of_two_services_are_said_once_with_the_first_fix() -> None:
    said = explain(searched(Failure("brave", "limit", "too often", "wait"), Failure("exa", "limit", "too often", "pay")))
    assert said == ("there is no answer", "too often", "wait")


def test_a_limit_is_the_cause_where_no_service_failed() -> None:
    assert explain(searched(Failure("brave", "empty", "no"))) == ("there is no answer", "the time is over", "wait longer")


def test_services_that_found_nothing_are_named_and_are_no_failure() -> None:
    error = explain_no_evidence([searched(Failure("searxng", "empty", "no"))], message="there is no answer")
    assert (error.cause, error.fix) == (
        "SearXNG found nothing for this question",
        "ask in other words, or add a search service: nexi config setup",
    )


def test_pages_that_failed_alike_are_counted_with_the_fix_of_the_first() -> None:
    found = searched(Failure("brave", "dns", "cannot be reached"), hits=(Hit("https://moon.example", "Moon"),))
    refused = "blocked: moon.example is not fetched"
    views = [PageView(f"https://moon.example/{n}", error=refused, fix="allow it") for n in (1, 2)]
    read = Message("tool", "", result=ToolResult((*views, PageView("https://x.example", error="it is gone")), ""))
    error = explain_no_evidence([found, read], message="there is no answer")
    assert (error.cause, error.fix) == ("moon.example is not fetched (2 pages); 1 more could not be read", "allow it")


def test_a_model_is_blamed_only_for_what_it_did_not_try() -> None:
    hits = searched(hits=(Hit("https://moon.example", "Moon"),))
    failed = Message("tool", "", result=ToolResult((PageView("https://moon.example", error="it is gone"),), ""))
    blames = [
        describe_idleness(messages, "gpt")
        for messages in ([], [hits], [hits, failed], [searched(Failure("brave", "dns", "no"))])
    ]
    assert blames == ["gpt did not use its tools", "gpt opened no page that was found", "", ""]


def test_a_web_that_failed_is_named_where_only_stored_pages_were_found() -> None:
    down = Failure("searxng", "refused", "searxng refused the connection")
    stored = searched(hits=(Hit("file:///notes/shed.txt", "shed.txt", backend="local"),))
    found = searched(hits=(Hit("https://moon.example", "Moon", backend="wikipedia"),))
    away = searched(Failure("duckduckgo", "dns", "a dump"), Failure("wikipedia", "network", "another"))
    prefix = "the web could not be searched: "
    assert describe_failed_web((stored, searched(down)), "local") == f"{prefix}searxng refused the connection"
    assert describe_failed_web((stored, away), "local") == f"{prefix}neither DuckDuckGo nor Wikipedia could be reached"
    alone = searched(Failure("wikipedia", "dns", "a dump"))
    assert describe_failed_web((stored, alone), "local") == f"{prefix}Wikipedia could not be reached"
    assert describe_failed_web((stored, searched(down), found), "local") == ""
    assert describe_failed_web((stored,), "local") == ""


def test_a_web_that_was_searched_and_has_nothing_is_not_called_one_that_could_not_be_searched() -> None:
    stored = searched(hits=(Hit("file:///notes/shed.txt", "shed.txt", backend="local"),))
    empty = Failure("searxng", "empty", "it answered and has no result for this query")
    down = Failure("wikipedia", "refused", "wikipedia refused the connection")
    assert describe_failed_web((stored, searched(empty)), "local") == "SearXNG found nothing on the web for this question"
    assert describe_failed_web((stored, searched(empty, down)), "local") == (
        "the web could not be searched: wikipedia refused the connection"
    )


def test_services_that_rest_are_named_by_what_they_failed_with_and_many_are_counted() -> None:
    said = explain(
        searched(*(Failure(f"s{n}", "dns", "its host cannot be resolved") for n in range(6))),
        searched(*(Failure(f"s{n}", "suspended", "it is not asked for 5 s more") for n in range(6))),
    )
    assert said[:2] == (
        "No internet connection",
        "none of 6 search services could be reached, S0 among them",
    )
