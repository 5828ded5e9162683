"""Token counts: exact for the two carried encodings, offline, and bounded by bytes before any table is loaded."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import pytest

from nexi import token_counter
from nexi.token_counter import (
    TokenCounter,
    count_messages_tokens,
    count_tokens,
    estimate_page_tokens,
    get_encoding,
)
from nexi.types import Message, ToolCall

CALL = Message("assistant", "", (ToolCall("call_1", "web_search", '{"queries": ["a"]}'),))
RESULT = Message("tool", '{"results": []}', tool_call_id="call_1")


@pytest.mark.parametrize(
    ("encoding", "text", "ids"),
    [
        ("cl100k_base", "hello world", [15339, 1917]),
        ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
        ("cl100k_base", "<|endoftext|>", [27, 91, 8862, 728, 428, 91, 29]),
        ("o200k_base", "hello world", [24912, 2375]),
    ],
)
def test_the_carried_tables_give_the_published_ids(encoding: str, text: str, ids: list[int]) -> None:
    assert get_encoding(encoding).encode_ordinary(text) == ids
    assert count_tokens(text, encoding) == len(ids)


def test_an_empty_text_has_no_tokens() -> None:
    assert (count_tokens(""), estimate_page_tokens(""), count_messages_tokens([])) == (0, 0, 0)


def test_an_encoding_is_loaded_once_under_its_name() -> None:
    assert get_encoding() is get_encoding("cl100k_base") is get_encoding(encoding_name="cl100k_base")
    assert get_encoding("o200k_base") is not get_encoding()
    assert count_tokens("hello world", get_encoding("o200k_base")) == 2


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\udc4d", "x" * 10 + "\ud800" * 3])
def test_broken_surrogates_are_counted_like_their_replacement(text: str) -> None:
    assert 0 < count_tokens(text) <= TokenCounter().upper_bound([Message("user", text)])
    assert count_tokens("\ud83d\udc4d") == count_tokens("👍")


@pytest.mark.parametrize("char", ["a", " ", "\n", "é", "👍", "[", " \n"])
def test_a_long_run_of_one_character_is_counted_in_a_blink(char: str) -> None:
    """A quadratic tokenizer would take hours for a megabyte; the count itself must grow in step with the text."""
    small, large = count_tokens(char * 10_000), count_tokens(char * 1_000_000)
    assert large == pytest.approx(small * 100, rel=0.05)


def test_a_message_costs_its_texts_and_three() -> None:
    assert count_messages_tokens([Message("user", "hello world")]) == count_tokens("user") + 2 + 3
    parts = ["assistant", "call_1", "web_search", '{"queries": ["a"]}']
    assert count_messages_tokens([CALL]) == sum(map(count_tokens, parts)) + 3
    assert count_messages_tokens([RESULT]) == sum(map(count_tokens, ["tool", '{"results": []}', "call_1"])) + 3


def test_dictionaries_cost_what_messages_cost() -> None:
    messages = [Message("system", "Be brief."), Message("user", "Why?"), CALL, RESULT]
    assert count_messages_tokens([m.to_dict() for m in messages]) == count_messages_tokens(messages)
    assert TokenCounter().upper_bound([m.to_dict() for m in messages]) == TokenCounter().upper_bound(messages)


def test_odd_dictionaries_are_counted_with_patience() -> None:
    odd: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "user", "content": [{"type": "text", "text": "hello world"}, {"type": "image_url"}]},
        {"role": "assistant", "tool_calls": [{"function": None}, {}]},
        {},
    ]
    assert (
        count_messages_tokens(odd) == 2 * count_tokens("assistant") + count_tokens("user") + count_tokens("hello world\n") + 12
    )


@pytest.mark.parametrize("text", ["hello world", "日本語の文章", "👍🏽" * 9, "\x00\x01", "a" * 999])
def test_bytes_bound_tokens(text: str) -> None:
    messages = [Message("user", text)]
    assert count_messages_tokens(messages) <= TokenCounter().upper_bound(messages)
    assert count_messages_tokens(messages, "o200k_base") <= TokenCounter().upper_bound(messages)


def test_fitting_is_exact_at_the_limit() -> None:
    messages = [Message("user", "hello world " * 50)]
    exact = count_messages_tokens(messages)
    counter = TokenCounter("cl100k_base")
    assert [counter.at_most(messages, limit) for limit in (exact - 1, exact, exact + 1)] == [False, True, True]
    assert (counter.count_messages(messages), counter.count("hello world")) == (exact, 2)
    assert counter.upper_bound(messages) == TokenCounter().upper_bound(messages)


def test_no_table_is_loaded_while_the_bytes_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counter, "_load_encoding", lambda name: pytest.fail(f"{name} was loaded"))
    messages = [Message("user", "hello " * 100)]
    assert TokenCounter().at_most(messages, 1000)
    assert count_tokens("") == 0


def test_a_turn_is_counted_once_by_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Message] = []
    real = token_counter._count_message
    monkeypatch.setattr(token_counter, "_count_message", lambda m, table: counted.append(m) or real(m, table))
    counter = TokenCounter()
    first = counter.count_messages([CALL, RESULT])
    assert counter.count_messages([CALL, RESULT, CALL]) == first + count_messages_tokens([CALL])
    assert counted[:2] == [CALL, RESULT]
    assert len(counted) == 3  # the third is the plain function's own


def test_importing_the_counter_imports_no_tokenizer() -> None:
    code = "import sys, nexi.token_counter; print('splintr' in sys.modules, 'tiktoken' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_another_encoding_without_tiktoken_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ValueError, match=r"Failed to load encoding 'p50k_base': .*`pip install tiktoken`"):
        get_encoding("p50k_base")


@pytest.mark.parametrize("error", [ValueError("unknown"), OSError("no network")])
def test_an_encoding_tiktoken_cannot_load_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(name: str) -> object:
        raise error

    monkeypatch.setitem(sys.modules, "tiktoken", types.SimpleNamespace(get_encoding=fail))
    with pytest.raises(ValueError, match=f"Failed to load encoding 'nonesuch': {error}"):
        get_encoding("nonesuch")


def test_any_other_encoding_comes_from_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    words = types.SimpleNamespace(encode_ordinary=str.split)
    monkeypatch.setitem(sys.modules, "tiktoken", types.SimpleNamespace(get_encoding=lambda name: words))
    token_counter._load_encoding.cache_clear()
    assert count_tokens("one two three", "by_words") == 3
    token_counter._load_encoding.cache_clear()
