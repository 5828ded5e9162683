"""What holds of every rebuilt conversation: each result follows its call, no call lacks its result, questions survive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi.compaction import extract_metadata, format_summary, rebuild_context
from nexi.types import Message, ToolCall

ids = st.sampled_from(["a", "b", "c", ""])
calls = st.builds(ToolCall, ids, st.sampled_from(["web_search", "web_get"]), st.sampled_from(['{"urls": ["u"]}', "{", ""]))
messages = st.one_of(
    st.builds(Message, st.just("assistant"), st.sampled_from(["", "text"]), st.lists(calls, max_size=3).map(tuple)),
    st.builds(lambda i, t: Message("tool", t, tool_call_id=i), ids, st.text(max_size=3)),
    st.builds(Message, st.just("user"), st.sampled_from(["q1", "q2"])),
)
conversations = st.builds(
    lambda head, body: head + body,
    st.sampled_from([[], [Message("system", "s")], [Message("system", "s"), Message("user", "q0")]]),
    st.lists(messages, min_size=1, max_size=15),
)


def pairs_hold(conversation: list[Message]) -> bool:
    """Every tool message answers a call of the assistant message before it, and every call is answered once."""
    waiting: list[str] = []
    for message in conversation:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif message.role == "assistant":
            if waiting:
                return False
            waiting = [call.id for call in message.tool_calls]
    return not waiting


@given(conversations, st.integers(0, 6))
def test_calls_and_results_stay_in_pairs(conversation: list[Message], keep: int) -> None:
    rebuilt = rebuild_context(conversation, extract_metadata(conversation), "summary", keep)
    assert pairs_hold(rebuilt)
    assert sum(m.role == "assistant" for m in rebuilt) <= keep + 1


@given(conversations, st.integers(0, 6))
def test_system_summary_and_questions_are_there(conversation: list[Message], keep: int) -> None:
    metadata = extract_metadata(conversation)
    rebuilt = rebuild_context(conversation, metadata, "summary", keep)
    users = [m for m in conversation if m.role == "user"]
    if conversation[0].role == "system":
        assert rebuilt[0] == conversation[0]
        assert [m for m in rebuilt if m.role == "user"][:1] == users[:1]
    if len(users) > 1:
        assert [m for m in rebuilt if m.role == "user"][-1] == users[-1]
    assert Message("assistant", format_summary(metadata, "summary")) in rebuilt


@given(conversations, st.integers(0, 6))
def test_dictionaries_and_messages_are_rebuilt_alike(conversation: list[Message], keep: int) -> None:
    metadata = extract_metadata(conversation)
    as_dicts = rebuild_context([m.to_dict() for m in conversation], metadata, "summary", keep)
    assert as_dicts == [m.to_dict() for m in rebuild_context(conversation, metadata, "summary", keep)]
