"""From the bytes of a chat completion to its text and tool calls.

A Listener hears pieces as they come. Nothing is assumed of the server: it may stream or not, split anything anywhere, repeat
ids or leave them out, stream its reasoning, never finish, or never stop.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from nexi.llm.openai._dialect import offered_name
from nexi.structured import json_reader
from nexi.structured.json_reader import as_mapping
from nexi.types import Finish, ToolCall, ToolSpec

MAX_REPLY_BYTES = 4_000_000  # of text, thoughts and arguments; what comes after is not read
MAX_STREAM_BYTES = 64_000_000  # of everything, envelopes and comments included
_PENDING_BYTES = MAX_REPLY_BYTES + 250_000  # one event or one plain reply may hold a whole answer and its envelope

Hold = Literal["nothing", "calls", "everything"]

_FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety"), "content_filter"),
}


@dataclass
class Listener:
    """Who hears the pieces. After it was told anything, the request must not be repeated."""

    on_text: Callable[[str], None] | None = None
    on_call: Callable[[ToolCall], None] | None = None
    on_arguments: Callable[[str, str], None] | None = None
    told: bool = False

    def text(self, piece: str) -> None:
        if self.on_text and piece:
            self.told = True
            self.on_text(piece)

    def arguments(self, name: str, piece: str) -> None:
        if self.on_arguments and piece:
            self.told = True
            self.on_arguments(name, piece)

    def call(self, call: ToolCall) -> None:
        if self.on_call:
            self.told = True
            self.on_call(call)


class CallIds:
    """Ids for tool calls, unique within a conversation; nine letters and digits, which every server accepts."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)
        self._next = len(self._used) + 1

    def claim(self, offered_id: str) -> str:
        """The wanted id, or a new one where it is empty or taken."""
        call_id = offered_id
        while not call_id or call_id in self._used:
            call_id = f"call{self._next:05d}"
            self._next += 1
        self._used.add(call_id)
        return call_id


# --- bytes to events


class _EventDecoder:
    """A server-sent event stream, in any cut, to the data of each event."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self.line_chars = self.data_chars = 0  # of an event that is not finished yet
        self._after_return = False

    def feed(self, chunk: bytes) -> list[str]:
        return self._split_events(self._decode(chunk))

    def end(self) -> list[str]:
        """What an early end left behind."""
        return self._split_events(self._decode(b"", True) + "\n\n")

    def _split_events(self, text: str) -> list[str]:
        if not text:
            return []
        start = 1 if self._after_return and text.startswith("\n") else 0
        self._after_return = text.endswith("\r")
        *ends, rest = text[start:].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        events = []
        for end in ends:
            line = "".join((*self._line, end))
            self._line, self.line_chars = [], 0
            if line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
                self.data_chars += len(line)
            elif not line and self._data:
                events.append("\n".join(self._data))
                self._data, self.data_chars = [], 0
        self._line.append(rest)
        self.line_chars += len(rest)
        return events


class BodyReader:
    """The body of a reply, whether the server streams or answers at once."""

    def __init__(self, draft: ReplyBuffer) -> None:
        self.draft = draft
        self.kind: Literal["", "events", "json", "html"] = ""
        self.closed = False  # the server said that this is all
        self.cut = False  # we stopped reading
        self._events, self._body, self._received = _EventDecoder(), bytearray(), 0

    @property
    def is_done(self) -> bool:
        return self.closed or self.cut or self.draft.error is not None

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is needed, although the connection may still be open."""
        return self.closed or bool(self.draft.finish)

    def feed(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self.kind == "events":
            self._read_events(self._events.feed(chunk))
        else:
            self._body += chunk
        start = b"" if self.kind else bytes(self._body[:512]).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"data:", b":", b"event:", b"id:", b"retry:")):
            self.kind = "events"
            body, self._body = bytes(self._body), bytearray()
            self._read_events(self._events.feed(body.removeprefix(b"\xef\xbb\xbf")))
        elif start[:1] == b"<":
            self.kind = "html"
        elif len(start) >= 6:
            self.kind = "json"
        pending = self._events.line_chars + self._events.data_chars if self.kind == "events" else len(self._body)
        self.cut = self.cut or self.draft.is_full or pending > _PENDING_BYTES or self._received > MAX_STREAM_BYTES

    def end(self) -> None:
        """Read what is left once no more bytes will come."""
        if self.kind == "events":
            self._read_events(self._events.end())
        elif self.kind != "html":
            value = _load_json(self._body.decode("utf-8", "replace"), lenient=self.cut)
            if isinstance(value, Mapping):
                self.draft.take(value)
                self.closed = not self.cut

    @property
    def sample(self) -> bytes:
        """The beginning of a body that was no event stream."""
        return bytes(self._body[:65536])

    def _read_events(self, events: Sequence[str]) -> None:
        for data in events:
            self.closed = self.closed or (self.draft.error is None and data.strip() == "[DONE]")
            if self.closed or self.draft.error is not None:
                return
            value = _load_json(data, lenient=self.cut)
            if isinstance(value, Mapping):
                self.draft.take(value)
            elif "\n" in data:  # servers that leave out the blank line between events
                self._read_events(data.split("\n"))


