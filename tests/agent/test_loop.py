"""The loop itself: when it asks, when it stops, and what it answers then."""

from __future__ import annotations

import asyncio

import pytest

from nexi.budget import Budget
from nexi.errors import LLMError, StoppedError
from nexi.events import ContextCompacted, LimitApplied, ToolFinished, Warned
from nexi.testing import FakeWeb, ScriptedLLM, answering, calling, reading, searching
from nexi.types import Message, Reply, StopReason
from tests.agent.world import MARS, MOON, PAGES, QUESTION, Agent

DISTANCE = "The Moon is 384,400 km from Earth on average [1]."


async def test_the_model_searches_reads_and_answers_with_its_source() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), answering(DISTANCE))
    answer = await agent.run()
    assert (answer.text, answer.stop, [source.url for source in answer.sources]) == (DISTANCE, StopReason.FINAL_ANSWER, [MOON])
    assert [event.name for event in agent.find(ToolFinished)] == ["web_search", "web_get"]
    assert (agent.meter.iterations, agent.llm.steps) == (3, [])


async def test_an_answer_in_plain_words_is_taken_once_a_page_was_read() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), Reply(DISTANCE))
    answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.PLAIN_ANSWER)


async def test_a_model_that_answers_first_is_asked_once_to_read() -> None:
    agent = Agent(Reply("384,400 km."), searching("moon earth"), reading(MOON), answering(DISTANCE))
    answer = await agent.run()
    reminders = [text for text in agent.contents("user")[1:] if "web_search" in text]
    assert (answer.text, len(reminders), agent.contents("assistant")[0]) == (DISTANCE, 1, "384,400 km.")


async def test_a_model_that_answers_without_a_page_twice_gets_what_the_built_in_model_reads() -> None:
    built_in = ScriptedLLM(searching("moon earth"), reading(MOON), answering(DISTANCE), name="extractive")
    agent = Agent(Reply("384,400 km."), Reply("I said it."), Reply("It is 384,400 km away [1]."), built_in=built_in)
    answer = await agent.run()
    assert [source.url for source in answer.sources] == [MOON]
    assert [len(agent.llm.requests), len(built_in.requests)] == [2, 3]


@pytest.mark.parametrize(("length", "is_in_window"), [(20_000, True), (20_001, False)])
async def test_a_long_answer_without_a_page_does_not_fill_the_window_with_itself(length: int, is_in_window: bool) -> None:
    built_in = ScriptedLLM(searching("moon earth"), reading(MOON), answering(DISTANCE), name="extractive")
    long = ("word " * length)[: length - 1] + "."
    agent = Agent(Reply(long), Reply("It is 384,400 km away [1]."), built_in=built_in)
    await agent.run()
    assert any(long in message.content for message in agent.session.messages) == is_in_window


async def test_there_is_no_reminder_where_too_few_calls_are_left_to_read() -> None:
    built_in = ScriptedLLM(searching("moon earth"), reading(MOON), answering(DISTANCE), name="extractive")
    agent = Agent(Reply("384,400 km."), budget=Budget(max_model_calls=3), built_in=built_in)
    await agent.run()
    assert len(agent.contents("user")) == 1


async def test_a_model_with_just_the_calls_it_needs_to_read_is_reminded() -> None:
    agent = Agent(
        Reply("384,400 km."), searching("moon earth"), reading(MOON), answering(DISTANCE), budget=Budget(max_model_calls=4)
    )
    assert (await agent.run()).text == DISTANCE
    assert len(agent.llm.requests) == 4


async def test_the_iteration_limit_ends_with_an_answer_from_what_was_read() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), Reply(DISTANCE), budget=Budget(max_iterations=2))
    answer = await agent.run()
    assert (answer.text, answer.stop, agent.meter.iterations) == (DISTANCE, StopReason.MAX_ITERATIONS, 2)
    assert [(limit.at, limit.stop) for limit in agent.find(LimitApplied)] == [("before 2", StopReason.MAX_ITERATIONS)]


