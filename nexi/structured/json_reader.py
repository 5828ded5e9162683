"""JSON written by models, read strictly or leniently.

Engines and the model adapter stand above; nothing stands below. This file knows no tool, no prompt and no network. Readers
raise ValueError and nothing else, in linear time, however long or deep the input is; what a lenient reader repaired must be
checked by the caller.

The library json-repair (0.64) was tried in its place and not taken: a cut string with escaped quotes costs it time that grows
with the square of its length (38 s for 24 kB), it joins separate values to a list, takes NaN, and does not say where in a text
a value stands, which reading tool calls out of prose needs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from nexi.structured.schema_check import shorten_text

MAX_DEPTH = 100
MAX_LENIENT_CHARS = 6_000_000
MAX_VALUES = 100_000  # values a lenient reader takes from one text
MAX_STARTS = 1000  # places in one text at which a lenient reader begins


def parse_json(text: str) -> object:
    """Strict JSON. Raises ValueError, also for NaN, endless numbers and nesting deeper than MAX_DEPTH."""
    with suppress(RecursionError):
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_finite)
        level = [value]  # of nesting; read level by level, depth costs no stack
        for _ in range(MAX_DEPTH + 1):
            parents = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
            level = [child for children in parents for child in children if isinstance(child, dict | list)]
            if not level:
                return value if text.isascii() and "\\u" not in text else _fix_value(value)
    raise ValueError("nested too deeply")


def parse_lenient(text: str) -> object:
    """The widest JSON value in a model's text, for a schema to check. Raises ValueError."""
    # Prose, fences, trailing commas, single quotes, bare keys, Python's constants and a missing end are forgiven.
    text = text.strip().lstrip("\ufeff")
    with suppress(ValueError):
        return parse_json(text)
    if text in _WORDS:
        return _WORDS[text]
    best = max(find_values(text), key=lambda value: value.end - value.start, default=None)
    if best is None:
        raise ValueError("no JSON object or array in the text")
    return best.value


class _JsonFragment(Struct, frozen=True):
    """An object or array inside a text; `closed` is False where the text ended first."""

    start: int
    end: int
    value: object
    closed: bool


def find_values(text: str) -> Iterator[_JsonFragment]:
    """The objects and arrays in a text, read leniently, from left to right without overlap. Raises ValueError if too long."""
    if len(text) > MAX_LENIENT_CHARS:
        raise ValueError(f"longer than {MAX_LENIENT_CHARS} characters")
    position, allowance = 0, MAX_VALUES
    for _ in range(MAX_STARTS):
        opening = _OPENING.search(text, position)
        if opening is None or allowance <= 0:
            return
        reader = _JsonReader(text, opening.start(), allowance)
        try:
            value = _fix_value(reader.value(0))
        except (ValueError, RecursionError):
            position, allowance = max(reader.position, opening.end()), reader.left
            continue
        yield _JsonFragment(opening.start(), reader.position, value, not reader.ended)
        position, allowance = reader.position, reader.left


_OPENING = re.compile(r"[{\[]")
_SPACE = re.compile(r"[\s\ufeff]*")
_COMMAS = re.compile(r"[\s\ufeff,]*")
_NUMBER = re.compile(r"[+-]?\d{1,400}(?:\.\d{0,400})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]{0,99}")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_AFTER_STRING = re.compile(r"\s*(?:[,:}\]]|$)")
_DANGLING = re.compile(  # what is left of a word, a sign or a number where the text ended in it
    r"(?!(?:true|false|null|True|False|None)\Z)(?:[A-Za-z]{1,5}|[+-]|[+-]?\d{1,400}(?:\.\d{0,400})?[eE][+-]?)?\Z"
)
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class _JsonReader:
    """A forgiving reader of one value, of at most `allowance` values; `ended` turns True when the text stopped first."""

    def __init__(self, text: str, position: int, allowance: int) -> None:
        self.text, self.position, self.left = text, position, allowance
        self.ended = False

    def value(self, depth: int) -> object:
        self.left -= 1
        if self.left < 0:
            raise ValueError("too many values")
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        char = self._peek_char()
        if char == "{":
            return self._read_object(depth)
        if char == "[":
            self.position += 1
            items: list[object] = []
            while self._has_more("]", first=not items):
                items.append(self.value(depth + 1))
            return items
        if char in _PLAIN:
            return self._read_string(char)
        if number := _NUMBER.match(self.text, self.position):
            self.position = number.end()
            return int(number[0]) if re.fullmatch(r"[+-]?\d+", number[0]) else _parse_finite(number[0])
        word = _WORD.match(self.text, self.position)
        if word and word.group() in _WORDS:
            self.position = word.end()
            return _WORDS[word.group()]
        raise ValueError("expected a value")

    def _read_object(self, depth: int) -> dict[str, object]:
        self.position += 1
        result: dict[str, object] = {}
        while self._has_more("}", first=not result):
            char = self._peek_char()
            if char in _PLAIN:
                key = self._read_string(char)
            elif word := _WORD.match(self.text, self.position):
                self.position, key = word.end(), word.group()
            else:
                raise ValueError("expected a key")
            if self._is_over():
                return result
            if self._peek_char() != ":":
                raise ValueError("expected a colon")
            self.position += 1
            if self._is_over():
                return result
            result[key] = self.value(depth + 1)
        return result

    def _has_more(self, closing: str, *, first: bool) -> bool:
        """Step over commas to the next item; False when the collection is over."""
        # A bracket of the other kind ends this collection too and is left for the one above.
        commas = self._skip_pattern(_COMMAS)
        if self._is_over():
            return False
        char = self.text[self.position]
        if char in "}]":
            self.position += char == closing
            return False
        if not first and "," not in commas:
            raise ValueError("expected a comma")
        return True

    def _is_over(self) -> bool:
        """Whether the text ends here, or in the middle of a word or sign that cannot be read any more."""
        self._skip_pattern(_SPACE)
        if _DANGLING.match(self.text, self.position):
            self.position = len(self.text)
            self.ended = True
        return self.ended

    def _read_string(self, quote: str) -> str:
        self.position += 1
        parts: list[str] = []
        while True:
            parts.append(self._skip_pattern(_PLAIN[quote]))
            if self.position >= len(self.text):
                self.ended = True
                return "".join(parts)
            if self.text[self.position] == "\\":
                char = self.text[self.position + 1 : self.position + 2]
                self.position += 2
                if char == "u" and (digits := _HEX.match(self.text, self.position)):
                    self.position, char = digits.end(), chr(int(digits.group(), 16))
                else:
                    char = _ESCAPES.get(char, char)
                parts.append(char)
                continue
            self.position += 1
            if quote == '"' or _AFTER_STRING.match(self.text, self.position):
                return "".join(parts)
            parts.append(quote)

    def _peek_char(self) -> str:
        self._skip_pattern(_SPACE)
        return self.text[self.position : self.position + 1]

    def _skip_pattern(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        if match is None:
            return ""
        self.position = match.end()
        return match.group()


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shorten_text(text)} is too large a number")
    return number


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object; else an empty one."""
    return value if isinstance(value, Mapping) else {}


def fix_surrogates(text: str) -> str:
    """Join surrogate pairs that were written apart and replace lone halves, so that the text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _fix_value(value: Any) -> Any:
    """The same JSON value with the surrogates of every string fixed."""
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, list):
        return [_fix_value(item) for item in value]
    if isinstance(value, dict):
        return {fix_surrogates(key): _fix_value(item) for key, item in value.items()}
    return value
