"""The lines of a run log: a header and one checksummed, numbered line per fact.

Above, `log` writes them and `directory` reads them; below are the events. Nothing here touches a file.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from nexi import events
from nexi.errors import StoreError
from nexi.events import Fact
from nexi.notices import Notice
from nexi.types import StopReason

SCHEMA = 1
RUN_ID = re.compile(r"[0-9a-f]{6}|[0-9a-f]{32}")  # the long ones where several people share a server
_DIGESTS_IN_LOG = re.compile(rb'"(?:digest|links)":"([0-9a-f]{64})"')

LogState: TypeAlias = Literal["running", "finished", "stopped", "failed", "unfinished"]
RunState: TypeAlias = LogState | Literal["damaged"]
ENDED_STATES: dict[str, RunState] = {"run_finished": "finished", "run_failed": "failed"}


class RunSummary(Struct, frozen=True):
    """One line of a list of runs. `continues` is the run before it in its conversation; what follows is known at its end."""

    id: str
    created: str
    query: str
    mode: str
    state: RunState
    size: int
    continues: str = ""
    is_waiting: bool = False  # its plan waits for a person
    words: int = 0  # of its answer
    seconds: float = 0.0
    tokens: int = 0
    cost: float | None = None
    stop: str = ""  # why it ended
    space: str = ""  # in which it was asked

    @property
    def was_stopped(self) -> bool:
        """Whether a person ended it before it had an answer, which is no failure."""
        return self.state == "failed" and self.stop == StopReason.CANCELLED

    @property
    def shown_state(self) -> RunState:
        """The state as a person knows it: one who stopped a run did not see it fail."""
        return "stopped" if self.was_stopped else self.state


def summarise_run(
    run_id: str, created: str, size: int, first: Mapping[str, Any], last: Mapping[str, Any], *, is_running: bool
) -> RunSummary:
    """The summary of a run by its first and last fact, either of which may be empty; a damaged log has no `created`."""
    ended = ENDED_STATES.get(str(last.get("kind"))) if created else None
    state: RunState = ended or ("running" if is_running else "unfinished" if created else "damaged")
    usage, settings, request = last.get("usage") or {}, first.get("settings") or {}, first.get("request") or {}
    query, mode, continues = str(first.get("query", "")), str(first.get("mode", "")), str(settings.get("continues") or "")
    is_waiting = state == "running" and last.get("kind") == "agenda_proposed"
    words, seconds = len(str(last.get("answer") or "").split()), float(last.get("seconds") or 0) if usage else 0.0
    tokens = int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
    cost, stop, space = usage.get("cost"), str(last.get("stop") or ""), str(request.get("space") or "")
    return RunSummary(
        run_id, created, query, mode, state, size, continues, is_waiting, words, seconds, tokens, cost, stop, space
    )


class LogHeader(Struct, frozen=True):
    """The first line of a log."""

    schema: int
    run: str
    created: str
    nexi: str


@dataclass(frozen=True)
class ReadLog:
    """A log as read: its facts with their numbers, and what was wrong with its end, if anything."""

    header: LogHeader
    facts: list[tuple[int, Fact]] = field(default_factory=list)
    damage: str = ""
    moments: list[str] = field(default_factory=list, compare=False)
    elapsed: list[float | None] = field(default_factory=list, compare=False)

    @property
    def bare_facts(self) -> tuple[Fact, ...]:
        return tuple(fact for _, fact in self.facts)

    @property
    def seconds(self) -> float:
        """How long the run has worked; the time between an interruption and its end does not count."""
        return max((seconds for _, seconds in self._timed_facts()), default=0.0)

    @property
    def has_ended(self) -> bool:
        return bool(self.facts) and isinstance(self.facts[-1][1], events.TERMINAL)

    @property
    def resumes_without_progress(self) -> int:
        """How often the run was resumed since a model, a search or a page brought it further."""
        idle = takewhile(lambda numbered: not isinstance(numbered[1], events.PROGRESS), reversed(self.facts))
        return sum(isinstance(fact, events.RunResumed) for _, fact in idle)

    @property
    def beginnings(self) -> dict[str, float]:
        """When each researcher began, in seconds of work."""
        return {fact.researcher: seconds for fact, seconds in self._timed_facts() if isinstance(fact, events.ResearcherStarted)}

    def _timed_facts(self) -> Iterator[tuple[Fact, float]]:
        """Each fact with the seconds of work until it: as its writer counted, since clocks jump; by the clock in older logs."""
        total, before = 0.0, parse_moment(self.header.created)
        for (_, fact), stamp, count in zip(self.facts, self.moments, self.elapsed, strict=True):
            now = parse_moment(stamp)
            if count is not None:
                total = max(total, count)
            elif now and before and not isinstance(fact, events.RunResumed):
                total += max(0.0, (now - before).total_seconds())
            before = now or before
            yield fact, round(total, 3)


class DamagedLogError(StoreError):
    """A log that cannot be trusted past a point; `readable` is what comes before it, None when not even the header is."""

    code = "damaged_log"

    def __init__(self, message: str, *, cause: str, fix: str, readable: ReadLog | None) -> None:
        super().__init__(message, cause=cause, fix=fix)
        self.readable = readable


def state_of(facts: Sequence[Fact], *, is_running: bool = False) -> LogState:
    """How a run stands by its facts; `is_running` says whether somebody works on one that has not ended."""
    match events.find_end(facts):
        case events.RunFinished():
            return "finished"
        case events.RunFailed(stop=StopReason.CANCELLED):
            return "stopped"
        case events.RunFailed():
            return "failed"
    return "running" if is_running else "unfinished"


def digests_in(log: bytes) -> list[str]:
    """Every text a log names, in order, each once."""
    return list(dict.fromkeys(match.decode() for match in _DIGESTS_IN_LOG.findall(log)))


def new_run_id() -> str:
    return os.urandom(3).hex()


def new_long_id() -> str:
    """An id that nobody can guess."""
    return os.urandom(16).hex()


def check_run_id(run_id: str) -> str:
    """The id, if it is one; nothing else ever becomes part of a path."""
    if RUN_ID.fullmatch(run_id):
        return run_id
    cause = "an id is six hexadecimal digits, such as 3fa9c1"
    raise StoreError(f"{run_id!r} is not a run id", cause=cause, fix="`nexi runs` shows the ids there are.", code="bad_run_id")


def no_such_run(run_id: str) -> StoreError:
    cause, fix = Notice("run.never_made", "it was never made here, or it was removed"), "`nexi runs` shows the ids there are."
    return StoreError(Notice("run.missing", "There is no run {run}", run=run_id), cause=cause, fix=fix, code="no_such_run")


def locked_error(run_id: str) -> StoreError:
    fix = f"Wait for it, or stop it with `nexi stop {run_id}`."
    return StoreError(f"Run {run_id} is still running", cause="another process holds its log", fix=fix, code="run_locked")


def refuse_ended(run_id: str, log: ReadLog) -> None:
    if log.has_ended:
        raise StoreError(f"Run {run_id} has ended", cause="its log has a terminal fact", fix="Start a new search.")


def encode_header(run_id: str, created: datetime) -> bytes:
    from nexi import __version__

    created_at = _to_aware(created).isoformat(timespec="milliseconds")
    return seal_record({"schema": SCHEMA, "run": run_id, "created": created_at, "nexi": __version__})


def encode_fact(number: int, now: datetime, elapsed: float, fact: Fact) -> bytes:
    stamp = _to_aware(now).isoformat(timespec="milliseconds")
    return seal_record({"n": number, "t": stamp, "s": round(elapsed, 3), "fact": events.encode(fact)})


def seal_record(record: dict[str, Any]) -> bytes:
    """A line with its checksum last. ASCII, so that no text can break it."""
    body = json.dumps(record, separators=(",", ":")).encode("ascii")
    return b'%s,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def unseal_line(line: bytes) -> dict[str, Any]:
    """The record of a line. ValueError says what is wrong with it."""
    record = json.loads(line)
    body, mark, tail = line.rpartition(b',"sum":"')
    if not isinstance(record, dict) or not mark:
        raise ValueError("it is no record")
    if tail != b'%08x"}' % zlib.crc32(body + b"}"):
        raise ValueError("its checksum does not match")
    return record


def try_unseal(line: bytes) -> dict[str, Any]:
    """The record of a line; empty where it is damaged."""
    try:
        return unseal_line(line.rstrip(b"\n"))
    except ValueError:
        return {}


def parse_log(run_id: str, data: bytes) -> ReadLog:
    """Read a whole log, strictly up to its last line."""
    *lines, tail = data.split(b"\n")
    if not lines:
        raise _damaged_error(run_id, 1, "the header is missing or torn", None)
    try:
        record = unseal_line(lines[0])
        header = LogHeader(int(record["schema"]), str(record["run"]), str(record["created"]), str(record["nexi"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged_error(run_id, 1, f"the header cannot be read: {error}", None) from error
    if header.schema > SCHEMA:
        cause = f"its log has schema {header.schema} (nexi {header.nexi}); this nexi reads up to {SCHEMA}"
        fix = "Upgrade nexi, or read it with the version that wrote it."
        raise StoreError(f"Run {run_id} was written by a newer nexi", cause=cause, fix=fix, code="newer_log")
    log = ReadLog(header)
    try:
        json.loads(lines[-1])
    except ValueError:
        tail = tail or lines.pop()
    for index, line in enumerate(lines[1:], 1):
        try:
            fact, stamp, elapsed = _parse_fact(line, index)
            log.facts.append((index, fact))
            log.moments.append(stamp)
            log.elapsed.append(elapsed)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _damaged_error(run_id, index + 1, str(error), log) from error
    return replace(log, damage=f"the last line ({len(tail)} bytes) is torn and was left out") if tail else log


def _parse_fact(line: bytes, expected: int) -> tuple[Fact, str, float | None]:
    record = unseal_line(line)
    if record["n"] != expected:
        raise ValueError(f"fact {record['n']} stands where fact {expected} belongs")
    event = events.decode(record["fact"])
    if not events.is_fact(event):
        raise ValueError(f"{event.kind} is no fact")
    elapsed = record.get("s")
    return event, str(record.get("t", "")), float(elapsed) if isinstance(elapsed, int | float) else None


def _damaged_error(run_id: str, line: int, why: str, readable: ReadLog | None) -> DamagedLogError:
    cause = f"{why}; {len(readable.facts) if readable else 0} facts before it can still be read"
    fix = "`nexi doctor --repair` saves every line that can be verified, and keeps the damaged log beside it."
    message = f"The log of run {run_id} is damaged at line {line}"
    return DamagedLogError(message, cause=cause, fix=fix, readable=readable)


def parse_moment(stamp: str) -> datetime | None:
    try:
        return _to_aware(datetime.fromisoformat(stamp))
    except ValueError:
        return None


def _to_aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
