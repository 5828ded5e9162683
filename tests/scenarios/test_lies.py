"""A scripted model that lies in every known way: with a judge nothing of it gets past --strict, and each lie has its mark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from nexi.answers.citations import drop_unknown
from nexi.app import open_runs
from nexi.app.conversation import load_last_conversation
from nexi.app.pair_models import grade_book, judge_key
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.errors import LLMError, VerificationError
from nexi.events import AnswerChecked, ModelAsked, RunFailed, RunFinished, TextDelta, Warned
from nexi.history import FileHistory
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading
from nexi.types import Message, Reply, StopReason, Usage, Verdict
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
STILL = "Still in June 1937 [1]."
QUESTION = f"What do {BRIDGE}, {TOWER} and {OLD} say?"


def judge_lies(messages: Sequence[Message]) -> Reply:
    """A judge that knows the lies."""
    lines = [line for line in messages[1].content.splitlines() if line.startswith("Sentence ")]
    bare = {drop_unknown(lie, set())[0].strip() for lie in (*LIES.values(), STILL)}
    entries = [
        {
            "n": n,
            "passages": [1, 2, 3],
            "differs": "",
            "verdict": "not_supported" if json.loads(line.partition(": ")[2]) in bare else "supported",
        }
        for n, line in enumerate(lines, 1)
    ]
    return Reply(json.dumps({"items": entries}), usage=Usage(300, 40))


def lying(config: Config, answer: str, *more: Reply | LLMError | Callable[[Sequence[Message]], Reply]) -> World:
    config = config.override(verify_judge=True)
    grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.95, 0.95, 0.05, 0.5, pairs=24))
    judge = ScriptedLLM(*[judge_lies] * 3, name="judge")
    return World(config, reading(BRIDGE, TOWER, OLD), answering(answer), *more, web=FakeWeb(PAGES), judge=judge)


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
async def test_without_strict_every_lie_is_marked_beside_the_text_and_the_truth_is_not(make_config: Make, lie: str) -> None:
    world = lying(make_config(), f"{TRUE} {LIES[lie]} {TRUE}", corrections(LIES[lie]))
    result = await world.ask(QUESTION)
    assert result.answer.text == released(world) == f"{TRUE} {LIES[lie]} {TRUE}"
    assert [claim.verdict.value for claim in result.answer.review.proof.claims] == ["supported", "not_found", "supported"]
    assert any(LIES[lie] in warning for warning in result.answer.warnings)


async def test_invented_addresses_are_removed_and_read_ones_become_citations(make_config: Make) -> None:
    text = (
        f"The Eiffel Tower in Paris is 330 metres tall [(source)](https://tower.example/facts). {TRUE[:-1]}"
        "(https://made-up.example/a). See https://made-up.example/b and [more](https://made-up.example/c)."
    )
    world = lying(make_config(strict=True), text, corrections(""))
    result = await world.ask(QUESTION)
    assert "made-up.example" not in result.answer.text + released(world)
    assert "tall (source) [1]." in result.answer.text
    assert "unknown_address" in [f.code for f in world.facts if isinstance(f, Warned)]


async def test_a_sentence_that_cites_another_page_stands_and_its_evidence_names_the_right_one(make_config: Make) -> None:
    text = "The Eiffel Tower in Paris is 330 metres tall [1]."
    result = await lying(make_config(), text).ask(QUESTION)
    (claim,) = result.answer.review.proof.claims
    assert (result.answer.text, claim.verdict, 2 in claim.numbers) == (text, Verdict.SUPPORTED, True)


async def test_the_model_is_asked_once_for_all_that_a_judge_rejected_and_what_it_writes_is_judged(make_config: Make) -> None:
    answer = f"{TRUE} {LIES['wrong number']} {LIES['wrong date']} {LIES['negation']}"
    rewritten = "The main span of the Golden Gate Bridge is 1,280 metres long [1]."
    world = lying(make_config(), answer, corrections(rewritten, STILL, ""), corrections("never asked"))
    result = await world.ask(QUESTION)
    assert (released(world), result.answer.text) == (answer, f"{TRUE} {rewritten} {LIES['wrong date']}")
    review = result.answer.review
    assert (count_rewrites(world), review.corrected, review.asked) == (1, 1, True)
    assert [(c.before, c.after) for c in review.corrections] == [(LIES["wrong number"], rewritten), (LIES["negation"], "")]
    assert [result.answer.text[c.start : c.end] for c in review.proof.claims] == [c.text for c in review.proof.claims]
    prompt = world.llm.requests[-1][-1].content
    assert all(LIES[lie] in prompt for lie in ("wrong number", "wrong date", "negation"))
    assert "1,280 metres" in prompt


async def test_the_correction_is_counted_and_logged(make_config: Make) -> None:
    world = lying(make_config(), LIES["wrong number"], corrections(TRUE))
    result = await world.ask(QUESTION)
    assert (result.finished.model_calls, result.finished.iterations) == (5, 2)
    assert result.finished.usage.total == 110 + 110 + 340 + 240 + 340


async def test_a_spent_budget_allows_no_correction(make_config: Make) -> None:
    world = lying(make_config(max_tokens=30_000), LIES["wrong number"], corrections(TRUE))
    world.llm.steps[1] = Reply("", answering(LIES["wrong number"]).tool_calls, Usage(29_800, 150), "tool_calls")
    result = await world.ask(QUESTION)
    assert (result.answer.text, count_rewrites(world)) == (LIES["wrong number"], 0)
    assert not result.answer.review.asked


async def test_a_stop_allows_no_correction_and_keeps_the_answer(make_config: Make) -> None:
    world = lying(make_config(), f"{TRUE} {LIES['negation']}", corrections(TRUE))

    def stop(run: object, event: object) -> None:
        if isinstance(event, TextDelta):
            run.stop()  # type: ignore[attr-defined]

    result = await world.ask(QUESTION, on_event=stop)
    assert result.answer.text == released(world) == f"{TRUE} {LIES['negation']}"
    assert count_rewrites(world) == 0


async def test_a_stop_while_the_model_corrects_keeps_the_text(make_config: Make) -> None:
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
    assert result.answer.text == released(world) == f"{TRUE} {LIES['negation']}"


@pytest.mark.parametrize("reply", [Reply("I am sorry."), Reply('{"sentences": "all fine"}'), LLMError("down", code="server")])
async def test_a_correction_that_cannot_be_read_changes_nothing(make_config: Make, reply: Reply | LLMError) -> None:
    world = lying(make_config(), f"{LIES['wrong date']} {TRUE}", reply)
    result = await world.ask(QUESTION)
    assert result.answer.text == f"{LIES['wrong date']} {TRUE}"


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
    assert [c.verdict for c in claims] == [Verdict.SUPPORTED, Verdict.NOT_FOUND, Verdict.SUPPORTED]


async def test_a_follow_up_is_checked_against_pages_of_earlier_runs(make_config: Make) -> None:
    config = make_config()
    first = lying(config, TRUE)
    await first.ask(QUESTION)
    session = await load_last_conversation(open_runs(config), FileHistory(config.history_path))
    session.pages.clear()  # only the stored texts are left
    second = World(config, answering(f"{TRUE} {LIES['negation']}"), corrections(), web=FakeWeb({}))
    result = await second.ask("Again?", session=session)
    assert result.answer.text == f"{TRUE} {LIES['negation']}"
    assert result.answer.stop is StopReason.FINAL_ANSWER
