"""What a researcher may do in each phase, and what it is told when that is used up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nexi.budget import Budget, Meter
from nexi.events import Delta, Fact, SourceNumbered, ToolFinished
from nexi.llm.extractive.model import Extractive
from nexi.reader import Reader
from nexi.research.researcher import MAX_CONTEXT_SHARE, ContextUsage, PhaseUsage, ResearchToolbox, build_specs
from nexi.runs.directory import MemoryPages
from nexi.runs.recording import AgentReplay
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.testing import FakeClock, FakeWeb
from nexi.tools.specs import EXTRA_SPECS
from nexi.types import FetchLimits, Hit, Query, ToolCall, ToolResult
from nexi.urls import hit_key
from tests.research.world import MARS, MOON, PAGES, SUN, TIDE

MORE = {f"https://page.example/{n}": f"# Page {n}\n\nThe Moon is page {n}." for n in range(1, 9)}


class Told:
    """An emit that keeps what it was told."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    async def __call__(self, fact: Fact) -> None:
        self.facts.append(fact)

    def delta(self, delta: Delta) -> None:
        return None


class Bench:
    """A researcher's tools over a web in memory."""

    def __init__(self, pages: dict[str, str], *, used: Callable[[], int] = lambda: 0, window: int = 100_000) -> None:
        self.web, self.told = FakeWeb({**PAGES, **pages}), Told()
        self.pool: dict[str, str] = {}
        self.phases = PhaseUsage()
        self._used, self._window = used, window
        self._calls = 0

    async def run(
        self, *calls: tuple[str, dict[str, Any]], others: Sequence[str] = (), me: str = "1.1", **more: Any
    ) -> list[ToolResult]:
        clock = FakeClock()
        session = Session()
        session.allow_urls([*self.web.pages])
        searchers = {name: Searcher(lambda: (self.web,), emit=self.told, clock=clock) for name in others}
        async with asyncio.TaskGroup() as tasks:
            reader = Reader(
                lambda: (self.web,),
                limits=FetchLimits(),
                session=session,
                meter=Meter(Budget(), started=0.0),
                store=MemoryPages(),
                emit=self.told,
                clock=clock,
                tasks=tasks,
            )
            box = ResearchToolbox(
                session=session,
                searcher=Searcher(lambda: (self.web,), emit=self.told, clock=clock),
                reader=reader,
                extractor=Extractive(),
                emit=self.told,
                clock=clock,
                question="How far is the Moon?",
                free_bytes=lambda: 60_000,
                specs=build_specs(
                    [EXTRA_SPECS[name] for name in searchers if name in EXTRA_SPECS], has_local="local_search" in searchers
                ),
                researcher=me,
                phases=self.phases,
                pool=self.pool,
                extra_searchers=searchers,
                context=ContextUsage(self._used, self._window),
                replay=AgentReplay(),
                **more,
            )
            results = []
            for name, arguments in calls:
                self._calls += 1
                results.append(await box.run(ToolCall(f"c{self._calls}", name, json.dumps(arguments))))
            reader.cancel()
        return results


def search(*queries: str) -> tuple[str, dict[str, Any]]:
    return "search", {"queries": list(queries or ("Moon",))}


def scrape(*urls: str) -> tuple[str, dict[str, Any]]:
    return "scrape", {"urls": list(urls)}


def form(result: ToolResult) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(result.text)
    return loaded


def read_in(result: ToolResult) -> list[str]:
    return [page["url"] for page in form(result)["pages"]]


async def test_four_gathering_calls_are_shared_by_all_tools_that_gather() -> None:
    bench = Bench({})
    asked = {"query": "Moon"}
    tools = ("stackexchange", "grep", "security_search")
    results = await bench.run(search("Moon", "tides"), *((name, asked) for name in tools), search(), others=tools)
    assert [form(r).get("note", "") for r in results[:4]] == [
        "3 gathering calls are left.",
        "2 gathering calls are left.",
        "1 gathering call is left.",
        "That was the last gathering call: scrape what matters now.",
    ]
    assert [form(r) for r in results[4:]] == [
        {"error": "all 4 gathering calls are used; read pages with scrape, or write the report"}
    ]
    assert bench.web.queries == ["Moon", "tides", "Moon", "Moon", "Moon"]


class SitesAsked(FakeWeb):
    """Records the sites of each query."""

    sites: list[tuple[str, ...]]

    async def search(self, query: Query) -> list[Hit]:
        self.sites = [*getattr(self, "sites", []), query.sites]
        return await super().search(query)


