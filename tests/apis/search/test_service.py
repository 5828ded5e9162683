"""One request through the service: the rules of the Search API, each as a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexi.errors import FetchError, QuestionError
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Hit, Query
from nexi.urls import page_id
from tests.apis.search.support import HITS, PAGES, Backend, Fetcher, Stuck, compare_pack, down, nexi

QUERY = "bm25 ranking algorithm"


async def ask(tmp_path: Path, request: dict[str, Any], *backends: Any, **world: Any) -> dict[str, Any]:
    async with nexi(tmp_path, *backends, **world) as app:
        return await app.search_api().search(request)


def urls(pack: dict[str, Any]) -> list[str]:
    return [item["url"] for item in pack["items"]]


def fetches(pack: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(item["fetch"]["status"], item["fetch"]["skip_reason"]) for item in pack["items"]]


async def test_the_base_request_of_the_seed_gives_this_whole_pack(tmp_path: Path) -> None:
    request = {
        "query": {"text": QUERY},
        "intent": "fresh_data",
        "constraints": {"backend": "searxng", "search_mode": "simple", "lang": "en"},
        "context_hint": {"known_topics": ["bm25", "information retrieval"]},
    }
    compare_pack("simple.json", await ask(tmp_path, request))


async def test_a_request_in_full_mode_gives_this_whole_pack(tmp_path: Path) -> None:
    pages = {**PAGES, HITS[1].url: FetchError("it is a video", reason="content_type")}
    request = {"query": QUERY, "constraints": {"search_mode": "full"}}
    compare_pack("full.json", await ask(tmp_path, request, fetcher=Fetcher(pages)))


# The query


@pytest.mark.parametrize("query", [QUERY, {"text": QUERY}, {"text": f"  {QUERY}\n"}, "bm25\x00ranking\talgorithm"])
async def test_both_forms_of_a_query_ask_the_same(tmp_path: Path, query: object) -> None:
    backend = Backend()
    await ask(tmp_path, {"query": query}, backend)
    assert [q.text for q in backend.asked] == [QUERY]


@pytest.mark.parametrize(
    ("own", "constrained", "asked"),
    [("de", "en", "de"), (None, "en", "en"), ("pt_BR", None, "pt-BR"), ("all", "en", ""), ("", "en", "en"), (None, None, "")],
)
async def test_the_language_of_the_query_wins(tmp_path: Path, own: str | None, constrained: str | None, asked: str) -> None:
    backend = Backend()
    await ask(tmp_path, {"query": {"text": QUERY, "lang": own}, "constraints": {"lang": constrained}}, backend)
    assert [q.language for q in backend.asked] == [asked]


@pytest.mark.parametrize("intent", ["fact_check", "fresh_data", "background", "verification", "something newer", None])
async def test_an_intent_changes_nothing_but_the_echo(tmp_path: Path, intent: str | None) -> None:
    plain = await ask(tmp_path, {"query": QUERY})
    hinted = await ask(tmp_path, {"query": QUERY, "intent": intent, "context_hint": {"known_topics": ["x"]}})
    assert hinted.pop("request") == {"query": QUERY, "intent": intent, "context_hint": {"known_topics": ["x"]}}
    plain.pop("request")
    assert hinted == plain


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ([], "expected an object, got an array"),
        ({}, "query: required, but missing"),
        ({"query": ""}, "query: expected 1 to 2000 characters, got 0"),
        ({"query": " \n "}, "query: it is empty"),
        ({"query": 7}, "query: expected a string, got an integer"),
        ({"query": {"lang": "en"}}, "query.text: required, but missing"),
        (
            {"query": {"text": "x", "lang": "not a language"}},
            "lang: expected a language like en or pt-BR, got 'not a language'",
        ),
        (
            {"query": "x", "constraints": {"search_mode": "deep"}},
            'constraints.search_mode: expected one of "simple", "full", got "deep"',
        ),
        ({"query": "x", "constraints": {"pick_ids": "2"}}, "constraints.pick_ids: expected an array or null, got a string"),
        (
            {"query": "x", "constraints": {"seed_items": [{"url": "https://a.example/"}, {"url": "file:///etc/passwd"}]}},
            "constraints.seed_items[1].url: expected a web address, got 'file:///etc/passwd'",
        ),
        ({"query": "x", "budget": {"max_results": -1}}, "budget.max_results: expected at least 0, got -1"),
        ({"query": "x", "budget": {"max_results": True}}, "budget.max_results: expected an integer or null, got a boolean"),
        ({"query": "x", "want": {"items": "yes"}}, "want.items: expected a boolean or null, got a string"),
    ],
)
async def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, request_: Any, why: str) -> None:
    backend = Backend()
    with pytest.raises(QuestionError) as refused:
        await ask(tmp_path, request_, backend)
    assert (refused.value.code, refused.value.cause, backend.asked) == ("bad_request", why, [])


async def test_fields_of_a_newer_version_are_let_through_and_echoed(tmp_path: Path) -> None:
    request = {
        "query": {"text": QUERY, "weight": 2},
        "trace_id": "t1",
        "constraints": {"region": "eu"},
        "budget": {"max_cents": 3},
    }
    assert (await ask(tmp_path, request))["request"] == request


# What is wanted


@pytest.mark.parametrize(
    ("want", "parts"),
    [
        (None, {"items", "rendered_text"}),
        ({}, {"items", "rendered_text"}),
        ({"items": None, "rendered_text": None}, {"items", "rendered_text"}),
        ({"items": False}, {"rendered_text"}),
        ({"rendered_text": False}, {"items"}),
        ({"items": False, "rendered_text": False}, set()),
    ],
)
async def test_both_parts_come_unless_they_are_not_wanted(tmp_path: Path, want: Any, parts: set[str]) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "want": want})
    assert {"items", "rendered_text"} & set(pack) == parts
    assert pack["usage"]["results_returned"] == 4
    assert pack["usage"]["context_chars"] == len(pack.get("rendered_text", ""))


# Picks


@pytest.mark.parametrize(
    ("picks", "applied", "ids", "ranks"),
    [
        (None, False, [], [1, 2, 3, 4]),
        ([], False, [], [1, 2, 3, 4]),
        ([0], True, [0], [1]),
        ([3, 0, 2], True, [3, 0, 2], [4, 1, 3]),
        ([2, 2, 0, 2], True, [2, 0], [3, 1]),
        ([-1, 4, 99, 1, "2", 2.0, True, None, [0]], True, [1], [2]),
        ([-1, 99, "0"], True, [], []),
    ],
)
async def test_picks_are_places_from_0_and_ranks_are_from_1(
    tmp_path: Path, picks: Any, applied: bool, ids: list[int], ranks: list[int]
) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"pick_ids": picks}})
    assert (pack["meta"]["pick_applied"], pack["meta"]["pick_ids"]) == (applied, ids)
    assert [item["score"]["rank"] for item in pack["items"]] == ranks
    assert pack["rendered_text"].count("Title:") == len(ranks)


async def test_a_pick_beyond_the_wanted_number_of_results_is_still_found(tmp_path: Path) -> None:
    many = Backend(hits=[Hit(f"https://site{n}.example/", f"Site {n}") for n in range(30)])
    request = {"query": QUERY, "constraints": {"pick_ids": [20, 7, 4]}, "budget": {"max_results": 2}}
    pack = await ask(tmp_path, request, many)
    assert urls(pack) == ["https://site20.example/", "https://site7.example/"]
    assert [q.count for q in many.asked] == [21]
    assert pack["meta"]["pick_ids"] == [20, 7, 4]


async def test_picks_are_applied_before_pages_are_read(tmp_path: Path) -> None:
    fetcher = Fetcher()
    request = {"query": QUERY, "constraints": {"search_mode": "full", "pick_ids": [2, 1]}}
    pack = await ask(tmp_path, request, fetcher=fetcher)
    assert [url for url, _ in fetcher.asked] == urls(pack) == [HITS[2].url, HITS[1].url]


# The items a client saw


async def test_seed_items_are_picked_from_without_a_new_search(tmp_path: Path) -> None:
    backend, fetcher = Backend(), Fetcher()
    first = await ask(tmp_path, {"query": QUERY}, backend)
    seeds = [first["items"][2], first["items"][0], {"url": "https://own.example/", "title": None}]
    request = {"query": QUERY, "constraints": {"search_mode": "full", "seed_items": seeds, "pick_ids": [1, 0]}}
    pack = await ask(tmp_path, request, backend, fetcher=fetcher)
    assert urls(pack) == [HITS[0].url, HITS[2].url]
    assert [item["id"] for item in pack["items"]] == [first["items"][0]["id"], first["items"][2]["id"]]
    assert [item["engine"] for item in pack["items"]] == ["searxng", "searxng"]
    assert [item["score"]["rank"] for item in pack["items"]] == [2, 1]
    assert pack["meta"]["backend_used"] == "searxng"
    assert "backend=searxng" in pack["rendered_text"]
    assert pack["meta"]["timing_ms"]["search"] == 0
    assert (len(backend.asked), [url for url, _ in fetcher.asked]) == (1, [HITS[0].url, HITS[2].url])


async def test_seed_items_that_name_no_engine_are_their_own_backend(tmp_path: Path) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"seed_items": [{"url": "https://own.example/"}]}})
    assert pack["meta"]["backend_used"] == "seed_items"


async def test_an_empty_list_of_seed_items_is_a_list(tmp_path: Path) -> None:
    backend = Backend()
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"seed_items": []}}, backend)
    assert (urls(pack), backend.asked) == ([], [])


# Modes and pages


async def test_simple_mode_reads_no_page_whatever_the_budget_says(tmp_path: Path) -> None:
    fetcher = Fetcher()
    pack = await ask(tmp_path, {"query": QUERY, "budget": {"max_fetch_pages": 5}}, fetcher=fetcher)
    assert (fetcher.asked, pack["meta"]["mode_used"], pack["usage"]["fetch_pages_used"]) == ([], "simple", 0)
    assert fetches(pack) == [("skipped", None)] * 4


@pytest.mark.parametrize(("budget", "read"), [(None, 3), ({}, 3), ({"max_fetch_pages": None}, 3), ({"max_fetch_pages": 1}, 1)])
async def test_full_mode_reads_three_pages_unless_told_otherwise(tmp_path: Path, budget: Any, read: int) -> None:
    fetcher = Fetcher()
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": budget}, fetcher=fetcher)
    assert len(fetcher.asked) == pack["usage"]["fetch_pages_used"] == read
    assert fetches(pack) == [("fetched", None)] * read + [("skipped", None)] * (4 - read)


async def test_full_mode_with_a_budget_of_no_page_reads_none(tmp_path: Path) -> None:
    fetcher = Fetcher()
    request = {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": {"max_fetch_pages": 0}}
    pack = await ask(tmp_path, request, fetcher=fetcher)
    assert (fetcher.asked, pack["meta"]["mode_used"]) == ([], "full")


@pytest.mark.parametrize(
    ("reason", "status", "told"),
    [
        ("content_type", "skipped", "content_type"),
        ("too_large", "skipped", "too_large"),
        ("timeout", "failed", "timeout"),
        ("blocked", "failed", "error"),
        ("robots", "failed", "error"),
        ("error", "failed", "error"),
    ],
)
async def test_our_reasons_are_told_in_the_four_of_the_seed(tmp_path: Path, reason: Any, status: str, told: str) -> None:
    fetcher = Fetcher({HITS[0].url: FetchError("no", reason=reason)})
    request = {"query": QUERY, "constraints": {"search_mode": "full", "pick_ids": [0]}}
    pack = await ask(tmp_path, request, fetcher=fetcher)
    assert pack["items"][0]["fetch"] == {
        "status": status,
        "skip_reason": told,
        "content_type": None,
        "downloaded_bytes": 0,
        "truncated": False,
        "extracted_chars": 0,
        "message": "no",
    }


async def test_a_page_of_a_type_that_is_not_wanted_names_its_type(tmp_path: Path) -> None:
    error = FetchError("not read", reason="content_type", content_type="text/html")
    request = {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": {"max_results": 1}}
    pack = await ask(tmp_path, request, fetcher=Fetcher({HITS[0].url: error}))
    fetch = pack["items"][0]["fetch"]
    assert (fetch["status"], fetch["skip_reason"], fetch["content_type"]) == ("skipped", "content_type", "text/html")


async def test_a_private_address_among_seed_items_is_refused_by_the_guard(tmp_path: Path) -> None:
    from nexi.app import Nexi
    from tests.apis.search.support import config

    request = {"query": "x", "constraints": {"search_mode": "full", "seed_items": [{"url": "http://127.0.0.1:1/secret"}]}}
    async with Nexi(config(tmp_path, model="extractive"), backends=[Backend()]) as app:
        pack = await app.search_api().search(request)
    assert fetches(pack) == [("failed", "error")]


# Budgets


async def test_every_limit_of_a_page_reaches_the_fetcher(tmp_path: Path) -> None:
    fetcher = Fetcher()
    budget = {
        "max_fetch_pages": 1,
        "max_download_bytes_per_page": 1000,
        "max_extract_chars_per_page": 40,
        "allowed_content_types": ["text/plain", "Text/HTML; charset=utf-8"],
        "max_redirects": 2,
        "per_request_timeout_ms": {"fetch": 1500},
    }
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": budget}, fetcher=fetcher)
    limits = FetchLimits(1000, 1000, 40, 2, 1.5, ("text/plain", "text/html"))
    assert fetcher.asked == [(HITS[0].url, limits)]
    assert len(pack["items"][0]["content"]) == pack["items"][0]["fetch"]["extracted_chars"] == 40
    assert pack["items"][0]["fetch"]["truncated"] is True


async def test_limits_of_the_service_lie_over_those_of_a_request(tmp_path: Path) -> None:
    backend, fetcher = Backend(hits=[Hit(f"https://s{n}.example/") for n in range(90)]), Fetcher()
    huge = 10**30
    names = ("max_results", "max_fetch_pages", "max_download_bytes_per_page", "max_extract_chars_per_page", "max_redirects")
    budget = {**dict.fromkeys(names, huge), "max_total_time_ms": huge, "max_context_chars": huge, "max_search_retries": huge}
    request = {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": budget}
    pack = await ask(tmp_path, request, backend, fetcher=fetcher)
    assert (len(pack["items"]), len(fetcher.asked), backend.asked[0].count) == (50, 20, 50)
    assert fetcher.asked[0][1] == FetchLimits(16_000_000, 16_000_000, 300_000, 20, 8.0)


async def test_results_are_cut_to_the_wanted_number_and_tool_calls_are_echoed(tmp_path: Path) -> None:
    budget = {"max_results": 2, "max_tool_calls": 1}
    pack = await ask(tmp_path, {"query": QUERY, "budget": budget})
    assert (len(pack["items"]), pack["usage"]["results_returned"], pack["request"]["budget"]) == (2, 2, budget)


async def test_a_budget_of_no_results_gives_none(tmp_path: Path) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "budget": {"max_results": 0}})
    assert (pack["items"], pack["usage"]["results_returned"]) == ([], 0)


@pytest.mark.parametrize(("retries", "asked", "found"), [(0, 1, 0), (1, 2, 0), (2, 3, 4), (None, 2, 0)])
async def test_a_backend_is_asked_again_as_often_as_allowed(
    tmp_path: Path, retries: int | None, asked: int, found: int
) -> None:
    backend = Backend(errors=[down("searxng", retryable=True), down("searxng", retryable=True)])
    pack = await ask(tmp_path, {"query": QUERY, "budget": {"max_search_retries": retries}}, backend)
    assert (len(backend.asked), len(pack["items"])) == (asked, found)


@pytest.mark.parametrize("budget", [{"max_total_time_ms": 20}, {"per_request_timeout_ms": {"search": 20}}])
async def test_a_search_that_takes_too_long_is_an_empty_pack_that_says_so(tmp_path: Path, budget: Any) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "budget": budget}, Stuck())
    assert (pack["items"], pack["meta"]["backend_used"], pack["meta"]["fallback_used"]) == ([], "", False)
    assert [(f["provider"], f["code"]) for f in pack["meta"]["failures"]] == [("searxng", "timeout")]


@pytest.mark.parametrize(
    "budget",
    [
        {"max_total_time_ms": 300},
        {"per_request_timeout_ms": {"search": 50}},
        {"per_request_timeout_ms": {"search": 50}, "max_total_time_ms": 10_000},
    ],
)
async def test_a_backend_that_hangs_leaves_time_for_the_next(tmp_path: Path, budget: Any) -> None:
    stuck, other = Stuck(), Backend("other")
    pack = await ask(tmp_path, {"query": QUERY, "budget": budget}, stuck, other)
    assert (len(pack["items"]), pack["meta"]["backend_used"], pack["meta"]["fallback_used"]) == (len(HITS), "other", True)
    assert [(f["provider"], f["code"]) for f in pack["meta"]["failures"]] == [("searxng", "timeout")]


@pytest.mark.parametrize("budget", [{"max_total_time_ms": 500}, {"per_request_timeout_ms": {"fetch": 500}}])
async def test_a_page_that_takes_too_long_costs_only_itself(tmp_path: Path, budget: Any) -> None:
    fetcher = Fetcher({**PAGES, HITS[1].url: None})
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": budget}, fetcher=fetcher)
    assert fetches(pack)[:3] == [("fetched", None), ("failed", "timeout"), ("fetched", None)]


@pytest.mark.parametrize("room", [0, 10, 150, 300, 301, 500, 1000])
async def test_the_rendered_text_keeps_to_its_budget(tmp_path: Path, room: int) -> None:
    request = {"query": QUERY, "constraints": {"search_mode": "full"}, "budget": {"max_context_chars": room}}
    pack = await ask(tmp_path, request)
    assert len(pack["rendered_text"]) == pack["usage"]["context_chars"] <= room
    assert len(pack["items"]) == 4


# Backends


async def test_the_first_backend_of_the_chain_answers(tmp_path: Path) -> None:
    first, second = Backend("searxng"), Backend("duckduckgo")
    pack = await ask(tmp_path, {"query": QUERY}, first, second)
    assert (pack["meta"]["backend_used"], pack["meta"]["fallback_used"], second.asked) == ("searxng", False, [])
    assert [item["engine"] for item in pack["items"]] == ["searxng"] * 4
    assert {item["score"]["method"] for item in pack["items"]} == {"searxng_snippet"}


async def test_a_backend_that_is_asked_for_comes_first(tmp_path: Path) -> None:
    first, second = Backend("searxng"), Backend("duckduckgo")
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"backend": " DuckDuckGo "}}, first, second)
    assert (pack["meta"]["backend_used"], pack["meta"]["fallback_used"], first.asked) == ("duckduckgo", False, [])


async def test_another_backend_stands_in_and_is_reported(tmp_path: Path) -> None:
    first, second = Backend("searxng", errors=[down("searxng")]), Backend("duckduckgo")
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"backend": "searxng"}}, first, second)
    assert (pack["meta"]["backend_used"], pack["meta"]["fallback_used"]) == ("duckduckgo", True)
    assert pack["meta"]["failures"] == [
        {"provider": "searxng", "code": "unreachable", "message": "searxng is down", "fix": "start searxng"}
    ]


@pytest.mark.parametrize("wanted", ["searxng", "altavista", "ripgrep"])
async def test_a_backend_that_is_not_there_is_stood_in_for_and_named(tmp_path: Path, wanted: str) -> None:
    pack = await ask(tmp_path, {"query": QUERY, "constraints": {"backend": wanted}}, Backend("wikipedia"))
    assert (pack["meta"]["backend_used"], pack["meta"]["fallback_used"]) == ("wikipedia", True)
    assert pack["meta"]["failures"] == [
        {
            "provider": wanted,
            "code": "not_set_up",
            "message": "this server has no such backend",
            "fix": "ask for wikipedia, or for none",
        }
    ]


async def test_backends_that_all_fail_give_an_empty_pack_with_every_reason(tmp_path: Path) -> None:
    backends = [Backend(name, errors=[down(name)]) for name in ("searxng", "duckduckgo")]
    pack = await ask(tmp_path, {"query": QUERY}, *backends)
    assert (pack["items"], pack["meta"]["backend_used"]) == ([], "")
    assert [f["provider"] for f in pack["meta"]["failures"]] == ["searxng", "duckduckgo"]


async def test_one_file_may_name_the_backends_and_forbid_a_fallback(tmp_path: Path) -> None:
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "searcher.yaml").write_text("service: {backends: [duckduckgo, searxng], fallback: false}\n")
    first, second = Backend("searxng"), Backend("duckduckgo", errors=[down("duckduckgo")])
    pack = await ask(tmp_path, {"query": QUERY}, first, second)
    assert (pack["items"], pack["meta"]["backend_used"], first.asked) == ([], "", [])
    assert [f["provider"] for f in pack["meta"]["failures"]] == ["duckduckgo"]


# Items


async def test_an_id_is_the_hash_of_the_normal_form(tmp_path: Path) -> None:
    hits = [Hit("https://A.example:443/x?utm_source=n#part"), Hit("https://a.example/y")]
    pack = await ask(tmp_path, {"query": "x"}, Backend(hits=hits))
    assert [item["id"] for item in pack["items"]] == [page_id("https://a.example/x"), page_id("https://a.example/y")]
    assert all(item["id"].startswith("web:sha256:") for item in pack["items"])


async def test_relevance_is_what_a_result_holds_of_the_query(tmp_path: Path) -> None:
    hits = [
        Hit("https://a.example/", "bm25 ranking algorithm"),
        Hit("https://b.example/", "a ranking"),
        Hit("https://c.example/", "shoes"),
    ]
    pack = await ask(tmp_path, {"query": QUERY}, Backend(hits=hits))
    scores = [item["score"]["relevance"] for item in pack["items"]]
    assert scores == sorted(scores, reverse=True)
    assert (scores[0], scores[2]) == (1.0, 0.0)


async def test_times_are_of_the_clock_in_utc(tmp_path: Path) -> None:
    clock = FakeClock()
    pack = await ask(tmp_path, {"query": QUERY}, clock=clock)
    assert {pack["created_utc"], *(item["retrieved_utc"] for item in pack["items"])} == {"2026-01-02T03:04:05Z"}
    assert pack["meta"]["timing_ms"] == {"search": 0, "fetch": 0, "total": 0}


async def test_the_same_request_gives_the_same_pack(tmp_path: Path) -> None:
    request = {"query": QUERY, "constraints": {"search_mode": "full"}}
    assert await ask(tmp_path, request) == await ask(tmp_path, request)


async def test_a_narrower_query_of_another_contract_is_asked_as_it_is(tmp_path: Path) -> None:
    from nexi.apis.search.schema import SearchRequest

    backend = Backend()
    async with nexi(tmp_path, backend) as app:
        await app.search_api().run(SearchRequest("x"), Query("x", sites=("docs.example",), time_range="w"))
    assert backend.asked == [Query("x", 10, ("docs.example",), (), "w")]
