"""A real Qdrant server for tests: the binary that `make test-qdrant` unpacks, on loopback, in a folder of its own.

    with running_qdrant(Path("build/qdrant/package/bin/qdrant")) as url: ...

The binary is for x86_64. Elsewhere Debian's `qemu-user` runs it, with the amd64 libraries of the packages in `LIBRARIES`.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARIES = "libc6-amd64-cross libgcc-s1-amd64-cross"
START_S = 120.0  # an emulated processor takes its time


@contextmanager
def running_qdrant(binary: Path) -> Iterator[str]:
    """The address of a server that is ready; it ends with the block, and its folder with it."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="nexi-qdrant-", dir=memory))
    http, grpc = _free_port(), _free_port()
    settings = {
        "QDRANT__SERVICE__HOST": "127.0.0.1",
        "QDRANT__SERVICE__HTTP_PORT": str(http),
        "QDRANT__SERVICE__GRPC_PORT": str(grpc),
        "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
        "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
        "QDRANT__TELEMETRY_DISABLED": "true",
        "QDRANT__LOG_LEVEL": "WARN",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*_emulator(), str(binary.resolve())], cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log
        )
        try:
            url = f"http://127.0.0.1:{http}"
            _await_ready(f"{url}/readyz", process, folder / "log")
            yield url
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _emulator() -> list[str]:
    if platform.machine() == "x86_64":
        return []
    if not (program := shutil.which("qemu-x86_64")):
        raise SystemExit(f"the binary is for x86_64: apt-get install qemu-user {LIBRARIES}")
    return [program, "-L", "/usr/x86_64-linux-gnu"]


def _await_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"Qdrant ended at its start: {log.read_text(errors='replace')[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=1):  # loopback
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"Qdrant was not ready within {START_S:.0f} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
