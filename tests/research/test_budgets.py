"""Budgets that end in an answer: reserved before, settled after, nested, told at 80 %, and taken up again with more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nexi.app import Nexi, RunLimits, RunRequest, RunResult
from nexi.budget import Budget, Meter
from nexi.config import Config
from nexi.errors import LLMError, NoEvidenceError
from nexi.events import LimitReached, ModelAsked, ModelFailed, ModelReplied, PageFetched, ResearcherReported, Warned
from nexi.model import count_prompt_tokens
from nexi.runs.directory import RunDirectory
from nexi.token_counter import TokenCounter
from nexi.types import Reply, StopReason, Usage
from tests.research.world import MOON, PAGES, QUESTION, LoopClock, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]

CALL_TOKENS = 120  # what a call of the scripted model costs at most
AT_ONCE = 3


def research(
    config: Config,
    model: PromptModel,
    *,
    time_target: float | None = None,
    within: Callable[[Any, Any], None] | None = None,
) -> RunResult:
    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), model)
        async with nexi, nexi.research(RunRequest(QUESTION, limits=RunLimits(time_target=time_target))) as run:
            async for event in run:
                if within:
                    within(run, event)
            return run.result()

    return play(work)


def resumed(config: Config, run_id: str, model: PromptModel, **limits: Any) -> RunResult:
    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), model)
        async with nexi, nexi.resume(run_id, changes=RunRequest("", limits=RunLimits(**limits))) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def repeated(first: PromptModel, second: PromptModel, result: RunResult) -> set[str]:
    """What was asked in both lives of a run although it had been answered in the first."""
    broken_off = {f.call for f in result.facts if isinstance(f, ModelFailed)}
    answered = [request for number, request in enumerate(first.asked, 1) if number not in broken_off]
    return set(answered) & set(second.asked)


def test_a_run_whose_money_is_spent_ends_with_a_report_and_overruns_by_the_calls_in_flight_at_most(make_config: Make) -> None:
    model = PromptModel()
    result = research(make_config(max_cost=0.008), model)
    assert result.answer.stop is StopReason.BUDGET_SPENT
    assert LimitReached(StopReason.BUDGET_SPENT) in result.facts
    assert result.answer.sources
    assert any("the budget is spent" in warning for warning in result.answer.warnings)
    assert result.finished.usage.cost <= 0.008 + 0.001  # by one call in flight
    assert result.finished.model_calls == len(model.asked)


@pytest.mark.parametrize("tokens", [30_000, 60_000])
def test_tokens_are_reserved_before_a_call_so_that_they_are_never_overrun(make_config: Make, tokens: int) -> None:
    model = PromptModel()
    config = make_config(max_tokens=tokens, max_output_tokens=2000)
    result = research(config, model)
    assert result.finished.usage.total <= tokens
    assert result.answer.text.strip()
    assert result.answer.sources


@pytest.mark.parametrize("most", [10, 14])
def test_a_budget_of_model_calls_is_kept_and_one_is_left_for_the_report(make_config: Make, most: int) -> None:
    model = Listening()
    result = research(make_config(max_model_calls=most), model)
    assert len(model.asked) <= most
    assert result.answer.stop is StopReason.BUDGET_SPENT
    assert result.answer.sources
    assert model.rules  # the evaluator was asked


def test_a_page_budget_holds_and_the_report_is_written(make_config: Make) -> None:
    result = research(make_config(max_pages=2), PromptModel())
    assert sum(isinstance(f, PageFetched) for f in result.facts) <= 2
    assert result.answer.sources


def test_a_time_target_ends_in_a_report(make_config: Make) -> None:
    result = research(make_config(), PromptModel(), time_target=2.0)
    assert result.answer.stop is StopReason.TIME_TARGET
    assert result.answer.sources
    assert result.finished.seconds <= 4.0


def test_a_researcher_spends_from_its_own_share_from_the_researchers_and_from_the_run() -> None:
    run = Meter(Budget(max_tokens=1000, max_model_calls=10))
    all_of_them = run.child(Budget(max_tokens=850), started=0)
    one, other = (all_of_them.child(Budget(max_tokens=400), started=0) for _ in range(2))
    first = one.reserve_call(400)
    assert not isinstance(first, StopReason)
    assert one.reserve_call(1) is StopReason.BUDGET_SPENT
    second = other.reserve_call(400)
    assert not isinstance(second, StopReason)
    assert (run.reserved_tokens, all_of_them.reserved_tokens, one.reserved_tokens) == (800, 800, 400)
    one.settle_call(first, Usage(10, 5))
    other.settle_call(second, Usage(20, 5))
    assert (run.usage.total, all_of_them.usage.total, one.usage.total, run.reserved_tokens) == (40, 40, 15, 0)


class Listening(PromptModel):
    """Keeps what the evaluator was told."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: list[str] = []

    async def complete(self, messages: Any, tools: Any = (), **rest: Any) -> Reply:
        if messages[0].content.startswith("You lead"):
            self.rules.append(messages[0].content)
        return await super().complete(messages, tools, **rest)


