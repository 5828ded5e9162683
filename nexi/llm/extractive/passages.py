"""Page Markdown as plain sentences, and sentences as comparable words.

Below the built-in model, above nothing: pure text in, frozen values out. Knows no question, no citation number and no
site; every pass over a page is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from nexi.text.excerpts import PART_MARK
from nexi.text.languages import LANGUAGES, Language
from nexi.text.plain import strip_markdown
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import stem
from nexi.text.stopwords import STOP
from nexi.text.terms import fold_text
from nexi.text.wordforms import normalise_word
from nexi.text.words import has_unspaced

__all__ = ["ContentWords", "PassageSentence", "read_sentences"]


MAX_LABEL_WORDS = 24
MAX_SENTENCE_CHARS = 1500

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+|(?:[_.][^\W_]+)+)?")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_AFTER_LATIN = "\u0250"  # accents are folded in Latin letters only: elsewhere they make another letter
_RULE = re.compile(r"^\s*\|?[\s:|=+-]+\|?\s*$")


class PassageSentence(Struct, frozen=True):
    """One sentence of a page. `label` is the heading or defined term it stands under; `block` its paragraph."""

    text: str
    block: int = 0
    label: str = ""
    kind: str = "prose"


def split_sentences(text: str) -> list[str]:
    """Sentences of one plain paragraph."""
    return [text[start:end] for start, end in sentence_bounds(text, MAX_SENTENCE_CHARS)]


def read_sentences(markdown: str) -> list[PassageSentence]:
    """The sentences of a page in order, each with its paragraph and the label above it."""
    out: list[PassageSentence] = []
    label = ""
    for number, (kind, raw) in enumerate(_split_blocks(markdown)):
        text = _row_text(raw) if kind == "row" else raw if kind == "code" else strip_markdown(raw)
        if kind == "part":  # of an excerpt: names the heading that the next sentences stand under
            label = text
        elif not text:
            continue
        elif kind == "heading" or (kind == "prose" and _is_label(text)):
            label = text
            out.append(PassageSentence(text, number, "", "label"))
        else:
            parts = [text] if kind in ("row", "code") else split_sentences(text)
            out += [PassageSentence(part, number, label, kind) for part in parts]
    return out


def _is_label(text: str) -> bool:
    return text[-1] not in ".!?:;,。" and len(text) < 240 and len(text.split()) <= MAX_LABEL_WORDS


def _row_text(line: str) -> str:
    cells = (strip_markdown(cell) for cell in line.strip().strip("|").split("|"))
    return " – ".join(cell for cell in cells if cell)


def _split_blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of paragraphs, list items, headings, table rows and lines of code."""
    held: list[str] = []
    kind, fenced = "prose", False
    for line in markdown.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            found, fresh = "", True
        elif PART_MARK.match(line):
            found, fresh, fenced = "part", True, False
        elif fenced:
            found, fresh = "code", True
        else:
            found, fresh = _line_kind(line, kind)
        if fresh and held:
            yield kind, "\n".join(held)
            held = []
        kind = found or "prose"
        if found:
            held.append(_line_content(line, found))
    if held:
        yield kind, "\n".join(held)


def _line_kind(line: str, current: str) -> tuple[str, bool]:
    """What a line is ("" for nothing), and whether it begins a new block."""
    if not line.strip() or (_RULE.match(line) and not line.strip().isspace()):
        return "", True
    if _HEADING.match(line):
        return "heading", True
    if line.lstrip().startswith("|"):
        return "row", True
    if _ITEM.match(line):
        return "item", True
    return (current, False) if current in ("item", "prose") else ("prose", True)


def _line_content(line: str, kind: str) -> str:
    if kind == "heading":
        match = _HEADING.match(line)
        return match.group(1) if match else line
    if kind == "part":
        return line.rstrip("]").partition(": ")[2].rpartition(" > ")[2]
    return _ITEM.sub("", line.lstrip(" >"), count=1) if kind in ("item", "prose") else line.strip()


class ContentWords:
    """Text as stems, remembering each word it has seen; one instance reads one set of pages for a question in one language."""

    def __init__(self, language: str = "") -> None:
        self._stems: dict[str, tuple[str, ...]] = {}
        self._language = LANGUAGES.get(language)

    def stems(self, text: str) -> list[str]:
        """The content words of a text, stemmed, in order; identifiers also give their parts."""
        known = self._stems
        out: list[str] = []
        for word in _WORD.findall(text):
            found = known.get(word)
            if found is None:
                found = known[word] = tuple(_stems_in(word, self._language) if self._language else _stems_of(word))
            out += found
        return out


def _stems_in(word: str, language: Language) -> Iterable[str]:
    """The stems of a word of another language than English: without its small words, articles and endings."""
    if has_unspaced(word):
        return _stems_of(word)
    low = word.replace("İ", "i").lower().replace("’", "'")
    head, mark, rest = low.partition("'")
    if mark:  # "l'horloge", "Müzesi'ni"
        low = rest if len(head) < len(rest) and language.name != "Turkish" else head
    if low in language.stop:
        return ()
    root = stem(fold_text(low) if language.name == "Arabic" else low, language.stemmer)
    return [fold_text(root)]


def _stems_of(word: str) -> Iterable[str]:
    if has_unspaced(word):
        return [word[i : i + 2] for i in range(max(1, len(word) - 1))]
    low = word.lower().replace("’", "'").removesuffix("'s")
    if "_" in word or "." in word:
        return [low, *(s for part in re.split(r"[_.]", word) for s in _stems_of(part))]
    if not low.isascii() and low[0] < _AFTER_LATIN:
        low = normalise_word(low)
    if low in STOP or not low:
        return ()
    humps = _HUMP.findall(word) if low != word and not word.istitle() and len(word) > 3 else ()
    parts = [p.lower() for p in humps if len(p) > 2] if len(humps) > 1 else []
    return [stem(low), *(stem(part) for part in parts if part not in STOP)]
