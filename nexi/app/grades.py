"""The grades of judges that were tested, in one small file beside the config.

Below `pair_models`, which tests; what a grade says, `nexi.checking.quiz` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import ValidationError

from nexi.checking.quiz import Grade
from nexi.files import read_json_object, write_json_object

VERSION = 1
MAX_ENTRIES = 200
MAX_REASON_CHARS = 300
RETRY_AFTER = timedelta(days=1)
GRADES, FAILURES = "grades", "failures"


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
            entry = self._read_part(FAILURES)[key]
            return str(entry["reason"]) if now - datetime.fromisoformat(entry["at"]) < RETRY_AFTER else ""
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
