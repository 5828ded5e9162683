"""The whole fault matrix: every fault at every place, for a quick question and for research.

Not collected with the ordinary tests: `make test-faults` names this file. Each case must end in an answer, a partial answer
that names its gap, or a clean error, by the deadline and two seconds, and leave no task, connection or reservation behind.
The outcomes are written to `tests/faults/matrix.md`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.world import DOORS, LATE_S, TARGET_S, Case, Ending, play

TABLE = Path(__file__).with_name("matrix.md")
AT_ONCE = 3
LATEST_S = TARGET_S + LATE_S

TRANSPORT = ("refused", "hanging", "dripping", "reset", "truncated", "reset inside", "hanging inside")
FORMS = ("seconds", "date", "milliseconds")
REPLIES = ("malformed", "html", "empty")
STREAMED = ("bad_call", "bad_event", "error_event")


def cases() -> list[Case]:
    """Every row of the table, in its order."""
    at_both_times = [
        *(("model", kind) for kind in (*TRANSPORT, "429", "503", *REPLIES)),
        *(("stream", kind) for kind in STREAMED),
    ]
    rows = [Case(place, kind, later) for place, kind in at_both_times for later in (False, True)]
    rows += [Case("stream", kind, times=1) for kind in STREAMED]
    for place in ("model", "search", "pages"):
        rows += [Case(place, "429", times=1, retry_after=form) for form in FORMS]
        rows += [Case(place, "503", times=2)]
    for place in ("search", "pages"):
        rows += [Case(place, kind) for kind in (*TRANSPORT, "429", "503", *REPLIES)]
        rows += [Case(place, kind, later=True) for kind in ("refused", "hanging", "503")]
    rows += [Case("dns", f"{kind} of {at}") for at in ("model", "search", "pages") for kind in ("unknown", "broken", "hanging")]
    rows += [Case("disk", f"{name} at write", later) for name in ("ENOSPC", "EIO") for later in (False, True)]
    rows += [Case("disk", "EIO at fsync", later) for later in (False, True)]
    return sorted(rows, key=lambda c: ("model", "stream", "search", "pages", "dns", "disk").index(c.place))


def head_of(case: Case) -> str:
    return f"| {case.place} | {case.name} | {case.when} |"


@pytest.fixture(scope="module")
def endings() -> Iterator[dict[tuple[str, str], Future[Ending]]]:
    """All cases, some at once: most of their time is waiting."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        play(None, "quick", Path(folder) / "warm")  # imports are not a fault's
        yield {
            (head_of(case), door): pool.submit(play, case, door, Path(folder) / f"{number}-{door}")
            for number, case in enumerate(cases())
            for door in DOORS
        }


def test_no_case_stands_in_the_table_twice() -> None:
    heads = [head_of(case) for case in cases()]
    assert len(heads) == len(set(heads))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", cases(), ids=lambda c: re.sub(r"\W+", "-", f"{c.place} {c.name} {c.when}"))
def test_it_ends_well_and_leaves_nothing(endings: dict[tuple[str, str], Future[Ending]], case: Case, door: str) -> None:
    ending = endings[head_of(case), door].result(120)
    assert ending.leaks == []
    assert re.fullmatch(r"answer, \d sources|partial: [a-z_, ]+|error [a-z_]+", ending.outcome), ending.outcome
    assert ending.seconds <= LATEST_S


def test_the_table_is_written(endings: dict[tuple[str, str], Future[Ending]]) -> None:
    """Last, so that every outcome is there."""
    rows = [" ".join((head_of(c), *(f"{shown(endings[head_of(c), d].result(120))} |" for d in DOORS))) for c in cases()]
    TABLE.write_text("\n".join((HEAD, *rows)) + "\n", encoding="utf-8")


def shown(ending: Ending) -> str:
    return f"{ending.outcome} ({ending.seconds:.1f} s)"


HEAD = f"""# Faults, and how a run ends

Written by `make test-faults`. Every case runs with a time target of {TARGET_S:.0f} s and may take {LATEST_S:.0f} s at the most.
"Later" means that pages had been read before. A partial answer is followed by the codes of the warnings that name its gap.

| place | fault | when | `nexi "q"` | `nexi research` |
|---|---|---|---|---|"""
