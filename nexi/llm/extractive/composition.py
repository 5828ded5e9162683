"""A short answer from evidence: which sentences, from which pages, in how many words.

Above `evidence` and `comparison`, below the built-in model. One page is quoted when one page is enough; two when the question
sets two things side by side, or when a page about its subject leads to the page that answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nexi.checking.conflicts import DIFFER, DISAGREE
from nexi.llm.extractive._choice import Candidate
from nexi.llm.extractive._comparison import Side, compare_sides, confirm_statement, find_dates, find_life_sign
from nexi.llm.extractive._disputes import Settled, find_other_answers, put_altered_first, quote_briefly, settle_values
from nexi.llm.extractive._evidence import (
    Compare,
    Scored,
    SentenceRanking,
    find_page_subject,
    flatten_words,
    holds_wanted,
    is_named,
    rank_sentences,
)
from nexi.llm.extractive._lexicon import RELATIONS
from nexi.llm.extractive._limits import (
    CERTAIN,
    ENOUGH,
    MAX_BLOCK_WORDS,
    MAX_CANDIDATES,
    MAX_COMPARED,
    MAX_HEAD_WORDS,
    MAX_QUESTION_CHARS,
    MAX_SENTENCES,
    MAX_WORDS,
    MIN_NAME_CHARS,
    MIN_SENTENCE_WORDS,
)
from nexi.llm.extractive._outdated import leave_out_outdated
from nexi.llm.extractive._quotation import fit_sentences, quote_sentence, quote_unit, quote_with_context, shorten_sentence
from nexi.llm.extractive._readings import Reading, find_readings
from nexi.llm.extractive._summary import is_about_pages
from nexi.llm.extractive._units import choose_sides, rate_choices
from nexi.llm.extractive.answerability import are_missed, asks_briefly, rate_answer, rate_words
from nexi.llm.extractive.questions import Question, find_names, narrow_queries, read_question, split_question
from nexi.text.languages import detect_language
from nexi.text.plain import strip_markdown
from nexi.types import Answered, Hit, PageView

NOT_ANSWERED = "None of the pages that were read answers this question; the closest passages say:"
MAX_PAGES = 2
ONE_PAGE = 0.65  # the share of the question that a page must say to answer it alone
MIN_CHANCE = 0.1  # of a sentence that is added
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,200})\]\((https?://[^()\s]{1,2000})\)")
_ASIDE = re.compile(r"\s*\([^()]*\)")


Quotations = tuple[tuple[str, int], ...]  # sentences with their citation numbers


class ExtractiveAnswer(Struct, frozen=True):
    """Quoted sentences with their citation numbers, after an optional short answer."""

    lines: Quotations = ()
    short: str = ""
    answered: Answered = "no"  # the lines are then the closest passages
    parts: tuple[tuple[str, ExtractiveAnswer], ...] = ()  # the answers to each of several questions


def compose_answer(question: Question, pages: Sequence[PageView], compare: Compare | None = None) -> ExtractiveAnswer:
    """The answer to a question from pages that were read; without lines when nothing in them bears on it."""
    # Of several questions in one, each is answered by itself.
    parts: list[tuple[str, ExtractiveAnswer]] = []
    for part in split_question(question):
        names = find_names(part.text.partition(" ")[2])
        # the pages with a name of this question: those of the other questions were read too
        own = [page for page in pages if any(name in f"{page.title}\n{page.text}" for name in names)]
        parts.append((part.text, _compose_one(part, own or list(pages), compare)))
    if not parts:
        return _compose_one(question, pages, compare)
    ratings = {answer.answered for _, answer in parts}
    if ratings == {"no"}:
        return replace(_compose_one(question, pages, compare), short="", answered="no")
    lines = tuple(dict.fromkeys(line for _, answer in parts if answer.answered != "no" for line in answer.lines))
    return ExtractiveAnswer(lines, answered=ratings.pop() if len(ratings) == 1 else "likely", parts=tuple(parts))


def _compose_one(question: Question, pages: Sequence[PageView], compare: Compare | None) -> ExtractiveAnswer:
    same_language = [
        page for page in pages if question.language and detect_language(page.text[:MAX_QUESTION_CHARS]) == question.language
    ]
    evidence = rank_sentences(question, tuple(same_language or pages))
    quotable = [s for s in evidence.ranked if s.is_quotable]
    if not quotable:
        return ExtractiveAnswer(answered=rate_words(question, evidence))
    readings = find_readings(evidence, compare)
    quoted_readings = (
        (r.best, [(quote_sentence(evidence, s), evidence.pages[s.page].number) for s in r.sentences])
        for r in readings
        if r.best
    )
    # the pages answer for a reading, by their words or by what was read
    if readings and (
        rate_words(question, evidence) != "no" or any(rate_answer(evidence, *quoted) != "no" for quoted in quoted_readings)
    ):
        settled = Settled(sum((r.sentences for r in readings), ()), sum((r.aside for r in readings), ()))
        others = [s for reading in readings if not reading.label for s in reading.sentences]
        others += find_other_answers(evidence, leave_out_outdated(evidence, quotable), settled, compare)
        lines = (*_quote_readings(evidence, readings), *_quote_others(evidence, others, DIFFER))
        return ExtractiveAnswer(lines, answered="depends")
    usable = leave_out_outdated(evidence, quotable)
    sides = _Subjects(evidence, usable).sides()
    if sides and (short := compare_sides(question, *(s for s, _ in sides))):
        return ExtractiveAnswer(_fill_room(evidence, [s for _, s in sides], (), len(short.split())), short, "yes")
    if question.wants == "yesno" and (deciding := _find_deciding(evidence, usable)):
        return ExtractiveAnswer(_quote_lines(evidence, [deciding[0]]), deciding[1], "yes")
    draft = draft_answer(evidence, usable, compare)
    # two pages answer a question that says much of what it wants; of one in few words, any two pages have the words
    by_words = draft.is_pair and not asks_briefly(question)
    rated_lines = draft.lines[:1] if draft.short else draft.lines  # of several values each is an answer by itself
    rating = rate_words(question, evidence) if by_words else rate_answer(evidence, draft.best, rated_lines, compare)
    if rating != "no" or by_words:
        return ExtractiveAnswer(draft.lines, draft.short, rating)
    if draft.best.scored.last:
        return ExtractiveAnswer(_quote_units(evidence, [draft.best]), answered=rating)
    if draft.short:
        return ExtractiveAnswer(draft.lines, answered=rating)
    room = MAX_WORDS - len(NOT_ANSWERED.split())
    nearest = [c.scored for c in rate_choices(evidence, compare)[:MAX_PAGES]]
    nearest = [s if s.last else settle_values(evidence, s, usable).chosen[0] for s in nearest]
    return ExtractiveAnswer(_quote_lines(evidence, nearest, room), answered=rating)


class AnswerDraft(Struct, frozen=True):
    """An answer that was not rated yet, and the sentence or unit that answers most likely."""

    best: Candidate
    lines: Quotations
    short: str = ""
    is_pair: bool = False  # of two pages, of which neither answers alone


def draft_answer(evidence: SentenceRanking, usable: Sequence[Scored], compare: Compare | None) -> AnswerDraft:
    """The answer that the pages give to a question that no two sentences settle."""
    question, candidates = evidence.question, rate_choices(evidence, compare)
    if not candidates[0].scored.last:
        candidates = put_altered_first(evidence, candidates, range(len(evidence.pages)), compare)
    best, is_unit = candidates[0], candidates[0].scored.last > 0
    if not is_unit:
        values = settle_values(evidence, best.scored, usable)
        others = find_other_answers(evidence, usable, values, compare)
        if values.is_disputed:
            lines = _quote_lines(evidence, values.chosen, MAX_BLOCK_WORDS)
            return AnswerDraft(best, (*lines, *_quote_others(evidence, others, DIFFER)), DISAGREE.strip())
        if others:
            return AnswerDraft(best, _quote_others(evidence, (*values.chosen, *others)), DIFFER.strip())
        minority = {(s.page, s.place) for s in values.aside}
        if (best.scored.page, best.scored.place) in minority:
            candidates = [replace(best, scored=values.chosen[0]), *candidates[1:]]
        candidates = [c for c in candidates if (c.scored.page, c.scored.place) not in minority]
        usable = [s for s in usable if (s.page, s.place) not in minority]
    if compare and question.sets_side_by_side and (sides := choose_sides(evidence, compare, as_units=is_unit)):
        return AnswerDraft(best, _quote_sides(evidence, [*sides[:-2], best.scored][0], sides[-2:]))
    if is_unit:
        return AnswerDraft(best, _quote_units(evidence, candidates))
    graph = _Subjects(evidence, usable)
    is_read = best.nearness > 0
    is_code = evidence.wants == "code"  # pages of a manual name one another everywhere, so that joins no two of them
    if not is_code and (pair := graph.linked_pair()) and not _says_less(evidence, pair, usable[0]):
        return AnswerDraft(best, _fill_room(evidence, pair, usable), is_pair=True)
    if not is_read and (is_code or question.language):  # the choice by words was learned from English prose
        return AnswerDraft(best, _fill_room(evidence, usable[:1], usable))
    sentences = _choose_sentences(evidence, candidates, is_read=is_read)
    if graph.needs_another_page(candidates[0].scored.page) and (other := graph.find_other_page(sentences, candidates)):
        return AnswerDraft(best, _fill_room(evidence, [sentences[0], other], sentences))
    return AnswerDraft(best, _quote_lines(evidence, sentences))


def rate_pages(question: str, pages: Sequence[PageView], compare: Compare | None = None, earlier: str = "") -> Answered:
    """Whether pages answer a question that was asked after earlier ones: as they answer it without a model."""
    readable = [page for page in pages if page.text and not page.error]
    if not readable:
        return "no"
    if is_about_pages(question, readable):
        return "yes"
    return compose_answer(read_question(question, earlier), readable, compare).answered


def _find_deciding(evidence: SentenceRanking, usable: Sequence[Scored]) -> tuple[Scored, str] | None:
    """A sentence that says just what was asked, with "Yes." or "No."; None where there is none, or two say opposite things."""
    deciding = {
        short: s
        for s in reversed(usable)
        if (short := confirm_statement(evidence.question, s.sentence.text, evidence.subjects[s.page]))
    }
    return next(((s, short) for short, s in deciding.items()), None) if len(deciding) == 1 else None


def _quote_sides(evidence: SentenceRanking, best: Scored, sides: Sequence[Scored]) -> Quotations:
    """A line for each side of a comparison, after the best sentence or unit where that names both."""
    choice_stems = frozenset(stem for choice in evidence.question.choices for stem in evidence.words.stems(choice))
    first = [best] if choice_stems <= evidence.stems_of(best.page, best.place, best.last) else []
    apart = [s for s in sides if s.page != best.page or not best.place <= s.place < max(best.last, best.place + 1)]
    lines: list[tuple[str, int]] = []
    for s in (*first, *(apart if first else sides)):
        texts = quote_unit(evidence, s) if s.last else [quote_sentence(evidence, s)]
        texts[0] = f"- {texts[0]}" if len(texts) == 1 and s not in first else texts[0]
        lines += [(text, evidence.pages[s.page].number) for text in texts]
    return tuple(lines)


def _quote_readings(evidence: SentenceRanking, readings: Sequence[Reading]) -> Quotations:
    """A line for each reading; where pages give different values, with both of them."""
    lines: list[tuple[str, int]] = []
    for reading in (reading for reading in readings if reading.label):
        quotes = [shorten_sentence(quote_sentence(evidence, s), evidence, MAX_WORDS) for s in reading.sentences]
        numbers = [evidence.pages[s.page].number for s in reading.sentences]
        quotations = [f"{quote} [{number}] " for quote, number in zip(quotes[:-1], numbers, strict=False)]
        lead = DISAGREE if reading.is_disputed else ""
        lines.append((f"- {reading.label}: {lead}{''.join(quotations)}{quotes[-1]}", numbers[-1]))
    return tuple(lines)


def _quote_others(evidence: SentenceRanking, sentences: Sequence[Scored], lead: str = "") -> Quotations:
    """In one line what pages answer with different values."""
    quotations = [quote_briefly(evidence, s) for s in sentences]
    texts = [lead + text for text in quotations[:1]] + quotations[1:]
    return tuple((text, evidence.pages[s.page].number) for text, s in zip(texts, sentences, strict=True))


def _quote_units(evidence: SentenceRanking, units: Sequence[Candidate]) -> Quotations:
    """The first unit, and others while there is room and it is not certain that those before them answer."""
    # Where a page says what the thing asked about is, the rest comes from that page too.
    if evidence.question.form == "definition" and units[0].features.get("defines"):
        units = [unit for unit in units if unit.scored.page == units[0].scored.page]
    lines: list[tuple[Scored, list[str]]] = []
    chance = 0.0
    for unit in units:
        texts = quote_unit(evidence, unit.scored, [s for s, _ in lines])
        before = [text for _, others in lines for text in others]
        if any(_says_the_same(text, other) for text in texts for other in before):
            continue
        pages = {s.page for s, _ in lines} | {unit.scored.page}
        words = _count_words((*before, *texts))
        if not lines or (chance < CERTAIN and words <= MAX_BLOCK_WORDS and len(pages) <= MAX_PAGES):
            lines.append((unit.scored, texts))
            chance += unit.chance
    lines.sort(key=lambda line: (line[0].page != units[0].scored.page, line[0].page))
    return tuple((text, evidence.pages[s.page].number) for s, texts in lines for text in texts)


def _choose_sentences(evidence: SentenceRanking, candidates: Sequence[Candidate], *, is_read: bool) -> list[Scored]:
    """The sentence that answers most likely, and others that may while that is not certain, the likeliest first."""
    # Manuals say things in short sentences one after another, so that more of theirs fit and are needed.
    is_manual = is_read and evidence.is_technical
    most, least = (2 * MAX_SENTENCES, 0.0) if is_manual else (MAX_SENTENCES, MIN_CHANCE)
    candidates = candidates if is_read else _leave_out_leads(evidence, candidates)
    sentences, chance = [candidates[0].scored], candidates[0].chance
    for candidate in candidates[1:]:
        s, pages = candidate.scored, {c.page for c in sentences}
        covered_words = frozenset[str]().union(*(c.covered for c in sentences))
        may_answer = (chance < CERTAIN or is_manual) and candidate.chance >= least
        if len(sentences) == most or not (may_answer or _goes_on(evidence, candidate, sentences[0], covered_words)):
            continue
        if is_read:
            fits = len(pages | {s.page}) <= MAX_PAGES
        else:
            fits = s.score >= _min_share(evidence, s, pages, covered_words) * sentences[0].score
        if fits:
            sentences.append(s)
            chance += candidate.chance
    return sentences


def _says_less(evidence: SentenceRanking, pair: Sequence[Scored], best: Scored) -> bool:
    """Whether two sentences of two pages say less of the question than the best sentence, which says enough alone."""
    alone, together = (evidence.share_of(words) for words in (best.covered, pair[0].covered | pair[1].covered))
    return alone >= ONE_PAGE and alone > together


def _goes_on(evidence: SentenceRanking, candidate: Candidate, anchor: Scored, covered_words: frozenset[str]) -> bool:
    """Whether a sentence says more of the question: the next one, or one of a further page where this page lacks the words."""
    s = candidate.scored
    if s.page == anchor.page:
        return s.place == anchor.place + 1 and bool(s.covered - covered_words) and candidate.chance >= MIN_CHANCE / 2
    return s.score >= CERTAIN * anchor.score and bool(s.covered - covered_words - evidence.page_words(anchor.page))


def _leave_out_leads(evidence: SentenceRanking, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Without the sentences of the best page that only name what it is about, where another one of it says more."""
    # One that holds the wanted kind of thing, such as a number, stays: "The Moon is 384,400 km away" says how far it is.
    page = candidates[0].scored.page
    other_stems = evidence.question.weights.keys() - frozenset(evidence.words.stems(evidence.subjects[page]))
    informative = [
        c
        for c in candidates
        if c.scored.page != page or c.scored.covered & other_stems or holds_wanted(evidence, c.scored.sentence)
    ]
    if not other_stems or not any(c.scored.page == page for c in informative):
        return candidates
    whole = sum(c.chance for c in informative)
    return [Candidate(c.scored, c.chance / whole) for c in informative]


