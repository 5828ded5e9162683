"""What a small language model is given to answer a question from: the sentences of the pages that speak to it best.

Beside the built-in model, above `evidence` and `composition`; the app hands `choose_passages` to the loop. Pages are ranked
whole, so the window of the model that will read the passages cuts nothing before the ranking.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from nexi.llm.extractive._evidence import Scored, SentenceRanking
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.passages import ContentWords
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView

__all__ = ["adds_answer", "choose_passages"]


MAX_WORDS = 160  # of all passages: about 250 tokens; with 270 the answer stands in them hardly more often
MAX_PAGES = 3
MAX_SENTENCE_WORDS = 70
GAP = " … "
_CITATION = re.compile(r"\[\d+\]")
_YES_OR_NO = re.compile(r"(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may)\b", re.IGNORECASE)
_NAME_OR_NUMBER = re.compile(r"\b(?:[^\W\d_a-z]|\d)[\w.,'’-]*")


def choose_passages(question: str, pages: Sequence[PageView]) -> str:
    """The best sentences of the pages, under the number and title of their page.

    "" where a model should not be asked: the built-in model decides the question itself, needs two pages for its answer, which
    small models mix up, or finds no answer in them.
    """
    read = read_question(question)
    readable = [page for page in pages if page.text and not page.error]
    draft = compose_answer(read, readable) if readable else None
    if draft is None or not draft.lines or draft.short or draft.answered == "no":
        return ""
    if len({number for _, number in draft.lines}) > 1:
        return ""
    ranking = SentenceRanking(read, readable)
    order = sorted(range(len(readable)), key=lambda i: readable[i].number != draft.lines[0][1])
    chosen = _choose_sentences(ranking, [text for text, _ in draft.lines])
    parts = [_render_page(ranking, page, [s for s in chosen if s.page == page]) for page in order]
    return "\n\n".join(part for part in parts if part)


def adds_answer(question: str, text: str, quotation: str, titles: str) -> bool:
    """Whether a text says more than its question and the titles of its pages, and names nothing beyond the best quotation.

    Passages lie side by side, and a small model joins a name of one to the facts of another.
    """
    words = ContentWords()
    best = _CITATION.split(quotation)[0]  # the sentence that answers best stands first
    asked, quoted = set(words.stems(f"{question} {titles}")), set(words.stems(best))
    bare = _CITATION.sub(" ", text)
    names = {stem for name in _NAME_OR_NUMBER.findall(bare) for stem in words.stems(name)}
    repeats = asked.issuperset(words.stems(bare)) and not _YES_OR_NO.match(question.strip())
    return names <= asked | quoted and not repeats


def _choose_sentences(ranking: SentenceRanking, quoted: Sequence[str]) -> list[Scored]:
    """What the built-in model would quote, then whatever is ranked best, while there is room."""
    usable = [s for s in ranking.ranked if s.sentence.kind != "label" and len(s.sentence.text.split()) <= MAX_SENTENCE_WORDS]
    first = [s for s in usable if any(_is_quoted(s.sentence.text, text) for text in quoted)]
    chosen: list[Scored] = []
    left = MAX_WORDS
    for scored in dict.fromkeys((*first, *usable)):
        length = len(scored.sentence.text.split())
        fits = length <= left and len({s.page for s in chosen} | {scored.page}) <= MAX_PAGES
        if fits and all(scored.sentence.text != other.sentence.text for other in chosen):
            chosen.append(scored)
            left -= length
    return chosen


def _is_quoted(sentence: str, text: str) -> bool:
    bare = text.strip("… ")
    return bare in sentence or sentence in bare


def _render_page(ranking: SentenceRanking, page: int, chosen: Sequence[Scored]) -> str:
    """The sentences of one page in their order, with a mark where the page says more between them."""
    if not chosen:
        return ""
    ordered = sorted(chosen, key=lambda s: s.place)
    text = ordered[0].sentence.text
    for before, scored in itertools.pairwise(ordered):
        text += (" " if scored.place == before.place + 1 else GAP) + scored.sentence.text
    return f"Source [{ranking.pages[page].number}], {ranking.subjects[page]}:\n{text}"
