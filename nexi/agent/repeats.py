"""Which tool calls a model has made before: a repeated call gets a fixed message instead of being run.

A call that brought something is not run again; one that failed or brought nothing may be tried once more. What compaction
removed may be asked for again, though not in a circle.
"""

from __future__ import annotations

import json
from collections import Counter

from nexi.structured.json_reader import parse_lenient
from nexi.types import ToolCall, ToolResult

MAX_TRIES = 2
MAX_CALL_RUNS = 2  # of one call, however often the conversation is compacted
MAX_IDLE_TURNS = 2  # turns of nothing but repeated calls, after which the model counts as looping
REPEATED_CALL_MESSAGE = (
    "not run again: you have made this very call before, and its result is above. "
    "Use it, ask for something else, or give the final answer"
)


class RepeatedCalls:
    """The calls of one conversation, by name and arguments. `max_runs` limits each of them; None for no limit."""

    def __init__(self, max_runs: int | None = None) -> None:
        self._max_runs = max_runs
        self._runs: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._done: set[str] = set()
        self._idle_turns = 0

    def start_call(self, call: ToolCall) -> bool:
        """Register a call and return whether it may run; until `end_call` it counts as running."""
        key = _call_key(call)
        is_used_up = self._max_runs is not None and self._runs[key] >= self._max_runs
        if is_used_up or key in self._done or self._tries[key] >= MAX_TRIES:
            return False
        self._runs[key] += 1
        self._tries[key] += 1
        self._done.add(key)
        return True

    def end_call(self, call: ToolCall, result: ToolResult | None) -> None:
        """Register the result of a call, None when it was cancelled."""
        if result is None or not result.ok or not result.value:
            self._done.discard(_call_key(call))

    def count_turn(self, calls: int, repeated: int) -> bool:
        """Register a turn and say whether the last ones had nothing but repeated calls, which were not run."""
        self._idle_turns = self._idle_turns + 1 if calls and repeated == calls else 0
        return self._idle_turns >= MAX_IDLE_TURNS

    def forget(self) -> None:
        """Allow calls again: compaction removed their results from the conversation."""
        self._tries.clear()
        self._done.clear()


def _call_key(call: ToolCall) -> str:
    """Identify a call by name and arguments, whatever the order of its keys and the blanks between them."""
    try:
        arguments = json.dumps(parse_lenient(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        arguments = call.arguments
    return f"{call.name} {arguments}"