async def test_the_time_target_ends_before_a_turn_that_would_begin_after_it() -> None:
    steps = [searching("moon earth"), reading(MOON), searching("mars"), Reply(DISTANCE)]
    agent = Agent(*steps, budget=Budget(max_seconds=10), slow_s=4)
    answer = await agent.run()
    assert (answer.stop, agent.meter.iterations) == (StopReason.TIME_TARGET, 3)


async def test_a_stop_with_nothing_read_says_so() -> None:
    agent = Agent(searching("moon earth"))
    agent.stop.set()
    with pytest.raises(StoppedError):
        await agent.run()
    assert agent.llm.requests == []


async def test_a_stop_while_the_model_writes_answers_from_the_page_at_hand() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), built_in=ScriptedLLM(Reply(DISTANCE), name="extractive"))

    def press_stop(_: object) -> Reply:
        agent.stop.set()
        return searching("more")

    agent.llm.steps.append(press_stop)
    answer = await agent.run()
    assert (answer.stop, [source.url for source in answer.sources]) == (StopReason.CANCELLED, [MOON])


async def test_a_model_that_makes_the_same_call_again_and_again_is_stopped() -> None:
    same = [searching("moon earth") for _ in range(9)]
    agent = Agent(searching("moon earth"), reading(MOON), *same)
    agent.llm.steps.append(Reply(DISTANCE))
    answer = await agent.run()
    assert answer.stop is StopReason.REPEATED
    assert [event.ok for event in agent.find(ToolFinished)].count(True) == 2


async def test_a_message_that_arrives_is_read_before_the_next_turn() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), answering(DISTANCE))
    await agent.run([Message("user", "In kilometres, please.")])
    assert [message.content for message in agent.llm.requests[0]][-1] == "In kilometres, please."


async def test_a_model_that_fails_before_a_page_was_read_is_an_error() -> None:
    agent = Agent(LLMError("the model is gone", code="gone"))
    with pytest.raises(LLMError, match="the model is gone"):
        await agent.run()


async def test_a_model_that_fails_after_a_page_was_read_leaves_an_answer_from_it() -> None:
    built_in = ScriptedLLM(Reply(DISTANCE), name="extractive")
    agent = Agent(searching("moon earth"), reading(MOON), LLMError("the model is gone", code="gone"), built_in=built_in)
    answer = await agent.run()
    assert (answer.stop, [source.url for source in answer.sources]) == (StopReason.API_ERROR, [MOON])
    assert "model_failed" in [warning.code for warning in agent.find(Warned)]


async def test_results_that_do_not_fit_are_preceded_by_a_summary() -> None:
    pages = {MOON: PAGES[MOON] + " The Moon is grey." * 300, MARS: PAGES[MARS] + " Mars is cold." * 300}
    summary = Reply("The Moon is 384,400 km from Earth on average.")

    def reply(messages: object) -> Reply:
        text = str(messages)
        if "Summar" in text or "summar" in text:
            return summary
        return reading(MARS) if len(agent.llm.requests) < 4 else answering(DISTANCE)

    agent = Agent(searching("moon mars"), reading(MOON), *[reply] * 8, web=FakeWeb(pages), window=4_000)
    answer = await agent.run()
    assert any(event.ok for event in agent.find(ContextCompacted))
    assert answer.sources


async def test_a_tool_that_hangs_is_given_up_a_second_after_the_time_target() -> None:
    agent = Agent(searching("moon earth"), budget=Budget(max_seconds=0.05), hangs_at="moon")
    async with asyncio.timeout(20):
        with pytest.raises(LLMError, match="the script has no more replies"):
            await agent.run()
    assert [limit.stop for limit in agent.find(LimitApplied)] == [StopReason.TIME_TARGET]
    assert "the time target was reached" in agent.contents("tool")[0]


async def test_an_unknown_tool_is_a_result_that_names_the_tools() -> None:
    agent = Agent(calling("browse", url=MOON), searching("moon earth"), reading(MOON), answering(DISTANCE))
    await agent.run()
    assert "there is no tool called 'browse'; the tools are web_search, web_get" in agent.contents("tool")[0]


async def test_a_final_answer_that_cannot_be_read_is_refused_with_the_reason() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), calling("final_answer", text="x"), answering(DISTANCE))
    answer = await agent.run()
    assert answer.text == DISTANCE
    assert "answer" in agent.contents("tool")[2]


