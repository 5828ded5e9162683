"""A short answer from evidence: which sentences, from which pages, in how many words.

Above `evidence` and `comparison`, below the built-in model. One page is quoted when one page is enough; two when the question
sets two things side by side, or when a page about its subject leads to the page that answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec import Struct

from nexi.llm.extractive._comparison import Side, compare_sides, find_dates
from nexi.llm.extractive._evidence import MIN_NAME, Scored, SentenceRanking, flatten_words, is_named
from nexi.llm.extractive._lexicon import RELATIONS, SECTIONS
from nexi.llm.extractive.answerability import rate_ranking
from nexi.llm.extractive.questions import Question, find_names
from nexi.text.languages import detect_language
from nexi.types import Answered, PageView

NOT_ANSWERED = "None of the pages that were read answers this question; the closest passages say:"
MAX_WORDS = 57
MAX_PAGES = 2
ENOUGH = 0.4  # the share of the best score from which a further sentence is worth its words
ENOUGH_ELSEWHERE = 0.8  # the same on a further page where the first ones say every word of the question
BESIDE = 0.15  # a neighbour of the best sentence often goes on with it
FILL = 12  # the room from which a part of a sentence is better than none
SPENT = 0.7  # a second page should add to what the first one says
BOTH_NAMED = 1.5  # the question names both pages of a pair
_LEAD_SENTENCES = 4
_OPENING = 40
MAX_HEAD_WORDS = 8
_IDENTIFIER = re.compile(r"^[`-]|\w\(|[a-z][_.][a-z]|^[a-z]+[-_][a-z]|^[A-Z_]{3,}$|[a-z][A-Z]")
_ASIDE = re.compile(r"\s*\([^()]*\)")


class ExtractiveAnswer(Struct, frozen=True):
    """Quoted sentences with their citation numbers, after an optional short answer.

    Where `answered` is "no", the lines are the closest passages.
    """

    lines: tuple[tuple[str, int], ...] = ()
    short: str = ""
    answered: Answered = "no"


def compose_answer(question: Question, pages: Sequence[PageView]) -> ExtractiveAnswer:
    """The answer to a question from pages that were read; without lines when nothing in them bears on it."""
    evidence = SentenceRanking(question, _prefer_language(question, pages))
    usable = [s for s in evidence.ranked if _is_quotable(s)]
    if not usable:
        return ExtractiveAnswer()
    answered = rate_ranking(question, evidence)
    graph = _Subjects(evidence, usable)
    if (sides := graph.sides()) and (short := compare_sides(question, *(s for s, _ in sides))):
        return ExtractiveAnswer(_fill_room(evidence, [s for _, s in sides], (), len(short.split())), short, "yes")
    chosen = (graph.linked_pair() or [usable[0]]) if answered != "no" else usable[:1]
    spent = len(NOT_ANSWERED.split()) if answered == "no" else 0
    return ExtractiveAnswer(_fill_room(evidence, chosen, usable, spent), answered=answered)


def _prefer_language(question: Question, pages: Sequence[PageView]) -> Sequence[PageView]:
    """The pages in the language of the question, where it is not English and there are any."""
    same = [page for page in pages if question.language and detect_language(page.text[:4000]) == question.language]
    return same or pages


def missing_name(question: Question, pages: Sequence[PageView]) -> str:
    """A name the question goes by way of, that a page gives and that no page read is about."""
    evidence = SentenceRanking(question, pages)
    usable = [s for s in evidence.ranked if _is_quotable(s)]
    return _Subjects(evidence, usable).next_name() if usable else ""


def _is_quotable(scored: Scored) -> bool:
    return scored.score > 0 and (scored.sentence.kind != "label" or len(scored.sentence.text.split()) > 5)


class _Subjects:
    """What each page is about, and how pages and question name one another."""

    def __init__(self, evidence: SentenceRanking, usable: Sequence[Scored]) -> None:
        self.evidence, self.usable = evidence, usable
        self.flat = [flatten_words(s) for s in evidence.subjects]
        self.named = [is_named(s, evidence.question.text) for s in evidence.subjects]
        self._texts: dict[tuple[int, int], str] = {}

    def sides(self) -> list[tuple[Side, Scored]]:
        """The two alternatives of the question with the first words of their pages."""
        choices = self.evidence.question.choices
        found = [self._find_side(choice, [n for n in range(len(self.flat)) if self._is_about(n, choice)]) for choice in choices]
        if len(found) != 2 or not all(found):
            named = [n for n, is_named in enumerate(self.named) if is_named]
            found = [self._find_side(self.evidence.subjects[n], [n]) for n in named]
        sides = [side for side in found if side]
        return sides if len(sides) == 2 and sides[0][1].page != sides[1][1].page else []

    def _find_side(self, name: str, pages: Sequence[int]) -> tuple[Side, Scored] | None:
        lead = next((lead for n in pages if (lead := self._lead_sentence(n))), None)
        return (Side(name, lead.sentence.text), lead) if lead else None

    def linked_pair(self) -> list[Scored]:
        """Two sentences of two pages that belong together, or nothing."""
        best: tuple[float, list[Scored]] = (0.0, [])
        for first in (n for n, named in enumerate(self.named) if named):
            for second in range(len(self.flat)):
                pair = self._pair_pages(first, second)
                score = sum(s.score for s in pair) * (BOTH_NAMED if self.named[second] else 1.0)
                if pair and score > best[0]:
                    best = (score, pair)
        return best[1]

    def next_name(self) -> str:
        """The name that stands in the relation the question asks by, on a page about the question's subject."""
        question = self.evidence.question
        cues = {w for word, cue in RELATIONS.items() if re.search(rf"\b{word}\b", question.text, re.I) for w in cue}
        known = flatten_words(" ".join((question.text, *self.evidence.subjects)))
        pages = [n for n, named in enumerate(self.named) if named and cues]
        sentences = (s.text for page in pages for s in self.evidence.sentences[page][:_OPENING])
        return next((name for text in sentences if (name := _name_after(text, cues, known))), "")

    def _pair_pages(self, first: int, second: int) -> list[Scored]:
        about = self.flat[second]
        if first == second or len(about) <= MIN_NAME or about in self.flat[first]:
            return []
        own = (s for s in self.usable if s.page == first)
        link = next((s for s in own if self.named[second] or self._mentions_subject(s, second)), None)
        top = self._top_after(link, second) if link else None
        return [link, top] if link and top else []

    def _top_after(self, link: Scored, page: int) -> Scored | None:
        """The sentence of a page that adds most to what the link already says; its lead when none stands out."""
        rarity = self.evidence.rarity
        spent = link.covered | set(self.evidence.words.stems(self.evidence.subjects[link.page]))

        def value(s: Scored) -> float:
            return s.score - SPENT * sum(rarity[c] for c in s.covered & spent)

        return max((s for s in self.usable if s.page == page), key=value, default=None) or self._lead_sentence(page)

    def _mentions_subject(self, s: Scored, page: int) -> bool:
        """Whether a sentence names what a page is about, a middle name more or less."""
        text, about = self._sentence_text(s), self.flat[page]
        if about in text:
            return True
        words = about.split()
        return len(words) > 1 and words[0] in text and re.search(r" (?:\w+ )?".join(map(re.escape, words)), text) is not None

    def _is_about(self, page: int, choice: str) -> bool:
        wanted = flatten_words(_ASIDE.sub("", choice)) if _ASIDE.sub("", choice).strip() else flatten_words(choice)
        return len(self.flat[page]) > 3 and (self.flat[page] in wanted or wanted in self.flat[page])

    def _lead_sentence(self, page: int) -> Scored | None:
        """The sentence that introduces a page's subject; with a date if one of the first has it."""
        first = self.flat[page].split()[:1]
        start = [
            Scored(0.0, page, place, s, frozenset())
            for place, s in enumerate(self.evidence.sentences[page])
            if s.kind == "prose" and len(s.text.split()) > 5 and set(first) & set(flatten_words(s.text).split())
        ][:_LEAD_SENTENCES]
        return next((s for s in start if find_dates(s.sentence.text)), start[0] if start else None)

    def _sentence_text(self, s: Scored) -> str:
        key = (s.page, s.place)
        if key not in self._texts:
            self._texts[key] = flatten_words(s.sentence.text)
        return self._texts[key]


