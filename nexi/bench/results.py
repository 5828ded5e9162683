"""The results file: a header, then one JSON line for each answer, written as soon as it arrives.

The runner sits above. A line cut off by a stop is skipped and its question asked again; of two lines for one question the
later one counts. Scores are not stored but computed from the answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from nexi import files
from nexi.errors import ConfigError

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


def _parse_line(line: bytes, kind: type[T]) -> T | None:
    """Parse a line; None if it is incomplete or foreign."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