def _quote_lines(evidence: SentenceRanking, sentences: Sequence[Scored], room: int = MAX_WORDS) -> Quotations:
    """The chosen sentences with their citation numbers: the best one, then those of its page."""
    # The first is quoted with what it introduces; a further one only where it fits, and nothing twice. Two pages that are both
    # needed share the room.
    lines: list[tuple[Scored, list[str]]] = []
    for s in sentences:
        texts = quote_with_context(evidence, s, [o for o, _ in lines])
        texts[0] = shorten_sentence(texts[0], evidence, MAX_WORDS)
        before = [text for _, others in lines for text in others]
        if any(_says_the_same(text, other) for text in texts for other in before):
            continue
        if not lines or _count_words((*before, *texts)) <= room:
            lines.append((s, texts))
        elif len(before) == len(texts) == 1 and s.page != sentences[0].page:
            pair = fit_sentences((*before, *texts), evidence, room)
            if _count_words(pair) <= room:
                lines = [(sentences[0], pair[:1]), (s, pair[1:])]
    lines.sort(key=lambda line: (line[0] is not sentences[0], line[0].page != sentences[0].page, line[0].page, line[0].place))
    return tuple((text, evidence.pages[s.page].number) for s, texts in lines for text in texts)


def _count_words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _says_the_same(text: str, other: str) -> bool:
    one, two = flatten_words(text), flatten_words(other)
    return one in two or two in one


