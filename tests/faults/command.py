"""The whole command in this process: a loopback web, a scripted endpoint, real files, and what is left behind."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nexi.app import SystemClock
from nexi.events import TERMINAL, Fact, RunFinished, ToolFinished, ToolStarted
from nexi.history import get_entry_by_id
from nexi.runs.directory import RunDirectory
from tests.llm.server import Canned, Server, call_delta, delta, serving, sse

MOON = "http://moon.test/facts"
PAGES = [
    {
        "url": MOON,
        "title": "Moon facts",
        "html": "<html><head><title>Moon facts</title></head><body><main><h1>Moon</h1>"
        "<p>The Moon is 384,400 km from Earth on average. It has almost no air and many craters.</p></main></body></html>",
    }
]
QUESTION = "How far is the Moon from Earth on average?"
ANSWER = "The Moon is 384,400 km away on average [1]."


@dataclass(frozen=True)
class Outcome:
    """What one command printed and left."""

    code: int
    out: str
    err: str
    home: Path
    leaked: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        (folder,) = (self.home / "runs").iterdir()
        return folder.name

    @property
    def facts(self) -> list[Fact]:
        """The facts of the run's log, which must be whole."""
        log = RunDirectory(self.home / "runs", self.home / "pages", SystemClock()).open_log(self.run_id)
        assert log.damage == ""
        return [fact for _, fact in log.facts]


def check_nothing_is_lost(done: Outcome) -> None:
    """The log is whole and ends once, every tool that started finished, and an answer that was printed is in the history."""
    facts = done.facts
    assert [i for i, f in enumerate(facts) if isinstance(f, TERMINAL)] == [len(facts) - 1]
    started = Counter(f.call_id for f in facts if isinstance(f, ToolStarted))
    assert started == Counter(f.call_id for f in facts if isinstance(f, ToolFinished))
    entry = get_entry_by_id(done.run_id, done.home / "history.jsonl")
    last = facts[-1]
    if isinstance(last, RunFinished):
        assert entry is not None
        assert entry.answer == last.answer
        assert done.out.startswith(last.answer)
    else:
        assert (entry, done.out) == (None, "")


def check_nothing_is_left_behind(done: Outcome) -> None:
    assert done.leaked == ()
    assert "Traceback" not in done.err
    assert list(done.home.glob("runs/*/traceback.txt")) == []


@contextmanager
def endpoint(script: Sequence[Canned]) -> Iterator[Server]:
    """A scripted endpoint in a thread of its own."""
    up: Future[tuple[Server, Callable[[], object]]] = Future()

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        async with serving(script) as server:
            up.set_result((server, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="endpoint")
    thread.start()
    server, end = up.result(10)
    try:
        yield server
    finally:
        end()
        thread.join(10)


def calling(name: str, arguments: object, call_id: str = "c1") -> Canned:
    """A reply of one tool call; `arguments` that are text go out as they are."""
    return calling_all([(call_id, name, arguments)])


def calling_all(calls: Sequence[tuple[str, str, object]]) -> Canned:
    pieces = [call_delta(i, call_id, name, _text(arguments)) for i, (call_id, name, arguments) in enumerate(calls)]
    return sse(*pieces, delta("tool_calls"))


def _text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def searching() -> Canned:
    return calling("web_search", {"queries": ["moon distance"]}, "s1")


def reading(web: str) -> Canned:
    return calling("web_get", {"urls": [MOON.replace("http:/", web)], "get_full": True}, "g1")


def answering(text: str = ANSWER) -> Canned:
    return calling("final_answer", {"answer": text}, "f1")
