"""A world that can be spoilt: a scripted model, a search service and a web of pages, each behind a fault proxy, and a disk.

`play` runs one case to its end in this thread and says how it ended, how long that took, and what it left behind.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from nexi.app import Nexi, Run, RunLimits, RunRequest, SystemClock
from nexi.app.request import RunMode
from nexi.config import Config
from nexi.errors import NexiError, StoreError
from nexi.events import TERMINAL, Fact, ModelAsked, ModelFailed, ModelReplied, Warned
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import ReadLog
from rig import miniweb, scripted_llm
from rig.fault_proxy import ALWAYS, Fault, FaultProxy, proxies
from rig.research_script import ResearchScript

TEXTS = {
    "moon": "The Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    "tide": "The tides follow the Moon. A high tide comes about every 12 hours and 25 minutes.",
    "mars": "Mars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
    "sun": "The Sun is 149.6 million km from Earth. Its light takes about 8 minutes and 20 seconds.",
}


def make_page(name: str, title: str, text: str) -> dict[str, str]:
    return {
        "url": f"http://{name}.test/facts",
        "title": title,
        "html": f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{text}</p>"
        f"<p>{text.replace('.', ' indeed.')}</p></main></body></html>",
    }


PAGES = [make_page(name, name.title(), text) for name, text in TEXTS.items()]
QUESTION = "How far is the Moon, and what does it do to the tides?"
TARGET_S = 3.0
LATE_S = 2.0
PATIENCE_S = 120.0  # for connections to be closed; only a leak waits for it
DOORS = ("quick", "research")


@dataclass(frozen=True)
class Case:
    """One fault at one place. `later` lets enough pass that pages were read before."""

    place: str
    kind: str
    later: bool = False
    times: int = ALWAYS
    retry_after: str = ""

    @property
    def name(self) -> str:
        form = f" ({self.retry_after})" if self.retry_after else ""
        burst = f", {self.times} time{'s' * (self.times > 1)}" if self.times < ALWAYS else ""
        return f"{self.kind}{form}{burst}"

    @property
    def when(self) -> str:
        return "later" if self.later else "from the start"


@dataclass
class Ending:
    """How a case ended and what it left: `outcome` is an answer, a partial one with its gap, or an error with its code."""

    outcome: str
    seconds: float
    leaks: list[str] = field(default_factory=list)
    spoiled: int = 0


@dataclass
class Servers:
    """What a run talks to."""

    at: dict[str, FaultProxy]
    script: ResearchScript
    hosts: dict[str, str]

    def config(self, home: Path) -> Config:
        return Config(
            home=home,
            base_url=f"{self.hosts['model']}/v1",
            model="scripted",
            search_backend=("searxng",),
            searxng_url=self.hosts["search"],
            allow_private=("127.0.0.0/8",),
            respect_robots=False,
            llm_max_retries=2,
            verify_judge=False,
        )


@contextmanager
def servers(*, names: bool = False, **settings: Any) -> Iterator[Servers]:
    """The rig behind its proxies; with `names` they are called by names that only `resolving` knows."""
    latency, pages = settings.pop("latency_ms", 0), settings.pop("pages", PAGES)
    script = ResearchScript(**settings)
    with proxies({"model": "", "search": "", "pages": ""}) as at:
        hosts = {name: proxy.url.replace("127.0.0.1", f"{name}.test") if names else proxy.url for name, proxy in at.items()}
        with (
            miniweb.serve(miniweb.Corpus(pages), base_url=hosts["pages"]) as web,
            scripted_llm.serve(script, latency_ms=latency) as llm,
        ):
            at["model"].upstream, at["search"].upstream, at["pages"].upstream = llm, web, web
            yield Servers(at, script, hosts)


def play(case: Case | None, door: str, home: Path, target_s: float = TARGET_S) -> Ending:
    """One run with its fault, from its first fact to the last connection."""
    with servers(names=bool(case) and case.place == "dns") as rig, spoilt_disk(case, home):
        if case and case.place in ("model", "stream", "search", "pages"):
            place = "model" if case.place == "stream" else case.place
            rig.at[place].fault = _fault(case, door)
        ending = asyncio.run(_play(case, door, rig, home, target_s))
        ending.leaks += _open_connections(rig)
        ending.spoiled = sum(proxy.spoiled for proxy in rig.at.values())
    return ending


def _fault(case: Case, door: str) -> Fault:
    good = {"model": {"quick": 2, "research": 9}, "search": {"quick": 1, "research": 2}, "pages": {"quick": 1, "research": 1}}
    after = good["model" if case.place == "stream" else case.place][door] if case.later else 0
    match = {"search": "/search", "pages": "/facts"}.get(case.place, "/chat/completions")
    return Fault(case.kind, after, case.times, case.retry_after, match)


async def _play(case: Case | None, door: str, rig: Servers, home: Path, target_s: float) -> Ending:
    _patch_names(case)
    started = time.monotonic()
    async with Nexi(rig.config(home)) as nexi:
        limits = RunLimits(time_target=target_s)
        mode: RunMode = "research" if door == "research" else "search"
        async with nexi.run(RunRequest(QUESTION, mode=mode, limits=limits)) as run:
            async for _ in run:
                pass
            outcome = outcome_of(run)
    seconds = time.monotonic() - started
    left = [t.get_name() for t in asyncio.all_tasks() - {asyncio.current_task()}]  # type: ignore[arg-type]
    return Ending(outcome, seconds, [f"task {name}" for name in left] + _books(run) + _log_trouble(run, home))


def outcome_of(run: Run) -> str:
    try:
        result = run.result()
    except NexiError as error:
        return f"error {error.code}" if error.fix or error.cause else f"error {error.code} without a reason"
    gaps = [f.code for f in run.facts if isinstance(f, Warned) and not f.agent and f.code != "not_indexed"]
    return f"partial: {', '.join(dict.fromkeys(gaps))}" if gaps else f"answer, {len(result.answer.sources)} sources"


def _books(run: Run) -> list[str]:
    """Money: nothing stays reserved, every call that was asked for ended, and the sums agree."""
    troubles = []
    asked = [f.call for f in run.facts if isinstance(f, ModelAsked)]
    ended = [f.call for f in run.facts if isinstance(f, ModelReplied | ModelFailed)]
    if sorted(asked) != sorted(ended):
        troubles.append(f"calls {sorted(set(asked) ^ set(ended))} have no end")
    if run.meter.reserved_tokens:
        troubles.append(f"{run.meter.reserved_tokens} tokens are still reserved")
    spent = sum(f.usage.total for f in run.facts if isinstance(f, ModelReplied | ModelFailed))
    if spent != run.meter.usage.total:
        troubles.append(f"the log has {spent} tokens and the meter {run.meter.usage.total}")
    return troubles


def _log_trouble(run: Run, home: Path) -> list[str]:
    """The log opens; where it was kept to the end it ends once."""
    kept = not any(isinstance(f, Warned) and f.code == "log_not_kept" for f in run.facts)
    try:
        log = open_log(home, run.id)
    except StoreError as error:
        return [f"the log does not open: {error}"] if kept else []
    ends = [n for n, fact in log.facts if isinstance(fact, TERMINAL)]
    return [] if not kept or ends == [len(log.facts)] else [f"the log ends {len(ends)} times"]


def open_log(home: Path, run_id: str) -> ReadLog:
    return RunDirectory(home / "runs", home / "pages", SystemClock()).open_log(run_id)


def facts_in(home: Path, run_id: str) -> list[Fact]:
    return [fact for _, fact in open_log(home, run_id).facts]


def _open_connections(rig: Servers) -> list[str]:
    deadline = time.monotonic() + PATIENCE_S
    while any(proxy.open for proxy in rig.at.values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [f"{proxy.open} connections to {name}" for name, proxy in rig.at.items() if proxy.open]


# names


def _patch_names(case: Case | None) -> None:
    """Let the names of the rig mean loopback for this loop; the one of the case fails."""
    loop: Any = asyncio.get_running_loop()
    real = loop.getaddrinfo
    kind, _, place = case.kind.partition(" of ") if case and case.place == "dns" else ("", "", "")

    async def resolve(host: Any, port: Any, **rest: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not str(name).endswith(".test"):
            return await real(host, port, **rest)
        if name == f"{place}.test":
            await _fail_name(kind)
        return await real("127.0.0.1", port, **rest)

    loop.getaddrinfo = resolve


async def _fail_name(kind: str) -> None:
    if kind == "hanging":
        await asyncio.sleep(3600)
    number = socket.EAI_NONAME if kind == "unknown" else socket.EAI_AGAIN
    raise socket.gaierror(number, os.strerror(errno.ENOENT))


# disk


@contextmanager
def spoilt_disk(case: Case | None, home: Path) -> Iterator[None]:
    """Writes or flushes of files under this home fail; other homes of the process are left alone."""
    if case is None or case.place != "disk":
        yield
        return
    name, _, call = case.kind.partition(" at ")
    number, counts = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}[name], {"n": 0}
    real: Callable[..., Any] = getattr(os, call)

    def broken(fd: int, *rest: Any) -> Any:
        if str(home) in str(Path(f"/proc/self/fd/{fd}").readlink()):
            counts["n"] += 1
            if counts["n"] > (8 if case.later else 0):
                raise OSError(number, os.strerror(number))
        return real(fd, *rest)

    with mock.patch.object(os, call, broken):
        yield
