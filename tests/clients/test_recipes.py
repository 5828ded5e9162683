"""The recipes of the handbook, word for word, against a real server."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from nexi.web.guard import GuardRules
from tests.clients.programs import PYTHON, needs_clients
from tests.web.world import MANY, MOON, serving

SERVER = Path(__file__).resolve().parents[2] / "docs" / "server.md"
ADDRESS = "http://127.0.0.1:8000"
KEY = "the token, or any word"
RECIPE = re.compile(r"^\*\*(?P<name>[^*]+)\*\*[^\n]*\n\n```(?P<kind>\w+)\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = SERVER.read_text(encoding="utf-8").partition("## Clients")[2].partition("\n## Runs")[0]
RECIPES = {found["name"]: found for found in RECIPE.finditer(SECTION)}


def test_there_is_a_recipe_of_about_five_lines_for_each_client() -> None:
    assert set(RECIPES) == {
        "curl",
        "The OpenAI client",
        "The Tavily client",
        "LangChain, and other clients of SearXNG",
        "Open WebUI",
        "text-generation-webui",
    }
    assert all(len(found["lines"].split("\n")) <= 7 for found in RECIPES.values())
    assert all(f"nexi mcp install {client}\n" in SECTION for client in ("claude", "cursor", "codex"))


@needs_clients
@pytest.mark.parametrize("name", [name for name, found in RECIPES.items() if found["kind"] == "py"])
async def test_a_program_of_the_handbook_runs_as_it_stands(tmp_path: Path, name: str) -> None:
    token = "a-token-for-clients"
    keyed = "key=" in RECIPES[name]["lines"]
    async with serving(tmp_path, rules=GuardRules(token=token) if keyed else MANY) as served:
        program = RECIPES[name]["lines"].replace(ADDRESS, served.base).replace(KEY, token)
        told = await run(str(PYTHON), "-W", "ignore", "-c", program)
    assert "384,400 km" in told
    assert MOON in told or not keyed


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="no curl or bash")
async def test_the_lines_for_curl_run_as_they_stand(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        told = await run("bash", "-euc", RECIPES["curl"]["lines"].replace(ADDRESS, served.base))
    assert "event: run_finished" in told
    assert f"[Moon facts]({MOON})" in told or MOON in told
    assert '"schema":"ucp-1"' in told


async def run(*command: str) -> str:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "NO_PROXY": "*", "PYTHONWARNINGS": "ignore"}
    piped = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=piped, stderr=piped, env=environment)
    out, err = await asyncio.wait_for(process.communicate(), 300)
    if b"ModuleNotFoundError" in err:
        pytest.skip("the client is not installed in .venv-clients")
    assert process.returncode == 0, err.decode()
    return out.decode()
