"""The results file of a benchmark: a header, then one JSON line for each answer, written as soon as it arrives.

Below it questions are asked in parallel, with one cost limit for the whole benchmark; those in the file are not asked again.
A line cut off by a stop is skipped and its question asked again; of two lines for one question the later one counts. Scores
are not stored but computed from the answers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi import files
from nexi.bench.questions import BenchQuestion
from nexi.errors import ConfigError, NexiError
from nexi.events import RunFailed
from nexi.types import Usage

if TYPE_CHECKING:
    from nexi.app import Nexi, RunRequest

T = TypeVar("T")
_SCHEMA = "nexi-bench-1"


class BenchRow(Struct, frozen=True):
    """The result of one question. `supported` of `checked` sentences are found in their pages; `cost` is None if unknown."""

    id: str
    answer: str = ""
    citations: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    pages: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    supported: int = 0
    checked: int = 0
    conflicts: int = 0
    run: str = ""
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the question need not be asked again: any failure may be temporary."""
        return not self.error


class Results:
    """The rows so far, and the file that they are appended to."""

    def __init__(self, path: Path, about: Mapping[str, Any], rows: dict[str, BenchRow], damaged: int) -> None:
        self.path, self.about, self.rows, self.damaged = path, about, rows, damaged

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> Self:
        """Open an existing or new file. Raises ConfigError if it has results of another model or effort."""
        rows: dict[str, BenchRow] = {}
        with files.translate_os_errors("Could not read the results", path):
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        damaged = 0
        if any(lines):
            header = _parse_line(lines[0], dict[str, Any]) or {}
            if header.get("schema") != _SCHEMA:
                cause, fix = "its header is missing", "choose another file with --output"
                raise ConfigError(f"{path} is not a results file", cause=cause, fix=fix)
            for name, value in about.items():
                if header.get(name) != value:
                    cause = f"its {name} is {header.get(name)!r}, not {value!r}"
                    raise ConfigError(f"cannot continue {path}", cause=cause, fix="choose another file with --output")
            for line in filter(None, lines[1:]):
                row = _parse_line(line, BenchRow)
                damaged += row is None
                if row is not None:
                    rows[row.id] = row
        results = cls(path, about, rows, damaged)
        if not any(lines):
            results._append_line({"schema": _SCHEMA, **about})
        return results

    def add(self, row: BenchRow) -> None:
        self._append_line(asdict(row))
        self.rows[row.id] = row

    @property
    def cost(self) -> float:
        return sum(row.cost or 0.0 for row in self.rows.values())

    def _append_line(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with files.translate_os_errors("Could not write the results", self.path), files.open_locked(self.path) as fd:
            files.append_line(fd, line)


async def ask_questions(
    nexi: Nexi,
    questions: Sequence[BenchQuestion],
    results: Results,
    template: RunRequest,
    *,
    workers: int = 2,
    max_cost: float | None = None,
    tell: Callable[[BenchQuestion, BenchRow], None] = lambda question, row: None,
) -> bool:
    """Ask all questions without a final row; whether the cost limit ended it. Raises StoreError if rows cannot be written."""
    rows = results.rows
    queue = [q for q in reversed(questions) if q.id not in rows or not rows[q.id].is_done]
    in_flight, is_out_of_budget = 0, False
    failure: NexiError | None = None

    async def ask_waiting() -> None:
        nonlocal in_flight, is_out_of_budget
        while queue:
            money = None
            if max_cost is not None:  # an equal share of the rest for each parallel question
                money = (max_cost - results.cost) / (workers if in_flight else 1)
            if money is not None and money <= 0:
                is_out_of_budget = True
                return
            question = queue.pop()
            in_flight += 1
            try:
                limits = replace(template.limits, max_cost=money)
                row = await _ask_question(nexi, question.id, replace(template, question=question.text, limits=limits))
            finally:
                in_flight -= 1
            results.add(row)
            tell(question, row)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(queue))):
                group.create_task(ask_waiting())
    except* NexiError as bundle:
        failure = next(e for e in bundle.exceptions if isinstance(e, NexiError))
    if failure is not None:
        raise failure
    return is_out_of_budget


async def _ask_question(nexi: Nexi, question_id: str, request: RunRequest) -> BenchRow:
    start = time.perf_counter()
    async with nexi.search(request) as run:
        await run.drive()
        seconds = round(time.perf_counter() - start, 3)
        try:
            result = run.result()
        except ConfigError:
            raise
        except NexiError as error:
            usage = next((fact.usage for fact in reversed(run.facts) if isinstance(fact, RunFailed)), Usage())
            message = f"{error.code}: {error}"[:500]
            return BenchRow(question_id, tokens=usage.total, cost=usage.cost, seconds=seconds, error=message)
    end, review = result.finished, result.answer.review
    return BenchRow(
        question_id,
        result.answer.text,
        citations=tuple(source.url for source in result.answer.sources),
        read=tuple(source.url for source in result.session.book.sources),
        pages=end.pages,
        model_calls=end.model_calls,
        tokens=end.usage.total,
        cost=end.usage.cost,
        seconds=seconds,
        supported=review.proof.passed if review else 0,
        checked=len(review.proof.checked) if review else 0,
        conflicts=len(result.answer.conflicts),
        run=result.id,
    )


def _parse_line(line: bytes, kind: type[T]) -> T | None:
    """Parse a line; None if it is incomplete or foreign."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