def test_at_eighty_percent_the_evaluator_is_told_and_when_it_is_spent_it_must_write(make_config: Make) -> None:
    plenty, scarce, spent = Listening(), Listening(), Listening()
    research(make_config(max_cost=1.0), plenty)
    research(make_config(max_cost=0.016), scarce)
    research(make_config(max_cost=0.0135), spent)
    assert not any("of the budget" in rules for rules in plenty.rules)
    assert "More than 80 % of the budget is used: finish soon." in scarce.rules[0]
    assert "The budget is spent." in spent.rules[-1]
    assert '"delegate"' not in spent.rules[-1]


def test_a_spent_budget_is_taken_up_with_a_larger_one_and_no_answered_call_is_repeated(make_config: Make) -> None:
    first, second = PromptModel(), PromptModel()
    poor = research(make_config(max_cost=0.008), first)
    rich = resumed(make_config(max_cost=1.0), poor.id, second)
    assert rich.answer.stop is StopReason.FINAL_ANSWER
    assert repeated(first, second, poor) == set()
    assert rich.finished.usage.cost == pytest.approx(0.001 * (len(first.asked) + len(second.asked)))
    assert {s.url for s in poor.answer.sources} <= {s.url for s in rich.answer.sources}


def test_a_run_that_was_stopped_is_taken_up_and_no_answered_call_is_repeated(make_config: Make) -> None:
    first, second = PromptModel(), PromptModel()

    def stop(run: Any, event: Any) -> None:
        if isinstance(event, ResearcherReported):
            run.stop()

    short = research(make_config(), first, within=stop)
    assert short.answer.stop is StopReason.CANCELLED
    whole = resumed(make_config(), short.id, second)
    assert whole.answer.stop is StopReason.FINAL_ANSWER
    assert repeated(first, second, short) == set()


