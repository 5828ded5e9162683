"""A short answer from evidence: which sentences, from which pages, in how many words.

Above `evidence` and `comparison`, below the built-in model. One page is quoted when one page is enough; two when the question
sets two things side by side, or when a page about its subject leads to the page that answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from urllib.parse import unquote

from msgspec import Struct

from nexi.llm.extractive._choice import Candidate, rate_candidates
from nexi.llm.extractive._comparison import Side, compare_sides, find_dates
from nexi.llm.extractive._evidence import (
    MIN_NAME,
    Scored,
    SentenceRanking,
    find_page_subject,
    find_wanted_words,
    flatten_words,
    holds_wanted,
    is_named,
)
from nexi.llm.extractive._lexicon import CLAUSE_WORDS, RELATIONS, SECTIONS
from nexi.llm.extractive.answerability import are_missed, rate_ranking
from nexi.llm.extractive.questions import Question, find_names, narrow_queries
from nexi.text.languages import detect_language
from nexi.text.plain import strip_markdown
from nexi.types import Answered, Hit, PageView

NOT_ANSWERED = "None of the pages that were read answers this question; the closest passages say:"
MAX_WORDS = 55  # of an answer: about two sentences
CLOSEST_WORDS = 24  # of the passages that come closest where none answers
MAX_SENTENCE_WORDS = 35  # a longer one is cut to the stretch that holds most of the question
MAX_MANUAL_WORDS = 25  # the same for a question about code, where several definitions have to fit
ONE_PAGE = 0.65  # the share of the question that a page must say to answer it alone
MIN_SHARE = 0.4  # of the room that a sentence among others may be cut to
MIN_GAIN = 0.05  # the share that a second page must add
CERTAIN = 0.9  # the chance from which nothing is added
MIN_CHANCE = 0.12  # of a sentence that is added
MIN_NEXT_CHANCE = 0.05  # the same of the sentence after the best one, where that says more of the question
MAX_SENTENCES = 3
MAX_PAGES = 2
ENOUGH = 0.4  # the share of the best score from which a further sentence is worth its words
ENOUGH_ELSEWHERE = 0.8  # the same on a further page where the first ones say every word of the question
BESIDE = 0.15  # a neighbour of the best sentence often goes on with it
KEEP_WANTED = 0.3  # what a word of the wanted kind counts beside the words of the question when a sentence is cut
BESIDE_ASKED, FADE = 0.3, 0.85  # what a word near one of the question is worth, and how fast that fades
CUT_CLAUSE = 0.3  # what it costs to cut inside a clause
MIN_STRETCH = 0.6  # the share of the room that a stretch fills at least
FILL = 12  # the room from which a part of a sentence is better than none
LIFE = 0.6  # what telling when or where someone was born or died adds, where that was asked
SPENT = 0.7  # a second page should add to what the first one says
BOTH_NAMED = 1.5  # the question names both pages of a pair
_NEAR_WORDS = 12
_LEAD_SENTENCES = 4
_OPENING_SENTENCES = 8
_OPENING = 40
_LINKING_SENTENCES = 3
MAX_HEAD_WORDS = 8
_IDENTIFIER = re.compile(r"^[`-]|\w\(|[a-z][_.][a-z]|^[a-z]+[-_][a-z]|^[A-Z_]{3,}$|[a-z][A-Z]")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,200})\]\((https?://[^()\s]{1,2000})\)")
_LIFE_EVENT = re.compile(r"\b(?:born|birth|birthday|birthplace|die|died|death)\b", re.I)
_LIFE_DATES = re.compile(r"\([^()]*\b\d{3,4}\b[^()]*\)|\b(?:born|died)\b[^.;]*\b\d{3,4}\b")
_LIFE_PLACES = re.compile(r"\b(?:born|died|death|birth|buried)\b[^.;]*\b(?:in|at|near) (?:the )?(?!(?:19|20|18)\d\d)[A-ZÀ-Þ]")
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
    usable = [s for s in evidence.ranked if is_quotable(s)]
    if not usable:
        return ExtractiveAnswer()
    answered = rate_ranking(question, evidence)
    graph = _Subjects(evidence, usable)
    if (sides := graph.sides()) and (short := compare_sides(question, *(s for s, _ in sides))):
        return ExtractiveAnswer(_fill_room(evidence, [s for _, s in sides], (), len(short.split())), short, "yes")
    is_code = evidence.wants == "code"  # pages of a manual name one another everywhere, so that joins no two of them
    if answered != "no" and not is_code and (pair := graph.linked_pair()) and not _says_less(evidence, pair, usable[0]):
        return ExtractiveAnswer(_fill_room(evidence, pair, usable, 0), answered=answered)
    if answered != "no" and (is_code or question.language):  # the choice was learned from English prose
        longest = MAX_MANUAL_WORDS if is_code else MAX_WORDS
        return ExtractiveAnswer(_fill_room(evidence, usable[:1], usable, 0, longest), answered=answered)
    candidates = rate_candidates(evidence, usable)
    chosen = _choose_few(evidence, candidates)
    if answered == "no":
        return ExtractiveAnswer(_quote_sentences(evidence, chosen, CLOSEST_WORDS), answered=answered)
    if graph.needs_another_page(candidates[0].scored.page):
        chosen = graph.add_another_page(chosen, candidates)
    return ExtractiveAnswer(_quote_sentences(evidence, chosen, MAX_WORDS), answered=answered)


def _says_less(evidence: SentenceRanking, pair: Sequence[Scored], best: Scored) -> bool:
    """Whether two sentences of two pages say less of the question than the best sentence, which says enough alone."""
    alone, together = (evidence.share_of(words) for words in (best.covered, pair[0].covered | pair[1].covered))
    return alone >= ONE_PAGE and alone > together


def _prefer_language(question: Question, pages: Sequence[PageView]) -> Sequence[PageView]:
    """The pages in the language of the question, where it is not English and there are any."""
    same = [page for page in pages if question.language and detect_language(page.text[:4000]) == question.language]
    return same or pages


def _choose_few(evidence: SentenceRanking, candidates: Sequence[Candidate]) -> list[Scored]:
    """The sentence that answers most likely; where that is not likely enough, others that may, the likeliest first."""
    candidates = _leave_out_leads(evidence, candidates)
    chosen, chance = [candidates[0].scored], candidates[0].chance
    for candidate in candidates[1:]:
        s, anchor = candidate.scored, chosen[0]
        said = frozenset[str]().union(*(c.covered for c in chosen))
        wanted = chance < CERTAIN and candidate.chance >= MIN_CHANCE
        if len(chosen) == MAX_SENTENCES or not (wanted or _goes_on(evidence, candidate, anchor, said)):
            continue
        if s.score >= _min_share(evidence, s, {c.page for c in chosen}, said) * anchor.score:
            chosen.append(s)
            chance += candidate.chance
    return chosen


def _goes_on(evidence: SentenceRanking, candidate: Candidate, anchor: Scored, said: frozenset[str]) -> bool:
    """Whether a sentence says more of the question: the next one, or one of a further page where this page lacks the words."""
    s = candidate.scored
    if s.page == anchor.page:
        return s.place == anchor.place + 1 and bool(s.covered - said) and candidate.chance >= MIN_NEXT_CHANCE
    return s.score >= ENOUGH_ELSEWHERE * anchor.score and bool(s.covered - said - evidence.page_words(anchor.page))


def _leave_out_leads(evidence: SentenceRanking, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Without the sentences of the best page that only name what it is about, where another one of it says more.

    One that holds the wanted kind of thing, such as a number, stays: "The Moon is 384,400 km away" says how far it is.
    """
    page = candidates[0].scored.page
    asked = evidence.question.weights.keys() - frozenset(evidence.words.stems(evidence.subjects[page]))
    kept = [
        c for c in candidates if c.scored.page != page or c.scored.covered & asked or holds_wanted(evidence, c.scored.sentence)
    ]
    if not any(c.scored.page == page for c in kept):
        return candidates
    whole = sum(c.chance for c in kept)
    return [Candidate(c.scored, c.chance / whole) for c in kept]