def _load_json(text: str, *, lenient: bool) -> object:
    """JSON or None. Surrogate halves stay as they are, since the other half may come in the next event."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError):
        return json_reader.parse_lenient(text) if lenient else None
    return None


# --- events to a draft


@dataclass(slots=True)
class _Call:
    """A tool call being written."""

    index: object
    id: str
    name: str = ""
    parts: list[str] = field(default_factory=list)
    told: int = 0
    balance: _Balance = field(default_factory=lambda: _Balance())
    final: ToolCall | None = None

    @property
    def arguments(self) -> str:
        return "".join(self.parts)

    @property
    def is_placeholder(self) -> bool:
        """`{}`, which some servers send before the real arguments."""
        return self.balance.closed and self.arguments.strip() == "{}"

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are one closed object to which nothing can be added."""
        with suppress(ValueError):
            return self.balance.closed and not self.is_placeholder and isinstance(json_reader.parse_json(self.arguments), dict)
        return False


class ReplyBuffer:
    """A reply under construction."""

    def __init__(self, listener: Listener, tools: Sequence[ToolSpec], ids: CallIds, hold: Hold) -> None:
        self.listener, self.ids, self._tools = listener, ids, tools
        self.finish: Finish | Literal[""] = ""
        self.usage: Mapping[str, Any] = {}
        self.error: object = None
        self.events = self.size = 0
        self.thought = False
        self._calls: list[_Call] = []
        self._text, self._gate = _TextFilter(), _Gate(hold)
        self._shown: list[str] = []

    @property
    def is_full(self) -> bool:
        return self.size > MAX_REPLY_BYTES

    @property
    def text(self) -> str:
        """Everything said so far, without thoughts."""
        text = "".join(self._shown)
        closings = list(_CLOSE.finditer(text))
        # some templates open the thought in the prompt, so that only its end is in the reply
        return text[closings[-1].end() :].lstrip() if closings else text

    @property
    def released_text(self) -> str:
        """The part of the text that the listener heard."""
        return self._gate.released_text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(call.final for call in self._calls if call.final)

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of a stream, or a whole reply."""
        error = event.get("error") or (event if event.get("object") == "error" else None)
        if error:
            self.error = error
            return
        usage = event.get("usage") or as_mapping(event.get("x_groq")).get("usage")
        self.usage = usage if isinstance(usage, Mapping) else self.usage
        choices = event.get("choices")
        if not isinstance(choices, list):
            return
        self.events += 1
        for choice in choices:
            if isinstance(choice, Mapping) and choice.get("index") in (None, 0):
                self._take_choice(choice)

    def end(self) -> None:
        """No more events: what was kept back as possibly unfinished is final now."""
        self._release_text(self._text.end())
        for call in self._calls:
            self._settle_call(call)

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        part, at_once = as_mapping(choice.get("delta")), False
        if not part and not self.size:
            part, at_once = as_mapping(choice.get("message")), True
        for key in ("reasoning", "reasoning_content", "reasoning_details"):
            if part.get(key):
                self.thought = True
                self._grow_within_limit(str(part[key]))
        fields = (part.get("content"), choice.get("text"), part.get("refusal"))
        content = next(filter(None, map(_content_text, fields)), "")
        if content and self._grow_within_limit(content):
            self._release_text(self._text.feed(content))
        calls = part.get("tool_calls")
        if not isinstance(calls, list):  # one that is not in a list, or the form before there were tools
            calls = [calls if isinstance(calls, Mapping) else part.get("function_call")]
        for piece in calls:
            if isinstance(piece, Mapping):
                self._take_call(piece, at_once)
        reason = choice.get("finish_reason")
        if reason == "error":
            self.error = choice.get("error") or "the provider stopped with an error"
        elif isinstance(reason, str) and reason:
            self.finish = _FINISHES.get(reason.lower(), "stop")

    def _release_text(self, visible: str) -> None:
        self.thought = self.thought or self._text.thought
        if visible and not self._shown:
            visible = visible.lstrip()
        if visible:
            self._shown.append(visible)
            self.listener.text(self._gate.feed(visible))

    def _take_call(self, piece: Mapping[str, Any], at_once: bool) -> None:
        function = as_mapping(piece.get("function")) or piece
        name, arguments = _as_text(function.get("name")), function.get("arguments")
        text = "" if arguments is None else arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = None
        if not at_once:
            # Servers disagree: an index, an id, both or neither, or always index 0; a name given again begins a new call
            # when the id is another, or when the one before is closed and this is no mere repetition of it.
            index, call_id = piece.get("index"), _as_text(piece.get("id"))
            call = next((c for c in reversed(self._calls) if index is None or c.index == index), None)
            if call and name:
                has_other_id = bool(call_id and call_id != call.id)
                another = call.balance.closed and not call.is_placeholder and bool(text) and text != call.arguments
                call = None if has_other_id or another else call
        if call is None:
            call = _Call(piece.get("index"), _as_text(piece.get("id")))
            self._calls.append(call)
            self._grow_within_limit("call" * 25)
        if call.final:
            return
        if name != call.name and not call.parts:
            call.name += name
        if not self._grow_within_limit(name + text) or not text:
            return
        if call.is_placeholder:
            call.parts, call.told, call.balance = [], 0, _Balance()
        call.parts.append(text)
        call.balance.feed(text)
        if call.name and call.is_whole:
            self._settle_call(call)
        elif call.name and not call.balance.closed:
            self._tell_arguments(call)

    def _tell_arguments(self, call: _Call) -> None:
        for part in call.parts[call.told :]:
            self.listener.arguments(offered_name(call.name, self._tools), json_reader.fix_surrogates(part))
        call.told = len(call.parts)

    def _settle_call(self, call: _Call) -> None:
        if call.final or not (call.name or call.parts):
            return
        # a name that the server accepts when the conversation is sent back to it
        name = re.sub(r"[^\w-]", "_", offered_name(call.name, self._tools), flags=re.ASCII)[:64] or "unknown"
        call.name = name
        self._tell_arguments(call)
        call.final = ToolCall(self.ids.claim(call.id), name, json_reader.fix_surrogates(call.arguments).strip() or "{}")
        self.listener.call(call.final)

    def _grow_within_limit(self, text: str) -> bool:
        """Count what came in; False once the reply is over its size."""
        if self.is_full:
            return False
        self.size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return True


def _content_text(content: object) -> str:
    """Text of a content field: a string, or parts of which only those with text are used."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text")]
    return "".join(_as_text(part.get("text")) for part in parts)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


