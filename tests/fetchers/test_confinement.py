"""The process that reads a document has no keys, no network, no files of the user, and does not outlive the fetch."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest

from nexi.config._environment import READER_VARIABLES
from nexi.fetchers import apart
from nexi.formats.worker import MAX_CPU_S, main
from nexi.tasks import FairPlaces
from nexi.types import FetchLimits
from tests.fetchers.site import response
from tests.fetchers.test_http import fetching
from tests.formats.documents import pdf

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections are Linux's")
TRIES = """
import sys; sys.path.insert(0, sys.argv.pop())
import json, os, socket
from nexi.formats.confinement import confine_process
out = {"confined": sorted(confine_process())}
def attempt(name, act):
    try:
        act(); out[name] = "done"
    except OSError as error:
        out[name] = error.__class__.__name__
attempt("socket", lambda: socket.socket())
attempt("udp", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
attempt("unix", lambda: socket.socketpair())
attempt("read", lambda: open(NOTE).read())
attempt("write", lambda: open(NOTE, "a"))
attempt("keys", lambda: open(f"/proc/{os.getppid()}/environ").read())
attempt("library", lambda: os.listdir(os.path.dirname(os.__file__)))
print(json.dumps({"read": {"text": json.dumps(out)}}))
"""


@linux_only
async def test_the_reader_reaches_no_network_and_no_file_of_the_user(tmp_path: Path) -> None:
    in_force = await apart.find_protections()
    if in_force != {"network", "files"}:
        pytest.skip(f"this kernel or the sandbox around it allows only {sorted(in_force)}")
    note = tmp_path / "note.txt"
    note.write_text("private")
    program = f"NOTE = {str(note)!r}{TRIES}"
    tried = json.loads((await apart.read_apart(b"", "x/y", 1_000, origin="web", program=program)).text)
    refused = dict.fromkeys(("socket", "udp", "unix", "read", "write", "keys"), "PermissionError")
    assert tried == {"confined": ["files", "network"], **refused, "library": "done"}


@linux_only
async def test_the_program_of_the_reader_is_confined_before_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr("nexi.formats.worker.die_with_parent", lambda: steps.append("die with parent"))
    monkeypatch.setattr("nexi.formats.worker.confine_process", lambda files: steps.append("confine"))
    monkeypatch.setattr("nexi.formats.worker._limit_resources", lambda room: steps.append("limit"))
    monkeypatch.setattr("nexi.formats.worker.extract", lambda *_, **__: steps.append("parse") or 1 / 0)  # type: ignore[func-returns-value]
    monkeypatch.setattr(sys, "argv", ["worker", "text/csv", "0", "10", "web", ""])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(ZeroDivisionError):
        main()
    assert steps == ["die with parent", "limit", "confine", "parse"]


@linux_only
async def test_the_reader_has_its_limit_of_computing_time_and_of_memory() -> None:
    limits = (
        "import json, resource; from nexi.formats import worker; worker._limit_resources(1_000_000);"
        "found = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_AS)];"
        "print(json.dumps({'read': {'text': json.dumps(found)}}))"
    )
    program = f"{apart._FIND_NEXI}{limits}"
    computing_s, core, room = json.loads((await apart.read_apart(b"", "x/y", 1_000, origin="web", program=program)).text)
    assert (computing_s, core, 0 < room < 2_000_000_000) == (MAX_CPU_S, 0, True)


@linux_only
@pytest.mark.parametrize(
    ("lack", "limits"),
    [
        ("pathlib.Path.read_text = lambda *_: open('/proc/none')", [True, False]),
        ("sys.modules['resource'] = None", [False, False]),
    ],
    ids=["no /proc, as on macOS", "no limits, as on Windows"],
)
async def test_a_system_that_lacks_a_limit_keeps_the_others(lack: str, limits: list[bool]) -> None:
    program = (
        f"{apart._FIND_NEXI}import json, pathlib, resource; from nexi.formats import worker; known = resource;"
        "find = lambda: [known.getrlimit(kind)[0] for kind in (known.RLIMIT_CPU, known.RLIMIT_AS)]; before = find();"
        f"{lack}; worker._limit_resources(1_000_000);"
        "changes = [old != new for old, new in zip(before, find(), strict=True)];"
        "sys.stdout.write(json.dumps({'read': {'text': json.dumps(changes)}}))"
    )
    changes = (await apart.read_apart(b"", "x/y", 1_000, origin="web", program=program)).text
    assert json.loads(changes) == limits


async def test_the_recogniser_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_tesseract(tmp_path, monkeypatch, "cat >/dev/null; env")
    for name in ("OPENAI_API_KEY", "SEARXNG_URL", "NEXI_DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "HOME"):
        monkeypatch.setenv(name, "secret")
    shown = (await apart.read_apart(PNG, "image/png", 10_000, origin="file")).text
    names = {line.partition("=")[0] for line in shown.splitlines()} - {"_", "PWD", "SHLVL", "OLDPWD", "LC_CTYPE"}
    assert names - set(READER_VARIABLES) == {"OMP_THREAD_LIMIT"}
    assert "secret" not in shown


@linux_only
async def test_a_fetch_that_ends_leaves_no_recogniser_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_tesseract(tmp_path, monkeypatch, "exec sleep 61417")
    reading = asyncio.create_task(apart.read_apart(PNG, "image/png", 10_000, origin="file"))
    await wait_until(lambda: running("61417"))
    reading.cancel()
    await asyncio.wait({reading})
    await wait_until(lambda: not running("61417"))


@linux_only
async def test_a_server_that_is_killed_leaves_neither_reader_nor_recogniser_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_tesseract(tmp_path, monkeypatch, "exec sleep 61418")
    program = (
        "import asyncio; from nexi.fetchers.apart import read_apart;"
        f"asyncio.run(read_apart({PNG!r}, 'image/png', 10, origin='file'))"
    )
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await wait_until(lambda: running("61418"))
    server.send_signal(signal.SIGKILL)
    await server.wait()
    await wait_until(lambda: not running("61418"))


async def test_the_time_of_a_page_does_not_run_while_another_document_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    expiries: list[float | None] = []

    class BusyWorker(FairPlaces):
        async def acquire(self, whose: Hashable) -> None:
            expiries.append(timer.when())
            await super().acquire(whose)

    monkeypatch.setattr(apart, "_workers", {asyncio.get_running_loop(): {"web": BusyWorker(1)}})
    async with asyncio.timeout(600) as timer:
        read = await apart.read_apart(pdf(["Tea"]), "application/pdf", 1_000, origin="web", timer=timer)
        expiries.append(timer.when())
    assert (read.text, [expiry is None for expiry in expiries]) == ("[page 1]\n\nTea", [True, False])


async def test_a_fetch_lets_its_time_stand_while_its_document_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.Timeout] = []
    pause = apart.pause_timeout
    monkeypatch.setattr(apart, "pause_timeout", lambda timer: timers.append(timer) or pause(timer))  # type: ignore[func-returns-value]
    async with fetching({"/a.pdf": response(pdf(["Tea"]), content_type="application/pdf")}) as (fetcher, site):
        await fetcher.fetch(site.url("/a.pdf"), FetchLimits())
    assert [type(timer) for timer in timers] == [asyncio.Timeout]


def install_tesseract(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program of this name in front of others, which runs a line of shell."""
    program = folder / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def running(argument: str) -> bool:
    """Whether a process with this argument lives."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
            is_dead = (entry.parent / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            continue
        if words[:2] == [b"sleep", argument.encode()] and not is_dead:
            return True
    return False


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)