def _quote_sentences(evidence: SentenceRanking, chosen: Sequence[Scored], room: int) -> tuple[tuple[str, int], ...]:
    """The chosen sentences with their citation numbers, the longest of them cut until all fit.

    The last of them is left out where they would have to be cut so short that an answer goes with the cut.
    """
    texts = [_render_sentence(evidence, s) for s in chosen]
    lengths = _share_room([len(text.split()) for text in texts], room)
    if any(length < min(MIN_SHARE * room, len(text.split())) for text, length in zip(texts, lengths, strict=True)):
        return _quote_sentences(evidence, chosen[:-1], room)
    in_order = sorted(
        zip(chosen, texts, lengths, strict=True),
        key=lambda quoted: (quoted[0].page != chosen[0].page, quoted[0].page, quoted[0].place),
    )
    return tuple((_shorten_sentence(text, evidence, length), evidence.pages[s.page].number) for s, text, length in in_order)


def _share_room(lengths: Sequence[int], room: int) -> list[int]:
    """How many words each sentence may keep: all of a short one, what the others leave of a long one."""
    limit = MAX_SENTENCE_WORDS
    while limit > 1 and sum(min(limit, length) for length in lengths) > room:
        limit -= 1
    return [min(limit, length) for length in lengths]


class NextStep(Struct, frozen=True):
    """Where pages that say only a part of the question lead on.

    `links` are pages that their best sentences link to. `queries` hold the name that the question goes by way of, that a page
    gives and that no page read is about; or, where the pages tell of something else, what the question names itself.
    `named` are further hits whose subject a page names, where what was read answers, but no page says enough alone.
    """

    links: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def find_next_step(question: Question, pages: Sequence[PageView], hits: Sequence[Hit], known: Container[str]) -> NextStep:
    """What to read or search next; of `hits` the best come first, and `known` addresses are left out."""
    evidence = SentenceRanking(question, pages)
    usable = [s for s in evidence.ranked if is_quotable(s)]
    graph = _Subjects(evidence, usable)
    name = graph.next_name()
    queries = [name] if name else narrow_queries(question) if are_missed(question, evidence) else []
    partial = max(map(evidence.page_cover, range(len(pages))), default=0.0) < ONE_PAGE
    reads_on = partial and rate_ranking(question, evidence) != "no"
    named = (hit.url for hit in hits if reads_on and hit.url not in known and graph.is_mentioned(hit.title))
    return NextStep(tuple(url for url in graph.linked_urls() if url not in known), tuple(queries), tuple(named))


