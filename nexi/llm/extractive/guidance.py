"""What a small language model is given to answer a question from: the passages of the pages that speak to it best.

Beside the built-in model, above `evidence` and `composition`; the app hands `choose_passages` to the loop. Pages are ranked
whole, so the window of the model that will read the passages cuts nothing before the ranking.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from nexi.llm.extractive._evidence import SentenceRanking
from nexi.llm.extractive._limits import (
    MAX_ALTERNATIVES,
    MAX_CANDIDATES,
    MAX_PAGES_READ,
    MAX_SECTION_WORDS,
    MAX_WORDS,
    MIN_SENTENCE_WORDS,
)
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.passages import ContentWords, PassageSentence
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView

MAX_OPENING = 2  # sentences
GAP = " … "
_CITATION = re.compile(r"\[\d+\]")
_YES_OR_NO = re.compile(r"(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[^\W\d_a-z][\w.,'’-]*")  # numbers are compared by the check


def choose_passages(question: str, pages: Sequence[PageView]) -> str:
    """The best windows of the pages and what each page says first, under the number and title of their page."""
    # "" where a model should not be asked: the built-in model decides the question itself, needs two pages of prose for its
    # answer, which small models mix up, or finds no answer in them.
    read = read_question(question)
    readable = [page for page in pages if page.text and not page.error]
    draft = compose_answer(read, readable) if readable else None
    if draft is None or not draft.lines or draft.short or draft.answered == "no":
        return ""
    ranking = SentenceRanking(read, readable)
    if len({number for _, number in draft.lines}) > 1 and ranking.wants != "code":
        return ""
    order = sorted(range(len(readable)), key=lambda i: readable[i].number != draft.lines[0][1])
    places = _choose_places(ranking, [text for text, _ in draft.lines])
    blocks: list[str] = []  # the sentences of one page in their order, with a mark where the page says more between them
    for page in (page for page in order if places.get(page)):
        sentences, own = ranking.sentences[page], sorted(places[page])
        text = sentences[own[0]].text
        for before, place in itertools.pairwise(own):
            text += (" " if place == before + 1 else GAP) + sentences[place].text
        blocks.append(f"Source [{ranking.pages[page].number}], {ranking.subjects[page]}:\n{text}")
    return "\n\n".join(blocks)


def adds_answer(question: str, text: str, quotation: str, titles: str) -> bool:
    """Whether a text says more than its question and the titles of its pages, and names nothing beyond the best quotation."""
    # Passages lie side by side, and a small model joins a name of one to the facts of another.
    words = ContentWords()
    best = _CITATION.split(quotation)[0]  # the sentence that answers best stands first
    question_stems, quotation_stems = set(words.stems(f"{question} {titles}")), set(words.stems(best))
    bare = _CITATION.sub(" ", text)
    names = {stem for name in _NAME.findall(bare) for stem in words.stems(name)}
    repeats = question_stems.issuperset(words.stems(bare)) and not _YES_OR_NO.match(question.strip())
    return names <= question_stems | quotation_stems and not repeats


def _choose_places(ranking: SentenceRanking, quotations: Sequence[str]) -> dict[int, set[int]]:
    """The sentences of each page: what the built-in model would quote, the best windows, and how their pages begin."""
    usable = [s for s in ranking.ranked if _is_readable(s.sentence)]
    bare = [text.strip("… ") for text in quotations]
    first = [s for s in usable if any(text in s.sentence.text or s.sentence.text in text for text in bare)]
    places: dict[int, set[int]] = {}
    room, windows = MAX_SECTION_WORDS, 0
    for candidate in dict.fromkeys((*first, *usable)):
        is_known = candidate.place in places.get(candidate.page, ())
        if is_known or (len(places) == MAX_PAGES_READ and candidate.page not in places):
            continue
        if windows == MAX_ALTERNATIVES and candidate not in first:
            break
        windows += 1
        opening = _find_opening(ranking, candidate.page)
        for place in (candidate.place, *opening, candidate.place - 1, candidate.place + 1):
            own, sentences = places.setdefault(candidate.page, set()), ranking.sentences[candidate.page]
            if place in own or not 0 <= place < len(sentences) or not _is_readable(sentences[place]):
                continue
            length = len(sentences[place].text.split())
            if length <= room:
                own.add(place)
                room -= length
    return places


def _find_opening(ranking: SentenceRanking, page: int) -> list[int]:
    """Where a page says what it is about: sentences that begin with its subject, else its first ones."""
    sentences = ranking.sentences[page][:MAX_CANDIDATES]
    subject = re.escape(ranking.subjects[page])
    says = re.compile(rf"(?:(?:the|an?) )?{subject}\b[^.;]*?\b(?:is|are|was|were)\b", re.IGNORECASE)
    prose = [
        place
        for place, sentence in enumerate(sentences)
        if sentence.kind == "prose" and _is_readable(sentence) and len(sentence.text.split()) >= MIN_SENTENCE_WORDS
    ]
    return ([place for place in prose if subject and says.match(sentences[place].text)] or prose)[:MAX_OPENING]


def _is_readable(sentence: PassageSentence) -> bool:
    return sentence.kind != "label" and len(sentence.text.split()) <= MAX_WORDS
