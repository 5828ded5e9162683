"""An ordinary search that was cut off goes on like research does, also one that continues a conversation."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nexi.app import Nexi, RunResult
from nexi.config import Config
from nexi.events import ModelReplied, PageFetched, RunResumed
from nexi.runs.session import Session
from nexi.types import Message, Reply
from tests.research.test_resume import counts_cut_calls, cut_after
from tests.research.world import FINDINGS, PAGES, PromptModel, SlowWeb, _called, nexi_over, play

Make = Callable[..., Config]
FIRST, SECOND = "How far is the Moon?", "And when do its tides come?"


class SearchModel(PromptModel):
    """Searches once, reads what it found, and answers with what the pages in sight say; a follow-up does so anew."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        asked = max(i for i, m in enumerate(messages) if m.role == "user")
        here = [m for m in messages[asked:] if m.role == "tool"]
        if not here:
            return _called("web_search", len(messages), queries=[messages[asked].content, "Moon facts"])
        if len(here) == 1:
            urls = list(dict.fromkeys(re.findall(r'"url": "([^"]+)"', here[0].content)))
            return _called("web_get", len(messages), urls=urls[:2], get_full=True)
        told = "\n".join(m.content for m in messages if m.role == "tool")
        numbers = {title: n for n, title in re.findall(r"\[(\d+)\] https://\w+\.example/facts\\n---\\n# (\w+)", told)}
        lines = " ".join(f"{FINDINGS[title]} [{n}]." for title, n in numbers.items())
        return _called("final_answer", len(messages), answer=lines)


async def ended(nexi: Nexi, question: str, session: Session) -> RunResult:
    async with nexi.search(question, session=session) as run:
        async for _ in run:
            pass
        return run.result()


def talked(config: Config, *questions: str) -> list[RunResult]:
    async def work() -> list[RunResult]:
        async with nexi_over(config, SlowWeb(PAGES), SearchModel()) as nexi:
            session = Session()
            return [await ended(nexi, question, session) for question in questions]

    return play(work)


def resumed(config: Config, run_id: str, web: SlowWeb) -> tuple[RunResult, SearchModel]:
    model = SearchModel()

    async def work() -> RunResult:
        nexi = nexi_over(config, web, model)
        async with nexi, nexi.resume(run_id, pace=asyncio.sleep) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work), model


def differences(config: Config, whole: RunResult, tmp_path: Path, earlier: Sequence[str] = ()) -> dict[int, object]:
    """What differs when the run is cut off after each of its facts."""
    lines = (config.runs_dir / whole.id / "log.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[int, object] = {}
    replies = sum(isinstance(f, ModelReplied) for f in whole.facts)
    for facts in range(1, len(lines) - 1):
        there = cut_after(config, whole.id, facts, tmp_path / f"{whole.id}-{facts}")
        for run in earlier:
            folder = there.runs_dir / run
            folder.mkdir()
            (folder / "log.jsonl").write_bytes((config.runs_dir / run / "log.jsonl").read_bytes())
        web = SlowWeb(PAGES)
        result, model = resumed(there, whole.id, web)
        answered = sum('"kind":"model_replied"' in line for line in lines[: facts + 1])
        read = sum('"kind":"page_fetched"' in line for line in lines[: facts + 1])
        repeated = (len(model.asked) - (replies - answered), len(web.fetched) - (_pages(whole) - read))
        same = (result.answer.text, result.answer.sources) == (whole.answer.text, whole.answer.sources)
        is_counted = counts_cut_calls(lines[: facts + 1], result.finished.usage, whole.finished.usage)
        if not same or any(n > 0 for n in repeated) or not is_counted or result.id != whole.id:
            found[facts] = (json.loads(lines[facts])["fact"]["kind"], same, repeated, result.finished.usage)
    return found


def _pages(result: RunResult) -> int:
    return sum(isinstance(f, PageFetched) for f in result.facts)


def test_a_search_cut_off_after_any_fact_ends_with_the_same_answer_and_repeats_nothing(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the cut is made by hand, and the disk is slow
    config = make_config()
    (whole,) = talked(config, FIRST)
    assert "384,400 km" in whole.answer.text
    assert differences(config, whole, tmp_path) == {}


def test_a_follow_up_cut_off_after_any_fact_ends_with_the_same_answer(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    config = make_config()
    first, second = talked(config, FIRST, SECOND)
    assert differences(config, second, tmp_path, [first.id]) == {}


def test_searches_and_follow_ups_are_replayed_byte_for_byte_without_a_network(make_config: Make) -> None:
    config = make_config()
    results = talked(config, FIRST, SECOND)

    async def work() -> list[bool]:
        async with nexi_over(config, SlowWeb({}), SearchModel()) as nexi:
            return [(await nexi.replay(result.id)).is_same for result in results]

    assert play(work) == [True, True]


def test_a_resumed_run_says_so_and_counts_the_time_it_had_worked(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    (whole,) = talked(config, FIRST)
    there = cut_after(config, whole.id, 8, tmp_path / "there")
    result, _ = resumed(there, whole.id, SlowWeb(PAGES))
    (again,) = [f for f in result.facts if isinstance(f, RunResumed)]
    assert again.after == 8
    assert result.finished.seconds >= again.seconds > 0


def test_a_follow_up_is_replayed_also_when_the_run_before_it_is_gone(make_config: Make) -> None:
    config = make_config()
    first, second = talked(config, FIRST, SECOND)

    async def work() -> bool:
        async with nexi_over(config, SlowWeb({}), SearchModel()) as nexi:
            nexi.runs().remove(first.id)
            return (await nexi.replay(second.id)).is_same

    assert play(work)
