"""Text that shows and does nothing else.

Pages, titles and answers come from strangers. What would command a terminal, or make text look like other text, is taken out
before anything is written: escape sequences, control characters, and the marks that override the direction of writing.
"""

from __future__ import annotations

import re

_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Needed only where that one finds something, so they are not compiled at every start.
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
    """The text without what a terminal would obey; line breaks become newlines, stray halves of characters become �."""
    if not _HARMFUL.search(text):
        return text
    text = re.sub(_BREAK, "\n", re.sub(_SEQUENCE, "", text))
    return re.sub(_LONE, "\ufffd", re.sub(_CONTROL, "", text))


def clean_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(clean_text(text).split())


def escape_json(json_text: str) -> str:
    """JSON in which such characters are written as escapes, so that nothing is lost."""
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)
