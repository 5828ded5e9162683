"""Retention: old runs are deleted, but only after a notice that a person has seen, and never because a clock jumped."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nexi import files
from nexi.notices import Notice
from nexi.ports import Clock
from nexi.runs.directory import RunDirectory

NOTICE_DAYS = 7  # between the notice and the first deletion


class RetentionNotice:
    """The notice of one home: which runs are due for deletion, and since when someone knows."""

    def __init__(self, path: Path, runs: RunDirectory, clock: Clock) -> None:
        self._path, self._runs, self._clock = path, runs, clock

    def tidy(self, keep_days: float, max_mb: float) -> None:
        """Delete what a notice announced long enough ago; announce what is due now. Raises StoreError, OSError."""
        if self._runs.has_clock_jumped(keep_days):
            return
        due, notice = self._runs.find_expired(keep_days, max_mb), self._read_notice()
        shown_at, runs = str(notice.get("shown") or ""), set(notice.get("runs", ()))
        if shown_at and runs and datetime.fromisoformat(shown_at) > self._clock.now() - timedelta(days=NOTICE_DAYS):
            return  # one notice at a time: what became due since is in the next one
        may_go = [run for run in due if shown_at and run in runs]
        self._runs.prune(keep_days, max_mb, only=may_go)
        due_later = [run for run in due if run not in may_go]
        self._write_notice({"runs": due_later, "shown": ""} if due_later else {})

    def take_message(self, keep_days: float) -> str:
        """What to tell the user, once for each notice; the time until the deletion starts now. "" if there is nothing."""
        notice = self._read_notice()
        if not notice.get("runs") or notice.get("shown"):
            return ""
        now = self._clock.now()
        self._write_notice({**notice, "shown": now.isoformat()})
        count, day = len(notice["runs"]), (now + timedelta(days=NOTICE_DAYS)).date().isoformat()
        values = {"n": count, "day": day, "days": f"{keep_days:g}"}
        if count == 1:
            return Notice(
                "runs.expire_one",
                "{n} old run will be deleted after {day} (runs_keep_days is {days}); "
                "nexi runs tidy --dry-run lists it, nexi runs keep ID keeps it",
                **values,
            )
        return Notice(
            "runs.expire",
            "{n} old runs will be deleted after {day} (runs_keep_days is {days}); "
            "nexi runs tidy --dry-run lists them, nexi runs keep ID keeps one",
            **values,
        )

    def _read_notice(self) -> dict[str, Any]:
        notice = files.read_json_object(self._path)
        if not isinstance(notice.get("runs", []), list):
            return {}
        with suppress(ValueError):
            if not (shown_at := str(notice.get("shown") or "")) or datetime.fromisoformat(shown_at).tzinfo:
                return notice
        return {**notice, "shown": ""}  # when it was shown cannot be read: it is shown once more

    def _write_notice(self, notice: dict[str, Any]) -> None:
        if notice == self._read_notice():
            return
        files.make_private_directory(self._path.parent)
        files.replace_file(self._path, json.dumps(notice).encode())
