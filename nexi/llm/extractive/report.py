"""A report without a model: for each part of a question the passages that speak to it, quoted in the order of their pages.

Above `passages` and `questions`; the app hands it the pages that researchers have read. A passage is one or a few sentences of
one paragraph. Each is quoted once, under the part it speaks to most; a part that no passage speaks to is named at the end. A
question too broad for that gets an outline of its sources.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from nexi.llm.extractive._aspects import load_aspects
from nexi.llm.extractive._evidence import find_page_subject
from nexi.llm.extractive.passages import ContentWords, PassageSentence, read_sentences
from nexi.llm.extractive.questions import what_is_wanted
from nexi.text.stems import stem
from nexi.text.stopwords import word_set
from nexi.types import PageView

__all__ = ["write_report"]


MAX_PASSAGE_WORDS = 120
MAX_PASSAGES = 3  # of a section
MAX_LEAD_WORDS = 60
MIN_SENTENCE_WORDS = 5
MIN_SHARE = 0.4  # of what a part asks for, by rarity, that a passage must hold
MIN_OF_BEST = 0.9  # of the best passage of a section, from which another is quoted
DENSITY = 0.9  # how much it matters that the rest of a passage speaks of the same
SUBJECT = 0.2  # what it adds that the best sentence names the subject
WEAK = 0.3  # what a word counts that says little
BESIDE, ASPECT, PAIR = 0.7, 0.6, 0.25  # what a word counts beside the best sentence, as another word for it, with its neighbour
OPENING_SENTENCES = 60
MAX_OUTLINE_PAGES = 8
TOO_BROAD = "None of the pages that were read answers this question part by part; they begin as follows:"

_COMMANDS = frozenset(map(stem, word_set("describe compare explain discuss list outline summarise summarize")))
_WEAK = frozenset(
    map(
        stem,
        word_set(
            "happen main role play take come work live look become know known many much often kind type do make give get way "
            "life career done thing people famous important"
        ),
    )
)
_REFERS_BACK = re.compile(
    r"(?:It|Its|They|Their|He|His|She|Her|This|That|These|Those|Such|However|But|And|Also|Thus|Therefore|Moreover|Furthermore|"
    r"Then|So|Hence|Instead|Another|Others?|In addition|As a result|For (?:example|instance)|On the other hand|The latter)\b"
)
_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-Þ][\w’'-]+")
_ADJECTIVE = ("an", "ish", "ese", "ch", "ic")  # "American" may stand for "US", so that no passage has to have it
_COPULA = r"\b(?:is|are|was|were)\b"
_PRONOUN = re.compile(r"(?:It|He|She)\b(?= (?:is|was|has|had|became|can|may|will|did|does)\b)")


class _Passage(Struct, frozen=True):
    """Sentences of one paragraph; `stems` has the words of each."""

    page: int
    block: int
    sentences: tuple[str, ...]
    stems: tuple[tuple[str, ...], ...]
    label: frozenset[str]


class _Quotation(Struct, frozen=True):
    score: float
    part: int
    passage: _Passage
    best: int


def write_report(question: str, parts: Sequence[str], pages: Sequence[PageView]) -> str:
    """The report on a question with these parts; "" where no page could be read, or where one fact was asked for."""
    readable = [page for page in pages if page.text and not page.error and page.number > 0]
    if not readable or (len(parts) == 1 and what_is_wanted(question)):
        return ""
    writer = _ReportWriter(question, parts, readable)
    sections = writer.choose_quotations()
    title = f"# {' '.join(question.split())}"
    if not any(sections):
        return f"{title}\n\n{TOO_BROAD}\n\n{writer.render_outline()}"
    blocks = [title, writer.render_lead({q.passage for found in sections for q in found})]
    missing = []
    for part, found in zip(parts, sections, strict=True):
        if found:
            blocks += [f"## {_make_heading(part)}"] if len(parts) > 1 else []
            blocks += [writer.render_passage(quotation) for quotation in found]
        else:
            missing.append(f"- {_make_heading(part)}")
    if missing:
        blocks.append("## Not found\n\n" + "\n".join(missing))
    return "\n\n".join(block for block in blocks if block)


def _make_heading(part: str) -> str:
    """A part without the subject that was put in brackets for its search, and without "Describe" or "Compare"."""
    text = re.sub(r"\s*\([^()]*\)(?=\??$)", "", part)
    first, _, rest = text.partition(" ")
    text = rest.rstrip(".") if stem(first.lower()) in _COMMANDS and rest else text
    return text[:1].upper() + text[1:]


class _ReportWriter:
    """The pages about the question, as passages, and how well each speaks to each part."""

    def __init__(self, question: str, parts: Sequence[str], pages: Sequence[PageView]) -> None:
        self.pages = pages
        self.words = ContentWords()
        self.subjects = [find_page_subject(page.title) for page in pages]
        self.titles = [frozenset(self.words.stems(subject)) for subject in self.subjects]
        self.asked = [self._read_part(part) for part in parts]
        self.names = [
            frozenset(w for name in _NAME.findall(part) if not name.endswith(_ADJECTIVE) for w in self.words.stems(name))
            for part in parts
        ]
        whole = frozenset(self.words.stems(question))
        self.texts = [read_sentences(page.text) for page in pages]
        self.passages = [p for number in range(len(pages)) for p in self._read_passages(number)]
        vocabulary = {stem for p in self.passages for stems in p.stems for stem in stems}
        self.forms = {word: _find_forms(word, vocabulary) for word in {w for asked in self.asked for w in asked} | whole}
        self.rarity = self._weigh_words()
        self.allowed = [self._find_pages(frozenset(asked), whole) for asked in self.asked]

    def _read_part(self, part: str) -> tuple[str, ...]:
        return tuple(word for word in self.words.stems(part) if word not in _COMMANDS)

    def _read_passages(self, number: int) -> Iterable[_Passage]:
        blocks: dict[int, list[PassageSentence]] = {}
        for sentence in self.texts[number]:
            if sentence.kind in ("prose", "item") and not sentence.text.endswith(":"):
                blocks.setdefault(sentence.block, []).append(sentence)
        for block, sentences in blocks.items():
            texts = tuple(s.text for s in sentences)
            label = frozenset(self.words.stems(sentences[0].label))
            yield _Passage(number, block, texts, tuple(tuple(self.words.stems(text)) for text in texts), label)

    def _weigh_words(self) -> dict[str, float]:
        """How much each word of the question says: words in few sentences say more."""
        total = sum(len(p.stems) for p in self.passages)
        seen: Counter[str] = Counter()
        for passage in self.passages:
            for stems in passage.stems:
                have = set(stems)
                seen.update(word for word, forms in self.forms.items() if have & forms)
        return {word: math.log(1 + (total - seen[word] + 0.5) / (seen[word] + 0.5)) for word in self.forms}

    def _find_pages(self, asked: frozenset[str], whole: frozenset[str]) -> frozenset[int]:
        """The pages whose subject a part names; else those whose subject the question names; else the best one."""
        for words in (asked, whole):
            near = frozenset().union(*(self.forms[word] for word in words)) if words else frozenset[str]()
            named = {n: len(title) for n, title in enumerate(self.titles) if title and title <= near}
            if named:
                most = max(named.values())
                return frozenset(n for n, length in named.items() if length == most or self.titles[n] <= asked)
        return frozenset()

    def choose_quotations(self) -> list[list[_Quotation]]:
        """The passages of each part, each passage once, in the order of their pages."""
        chosen = self._choose_passages()
        return [sorted(section, key=lambda q: (q.passage.page, q.passage.block)) for section in chosen]

    def _choose_passages(self) -> list[list[_Quotation]]:
        parts = range(len(self.asked))
        found = [q for part in parts for p in self.passages if (q := self._rate_passage(part, p))]
        best = [max((q.score for q in found if q.part == part), default=0.0) for part in parts]
        chosen: list[list[_Quotation]] = [[] for _ in self.asked]
        taken: list[frozenset[str]] = []
        places: set[tuple[int, int]] = set()
        for q in sorted(found, key=lambda q: (-q.score / best[q.part], q.passage.page, q.passage.block)):
            words = frozenset(stem for stems in q.passage.stems for stem in stems)
            place = (q.passage.page, q.passage.block)
            is_full = q.score < MIN_OF_BEST * best[q.part] or len(chosen[q.part]) == MAX_PASSAGES
            if is_full or place in places or any(_is_double(words, other) for other in taken):
                continue
            chosen[q.part].append(q)
            taken.append(words)
            places.add(place)
        return chosen

    def _rate_passage(self, part: int, passage: _Passage) -> _Quotation | None:
        if passage.page not in self.allowed[part]:
            return None
        title = self.titles[passage.page]
        wanted = {
            word: self.rarity[word] * (WEAK if word in _WEAK else 1.0)
            for word in self.asked[part]
            if not self.forms[word] & title
        }
        if not wanted.keys() - _WEAK:
            return _Quotation(1.0, part, passage, 0) if self._introduces(passage) else None
        total = sum(wanted.values())
        rated = [self._rate_sentence(wanted, passage, place) for place in range(len(passage.sentences))]
        place = max(range(len(rated)), key=lambda i: (rated[i], -i))
        share = rated[place] / total if total else 0.0
        names = self.names[part] - title
        if names and not all(any(self.forms[name] & set(stems) for stems in passage.stems) for name in names):
            return None
        dense = 1 - DENSITY + DENSITY * self._measure_density(wanted, passage)
        dense *= 1 + SUBJECT * bool(title.intersection(passage.stems[place]))
        return _Quotation(share * dense, part, passage, place) if share >= MIN_SHARE else None

    def _measure_density(self, wanted: Mapping[str, float], passage: _Passage) -> float:
        """The share of a passage's sentences with a word that was asked for, or another word for it."""
        forms = frozenset().union(*(self.forms[word] | self._aspect(word) for word in wanted if word not in _WEAK))
        long = [
            stems
            for text, stems in zip(passage.sentences, passage.stems, strict=True)
            if len(text.split()) >= MIN_SENTENCE_WORDS
        ]
        return sum(bool(forms.intersection(stems)) for stems in long) / max(1, len(long))

    @staticmethod
    def _aspect(word: str) -> frozenset[str]:
        return load_aspects().get(word, frozenset())

    def _introduces(self, passage: _Passage) -> bool:
        """Whether a passage introduces the subject of its page, for a part that asks for nothing else."""
        own = [p for p in self.passages if p.page == passage.page]
        names = [re.escape(word) for word in self.subjects[passage.page].split()]
        opens = re.compile(rf"(?:The |An? |Sir )?{'[^.]{0,40}?'.join(names)}s?\b.{{0,160}}?{_COPULA}", re.IGNORECASE)
        return passage == next((p for p in own if opens.match(p.sentences[0])), own[0])

    def _rate_sentence(self, wanted: Mapping[str, float], passage: _Passage, place: int) -> float:
        if len(passage.sentences[place].split()) < MIN_SENTENCE_WORDS:
            return 0.0
        own = set(passage.stems[place])
        beside = {stem for stems in passage.stems[max(0, place - 1) : place + 2] for stem in stems} | passage.label
        score = 0.0
        for word, weight in wanted.items():
            by_strength = ((own, self.forms[word], 1.0), (beside, self.forms[word], BESIDE))
            by_aspect = ((own, self._aspect(word), ASPECT), (beside, self._aspect(word), ASPECT * BESIDE))
            score += weight * next((share for stems, forms, share in (*by_strength, *by_aspect) if stems & forms), 0.0)
        pairs = set(pairwise(wanted))
        score += sum(PAIR * min(wanted[a], wanted[b]) for a, b in pairs if (a, b) in set(pairwise(passage.stems[place])))
        return score

    def render_passage(self, quotation: _Quotation) -> str:
        """The best sentence with what follows and, where it refers back, what comes before it; the subject for a first "it"."""
        start, end = self._find_window(quotation)
        sentences = quotation.passage.sentences
        number = self.pages[quotation.passage.page].number
        first = _PRONOUN.sub(self.subjects[quotation.passage.page], sentences[start], count=1)
        return " ".join(f"{text} [{number}]" for text in (first, *sentences[start + 1 : end + 1]))

    def _find_window(self, quotation: _Quotation) -> tuple[int, int]:
        """The first and the last sentence to show of a passage."""
        sentences = quotation.passage.sentences
        start = end = quotation.best
        while (
            start and _REFERS_BACK.match(sentences[start]) and _count_words(sentences[start - 1 : end + 1]) <= MAX_PASSAGE_WORDS
        ):
            start -= 1
        while end + 1 < len(sentences) and _count_words(sentences[start : end + 2]) <= MAX_PASSAGE_WORDS:
            end += 1
        while start and _count_words(sentences[start - 1 : end + 1]) <= MAX_PASSAGE_WORDS:
            start -= 1
        return start, end

    def render_lead(self, quoted: Iterable[_Passage]) -> str:
        """The sentences that say what the subject of the question is, unless they are quoted in a section."""
        places = {(passage.page, passage.block) for passage in quoted}
        pages = [n for n in range(len(self.pages)) if any(n in allowed for allowed in self.allowed)]
        leads = [lead for n in pages if (lead := self._find_lead(n, places))]
        return " ".join(leads[:2])

    def _find_lead(self, number: int, places: set[tuple[int, int]]) -> str:
        aside = r"(?: ?\([^()]{1,200}\)|,[^,]{1,120},)*"
        opens = re.compile(rf"(?:The |An? )?{re.escape(self.subjects[number])}s?{aside} {_COPULA}", re.IGNORECASE)
        for sentence in self.texts[number][:OPENING_SENTENCES]:
            if sentence.kind == "prose" and opens.match(sentence.text) and len(sentence.text.split()) <= MAX_LEAD_WORDS:
                return "" if (number, sentence.block) in places else f"{sentence.text} [{self.pages[number].number}]"
        return ""

    def render_outline(self) -> str:
        """The pages with how each begins."""
        lines = []
        for number, page in enumerate(self.pages[:MAX_OUTLINE_PAGES]):
            texts = (s.text for s in self.texts[number] if s.kind == "prose" and len(s.text.split()) >= MIN_SENTENCE_WORDS)
            if first := next(texts, ""):
                lines.append(f"- {self.subjects[number] or page.url}: {first} [{page.number}]")
        return "\n".join(lines)


def _count_words(sentences: Sequence[str]) -> int:
    return sum(len(text.split()) for text in sentences)


def _find_forms(word: str, vocabulary: Iterable[str]) -> frozenset[str]:
    """The stems that are the same word in another form: `econom` of `economi`, `invent` of `inventor`."""
    return frozenset({word, *(other for other in vocabulary if _is_same_word(word, other))})


def _is_same_word(one: str, other: str) -> bool:
    short = min(len(one), len(other))
    if short < 5 or abs(len(one) - len(other)) > 3 or one[:4] != other[:4]:
        return False
    common = next((i for i in range(short) if one[i] != other[i]), short)
    return common >= max(5, short - 1)


def _is_double(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= 0.7 * min(len(words), len(other))
