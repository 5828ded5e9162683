"""schemathesis, from an environment of its own, over the OpenAPI document of a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nexi.web.guard import GuardRules
from tests.web.world import serving

TOOL = Path(__file__).resolve().parents[2] / ".venv-clients" / "bin" / "schemathesis"
TOKEN = "a-token-for-clients"
RULES = GuardRules(token=TOKEN, per_minute=1e9, burst=1e9)
LEFT_OUT = r"/v1/runs/\{id\}/events"  # a stream is read by tests/web
LIMIT_S = 900  # of a busy machine; an idle one takes a minute or two
SEMANTIC = "positive_data_acceptance"  # addresses that lead nowhere and runs without an answer are refused, however well-formed


@pytest.mark.skipif(not TOOL.exists(), reason="no schemathesis in .venv-clients: make test-clients makes it")
async def test_what_the_document_says_holds_for_what_schemathesis_makes_of_it(tmp_path: Path) -> None:
    """Every check but one: statuses, types and schemas of replies, wrong input and methods refused, the token asked for."""
    async with serving(tmp_path, most_runs=10_000, rules=RULES) as served:
        process = await asyncio.create_subprocess_exec(
            *(str(TOOL), "run", f"{served.base}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}"),
            *("--checks", "all", "--exclude-checks", SEMANTIC, "--exclude-path-regex", LEFT_OUT),
            *("--phases", "coverage,fuzzing,stateful", "--max-examples", "2", "--seed", "8", "--request-timeout", "20"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
        assert process.returncode == 0, told.decode(errors="replace")[-8000:]
