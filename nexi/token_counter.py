"""How many tokens a text costs.

splintr-rs carries the tables of cl100k_base and o200k_base; tiktoken has any other. They load only when they must: a byte-level
tokenizer never makes more tokens than UTF-8 bytes, so a conversation whose bytes fit needs no counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from nexi.structured.json_reader import fix_surrogates
from nexi.types import Message, content_text

__all__ = ["BYTES_PER_TOKEN", "TokenCounter", "count_messages_tokens", "count_tokens", "estimate_page_tokens", "get_encoding"]


DEFAULT_ENCODING = "cl100k_base"
_CARRIED = ("cl100k_base", "o200k_base")
TOKENS_PER_MESSAGE = 3
BYTES_PER_TOKEN = 3  # what page text costs at the least in practice; the exact count guards every request

AnyMessage: TypeAlias = Message | Mapping[str, Any]


class Encoding(Protocol):
    """What splintr's and tiktoken's encodings share."""

    def encode(self, text: str) -> list[int]: ...

    def encode_ordinary(self, text: str) -> list[int]: ...


def get_encoding(encoding_name: str = DEFAULT_ENCODING) -> Encoding:
    """The encoding of that name, loaded once. ValueError says what is missing."""
    return _load_encoding(encoding_name)


def count_tokens(text: str, encoding: str | Encoding = DEFAULT_ENCODING) -> int:
    """Tokens of a text; what looks like a special token is counted as the text it is."""
    if not text:
        return 0
    table = get_encoding(encoding) if isinstance(encoding, str) else encoding
    return len(table.encode_ordinary(fix_surrogates(text)))  # half of a surrogate pair is what no tokenizer takes


def count_messages_tokens(messages: Sequence[AnyMessage], encoding: str | Encoding = DEFAULT_ENCODING) -> int:
    """Tokens of a conversation: role, content, calls and call ids, and 3 a message for its frame."""
    if not messages:
        return 0
    table = get_encoding(encoding) if isinstance(encoding, str) else encoding
    return sum(_count_message(message, table) for message in messages)


def estimate_page_tokens(content: str, encoding: str | Encoding = DEFAULT_ENCODING) -> int:
    return count_tokens(content, encoding)


class TokenCounter:
    """One run's counter. A conversation is counted again before every request, so each turn is counted once and kept."""

    def __init__(self, encoding_name: str = DEFAULT_ENCODING) -> None:
        self.encoding_name = encoding_name
        self._counts: dict[Message, int] = {}

    def count(self, text: str) -> int:
        return count_tokens(text, self.encoding_name)

    def count_messages(self, messages: Sequence[Message]) -> int:
        total = 0
        for message in messages:
            count = self._counts.get(message)
            if count is None:
                count = self._counts[message] = _count_message(message, get_encoding(self.encoding_name))
            total += count
        return total

    def upper_bound(self, messages: Sequence[AnyMessage]) -> int:
        """No fewer tokens than the conversation has, by its bytes; loads no table."""
        texts = (text for message in messages for text in _message_texts(message))
        return TOKENS_PER_MESSAGE * len(messages) + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)

    def at_most(self, messages: Sequence[Message], limit: int) -> bool:
        """Whether a conversation has at most `limit` tokens, counting only when its bytes leave a doubt."""
        return self.upper_bound(messages) <= limit or self.count_messages(messages) <= limit


@lru_cache(maxsize=4)
def _load_encoding(name: str) -> Encoding:
    encoding: Encoding
    if name in _CARRIED:
        import splintr

        encoding = splintr.Tokenizer.from_pretrained(name)
        return encoding
    try:
        import tiktoken
    except ImportError as error:
        raise ValueError(
            f"Failed to load encoding {name!r}: nexi carries {' and '.join(_CARRIED)}; any other needs `pip install tiktoken`"
        ) from error
    try:
        encoding = tiktoken.get_encoding(name)
    except (ValueError, OSError) as error:
        raise ValueError(f"Failed to load encoding {name!r}: {error}") from error
    return encoding


def _count_message(message: AnyMessage, table: Encoding) -> int:
    return TOKENS_PER_MESSAGE + sum(count_tokens(text, table) for text in _message_texts(message))


def _message_texts(message: AnyMessage) -> Iterator[str]:
    """Every text of a message that costs tokens; a dict is read with patience."""
    if isinstance(message, Message):
        yield from (message.role, message.content, message.tool_call_id)
        for call in message.tool_calls:
            yield from (call.id, call.name, call.arguments)
        return
    yield from (str(message.get("role") or ""), content_text(message.get("content")), str(message.get("tool_call_id") or ""))
    for raw in message.get("tool_calls") or ():
        function = raw.get("function") or {}
        yield from (str(raw.get("id") or ""), str(function.get("name") or ""), str(function.get("arguments") or ""))
