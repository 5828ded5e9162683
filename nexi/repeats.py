"""Repeats: which tool calls a model has made before, so that the same one is answered with a word and not run again.

The loop above asks before it runs a call and tells how it went; what a tool does is not known here. A call that brought
something is never worth making twice; one that failed or brought nothing may be tried once more.
"""

from __future__ import annotations

import json
from collections import Counter

from nexi.schema import parse_lenient
from nexi.types import ToolCall, ToolResult

MOST_TRIES = 2
MOST_TURNS = 2  # turns of nothing but repeats, after which a model is taken to go round in circles
WORDS = (
    "not run again: you have made this very call before, and its result is above. "
    "Use it, ask for something else, or give the final answer"
)


class Repeats:
    """The calls of one conversation, by name and arguments."""

    def __init__(self) -> None:
        self._tries: Counter[str] = Counter()
        self._done: set[str] = set()
        self._idle_turns = 0

    def begin(self, call: ToolCall) -> bool:
        """Whether the call may run; it then counts as under way until `end`."""
        mark = mark_of(call)
        if mark in self._done or self._tries[mark] >= MOST_TRIES:
            return False
        self._tries[mark] += 1
        self._done.add(mark)
        return True

    def end(self, call: ToolCall, result: ToolResult | None) -> None:
        """How the call went; without a result it was broken off."""
        if result is None or not result.ok or not result.value:
            self._done.discard(mark_of(call))

    def turned(self, calls: int, refused: int) -> bool:
        """After a turn with so many calls: whether the model goes round in circles."""
        self._idle_turns = self._idle_turns + 1 if calls and refused == calls else 0
        return self._idle_turns >= MOST_TURNS

    def forget(self) -> None:
        """The results are no longer in sight, so asking again is no repeat."""
        self._tries.clear()
        self._done.clear()


def mark_of(call: ToolCall) -> str:
    """A call without its spelling: the order of keys and the blanks between them do not make it another."""
    try:
        arguments = json.dumps(parse_lenient(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        arguments = call.arguments
    return f"{call.name} {arguments}"
