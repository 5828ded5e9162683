"""The scripts of the page: their units under Node, and how they depend on each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from nexi.web.page.assets import static_bytes

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "nexi" / "web" / "page").glob("*.js")}
TESTS = sorted((ROOT / "tests" / "js").glob("*.test.js"))
MIN_NODE = (20,)


def test_the_units_of_the_scripts_hold() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so the units of the page's scripts are not tested (they need Node 20 or newer)")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)))[:1] < MIN_NODE:
        pytest.skip(f"the units of the page's scripts need Node 20 or newer, and this is {version.strip()}")
    done = subprocess.run([node, "--test", "--test-reporter=tap", *TESTS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"\n# pass {len(re.findall(r'^ok ', done.stdout, re.MULTILINE))}\n# fail 0\n" in done.stdout


def test_scripts_parse_as_they_are_sent() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, so the scripts are not parsed as they are sent")
    sources = json.dumps([static_bytes(name, False).decode() for name in sorted(SCRIPTS)])
    program = "for (const each of JSON.parse(require('fs').readFileSync(0))) new (require('vm').SourceTextModule)(each);"
    command = [node, "--no-warnings", "--experimental-vm-modules", "-e", program]
    done = subprocess.run(command, input=sources, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_script_imports_itself_by_a_detour() -> None:
    imports = {name: set(re.findall(r'(?:from |import\()"\./(\w+\.js)"', text)) for name, text in SCRIPTS.items()}
    assert list(TopologicalSorter(imports).static_order())[-1] == "app.js"


def test_the_state_is_written_in_one_script() -> None:
    writes = re.compile(r"\bstate\.\w+(?:\.\w+)?\s*(?:[-+|&?]{0,2}=(?!=)|\+\+|--)|Object\.assign\(state\b")
    assert {name: writes.findall(text) for name, text in SCRIPTS.items() if writes.search(text)} == {}
