"""The list of reported defects names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_list_of_defects_names_exists() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", (ROOT / "tests" / "research" / "defects.md").read_text("utf-8"))
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text("utf-8")]
    assert (len(named) > 30, missing) == (True, [])
