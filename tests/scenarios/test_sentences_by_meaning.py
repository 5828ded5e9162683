"""What a reader was once told wrongly about sentences: lies passed, true sentences lost, and reasons that were not true."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from nexi.app.pair_models import grade_book, judge_key
from nexi.checking.pages import prepare
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.checking.rules import check_claim
from nexi.config import Config
from nexi.errors import VerificationError
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching
from nexi.types import Message, Reply, Verdict
from tests.scenarios.world import World

Make = Callable[..., Config]
URL = "https://composers.example/alder"
PAGE = (
    "Ines Alder\n\nInes Alder was a Norwegian composer. She left Bergen in 1830, at the age of 20. Alder died in Lyon in 1849, "
    "of a fever. From 1837 to 1847 she lived with the writer Paul Brandt. Alder gave concerts in Graz in 1829."
)
WHERE = "Where did Ines Alder die?"
GOOD = Grade(0.9, 0.9, 0.1, 0.5, pairs=24, tokens=5_000)


def page_of(text: str = PAGE) -> dict[int, object]:
    return {1: prepare(text, URL)}


def reject_all(messages: Sequence[Message]) -> Reply:
    count = sum(line.startswith("Sentence ") for line in messages[1].content.splitlines())
    entries = [{"n": n + 1, "passages": [1], "differs": "Lyon", "verdict": "not_supported"} for n in range(count)]
    return Reply(json.dumps({"items": entries}))


def world_of(config: Config, answer: str, judge: ScriptedLLM | None = None) -> World:
    if judge:
        grade_book(config).put(judge_key(config, packaged_quiz()), GOOD)
    steps = (reading(URL), answering(answer))
    return World(config, *steps, web=FakeWeb({URL: PAGE}), **({"judge": judge} if judge else {}))


@pytest.mark.parametrize("answer", ["In Graz [1].", "Graz [1].", "Franz Ott [1]."])
async def test_a_strict_answer_of_a_few_words_must_stand_where_the_page_says_what_was_asked(
    make_config: Make, answer: str
) -> None:
    with pytest.raises(VerificationError):
        await world_of(make_config(strict=True), answer).ask(f"{URL} {WHERE}")


async def test_a_short_answer_is_judged_together_with_its_question(make_config: Make) -> None:
    judge = ScriptedLLM(reject_all, name="judge")
    config = make_config(strict=True, verify_judge=True, knowledge=False)
    with pytest.raises(VerificationError):
        await world_of(config, "In Graz [1].", judge).ask(f"{URL} {WHERE}")
    assert WHERE in judge.requests[0][1].content


def test_what_rules_find_is_said_to_have_its_words_in_the_passage_and_no_more() -> None:
    claim = check_claim("Alder the composer gave concerts in Graz [1].", page_of())
    assert (claim.verdict, claim.reason) == (Verdict.FOUND, "its words stand in this passage")


def test_what_a_passage_lacks_is_said_of_the_passage_and_not_of_the_page() -> None:
    claim = check_claim("Alder died in Bergen in 1849 [1].", page_of())
    assert claim.reason == "not in this passage: Bergen"


def test_a_value_of_another_event_contradicts_nothing() -> None:
    assert check_claim("Alder died in Bergen in 1849 [1].", page_of()).verdict is Verdict.NOT_FOUND


@pytest.mark.parametrize(
    "text",
    [
        "The film made $53,193,914 in all [1].",
        "About 1.3 billion people saw it [1].",
        "It was the twenty - fourth film of the studio [1].",
        "Its director was born in Graz in 1757 [1].",
    ],
)
def test_numbers_that_have_no_one_value_contradict_nothing(text: str) -> None:
    said = "The film made $ 53, 193, 914 in all. About 1. 3 billion people saw it."
    page = page_of(f"{said}\n\nIt was the twenty-fourth film of the studio.\n\nIts director was born in Graz in 1755 or 1756.")
    assert check_claim(text, page).verdict is not Verdict.CONTRADICTED


async def test_a_strict_warning_says_who_rejected_a_sentence(make_config: Make) -> None:
    def reject_second(messages: Sequence[Message]) -> Reply:
        verdicts = ("supported", "not_supported")
        entries = [{"n": n, "passages": [1], "differs": "", "verdict": v} for n, v in enumerate(verdicts, 1)]
        return Reply(json.dumps({"items": entries}))

    config = make_config(strict=True, verify_judge=True, knowledge=False)
    world = world_of(config, "Alder died in Lyon [1]. She gave concerts in 1829 [1].", ScriptedLLM(reject_second, name="judge"))
    result = await world.ask(f"{URL} {WHERE}")
    assert "1 of 2 sentences left out: a judge finds no support for them" in result.answer.warnings


async def test_a_text_about_something_else_is_not_rated_as_an_answer(make_config: Make) -> None:
    page = "Lakes of Varn\n\nThere are seven lakes in the Varn valley. The valley has a trademarked logo of a blue fish."
    steps = (searching("lakes Varn"), reading(URL), answering("It has a trademarked logo of a blue fish [1]."))
    world = World(make_config(), *steps, web=FakeWeb({URL: page}))
    assert (await world.ask("How many lakes are there in the Varn valley?")).answer.answered == "likely"