def is_quotable(scored: Scored) -> bool:
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
        found = [self._find_side(choice, self._pages_about(choice)) for choice in choices]
        if len(found) != 2 or not all(found):
            named = [n for n, is_named in enumerate(self.named) if is_named]
            found = [self._find_side(self.evidence.subjects[n], [n]) for n in named]
        sides = [side for side in found if side]
        return sides if len(sides) == 2 and sides[0][1].page != sides[1][1].page else []

    def _find_side(self, name: str, pages: Sequence[int]) -> tuple[Side, Scored] | None:
        lead = next((lead for n in pages if (lead := self._lead_sentence(n))), None)
        if lead is None:
            return None
        opening = " ".join(s.text for s in self.evidence.sentences[lead.page][:_OPENING_SENTENCES])
        if self.evidence.question.wants == "yesno" and self.flat[lead.page] in flatten_words(name):
            name = self.evidence.subjects[lead.page]  # "Eatza Pizza restaurants" asks whether Eatza Pizza is one
        return Side(name, lead.sentence.text, opening), lead

    def _pages_about(self, choice: str) -> list[int]:
        """The pages about an alternative, first those whose subject is just that."""
        pages = [n for n in range(len(self.flat)) if self._is_about(n, choice)]
        return sorted(pages, key=lambda n: self.flat[n] != flatten_words(choice))

    def linked_pair(self) -> list[Scored]:
        """Two sentences of two pages that belong together, or nothing."""
        best: tuple[float, list[Scored]] = (0.0, [])
        named = [n for n, is_named in enumerate(self.named) if is_named]
        best_page = self.usable[0].page
        for first in dict.fromkeys((*named, best_page) if self.needs_another_page(best_page) else named):
            for second in range(len(self.flat)):
                pair = self._pair_pages(first, second)
                score = sum(s.score for s in pair) * (BOTH_NAMED if self.named[first] and self.named[second] else 1.0)
                if pair and score > best[0]:
                    best = (score, pair)
        return best[1]

    def needs_another_page(self, page: int) -> bool:
        """Whether a page leaves a part of the question unsaid that another page says."""
        cover = self.evidence.page_cover
        others = [n for n in range(len(self.flat)) if n != page]
        return cover(page) < ONE_PAGE and any(cover(page, n) - cover(page) >= MIN_GAIN for n in others)

    def add_another_page(self, chosen: Sequence[Scored], candidates: Sequence[Candidate]) -> list[Scored]:
        """The chosen sentences of one page with the best one of the page that says most of the rest."""
        page = chosen[0].page
        enough = ENOUGH * chosen[0].score
        others = [c.scored for c in candidates if c.scored.page != page and c.scored.score >= enough]
        if not others or any(s.page != page for s in chosen):
            return list(chosen)
        best = max(others, key=lambda s: self.evidence.page_cover(page, s.page))  # the first of a page is its best
        return [chosen[0], best, *chosen[1 : MAX_SENTENCES - 1]]

    def next_name(self) -> str:
        """The name that stands in the relation the question asks by, on a page about the question's subject."""
        question = self.evidence.question
        cues = {w for word, cue in RELATIONS.items() if re.search(rf"\b{word}\b", question.text, re.I) for w in cue}
        known = flatten_words(" ".join((question.text, *self.evidence.subjects)))
        pages = [n for n, named in enumerate(self.named) if named and cues]
        sentences = (s.text for page in pages for s in self.evidence.sentences[page][:_OPENING])
        return next((name for text in sentences if (name := _name_after(text, cues, known))), "")

    def is_mentioned(self, title: str) -> bool:
        """Whether a page names what another one is about by its title."""
        about = flatten_words(find_page_subject(title))
        return len(about.split()) > 1 and any(about in text for text in self._page_texts)

    @cached_property
    def _page_texts(self) -> list[str]:
        return [flatten_words(page.text) for page in self.evidence.pages]

    def linked_urls(self) -> list[str]:
        """What the best sentences of the pages about the question's subject link to, where the page says only a part of it."""
        about = [n for n, named in enumerate(self.named) if named] or [s.page for s in self.usable[:1]]
        partial = [n for n in about if self.evidence.page_cover(n) < ONE_PAGE]
        best = [s for s in self.usable if s.page in partial][:_LINKING_SENTENCES]
        asked = flatten_words(self.evidence.question.text)
        return list(
            dict.fromkeys(
                url
                for s in best
                for label, url in _find_links(self.evidence.pages[s.page].text, s.sentence.text)
                if flatten_words(label) not in asked
            )
        )

    def _pair_pages(self, first: int, second: int) -> list[Scored]:
        about = self.flat[second]
        if first == second or len(about) <= MIN_NAME or about in self.flat[first]:
            return []
        both_named = self.named[first] and self.named[second]
        own = (s for s in self.usable if s.page == first)
        link = next((s for s in own if both_named or self._mentions_subject(s, second)), None)
        if link is None and self.named[first]:
            link = self._find_mention(first, second)
        top = self._top_after(link, second) if link else None
        return [link, top] if link and top else []

    def _top_after(self, link: Scored, page: int) -> Scored | None:
        """The sentence of a page that adds most to what the link already says; its lead when none stands out."""
        rarity = self.evidence.rarity
        spent = link.covered | set(self.evidence.words.stems(self.evidence.subjects[link.page]))

        life = _life_sign(self.evidence.question)
        bonus = LIFE * max(rarity.values(), default=0.0)

        def value(s: Scored) -> float:
            tells_life = life is not None and life.search(s.sentence.text) is not None
            return s.score - SPENT * sum(rarity[c] for c in s.covered & spent) + bonus * tells_life

        found = [s for s in self.usable if s.page == page]
        lead = self._lead_sentence(page)
        if life and lead and all(s.place != lead.place for s in found):
            found.append(lead)
        return max(found, key=value, default=lead)

    def _find_mention(self, first: int, second: int) -> Scored | None:
        """A sentence near the beginning of a page that names what another page is about, whatever else it says."""
        opening = enumerate(self.evidence.sentences[first][:_OPENING])
        found = (Scored(0.0, first, place, s, frozenset()) for place, s in opening if s.kind == "prose")
        return next((s for s in found if self._mentions_subject(s, second)), None)

    def _mentions_subject(self, s: Scored, page: int) -> bool:
        """Whether a sentence names what a page is about, a middle name more or less, or without the title after a comma."""
        text, about = self._sentence_text(s), self.flat[page]
        name, comma, _ = self.evidence.subjects[page].partition(",")
        if comma and len(name.split()) > 1 and flatten_words(name) in text:
            return True
        if about in text:
            return True
        words = about.split()
        return len(words) > 1 and words[0] in text and re.search(r" (?:\w+ )?".join(map(re.escape, words)), text) is not None

    def _is_about(self, page: int, choice: str) -> bool:
        wanted = flatten_words(_ASIDE.sub("", choice)) if _ASIDE.sub("", choice).strip() else flatten_words(choice)
        return len(self.flat[page]) > 3 and (self.flat[page] in wanted or wanted in self.flat[page])

    def _lead_sentence(self, page: int) -> Scored | None:
        """The sentence that introduces a page's subject; with a date if one of the first has it."""
        names = {word for word in self.flat[page].split() if len(word) >= MIN_NAME} or set(self.flat[page].split()[:1])
        start = [
            Scored(0.0, page, place, s, frozenset())
            for place, s in enumerate(self.evidence.sentences[page])
            if len(s.text.split()) > (5 if s.kind == "prose" else MAX_HEAD_WORDS) and names & set(flatten_words(s.text).split())
        ][:_LEAD_SENTENCES]
        return next((s for s in start if find_dates(s.sentence.text)), start[0] if start else None)

    def _sentence_text(self, s: Scored) -> str:
        key = (s.page, s.place)
        if key not in self._texts:
            self._texts[key] = flatten_words(s.sentence.text)
        return self._texts[key]


