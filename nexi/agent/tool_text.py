"""Tells the call of a tool that a model wrote out as text from an answer."""

from __future__ import annotations

import json
import re

_WRAPPING = re.compile(r"^(?:```|~~~)\w*\s|\s*(?:```|~~~)$")
_CALL_TAG = re.compile(r"<(?:tool_call|tools?|tool_response|function_call)\b", re.IGNORECASE)
_CALL_KEYS = frozenset(("tool", "tool_name", "function", "arguments", "parameters", "queries", "urls"))


def is_tool_call(text: str) -> bool:
    """Whether a text is the call of a tool that a model wrote out instead of making it: no answer, whatever it says."""
    body = _WRAPPING.sub("", text.strip()).strip()
    if _CALL_TAG.match(text.strip()):
        return True
    try:
        value = json.loads(body)
    except ValueError:
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(isinstance(call, dict) and bool(_CALL_KEYS & call.keys()) for call in calls)