@pytest.mark.parametrize(
    ("site", "host"),
    [
        ("superuser", "superuser.com"),
        ("unix", "unix.stackexchange.com"),
        ("mathoverflow", "mathoverflow.net"),
        ("www.AskUbuntu.com", "askubuntu.com"),
    ],
)
async def test_a_site_of_the_stack_exchange_network_can_be_named(site: str, host: str) -> None:
    bench = Bench({})
    web = bench.web = SitesAsked({})
    calls = ("stackexchange", {"query": "Moon", "site": site}), ("stackexchange", {"query": "Moon"})
    await bench.run(*calls, others=("stackexchange",))
    assert web.sites == [(host,), ()]


async def test_only_tools_that_can_be_used_are_offered() -> None:
    assert [s.name for s in build_specs(())] == ["search", "scrape", "final_answer"]
    assert [s.name for s in build_specs([EXTRA_SPECS["grep"]], has_local=True)] == [
        "search",
        "grep",
        "local_search",
        "scrape",
        "final_answer",
    ]
    (result,) = await Bench({}).run(("grep", {"query": "x"}))
    assert form(result) == {"error": "there is no tool called 'grep'; the tools are search, scrape, final_answer"}


async def test_the_handshake_fetches_nothing_and_names_who_has_read_what() -> None:
    bench = Bench({})
    bench.pool[hit_key(MOON)] = "1.2"
    (result,) = await bench.run(scrape(MOON, TIDE))
    assert form(result) == {
        "already_read_by_others": [{"url": MOON, "researcher": "1.2"}],
        "pages_that_fit": 8,
        "note": "Nothing was fetched yet. Call scrape again with at most 3 URLs, best those that no other researcher has read.",
    }
    assert bench.web.fetched == []


async def test_batches_take_three_two_and_three_pages_and_then_there_are_no_more() -> None:
    urls = list(MORE)
    bench = Bench(MORE)
    results = await bench.run(scrape(*urls), scrape(*urls), scrape(*urls[3:]), scrape(*urls[5:]), scrape(*urls))
    assert [read_in(r) for r in results[1:4]] == [urls[:3], urls[3:5], urls[5:]]
    assert form(results[1])["not_read_in_this_batch"] == urls[3:]
    assert "not_read_in_this_batch" not in form(results[3])
    assert [form(r)["note"] for r in results[1:4]] == [
        "2 batches are left; the next takes at most 2 URLs.",
        "1 batch is left; the next takes at most 3 URLs.",
        "That was the last batch: write the report with final_answer now.",
    ]
    assert form(results[4]) == {"error": "all scraping batches are used; write the report with final_answer"}


async def test_pages_are_numbered_and_the_pool_knows_who_read_them() -> None:
    bench = Bench({})
    results = await bench.run(scrape(MOON), scrape(MOON, TIDE), me="1.3")
    assert [page["content"].splitlines()[0] for page in form(results[1])["pages"]] == [f"[1] {MOON}", f"[2] {TIDE}"]
    assert bench.pool == {hit_key(MOON): "1.3", hit_key(TIDE): "1.3"}
    assert [f.source.url for f in bench.told.facts if isinstance(f, SourceNumbered)] == [MOON, TIDE]


async def test_a_page_that_cannot_be_read_uses_a_place_of_its_batch_and_says_why() -> None:
    gone = "https://gone.example/"
    bench = Bench({})
    del bench.web.pages[MARS]
    results = await bench.run(scrape(MARS), scrape(MARS, gone, SUN))
    pages = form(results[1])["pages"]
    assert [("error" in page, page["url"]) for page in pages] == [(True, MARS), (True, gone), (False, SUN)]
    assert "came from no search result" in pages[1]["error"]


async def test_the_same_list_again_is_the_next_batch_and_what_was_read_is_left_out() -> None:
    urls = list(MORE)
    bench = Bench(MORE)
    results = await bench.run(*[scrape(*urls)] * 4)
    assert [read_in(r) for r in results[1:]] == [urls[:3], urls[3:5], urls[5:]]
    assert [form(r).get("not_read_in_this_batch", []) for r in results[1:]] == [urls[3:], urls[5:], []]
    assert sorted(bench.web.fetched) == urls


async def test_a_page_that_failed_is_read_again_after_those_that_were_not_tried() -> None:
    bench = Bench(MORE)
    gone = "https://gone.example/"
    first, second = list(MORE)[:2]
    results = await bench.run(scrape(gone), scrape(gone, first), scrape(gone, first, second))
    assert read_in(results[2]) == [second, gone]


async def test_a_list_of_pages_already_read_costs_no_batch() -> None:
    bench = Bench({})
    results = await bench.run(scrape(MOON), scrape(MOON), scrape(MOON))
    assert form(results[2]) == {
        "error": "you have read all of these pages, and their text is above; name others or write the report"
    }
    assert bench.phases.batches == 1


