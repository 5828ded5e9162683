"""A report without a model: for each part of a question the stretches of pages that answer it, quoted whole.

Above `_stretches`; the app hands it the pages that researchers have read, and a reading model where there is one. Words choose
what is compared, the reading model decides, and where there is none the words do. Each stretch is quoted once, under the part
it answers best; parts that no page answers are named at the end. A question too broad for that gets an outline of its sources.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from nexi.llm.extractive._aspects import load_aspects
from nexi.llm.extractive._choice import MAX_COMPARED_CHARS, Compare
from nexi.llm.extractive._evidence import find_page_subject
from nexi.llm.extractive._stretches import Line, Stretch, count_words, read_stretches, render_lines
from nexi.llm.extractive.passages import ContentWords
from nexi.llm.extractive.questions import what_is_wanted
from nexi.text.languages import detect_language
from nexi.text.stems import stem
from nexi.text.stopwords import word_set
from nexi.types import PageView

__all__ = ["TOO_BROAD", "write_report"]


MAX_COMPARED = 14  # stretches for each part, by their rare words and by all of them
MAX_SECTION_WORDS = 260  # where no length was asked for
MIN_WORDS, MIN_SENTENCE_WORDS = 7, 5  # of a stretch, and of one that is a sentence
MIN_SHARE = 0.4  # of what a part asks for, by rarity, that a stretch must hold where no model reads
MIN_PAGE_SHARE = 0.35  # of it, that its page must hold
MIN_NEARNESS, MIN_BARE_NEARNESS = 0.85, 0.9  # to its part; of a stretch with none of the words that were asked for
MIN_PAGE_NEARNESS = 0.84  # of the opening of a page to the question
MARGIN, WIDE_MARGIN = 0.008, 0.03  # below the best of its section; where a long report was asked for
WORDS_SHARE, OWN_PAGE, OPENING, LISTED = (
    0.035,
    0.012,
    0.012,
    0.05,
)  # what is added for words, a page of that name, how it begins
REFERS_BACK = 0.01  # what is taken off where a stretch begins with a reference to what came before it
OTHER_PAGE = 0.25  # of the margin that stretches of other pages than the best have
MAX_PARAGRAPH_WORDS = 110  # of a paragraph that is quoted whole
MANY_WORDS = 800  # of a report, from which its sections are wide
WEAK = 0.1  # what a word counts that says little
ABOVE, TITLE, ASPECT = 0.9, 0.6, 0.6  # what a word counts in a heading, in the title, as another word for it
MAX_OUTLINE_PAGES = 5
MAX_LEAD_WORDS = 22  # of what introduces a list
MIN_LIST_LINES = 3  # with what introduces the list
SAME_SHARE = 0.7  # of common words, from which a stretch repeats another
TOO_BROAD = "None of the pages that were read answers this question part by part; they begin as follows:"
NOT_ANSWERED = "None of the pages that were read answers this question."

_WEAK = frozenset(
    map(
        stem,
        word_set(
            "happen main role play take come work live look become know known many much often kind type do make give get way "
            "life career done thing people famous important describe compare explain discuss list outline summarise summarize "
            "use offer provide support exist far long high tall old big large fast deep wide heavy good well better best useful"
        ),
    )
)
_REFERS_BACK = re.compile(
    r"(?:It|Its|They|Their|He|His|She|Her|This|That|These|Those|Such|However|But|And|Also|Thus|Therefore|Moreover|Furthermore|"
    r"Then|So|Hence|Instead|Either way|Even so|Now|Nevertheless|Nonetheless|Fortunately|Normally|In particular|In other words|"
    r"As an example|An example|Similarly|Likewise|Alternatively|Otherwise|Finally|Because of this|In this (?:case|mode)|"
    r"Another|Others?|In addition|As a result|For (?:example|instance)|On the other hand|The latter)\b"
)
_NUMBER = re.compile(r"^\d+(?:\.\d+)*\.?\s+")
_NAME = re.compile(r"(?<=[\w,(] )[A-ZÀ-Þ][\w’'-]+|(?<=\()[A-ZÀ-Þ][\w’'-]+")
_ADJECTIVE = ("an", "ish", "ese", "ch", "ic")  # "American" may stand for "US", so that no page has to have it
_PRONOUN = re.compile(
    r"(?:It|He|She)\b(?! is (?:possible|likely|important|necessary|true|also|not|clear|easy|hard|best|safe)\b)"
    r"(?= (?:is|was|has|had|became|can|may|will|did|does)\b)"
)


class _Quotation(Struct, frozen=True):
    score: float
    part: int
    stretch: Stretch


def write_report(
    question: str,
    headings: Mapping[str, str],
    pages: Sequence[PageView],
    compare: Compare | None = None,
    *,
    title: str = "",
    words: int = 0,
) -> str:
    """The report on a question; "" where no page could be read, or where one fact was asked for.

    `headings` has the parts of the question, each with the heading of its section. `words` is about how many the report
    should have; 0 leaves it to the evidence.
    """
    parts = list(headings)
    readable = [page for page in pages if page.text and not page.error and page.number > 0]
    if not readable or (len(parts) == 1 and what_is_wanted(question)):
        return ""
    writer = _ReportWriter(question, parts, readable, compare, words)
    sections = writer.choose_quotations()
    title = f"# {title or ' '.join(question.split())}"
    if not any(sections):
        outline = writer.render_outline()
        return f"{title}\n\n{TOO_BROAD}\n\n{outline}" if outline else f"{title}\n\n{NOT_ANSWERED}"
    blocks, missing = [title], []
    for part, quotations in zip(parts, sections, strict=True):
        if quotations:
            blocks += [f"## {headings[part]}"] if len(parts) > 1 else []
            blocks.append(writer.render_section(quotations))
        else:
            missing.append(f"- {headings[part]}")
    if missing:
        blocks.append("## Not found\n\n" + "\n".join(missing))
    return "\n\n".join(blocks)


class _ReportWriter:
    """The stretches of the pages, and how well each answers each part."""

    def __init__(
        self, question: str, parts: Sequence[str], pages: Sequence[PageView], compare: Compare | None, words: int
    ) -> None:
        self.question, self.parts, self.pages = question, parts, pages
        self.compare = None if detect_language(question) not in ("", "en") else compare  # it knows English only
        self.margin = WIDE_MARGIN if words >= MANY_WORDS else MARGIN
        self.room = words // len(parts) if words else MAX_SECTION_WORDS
        self.words = ContentWords()
        self.subjects = [_NUMBER.sub("", find_page_subject(page.title)) for page in pages]
        self.titles = [frozenset(self.words.stems(subject)) for subject in self.subjects]
        self.by_page = [read_stretches(page.text, number) for number, page in enumerate(pages)]
        self.stretches = [s for own in self.by_page for s in own]
        self.openings = [next((s.place for s in own if _states_something(s)), 0) for own in self.by_page]
        self.quoted: set[tuple[int, int]] = set()
        self.stems = {(s.page, s.place): frozenset(self.words.stems(s.text)) for s in self.stretches}
        self.above = {(s.page, s.place): frozenset(self.words.stems(s.trail)) for s in self.stretches}
        self.vocabulary = [
            frozenset().union(self.titles[n], *(self.stems[s.page, s.place] for s in own)) for n, own in enumerate(self.by_page)
        ]
        everything = frozenset().union(*self.vocabulary)
        asked = {word for part in parts for word in self.words.stems(part)}
        self.forms = {word: _find_forms(word, everything) for word in asked}

    def choose_quotations(self) -> list[list[Stretch]]:
        """The stretches of each part, each of them once, those of the best page first and in its order."""
        rated = [q for number in range(len(self.parts)) for q in self._rate_part(number)]
        best = _find_best(rated)
        rest = [q for q in rated if q.part in best and q != best[q.part] and self._is_near(q, best[q.part])]
        rest.sort(key=lambda q: (best[q.part].score - q.score, q.part))
        chosen: list[list[Stretch]] = [[] for _ in self.parts]
        taken: list[frozenset[str]] = []
        room = [self.room] * len(self.parts)
        for q in (*best.values(), *rest):
            for stretch in self._complete_paragraph(q.stretch):
                stems, length = self.stems[stretch.page, stretch.place], count_words(stretch.lines)
                if (chosen[q.part] and length > room[q.part]) or any(_is_double(stems, other) for other in taken):
                    continue
                chosen[q.part].append(stretch)
                taken.append(stems)
                room[q.part] -= length
        self.quoted = {(s.page, s.place) for stretches in chosen for s in stretches}
        return [_order_by_page(stretches) for stretches in chosen]

    def _is_near(self, quotation: _Quotation, best: _Quotation) -> bool:
        is_other = quotation.stretch.page != best.stretch.page
        return quotation.score >= best.score - self.margin * (OTHER_PAGE if is_other else 1.0)

    def _complete_paragraph(self, stretch: Stretch) -> list[Stretch]:
        """The stretches of the same paragraph where it is short, the given one first."""
        paragraph = [s for s in self.by_page[stretch.page] if s.block == stretch.block]
        if sum(count_words(s.lines) for s in paragraph) > MAX_PARAGRAPH_WORDS:
            return [stretch]
        return [stretch, *(s for s in paragraph if s != stretch and not s.text.endswith(":"))]

    def _rate_part(self, part: int) -> list[_Quotation]:
        """The stretches that answer a part, with their scores."""
        asked = dict.fromkeys(self.words.stems(self.parts[part]))
        weights = self._weigh_words(asked)
        pages = self._find_pages(part, weights)
        usable = [s for s in self.stretches if s.page in pages and _states_something(s)]
        shares = {(s.page, s.place): self._measure_share(weights, s) for s in usable}
        plain = {word: math.sqrt(weight) for word, weight in weights.items()}
        by_rare = sorted(usable, key=lambda s: -shares[s.page, s.place])[:MAX_COMPARED]
        by_all = sorted(usable, key=lambda s: -self._measure_share(plain, s))[:MAX_COMPARED]
        likely = sorted({(s.page, s.place): s for s in (*by_rare, *by_all)}.values(), key=lambda s: (s.page, s.place))
        nearness = self.compare(self.parts[part], list(map(self._describe, likely))) if self.compare and likely else None
        if nearness is None:
            return [
                _Quotation(self._add_up(weights, s, shares[s.page, s.place]), part, s)
                for s in likely
                if shares[s.page, s.place] >= MIN_SHARE and self._has_asked(part, weights, s)
            ]
        return [
            _Quotation(self._add_up(weights, s, near + WORDS_SHARE * shares[s.page, s.place]), part, s)
            for s, near in zip(likely, nearness, strict=True)
            if near >= (MIN_NEARNESS if self._has_asked(part, weights, s) else MIN_BARE_NEARNESS)
        ]

    def _add_up(self, weights: Mapping[str, float], stretch: Stretch, score: float) -> float:
        """A score with what speaks for a stretch and against it besides its words."""
        score += OWN_PAGE * self._is_named(stretch.page) + LISTED * self._introduces(weights, stretch)
        score += OPENING * (self._asks_subject(weights, stretch.page) and stretch.place == self.openings[stretch.page])
        return score - REFERS_BACK * bool(_REFERS_BACK.match(stretch.text) and len(stretch.lines) < MIN_LIST_LINES)

    def _weigh_words(self, asked: Iterable[str]) -> dict[str, float]:
        """How much each word of a part says: words in few stretches say more."""
        total = len(self.stretches)
        seen: Counter[str] = Counter()
        for stems in self.stems.values():
            seen.update(word for word in asked if stems & self.forms[word])
        return {w: math.log(1 + total / (1 + seen[w])) ** 2 * (WEAK if w in _WEAK else 1.0) for w in asked}

    def _find_pages(self, part: int, weights: Mapping[str, float]) -> frozenset[int]:
        """The pages that have the names of a part and most of its words; those with most names where none has all."""
        names = [frozenset(self.words.stems(n)) for n in _NAME.findall(self.parts[part]) if not n.endswith(_ADJECTIVE)]
        have = [sum(bool(name & words) for name in names) for words in self.vocabulary]
        total = sum(map(math.sqrt, weights.values()))
        shares = [
            sum(math.sqrt(weight) for word, weight in weights.items() if words & (self.forms[word] | _aspect(word)))
            for words in self.vocabulary
        ]
        most = max(have, default=0)
        return frozenset(
            n for n, share in enumerate(shares) if have[n] == most and (not total or share >= MIN_PAGE_SHARE * total)
        )

    def _measure_share(self, weights: Mapping[str, float], stretch: Stretch) -> float:
        own, above = self.stems[stretch.page, stretch.place], self.above[stretch.page, stretch.place]
        title, score = self.titles[stretch.page], 0.0
        for word, weight in weights.items():
            forms, aspect = self.forms[word], _aspect(word)
            by_strength = ((own & forms, 1.0), (above & forms, ABOVE), (title & forms, TITLE), ((own | above) & aspect, ASPECT))
            score += weight * next((share for shared, share in by_strength if shared), 0.0)
        return score / (sum(weights.values()) or 1.0)

    def _has_asked(self, part: int, weights: Mapping[str, float], stretch: Stretch) -> bool:
        """Whether a stretch, or what stands above it, has a word of its part that the other parts do not have.

        Where all parts have the same words, it is one that the subject of its page does not have.
        """
        title = self.titles[stretch.page]
        stems = self.stems[stretch.page, stretch.place] | self.above[stretch.page, stretch.place]
        others = {w for n, other in enumerate(self.parts) if n != part for w in self.words.stems(other)}
        own = [word for word in weights if word not in _WEAK and word not in others and len(self.parts) > 1]
        if own:
            return any((stems | title) & (self.forms[word] | _aspect(word)) for word in own)
        wanted = [word for word in weights if word not in _WEAK and not self.forms[word] & title]
        return not wanted or any(stems & (self.forms[word] | _aspect(word)) for word in wanted)

    def _asks_subject(self, weights: Mapping[str, float], page: int) -> bool:
        """Whether a part asks for nothing besides the subject of a page."""
        return self._is_named(page) and all(word in _WEAK or self.forms[word] & self.titles[page] for word in weights)

    def _introduces(self, weights: Mapping[str, float], stretch: Stretch) -> bool:
        """Whether a stretch is a list or a table that is introduced by the rarest word of its part."""
        if (
            len(stretch.lines) < MIN_LIST_LINES
            or stretch.lines[0].kind != "sentence"
            or stretch.lines[1].kind not in ("item", "row", "head")
        ):
            return False
        rarest = max(weights, key=lambda word: weights[word])
        is_short = len(stretch.lines[0].text.split()) <= MAX_LEAD_WORDS
        return is_short and bool(self.forms[rarest].intersection(self.words.stems(stretch.lines[0].text)))

    def _is_named(self, page: int) -> bool:
        asked = frozenset(self.words.stems(self.question))
        return bool(self.titles[page]) and self.titles[page] <= asked

    def _describe(self, stretch: Stretch) -> str:
        return f"{self.subjects[stretch.page]}. {stretch.trail}. {stretch.text}"[:MAX_COMPARED_CHARS]

    def render_section(self, stretches: Sequence[Stretch]) -> str:
        """The stretches of a section; those that stand together on their page are one paragraph."""
        groups: list[list[Stretch]] = []
        for stretch in stretches:
            last = groups[-1][-1] if groups else None
            if last and (last.page, last.block, last.place + 1) == (stretch.page, stretch.block, stretch.place):
                groups[-1].append(stretch)
            else:
                groups.append([stretch])
        return "\n\n".join(self._render_group(group) for group in groups)

    def _render_group(self, group: Sequence[Stretch]) -> str:
        first = group[0]
        lines: list[Line] = [line for stretch in group for line in stretch.lines]
        if lines[0].kind == "sentence" and _REFERS_BACK.match(lines[0].text):
            before = self.by_page[first.page][first.place - 1] if first.place else None
            if before and before.block == first.block:
                is_quoted = (before.page, before.place) in self.quoted
                lines[:0] = () if is_quoted else before.lines[-1:]
            elif _PRONOUN.match(lines[0].text):
                lines[0] = Line("sentence", _PRONOUN.sub(self.subjects[first.page], lines[0].text, count=1))
        return render_lines(lines, self.pages[first.page].number)

    def render_outline(self) -> str:
        """The pages near the question with how each begins; "" where none is."""
        openings = [next((s.lines[0].text for s in own if _states_something(s)), "") for own in self.by_page]
        listed = [n for n, text in enumerate(openings) if text]
        texts = [f"{self.subjects[n]}. {openings[n]}"[:MAX_COMPARED_CHARS] for n in listed]
        nearness = self.compare(self.question, texts) if self.compare and texts else None
        if nearness is None:
            asked = frozenset().union(*self.forms.values())
            near = [n for n in listed if self.vocabulary[n] & asked]
        else:
            order = sorted(zip(nearness, listed, strict=True), key=lambda pair: (-pair[0], pair[1]))
            near = sorted(n for value, n in order[:MAX_OUTLINE_PAGES] if value >= MIN_PAGE_NEARNESS)
        pages = [(self.subjects[n] or self.pages[n].url, openings[n], self.pages[n].number) for n in near[:MAX_OUTLINE_PAGES]]
        return "\n".join(f"- {name}: {text} [{number}]" for name, text, number in pages)


def _states_something(stretch: Stretch) -> bool:
    """Whether a stretch is more than a label, a line of code or a sentence whose list is missing."""
    least = MIN_SENTENCE_WORDS if stretch.text.endswith((".", "!")) else MIN_WORDS
    return count_words(stretch.lines) >= least and stretch.lines[0].kind != "code" and not stretch.text.endswith(":")


def _find_best(rated: Sequence[_Quotation]) -> dict[int, _Quotation]:
    """The best stretch of each part; one that is the best of two goes to the part it is nearer to."""
    top: dict[int, float] = {}
    for q in rated:
        top[q.part] = max(q.score, top.get(q.part, 0.0))
    best: dict[int, _Quotation] = {}
    for q in sorted(rated, key=lambda q: (top[q.part] - q.score, -q.score)):
        if q.part not in best and all(q.stretch != other.stretch for other in best.values()):
            best[q.part] = q
    return best


def _order_by_page(stretches: Sequence[Stretch]) -> list[Stretch]:
    first: dict[int, int] = {}
    for place, stretch in enumerate(stretches):
        first.setdefault(stretch.page, place)
    return sorted(stretches, key=lambda s: (first[s.page], s.place))


def _aspect(word: str) -> frozenset[str]:
    return load_aspects().get(word, frozenset())


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
    return len(words & other) >= SAME_SHARE * min(len(words), len(other))
