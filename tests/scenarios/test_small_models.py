"""How a small model is used: nexi searches and reads, the model writes a sentence or two, and what fails is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nexi.app.pair_models import grade_book, judge_key
from nexi.app.resolve import _is_small_model, _keep_approach, _kept_approach, probe_tool_use
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.errors import LLMError, NoEvidenceError
from nexi.events import ModelAsked, RunStarted, ToolFinished, Warned
from nexi.llm.local import LocalModel
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching
from nexi.types import Reply, StopReason
from tests.scenarios.world import MARS, MOON, PAGES, QUESTION, VENUS, World

Make = Callable[..., Config]
SENTENCE = "The Moon is 384,400 km away from Earth on average [1]."
QUOTATION = "The Moon is 384,400 km from Earth on average. [1]"


def small_world(make_config: Make, *steps: Any, **options: Any) -> World:
    return World(make_config(model="qwen2.5-1.5b-instruct"), *steps, **options)


def warnings_of(world: World) -> list[str]:
    return [fact.code for fact in world.facts if isinstance(fact, Warned)]


async def test_a_small_model_gets_passages_in_one_call_and_no_tools(make_config: Make) -> None:
    world = small_world(make_config, Reply(SENTENCE))
    result = await world.ask()
    assert (result.answer.text, result.answer.stop) == (SENTENCE, StopReason.PLAIN_ANSWER)
    assert world.llm.offered == [()]
    assert [f.name for f in world.facts if isinstance(f, ToolFinished)] == ["web_search", "web_get"]
    assert warnings_of(world) == []


async def test_the_passages_stand_first_and_the_rules_after_the_question(make_config: Make) -> None:
    world = small_world(make_config, Reply(SENTENCE))
    await world.ask()
    ((message,),) = world.llm.requests
    assert message.content.startswith("Source [1], Moon facts:\nThe Moon is 384,400 km from Earth on average.")
    assert 0 < message.content.index(QUESTION) < message.content.index("one short full sentence")


async def test_a_sentence_that_fails_the_check_is_replaced_by_a_quotation(make_config: Make) -> None:
    world = small_world(make_config, Reply("The Moon is 12 km away from Earth on average [1]."))
    result = await world.ask()
    assert result.answer.text == QUOTATION
    assert warnings_of(world) == ["replaced"]
    assert len([f for f in world.facts if isinstance(f, ModelAsked)]) == 1


PLAGUE = "https://history.example/black-death"
BLACK_DEATH = (
    "The Black Death\n\nIt is thought to have come along the Silk Road, reaching Crimea by 1343. "
    "It entered Europe through Marseille and spread through France, eventually reaching England in the spring of 1349, where "
    "it spread through the country. Historians accept that it was not a form of influenza."
)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("When did the Black Death reach England?", "The Black Death reached England in the spring of 1349 [1]."),
        ("When did the Black Death reach England?", "The Black Death reached England in 1349 [1]."),
        ("Was the Black Death a form of influenza?", "No, the Black Death was not a form of influenza [1]."),
    ],
)
async def test_a_right_sentence_in_words_of_its_own_stands(make_config: Make, question: str, sentence: str) -> None:
    world = small_world(make_config, Reply(sentence), web=FakeWeb({PLAGUE: BLACK_DEATH}))
    result = await world.ask(question)
    assert (result.answer.text, warnings_of(world)) == (sentence, [])


async def test_a_manual_of_several_pages_is_shown_to_the_model_with_how_each_page_begins(make_config: Make) -> None:
    pages = {
        f"https://manual.example/{name}": f"{name} manual\n\nThe `{name}` command {does}. Options follow.\n\n"
        f"{'See the notes below. ' * 9}Use `{name} --dry-run` to see which files it would touch, and `{name} -f` to go on."
        for name, does in (("sweep", "removes files that nobody tracks any more"), ("brush", "cleans files that are tracked"))
    }
    world = small_world(make_config, Reply("I do not know."), web=FakeWeb(pages))
    await world.ask("How do I see which files would be touched?")
    ((message,),) = world.llm.requests
    assert "removes files that nobody tracks any more" in message.content
    assert "sweep --dry-run" in message.content


async def test_a_judge_that_knows_more_is_asked_once_about_the_sentence(make_config: Make) -> None:
    def support(messages: Any) -> Reply:
        return Reply('{"items": [{"n": 1, "passages": [1], "differs": "", "verdict": "supported"}]}')

    config = make_config(
        model="qwen2.5-1.5b-instruct", verify_judge=True, knowledge=False, roles={"judge": {"model": "large-judge"}}
    )
    grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.9, 0.9, 0.1, 0.5, pairs=24))
    judge = ScriptedLLM(support, name="large-judge")
    said = "Our nearest neighbour in space is about 384,400 km off [1]."
    result = await World(config, Reply(said), judge=judge).ask()
    assert (result.answer.text, len(judge.requests)) == (said, 1)


async def test_a_citation_before_its_sentence_is_moved_behind_it(make_config: Make) -> None:
    world = small_world(make_config, Reply("[1] The Moon is 384,400 km away from Earth on average."))
    assert (await world.ask()).answer.text == SENTENCE


async def test_a_sentence_that_only_repeats_the_question_is_replaced(make_config: Make) -> None:
    assert (await small_world(make_config, Reply("The Moon is far from Earth [1].")).ask()).answer.text == QUOTATION


async def test_a_sentence_with_a_name_from_another_passage_is_replaced(make_config: Make) -> None:
    page = "Moon facts\n\nThe Moon is 384,400 km from Earth on average.\n\nGalileo saw hills on the Moon."
    world = small_world(
        make_config, Reply("Galileo saw that the Moon is 384,400 km from Earth [1]."), web=FakeWeb({MOON: page})
    )
    assert "Galileo" not in (await world.ask()).answer.text


async def test_where_the_built_in_model_needs_two_pages_its_answer_stands(make_config: Make) -> None:
    pages = {
        "https://film.example/": "Silent Harbour\n\nSilent Harbour is a 1962 film directed by Marta Kallio.",
        "https://person.example/": "Marta Kallio\n\nMarta Kallio was a Finnish director who was born in Tampere.",
    }
    world = small_world(make_config, web=FakeWeb(pages))
    result = await world.ask("Where was the director of Silent Harbour born?")
    assert "Tampere" in result.answer.text
    assert world.llm.requests == []


async def test_a_second_sentence_that_fails_is_left_out(make_config: Make) -> None:
    world = small_world(make_config, Reply(f"{SENTENCE} It was built by Napoleon in 1742 [1]."))
    assert (await world.ask()).answer.text == SENTENCE


@pytest.mark.parametrize(
    "reply", ["", '{"tool": "web_search", "queries": ["moon"]}', "<tool_call>moon", "I do not know.", "la la la la " * 50]
)
async def test_what_is_no_answer_is_replaced_by_a_quotation(make_config: Make, reply: str) -> None:
    assert (await small_world(make_config, Reply(reply)).ask()).answer.text == QUOTATION


async def test_a_model_that_fails_leaves_the_answer_to_the_built_in_model(make_config: Make) -> None:
    world = small_world(make_config, LLMError("the model did not answer in time", code="timeout"))
    assert (await world.ask()).answer.text == QUOTATION
    assert warnings_of(world) == ["model_failed"]


async def test_a_comparison_that_the_built_in_model_decides_is_not_asked(make_config: Make) -> None:
    pages = {
        "https://a.example/": "Ada Lovelace\n\nAda Lovelace (10 December 1815 – 1852) was an English mathematician.",
        "https://b.example/": "Alan Turing\n\nAlan Turing (23 June 1912 – 1954) was an English mathematician.",
    }
    world = small_world(make_config, web=FakeWeb(pages))
    result = await world.ask("Who was born first, Ada Lovelace or Alan Turing?")
    assert result.answer.text.startswith("Ada Lovelace")
    assert world.llm.requests == []


async def test_a_page_is_ranked_whole_whatever_the_window_of_the_model(make_config: Make) -> None:
    late = "Stones lie about. " * 3_000 + "The Moon is 384,400 km from Earth on average."
    config = make_config(model="qwen2.5-1.5b-instruct", max_context=4_096)
    world = World(config, Reply(SENTENCE), web=FakeWeb({MOON: late}))
    await world.ask()
    assert "The Moon is 384,400 km from Earth on average." in world.llm.requests[0][0].content


async def test_with_nothing_to_read_there_is_no_answer(make_config: Make) -> None:
    world = small_world(make_config, Reply(SENTENCE), web=FakeWeb({}))
    with pytest.raises(NoEvidenceError):
        await world.ask()
    assert world.llm.requests == []


async def test_a_model_that_answers_before_it_calls_a_tool_is_told_once_and_then_gets_passages(make_config: Make) -> None:
    world = World(make_config(), Reply("I just know it."), Reply("I do know it."), Reply(SENTENCE))
    assert (await world.ask()).answer.text == SENTENCE
    assert [bool(names) for names in world.llm.offered] == [True, True, False]
    assert warnings_of(world) == ["guided"]


@pytest.mark.parametrize("first", [Reply("I just know it."), answering("I just know it.")])
async def test_a_model_that_answers_in_its_first_turn_and_reads_when_told_is_not_guided(
    make_config: Make, first: Reply
) -> None:
    world = World(make_config(), first, searching("moon"), reading(MOON), answering(SENTENCE))
    assert (await world.ask()).answer.text == SENTENCE
    assert warnings_of(world) == []


async def test_at_the_iteration_limit_the_question_itself_is_searched_for(make_config: Make) -> None:
    world = World(make_config(), searching("qqq zzz"), searching("xxx"))
    result = await world.ask(max_iterations=2)
    assert (result.answer.text, result.answer.stop) == (QUOTATION, StopReason.MAX_ITERATIONS)


async def test_a_model_that_has_called_a_tool_is_told_to_read_first(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), Reply("I just know it."), reading(MOON), answering(SENTENCE))
    assert (await world.ask()).answer.text == SENTENCE
    assert warnings_of(world) == []


async def test_a_model_that_only_searches_leaves_reading_and_answering_to_the_built_in_model(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), searching("moon distance"))
    result = await world.ask(max_iterations=2)
    assert (result.answer.text, result.answer.stop) == (QUOTATION, StopReason.MAX_ITERATIONS)
    said = "the iteration limit was reached before any page was read, so the built-in model read and answered"
    assert result.answer.warnings == (said,)


async def test_a_model_that_repeats_its_searches_leaves_the_answer_to_the_built_in_model(make_config: Make) -> None:
    world = World(make_config(), *[searching("moon")] * 4)
    result = await world.ask()
    assert (result.answer.text, result.answer.stop) == (QUOTATION, StopReason.REPEATED)


async def test_a_model_that_hangs_leaves_the_answer_to_the_built_in_model(make_config: Make) -> None:
    world = World(make_config(), LLMError("the model did not answer in time", code="timeout"))
    result = await world.ask()
    assert (result.answer.text, result.answer.stop) == (QUOTATION, StopReason.API_ERROR)
    said = "the model did not answer in time before any page was read, so the built-in model read and answered"
    assert result.answer.warnings == (said,)


async def test_a_model_that_babbles_over_what_it_read_leaves_the_answer_to_the_built_in_model(make_config: Make) -> None:
    babble = Reply("The Moon is far and far and far away. " * 40)
    world = World(make_config(), searching("moon"), reading(MOON, MARS, VENUS), babble)
    assert (await world.ask()).answer.text == QUOTATION
    assert warnings_of(world) == ["babble", "extractive"]


async def test_a_call_that_trickles_ends_after_five_timeouts(make_config: Make) -> None:
    world = World(make_config(llm_timeout=60, time_target=None), searching("moon"), reading(MOON), answering(SENTENCE))
    await world.ask()
    assert world.llm.deadlines == [world.clock.monotonic() + 300] * 3


async def test_the_pages_of_an_earlier_question_are_archived_and_stay_citable(make_config: Make) -> None:
    world = World(make_config(), Reply("I just know it."), Reply("I do know it."), Reply(SENTENCE))
    result = await world.ask()
    world.llm.steps += [answering("It has no air [1].")]
    again = await world.ask("Has the Moon air?", session=result.session)
    assert again.answer.text == "It has no air [1]."
    archived = [m.content for m in world.llm.requests[3] if m.role == "tool"]
    assert archived == [
        "[archived: this result was left out to save room; call the tool again to see it]",
        f"[archived: the pages [1] {MOON}, [2] {MARS}, [3] {VENUS} were read; call the tool again to see it]",
    ]


async def test_a_small_model_with_tools_has_old_results_archived_before_a_summary_is_asked_for(make_config: Make) -> None:
    config = make_config(model="some-7b", max_context=8_000, max_output_tokens=300)
    _keep_approach(config, "tools")
    pages = {
        f"https://moon.example/{n}": f"Moon {n}\n\nThe Moon is far, {n}. " + f"Stones of kind {n}. " * 240 for n in range(5)
    }
    steps = [searching("moon"), *(reading(url, get_full=True) for url in pages), answering("The Moon is far, 4 [5].")]
    world = World(config, *steps, web=FakeWeb(pages))
    await world.ask("What is the Moon?")
    assert len(world.llm.requests) == 7
    assert {f.purpose for f in world.facts if isinstance(f, ModelAsked)} == {"answer"}
    assert "archived" in next(m.content for m in world.llm.requests[-1] if m.role == "tool")


async def test_a_replay_of_a_run_of_a_small_model_comes_to_the_same_answer(make_config: Make) -> None:
    world = small_world(make_config, Reply(SENTENCE))
    result = await world.ask()
    started = next(f for f in world.facts if isinstance(f, RunStarted))
    assert (started.settings["approach"], started.settings["small_model"]) == ("passages", True)
    async with world.nexi() as nexi:
        assert (await nexi.replay(result.id)).is_same


async def test_a_model_that_searches_reads_and_answers_in_the_test_keeps_its_tools(make_config: Make) -> None:
    config, url = make_config(model="some-7b"), "https://ebenau.example/tower"
    llm = ScriptedLLM(searching("Ebenau tower height"), reading(url), answering("It is 57 metres high [1]."))
    assert await probe_tool_use(config, llm) == "tools"
    assert _kept_approach(config) == "tools"
    world = World(config, searching("moon"), reading(MOON), answering(SENTENCE))
    assert (await world.ask()).answer.text == SENTENCE


@pytest.mark.parametrize(
    "steps",
    [
        [Reply("It is 57 metres high.")],
        [searching("Ebenau"), reading("https://invented.example/")],
        [searching("Ebenau"), reading("https://ebenau.example/tower"), answering("It is 75 metres high.")],
    ],
)
async def test_a_model_that_fails_a_step_of_the_test_gets_passages_from_then_on(make_config: Make, steps: list[Any]) -> None:
    config = make_config(model="large")
    assert await probe_tool_use(config, ScriptedLLM(*steps)) == "passages"
    world = World(config, Reply(SENTENCE))
    assert (await world.ask()).answer.text == SENTENCE
    assert world.llm.offered == [()]


def test_the_result_is_kept_for_each_model_and_server(make_config: Make) -> None:
    config = make_config(model="one", base_url="http://127.0.0.1:1/v1")
    _keep_approach(config, "passages")
    assert _kept_approach(config) == "passages"
    assert _kept_approach(config.override(base_url="http://127.0.0.1:2/v1")) == ""
    assert _kept_approach(config.override(model="two")) == ""


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("qwen2.5:1.5b", True),
        ("Llama-3.2-3B-Instruct-Q4_K_M.gguf", True),
        ("gemma-2-9b-it", True),
        ("gemma3:270m", True),
        ("gemma-3n-e4b", True),
        ("qwen3-30b-a3b", False),
        ("mixtral-8x7b", False),
        ("gpt-4o-mini", False),
        ("claude-3-5-sonnet", False),
        ("llama3.2", False),
    ],
)
def test_the_size_of_a_model_is_read_from_its_name(name: str, small: bool) -> None:
    assert _is_small_model(name) is small


def test_the_size_that_a_server_gives_wins_over_the_name() -> None:
    assert _is_small_model("llama3.2", LocalModel("llama3.2", billions=3.2))
    assert not _is_small_model("my-7b-merge", LocalModel("my-7b-merge", billions=70.0))


async def test_a_small_model_with_tools_reads_with_the_built_in_extractor(make_config: Make) -> None:
    config = make_config(model="some-7b")
    _keep_approach(config, "tools")
    world = World(config, searching("moon"), reading(MOON, MARS, get_full=False), answering(SENTENCE))
    await world.ask()
    assert len(world.llm.requests) == 3
    assert PAGES[MOON].splitlines()[2].split(". ")[0] in world.llm.requests[2][-1].content
