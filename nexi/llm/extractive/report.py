"""A report without a model: for each part of a question the stretches of pages that answer it, quoted whole.

Above `_stretches`; the app hands it the pages that researchers have read, and a reading model where there is one. Words choose
what is compared, the reading model decides, and where there is none the words do. A stretch answers a part when it is nearer to
it than others are, and nearer than to the rest of the question. Each is quoted once, under the part it answers best; parts that
no page answers are named at the end. A question too broad for that gets an outline of its sources,
and one that may mean several things a section for each of them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.answered import NOTHING_ANSWERS, SEVERAL_READINGS
from nexi.llm.extractive import _limits as limits
from nexi.llm.extractive._choice import READING
from nexi.llm.extractive._evidence import Compare, find_page_subject
from nexi.llm.extractive._lexicon import SECTIONS, load_aspects
from nexi.llm.extractive._outdated import list_current_pages
from nexi.llm.extractive._part_questions import defines_thing, is_pointer, needs_neighbours, points_elsewhere, read_part
from nexi.llm.extractive._quotation import IDENTIFIER
from nexi.llm.extractive._stretches import NAME_LINE, Stretch, StretchLine, count_words, read_stretches, render_lines
from nexi.llm.extractive._weights import has_same_root, load_weights, sum_points
from nexi.llm.extractive.passages import ContentWords, is_about_code, read_sentences
from nexi.llm.extractive.questions import RANKING, read_question, what_is_wanted
from nexi.text.languages import detect_language
from nexi.text.parts import find_subject
from nexi.text.references import find_namesakes
from nexi.text.stems import stem
from nexi.text.words import word_set
from nexi.types import PageView

__all__ = ["TOO_BROAD", "write_report"]


# The weights of what speaks for a stretch, and the points that it needs; without and with a reading model.
WORDS, READ = "report-words.json", "report.json"
MAX_VAGUE_WORDS = 2  # of a part; a stretch that says all of more words answers it wherever it stands
MAX_CONTEXT = 2  # sentences before one that refers back to them
TOO_BROAD = f"{NOTHING_ANSWERS} part by part; they begin as follows:"
NOT_ANSWERED = f"{NOTHING_ANSWERS}."

_WEAK_WORDS = word_set(
    "happen main role play take come work live look become know known many much often kind type do make give get way "
    "life career done thing people famous important describe compare explain discuss list outline summarise summarize "
    "use offer provide support exist far long high tall old big large fast deep wide heavy good well better best useful"
)
_WEAK = frozenset(map(stem, _WEAK_WORDS))
_REFERS_BACK = re.compile(
    r"(?:It|Its|They|Their|He|His|She|Her|This|That|These|Those|Such|However|But|And|Also|Thus|Therefore|Moreover|Furthermore|"
    r"Then|So|Hence|Instead|Either way|Even so|Now|Nevertheless|Nonetheless|Fortunately|Normally|In particular|In other words|"
    r"As an example|An example|Similarly|Likewise|Alternatively|Otherwise|Finally|Because of this|In this (?:case|mode)|"
    r"Another|Others?|In addition|As a result|For (?:example|instance|this|these|such|all of these)|On the other hand|"
    r"The (?:latter|same)|In contrast|At this point|To (?:ensure that this|cope with such)|See below|Once (?:this|it|they)|"
    r"(?:\S+ ){1,6}?this (?:problem|case|way|restriction|behaviou?r|situation|approach|issue|technique|rule|example|context))\b"
)
_THIS_ENTRY = re.compile(r"\b[Tt]his (?:parameter|option|function|method|class|module|command|setting|variable|argument)\b")
_ENDS_OPEN = re.compile(r"(?:[:,]|\b(?:are|is|as|and|or|following))$")
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
    """The report on a question; "" where no page could be read, or where one fact was asked for."""
    # `headings` has the parts of the question, each with the heading of its section. `words` is about how many the report
    # should have; 0 leaves it to the evidence.
    parts = list(headings)
    readable = [page for page in pages if page.text and not page.error and page.number > 0]
    readable = list_current_pages(read_question(question), readable)
    if not readable or (len(parts) == 1 and what_is_wanted(question)):
        return ""
    title = title or " ".join(question.split())
    if about := find_namesakes(question, [(page.title, page.text) for page in readable]):
        sections = []
        readings = list(dict.fromkeys(about.values()))
        for reading in readings:
            own = [readable[number] for number in about if about[number] == reading]
            writer = ReportWriter(question, parts, own, compare, words // len(readings), title)
            sections.append(render_report(writer, headings, reading).replace("\n## ", "\n### "))
        return "\n\n".join((f"# {title}", SEVERAL_READINGS, *(f"#{section}" for section in sections)))
    return render_report(ReportWriter(question, parts, readable, compare, words, title), headings, title)


def render_report(writer: ReportWriter, headings: Mapping[str, str], title: str) -> str:
    """The sections under their headings, then the parts that no page answers."""
    parts, sections = writer.parts, writer.choose_quotations()
    title = f"# {title}"
    if not any(sections):
        outline = writer.render_outline()
        return f"{title}\n\n{TOO_BROAD}\n\n{outline}" if outline else f"{title}\n\n{NOT_ANSWERED}"
    blocks, gaps = [title], []
    for part, quotations in zip(parts, sections, strict=True):
        if quotations:
            repeats_title = len(blocks) == 1 and title == f"# {headings[part]}" and part == headings[part]
            blocks += [f"## {headings[part]}"] if len(parts) > 1 and not repeats_title else []
            blocks.append(writer.render_section(quotations))
        else:
            gaps.append(f"- {headings[part]}")
    if gaps:
        blocks.append("## Not found\n\n" + "\n".join(gaps))
    return "\n\n".join(blocks)


class ReportWriter:
    """The stretches of the pages, and how well each answers each part."""

    def __init__(
        self,
        question: str,
        parts: Sequence[str],
        pages: Sequence[PageView],
        compare: Compare | None,
        words: int,
        topic: str = "",
    ) -> None:
        self.question, self.parts, self.pages = question, parts, pages
        self.topic = topic or question
        self.compare = None if detect_language(question) not in ("", "en") else compare  # it knows English only
        self.room = words // len(parts) if words else limits.MAX_SECTION_WORDS
        self.size = max(1, self.room // limits.MAX_SECTION_WORDS)
        self.margin = "wide margin" if self.room > limits.MAX_SECTION_WORDS else "margin"
        self.words = ContentWords()
        self.asked = [read_part(part, self.words) for part in parts]
        self.is_manual = 2 * sum(is_about_code(read_sentences(page.text)) for page in pages) > len(pages)
        queries = self._word_queries()
        self.about = [frozenset(self.words.stems(find_subject(query))) & set(self.words.stems(query)) for query in queries]
        self.subjects = [_NUMBER.sub("", find_page_subject(page.title)) for page in pages]
        self.titles = [frozenset(self.words.stems(subject)) for subject in self.subjects]
        self.by_page = [read_stretches(page.text, number) for number, page in enumerate(pages)]
        self.stretches = [s for own in self.by_page for s in own]
        self.openings = [_find_opening(own) for own in self.by_page]
        self.quoted: set[tuple[int, int]] = set()
        self.stems = {(s.page, s.place): frozenset(self.words.stems(s.text)) for s in self.stretches}
        self.above = {(s.page, s.place): frozenset(self.words.stems(s.trail)) for s in self.stretches}
        self.vocabulary = [
            frozenset().union(self.titles[n], *(self.stems[s.page, s.place] for s in own)) for n, own in enumerate(self.by_page)
        ]
        everything = frozenset().union(*self.vocabulary)
        self._question_stems = frozenset(self.words.stems(question))
        # A manual does not repeat of what it is one.
        names = {word for name in _NAME.findall(question) for word in self.words.stems(name)} if self.is_manual else set()
        self.weak = _WEAK.union(w for w in names if 2 * sum(w in words for words in self.vocabulary) > len(pages))
        part_words = {word for part in parts for word in self.words.stems(part)}
        # The stems that are the same word in another form: `econom` of `economi`, `invent` of `inventor`.
        self.forms = {word: frozenset({word, *(w for w in everything if has_same_root(word, w))}) for word in part_words}

    def choose_quotations(self) -> list[list[Stretch]]:
        """The stretches of each part, each of them once, those of the best page first and in its order."""
        quotations = [q for number in range(len(self.parts)) for q in self._rate_part(number)]
        quotations = self._leave_to_specific(quotations)
        top = {(q.stretch.page, q.stretch.place): q.score for q in sorted(quotations, key=lambda q: q.score)}
        margin = load_weights(self._file)["margin"]  # by which a stretch that answers another part better belongs there
        quotations = [q for q in quotations if q.score >= top[q.stretch.page, q.stretch.place] - margin]
        bearing = {(q.stretch.page, q.stretch.place) for q in quotations}
        best = _find_best(quotations)
        rest = [q for q in quotations if q.part in best and q != best[q.part] and self._is_near(q, best[q.part])]
        rest.sort(key=lambda q: (best[q.part].score - q.score, q.part))
        sections: list[list[Stretch]] = [[] for _ in self.parts]
        used_stems: list[frozenset[str]] = []
        room = [self.room] * len(self.parts)
        used_lines: list[frozenset[str]] = []
        owners = {(q.stretch.page, q.stretch.place): q.part for q in best.values()}
        for q in (*best.values(), *rest):
            for stretch in map(partial(self._drop_repeated, used_lines), self._complete(q.stretch, bearing)):
                stems, length = frozenset(self.words.stems(stretch.text)), count_words(stretch.lines)
                owner = owners.get((stretch.page, stretch.place), q.part)
                is_repeated = any(len(stems & other) >= limits.SAME * min(len(stems), len(other)) for other in used_stems)
                if owner != q.part or is_repeated or not stretch.lines or (sections[q.part] and length > room[q.part]):
                    continue
                sections[q.part].append(stretch)
                used_stems.append(stems)
                used_lines += [frozenset(self.words.stems(line.text)) for line in stretch.lines]
                room[q.part] -= length
        self.quoted = {(s.page, s.place) for stretches in sections for s in stretches}
        # those of the page that comes first, in the order of that page
        return [sorted(section, key=lambda s: ([o.page for o in section].index(s.page), s.place)) for section in sections]

    def _leave_to_specific(self, quotations: Sequence[_Quotation]) -> list[_Quotation]:
        """The quotations without those of a part about the whole topic that answer another part, but for its best."""
        general = self._find_general()
        best = [max(own, key=lambda q: q.score) for part in general if (own := [q for q in quotations if q.part == part])]
        places = {(q.stretch.page, q.stretch.place) for q in quotations if q.part not in general}
        return [q for q in quotations if q.part not in general or (q.stretch.page, q.stretch.place) not in places or q in best]

    def _drop_repeated(self, used_lines: Sequence[frozenset[str]], stretch: Stretch) -> Stretch:
        """A stretch without the sentences that were quoted before, and without those that say where to read on."""

        def is_new(line: StretchLine) -> bool:
            stems = frozenset(self.words.stems(line.text))
            is_repeated = any(len(stems & other) > limits.SAME * len(stems | other) for other in used_lines)
            return line.kind != "sentence" or not (is_repeated or is_pointer(line.text))

        lines = list(filter(is_new, stretch.lines))
        # what is above or below is not in the report, unless it is the code or the list of the stretch
        if all(line.kind == "sentence" for line in lines):
            lines = [line for line in lines if line.text.endswith("?") or not needs_neighbours(line.text)]
        while lines and lines[-1].text.endswith("?"):
            lines.pop()
        return replace(stretch, lines=tuple(lines))

    def _is_near(self, quotation: _Quotation, best: _Quotation) -> bool:
        is_other = quotation.stretch.page != best.stretch.page and self.margin == "margin"
        return quotation.score >= best.score - load_weights(self._file)["other page" if is_other else self.margin]

    def _complete(self, stretch: Stretch, bearing: Collection[tuple[int, int]]) -> list[Stretch]:
        """A stretch with what belongs to it: of a short paragraph what bears on a part, in a long report its whole section."""
        own = self.by_page[stretch.page]
        if self.margin == "wide margin":
            sections = (list(group) for _, group in groupby(own, key=lambda s: s.trail))
            section = next(group for group in sections if stretch in group)
            return [stretch, *(s for s in section if s != stretch and (_states_something(s) or s.lines[0].kind == "code"))]
        if stretch.place in self.openings[stretch.page] and NAME_LINE.match(stretch.text):
            return [stretch, *(own[place] for place in self.openings[stretch.page] if place > stretch.place)]
        paragraph = [s for s in own if s.block == stretch.block]
        if sum(count_words(s.lines) for s in paragraph) > limits.MAX_BLOCK_WORDS:
            return [stretch]
        return [stretch, *(s for s in paragraph if s != stretch and (s.page, s.place) in bearing)]

    @cached_property
    def _file(self) -> str:
        """The file of the weights: with a reading model, or for words alone where there is none."""
        return READ if self.compare and self.compare(self.question, [self.question]) else WORDS

    def _rate_part(self, part: int) -> list[_Quotation]:
        """The stretches that answer a part, with their scores; what stands in the same paragraph speaks for a stretch too."""
        weights = load_weights(self._file)
        is_specific = len(set(self.words.stems(self.parts[part]))) > MAX_VAGUE_WORDS
        rows = self.describe_part(part)
        points: dict[tuple[int, int], list[float]] = {}
        for stretch, row in rows:
            points.setdefault((stretch.page, stretch.block), []).append(sum_points(row, weights))
        quotations = []
        for stretch, row in rows:
            own, paragraph = sum_points(row, weights), points[stretch.page, stretch.block]
            score = own + weights["paragraph"] * (sum(paragraph) / len(paragraph) - own)
            if self._file == WORDS and is_specific and math.isclose(row["own"], 1.0):
                score = max(score, weights["least"])
            if score >= weights["least"] and not self._leans_back(stretch):
                quotations.append(_Quotation(score, part, stretch))
        return quotations

    def describe_part(self, part: int) -> list[tuple[Stretch, dict[str, float]]]:
        """The stretches that say most of a part by their rare words and by all of them, and what speaks for each."""
        weights = self._weigh_words(dict.fromkeys(self.words.stems(self.parts[part])))
        plain = {word: math.sqrt(weight) for word, weight in weights.items()}
        pages = self._find_pages(part, plain)
        usable = [s for s in self.stretches if s.page in pages and _states_something(s)]
        by_rare_words = {(s.page, s.place): self._describe_stretch(part, weights, s) for s in usable}
        by_all_words = {(s.page, s.place): by_rare_words[s.page, s.place] | self._share_places(plain, s) for s in usable}
        likely: dict[tuple[int, int], Stretch] = {}
        # Words miss what the reading model finds.
        count = self.size * (limits.MAX_CANDIDATES if self._file == READ else limits.MAX_COMPARED)
        for described in (by_rare_words, by_all_words):
            points = {place: sum_points(row, load_weights(READ)) for place, row in described.items()}
            best = sorted(usable, key=lambda s: -points[s.page, s.place])[:count]
            likely |= {(s.page, s.place): s for s in best}
        if self._file == READ:
            paragraphs = {(s.page, s.block) for s in likely.values()}
            likely |= {(s.page, s.place): s for s in usable if (s.page, s.block) in paragraphs}
        stretches = [likely[place] for place in sorted(likely)]
        rows = [by_rare_words[s.page, s.place] for s in stretches]
        if self._file == READ and self.compare and stretches:
            texts = [f"{self.subjects[s.page]}. {s.trail}. {s.text}"[: limits.MAX_COMPARED_CHARS] for s in stretches]
            queries, general = self._word_queries(), self._find_general()
            nearness = self.compare(queries[part], texts) or [0.0] * len(texts)
            topic = [] if part in general else [self.topic]
            others = [*topic, *(p for n, p in enumerate(queries) if n not in (part, *general))] if len(self.parts) > 1 else []
            # Some questions are nearer to everything than others, so that each is compared with what is usual for it.
            standing = [_center(self.compare(other, texts) or nearness) for other in others]
            elsewhere = [max(values) for values in zip(*standing, strict=True)] or [0.0] * len(texts)
            rows = [
                {**row, "nearness": near, "stands out": own, "elsewhere": other}
                for row, near, own, other in zip(rows, nearness, _center(nearness), elsewhere, strict=True)
            ]
        return list(zip(stretches, rows, strict=True))

    def _leans_back(self, stretch: Stretch) -> bool:
        """Whether a stretch begins a paragraph with what can only be understood from the one before: "However, there is"."""
        first = stretch.lines[0].text
        if len(stretch.lines) > 2 or first.endswith(":") or not _REFERS_BACK.match(first) or _PRONOUN.match(first):
            return False
        return stretch == next(other for other in self.by_page[stretch.page] if other.block == stretch.block)

    def _find_general(self) -> frozenset[int]:
        """The parts that say no more than the title of the report, where others do."""
        topic = set(self.words.stems(self.topic))
        general = {n for n, part in enumerate(self.parts) if {w for w in self.words.stems(part) if w not in _WEAK} <= topic}
        return frozenset(general if len(general) < len(self.parts) else ())

    def _word_queries(self) -> list[str]:
        """The parts as the reading model is given them: in a manual without its name, where they differ by more."""
        short = [asked.text for asked in self.asked]
        return short if self.is_manual and len(set(short)) == len(short) else list(self.parts)

    def _describe_stretch(self, part: int, weights: Mapping[str, float], stretch: Stretch) -> dict[str, float]:
        page = stretch.page
        is_named = bool(self.titles[page]) and self.titles[page] <= self._question_stems
        asks_subject = is_named and all(word in _WEAK or self.forms[word] & self.titles[page] for word in weights)
        asked, first = self.asked[part], stretch.lines[0].text
        # how much of the part the heading says, where it says little else
        heading = frozenset(self.words.stems(stretch.trail.rpartition(": ")[2])) - self.titles[page]
        matches = {word for word in weights if heading & self.forms[word]}
        headed = sum(weights[word] for word in matches)
        # how much of what the part is about neither the stretch nor what stands above it names
        subject = [word for word in self.about[part] if word not in self.weak]
        stems = self.stems[page, stretch.place] | self.above[page, stretch.place] | self.titles[page]
        return {
            **self._share_places(weights, stretch),
            "defines": float(defines_thing(asked, first, self._question_stems, self.words)),
            "headed": headed / (sum(weights.values()) or 1.0) if 2 * len(matches) >= len(heading) else 0.0,
            "code": float(asked.wants_steps and any(line.kind == "code" for line in stretch.lines)),
            "elsewhere told": sum(points_elsewhere(line.text) for line in stretch.lines) / len(stretch.lines),
            "own page": float(is_named),
            "listed": float(self._introduces(weights, stretch, wants_steps=asked.wants_steps)),
            "opening": float(asks_subject and stretch.place in self.openings[page]),
            "refers back": float(_REFERS_BACK.match(stretch.text) is not None and len(stretch.lines) <= 2),
            "lacks asked": float(not self._has_asked(part, weights, stretch)),
            "lacks subject": sum(not stems & (self.forms[word] | _aspect(word)) for word in subject) / max(1, len(subject)),
            "bias": 1.0,
        }

    def _weigh_words(self, part_words: Iterable[str]) -> dict[str, float]:
        """How much each word of a part says: words in few stretches say more."""
        total = len(self.stretches)
        counts: Counter[str] = Counter()
        for stems in self.stems.values():
            counts.update(word for word in part_words if stems & self.forms[word])
        little = load_weights(RANKING)["little"]
        return {w: math.log(1 + total / (1 + counts[w])) ** 2 * (little if w in self.weak else 1.0) for w in part_words}

    def _find_pages(self, part: int, weights: Mapping[str, float]) -> frozenset[int]:
        """The pages that have the names of a part and most of its words; those with most names where none has all."""
        names = [frozenset(self.words.stems(n)) for n in _NAME.findall(self.parts[part]) if not n.endswith(_ADJECTIVE)]
        have = [sum(bool(name & words) for name in names) for words in self.vocabulary]
        total, most = sum(weights.values()), max(have, default=0)
        shares = [
            sum(weight for word, weight in weights.items() if words & (self.forms[word] | _aspect(word)))
            for words in self.vocabulary
        ]
        return frozenset(n for n, share in enumerate(shares) if have[n] == most and share >= limits.ENOUGH * total)

    def _share_places(self, weights: Mapping[str, float], stretch: Stretch) -> dict[str, float]:
        """How much of a part a stretch says itself, and what only the headings, the title or another word for it say."""
        own, above = self.stems[stretch.page, stretch.place], self.above[stretch.page, stretch.place]
        shares = dict.fromkeys(("own", "above", "title", "aspect"), 0.0)
        whole = sum(weights.values()) or 1.0
        for word, weight in weights.items():
            forms = self.forms[word]
            matches = (own & forms, above & forms, self.titles[stretch.page] & forms, (own | above) & _aspect(word))
            if place := next((name for name, match in zip(shares, matches, strict=True) if match), ""):
                shares[place] += weight / whole
        return shares

    def _has_asked(self, part: int, weights: Mapping[str, float], stretch: Stretch) -> bool:
        """Whether a stretch, or what stands above it, has a word of its part that the other parts do not have."""
        # Where all parts have the same words, it is one that the subject of its page does not have.
        title = self.titles[stretch.page]
        stems = self.stems[stretch.page, stretch.place] | self.above[stretch.page, stretch.place]
        others = {w for n, other in enumerate(self.parts) if n != part for w in self.words.stems(other)}
        own = [word for word in weights if word not in _WEAK and word not in others and len(self.parts) > 1]
        if own:
            return any((stems | title) & (self.forms[word] | _aspect(word)) for word in own)
        needs = [word for word in weights if word not in _WEAK and not self.forms[word] & title]
        return not needs or any(stems & (self.forms[word] | _aspect(word)) for word in needs)

    def _introduces(self, weights: Mapping[str, float], stretch: Stretch, *, wants_steps: bool) -> bool:
        """Whether a stretch is a list or a table that is introduced by the rarest word of its part."""
        kinds = [line.kind for line in stretch.lines]
        if wants_steps and len(kinds) > 1 and not stretch.lines[1].mark[:1].isdigit():
            return False
        if len(kinds) <= 2 or kinds[0] != "sentence" or kinds[1] not in ("item", "row", "head"):
            return False
        rarest = max(weights, key=lambda word: (word not in self.weak, weights[word]))
        introduction = stretch.lines[0].text.split()
        near = introduction if wants_steps else introduction[-limits.MIN_SENTENCE_WORDS :]  # "three parameters:" lists no hooks
        stems = self.words.stems(" ".join(near)) if len(introduction) <= limits.MAX_LINE_WORDS else ()
        return not self.forms[rarest].isdisjoint(stems)

    def render_section(self, stretches: Sequence[Stretch]) -> str:
        """The stretches of a section; those that stand together on their page are one paragraph."""
        groups: list[list[Stretch]] = []
        for stretch in stretches:
            last = groups[-1][-1] if groups else None
            if last and (last.page, last.block, last.place + 1) == (stretch.page, stretch.block, stretch.place):
                groups[-1].append(stretch)
            else:
                groups.append([stretch])
        entries = [(group[0].page, group[0].trail) for group in groups]
        return "\n\n".join(
            self._render_group(group, is_named=number > 0 and entries[number - 1] == entries[number])
            for number, group in enumerate(groups)
        )

    def _render_group(self, group: Sequence[Stretch], *, is_named: bool) -> str:
        """A paragraph; what stands in a manual under the name of an option or a function begins with it, where it is new."""
        first = group[0]
        lines: list[StretchLine] = [line for stretch in group for line in stretch.lines]
        if lines[0].kind == "sentence" and _REFERS_BACK.match(lines[0].text):
            earlier = [s for s in self.by_page[first.page][: first.place] if s.block == first.block]
            if earlier:
                # the last sentence that refers to no other, with what follows it; none where it is far away
                before = [line for s in earlier for line in s.lines]
                counts = (n for n in range(1, min(len(before), MAX_CONTEXT) + 1) if not _REFERS_BACK.match(before[-n].text))
                is_quoted = (earlier[-1].page, earlier[-1].place) in self.quoted
                lines[:0] = () if is_quoted else next((before[-n:] for n in counts), ())
            elif _PRONOUN.match(lines[0].text):
                lines[0] = StretchLine("sentence", _PRONOUN.sub(self.subjects[first.page], lines[0].text, count=1))
        if len(lines) > 1 and lines[-1].kind == "sentence" and _ENDS_OPEN.search(lines[-1].text):
            lines.pop()  # "These start methods are", of a list that the page sets as paragraphs
        name = first.trail.rpartition(": ")[2]
        opens = first.block == next(s.block for s in self.by_page[first.page] if s.trail == first.trail)
        is_heading = name.lower() in SECTIONS or self.titles[first.page] <= frozenset(self.words.stems(name))
        is_new = len(name.split()) <= limits.MAX_HEAD_WORDS and name.casefold() not in first.text.casefold()
        is_entry = IDENTIFIER.search(name) and not is_heading and is_new and (opens or _THIS_ENTRY.search(first.text))
        if is_entry and not is_named and lines[0].kind == "sentence":
            lines[0] = StretchLine("sentence", f"{name}: {lines[0].text}")
        return render_lines(lines, self.pages[first.page].number)

    def render_outline(self) -> str:
        """The pages near the question with how each begins; "" where none is."""
        openings = [next((s.lines[0].text for s in own if _states_something(s)), "") for own in self.by_page]
        numbers, most = [n for n, text in enumerate(openings) if text], limits.MAX_ALTERNATIVES
        texts = [f"{self.subjects[n]}. {openings[n]}"[: limits.MAX_COMPARED_CHARS] for n in numbers]
        nearness = self.compare(self.question, texts) if self.compare and texts else None
        if nearness is None:
            question_forms = frozenset().union(*self.forms.values())
            near = [n for n in numbers if self.vocabulary[n] & question_forms]
        else:
            order = sorted(zip(nearness, numbers, strict=True), key=lambda pair: (-pair[0], pair[1]))
            near = sorted(n for value, n in order[:most] if value >= load_weights(READING)["usual nearness"])
        lines = [f"{self.subjects[n] or self.pages[n].url}: {openings[n]} [{self.pages[n].number}]" for n in near[:most]]
        return "\n".join(f"- {line}" for line in lines)


def _states_something(stretch: Stretch) -> bool:
    """Whether a stretch is more than a label, a line of code, a sentence whose list is missing, or one about another place."""
    return (
        count_words(stretch.lines) >= limits.MIN_SENTENCE_WORDS
        and stretch.lines[0].kind != "code"
        and not stretch.text.endswith(":")
        and not all(points_elsewhere(line.text) or needs_neighbours(line.text) for line in stretch.lines)
    )


def _find_opening(stretches: Sequence[Stretch]) -> list[int]:
    """Where a page begins to state something; after a line with its name, the paragraph below it too."""
    places = [s.place for s in stretches if _states_something(s)][:2]
    return places if places and NAME_LINE.match(stretches[places[0]].text) else places[:1]


def _find_best(quotations: Sequence[_Quotation]) -> dict[int, _Quotation]:
    """The best stretch of each part; one that is the best of two goes to the part it is nearer to."""
    top: dict[int, float] = {}
    for q in quotations:
        top[q.part] = max(q.score, top.get(q.part, 0.0))
    best: dict[int, _Quotation] = {}
    for q in sorted(quotations, key=lambda q: (top[q.part] - q.score, -q.score)):
        if q.part not in best and all(q.stretch != other.stretch for other in best.values()):
            best[q.part] = q
    return best


def _center(values: Sequence[float]) -> list[float]:
    """How far each nearness is from what is usual; a page of one sentence has nothing else to stand out from."""
    usual = (sum(values) + load_weights(READING)["usual nearness"]) / (1 + len(values))
    return [value - usual for value in values]


def _aspect(word: str) -> frozenset[str]:
    return load_aspects().get(word, frozenset())
