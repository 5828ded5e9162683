"""Programs of an environment that has the official clients and not nexi; they print one JSON value."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

PYTHON = Path(__file__).resolve().parents[2] / ".venv-clients" / "bin" / "python"
needs_clients = pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-clients: make test-clients makes it")


async def run(program: str, *arguments: str) -> Any:
    """What the program printed; skips where the client it imports is not installed."""
    process = await asyncio.create_subprocess_exec(
        str(PYTHON),
        "-c",
        program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin", "NO_PROXY": "*"},
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    if process.returncode and b"ModuleNotFoundError" in err:
        pytest.skip(f"not in .venv-clients: {err.decode().strip().splitlines()[-1]}")
    assert process.returncode == 0, err.decode()
    return json.loads(out)