async def test_calls_beside_the_answer_are_cancelled() -> None:
    both = Reply("", (*searching("endless").tool_calls, *answering(DISTANCE).tool_calls))
    agent = Agent(searching("moon earth"), reading(MOON), both, hangs_at="endless")
    async with asyncio.timeout(20):
        answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.FINAL_ANSWER)


async def test_an_answer_that_reached_the_output_limit_is_said_to_break_off() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), Reply(DISTANCE, finish="length"))
    answer = await agent.run()
    assert [warning.code for warning in agent.find(Warned)] == ["cut"]
    assert answer.warnings == ("the answer breaks off where it reached the output limit (--max-len)",)


async def test_a_model_that_writes_the_same_words_over_and_over_is_replaced_by_the_built_in_one() -> None:
    built_in = ScriptedLLM(Reply(DISTANCE), name="extractive")
    agent = Agent(searching("moon earth"), reading(MOON), Reply("moon moon " * 400), built_in=built_in)
    answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.PLAIN_ANSWER)


async def test_an_answer_by_the_tool_before_a_page_was_read_is_refused_with_the_reminder() -> None:
    agent = Agent(answering("384,400 km."), searching("moon earth"), reading(MOON), answering(DISTANCE))
    await agent.run()
    assert "web_search" in agent.contents("tool")[0]
    assert len(agent.contents("user")) == 1


async def test_without_tools_the_built_in_model_reads_and_its_answer_is_checked() -> None:
    built_in = ScriptedLLM(searching("moon earth"), reading(MOON), answering(DISTANCE), name="extractive")
    agent = Agent(built_in=built_in, approach="passages")
    answer = await agent.run([Message("user", "In kilometres, please.")])
    assert (answer.text, answer.stop, agent.meter.iterations) == (DISTANCE, StopReason.PLAIN_ANSWER, 1)
    assert built_in.requests[0][-1].content == "In kilometres, please."
    assert agent.llm.requests == []


async def test_a_stop_while_passages_are_read_answers_from_the_page_at_hand() -> None:
    def press_stop(_: object) -> Reply:
        agent.stop.set()
        return searching("more")

    built_in = ScriptedLLM(searching("moon earth"), reading(MOON), press_stop, Reply(DISTANCE), name="extractive")
    agent = Agent(built_in=built_in, approach="passages")
    answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.CANCELLED)


async def test_what_is_stored_is_looked_up_before_the_model_is_asked() -> None:
    agent = Agent(searching("moon earth"), reading(MOON), answering(DISTANCE))
    await agent.run(looks_up_first=True)
    first = agent.llm.requests[0]
    assert [(call.name, call.arguments) for call in first[-2].tool_calls] == [
        ("local_search", f'{{"queries": ["{QUESTION}"]}}')
    ]
    assert first[-1].role == "tool"


async def test_a_window_that_stays_full_ends_with_an_answer_from_what_was_read() -> None:
    pages = {MOON: PAGES[MOON] + " The Moon is grey and far away." * 600}
    built_in = ScriptedLLM(Reply(DISTANCE), name="extractive")
    failing = [LLMError("too much", code="busy") for _ in range(6)]
    agent = Agent(searching("moon earth"), reading(MOON), *failing, web=FakeWeb(pages), window=3_000, built_in=built_in)
    answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.CONTEXT_LIMIT)
    assert [event.ok for event in agent.find(ContextCompacted)] == [False, False]


async def test_a_stop_while_the_conversation_is_summarised_is_obeyed() -> None:
    pages = {MOON: PAGES[MOON] + " The Moon is grey and far away." * 600}

    def press_stop(_: object) -> Reply:
        agent.stop.set()
        return Reply("A summary.")

    built_in = ScriptedLLM(Reply(DISTANCE), name="extractive")
    steps = [searching("moon earth"), reading(MOON), press_stop]
    agent = Agent(*steps, web=FakeWeb(pages), window=3_000, built_in=built_in)
    answer = await agent.run()
    assert (answer.text, answer.stop) == (DISTANCE, StopReason.CANCELLED)
