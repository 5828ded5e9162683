"""Titles and headings of a report, made of the question and its parts: what it is about, and not the prompt.

Below everything in this folder that writes a report. Pure, and English: a question in another language stays as it is.
"""

from __future__ import annotations

import re

from nexi.research.parts import find_subject
from nexi.research.planner import split_question
from nexi.text.names import find_names
from nexi.text.sentences import sentence_bounds

__all__ = ["make_heading", "make_title"]

MAX_TITLE_CHARS = 110
MAX_NAMES = 3
MAX_SUBJECT_WORDS = 4
_COMMAND = re.compile(
    r"^(?:please\s+)?(?:(?:can|could|would) you\s+)?(?:please\s+)?(?:describe|compare|explain|discuss|list|outline|"
    r"summari[sz]e|research|analy[sz]e|investigate|(?:write|prepare|give me|make|create) (?:me )?(?:an?|the) (?:[\w-]+ ){0,2}"
    r"(?:report|overview|summary|analysis|brief(?:ing)?) (?:of|on|about))\s+",
    re.IGNORECASE,
)
_WHAT_ARE = re.compile(
    r"^what (?:is|are|was|were) (?:the )?(?=(?:[\w-]+,? ){1,5}(?:of|in|for|between|behind)\b)", re.IGNORECASE
)
_SUBJECT_HINT = re.compile(r"\s*\([^()]*\)(?=\??$)")


def make_title(question: str) -> str:
    """The title of a report: what the question is about where it has several parts, and never more than a line."""
    lines = [" ".join(line.split()) for line in question.splitlines() if line.strip()] or [question]
    first = next((lines[0][start:end] for start, end in sentence_bounds(lines[0], len(lines[0]) or 1)), lines[0])
    plain = _strip_command(first)
    short = _WHAT_ARE.sub("", plain)
    parts = split_question(question)
    names = find_names(question)
    if plain != first or (short != plain and not any(part.endswith("?") and not _WHAT_ARE.match(part) for part in parts)):
        title = short.rstrip("?. ")
    elif len(parts) > 1:
        subject = find_subject(parts[0])
        subject = subject if len(subject.split()) <= MAX_SUBJECT_WORDS else ""
        listed = list(dict.fromkeys(names))[:MAX_NAMES] if len(names) > 1 else [subject or make_heading(parts[0])]
        title = " and ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:]))) or plain
    else:
        title = plain
    if len(title) > MAX_TITLE_CHARS:
        title = title[:MAX_TITLE_CHARS].rpartition(" ")[0].rstrip(" ,;:(") + " …"
    return title[:1].upper() + title[1:]


def make_heading(part: str) -> str:
    """The heading of a part: without the subject in brackets that its search needs, and without "Describe" or "Compare"."""
    return _strip_command(_SUBJECT_HINT.sub("", part))


def _strip_command(text: str) -> str:
    rest = _COMMAND.sub("", text)
    rest = rest.rstrip(".") if rest and rest != text else text
    return rest[:1].upper() + rest[1:]
