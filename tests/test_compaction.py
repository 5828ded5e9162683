"""Compaction: the seeds' trigger, metadata and summary message, with calls and results kept in pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.compaction import (
    CompactionMetadata,
    compact,
    extract_metadata,
    format_summary,
    generate_summary,
    rebuild_context,
    should_compact,
)
from nexi.config import Config
from nexi.errors import ContextOverflowError, LLMError
from nexi.testing import ScriptedLLM
from nexi.token_counter import count_messages_tokens
from nexi.types import Message, Reply, ToolCall
from tests.raising import has_code

MakeConfig = Callable[..., Config]

SYSTEM = Message("system", "You are helpful.")
QUESTION = Message("user", "test query")
META = CompactionMetadata(["test"], ["https://example.com"], "test query")


def turn(
    number: int, tool: str = "web_get", arguments: str = '{"urls": ["https://a.example"]}', text: str = ""
) -> list[Message]:
    return [
        Message("assistant", text, (ToolCall(f"c{number}", tool, arguments),)),
        Message("tool", f"result {number}", tool_call_id=f"c{number}"),
    ]


def summary_of(messages: list[Message], text: str = "Found it [1].") -> Message:
    return Message("assistant", format_summary(extract_metadata(messages), text))


# the trigger


@pytest.mark.parametrize(
    ("current", "coming", "threshold", "expected"),
    [
        (90_000, 10_000, 0.9, True),
        (80_000, 5_000, 0.9, False),
        (90_000, 0, 0.9, False),
        (90_000, 1, 0.9, True),
        (90_000, 5_000, 1.0, False),
    ],
)
def test_the_threshold_itself_is_still_allowed(
    make_config: MakeConfig, current: int, coming: int, threshold: float, expected: bool
) -> None:
    assert should_compact(current, coming, make_config(max_context=100_000, auto_compact_thresh=threshold)) is expected


# metadata

CONVERSATION = [
    SYSTEM,
    QUESTION,
    *turn(1, "web_search", '{"queries": ["q1", "q2", 7]}'),
    *turn(2, "web_search", '{"queries": ["q2", "q3"]}'),
    *turn(3, "web_get", '{"urls": ["https://a.example", "https://b.example"]}'),
    *turn(4, "web_get", '{"urls": "https://c.example"}'),
    *turn(5, "web_get", "invalid json"),
    *turn(6, "web_search", "[" * 100_000),
    *turn(7, "web_search", "[]"),
    *turn(8, "final_answer", '{"urls": ["https://not.example"]}'),
]
EXPECTED = CompactionMetadata(["q1", "q2", "q3"], ["https://a.example", "https://b.example", "https://c.example"], "test query")


def test_queries_urls_and_the_question_are_found_once_each_in_order() -> None:
    assert extract_metadata(CONVERSATION) == EXPECTED
    assert extract_metadata([m.to_dict() for m in CONVERSATION]) == EXPECTED


def test_an_empty_conversation_has_empty_metadata() -> None:
    assert extract_metadata([]) == CompactionMetadata([], [], "")


def test_a_second_compaction_remembers_what_the_first_listed() -> None:
    rebuilt = rebuild_context(CONVERSATION[2:], EXPECTED, "s", 0)
    assert extract_metadata([*rebuilt, *turn(9, arguments='{"urls": ["https://d.example"]}')]) == CompactionMetadata(
        EXPECTED.search_queries, [*EXPECTED.urls_fetched, "https://d.example"], "test query"
    )


def test_malformed_dictionaries_are_skipped() -> None:
    odd: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [{"id": "x"}]},
        {"role": "assistant", "tool_calls": ["x"]},
        {"content": [{"text": "parts"}]},
    ]
    assert extract_metadata(odd) == CompactionMetadata([], [], "parts")


# rebuilding


def test_the_summary_has_the_seeds_form() -> None:
    assert format_summary(CompactionMetadata(["q1", "q\n2"], ["https://a.example"], "why?"), "It is so [1].") == (
        "Original query: why?\n\nSearch queries performed:\n- q1\n- q 2\n\nLinks navigated:\n- https://a.example\n\n"
        "Findings:\nIt is so [1]."
    )
    assert format_summary(CompactionMetadata(), "x") == (
        "Original query: \n\nSearch queries performed:\n(none)\n\nLinks navigated:\n(none)\n\nFindings:\nx"
    )


def test_system_question_summary_and_the_last_turns_stay() -> None:
    messages = [SYSTEM, QUESTION, *turn(1), *turn(2), *turn(3), Message("assistant", "thinking")]
    summary = Message("assistant", format_summary(META, "S"))
    assert rebuild_context(messages, META, "S", 2) == [SYSTEM, QUESTION, summary, *turn(3), Message("assistant", "thinking")]
    assert rebuild_context(messages, META, "S", 0) == [SYSTEM, QUESTION, summary]
    assert rebuild_context(messages, META, "S", 99) == [SYSTEM, QUESTION, summary, *messages[2:]]


def test_dictionaries_in_dictionaries_out() -> None:
    messages = [m.to_dict() for m in [SYSTEM, QUESTION, *turn(1), *turn(2)]]
    rebuilt = rebuild_context(messages, META, "S", 1)
    assert rebuilt == [*messages[:2], {"role": "assistant", "content": format_summary(META, "S")}, *messages[4:]]
    assert rebuild_context([], CompactionMetadata(), "S", 3) == [
        {"role": "assistant", "content": format_summary(CompactionMetadata(), "S")}
    ]


def test_without_a_system_message_the_question_lives_in_the_summary() -> None:
    summary = Message("assistant", format_summary(META, "S"))
    assert rebuild_context([QUESTION, Message("assistant", "old")], META, "S", 0) == [summary]
    assert rebuild_context([SYSTEM, Message("assistant", "old")], META, "S", 0) == [SYSTEM, summary]


def test_the_question_under_way_survives_in_its_place() -> None:
    follow_up, nudge = Message("user", "and why?"), Message("user", "read first")
    summary = Message("assistant", format_summary(META, "S"))
    messages = [SYSTEM, QUESTION, *turn(1), Message("assistant", "answer 1"), follow_up, *turn(2), *turn(3)]
    assert rebuild_context(messages, META, "S", 1) == [SYSTEM, QUESTION, summary, follow_up, *turn(3)]
    assert rebuild_context(messages, META, "S", 3) == [
        SYSTEM, QUESTION, summary, Message("assistant", "answer 1"), follow_up, *turn(2), *turn(3)
    ]  # fmt: skip
    nudged = [*messages, nudge]
    assert rebuild_context(nudged, META, "S", 0, question="and why?") == [SYSTEM, QUESTION, summary, follow_up]
    assert rebuild_context(nudged, META, "S", 0, question="never asked") == [SYSTEM, QUESTION, summary, nudge]
    assert rebuild_context(nudged, META, "S", 0, question="test query") == [SYSTEM, QUESTION, summary]


def test_calls_without_results_and_results_without_calls_are_taken_out() -> None:
    lonely = Message("assistant", "I call", (ToolCall("a", "web_get", "{}"), ToolCall("b", "web_get", "{}")))
    messages = [
        lonely,
        Message("tool", "B", tool_call_id="b"),
        Message("tool", "B again", tool_call_id="b"),
        Message("tool", "stray", tool_call_id="z"),
        Message("assistant", "", (ToolCall("c", "web_get", "{}"),)),
    ]
    answered = Message("assistant", "I call", (ToolCall("b", "web_get", "{}"),))
    assert rebuild_context(messages, META, "S", 2)[1:] == [answered, Message("tool", "B", tool_call_id="b")]
    as_dicts = rebuild_context([m.to_dict() for m in messages], META, "S", 2)
    assert as_dicts[1:] == [answered.to_dict(), {"role": "tool", "content": "B", "tool_call_id": "b"}]


def test_ids_that_repeat_between_turns_do_not_mix_results() -> None:
    messages = [*turn(1), *turn(1)]
    messages[1], messages[3] = (Message("tool", text, tool_call_id="c1") for text in ("first", "second"))
    assert rebuild_context(messages, META, "S", 1)[1:] == messages[2:]


def test_an_earlier_summary_is_not_kept_beside_the_new_one() -> None:
    first = rebuild_context([SYSTEM, QUESTION, *turn(1)], META, "first", 0)
    second = rebuild_context([*first, *turn(2)], META, "second", 5)
    assert second == [SYSTEM, QUESTION, Message("assistant", format_summary(META, "second")), *turn(2)]


# asking for the summary


async def test_the_model_is_asked_with_the_prompt_the_question_and_the_findings(make_config: MakeConfig) -> None:
    llm = ScriptedLLM(Reply("  Found it [1].  "))
    messages = [SYSTEM, QUESTION, *turn(1, text="I look."), Message("assistant", "said"), Message("user", "and why?")]
    config = make_config(compact_target_words=300)
    assert await generate_summary(messages, extract_metadata(messages), config, llm) == "Found it [1]."
    [[request]] = llm.requests
    assert request.role == "user"
    assert "Original query: test query" in request.content
    assert "300 words" in request.content
    assert "I look.\n\nresult 1\n\nsaid\n\nThe user then asked: and why?" in request.content


@pytest.fixture
def make_plain_config(make_config: MakeConfig, tmp_path: Path) -> MakeConfig:
    """A config whose prompt for summaries has few words of its own."""
    prompt = tmp_path / "nexi" / "prompts" / "compaction.md"
    prompt.parent.mkdir(parents=True)
    prompt.write_text("{original_query}|{target_words}|{content}")
    return make_config


@pytest.mark.parametrize("window", [300, 1000, 4000])
async def test_the_request_for_a_summary_fits_the_window_itself(make_plain_config: MakeConfig, window: int) -> None:
    llm = ScriptedLLM(Reply("short"))
    pages = [Message("tool", f"{word} " * 5000, tool_call_id=word) for word in ("alpha", "beta")]
    messages = [SYSTEM, QUESTION, *pages, Message("tool", "the small one", tool_call_id="s")]
    await generate_summary(messages, META, make_plain_config(max_context=window), llm)
    [request] = llm.requests
    assert window * 0.6 < count_messages_tokens(request) <= window * 3 // 4
    assert all(word in request[0].content for word in ("alpha", "beta", "the small one"))


async def test_a_question_larger_than_the_window_is_not_sent(make_config: MakeConfig) -> None:
    llm = ScriptedLLM(Reply("never"))
    huge = CompactionMetadata([], [], "why " * 1000)
    with pytest.raises(ContextOverflowError, check=has_code("context_overflow")):
        await generate_summary([SYSTEM, *turn(1)], huge, make_config(max_context=500), llm)
    assert llm.requests == []


# the whole


async def test_a_conversation_is_rebuilt_around_its_summary(make_config: MakeConfig) -> None:
    messages = [SYSTEM, QUESTION, *turn(1), *turn(2)]
    config = make_config(preserve_last_n_messages=1)
    assert await compact(messages, config, ScriptedLLM(Reply("Found it [1]."))) == [
        SYSTEM,
        QUESTION,
        summary_of(messages),
        *turn(2),
    ]


async def test_turns_that_would_fill_the_window_again_are_left_to_the_summary(make_plain_config: MakeConfig) -> None:
    big = turn(1)
    big[1] = Message("tool", "word " * 3000, tool_call_id="c1")
    messages = [SYSTEM, QUESTION, *big, *turn(2)]
    config = make_plain_config(max_context=2000, preserve_last_n_messages=3)
    rebuilt = await compact(messages, config, ScriptedLLM(Reply("Found it [1].")))
    assert rebuilt == [SYSTEM, QUESTION, summary_of(messages), *turn(2)]
    smallest = await compact([SYSTEM, QUESTION, *big], config, ScriptedLLM(Reply("Found it [1].")))
    assert smallest == [SYSTEM, QUESTION, summary_of([SYSTEM, QUESTION, *big])]


async def test_a_model_with_a_smaller_window_is_respected(make_plain_config: MakeConfig) -> None:
    llm = ScriptedLLM(Reply("ok"))
    messages = [SYSTEM, QUESTION, Message("assistant", "word " * 3000)]
    rebuilt = await compact(messages, make_plain_config(max_context=1000), llm)
    assert count_messages_tokens(llm.requests[0]) <= 750
    assert rebuilt == [SYSTEM, QUESTION, summary_of(messages, "ok")]


@pytest.mark.parametrize("step", [LLMError("it is off"), Reply(""), Reply("  \n")])
async def test_without_a_summary_there_is_no_new_conversation(make_config: MakeConfig, step: Any) -> None:
    assert await compact([SYSTEM, QUESTION, *turn(1)], make_config(), ScriptedLLM(step)) is None


async def test_nothing_found_yet_is_not_worth_a_call(make_config: MakeConfig) -> None:
    llm = ScriptedLLM(Reply("never"))
    assert await compact([SYSTEM, QUESTION], make_config(), llm) is None
    assert llm.requests == []
