"""`nexi demo` and `make demo` at a terminal: nothing that is not so, and a line that moves while it installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rig.terminal import Picture, terminal

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PIP = (
    '#!/bin/sh\nfor name in httpx2 lxml; do echo "Collecting $name==1.0"; echo "  Downloading it"; done\nexit ${PIP_ENDS:-0}\n'
)


def test_the_demo_answers_from_the_handbook_and_names_nothing_that_cannot_be_shown(env: dict[str, str]) -> None:
    with_reader = {"SEARXNG_URL": "", "PYTHONPATH": str(ROOT)}
    with terminal(["demo"], {**env, **with_reader}, columns=90) as screen:
        screen.expect("Question: Which addresses does nexi refuse to fetch?")
        assert screen.ending() == 0
    shown = Picture(screen.raw).text
    assert shown.count("Question: ") == shown.count("Sources\n") == 3
    assert "Then a judge, a model that has passed a test, decides" in shown
    assert "Nexi refuses to fetch loopback, private, link-local" in shown
    assert "Nothing was saved: the demo uses a temporary folder. What to do next:\n" in shown
    assert shown.rstrip().endswith("nexi serve              open the web page")
    assert re.findall(r"--show|nexi export|nexi evidence|History|tool_call|->", shown) == []
    assert not Path(env["NEXI_HOME"]).exists()


@pytest.mark.parametrize(("ends", "code"), [("0", 0), ("1", 2)])
def test_make_shows_what_it_installs_on_one_line_and_stops_where_that_fails(tmp_path: Path, ends: str, code: int) -> None:
    if not shutil.which("make"):
        pytest.skip("needs make")
    for name in ("Makefile", "requirements.txt", "requirements-reader.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PIP)
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "--no-print-directory", f"PYTHON={sys.executable}", "VENV=env", "env/run.stamp"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PIP_ENDS": ends},
        capture_output=True,
        check=False,
    )
    begun, _, moving = done.stdout.decode().partition("\n")
    assert begun == "Installing what nexi needs into env; this takes a minute or two ..."
    assert moving.startswith("\r\x1b[K  httpx2==1.0\r\x1b[K  lxml==1.0\r\x1b[K")
    assert (done.returncode, (tmp_path / "env" / "run.stamp").exists()) == (code, code == 0)
