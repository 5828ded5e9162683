"""Sentences of our own prompts, which a weak model repeats instead of an answer.

Pure. The check above leaves them out of what it releases, and the writer of a report out of its sections. A sentence that
stands in a page is no echo, whoever else says it: that is for the caller to know.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from nexi.prompts import NAMES, template
from nexi.text.sentences import sentence_bounds

MIN_WORDS = 5  # a shorter sentence may be anybody's
MAX_VALUE_CHARS = 400  # of what a prompt has in the place of a value
_FRAME = re.compile(r"Source \[\d+\], .*:|Notes of the researchers:|Now write the section “.*|## Researcher \d+\.\d+: .*")
_VALUE = re.compile(r"\{[a-z_]+\}")
_CITATION = re.compile(r"\[(?:\d{1,3}|n)\]")
_SIGNS = re.compile(r"[^\w\x00]+")
_EXAMPLE = re.compile(r": (?=[A-Z\"“])")
_LABEL = re.compile(r"^([A-Z][\w ]+:)(?: \{[a-z_]+\})?$", re.MULTILINE)  # "The question: {question}"
_TITLE = re.compile(r"^#+ .+$", re.MULTILINE)
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,2}[.)])\s+")


class _PromptText(Struct, frozen=True):
    """The sentences of all prompts without signs, patterns for those that have a value in them, and labels and titles."""

    sentences: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    labels: tuple[str, ...]
    titles: frozenset[str]


def is_prompt_text(text: str) -> bool:
    """Whether a line or a sentence stands in one of our prompts."""
    prompts, line, flat = _read_prompts(), text.strip(), _flatten(text)
    if line in prompts.titles or line.startswith(prompts.labels) or _FRAME.fullmatch(line):
        return True
    return flat in prompts.sentences or any(pattern.fullmatch(flat) for pattern in prompts.patterns)


def drop_prompt_text(text: str) -> str:
    """A text without the lines and sentences of a prompt; its line breaks stay."""
    lines = []
    for line in text.split("\n"):
        sentences = [line[start:end] for start, end in sentence_bounds(line, len(line) or 1)]
        own = [] if is_prompt_text(line) else [sentence for sentence in sentences if not is_prompt_text(sentence)]
        lines.append(line if len(own) == len(sentences) else " ".join(own))
    return "\n".join(lines)


def _flatten(text: str) -> str:
    return " ".join(_SIGNS.sub(" ", _CITATION.sub(" ", _LIST_MARK.sub("", text)).casefold()).split())


@cache
def _read_prompts() -> _PromptText:
    texts = [template(name)[0].replace("{{", "").replace("}}", "") for name in NAMES]
    # The lines of a prompt, their sentences, and the examples in them, as far as they are long enough to be known again.
    units = set()
    for line in (line for text in texts for line in text.split("\n")):
        sentences = [line[start:end] for start, end in sentence_bounds(line, len(line) or 1)]
        examples = [example for sentence in sentences for example in _EXAMPLE.split(sentence)[1:]]
        for unit in (line, *sentences, *examples):
            if len(_flatten(_VALUE.sub(" ", unit)).split()) >= MIN_WORDS:
                units.add(_flatten(_VALUE.sub("\0", unit)))
    value = f".{{0,{MAX_VALUE_CHARS}}}"
    parts = {unit: [re.escape(part.strip()) for part in unit.split("\0")] for unit in sorted(units) if "\0" in unit}
    patterns = tuple(re.compile(value.join(own), re.DOTALL) for own in parts.values())
    labels = tuple(dict.fromkeys(label for text in texts for label in _LABEL.findall(text) if " " in label))
    titles = frozenset(title for text in texts for title in _TITLE.findall(text))
    return _PromptText(frozenset(units - parts.keys()), patterns, labels, titles)
