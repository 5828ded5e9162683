"""A scripted model that lies in every known way: nothing of it gets past --strict, and otherwise each lie is marked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from nexi.app import open_runs
from nexi.app.conversation import load_last_conversation
from nexi.config import Config
from nexi.errors import LLMError, VerificationError
from nexi.events import AnswerChecked, ModelAsked, RunFailed, RunFinished, TextDelta, Warned
from nexi.history import FileHistory
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading
from nexi.types import Message, Reply, StopReason, Usage, Verdict
from nexi.verify import MARK
from tests.scenarios.world import World

Make = Callable[..., Config]

BRIDGE, TOWER, OLD = "https://bridge.example/facts", "https://tower.example/facts", "https://old.example/news"
PAGES = {
    BRIDGE: "Bridge facts\n\nThe Golden Gate Bridge opened to traffic on May 27, 1937. Its main span is 1,280 metres long. "
    "The chief engineer was Joseph Strauss. The bridge does not carry any trains. "
    'Strauss said that "the bridge is a thing of beauty" at the opening.',
    TOWER: "Tower facts\n\nThe Eiffel Tower in Paris is 330 metres tall. It was completed in March 1889 for the World's Fair. "
    "About 6.3 million people visited the tower in 2023.",
    OLD: "Old news\n\nIn 1999 the tower had 5.9 million visitors. Gustave Eiffel's company built the tower.",
}
TRUE = "The Golden Gate Bridge opened to traffic on May 27, 1937 [1]."
LIES = {
    "wrong number": "The main span of the Golden Gate Bridge is 1,820 metres long [1].",
    "wrong date": "The Golden Gate Bridge opened to traffic on June 27, 1937 [1].",
    "stale date": "About 6.3 million people visited the Eiffel Tower in 2025 [2].",
    "wrong name": "The chief engineer of the Golden Gate Bridge was Gustave Eiffel [1].",
    "negation": "The Golden Gate Bridge carries trains [1].",
    "wrong page": "The Golden Gate Bridge was painted by robots from Oslo [2].",
    "invented quote": 'Strauss said that "no storm will ever move this bridge" at the opening [1].',
    "no citation": "The Golden Gate Bridge has 47 hidden tunnels under its towers.",
    "merged": "The Golden Gate Bridge was completed in March 1889 for the World's Fair [1][2].",
}
QUESTION = f"What do {BRIDGE}, {TOWER} and {OLD} say?"


def lying(config: Config, answer: str, *more: Reply | LLMError | Callable[[Sequence[Message]], Reply]) -> World:
    return World(config, reading(BRIDGE, TOWER, OLD), answering(answer), *more, web=FakeWeb(PAGES))


def corrections(*texts: str) -> Reply:
    sentences = [{"n": n, "text": text} for n, text in enumerate(texts, 1)]
    return Reply(json.dumps({"sentences": sentences}), usage=Usage(200, 40))


def released(world: World) -> str:
    return "".join(e.text for e in world.events if isinstance(e, TextDelta))


def count_rewrites(world: World) -> int:
    return sum(isinstance(f, ModelAsked) and f.purpose == "correct" for f in world.facts)


@pytest.mark.parametrize("lie", LIES)
async def test_no_lie_gets_past_strict(make_config: Make, lie: str) -> None:
    world = lying(make_config(strict=True), f"{TRUE} {LIES[lie]} {TRUE}", corrections(LIES[lie]))
    result = await world.ask(QUESTION)
    assert result.answer.text == released(world) == f"{TRUE} {TRUE}"
    assert [claim.text for claim in result.answer.review.dropped] == [LIES[lie]]
    assert "left_out" in [f.code for f in world.facts if isinstance(f, Warned)]


@pytest.mark.parametrize("lie", LIES)
async def test_without_strict_every_lie_is_marked_and_the_truth_is_not(make_config: Make, lie: str) -> None:
    world = lying(make_config(), f"{TRUE} {LIES[lie]} {TRUE}", corrections(LIES[lie]))
    result = await world.ask(QUESTION)
    assert result.answer.text == released(world) == f"{TRUE} {LIES[lie]}{MARK} {TRUE}"
    assert result.answer.review.marked == (1,)
    assert result.answer.review.proof.figures() == "2 of 3 sentences found in the cited pages"


async def test_invented_addresses_are_removed_and_read_ones_become_citations(make_config: Make) -> None:
    text = (
        f"The Eiffel Tower in Paris is 330 metres tall [(source)](https://tower.example/facts). {TRUE[:-1]}"
        "(https://made-up.example/a). See https://made-up.example/b and [more](https://made-up.example/c)."
    )
    world = lying(make_config(strict=True), text, corrections(""))
    result = await world.ask(QUESTION)
    assert "made-up.example" not in result.answer.text + released(world)
    assert "tall (source) [2]." in result.answer.text
    assert "unknown_address" in [f.code for f in world.facts if isinstance(f, Warned)]


async def test_a_wrong_page_is_put_right_when_another_supports_the_sentence(make_config: Make) -> None:
    world = lying(make_config(), "The Eiffel Tower in Paris is 330 metres tall [1].")
    result = await world.ask(QUESTION)
    assert (result.answer.text, result.answer.review.recited) == ("The Eiffel Tower in Paris is 330 metres tall [2].", 1)
    assert count_rewrites(world) == 0


async def test_the_model_is_asked_once_for_all_that_failed_and_what_it_rewrites_is_checked(make_config: Make) -> None:
    answer = f"{TRUE} {LIES['wrong number']} {LIES['wrong date']} {LIES['negation']}"
    rewritten = "The main span of the Golden Gate Bridge is 1,280 metres long [1]."
    world = lying(make_config(), answer, corrections(rewritten, "Still in June 1937 [1].", ""), corrections("never asked"))
    result = await world.ask(QUESTION)
    assert result.answer.text == released(world) == f"{TRUE} {rewritten} {LIES['wrong date']}{MARK}"
    review = result.answer.review
    assert (count_rewrites(world), review.corrected, len(review.dropped), review.asked) == (1, 1, 1, True)
    prompt = world.llm.requests[-1][-1].content
    assert all(LIES[lie] in prompt for lie in ("wrong number", "wrong date", "negation"))
    assert "1,280 metres" in prompt


async def test_the_correction_is_counted_and_logged(make_config: Make) -> None:
    world = lying(make_config(), LIES["wrong number"], corrections(TRUE))
    result = await world.ask(QUESTION)
    assert (result.finished.model_calls, result.finished.iterations) == (3, 2)
    assert result.finished.usage.total == 110 + 110 + 240


async def test_a_spent_budget_allows_no_correction(make_config: Make) -> None:
    world = lying(make_config(max_tokens=30_000), LIES["wrong number"], corrections(TRUE))
    world.llm.steps[1] = Reply("", answering(LIES["wrong number"]).tool_calls, Usage(29_800, 150), "tool_calls")
    result = await world.ask(QUESTION)
    assert (result.answer.text, count_rewrites(world)) == (LIES["wrong number"] + MARK, 0)
    assert not result.answer.review.asked


async def test_a_stop_allows_no_correction_and_keeps_the_answer(make_config: Make) -> None:
    world = lying(make_config(), f"{TRUE} {LIES['negation']}", corrections(TRUE))

    def stop(run: object, event: object) -> None:
        if isinstance(event, TextDelta):
            run.stop()  # type: ignore[attr-defined]

    result = await world.ask(QUESTION, on_event=stop)
    assert result.answer.text == released(world) == f"{TRUE} {LIES['negation']}{MARK}"
    assert count_rewrites(world) == 0


async def test_a_stop_while_the_model_corrects_marks_what_failed(make_config: Make) -> None:
    world = lying(make_config(), f"{TRUE} {LIES['negation']}")
    never = asyncio.Event()

    class Stuck(ScriptedLLM):
        async def complete(self, messages: Sequence[Message], tools: object = (), **options: object) -> Reply:
            if options.get("schema"):
                await never.wait()
            return await super().complete(messages, tools, **options)  # type: ignore[arg-type]

    world.llm = Stuck(*world.llm.steps)
    world.roles = {"answer": world.llm, "extract": world.llm}

    def stop(run: object, event: object) -> None:
        if isinstance(event, ModelAsked) and event.purpose == "correct":
            run.stop()  # type: ignore[attr-defined]

    result = await world.ask(QUESTION, on_event=stop)
    assert result.answer.text == released(world) == f"{TRUE} {LIES['negation']}{MARK}"


@pytest.mark.parametrize("reply", [Reply("I am sorry."), Reply('{"sentences": "all fine"}'), LLMError("down", code="server")])
async def test_a_correction_that_cannot_be_read_changes_nothing(make_config: Make, reply: Reply | LLMError) -> None:
    world = lying(make_config(), f"{LIES['wrong date']} {TRUE}", reply)
    result = await world.ask(QUESTION)
    assert result.answer.text == f"{LIES['wrong date']}{MARK} {TRUE}"


async def test_a_strict_answer_of_lies_alone_is_none_and_says_what_was_left_out(make_config: Make) -> None:
    world = lying(make_config(strict=True), f"{LIES['wrong number']} {LIES['negation']}", corrections())
    with pytest.raises(VerificationError) as failed:
        await world.ask(QUESTION)
    assert (failed.value.exit_code, released(world)) == (5, "")
    kinds = [f.kind for f in world.facts if isinstance(f, AnswerChecked | RunFailed | RunFinished)]
    assert kinds == ["answer_checked", "run_failed"]


async def test_the_proof_is_committed_before_the_end_and_is_of_the_text_as_shown(make_config: Make) -> None:
    world = lying(
        make_config(), f"{TRUE}\n\n- {LIES['negation']}\n- The bridge does not carry any trains [1].\n", corrections()
    )
    result = await world.ask(QUESTION)
    assert [f.kind for f in world.facts[-2:]] == ["answer_checked", "run_finished"]
    claims = result.answer.review.proof.claims
    assert [result.answer.text[c.start : c.end] for c in claims] == [c.text for c in claims]
    assert [c.verdict for c in claims if c.index not in result.answer.review.marked] == [Verdict.FOUND] * 2


async def test_a_follow_up_is_checked_against_pages_of_earlier_runs(make_config: Make) -> None:
    config = make_config()
    first = lying(config, TRUE)
    await first.ask(QUESTION)
    session = await load_last_conversation(open_runs(config), FileHistory(config.history_path))
    session.pages.clear()  # only the stored texts are left
    second = World(config, answering(f"{TRUE} {LIES['negation']}"), corrections(), web=FakeWeb({}))
    result = await second.ask("Again?", session=session)
    assert result.answer.text == f"{TRUE} {LIES['negation']}{MARK}"
    assert result.answer.stop is StopReason.FINAL_ANSWER
