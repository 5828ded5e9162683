"""A whole search through Debian's searx over the loopback web, where the package `searx` is installed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb, scripted_llm, searx
from tests.contract.pages import HTML

QUESTION = "How far is the Moon from Earth on average?"

pytestmark = pytest.mark.skipif(bool(searx.missing()), reason=searx.missing())


async def asked(home: Path, base: str, web: str, *words: str, **env: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command, which knows the search engine and may read the loopback web."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "nexi",
        *words,
        env={
            "PATH": os.environ["PATH"],
            "NEXI_HOME": str(home),
            "SEARXNG_URL": base,
            "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc,
            **env,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_question_is_searched_read_and_answered_through_a_real_searx(tmp_path: Path) -> None:
    with miniweb.serve(miniweb.Corpus(HTML)) as web, scripted_llm.serve() as model, searx.serve(tmp_path, web) as base:
        found = await asked(tmp_path / "a", base, web, "find", "moons of Mars Phobos Deimos", "--json")
        env = {"OPENAI_BASE_URL": f"{model}/v1", "NEXI_MODEL": "scripted"}
        by_model = await asked(tmp_path / "b", base, web, "--json", QUESTION, **env)
        without = await asked(tmp_path / "c", base, web, "--json", "-m", "extractive", QUESTION)
    first = json.loads(found[1])
    assert (found[0], first["backend"], first["hits"][0]["url"]) == (0, "searxng", f"{web}/mars.test/facts"), found
    for code, out, err in (by_model, without):
        answer = json.loads(out)
        assert (code, answer["sources"][0]["url"]) == (0, f"{web}/moon.test/facts"), err
        assert "384,400 km" in answer["answer"]
