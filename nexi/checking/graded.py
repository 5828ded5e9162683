"""A pair model that is tested before it is believed, and the grades of models that were tested, in one small file.

The PairModel port is above and below: what a model may do follows from its grade, which `test` finds or makes. A model
without a grade answers with gaps alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import ValidationError

from nexi.checking.gaps import build_gaps
from nexi.checking.quiz import Grade
from nexi.errors import NexiError
from nexi.files import read_json_object, write_json_object
from nexi.ports import PairModel
from nexi.types import PairScore

VERSION = 1
MAX_ENTRIES = 200
MAX_REASON_CHARS = 300
RETRY_AFTER = timedelta(days=1)
GRADES, FAILURES = "grades", "failures"

# The grade of a model, from an earlier test or a new one that must end at the deadline. Raises NexiError where there is none.
Test: TypeAlias = Callable[[float | None], Awaitable[Grade]]


class GradedPairModel:
    """The PairModel port over another one. Its scores are calibrated: one half decides."""

    def __init__(self, model: PairModel, test: Test) -> None:
        self._model = model
        self._test = test
        self._turn = asyncio.Lock()
        self._grade: Grade | None = None
        self._problem = ""

    @property
    def name(self) -> str:
        return self._model.name

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        grade = await self._find_grade(deadline) if pairs else None
        if grade is None:
            return build_gaps(pairs, self._problem)
        if not grade.may_be_asked:
            reason = f"{self.name} was right in {grade.balanced_accuracy:.0%} of its test, too rarely to be asked"
            return build_gaps(pairs, reason)
        return [grade.apply(score, self.name) for score in await self._model.score(pairs, deadline=deadline)]

    async def _find_grade(self, deadline: float | None) -> Grade | None:
        async with self._turn:
            if self._grade is None and not self._problem:
                try:
                    self._grade = await self._test(deadline)
                except NexiError as error:
                    self._problem = str(error)
        return self._grade


class GradeBook:
    """Grades by key in a JSON file. What cannot be read counts as not tested; what cannot be written is tested again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def grade(self, key: str) -> Grade | None:
        try:
            return Grade.from_json(self._read_part(GRADES)[key])
        except (KeyError, ValidationError):
            return None

    def put(self, key: str, grade: Grade) -> None:
        """Raises StoreError where the file cannot be written."""
        self._write_part(GRADES, key, grade.as_json())

    def failure(self, key: str, now: datetime) -> str:
        """Why the last test did not end, where that was less than a day ago: a slow server is not tried in every run."""
        try:
            failed = self._read_part(FAILURES)[key]
            return str(failed["reason"]) if now - datetime.fromisoformat(failed["at"]) < RETRY_AFTER else ""
        except (KeyError, TypeError, ValueError):
            return ""

    def put_failure(self, key: str, reason: str, now: datetime) -> None:
        """Raises StoreError where the file cannot be written."""
        self._write_part(FAILURES, key, {"reason": reason[:MAX_REASON_CHARS], "at": now.isoformat()})

    def _write_part(self, part: str, key: str, value: Mapping[str, Any]) -> None:
        parts = {name: self._read_part(name) for name in (GRADES, FAILURES)}
        for entries in parts.values():
            entries.pop(key, None)
        parts[part] = {**dict(list(parts[part].items())[-MAX_ENTRIES + 1 :]), key: value}
        write_json_object(self._path, {"version": VERSION, **parts}, "The grade of a judge could not be kept")

    def _read_part(self, part: str) -> dict[str, Any]:
        value = read_json_object(self._path)
        entries = value.get(part) if value.get("version") == VERSION else None
        return dict(entries) if isinstance(entries, dict) else {}