class Dying(PromptModel):
    """Answers so many calls and is then gone."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    async def complete(self, messages: Any, tools: Any = (), **rest: Any) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise LLMError("the model is gone", code="connect")
        return await super().complete(messages, tools, **rest)


def test_after_a_dead_provider_there_is_a_report_from_passages_and_a_run_that_can_be_taken_up(make_config: Make) -> None:
    first, second = Dying(11), PromptModel()
    cut = research(make_config(), first)
    assert cut.answer.stop is StopReason.API_ERROR
    assert any(isinstance(f, Warned) and f.code == "extractive" for f in cut.facts)
    whole = resumed(make_config(), cut.id, second)
    assert whole.answer.stop is StopReason.FINAL_ANSWER
    assert set(first.asked) & set(second.asked) == set()


class Circling(PromptModel):
    """A researcher that searches for the same again and again."""

    def reply(self, messages: Any, tools: Any) -> Reply:
        made = super().reply(messages, tools)
        if "scrape" in tools and made.tool_calls and made.tool_calls[0].name == "final_answer":
            first = next(m for m in messages if m.tool_calls)
            call = first.tool_calls[0]
            return Reply("", (type(call)(f"again_{len(messages)}", call.name, call.arguments),), Usage(100, 10), "tool_calls")
        return made


def test_a_researcher_that_goes_round_in_circles_is_ended_with_what_it_read(make_config: Make) -> None:
    result = research(make_config(), Circling(rounds=1))
    reports = [f for f in result.facts if isinstance(f, ResearcherReported)]
    assert {report.stop for report in reports} == {StopReason.REPEATED}
    assert result.answer.sources


class JumpingClock(LoopClock):
    """A wall clock that is set forward and back by a day while a run works."""

    def __init__(self) -> None:
        self.asked = 0

    def now(self) -> datetime:
        self.asked += 1
        return super().now() + timedelta(days=(0, 1, -1)[self.asked // 20 % 3])


def jumping(config: Config, model: PromptModel) -> Nexi:
    llms = {"answer": model, "extract": model, "judge": model}
    web = SlowWeb(PAGES)
    return Nexi(config, clock=JumpingClock(), llms=llms, backends=[web], fetchers=[web])


def test_clock_jumps_change_nothing(make_config: Make, tmp_path: Path) -> None:
    config = make_config(home=tmp_path / "other")
    steady = research(make_config(), PromptModel(), time_target=60)

    async def work() -> tuple[RunResult, float]:
        async with (
            jumping(config, PromptModel()) as nexi,
            nexi.research(RunRequest(QUESTION, limits=RunLimits(time_target=60))) as run,
        ):
            async for _ in run:
                pass
            log = RunDirectory(config.runs_dir, config.pages_dir, LoopClock()).open_log(run.id)
            return run.result(), log.seconds

    result, seconds = play(work)
    assert (result.answer.text, result.answer.stop) == (steady.answer.text, steady.answer.stop)
    assert result.finished.seconds == steady.finished.seconds
    assert seconds == pytest.approx(steady.finished.seconds, abs=0.1)


def test_a_run_that_is_taken_up_after_the_clock_was_set_forward_has_the_time_it_had(make_config: Make) -> None:
    config = make_config()

    async def cut() -> str:
        async with (
            jumping(config, PromptModel()) as nexi,
            nexi.research(RunRequest(QUESTION, limits=RunLimits(time_target=60))) as run,
        ):
            async for event in run:
                if isinstance(event, ResearcherReported):
                    break
        return run.id

    run_id = play(cut)
    path = config.runs_dir / run_id / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # a kill would have left it without its end
    result = resumed(config, run_id, PromptModel(), time_target=60)
    assert result.answer.stop is StopReason.FINAL_ANSWER
    assert result.finished.seconds < 30


def test_a_run_killed_when_its_budget_was_all_but_spent_still_uses_what_it_had_read(make_config: Make) -> None:
    config, model = make_config(), PromptModel()
    whole = research(config, model)
    path = config.runs_dir / whole.id / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if b'"kind":"researcher_reported"' in line)
    path.write_bytes(b"".join(lines[:cut]))
    read = {f.url for f in whole.facts if isinstance(f, PageFetched) and f.url == MOON}
    assert read
    spent = sum(f.usage.cost or 0 for f in whole.facts if isinstance(f, ModelReplied)) * (cut / len(lines))
    again = PromptModel()
    result = resumed(config.override(max_cost=spent / 2), whole.id, again)
    assert result.answer.stop is StopReason.BUDGET_SPENT
    assert result.answer.sources
    assert [f for f in result.facts if isinstance(f, ModelAsked)]


def test_a_limit_of_the_question_holds_through_kills_at_any_fact_with_the_calls_in_flight_counted(
    make_config: Make,
) -> None:
    config, first = make_config(max_output_tokens=2000), PromptModel()

    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), first)
        async with nexi, nexi.research(RunRequest(QUESTION, limits=RunLimits(max_cost=0.012))) as run:
            async for _ in run:
                pass
            return run.result()

    whole = play(work)
    path = config.runs_dir / whole.id / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for cut in range(4, len(lines), 9):
        path.write_bytes(b"".join(lines[:cut]))
        paid = sum(b'"kind":"model_asked"' in line for line in lines[:cut])
        again = PromptModel()
        with suppress(NoEvidenceError):
            resumed(config, whole.id, again)
        assert (cut, paid + len(again.asked)) <= (cut, 13)  # a call costs $0.001: the limit and one in flight


def test_a_research_budget_below_the_estimate_is_named_before_anything_is_spent(make_config: Make) -> None:
    model = PromptModel()
    seen: list[int] = []

    def note(run: Any, event: Any) -> None:
        if isinstance(event, Warned) and "15,000 tokens" in event.message:
            seen.append(len(model.asked))

    config = make_config(max_tokens=15_000, base_url="http://127.0.0.1:9/v1", model="prompted", api_key="k")
    research(config, model, within=note)
    assert seen == [0]


def test_a_small_token_budget_is_used_by_shorter_replies_and_never_called_spent_while_it_is_not(make_config: Make) -> None:
    model = PromptModel()
    result = research(make_config(max_tokens=9_000), model)
    assert len(model.asked) > 3
    assert result.finished.usage.total <= 9_000


class BillingModel(PromptModel):
    """Bills the tokens that it is sent, tools included, by a tokenizer that may make more of them than the one of the run."""

    def __init__(self, ratio: float) -> None:
        super().__init__()
        self.ratio, self.counter = ratio, TokenCounter()

    async def complete(self, messages: Any, tools: Any = (), **rest: Any) -> Reply:
        reply = await super().complete(messages, tools, **rest)
        sent = count_prompt_tokens(self.counter, messages, tools, 0)
        written = self.counter.count(reply.text + "".join(call.arguments for call in reply.tool_calls))
        return replace(reply, usage=Usage(int(sent * self.ratio), written, cost=0.0))


@pytest.mark.parametrize("ratio", [1.0, 1.4])
@pytest.mark.parametrize("tokens", [12_000, 15_000, 20_000])
def test_a_small_token_budget_is_spent_on_a_report_and_never_overrun(make_config: Make, tokens: int, ratio: float) -> None:
    result = research(make_config(max_tokens=tokens), BillingModel(ratio))
    assert tokens * 0.75 <= result.finished.usage.total <= tokens
    assert result.answer.sources


def test_a_researcher_may_spend_what_those_before_it_left(make_config: Make) -> None:
    plenty, scarce = BillingModel(1.0), BillingModel(1.0)
    research(make_config(), plenty)
    research(make_config(max_tokens=20_000), scarce)
    assert len(scarce.asked) == len(plenty.asked)