class NextStep(Struct, frozen=True):
    """Where pages that say only a part of the question lead on."""

    links: tuple[str, ...] = ()  # pages that their best sentences link to
    # The name that the question goes by way of, that a page gives and that no page read is about; or, where the pages tell of
    # something else, what the question names itself.
    queries: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # further hits whose subject a page names, where what was read answers, but no page says enough


def find_next_step(question: Question, pages: Sequence[PageView], hits: Sequence[Hit], read_urls: Container[str]) -> NextStep:
    """What to read or search next; of `hits` the best come first, and `read_urls` are left out."""
    evidence = rank_sentences(question, tuple(pages))
    graph = _Subjects(evidence, [s for s in evidence.ranked if s.is_quotable])
    name = graph.next_name()
    queries = [name] if name else narrow_queries(question) if are_missed(question, evidence) else []
    partial = max(map(evidence.page_cover, range(len(pages))), default=0.0) < ONE_PAGE
    reads_on = partial and rate_words(question, evidence) != "no"
    texts = [flatten_words(page.text) for page in pages] if reads_on else []
    about_hits = [(hit.url, flatten_words(find_page_subject(hit.title))) for hit in hits if hit.url not in read_urls]
    further_urls = (url for url, about in about_hits if len(about.split()) > 1 and any(about in text for text in texts))
    # what the best sentences of the pages about the question's subject link to, where the page says only a part of it
    subject_pages = [n for n, is_subject in enumerate(graph.named) if is_subject] or [s.page for s in graph.usable[:1]]
    partial_pages = [n for n in subject_pages if evidence.page_cover(n) < ONE_PAGE]
    question_text, links = flatten_words(question.text), list[str]()
    for s in [s for s in graph.usable if s.page in partial_pages][:MAX_SENTENCES]:
        for match in _LINK.finditer(evidence.pages[s.page].text):
            label = strip_markdown(match[1])
            is_said = len(label) >= MIN_NAME_CHARS and label in s.sentence.text and match[2] not in read_urls
            if is_said and flatten_words(label) not in question_text:
                links.append(match[2])
    return NextStep(tuple(dict.fromkeys(links)), tuple(queries), tuple(further_urls))


