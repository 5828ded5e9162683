"""Sentences of a writer who only quotes: the built-in model.

Below `answer`, beside `rules`. What stands in its page letter for letter is supported by it, also where the cut leaves half
a date: as one stretch, with or without what the page says in brackets, as cells of one row, or behind the line above it that
names what it is about. Nothing is reworded here, so nothing is compared by meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from nexi.answers.citations import set_citations
from nexi.checking.pages import Pages
from nexi.checking.review import find_failing
from nexi.notices import Notice
from nexi.text.blocks import parse_blocks
from nexi.text.plain import strip_markdown
from nexi.types import Claim, Verdict

__all__ = ["accept_quotations"]

MIN_LETTERS = 24  # of a quotation; less may stand anywhere
MIN_BODY_LETTERS = 16  # the same behind the line that names what it is about
MAX_DISTANCE_LETTERS = 32_000  # that a line may stand above what it names

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_BETWEEN_LETTERS = re.compile(r"(?<!\d)[\W_]+|[\W_]+(?!\d)")
_BRACKETS = re.compile(r"\s*\([^()]{0,300}\)")
_PART = re.compile(r"(.+?)((?:\s*\[\d{1,3}\])+)", re.DOTALL)
_CELLS = " – "


def accept_quotations(claims: Sequence[Claim], snapshots: Pages) -> tuple[Claim, ...]:
    """The claims, where a quotation is supported by the page it stands in."""
    doubtful = {claim.index for claim in find_failing(claims)}
    return tuple(_quotation(claim, snapshots) if claim.index in doubtful else claim for claim in claims)


def _quotation(claim: Claim, snapshots: Pages) -> Claim:
    sentence = set_citations(claim.text, ())
    for evidence in claim.evidence:
        snapshot = snapshots.get(evidence.number)
        if snapshot is not None and is_quoted(sentence, snapshot.plain.text):
            reason = Notice("quote.verbatim", "quoted letter for letter")
            good = replace(evidence, verdict=Verdict.FOUND, presence=1.0, fit=1.0, reason=reason, missing=(), other="")
            others = (good if e is evidence else e for e in claim.evidence)
            return replace(claim, verdict=Verdict.FOUND, reason=reason, evidence=tuple(others))
    parts = _PART.findall(claim.text)
    if len(parts) > 1 and all(
        any((page := snapshots.get(int(n))) is not None and is_quoted(part, page.plain.text) for n in re.findall(r"\d+", marks))
        for part, marks in parts
    ):
        return replace(claim, verdict=Verdict.FOUND, reason=Notice("quote.by_parts", "quoted letter for letter, part by part"))
    return claim


def is_quoted(sentence: str, text: str) -> bool:
    """Whether a sentence was put together from letters of a page alone, whatever marks stand between them."""
    cells = [letters for cell in sentence.split(_CELLS) if (letters := _keep_letters(cell))]
    if len(cells) > 1 and sum(map(len, cells)) >= MIN_LETTERS:  # of one row of a table, each as it stands there
        rows = (_keep_letters(text[b.start : b.end]) for b in parse_blocks(text) if b.kind in ("row", "head"))
        if any(all(cell in row for cell in cells) for row in rows):
            return True
    bare = _remove_brackets(sentence)
    return any(_stands_in(sentence, page) or _stands_in(bare, _remove_brackets(page)) for page in (text, strip_markdown(text)))


def _stands_in(sentence: str, text: str) -> bool:
    """As one stretch, or as `line: sentence` where the page has the line above the sentence."""
    whole, page = _keep_letters(sentence), _keep_letters(text)
    if len(whole) < MIN_LETTERS or whole in page:
        return len(whole) >= MIN_LETTERS
    for colon in re.finditer(r":\s", sentence):
        head, body = _keep_letters(sentence[: colon.start()]), _keep_letters(sentence[colon.end() :])
        if len(body) < MIN_BODY_LETTERS or not head:
            return False
        at = page.find(body)
        if at >= 0 and head in page[max(0, at - MAX_DISTANCE_LETTERS) : at]:
            return True
    return False


def _keep_letters(text: str) -> str:
    """Letters and digits; between two digits one mark stays, so that 1.5 is not 15."""
    return _BETWEEN_LETTERS.sub("", _BETWEEN_DIGITS.sub(lambda marks: marks[0][0], text))


def _remove_brackets(text: str) -> str:
    """Without what stands in brackets, and in brackets inside them."""
    return _BRACKETS.sub(" ", _BRACKETS.sub("", text))
