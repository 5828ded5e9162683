"""Tells what is no answer from an answer: the call of a tool that a model wrote out as text, and text that repeats itself."""

from __future__ import annotations

import json
import re
import zlib

MIN_BABBLE_BYTES = 400
MAX_BABBLE_SHARE = 0.1  # that compression leaves of a text; prose and tables keep a quarter and more
_WRAPPING = re.compile(r"^(?:```|~~~)\w*\s|\s*(?:```|~~~)$")
_CALL_TAG = re.compile(r"<(?:tool_call|tools?|tool_response|function_call)\b", re.IGNORECASE)
_CALL_KEYS = frozenset(("tool", "tool_name", "function", "arguments", "parameters", "queries", "urls"))


def is_no_answer(text: str) -> bool:
    """Whether a reply cannot be an answer: it is empty, a tool call, or the same words over and over."""
    return not text.strip() or _is_tool_call(text) or is_babble(text)


def is_babble(text: str) -> bool:
    """Whether a text goes on and on with the same words."""
    body = text.encode("utf-8", "replace")
    return len(body) >= MIN_BABBLE_BYTES and len(zlib.compress(body)) < MAX_BABBLE_SHARE * len(body)


def _is_tool_call(text: str) -> bool:
    """Whether a text is the call of a tool that a model wrote out instead of making it: no answer, whatever it says."""
    if _CALL_TAG.match(text.strip()):
        return True
    try:
        value = json.loads(_WRAPPING.sub("", text.strip()).strip())
    except ValueError:
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(isinstance(call, dict) and bool(_CALL_KEYS & call.keys()) for call in calls)
