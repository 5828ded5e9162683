"""The one caller of search backends: chain, rest, pacing, filters, and the names of what failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from nexi.app import QuietEmit
from nexi.errors import BackendError
from nexi.events import Fact, SearchDelayed, SearchFinished
from nexi.net.suspensions import FileBreaker
from nexi.ports import SearchBackend
from nexi.searcher import MAX_PARALLEL_QUERIES, BackendConcurrency, Searcher, SearchPatience, _is_wanted_site
from nexi.testing import FakeClock
from nexi.types import Failure, Hit, Query, SearchOutcome

HIT = Hit("https://a.example/1", "T", "S", "", "one")
LIMITED = BackendError("too often", code="rate_limit", cause="HTTP 429", fix="wait")
BROKEN = BackendError("it is broken", code="server_error", cause="HTTP 500", fix="try again later")


class Scripted:
    """A backend that gives what it is told, in order, the last one for ever."""

    def __init__(self, name: str, *answers: Sequence[Hit] | BackendError) -> None:
        self.name = name
        self.answers = list(answers)
        self.asked = 0

    async def search(self, query: Query) -> list[Hit]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BackendError):
            raise answer
        return list(answer)


class Rig:
    def __init__(self, home: Path, *backends: SearchBackend) -> None:
        self.clock = FakeClock()
        self.breaker = FileBreaker(home / "backends.json", clock=self.clock)
        self.searcher = Searcher(lambda: backends, emit=QuietEmit(), clock=self.clock, breaker=self.breaker)

    async def search(self, query: Query | None = None) -> SearchOutcome:
        return await self.searcher.search(query or Query("q"))


def codes(outcome: SearchOutcome) -> list[tuple[str, str]]:
    return [(f.provider, f.code) for f in outcome.failures]


# rest


async def test_a_limited_backend_rests_and_the_next_one_is_asked(tmp_path: Path) -> None:
    one, two = Scripted("one", LIMITED, [HIT]), Scripted("two", [HIT])
    rig = Rig(tmp_path, one, two)
    assert codes(await rig.search()) == [("one", "rate_limit")]
    rig.clock.advance(3)
    outcome = await rig.search()
    assert outcome.backend == "two"
    assert outcome.failures == (
        Failure(
            "one",
            "suspended",
            "it is not asked for 7 s more, because of rate_limit: too often: HTTP 429",
            "wait; `nexi doctor` retries it now and lifts the suspension if it answers",
        ),
    )
    assert one.asked == 1
    rig.clock.advance(7)
    assert ((await rig.search()).backend, one.asked) == ("one", 2)
    assert codes(await rig.search()) == []


async def test_the_only_backend_is_asked_although_it_refused_us_and_an_answer_ends_the_suspension(tmp_path: Path) -> None:
    one = Scripted("one", LIMITED, LIMITED, [HIT])
    rig = Rig(tmp_path, one)
    await rig.search()
    rig.clock.advance(4)
    outcome = await rig.search()
    assert outcome.failures == (Failure("one", "rate_limit", "too often: HTTP 429", "wait"),)
    assert ((await rig.search()).hits, one.asked, rig.breaker.suspended_backends()) == ((HIT,), 3, {})


async def test_a_backend_that_refused_us_is_left_alone_while_another_answers_without_hits(tmp_path: Path) -> None:
    one, two = Scripted("one", LIMITED), Scripted("two", [])
    rig = Rig(tmp_path, one, two)
    await rig.search()
    assert (codes(await rig.search()), one.asked) == ([("one", "suspended"), ("two", "empty")], 1)


async def test_a_backend_that_only_broke_is_asked_again_when_nobody_else_answers(tmp_path: Path) -> None:
    one = Scripted("one", BROKEN, [HIT])
    rig = Rig(tmp_path, one)
    assert codes(await rig.search()) == [("one", "server_error")]
    outcome = await rig.search()
    assert (outcome.hits, outcome.failures) == ((HIT,), ())


async def test_a_broken_backend_is_passed_over_while_another_answers(tmp_path: Path) -> None:
    one, two = Scripted("one", BROKEN), Scripted("two", [HIT])
    rig = Rig(tmp_path, one, two)
    await rig.search()
    assert codes(await rig.search()) == [("one", "suspended")]
    assert one.asked == 1
    rig.clock.advance(5)
    assert codes(await rig.search()) == [("one", "server_error")]


async def test_a_bad_query_and_an_empty_answer_suspend_nobody(tmp_path: Path) -> None:
    one = Scripted("one", BackendError("no", code="bad_query", cause="400", fix="change it"), [], [HIT])
    rig = Rig(tmp_path, one)
    assert codes(await rig.search()) == [("one", "bad_query")]
    assert codes(await rig.search()) == [("one", "empty")]
    assert (await rig.search()).hits == (HIT,)


# pacing


class Slow:
    def __init__(self, name: str = "slow", interval_s: float = 0.0) -> None:
        self.name = name
        self.interval_s = interval_s
        self.now = self.most = 0
        self.gate = asyncio.Event()

    async def search(self, query: Query) -> list[Hit]:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.gate.wait()
        self.now -= 1
        return [HIT]


async def test_at_most_five_queries_are_at_one_backend_at_once_over_all_searchers() -> None:
    slow, clock = Slow(), FakeClock()
    lanes = BackendConcurrency(clock)
    searchers = [Searcher(lambda: [slow], emit=QuietEmit(), clock=clock, concurrency=lanes) for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(s.search(Query(f"q{n}"))) for n, s in enumerate(searchers * 4)]
        for _ in range(20):
            await asyncio.sleep(0)
        waiting = slow.now
        slow.gate.set()
    assert (waiting, slow.most, len(tasks)) == (MAX_PARALLEL_QUERIES, MAX_PARALLEL_QUERIES, 12)
    assert all(task.result().hits for task in tasks)


async def test_a_backend_that_wants_pauses_gets_them() -> None:
    slow, clock = Slow(interval_s=3.0), FakeClock()
    slow.gate.set()
    searcher = Searcher(lambda: [slow], emit=QuietEmit(), clock=clock)
    for n in range(3):
        await searcher.search(Query(f"q{n}"))
    assert clock.slept == [3.0, 3.0]


# filters


@pytest.mark.parametrize(
    ("url", "query", "kept"),
    [
        ("https://docs.python.org/3/", Query("q", sites=("python.org",)), True),
        ("https://docs.python.org/3/", Query("q", sites=("www.python.org", "x.org")), True),
        ("https://notpython.org/", Query("q", sites=("python.org",)), False),
        ("https://a.gov/x", Query("q", sites=(".gov",)), True),
        ("https://github.com/a/b", Query("q", sites=("github.com/a",)), True),
        ("https://github.com/c/b", Query("q", sites=("https://github.com/a/",)), False),
        ("https://x.com/1", Query("q", excluded_sites=("x.com",)), False),
        ("https://y.com/1", Query("q", excluded_sites=("x.com",)), True),
        ("https://y.com/1", Query("q", sites=("",)), False),
    ],
)
def test_a_hit_is_held_to_the_sites_of_its_query(url: str, query: Query, kept: bool) -> None:
    assert _is_wanted_site(url, query) is kept


async def test_hits_of_other_sites_are_dropped_and_the_next_backend_is_asked(tmp_path: Path) -> None:
    other = Hit("https://b.example/", "T", "S", "", "two")
    outcome = await Rig(tmp_path, Scripted("one", [HIT]), Scripted("two", [other])).search(Query("q", sites=("b.example",)))
    assert (outcome.hits, codes(outcome)) == ((other,), [("one", "empty")])
    assert outcome.failures[0].message == "its results are all of other sites"


async def test_a_filter_that_the_answering_backend_does_not_know_is_named(tmp_path: Path) -> None:
    one = Scripted("one", [HIT])
    one.filters = frozenset({"language"})  # type: ignore[attr-defined]
    outcome = await Rig(tmp_path, one).search(Query("q", time_range="w", language="de"))
    assert outcome.hits == (HIT,)
    assert [(f.code, f.message) for f in outcome.failures] == [
        ("filter_ignored", "it has no time filter, so its results are of any time")
    ]


# local hits


async def test_file_addresses_come_only_from_a_backend_that_is_local(tmp_path: Path) -> None:
    mine = Hit("file:///src/main.py#L3", "src/main.py", "3: x", "", "one")
    local, web = Scripted("one", [mine]), Scripted("one", [mine])
    local.local = True  # type: ignore[attr-defined]
    assert (await Rig(tmp_path, local).search()).hits == (mine,)
    assert (await Rig(tmp_path, web).search()).hits == ()


# focus


class Focused(Scripted):
    """A backend that remembers how it was asked."""

    filters = frozenset({"focus"})

    def __init__(self, name: str, *answers: Sequence[Hit] | BackendError) -> None:
        super().__init__(name, *answers)
        self.queries: list[Query] = []

    async def search(self, query: Query) -> list[Hit]:
        self.queries.append(query)
        return await super().search(query)


class Plain(Focused):
    filters = frozenset()


async def test_a_backend_that_knows_kinds_is_told_the_focus_and_another_the_sites(tmp_path: Path) -> None:
    knows, plain = Focused("knows", []), Plain("plain", [Hit("https://arxiv.org/abs/1", "Paper")])
    outcome = await Rig(tmp_path, knows, plain).search(Query("heat", focus="papers"))
    assert knows.queries == [Query("heat", focus="papers")]
    assert (plain.queries[0].text, plain.queries[0].focus, "arxiv.org" in plain.queries[0].sites) == ("heat", "", True)
    assert (outcome.query, [hit.url for hit in outcome.hits]) == ("heat", ["https://arxiv.org/abs/1"])


async def test_sites_that_were_asked_for_are_not_widened_by_a_focus_and_docs_are_asked_for_by_their_word(
    tmp_path: Path,
) -> None:
    plain = Plain("plain", [HIT])
    await Rig(tmp_path, plain).search(Query("heat", sites=("a.example",), focus="code"))
    await Rig(tmp_path, plain).search(Query("heat", focus="docs"))
    assert plain.queries == [Query("heat", sites=("a.example",)), Query("heat documentation")]


async def test_a_focus_under_which_nothing_is_found_is_dropped_aloud(tmp_path: Path) -> None:
    plain = Plain("plain", [], [HIT])
    outcome = await Rig(tmp_path, plain).search(Query("heat", focus="discussions"))
    assert plain.queries[1] == Query("heat")
    assert (outcome.hits, codes(outcome)) == ((HIT,), [("search", "focus_dropped")])


async def test_a_backend_that_is_broken_is_not_asked_twice_for_a_focus(tmp_path: Path) -> None:
    plain = Plain("plain", BROKEN)
    await Rig(tmp_path, plain).search(Query("heat", focus="discussions"))
    assert len(plain.queries) == 1


# waits


def asks_to_wait(seconds: float) -> BackendError:
    return BackendError("too often", code="rate_limit", cause="HTTP 429", fix="wait", retryable=True, retry_after=seconds)


@pytest.mark.parametrize(
    ("wish", "others", "left", "slept"),
    [
        (0.3, 0, None, [0.3]),
        (29.0, 0, None, [29.0]),
        (31.0, 0, None, []),
        (5.0, 1, None, [5.0]),
        (6.0, 1, None, []),
        (2.0, 0, 3.0, [2.0]),
        (4.0, 0, 3.0, []),
    ],
)
async def test_a_backend_that_asks_for_patience_is_waited_for_if_there_is_time_and_nobody_else(
    wish: float, others: int, left: float | None, slept: list[float], tmp_path: Path
) -> None:
    one = Scripted("one", asks_to_wait(wish), [HIT])
    rig = Rig(tmp_path, one, *(Scripted(f"other {n}", [HIT]) for n in range(others)))
    deadline = None if left is None else rig.clock.monotonic() + left
    outcome = await rig.searcher.search(Query("q"), deadline=deadline)
    assert rig.clock.slept == slept
    assert (outcome.backend == "one") == bool(slept)


async def test_a_wait_is_told_before_it_begins() -> None:
    told: list[tuple[Fact, list[float]]] = []
    clock = FakeClock()

    class Told(QuietEmit):
        async def __call__(self, fact: Fact) -> None:
            told.append((fact, list(clock.slept)))

    backend = Scripted("one", asks_to_wait(2.0), [HIT])
    await Searcher(lambda: (backend,), emit=Told(), clock=clock).search(Query("q"))
    assert told == [
        (SearchDelayed("q", "one", "rate_limit", 2.0), []),
        (SearchFinished("q", "one", (HIT,), (), 2.0), [2.0]),
    ]


class RecordingBreaker:
    """Admits every backend and records the failures it is told."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, str]] = []

    async def admit(self, backend: str) -> None:
        return None

    async def record_success(self, backend: str) -> None:
        return None

    async def record_failure(self, backend: str, error: BackendError) -> None:
        self.failed.append((backend, error.code))


