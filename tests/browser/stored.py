"""A finished run put into the home of a server that runs, with every text in it chosen by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nexi.app import SystemClock
from nexi.events import AnswerChecked, ModelFailed, PageFailed, PageFetched, RunFinished, RunStarted, SearchFinished, Warned
from nexi.runs.directory import FilePages, RunDirectory
from nexi.types import Claim, Conflict, ConflictValue, Evidence, Hit, Imprint, Proof, Review, Source, StopReason, Usage, Verdict

TOPIC = "The Moon is 384,400 km from Earth on average [1]."


def stored_run(home: Path, strings: Sequence[str]) -> str:
    """An answer of these strings over sources named like them; each is claimed, warned of, searched for and failed with."""
    with ThreadPoolExecutor(1) as aside:  # the browser has the loop of this thread
        return aside.submit(lambda: asyncio.run(_stored(home, strings))).result()


async def _stored(home: Path, strings: Sequence[str]) -> str:
    passage = "\n\n".join(strings)
    digest = await FilePages(home / "pages").put(passage)
    sources = tuple(
        Source(n, f"http://host{n}.test/moon", title, digest, Imprint(published=title))
        for n, title in enumerate(strings[:200], 1)
    )
    answer, claims = TOPIC, []
    for n, text in enumerate(strings):
        start = len(answer) + 2
        answer += f"\n\n{text} [{n % len(sources) + 1}]"
        verdict = list(Verdict)[n % len(Verdict)]
        at = passage.index(text)
        found = Evidence(
            n % len(sources) + 1, digest=digest, verdict=verdict, start=at, end=at + len(text), span=text, reason=text
        )
        claims.append(Claim(n, text, start, len(answer), verdict, True, text, (found,)))
    log = RunDirectory(home / "runs", home / "pages", SystemClock()).create()
    first = strings[0]
    for fact in (
        RunStarted(f"How far is the Moon? {first}", "m", first),
        *(SearchFinished(s, first, (Hit(sources[0].url, s, s),), (), 0.01, agent=s[:40]) for s in strings[:60]),
        *(PageFetched(sources[0].url, sources[0].url, s, digest, 10, 10, 0.01, agent=s[:40]) for s in strings[:60]),
        *(PageFailed(f"http://evil.test/{s}", "timeout", s, 0.01) for s in strings[:60]),
        ModelFailed(1, "refused", first, first, 0.01),
        Warned("hostile", first),
        AnswerChecked(Review(Proof(tuple(claims)), dropped=tuple(claims[:3]))),
        RunFinished(answer, sources, StopReason.FINAL_ANSWER, 1, Usage(), 1.0, 1, 1, tuple(strings[:5]), _conflicts(strings)),
    ):
        await log.append(fact)
    await log.close()
    return log.run_id


def _conflicts(strings: Sequence[str]) -> tuple[Conflict, ...]:
    return tuple(
        Conflict("number", s, (ConflictValue(s, (1,), 1, s), ConflictValue(s[::-1], (2,), 1, s))) for s in strings[:10]
    )