def _life_sign(question: Question) -> re.Pattern[str] | None:
    """How a text says when or where someone was born or died, where that was asked."""
    if not _LIFE_EVENT.search(question.text) or question.wants not in ("date", "place"):
        return None
    return _LIFE_DATES if question.wants == "date" else _LIFE_PLACES


def _find_links(markdown: str, sentence: str) -> Iterator[tuple[str, str]]:
    """The links of a page whose label a sentence says, in the order of the page."""
    for match in _LINK.finditer(markdown):
        label = strip_markdown(match[1])
        if len(label) >= MIN_NAME and label in sentence:
            yield label, match[2]


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
    evidence: SentenceRanking, chosen: Sequence[Scored], usable: Sequence[Scored], spent: int, longest: int = MAX_WORDS
) -> tuple[tuple[str, int], ...]:
    """The chosen sentences, cut to size, and more of what speaks best while there is room; nothing is said twice."""
    left = MAX_WORDS - spent
    lines: list[tuple[str, int]] = []
    for rest, s in zip(range(len(chosen), 0, -1), chosen, strict=True):
        others = sum(min(left // rest, len(_render_sentence(evidence, o).split())) for o in chosen[len(chosen) - rest + 1 :])
        text = _shorten_sentence(_render_sentence(evidence, s), evidence, min(longest, left - others))
        lines.append((text, evidence.pages[s.page].number))
        left -= len(text.split())
    quoted = list(chosen)
    cited = {s.page for s in chosen}
    said = frozenset[str]().union(*(s.covered for s in chosen))
    anchor = chosen[0]
    for s in sorted(usable, key=lambda s: -s.score * (1 + BESIDE * _is_beside(s, anchor))):
        text = _render_sentence(evidence, s, quoted)
        if left >= FILL:
            text = _shorten_sentence(text, evidence, min(longest, left))
        fits = len(text.split()) <= left and len(cited | {s.page}) <= MAX_PAGES
        enough = _min_share(evidence, s, cited, said) * anchor.score
        if fits and s.score >= enough and all(s.sentence.text != other.sentence.text for other in quoted):
            lines.append((text, evidence.pages[s.page].number))
            left -= len(text.split())
            cited.add(s.page)
            said |= s.covered
            quoted.append(s)
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


def _render_sentence(evidence: SentenceRanking, s: Scored, quoted: Sequence[Scored] = ()) -> str:
    """The sentence, under the identifier it explains where an identifier was asked for and none `quoted` stands under it."""
    text = _without_heading(s.sentence.text, evidence.subjects[s.page])
    if evidence.wants != "code" or any((o.page, o.sentence.label) == (s.page, s.sentence.label) for o in quoted):
        return text
    page = evidence.pages[s.page]
    heads = (s.sentence.label, "" if is_file_name(page.title, page.url) else evidence.subjects[s.page])
    head = next((h for h in heads if _is_identifier(h)), "")
    return f"{head}: {text}" if head and flatten_words(head) not in flatten_words(text) else text


def _without_heading(text: str, subject: str) -> str:
    """A sentence without the heading that was glued to its front: "Owl Owl is a bird" says Owl once."""
    at = text.find(f"{subject} {subject}") if subject else -1
    return text[at + len(subject) + 1 :] if at >= 0 else text


def is_file_name(title: str, url: str) -> bool:
    """Whether a page has no title but the name of its file."""
    return bool(title) and unquote(url).rpartition("/")[2] == title


def _is_identifier(text: str) -> bool:
    """Whether a label is the name of something in code rather than a heading in prose."""
    words = text.split()
    return 0 < len(words) <= MAX_HEAD_WORDS and text.lower() not in SECTIONS and _IDENTIFIER.search(text) is not None


def _shorten_sentence(text: str, evidence: SentenceRanking, room: int) -> str:
    """At most `room` words: asides go first, then all but the stretch that holds most of the question."""
    if len(text.split()) <= room:
        return text
    text = _ASIDE.sub(lambda aside: "" if _is_beside_the_point(aside.group(), evidence) else aside.group(), text)
    words = text.split()
    room = max(1, room - 2)  # for "…" at both ends
    if len(words) <= room:
        return text
    start, end = _find_best_stretch(words, evidence, room)
    return f"{'… ' if start else ''}{' '.join(words[start:end])}{' …' if end < len(words) else ''}"


def _find_best_stretch(words: Sequence[str], evidence: SentenceRanking, room: int) -> tuple[int, int]:
    """Where the stretch of at most `room` words begins and ends that holds most of the question, and ends where a clause does.

    A word near a word of the question is worth a part of it: an answer stands beside what was asked.
    """
    asked = [max((evidence.rarity.get(s, 0.0) for s in evidence.words.stems(w)), default=0.0) for w in words]
    most = max(asked)
    values = [value + BESIDE_ASKED * _best_beside(asked, place) for place, value in enumerate(asked)]
    for place in find_wanted_words(evidence, words):
        values[place] += KEEP_WANTED * most
    sums = [0.0, *accumulate(values)]
    costs = [most * _cut_cost(words, place) for place in range(len(words) + 1)]
    stretches = (
        (start, start + length)
        for start in range(len(words))
        for length in range(math.ceil(MIN_STRETCH * room), room + 1)
        if start + length <= len(words)
    )
    return max(stretches, key=lambda at: (sums[at[1]] - sums[at[0]] - costs[at[0]] - costs[at[1]], -at[0]))


def _best_beside(asked: Sequence[float], place: int) -> float:
    """The best word of the question near a place, less for each word between."""
    first, last = max(0, place - _NEAR_WORDS), min(len(asked), place + _NEAR_WORDS + 1)
    return max((asked[i] * FADE ** abs(i - place) for i in range(first, last) if i != place), default=0.0)


def _cut_cost(words: Sequence[str], place: int) -> float:
    """What a cut before a word costs: nothing at an end, little between clauses, most inside a name."""
    if place in (0, len(words)):
        return 0.0
    between = words[place - 1][-1] in ",;:)]—–" or words[place].lower() in CLAUSE_WORDS or words[place][0] in "([—–"
    return _splits_name(words, place) + (0.0 if between else CUT_CLAUSE)


def _splits_name(words: Sequence[str], place: int) -> bool:
    """Whether a cut before a word goes through a name: "Shooter | Jennings"."""
    if not 0 < place < len(words) or words[place - 1][-1:] in ",;.:)":
        return False
    return words[place - 1][:1].isupper() and words[place][:1].isupper()


def _is_beside_the_point(aside: str, evidence: SentenceRanking) -> bool:
    """Whether an aside holds neither a number, the wanted kind of thing nor a word of the question.

    In accounts a number in brackets is a loss: without it the columns shift.
    """
    if any(char.isdigit() for char in aside):
        return False
    said = evidence.rarity.keys() & set(evidence.words.stems(aside))
    return not said and not find_wanted_words(evidence, aside.split())