class _Balance:
    """Follows JSON text in pieces until its outermost bracket closes."""

    _OUTSIDE = re.compile(r'["{}\[\]]')
    _INSIDE = re.compile(r'["\\]')

    def __init__(self) -> None:
        self.closed = self._in_string = self._skip = False
        self._depth = 0

    def feed(self, piece: str) -> None:
        position = 1 if self._skip and piece else 0
        self._skip = self._skip and not piece
        while not self.closed:
            match = (self._INSIDE if self._in_string else self._OUTSIDE).search(piece, position)
            if match is None:
                return
            position = match.end()
            char = match.group()
            if char == '"':
                self._in_string = not self._in_string
            elif char == "\\":
                self._skip = True
            else:
                self._depth += 1 if char in "{[" else -1
                self.closed = self._depth <= 0
            if self._skip and position < len(piece):
                position, self._skip = position + 1, False


# --- text without thoughts


_THINK = r"[tT][hH][iI][nN][kK](?:[iI][nN][gG])?>"  # a literal "<" in front, not a flag or lookbehind, keeps searches fast
_OPEN = re.compile(r"<(?<!`<)" + _THINK)
_CLOSE = re.compile(r"<(?<!`<)/" + _THINK)
_TAGS = ("`<think>", "`<thinking>", "`</think>", "`</thinking>")
_TAG_CHARS = max(map(len, _TAGS))


