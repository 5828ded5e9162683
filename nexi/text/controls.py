"""Removes what a terminal would execute from text.

Pages, titles and answers are untrusted. Escape sequences, control characters and marks that override the direction of
writing are removed before anything is printed, or written to a file that someone may print later.
"""

from __future__ import annotations

import re

_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Compiled only when _HARMFUL matches, to keep the start fast.
_SEQUENCE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # a colour, a cursor movement
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # a title, a link, a clipboard write
    r"|\x1b[ -/]*[0-~]"
)
_BREAK = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
_CONTROL = "[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_LONE = "[\ud800-\udfff]"


def clean_text(text: str) -> str:
    """Remove control sequences; line breaks become newlines, lone surrogates become �."""
    if not _HARMFUL.search(text):
        return text
    text = re.sub(_BREAK, "\n", re.sub(_SEQUENCE, "", text))
    return re.sub(_LONE, "\ufffd", re.sub(_CONTROL, "", text))


def clean_line(text: str) -> str:
    """Clean text and put it on one line."""
    return " ".join(clean_text(text).split())


def escape_json(json_text: str) -> str:
    """Escape such characters in JSON, so that nothing is lost."""
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)
