"""Questions asked at once, within a budget, and kept as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.app import RunRequest, RunResult
from nexi.bench import BenchQuestion, BenchRow, Results, ask_questions
from nexi.errors import ConfigError, LLMError, NexiError
from nexi.events import Fact, RunFailed, RunFinished
from nexi.runs.session import Session
from nexi.types import Answer, StopReason, Usage
from tests.raising import has_code

ABOUT = {"model": "m", "effort": "m"}


class Answering:
    """Answers everything at a price; `failing` says for which questions not."""

    def __init__(self, cost: float = 0.0, **failing: NexiError) -> None:
        self.cost, self.failing = cost, failing
        self.asked: list[str] = []
        self.budgets: list[float | None] = []

    @asynccontextmanager
    async def search(self, request: RunRequest) -> AsyncIterator[Ended]:
        self.asked.append(request.question)
        self.budgets.append(request.limits.max_cost)
        yield Ended(Usage(5, 5, cost=self.cost), self.failing.get(request.question))


class Ended:
    """A run that has nothing more to say."""

    def __init__(self, usage: Usage, error: NexiError | None) -> None:
        self.usage, self.error = usage, error

    async def drive(self) -> None:
        await asyncio.sleep(0)

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (RunFailed("unreachable", "away", "", "", StopReason.API_ERROR, 1, self.usage, 0.1),)

    def result(self) -> RunResult:
        if self.error:
            raise self.error
        end = RunFinished("Yes [1].", (), StopReason.FINAL_ANSWER, 1, self.usage, 0.1, 2, 3)
        return RunResult("run", Answer("Yes [1]."), end, (), Session())


async def bench(nexi: Any, results: Results, *names: str, **settings: Any) -> bool:
    questions = [BenchQuestion(name, name, ("yes",)) for name in names]
    return await ask_questions(nexi, questions, results, RunRequest(""), **settings)


async def test_every_question_becomes_a_row(tmp_path: Path) -> None:
    nexi, results = Answering(0.5), Results.open(tmp_path / "r.jsonl", ABOUT)
    told: list[str] = []
    await bench(nexi, results, "a", "b", "c", workers=2, tell=lambda asked, row: told.append(asked.id))
    assert sorted(told) == ["a", "b", "c"]
    row = results.rows["a"]
    assert (row.answer, row.pages, row.model_calls, row.tokens, row.cost, row.run, row.error) == (
        "Yes [1].",
        2,
        3,
        10,
        0.5,
        "run",
        "",
    )


async def test_what_has_an_answer_is_not_asked_again_but_what_failed_is(tmp_path: Path) -> None:
    nexi, results = Answering(), Results.open(tmp_path / "r.jsonl", ABOUT)
    results.add(BenchRow("a", "done"))
    results.add(BenchRow("b", error="no_evidence: nothing was found"))
    results.add(BenchRow("c", error="timeout: too slow"))
    await bench(nexi, results, "a", "b", "c")
    assert sorted(nexi.asked) == ["b", "c"]


async def test_a_failure_is_a_row_and_the_bench_goes_on(tmp_path: Path) -> None:
    nexi = Answering(0.25, a=LLMError("the model is away", code="unreachable"))
    results = Results.open(tmp_path / "r.jsonl", ABOUT)
    await bench(nexi, results, "a", "b", workers=1)
    row = results.rows["a"]
    assert (row.error, row.cost, row.tokens) == ("unreachable: the model is away", 0.25, 10)
    assert results.rows["b"].answer == "Yes [1]."


async def test_a_setting_that_is_wrong_ends_it_at_once(tmp_path: Path) -> None:
    nexi = Answering(a=ConfigError("no search service is configured"))
    results = Results.open(tmp_path / "r.jsonl", ABOUT)
    with pytest.raises(ConfigError, check=has_code("config")):
        await bench(nexi, results, "a", "b", workers=1)
    assert (nexi.asked, results.rows) == (["a"], {})


async def test_nothing_new_is_asked_once_the_budget_is_spent(tmp_path: Path) -> None:
    nexi, results = Answering(0.4), Results.open(tmp_path / "r.jsonl", ABOUT)
    is_out_of_budget = await bench(nexi, results, "a", "b", "c", "d", "e", workers=1, max_cost=1.0)
    assert (nexi.asked, is_out_of_budget) == (["a", "b", "c"], True)
    assert [round(b or 0, 1) for b in nexi.budgets] == [1.0, 0.6, 0.2]
