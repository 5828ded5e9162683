"""A run that a limit, a stop or a spent budget cut short is replayed to the same words, although no time passes then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from nexi.app import Nexi, RunLimits, RunOpening, RunRequest
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import LimitApplied, LimitNear, LimitReached
from tests.research.test_search_resume import SearchModel
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play, replayed

Make = Callable[..., Config]
AS_CONFIGURED = RunLimits()
Start = Callable[[Nexi, RunLimits], RunOpening]
DOORS: dict[str, Start] = {
    "quick": lambda nexi, limits: nexi.search(RunRequest(QUESTION, limits=limits)),
    "research": lambda nexi, limits: nexi.research(RunRequest(QUESTION, limits=limits)),
}

SPAN = {"quick": (0.6, 0.05), "research": (0.98, 0.17)}  # when the first run is ended, and how much later the next
MODELS: dict[str, Callable[[], PromptModel]] = {"quick": SearchModel, "research": PromptModel}


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


async def ended(nexi: Nexi, opening: RunOpening, stop_at: float | None) -> tuple[str, str, list[str]]:
    """The id, the answer ("" where there is none) and the limits of a run, stopped after so many seconds."""
    async with nexi, opening as run:
        if stop_at is not None:
            asyncio.get_running_loop().call_later(stop_at, run.stop)
        async for _ in run:
            pass
        try:
            answer = run.result().answer.text
        except NexiError:
            answer = ""
        limits = [f.kind for f in run.facts if isinstance(f, LimitReached | LimitApplied | LimitNear)]
        return run.id, answer, limits


def played(
    config: Config, door: str, limits: RunLimits = AS_CONFIGURED, stop_at: float | None = None
) -> tuple[str, str, list[str]]:
    async def work() -> tuple[str, str, list[str]]:
        nexi = nexi_over(config, SlowWeb(PAGES), MODELS[door]())
        return await ended(nexi, DOORS[door](nexi, limits), stop_at)

    return play(work)


def differences(make: Make, door: str, given: list[dict[str, float]]) -> tuple[dict[str, str], int, set[str]]:
    """What came out otherwise, how many runs had an answer and a limit, and which limits were seen."""
    wrong, limited, kinds = {}, 0, set[str]()
    for case in given:
        config = make(**{k: v for k, v in case.items() if k in ("max_tokens", "max_cost", "max_model_calls")})
        asked = RunLimits(time_target=case.get("time_target"))
        run_id, answer, limits = played(config, door, asked, case.get("stop_at"))
        if not answer:
            continue
        limited += bool(limits)
        kinds |= set(limits)
        if (again := replayed(make(), run_id)) != answer:
            wrong[str(case)] = f"{answer!r} != {again!r}"
    return wrong, limited, kinds


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("limit", ["time_target", "stop_at"])
def test_whenever_time_ends_it_the_same_words_come_again(make_config: Make, door: str, limit: str) -> None:
    first, apart = SPAN[door]
    wrong, limited, kinds = differences(make_config, door, [{limit: first + apart * step} for step in range(8)])
    assert wrong == {}
    assert limited
    assert "limit_applied" in kinds


@pytest.mark.parametrize("time_target", [1.41, 1.42, 1.43])
def test_a_researcher_whose_page_came_too_late_is_replayed_with_the_reason_it_had(
    make_config: Make, time_target: float
) -> None:
    assert differences(make_config, "research", [{"time_target": time_target}])[0] == {}


@pytest.mark.parametrize("door", DOORS)
def test_whatever_budget_ends_it_the_same_words_come_again(make_config: Make, door: str) -> None:
    cases: list[dict[str, float]] = [{"max_tokens": n} for n in range(9000, 60000, 12000)]
    cases += [{"max_cost": 0.001 * n} for n in (2, 4, 8)] + [{"max_model_calls": n} for n in (2, 5, 9)]
    wrong, limited, _ = differences(make_config, door, cases)
    assert wrong == {}
    assert limited >= 2
