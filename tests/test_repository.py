"""What a newcomer and a forge read: targets, the workflow, the table of mutants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rig.mutate import CORES, MIN_KILLED, TABLE, Mutant, Result, make_mutants, save_results
from rig.release import read_changes, read_version

ROOT = Path(__file__).resolve().parent.parent
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def read_workflow() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")))


def test_every_target_is_phony_and_every_one_that_is_documented_exists() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    documents = [path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]]
    named = {name for text in documents for name in re.findall(r"`make ([a-z-]+)", text)}
    assert {name for line in phony for name in line.split()} == TARGETS
    assert named - TARGETS == set()


def test_the_workflow_tests_every_python_that_is_supported() -> None:
    jobs = read_workflow()["jobs"]
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert oldest is not None
    assert jobs["test"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(oldest[1]), 15)]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands == ["make test", "make test-long", "make check", "make mutate"]


def test_every_core_that_is_mutated_has_tests() -> None:
    paths = [path.partition("::")[0] for core in CORES for path in (core.path, *core.tests)]
    missing = [path for path in paths if not (ROOT / path).is_file()]
    assert missing == []


def test_a_mutant_differs_in_one_place() -> None:
    source = 'def grow(n: int = 1) -> int:\n    """Add."""\n    if n > 1 and not n:\n        note(n)\n    return n\n'
    changes = {(mutant.line, mutant.change) for mutant in make_mutants(source)}
    assert changes == {
        (1, "1 -> 0"),
        (1, "1 -> 2"),
        (3, "negated condition"),
        (3, "And -> Or"),
        (3, "Gt -> GtE"),
        (3, "1 -> 0"),
        (3, "1 -> 2"),
        (3, "not x -> x"),
        (4, "call dropped"),
        (5, "return None"),
    }
    assert len({mutant.source for mutant in make_mutants(source)}) == len(changes)


def test_no_test_patches_a_constant() -> None:
    patched = re.compile(r'setattr\((?:[^"\n]*"[A-Z][A-Z0-9_]+"|"[\w.]+\.[A-Z][A-Z0-9_]+")|setitem\(\w+\.[A-Z]')
    sources = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    assert [f"{path.name}: {hit}" for path in sources for hit in patched.findall(path.read_text(encoding="utf-8"))] == []
    assert patched.findall('monkeypatch.setattr(house, "MAX_HOSTS", 2)\nm.setattr("nexi.a.PACE_S", 0)\nsetitem(a.TIMES_S, 1)')


# Where the floor is not reached, the share must not fall behind what was: the turn and the window were put into the module of
# the loop, and are tested by whole runs, which are not among the tests of this core.
REACHED = {"loop": 0.73}


def test_the_table_of_mutants_has_every_core_above_its_floor() -> None:
    rows = re.findall(r"^\| (\w+) \| `(\S+)` \| (\d+) \| (\d+) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(name, path) for name, path, _, _ in rows] == [(core.name, core.path) for core in CORES]
    floors = {core.name: REACHED.get(core.name, MIN_KILLED) for core in CORES}
    assert [name for name, _, total, killed in rows if int(killed) < floors[name] * int(total)] == []


def test_saving_one_core_keeps_the_rows_of_the_others(tmp_path: Path) -> None:
    first, second = CORES[:2]
    table = tmp_path / "mutation.md"
    save_results([Result(second, 9, (Mutant(1, "1 -> 2", ""),))], table)
    save_results([Result(first, 8, ())], table)
    save_results([Result(second, 10, ())], table)
    text = table.read_text(encoding="utf-8")
    assert re.findall(r"^\| (\w+) \| `\S+` \| (\d+) \| (\d+) \| (\d+ ?%) \|$", text, re.MULTILINE) == [
        (first.name, "8", "8", "100%"),
        (second.name, "10", "10", "100%"),
    ]
    assert text.endswith(f"\n\n## {first.name}\n\nnone\n\n## {second.name}\n\nnone\n")


def test_the_changelog_has_a_section_for_this_version() -> None:
    assert read_changes(read_version()).startswith("### Before you upgrade")
    assert read_changes("9.9.9") == ""