def _name_after(text: str, cues: set[str], known: str) -> str:
    """The first new name that follows one of the cue words within a few words."""
    words = re.findall(r"[\w'’-]+", text)
    for place, word in enumerate(words):
        if word.lower() in cues:
            rest = " ".join(words[place + 1 : place + 9])
            for name in find_names(rest):
                if flatten_words(name) not in known and len(name.split()) > 1:
                    return name
    return ""


def _fill_room(
    evidence: SentenceRanking, chosen: Sequence[Scored], usable: Sequence[Scored], spent: int
) -> tuple[tuple[str, int], ...]:
    """The chosen sentences, cut to size, and more of what speaks best while there is room."""
    left = MAX_WORDS - spent
    lines, taken = [], {(s.page, s.place) for s in chosen}
    for rest, s in zip(range(len(chosen), 0, -1), chosen, strict=True):
        others = sum(min(left // rest, len(_render_sentence(evidence, o).split())) for o in chosen[len(chosen) - rest + 1 :])
        text = _shorten_sentence(_render_sentence(evidence, s), evidence, left - others)
        lines.append((text, evidence.pages[s.page].number))
        left -= len(text.split())
    cited = {s.page for s in chosen}
    said = frozenset[str]().union(*(s.covered for s in chosen))
    anchor = chosen[0]
    for s in sorted(usable, key=lambda s: -s.score * (1 + BESIDE * _is_beside(s, anchor))):
        text = _render_sentence(evidence, s)
        if len(text.split()) > left >= FILL:
            text = _shorten_sentence(text, evidence, left)
        fits = len(text.split()) <= left and len(cited | {s.page}) <= MAX_PAGES
        enough = _min_share(evidence, s, cited, said) * anchor.score
        if (s.page, s.place) not in taken and fits and s.score >= enough:
            lines.append((text, evidence.pages[s.page].number))
            left -= len(text.split())
            cited.add(s.page)
            said |= s.covered
            taken.add((s.page, s.place))
    return tuple(lines)


def _min_share(evidence: SentenceRanking, s: Scored, cited: set[int], said: frozenset[str]) -> float:
    """The share of the best score a sentence needs: more on a further page once every word of the question is said.

    There, a sentence that names a page already quoted only leads back to it.
    """
    if s.page in cited or not evidence.rarity.keys() <= said:
        return ENOUGH
    leads_back = any(is_named(evidence.subjects[page], s.sentence.text) for page in cited)
    return math.inf if leads_back else ENOUGH_ELSEWHERE


def _is_beside(s: Scored, anchor: Scored) -> bool:
    return s.page == anchor.page and abs(s.place - anchor.place) == 1


def _render_sentence(evidence: SentenceRanking, s: Scored) -> str:
    """The sentence, under the identifier it explains where an identifier was asked for."""
    text = _without_heading(s.sentence.text, evidence.subjects[s.page])
    if evidence.wants != "code":
        return text
    heads = (s.sentence.label, evidence.subjects[s.page])
    head = next((h for h in heads if _is_identifier(h)), "")
    return f"{head}: {text}" if head and flatten_words(head) not in flatten_words(text) else text


def _without_heading(text: str, subject: str) -> str:
    """A sentence without the heading that was glued to its front: "Owl Owl is a bird" says Owl once."""
    at = text.find(f"{subject} {subject}") if subject else -1
    return text[at + len(subject) + 1 :] if at >= 0 else text


def _is_identifier(text: str) -> bool:
    """Whether a label is the name of something in code rather than a heading in prose."""
    words = text.split()
    return 0 < len(words) <= MAX_HEAD_WORDS and text.lower() not in SECTIONS and _IDENTIFIER.search(text) is not None


def _shorten_sentence(text: str, evidence: SentenceRanking, room: int) -> str:
    """At most `room` words: asides go first, then all but the stretch that holds most of the question."""
    if len(text.split()) <= room:
        return text
    if evidence.question.wants not in ("date", "number"):
        text = _ASIDE.sub("", text)
    words = text.split()
    room = max(1, room - 1)
    if len(words) <= room:
        return text
    values = [max((evidence.rarity.get(s, 0.0) for s in evidence.words.stems(w)), default=0.0) for w in words]
    starts = range(len(words) - room + 1)
    start = max(starts, key=lambda i: (sum(values[i : i + room]), -i))
    stretch = " ".join(words[start : start + room])
    return f"{'… ' if start else ''}{stretch}{' …' if start + room < len(words) else ''}"
