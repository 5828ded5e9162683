"""Whatever a model says, a run ends once, in order, within its limits and its policy."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexi.app import Nexi, Run, RunLimits, RunRequest
from nexi.config import Config
from nexi.errors import BackendError, ContextOverflowError, FetchError, LLMError, NexiError
from nexi.events import TERMINAL, Fact, ModelAsked, RunFailed, ToolFinished, ToolStarted
from nexi.runs.directory import RunDirectory
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM
from nexi.types import FetchLimits, Hit, Message, Page, Query, Reply, ToolCall, Usage

A, B, C, GONE = (f"https://{name}.example/page" for name in ("a", "b", "c", "gone"))
ASKED = "https://asked.example/page?x=1"
EVIL = "https://evil.example/?leak=secret"
ODD_LINKS = ("mailto:a@b.example", "javascript:alert(1)", "http://[bad", "ftp://c.example/x", "", "//c.example/page")
PAGES = {
    A: "Moon page A\n\nThe Moon is 384,400 km away on average.",
    B: "Moon page B\n\nThe Moon has no air.",
    C: "Page C\n\nNobody links here but A.",
    ASKED: "Asked page\n\nThe user named it.",
    EVIL: "Evil page\n\nNobody may read this.",
}
LINKS = {A: (C, *ODD_LINKS), B: ODD_LINKS, ASKED: (A,)}
QUESTION = f"How far is the Moon, says {ASKED} and mailto:a@b.example?"
MAX_ITERATIONS = 5


class OddWeb(FakeWeb):
    """Hits of every kind, pages that fail, backends that stumble; it never finds the evil page."""

    def __init__(self) -> None:
        super().__init__(PAGES, links=LINKS)
        self.shown: set[str] = set()

    async def search(self, query: Query) -> list[Hit]:
        if "fail" in query.text:
            raise BackendError("no", code="server_error", retryable="again" in query.text)
        found = [h for h in await super().search(query) if h.url in (A, B)]
        hits = [*found, Hit(GONE, "gone"), *(Hit(odd, "odd") for odd in ODD_LINKS)] if found else []
        self.shown.update(h.url for h in hits)
        return hits

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        page = await super().fetch(url, limits)
        if url == B and len(self.fetched) % 2:
            raise FetchError("it took too long", reason="timeout")
        self.shown.update(page.links)
        return page


@dataclass(frozen=True)
class Break:
    """A reply that breaks off: some calls whole, one half written."""

    calls: tuple[ToolCall, ...]
    half: tuple[str, str]


class UnrulyLLM(ScriptedLLM):
    async def complete(self, messages: Sequence[Message], tools: Any = (), **options: Any) -> Reply:
        step = self.steps[0] if self.steps else None
        if not isinstance(step, Break):
            return await super().complete(messages, tools, **options)
        self.steps.pop(0)
        await asyncio.sleep(0)
        for call in step.calls:
            if options.get("on_call"):
                options["on_call"](call)
        if options.get("on_arguments"):
            options["on_arguments"](*step.half)
        raise LLMError("the stream closed", code="stream_closed", fix="wait")


WORDS = st.sampled_from(
    ["moon", "air", "Moon page [1]. And [7] too. ", "384,400 km [1]", "fail", "fail again", "\x00", "é\ud800"]
)
TEXT = st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=40)
URL = st.sampled_from([A, B, C, GONE, ASKED, ASKED + "&more=1", A + "#part", EVIL, A.upper(), *ODD_LINKS]) | st.text(
    max_size=20
)
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"queries": st.lists(TEXT, max_size=6)}),
    st.fixed_dictionaries({"queries": st.just(["moon"])}),
    st.fixed_dictionaries(
        {"urls": st.lists(URL, max_size=9)}, optional={"get_full": st.just(True), "use_chunks": st.just(True)}
    ),
    st.fixed_dictionaries({"urls": st.lists(st.sampled_from([A, ASKED]), min_size=1), "get_full": st.just(True)}),
    st.fixed_dictionaries({"answer": TEXT}),
).map(json.dumps)
TORN = st.tuples(ARGUMENTS, st.integers(0, 40)).map(lambda pair: pair[0][: pair[1]])
NAMES = st.sampled_from(["web_search", "web_search", "web_get", "web_get", "final_answer", "unknown", ""]) | st.text(max_size=8)
CALL = st.builds(ToolCall, st.sampled_from(["1", "2", "3", ""]), NAMES, ARGUMENTS | TORN | TEXT)
CALLS = st.lists(CALL, max_size=5).map(tuple)
REPLY = st.builds(
    Reply, TEXT, CALLS, st.builds(Usage, st.integers(0, 9000), st.integers(0, 900)), st.sampled_from(["stop", "length"])
)
BROKEN = st.builds(Break, CALLS, st.tuples(NAMES, TORN))
ERROR = st.sampled_from(["server", "timeout", "stream_closed", "budget_spent"]).map(lambda code: LLMError("no", code=code))
OVERFLOW = st.just(ContextOverflowError("too large"))
USEFUL = st.sampled_from([
    Reply("", (ToolCall("s", "web_search", '{"queries": ["moon"]}'),)),
    Reply("", (ToolCall("g", "web_get", json.dumps({"urls": [A, B, ASKED], "get_full": True})),)),
])  # fmt: skip
STEPS = st.lists(st.one_of(REPLY, USEFUL, REPLY, BROKEN, ERROR, OVERFLOW), max_size=12)
examples = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@dataclass
class Told:
    """What one run left behind."""

    facts: list[Fact]
    error: NexiError | None
    web: OddWeb
    left: list[str]
    complaints: list[str]


async def search(home: Path, steps: Sequence[Any], on_event: Callable[[Run, int], bool], **settings: Any) -> Told:
    """Run once; `on_event` gets the run and the number of the event, and may stop it or, with True, leave it."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
    config = Config(home=home, base_url="http://127.0.0.1:9/v1", model="unruly", **settings)
    llm, web, clock = UnrulyLLM(*steps), OddWeb(), FakeClock()
    request = RunRequest(QUESTION, limits=RunLimits(max_iterations=MAX_ITERATIONS))
    error: NexiError | None = None
    async with Nexi(config, clock=clock, llms={"answer": llm, "extract": llm}, backends=[web], fetchers=[web]) as nexi:
        async with nexi.search(request) as run:
            number = 0
            if not on_event(run, number):
                async for _ in run:
                    number += 1
                    if on_event(run, number):
                        break
        try:
            run.result()
        except NexiError as failed:
            error = failed
    left = [str(t) for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    log = RunDirectory(config.runs_dir, config.pages_dir, clock).open_log(run.id)
    assert log.damage == ""
    assert [f for _, f in log.facts] == list(run.facts)
    return Told([f for _, f in log.facts], error, web, left, complaints)


def check(told: Told) -> None:
    facts = told.facts
    assert [i for i, f in enumerate(facts) if isinstance(f, TERMINAL)] == [len(facts) - 1]
    started = Counter((f.call_id, f.name) for f in facts if isinstance(f, ToolStarted))
    assert started == Counter((f.call_id, f.name) for f in facts if isinstance(f, ToolFinished))
    assert sum(isinstance(f, ModelAsked) and f.purpose == "answer" for f in facts) <= MAX_ITERATIONS + 1
    assert not (isinstance(facts[-1], RunFailed) and facts[-1].code == "internal"), facts[-1]
    assert set(told.web.fetched) <= {ASKED, *told.web.shown}
    assert EVIL not in told.web.fetched
    assert (told.left, told.complaints) == ([], [])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop")


@examples
@given(STEPS)
def test_a_run_ends_once_whatever_the_model_says(home: Path, steps: list[Any]) -> None:
    check(asyncio.run(search(home, steps, lambda run, number: False)))


@examples
@given(STEPS, st.integers(2500, 12_000))
def test_a_run_ends_once_in_a_small_window(home: Path, steps: list[Any], window: int) -> None:
    sizes = {"max_context": window, "max_output_tokens": 500}
    check(asyncio.run(search(home, steps, lambda run, number: False, **sizes)))


@examples
@given(STEPS, st.integers(0, 30), st.integers(0, 40))
def test_a_run_ends_once_whenever_it_is_stopped_or_left(home: Path, steps: list[Any], stop_at: int, leave_at: int) -> None:
    def act(run: Run, number: int) -> bool:
        if number == stop_at:
            run.stop()
        return number == leave_at

    check(asyncio.run(search(home, steps, act)))


@examples
@given(STEPS, st.integers(0, 60), st.integers(0, 4))
def test_a_run_ends_once_when_its_caller_is_cancelled_anywhere(home: Path, steps: list[Any], turns: int, again: int) -> None:
    """Cancelled after so many turns of the event loop, and once more a little later."""
    told: list[Told] = []

    async def cancel() -> None:
        async def keep() -> None:
            told.append(await search(home, steps, lambda run, number: False))

        task = asyncio.ensure_future(keep())
        for pause in (turns, again):
            for _ in range(pause):
                await asyncio.sleep(0)
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []

    before = set((home / "runs").glob("*")) if home.exists() else set()
    asyncio.run(cancel())
    for folder in set((home / "runs").glob("*")) - before:
        facts = [f for _, f in RunDirectory(home / "runs", home / "pages", FakeClock()).open_log(folder.name).facts]
        assert [i for i, f in enumerate(facts) if isinstance(f, TERMINAL)] == [len(facts) - 1]
        started = Counter(f.call_id for f in facts if isinstance(f, ToolStarted))
        assert started == Counter(f.call_id for f in facts if isinstance(f, ToolFinished))