class HangingBackend:
    name = "hanging"

    async def search(self, query: Query) -> list[Hit]:
        await asyncio.Event().wait()
        return []


@pytest.mark.parametrize(("fair_share_s", "suspended"), [(0.001, [("hanging", "timeout")]), (5.0, [])])
async def test_a_late_backend_is_suspended_only_if_it_had_a_fair_share_of_the_time(
    fair_share_s: float, suspended: list[tuple[str, str]]
) -> None:
    breaker = RecordingBreaker()
    searcher = Searcher(
        lambda: [HangingBackend()],
        emit=QuietEmit(),
        clock=FakeClock(),
        breaker=breaker,
        patience=SearchPatience(0.01, 0.01, fair_share_s),
    )
    outcome = await searcher.search(Query("q"))
    assert [(f.provider, f.code) for f in outcome.failures] == [("hanging", "timeout")]
    assert breaker.failed == suspended


def test_each_backend_has_an_equal_share_of_the_time_that_is_left() -> None:
    patience = SearchPatience(8.0, 12.0)
    assert [patience.share_s(elapsed, left) for elapsed, left in [(0.0, 1), (0.0, 2), (6.0, 1), (0.0, 4), (13.0, 1)]] == [
        8.0,
        6.0,
        6.0,
        3.0,
        0.0,
    ]