async def test_a_full_context_skips_every_batch_but_the_first_which_reads_one_page() -> None:
    bench = Bench({}, used=lambda: 5_600, window=10_000)
    results = await bench.run(scrape(MOON, TIDE), scrape(MOON, TIDE), scrape(MOON, TIDE))
    assert (form(results[0])["pages_that_fit"], read_in(results[1])) == (1, [MOON])
    assert form(results[2]) == {"error": "skipped: the context is 56% full and pages are read up to 55%; write the report"}
    assert (bench.web.fetched, bench.phases.batches) == ([MOON], 1)


@pytest.mark.parametrize(("used", "read"), [(0, 3), (4_500, 2), (4_999, 1), (5_001, 1)])
async def test_before_anything_is_read_a_page_is_projected_at_a_twentieth_of_the_window(used: int, read: int) -> None:
    bench = Bench(MORE, used=lambda: used, window=10_000)
    results = await bench.run(scrape(*MORE), scrape(*MORE))
    assert len(form(results[1])["pages"]) == read


@pytest.mark.parametrize(("window", "hits", "longest"), [(100_000, 12, 3_000), (8_000, 12, 80), (2_000, 5, 80)])
async def test_search_results_are_trimmed_to_their_share_of_the_window(window: int, hits: int, longest: int) -> None:
    long = {f"https://page.example/{n}": f"# Page {n}\n\n{'Moon ' * 600}" for n in range(12)}
    bench = Bench(long, window=window)

    async def many(query: Query) -> list[Hit]:
        return [Hit(url, f"Page {n}", "Moon " * 600) for n, url in enumerate(long)]

    bench.web.search = many  # type: ignore[method-assign]
    results = await bench.run(*[search("Moon")] * 4)
    free = int(window * MAX_CONTEXT_SHARE) - int(window * 0.2)
    assert sum(len(r.text.encode()) for r in results) < max(free * 3, 4 * 900) + 4 * 100
    listed = form(results[0])["searches"][0]["results"]
    assert (len(listed), max(len(hit["description"]) for hit in listed) <= longest + 1) == (hits, True)


async def test_after_that_the_projection_is_what_pages_took_so_far() -> None:
    long = {f"https://long.example/{n}": "The Moon. " * 290 for n in range(3)}
    used = {"tokens": 0}
    bench = Bench({**long, **MORE}, used=lambda: used["tokens"], window=100_000)
    first = await bench.run(scrape(*long), scrape(*long))
    assert len(read_in(first[1])) == 3
    room = 100_000 * MAX_CONTEXT_SHARE
    used["tokens"] = int(room - 1.5 * sum(bench.phases.read_bytes) / 9)  # one and a half pages
    second = await bench.run(scrape(*MORE))
    assert len(read_in(second[0])) == 1


async def test_the_tools_of_an_ordinary_search_are_understood_and_need_no_handshake() -> None:
    bench = Bench({})
    results = await bench.run(("web_search", {"queries": ["Moon"]}), ("web_get", {"urls": [MOON]}))
    assert [r.ok for r in results] == [True, True]
    finished = [f.name for f in bench.told.facts if isinstance(f, ToolFinished)]
    assert (finished, bench.phases.gathered, bench.phases.batches) == (["search", "scrape"], 1, 1)


async def test_of_a_long_page_the_passages_that_matter_are_given_word_for_word() -> None:
    url = "https://long.example/"
    text = "\n\n".join(["Bees make honey."] * 2000 + ["The Moon is 384,400 km away."] + ["Wasps do not."] * 2000)
    bench = Bench({url: text})
    results = await bench.run(scrape(url), scrape(url))
    content = form(results[1])["pages"][0]["content"]
    assert "The Moon is 384,400 km away." in content
    assert len(content) < len(text) / 3


async def test_a_model_is_given_passages_of_a_long_page_with_what_stands_around_them() -> None:
    url = "https://long.example/"
    bees = "\n\n".join(["Bees make honey."] * 2000)
    option = "## Distances\n\n--moon\n\nThe distance of the Moon. Default is 384,400."
    results = await Bench({url: f"{bees}\n\n{option}\n\n{bees}"}).run(scrape(url), scrape(url), reads_passages=True)
    content = form(results[1])["pages"][0]["content"]
    assert option in content
    assert len(content) < 12_000


@pytest.mark.parametrize("arguments", [{}, {"urls": []}, {"urls": [""]}, {"urls": 7}, {"urls": [MOON] * 9}])
async def test_bad_arguments_are_explained_and_cost_nothing(arguments: dict[str, Any]) -> None:
    bench = Bench({})
    (result,) = await bench.run(("scrape", arguments))
    assert (result.ok, "error" in form(result), bench.phases.handshake_done) == (False, True, False)


async def test_a_search_that_finds_nothing_counts_and_says_who_failed() -> None:
    bench = Bench({})

    async def nothing(query: Query) -> list[Hit]:
        return []

    bench.web.search = nothing  # type: ignore[method-assign]
    (result,) = await bench.run(search("xyzzy"))
    assert (result.ok, form(result)["note"]) == (False, "3 gathering calls are left.")
