"""Programs of an environment that has the official clients and not nexi; they print one JSON value."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
OPENWEBUI = ROOT / ".venv-openwebui" / "bin" / "python"
needs_clients = pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-clients: make test-clients makes it")
needs_openwebui = pytest.mark.skipif(
    not OPENWEBUI.exists(), reason="no .venv-openwebui: make test-clients OPENWEBUI=1 makes it"
)


async def run(program: str, *arguments: str, python: Path = PYTHON) -> Any:
    """What the program printed; skips where the client it imports is not installed."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-c",
        program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin", "NO_PROXY": "*"},
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    if process.returncode and b"ModuleNotFoundError" in err:
        pytest.skip(f"not in {python.parents[1].name}: {err.decode().strip().splitlines()[-1]}")
    assert process.returncode == 0, err.decode()
    return json.loads(out)
