"""Comparison with the files of tests/golden. To record one again, delete it, run its test, and read what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parent / "golden"


def compare_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"tests/golden/{name} was not there and has been written: read it")
    assert text == path.read_text(encoding="utf-8")
