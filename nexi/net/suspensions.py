"""Keeps the breakers of the search backends in one file for all processes of a user; `nexi.net.breaker` decides.

A file that is damaged counts as empty, and one that cannot be used is left for memory, because a breaker must never be the
reason that a search fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from nexi import files
from nexi.errors import BackendError
from nexi.net import breaker
from nexi.net.breaker import State, Suspension
from nexi.ports import Clock

__all__ = ["FileBreaker"]

SCHEMA = 1
MAX_BYTES = 1_000_000
States = dict[str, dict[str, Any]]


class FileBreaker:
    """The Breaker port. `marks` tell one set-up of a backend from another: what a wrong key did ends with the key."""

    def __init__(self, path: Path, *, clock: Clock, marks: Mapping[str, str] | None = None) -> None:
        self._path, self._clock, self._marks = path, clock, dict(marks or {})
        self._memory: States = {}

    async def admit(self, backend: str) -> State:
        """None to ask now, or the suspension that forbids it."""
        now = self._now()
        if self._read_state(backend) is None:
            return None
        is_admitted, state = await asyncio.to_thread(self._change_state, backend, lambda s: breaker.try_admit(s, now))
        return None if is_admitted else state

    async def record_success(self, backend: str) -> None:
        if self._read_state(backend) is not None:
            await asyncio.to_thread(self._change_state, backend, lambda s: (True, breaker.after_success(s)))

    async def record_failure(self, backend: str, error: BackendError) -> None:
        now, fix, retry_after = self._now(), error.fix, error.retry_after

        def fail(state: State) -> tuple[bool, State]:
            return True, breaker.after_failure(state, now, error.code, reason=str(error), fix=fix, retry_after=retry_after)

        await asyncio.to_thread(self._change_state, backend, fail)

    def suspended_backends(self) -> dict[str, Suspension]:
        """The backends that rest now."""
        now = self._now()
        states = {name: self._entry_to_state(entry, name) for name, entry in self._load_states().items()}
        return {name: s for name, s in states.items() if s and breaker.current_standing(s, now) == "open"}

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _read_state(self, backend: str) -> State:
        return self._entry_to_state(self._load_states().get(backend), backend)

    def _change_state(self, backend: str, step: Callable[[State], tuple[bool, State]]) -> tuple[bool, State]:
        """One step of the state machine under the lock; in memory where the file cannot be used."""
        try:
            files.make_private_directory(self._path.parent)
            with files.open_locked(self._path.with_suffix(".lock")):
                return self._apply_step(backend, step, in_file=True)
        except OSError:
            return self._apply_step(backend, step, in_file=False)

    def _apply_step(self, backend: str, step: Callable[[State], tuple[bool, State]], *, in_file: bool) -> tuple[bool, State]:
        entries = self._load_states()
        before = self._entry_to_state(entries.get(backend), backend)
        is_admitted, after = step(before)
        if after != before:
            entries.pop(backend, None)
            if after:
                entries[backend] = {**asdict(after), "mark": self._marks.get(backend, "")}
            if in_file:
                data = {"schema": SCHEMA, "backends": entries}
                files.replace_file(self._path, json.dumps(data, indent=1, sort_keys=True).encode("ascii") + b"\n")
            self._memory = {} if in_file else entries
        return is_admitted, after

    def _load_states(self) -> States:
        try:
            if self._path.stat().st_size > MAX_BYTES:
                return {}
            data = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return dict(self._memory)
        rows = data.get("backends") if isinstance(data, dict) and data.get("schema") == SCHEMA else None
        entries = {k: v for k, v in rows.items() if isinstance(v, dict)} if isinstance(rows, dict) else {}
        return {**entries, **self._memory}

    def _entry_to_state(self, entry: Mapping[str, Any] | None, backend: str) -> State:
        """The state an entry stands for; a damaged one, or one of another set-up, stands for none."""
        if not entry or entry.get("mark", "") != self._marks.get(backend, ""):
            return None
        return read_state(entry)


def read_state(entry: Mapping[str, Any]) -> State:
    """A Suspension from JSON that may be anything."""
    try:
        state = msgspec.convert(entry, Suspension)
    except (msgspec.ValidationError, OverflowError):
        return None
    moments = (state.since, state.until, state.trial_until)
    return state if all(abs(moment) < 1e15 for moment in moments) and 0 < state.errors < 10**6 else None
