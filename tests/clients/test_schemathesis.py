"""schemathesis, from an environment of its own, over the OpenAPI document of a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.web.world import serving

TOOL = Path(__file__).resolve().parents[2] / ".venv-clients" / "bin" / "schemathesis"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
LEFT_OUT = r"/v1/runs/\{id\}/events"  # a stream is read by tests/web


@pytest.mark.skipif(not TOOL.exists(), reason="no schemathesis in .venv-clients: make test-clients makes it")
async def test_what_the_document_says_holds_for_what_schemathesis_makes_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path, most_runs=10_000) as served:
        process = await asyncio.create_subprocess_exec(
            str(TOOL),
            "run",
            f"{served.base}/openapi.json",
            "--checks",
            CHECKS,
            "--exclude-path-regex",
            LEFT_OUT,
            "--max-examples",
            "4",
            "--phases",
            "fuzzing",
            "--seed",
            "8",
            "--request-timeout",
            "20",
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await asyncio.wait_for(process.communicate(), 300)
        assert process.returncode == 0, told.decode(errors="replace")[-8000:]
