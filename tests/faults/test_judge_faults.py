"""A judge that cannot be asked lowers nothing: the answer stands as it was checked, and the gap is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from nexi.app import Nexi, RunLimits, RunRequest, RunResult
from nexi.app.pair_models import grade_book, judge_key
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.errors import LLMError
from nexi.events import ModelAsked, ModelFailed
from nexi.types import Reply, Verdict
from tests.research.test_search_resume import FIRST, SearchModel
from tests.research.world import PAGES, LoopClock, SlowWeb, play

Make = Callable[..., Config]
FAULTS = {
    "429": LLMError("the model is asked too often", code="rate_limit", status=429),
    "503": LLMError("the model's server has a fault", code="server", status=503),
    "truncated": LLMError("the reply broke off", code="stream_closed"),
    "malformed": Reply("no JSON at all"),
    "hanging": None,
}


class Judge:
    """Fails in one way whenever it is asked; a hanging one is ended at the deadline it was given."""

    name = "judge"

    def __init__(self, fault: LLMError | Reply | None) -> None:
        self._fault = fault

    async def complete(self, *_: Any, deadline: float | None = None, **__: Any) -> Reply:
        if self._fault is None:
            assert deadline is not None
            await asyncio.sleep(deadline - asyncio.get_running_loop().time())
            raise LLMError("the model took too long", code="timeout")
        if isinstance(self._fault, Reply):
            return self._fault
        raise self._fault


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_stands_when_its_judge_fails(make_config: Make, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    config = make_config(verify_judge=True, knowledge=False)
    grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.9, 0.9, 0.1, 0.5, pairs=60))

    async def work() -> RunResult:
        llms: dict[str, Any] = {"answer": SearchModel(), "extract": SearchModel(), "judge": Judge(FAULTS[fault])}
        web = SlowWeb(PAGES)
        nexi = Nexi(config, clock=LoopClock(), llms=llms, backends=[web], fetchers=[web])
        async with nexi, nexi.search(RunRequest(FIRST, limits=RunLimits(time_target=20.0))) as run:
            async for _ in run:
                pass
            return run.result()

    result = play(work)
    failed = [f.code for f in result.facts if isinstance(f, ModelFailed)]
    assert "384,400 km" in result.answer.text
    assert [f.purpose for f in result.facts if isinstance(f, ModelAsked)][-1] == "judge"
    known = FAULTS[fault]
    code = known.code if isinstance(known, LLMError) else "cancelled" if known is None else ""
    assert failed == ([code] if code else [])
    assert result.answer.review is not None
    assert {claim.verdict for claim in result.answer.review.proof.checked} == {Verdict.FOUND}
    assert result.answer.review.gap.startswith("The sentences were not judged: ")
