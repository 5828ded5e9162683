"""The file of results: a header, then one JSON line for each answer, written as soon as it is there.

Above sits the runner, which asks what is still to be asked. A line that was torn when a run was stopped is left out, and its
question asked again; of two lines for one question the later counts. Scores are not kept: they are made anew from answers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import asdict

from nexi import files
from nexi.errors import ConfigError

SCHEMA = "nexi-bench-1"


class BenchRow(Struct, frozen=True):
    """What one question brought. `supported` of `checked` sentences passed the proof; `cost` is None where it is unknown."""

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
        """A failure is asked again: even "nothing was found" may be the search service's."""
        return not self.error


class Results:
    """The rows so far, and the open file they are kept in."""

    def __init__(self, path: Path, about: Mapping[str, Any], rows: dict[str, BenchRow], damaged: int) -> None:
        self.path, self.about, self.rows, self.damaged = path, about, rows, damaged

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> Self:
        """The file to go on with, or a new one. Raises ConfigError when it holds the answers of another model or setting."""
        rows: dict[str, BenchRow] = {}
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        except OSError as error:
            raise files.store_error("Could not read the results", path, error) from error
        damaged = 0
        if any(lines):
            _check_header(path, lines[0], about)
            for line in filter(None, lines[1:]):
                row = _parse_row(line)
                damaged += row is None
                if row is not None:
                    rows[row.id] = row
        results = cls(path, about, rows, damaged)
        if not any(lines):
            results._append_line({"schema": SCHEMA, **about})
        return results

    def add(self, row: BenchRow) -> None:
        """Keep a row: on the disk when this returns. Raises StoreError."""
        self._append_line(asdict(row))
        self.rows[row.id] = row

    @property
    def cost(self) -> float:
        return sum(row.cost or 0.0 for row in self.rows.values())

    def _append_line(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            fd = os.open(self.path, files.APPEND | os.O_CREAT, files.PRIVATE_FILE)
            try:
                end = os.lseek(fd, 0, os.SEEK_END)
                if end:
                    os.lseek(fd, end - 1, os.SEEK_SET)
                    line = line if os.read(fd, 1) == b"\n" else b"\n" + line
                files.write_all(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            raise files.store_error("Could not write the results", self.path, error) from error


def _check_header(path: Path, line: bytes, about: Mapping[str, Any]) -> None:
    header = _parse_object(line)
    if header is None or header.get("schema") != SCHEMA:
        raise ConfigError(
            f"{path} is no file of results", cause="it does not begin with our header", fix="name another file with --output"
        )
    for name, value in about.items():
        if header.get(name) != value:
            cause = f"its {name} is {header.get(name)!r}, and now it would be {value!r}"
            raise ConfigError(f"{path} cannot be gone on with", cause=cause, fix="name another file with --output")


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parse_row(line: bytes) -> BenchRow | None:
    """A row as it was written; None for what is torn, or was written by somebody else."""
    value = _parse_object(line)
    if value is None or not isinstance(value.get("id"), str):
        return None
    known = {name: value[name] for name in BenchRow.__struct_fields__ if name in value}
    for name in ("citations", "read"):
        known[name] = tuple(map(str, known.get(name) or ()))
    sound = all(isinstance(known.get(name, 0), int | float | None) for name in NUMBER_FIELDS)
    return BenchRow(**known) if sound and isinstance(known.get("answer", ""), str) else None


NUMBER_FIELDS = ("pages", "model_calls", "tokens", "cost", "seconds", "supported", "checked", "conflicts")