class _TextFilter:
    """Text in pieces, without `<think>` blocks; a tag in backquotes is a word like any other."""

    def __init__(self) -> None:
        self.thought = self._thinking = False
        self._kept = ""

    def feed(self, piece: str) -> str:
        buffer, position = self._kept + piece, 0
        parts: list[str] = []
        while tag := (_CLOSE if self._thinking else _OPEN).search(buffer, position):
            if not self._thinking:
                parts.append(buffer[position : tag.start()])
            self._thinking = not self._thinking
            self.thought = True
            position = tag.end()
        end = max(position, len(buffer) - _unfinished_length(buffer))
        self._kept = buffer[end:]
        if not self._thinking:
            parts.append(buffer[position:end])
        return json_reader.fix_surrogates("".join(parts))

    def end(self) -> str:
        rest, self._kept = self._kept, ""
        return "" if self._thinking else json_reader.fix_surrogates(rest)


def _unfinished_length(text: str) -> int:
    """How many characters at the end may be the beginning of a tag or half of a character."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return 1
    tail = text[-_TAG_CHARS:].lower()
    if "<" not in tail and "`" not in tail:
        return 0
    for length in range(len(tail), 0, -1):
        if any(tag.startswith(tail[-length:]) or tag[1:].startswith(tail[-length:]) for tag in _TAGS):
            return length
    return 0


_MARK = (
    r"<tool_call|<function=|\[TOOL_CALLS\]|<\|tool_call|<\|python_tag\|>"
    r"|```[ \t]{0,20}(?:json|tool_call|tool_code|tool)?[ \t]{0,20}\n\s{0,20}[{\[]"
)
_HELD = re.compile(_MARK + r"|\n[ \t]{0,20}(?:\{|\[\s{0,20}\{)")
_HELD_AT_START = re.compile(_MARK + r"|(?:\A|\n)[ \t]{0,20}(?:\{|\[\s{0,20}\{)")
_MAYBE_HELD = re.compile(r"(?:<[^\s>]{0,14}|\[[A-Z_]{0,12}|```[^\n]{0,14}(?:\n\s*)?|`{1,2}|\n\s*\[?\s*|\A\s*\[\s*)\Z")


class _Gate:
    """Lets text through until it may be a tool call; from there on it is held until the whole reply is known."""

    def __init__(self, hold: Hold) -> None:
        self._hold, self._waiting = hold, ""
        self._shut = hold == "everything"
        self._passed: list[str] = []

    @property
    def released_text(self) -> str:
        return "".join(self._passed)

    def feed(self, text: str) -> str:
        if self._shut:
            return ""
        if self._hold == "nothing":
            return self._release_text(text)
        pending = self._waiting + text
        mark = (_HELD if self._passed else _HELD_AT_START).search(pending)
        if mark:
            self._shut = True
            return self._release_text(pending[: mark.start()])
        maybe = _MAYBE_HELD.search(pending[-40:])
        end = len(pending) - (len(pending[-40:]) - maybe.start() if maybe else 0)
        self._waiting = pending[end:]
        return self._release_text(pending[:end])

    def _release_text(self, text: str) -> str:
        if text:
            self._passed.append(text)
        return text
