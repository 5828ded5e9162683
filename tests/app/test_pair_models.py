"""The judge of a run is tested once, within the run's means, and its grade is kept, recorded and used again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.app import pair_models
from nexi.app.pair_models import RunJudge, judge_key, kept_judge_grade
from nexi.budget import Budget, Meter
from nexi.checking.judge import Case
from nexi.checking.pages import prepare
from nexi.checking.quiz import Grade
from nexi.config import Config
from nexi.errors import LLMError
from nexi.events import Delta, Fact, Judged, ModelAsked, Warned
from nexi.model import MeteredLLM
from nexi.runs.recording import AgentReplay
from nexi.testing import FakeClock, ScriptedLLM
from nexi.token_counter import TokenCounter
from nexi.types import JudgeFigure, Reply, Usage
from tests.pair_models.toys import TOY_QUIZ, judge_years

SENTENCE = "The bridge was opened in 1859."
YES = ("supported", "", JudgeFigure("toy", 1.0, 20))
GRADE = Grade(1.0, 1.0, 0.0, 0.5, pairs=20, tokens=2000, cost=0.0002, tested_at="2026-01-02")


class Facts:
    """An emit that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[Fact] = []

    async def __call__(self, fact: Fact) -> None:
        self.told.append(fact)

    def delta(self, delta: Delta) -> None: ...

    def of(self, kind: type) -> list[Any]:
        return [fact for fact in self.told if isinstance(fact, kind)]


@pytest.fixture(autouse=True)
def toy_quiz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_models, "packaged_quiz", lambda: TOY_QUIZ)


class Bench:
    """A run's judge over a scripted model."""

    def __init__(self, config: Config, *steps: Any, track: AgentReplay | None = None, budget: Budget | None = None) -> None:
        self.llm = ScriptedLLM(*steps, name="toy")
        self.facts = Facts()
        self.meter = Meter(budget or Budget())
        clock = FakeClock()
        metered = MeteredLLM(
            self.llm, "judge", self.meter, self.facts, clock, TokenCounter("cl100k_base"), 32_000, replay=track or AgentReplay()
        )
        self.judge = RunJudge(config, metered).open(None)

    async def ask(self) -> tuple[str, str, JudgeFigure | None]:
        """The finding on one sentence, why there is none, and who made it."""
        judging = await self.judge.judge([Case(SENTENCE, (1,))], {1: prepare(SENTENCE)})
        return judging.judgements[0].finding, judging.judgements[0].reason, judging.judge


@pytest.fixture
def config(make_config: Callable[..., Config]) -> Config:
    return make_config(model="toy")


async def test_a_judge_that_was_tested_is_not_tested_again(config: Config) -> None:
    await Bench(config, *[judge_years] * 3).ask()
    bench = Bench(config, judge_years)

    assert await bench.ask() == YES
    assert len(bench.llm.requests) == 1
    assert bench.facts.of(Warned) == []


async def test_another_model_server_or_prompt_is_tested_for_itself(config: Config) -> None:
    await Bench(config, *[judge_years] * 3).ask()
    keys = {judge_key(c, TOY_QUIZ) for c in (config, config.override(model="other"), config.override(base_url="http://b/v1"))}
    assert len(keys) == 3
    folder = config.prompts_dir
    folder.mkdir(parents=True)
    (folder / "judge.md").write_text("Judge.", encoding="utf-8")
    assert kept_judge_grade(config) is None


async def test_a_judge_in_prose_is_tested_once_and_then_left_alone(config: Config) -> None:
    prose = Reply("All of them look fine to me.", (), Usage(800, 20), "stop")
    first = Bench(config, prose, prose, judge_years)
    assert await first.ask() == ("", "", None)
    second = Bench(config, judge_years)
    await second.ask()
    assert second.llm.requests == []


async def test_a_judge_that_cannot_be_reached_is_not_tried_in_every_run(config: Config) -> None:
    down = LLMError("the model did not answer", cause="connection refused", code="connect")
    reason = "the judge could not be asked (the model did not answer: connection refused)"
    assert await Bench(config, down, down).ask() == ("", f"toy could not be tested: {reason}", None)

    second = Bench(config, judge_years)
    assert await second.ask() == ("", f"toy could not be tested: {reason}", None)
    assert second.llm.requests == []


async def test_a_replay_uses_the_recorded_grade_and_tests_nobody(config: Config) -> None:
    original = Bench(config, *[judge_years] * 3)
    await original.ask()
    (config.state_dir / "judges.json").unlink()

    replayed = Bench(config, track=AgentReplay(original.facts.told, is_replay_only=True))
    assert await replayed.ask() == YES
    assert replayed.llm.requests == []
    assert len(replayed.facts.of(ModelAsked)) == 1
    assert replayed.facts.of(Judged) == original.facts.of(Judged)


async def test_a_replay_without_a_recorded_grade_has_a_gap(config: Config) -> None:
    bench = Bench(config, judge_years, track=AgentReplay(is_replay_only=True))
    assert await bench.ask() == ("", "toy was not tested when this run was recorded", None)
    assert bench.llm.requests == []


def test_without_a_model_there_is_no_judge_to_grade(make_config: Callable[..., Config]) -> None:
    assert kept_judge_grade(make_config(model="extractive")) is None


async def test_an_installed_model_that_is_damaged_answers_with_gaps_that_say_why(
    make_config: Callable[..., Config], tmp_path: Path
) -> None:
    config = make_config()
    (config.root / "proof" / "model").mkdir(parents=True)
    (config.root / "proof" / "model" / "manifest.json").write_text("{}")
    model = pair_models.InstalledPairModel(config, FakeClock()).pair_model()
    assert isinstance(model, pair_models._GapPairModel)
    (score,) = await model.score([(SENTENCE, SENTENCE)])
    assert (score.known, score.reason.startswith("The installed model cannot be used")) == (False, True)


def test_nothing_installed_is_no_model(make_config: Callable[..., Config]) -> None:
    assert pair_models.InstalledPairModel(make_config(), FakeClock()).pair_model() is None