class _Subjects:
    """What each page is about, and how pages and question name one another."""

    def __init__(self, evidence: SentenceRanking, usable: Sequence[Scored]) -> None:
        self.evidence, self.usable = evidence, usable
        self.flat = [flatten_words(s) for s in evidence.subjects]
        self.named = [is_named(s, evidence.question.text) for s in evidence.subjects]
        self._texts: dict[tuple[int, int], str] = {}

    def sides(self) -> list[tuple[Side, Scored]]:
        """The two alternatives of the question with the first words of their pages."""
        candidates = [self._find_side(choice, self._pages_about(choice)) for choice in self.evidence.question.choices]
        if len(candidates) != 2 or not all(candidates):
            pages = [n for n, is_named in enumerate(self.named) if is_named]
            candidates = [self._find_side(self.evidence.subjects[n], [n]) for n in pages]
        sides = [side for side in candidates if side]
        return sides if len(sides) == 2 and sides[0][1].page != sides[1][1].page else []

    def _find_side(self, name: str, pages: Sequence[int]) -> tuple[Side, Scored] | None:
        lead = next((lead for n in pages if (lead := self._lead_sentence(n))), None)
        if lead is None:
            return None
        opening = " ".join(s.text for s in self.evidence.sentences[lead.page][:MAX_COMPARED])
        if self.evidence.question.wants == "yesno" and self.flat[lead.page] in flatten_words(name):
            name = self.evidence.subjects[lead.page]  # "Eatza Pizza restaurants" asks whether Eatza Pizza is one
        return Side(name, lead.sentence.text, opening), lead

    def _pages_about(self, choice: str) -> list[int]:
        """The pages about an alternative, first those whose subject is just that."""
        name = flatten_words(_ASIDE.sub("", choice)) if _ASIDE.sub("", choice).strip() else flatten_words(choice)
        pages = [n for n, flat in enumerate(self.flat) if len(flat) >= MIN_NAME_CHARS and (flat in name or name in flat)]
        return sorted(pages, key=lambda n: self.flat[n] != flatten_words(choice))

    def linked_pair(self) -> list[Scored]:
        """Two sentences of two pages that belong together, or nothing."""
        pages = [n for n, is_named in enumerate(self.named) if is_named]
        best_page = self.usable[0].page
        firsts = dict.fromkeys((*pages, best_page) if self.needs_another_page(best_page) else pages)
        pairs = (self._pair_pages(first, second) for first in firsts for second in range(len(self.flat)))
        best = max(pairs, key=lambda pair: sum(s.score for s in pair), default=[])
        return best if sum(s.score for s in best) > 0 else []

    def needs_another_page(self, page: int) -> bool:
        """Whether a page leaves a part of the question unsaid that another page says."""
        cover = self.evidence.page_cover
        others = [n for n in range(len(self.flat)) if n != page]
        return cover(page) < ONE_PAGE and any(cover(page, n) > cover(page) for n in others)

    def find_other_page(self, sentences: Sequence[Scored], candidates: Sequence[Candidate]) -> Scored | None:
        """The best sentence of the page that says most of what the page of the chosen ones leaves out."""
        page = sentences[0].page
        others = [c.scored for c in candidates if c.scored.page != page and c.scored.score >= ENOUGH * sentences[0].score]
        return max(others, key=lambda s: self.evidence.page_cover(page, s.page), default=None)

    def next_name(self) -> str:
        """The name that stands in the relation the question asks by, on a page about the question's subject."""
        question = self.evidence.question
        cues = {w for word, cue in RELATIONS.items() if re.search(rf"\b{word}\b", question.text, re.I) for w in cue}
        familiar_text = flatten_words(" ".join((question.text, *self.evidence.subjects)))
        pages = [n for n, is_subject in enumerate(self.named) if is_subject and cues]
        for text in (s.text for page in pages for s in self.evidence.sentences[page][:MAX_CANDIDATES]):
            words = re.findall(r"[\w'’-]+", text)
            places = (place for place, word in enumerate(words, 1) if word.lower() in cues)  # within a few words of a cue
            names = (name for place in places for name in find_names(" ".join(words[place : place + MAX_HEAD_WORDS])))
            if new := next((n for n in names if flatten_words(n) not in familiar_text and len(n.split()) > 1), ""):
                return new
        return ""

    def _pair_pages(self, first: int, second: int) -> list[Scored]:
        about = self.flat[second]
        if first == second or len(about) <= MIN_NAME_CHARS or about in self.flat[first]:
            return []
        both_named = self.named[first] and self.named[second]
        own = (s for s in self.usable if s.page == first)
        link = next((s for s in own if both_named or self._mentions_subject(s, second)), None)
        if link is None and self.named[first]:
            # A sentence near the beginning that names what the other page is about, whatever else it says.
            opening = enumerate(self.evidence.sentences[first][:MAX_CANDIDATES])
            mentions = (Scored(0.0, first, place, s, frozenset()) for place, s in opening if s.kind == "prose")
            link = next((s for s in mentions if self._mentions_subject(s, second)), None)
        top = self._top_after(link, second) if link else None
        return [link, top] if link and top else []

    def _top_after(self, link: Scored, page: int) -> Scored | None:
        """The sentence of a page that adds most to what the link already says; its lead when none stands out."""
        rarity = self.evidence.rarity
        spent = link.covered | set(self.evidence.words.stems(self.evidence.subjects[link.page]))
        life = find_life_sign(self.evidence.question)

        def value(s: Scored) -> tuple[bool, float]:
            tells_life = life is not None and life.search(s.sentence.text) is not None
            return tells_life, s.score - sum(rarity[c] for c in s.covered & spent)

        sentences = [s for s in self.usable if s.page == page]
        lead = self._lead_sentence(page)
        if life and lead and all(s.place != lead.place for s in sentences):
            sentences.append(lead)
        return max(sentences, key=value, default=lead)

    def _mentions_subject(self, s: Scored, page: int) -> bool:
        """Whether a sentence names what a page is about, a middle name more or less, or without the title after a comma."""
        key = (s.page, s.place)
        if key not in self._texts:
            self._texts[key] = flatten_words(s.sentence.text)
        text, about = self._texts[key], self.flat[page]
        name, comma, _ = self.evidence.subjects[page].partition(",")
        if about in text or (comma and len(name.split()) > 1 and flatten_words(name) in text):
            return True
        words = about.split()
        return len(words) > 1 and words[0] in text and re.search(r" (?:\w+ )?".join(map(re.escape, words)), text) is not None

    def _lead_sentence(self, page: int) -> Scored | None:
        """The sentence that introduces a page's subject; with a date if one of the first has it."""
        names = {word for word in self.flat[page].split() if len(word) >= MIN_NAME_CHARS} or set(self.flat[page].split()[:1])
        start = [
            Scored(0.0, page, place, s, frozenset())
            for place, s in enumerate(self.evidence.sentences[page])
            if len(s.text.split()) >= (MIN_SENTENCE_WORDS if s.kind == "prose" else MAX_HEAD_WORDS)
            and names & set(flatten_words(s.text).split())
        ][:MAX_SENTENCES]
        return next((s for s in start if find_dates(s.sentence.text)), start[0] if start else None)


