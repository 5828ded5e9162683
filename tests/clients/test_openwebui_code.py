"""Open WebUI's own code, from an environment of its own, against a real server: its engines, its loader, our plug-ins in it."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from nexi.apis.openai.chat_tasks import is_chat_task
from nexi.web.guard import GuardRules
from tests.web.world import MOON, PAGES, QUESTION, serving

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-openwebui" / "bin" / "python"
HOST = Path(__file__).with_name("openwebui_host.py")
TOKEN = "a-token-for-clients"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-openwebui: make test-clients OPENWEBUI=1 makes it")


async def told_by_open_webui(base: str, folder: Path) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        str(PYTHON),
        str(HOST),
        *(base, TOKEN, QUESTION, MOON, str(ROOT / "integrations" / "open_webui")),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "NO_PROXY": "*"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    if process.returncode and b"ModuleNotFoundError" in err:
        pytest.skip(f"not in .venv-openwebui: {err.decode().strip().splitlines()[-1]}")
    assert process.returncode == 0, err.decode()[-5000:]
    return dict(json.loads(out.decode().strip().splitlines()[-1]))


def test_every_task_of_open_webui_is_known_by_its_own_template_and_a_question_with_documents_is_none() -> None:
    (path,) = (PYTHON.parent.parent / "lib").glob("python*/site-packages/open_webui/config.py")
    assigned = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Assign)]
    texts = {ast.unparse(node.targets[0]): node.value.value for node in assigned if isinstance(node.value, ast.Constant)}
    tasks = {name: text for name, text in texts.items() if name.endswith("_GENERATION_PROMPT_TEMPLATE") and text}
    assert len(tasks) >= 7
    assert [name for name, text in tasks.items() if not is_chat_task(str(text))] == []
    assert is_chat_task("weather", str(texts["DEFAULT_TOOLS_FUNCTION_CALLING_PROMPT_TEMPLATE"]))
    assert not is_chat_task(str(texts["DEFAULT_RAG_TEMPLATE"]))


async def test_open_webui_searches_loads_and_runs_the_plug_ins_by_its_own_code(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", rules=GuardRules(token=TOKEN)) as served:
        told = await told_by_open_webui(served.base, tmp_path)
    hit = {"link": MOON, "title": "Moon facts", "snippet": PAGES[MOON]}
    assert told["engines"] == {
        "external": [hit],
        "only other sites": [],
        "external with a wrong key": [],
        "searxng": [hit],
        "tavily": [hit],
        "loader": [{"page_content": PAGES[MOON], "metadata": {"source": MOON, "title": "Moon facts"}}],
        "loader with a wrong key": [],
    }
    _check_pipe(told["pipe"])
    _check_filter(told["filter"])
    _check_tool(told["tool"])


def _check_pipe(pipe: dict[str, Any]) -> None:
    names = ["nexi-s", "nexi-m", "nexi-l", "nexi-deep", "nexi-local"]
    assert pipe["models"] == [f"nexi_pipe.{name}" for name in names]
    assert "384,400 km" in pipe["answer"]
    assert (pipe["streamed"], pipe["type"], pipe["ends"]) == (pipe["answer"], "pipe", ["stop", "data: [DONE]"])


def _check_filter(inlet: dict[str, Any]) -> None:
    assert (inlet["type"], inlet["plain"]) == ("filter", "moon")
    today, _, evidence = inlet["marked"].partition("\n")
    assert today.startswith("Today is ")
    assert evidence.startswith("[CONTEXT_PACK ucp-1]")
    assert evidence.endswith("\n\nmoon distance")
    assert MOON in inlet["cited"]


def _check_tool(tool: dict[str, Any]) -> None:
    assert tool["parameters"] == {"ask_the_web": ["question"], "read_web_page": ["url"], "search_the_web": ["query"]}
    assert tool["described"]
    assert "384,400 km" in tool["answer"]
    assert tool["search"].startswith("[CONTEXT_PACK ucp-1]")
    assert (tool["page"], set(tool["cited"]) >= {MOON}) == (PAGES[MOON], True)
