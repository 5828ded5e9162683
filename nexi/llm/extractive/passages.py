"""Page Markdown as plain sentences, and sentences as comparable words.

Below the built-in model, above nothing: pure text in, frozen values out. Knows no question, no citation number and no
site; every pass over a page is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from nexi.llm.extractive._limits import MAX_LINE_WORDS, MAX_PAGES_READ, MAX_QUERY_CHARS, MAX_SENTENCE_CHARS, MIN_NAME_CHARS
from nexi.text.blocks import list_cells, parse_blocks, read_block
from nexi.text.languages import LANGUAGES, Language
from nexi.text.plain import strip_markdown
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import normalise_word, stem
from nexi.text.terms import fold_text
from nexi.text.words import STOP, has_unspaced

__all__ = ["ContentWords", "PassageSentence", "is_about_code", "read_sentences"]

MIN_CODE_SHARE = 0.1  # of sentences, from which a text is about code

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+|(?:[_.][^\W_]+)+)?")
# Not the quotation marks of TeX, ``so'', which texts that were cut into words have too: `` so ''.
_CODE = re.compile(r"(?<!`)`(?!`)|``(?![ `]|[^`]*'')|\b[a-z]+\d*_\w+|\w\(\)")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_AFTER_LATIN = "\u0250"  # accents are folded in Latin letters only: elsewhere they make another letter


class PassageSentence(Struct, frozen=True):
    """One sentence of a page. `label` is the heading or defined term it stands under; `block` its paragraph."""

    text: str
    block: int = 0
    label: str = ""
    kind: str = "prose"
    heads: tuple[str, ...] = ()  # of the columns of a row, where its table has them
    cells: tuple[str, ...] = ()  # of a row, empty ones too


def split_sentences(text: str) -> list[str]:
    """Sentences of one plain paragraph."""
    return [text[start:end] for start, end in sentence_bounds(text, MAX_SENTENCE_CHARS)]


@lru_cache(maxsize=2 * MAX_PAGES_READ)
def read_sentences(markdown: str) -> tuple[PassageSentence, ...]:
    """The sentences of a page in order, each with its paragraph and the label above it; a row or a line of code is one."""
    # The pages of a question are read again when others come to them, so that the last pages are remembered.
    out: list[PassageSentence] = []
    label = ""
    for number, block in enumerate(parse_blocks(markdown)):
        text = read_block(markdown, block)
        match block.kind:
            case "rule":
                continue
            case "mark":
                label = block.trail[-1] if block.trail else ""
            case "code":
                lines = filter(None, map(str.strip, text.split("\n")))
                out += (PassageSentence(line, number, label, "code") for line in lines)
            case "row" | "head":
                cells = tuple(map(strip_markdown, list_cells(text)))
                if any(cells):
                    out.append(PassageSentence(_join_cells(cells), number, label, block.kind, block.heads, cells))
            case kind:
                plain = text if kind == "formula" else strip_markdown(text)
                if not plain:
                    continue
                if kind == "heading" or (kind in ("prose", "caption") and is_label(plain)):
                    label = plain
                    out.append(PassageSentence(plain, number, "", "label"))
                else:
                    parts = [plain] if kind == "formula" else split_sentences(plain)
                    out += (PassageSentence(part, number, label, "item" if kind == "item" else "prose") for part in parts)
    # of bytes that are no text, such as those within a PDF, nothing is read
    return tuple(s for s in out if MIN_NAME_CHARS * s.text.count("\ufffd") <= len(s.text.split()))


def name_cells(row: PassageSentence, columns: Collection[int] = ()) -> PassageSentence:
    """A row that says which column each of its cells is of: "Crop: Rye – 2022: 88"; of `columns` alone, and the first one."""
    # A cell that is empty says nothing, and neither does its head.
    heads = (*map(strip_markdown, row.heads), *[""] * len(row.cells))
    cells = [
        f"{head}: {cell}" if head and head != cell else cell
        for number, (head, cell) in enumerate(zip(heads, row.cells, strict=False))
        if cell and (not columns or not number or number in columns)
    ]
    return replace(row, text=_join_cells(cells))


def _join_cells(cells: Sequence[str]) -> str:
    return " ".join(" – ".join(cells).split())


def is_about_code(sentences: Sequence[PassageSentence]) -> bool:
    """Whether sentences are of a manual or another text about code."""
    return sum(s.kind == "code" or _CODE.search(s.text) is not None for s in sentences) > MIN_CODE_SHARE * len(sentences)


def is_label(text: str) -> bool:
    return text[-1] not in ".!?:;,。" and len(text) < MAX_QUERY_CHARS and len(text.split()) <= MAX_LINE_WORDS


class ContentWords:
    """Text as stems, remembering each word it has seen; one instance reads one set of pages for a question in one language."""

    def __init__(self, language: str = "") -> None:
        self._stems: dict[str, tuple[str, ...]] = {}
        self._language = LANGUAGES.get(language)

    def stems(self, text: str) -> list[str]:
        """The content words of a text, stemmed, in order; identifiers also give their parts."""
        cache = self._stems
        out: list[str] = []
        for word in _WORD.findall(text):
            word_stems = cache.get(word)
            if word_stems is None:
                word_stems = cache[word] = tuple(_stems_in(word, self._language) if self._language else _stems_of(word))
            out += word_stems
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
    humps = _HUMP.findall(word) if low != word and not word.istitle() else ()
    parts = [p.lower() for p in humps if len(p) > 2] if len(humps) > 1 else []
    return [stem(low), *(stem(part) for part in parts if part not in STOP)]
