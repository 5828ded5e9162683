"""The command against a loopback web and an endpoint that a test scripts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from nexi.app import SystemClock
from rig import miniweb
from tests.faults.command import PAGES, QUESTION, Outcome


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting before a retry takes no time but is written down."""
    slept: list[float] = []

    async def sleep(self: SystemClock, seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    return slept


@pytest.fixture
def environment(web: str, tmp_path: Path) -> dict[str, str]:
    without_judge = {"MODEL_CHOICE": "extractive"}  # a scripted model has no replies for it
    home = str(tmp_path / "nexi")
    return {"NEXI_HOME": home, "SEARXNG_URL": web, "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc, **without_judge}


@pytest.fixture
def ask(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[..., Outcome]:
    """`nexi --plain QUESTION` in this process; what asyncio would have to clean up after it counts as leaked."""
    leaked: list[str] = []
    clean_up: Any = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def note(loop: asyncio.AbstractEventLoop) -> None:
        leaked.extend(str(task) for task in asyncio.all_tasks(loop))
        clean_up(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", note)

    def run(*flags: str, base_url: str = "") -> Outcome:
        from nexi.cli import main

        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if base_url:
            monkeypatch.setenv("OPENAI_BASE_URL", base_url)
            monkeypatch.setenv("NEXI_MODEL", "faulty")
        with pytest.raises(SystemExit) as ended:
            main(["--plain", *flags, QUESTION])
        complaints = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        said = capsys.readouterr()
        return Outcome(ended.value.code or 0, said.out, said.err, Path(environment["NEXI_HOME"]), (*leaked, *complaints))  # type: ignore[arg-type]

    return run
