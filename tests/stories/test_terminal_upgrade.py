"""The story of an upgrade: a home that the last release wrote, in the hands of today's code."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.stories.world import FACT, QUESTION, World

LAST_RELEASE = "bbd9c59"
TIDES = "What raises the tides of the oceans?"


@pytest.fixture
def old_code(tmp_path: Path) -> Path:
    """The tree of the last release."""
    if not shutil.which("git"):
        pytest.skip("git is not installed, so the last release cannot be unpacked")
    command = ["git", "archive", f"{LAST_RELEASE}^{{tree}}", "nexi"]
    archive = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"commit {LAST_RELEASE}, the last release, is not in this clone")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
        tree.extractall(tmp_path / "old", filter="data")
    return tmp_path / "old"


def test_a_home_of_the_last_release_is_read_asked_and_added_to(world: World, old_code: Path) -> None:
    notes = world.folder / "notes"
    notes.mkdir()
    (notes / "shed.md").write_text("# Shed\n\nThe shed key hangs behind the blue door.\n")
    old = {"PYTHONPATH": str(old_code)}
    answers = [world.run(question, **old) for question in (QUESTION, TIDES)]
    assert [answer.code for answer in answers] == [0, 0]
    assert world.run("index", str(notes), **old).code == 0

    history = re.sub(r"\d+s ago \((m, \d iter), \d+s\)", r"TIME (\1)", world.run("--last", "2").out)
    assert history == (
        f'[1] TIME (m, 4 iter): "{TIDES}"\n'
        "    The Moon raises the tides of the oceans on Earth. [1]\n    http://WEB/tides.test/moon\n    ID: ID\n\n"
        f'[2] TIME (m, 3 iter): "{QUESTION}"\n    {FACT} [1]\n'
        "    http://WEB/moon.test/facts\n    http://WEB/orbit.test/moon\n    http://WEB/tides.test/moon\n    ID: ID"
    )
    assert answers[-1].out.partition("\n")[0] in world.run("--prev").out.splitlines()
    assert world.run_list() == f"ID  TIME  finished    search    {TIDES}\nID  TIME  finished    search    {QUESTION}"
    replays = [world.run("replay", run_id) for run_id in world.run_ids()]
    assert [replay.err for replay in replays] == ["Run ID: same answer, byte for byte."] * 2
    assert [replay.out for replay in replays] == [answer.out.partition("\n")[0] for answer in answers]

    assert world.run("--local", QUESTION).out == answers[0].out
    assert world.run("--local", "Where does the shed key hang?").out.startswith("The shed key hangs behind the blue door. [1]")
    orbit = world.run("How long does the Moon take to go round the Earth?")
    assert (orbit.code, orbit.out.partition("\n")[0]) == (0, "The Moon goes round the Earth in 27.3 days. [1]")
    assert len(world.history()) == 5
    checks = world.run("doctor").out.splitlines()
    assert [line[:3] for line in checks if "knowledge " in line] == ["ok "]