def _fill_room(evidence: SentenceRanking, sentences: Sequence[Scored], usable: Sequence[Scored], spent: int = 0) -> Quotations:
    """The chosen sentences and more of what speaks best while there is room; nothing is said twice."""
    if len(sentences) == 1:
        lines = list(_quote_lines(evidence, sentences))
    else:
        texts = fit_sentences([quote_sentence(evidence, s) for s in sentences], evidence, MAX_WORDS - spent)
        lines = [(text, evidence.pages[s.page].number) for text, s in zip(texts, sentences, strict=True)]
    room = MAX_WORDS - spent - _count_words(text for text, _ in lines)
    quotations = list(sentences)
    pages = {s.page for s in sentences}
    covered_words = frozenset[str]().union(*(s.covered for s in sentences))
    anchor = sentences[0]
    for s in usable:
        text = quote_sentence(evidence, s, quotations)
        fits = len(text.split()) <= room and len(pages | {s.page}) <= MAX_PAGES
        enough = _min_share(evidence, s, pages, covered_words) * anchor.score
        if fits and s.score >= enough and not any(_says_the_same(s.sentence.text, o.sentence.text) for o in quotations):
            lines.append((text, evidence.pages[s.page].number))
            room -= len(text.split())
            pages.add(s.page)
            covered_words |= s.covered
            quotations.append(s)
    return tuple(lines)


def _min_share(evidence: SentenceRanking, s: Scored, pages: set[int], covered_words: frozenset[str]) -> float:
    """The share of the best score a sentence needs: more on a further page once every word of the question is said."""
    # There, a sentence that names a page already quoted only leads back to it.
    if s.page in pages or not evidence.rarity.keys() <= covered_words:
        return ENOUGH
    leads_back = any(is_named(evidence.subjects[page], s.sentence.text) for page in pages)
    return math.inf if leads_back else CERTAIN
