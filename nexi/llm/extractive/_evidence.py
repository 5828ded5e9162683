"""Which sentences of the pages read speak to a question, and how strongly.

Above `passages` and `questions`, below `composition`. Pure scoring: weighted rare words, words near by, the label and title
a sentence stands under, and whether it holds the kind of thing that was asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from nexi.checking.pages import parse_text
from nexi.llm.extractive._lexicon import MEASURES
from nexi.llm.extractive._limits import (
    MAX_ALTERNATIVES,
    MAX_COMPARED_CHARS,
    MAX_SENTENCE_CHARS,
    MIN_NAME_CHARS,
    MIN_SENTENCE_WORDS,
)
from nexi.llm.extractive._weights import find_rarity, load_weights, sum_points
from nexi.llm.extractive.passages import ContentWords, PassageSentence, is_about_code, name_cells, read_sentences
from nexi.llm.extractive.questions import RANKING, Question, Wants
from nexi.text.languages import LANGUAGES
from nexi.text.references import find_parties, name_subject
from nexi.text.stems import normalise_word
from nexi.text.words import find_words
from nexi.types import Hit, PageView, SearchOutcome

# How near texts are to a question; None where no model can tell.
Compare = Callable[[str, Sequence[str]], Sequence[float] | None]

_YEAR = r"(?<![A-Za-z\d])(?:1\d{3}|20\d{2})s?(?![^\W年])|\bcentur(?:y|ies)\b|\b\d+ (?:BC|AD|BCE|CE)\b"
_NUMBERED_MONTH = re.compile(r"[\d一二三四五六七八九十]月")
_MONTH = r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
_SIGNS: dict[Wants, re.Pattern[str]] = {
    "date": re.compile(f"{_YEAR}|{_MONTH}"),
    "number": re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|"
        r"million|billion|half|third|quarter|once|twice|dozen|percent)\b",
        re.I,
    ),
    "code": re.compile(r"`[^`]+`|\b\w+\(|--[a-z]|\b[a-z]+_[a-z_]+\b|\b[a-z]+\.[a-z_]+\w*\(?|\b[A-Z]{3,}\b|[a-z][A-Z]"),
}
_PLACE_SIGN = re.compile(
    rf"\b(?:in|at|from|near|of|to|on|outside|into) (?:the )?(?:[a-z]+ )?(?!{_MONTH})[A-ZÀ-Þ]|, (?!{_MONTH})[A-ZÀ-Þ]"
)
_FIELD = re.compile(r"[^\W\d][^:.!?]{0,60}: \S.{0,600}(?<![.!?])$")  # no sentence, which would end with a full stop
_NAME_WORD = re.compile(r"^\W*[A-ZÀ-Þ]")
_CAPITAL = re.compile(r"(?<=[\w,;:(\"“'] )[\"“'(]?[A-ZÀ-Þ][\w'’-]+|(?<=[(\"“])[A-ZÀ-Þ][\w'’-]+")


class Scored(Struct, frozen=True):
    """A sentence with what speaks for it: `page` and `place` say where it stands, `covered` which words it holds."""

    score: float
    page: int
    place: int
    sentence: PassageSentence
    covered: frozenset[str]
    last: int = 0  # of a unit of a manual, before which its last sentence stands

    @property
    def is_quotable(self) -> bool:
        if self.sentence.kind == "head":
            return False
        return self.score > 0 and (self.sentence.kind != "label" or len(self.sentence.text.split()) >= MIN_SENTENCE_WORDS)


class SentenceRanking:
    """The pages of a conversation, indexed once for one question."""

    def __init__(self, question: Question, pages: Sequence[PageView]) -> None:
        self.question = question
        self.pages = tuple(pages)
        self.weights = load_weights(RANKING)
        self.words = ContentWords(question.language)
        self.subjects = [find_page_subject(name_subject(p.title, p.text) or p.title) for p in pages]
        self.parties = [find_parties(question.text, s, p.text) for p, s in zip(pages, self.subjects, strict=True)]
        self.sentences = [self._name_rows(read_sentences(p.text)) for p in pages]
        self.is_technical = is_about_code([s for page in self.sentences for s in page])
        # On pages full of code, a thing without a kind of its own is a name in code.
        self.wants = "code" if self.is_technical and question.wants in ("name", "") else question.wants
        self._titles = [frozenset(self.words.stems(self.name_page(number))) for number in range(len(self.pages))]
        self._stems = [self._read_stems(page, subject) for page, subject in zip(self.sentences, self.subjects, strict=True)]
        # words in few sentences say more
        counts = Counter(s for page in self._stems for stems in page for s in question.weights.keys() & stems)
        total = sum(map(len, self._stems))
        self.rarity = {stem: weight * find_rarity(counts[stem], total) for stem, weight in question.weights.items()}
        self._held = [[frozenset(self.rarity.keys() & stems) for stems in page] for page in self._stems]
        scored_sentences = [s for number in range(len(self.pages)) for s in self._score_page(number)]
        self.ranked = sorted(scored_sentences, key=lambda s: (-s.score, s.page, s.place))

    def name_page(self, number: int) -> str:
        """What a page is about, with whom it concerns."""
        return ", ".join(filter(None, (self.subjects[number], " and ".join(self.parties[number]))))

    def words_by_place(self, s: Scored) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
        """The words in a sentence, beside it, in the heading above it and in the title of its page."""
        question_words = self._held[s.page]
        beside = frozenset[str]().union(*(question_words[i] for i in self._neighbours(s.page, s.place)))
        return s.covered, beside, frozenset(self.words.stems(s.sentence.label)), self._titles[s.page]

    def shared_pairs(self, s: Scored) -> int:
        """How many words stand side by side in a sentence as they do in the question."""
        return len(self.question.pairs.intersection(pairwise(self._stems[s.page][s.place])))

    def all_words(self) -> frozenset[str]:
        """The words of all pages and their titles."""
        return frozenset().union(*self._titles, *(stems for page in self._stems for stems in page))

    def stems_of(self, page: int, place: int, last: int = 0) -> frozenset[str]:
        """The words of one sentence, or of several up to `last`."""
        return self._join_stems(page, range(place, last or place + 1))

    def held_by(self, page: int, place: int, last: int) -> frozenset[str]:
        """The words of the question in sentences from `place` up to `last`."""
        return frozenset[str]().union(*self._held[page][place:last])

    def words_around(self, s: Scored) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
        """The words of the sentence before, of the one after, of the whole paragraph and of the page's title."""
        beside = self._neighbours(s.page, s.place)
        before = [i for i in beside if i < s.place]
        after = [i for i in beside if i > s.place]
        first = last = s.place
        page = self.sentences[s.page]
        while first > 0 and page[first - 1].block == s.sentence.block:
            first -= 1
        while last + 1 < len(page) and page[last + 1].block == s.sentence.block:
            last += 1
        return (
            self._join_stems(s.page, before),
            self._join_stems(s.page, after),
            self._join_stems(s.page, range(first, last + 1)),
            self._titles[s.page],
        )

    def _read_stems(self, page: Sequence[PassageSentence], subject: str) -> list[list[str]]:
        """The words of each sentence; a fact of an infobox also says those of the subject, which it does not repeat."""
        about = [] if self.is_technical else self.words.stems(subject)
        return [
            [*(about if is_fact(page, n) else ()), *self.find_measured(s.text), *self.words.stems(s.text)]
            for n, s in enumerate(page)
        ]

    def find_measured(self, text: str) -> list[str]:
        """The words of the question that ask for a measure which a text has: "far" where it has a number of kilometres."""
        return [
            word
            for words, units, nouns in MEASURES
            for word in sorted(words & self.question.weights.keys())
            if any(n.unit in units or text[n.end :].lstrip().startswith(nouns) for n in parse_text(text).numbers)
        ]

    def _name_rows(self, sentences: Sequence[PassageSentence]) -> list[PassageSentence]:
        """Rows that hold words of the question say which columns their cells are of; those asked for alone where any are."""
        weights, columns = self.question.weights, dict[tuple[str, ...], list[int]]()
        out: list[PassageSentence] = []
        for sentence in sentences:
            has_heads = sentence.kind == "row" and any(sentence.heads)
            if has_heads and weights.keys() & self.words.stems(sentence.text):
                if sentence.heads not in columns:
                    # those whose heads say most of the question, without the first one, which names the rows; none where all do
                    shares = [sum(weights.get(stem, 0.0) for stem in set(self.words.stems(head))) for head in sentence.heads]
                    best = max(shares[1:], default=0.0)
                    best_columns = [n for n, share in enumerate(shares) if n and share == best]
                    columns[sentence.heads] = best_columns if best and len(best_columns) <= MAX_ALTERNATIVES else []
                numbers = [n for n in columns[sentence.heads] if n < len(sentence.cells) and sentence.cells[n]]
                if numbers or sum(map(len, sentence.heads)) <= MAX_SENTENCE_CHARS:
                    sentence = name_cells(sentence, numbers)
            out.append(sentence)
        return out

    def _join_stems(self, page: int, places: Iterable[int]) -> frozenset[str]:
        return frozenset(stem for place in places for stem in self._stems[page][place])

    def page_cover(self, *numbers: int) -> float:
        """How much of the question pages and their titles say anywhere, by rarity."""
        return self.share_of(frozenset[str]().union(*(self.page_words(number) for number in numbers)))

    def share_of(self, words: frozenset[str]) -> float:
        """How much of the question words say, by rarity."""
        return sum(r for s, r in self.rarity.items() if s in words) / (sum(self.rarity.values()) or 1.0)

    def page_words(self, number: int) -> frozenset[str]:
        """The words of the question that a page or its title says."""
        return frozenset(self.rarity.keys() & self._titles[number]).union(*self._held[number])

    def page_prior(self, number: int) -> float:
        return 1 + sum_points(self.describe_page(number), self.weights)

    def describe_page(self, number: int) -> dict[str, float]:
        """What a page as a whole promises: how much of the question it covers, and whether it is about its subject."""
        title = self._titles[number]
        about = len(title & self.rarity.keys()) / len(title) if title else 0.0
        return {"cover": self.page_cover(number), "about": about, "first": 1 / (1 + number)}

    def _score_page(self, number: int) -> list[Scored]:
        page, prior = self.sentences[number], self.page_prior(number)
        question_words = self._held[number]
        labels = {label: frozenset(self.words.stems(label)) for label in {s.label for s in page}}
        out = []
        for place, sentence in enumerate(page):
            label = labels[sentence.label]
            if question_words[place] or label & self.rarity.keys():
                near = frozenset[str]().union(*(question_words[i] for i in self._neighbours(number, place)))
                score = weigh_words(self.rarity, (question_words[place], near, label, self._titles[number]))
                score += self.weights["pair"] * self.weigh_pairs(number, place)
                # Shorter is better, the wanted kind of thing is better, labels and code alone say little.
                form = 1 + self.weights["wanted"] * holds_wanted(self, sentence)
                form *= self.weights["fragment"] if is_fragment(sentence, is_fact(page, place)) else 1.0
                score *= prior * (form / (1 + self.weights["length"] * len(sentence.text.split())))
                out.append(Scored(score, number, place, sentence, question_words[place]))
        return out

    def _neighbours(self, number: int, place: int) -> list[int]:
        """The places of the sentences beside one, in the same paragraph."""
        page = self.sentences[number]
        return [i for i in (place - 1, place + 1) if 0 <= i < len(page) and page[i].block == page[place].block]

    def weigh_pairs(self, page: int, place: int) -> float:
        """What the words of a sentence say that stand side by side as in the question."""
        pairs = self.question.pairs.intersection(pairwise(self._stems[page][place]))
        return sum(min(self.rarity[a], self.rarity[b]) for a, b in pairs)


def is_fragment(sentence: PassageSentence, is_whole: bool) -> bool:
    """Whether a sentence is a label, a line of code or a few words that say little alone."""
    is_short = len(sentence.text.split()) < MIN_NAME_CHARS and sentence.kind != "row" and not is_whole
    return is_short or sentence.kind in ("label", "code")


def is_fact(page: Sequence[PassageSentence], place: int) -> bool:
    """Whether a sentence is a field of a list of fields, or a row of a table of two columns without heads."""
    beside = [page[i] for i in (place - 1, place, place + 1) if 0 <= i < len(page)]
    return sum(map(_is_field, beside)) > 1 and _is_field(page[place])


def _is_field(sentence: PassageSentence) -> bool:
    if sentence.kind == "row":
        return len(sentence.cells) == 2 and not any(sentence.heads) and all(sentence.cells)
    return sentence.kind == "item" and _FIELD.match(sentence.text) is not None


@lru_cache(maxsize=2)
def rank_sentences(question: Question, pages: tuple[PageView, ...]) -> SentenceRanking:
    """The pages indexed for a question: to find the next step, to answer and to rate the answer, all of them once."""
    return SentenceRanking(question, pages)


def weigh_words(weights: Mapping[str, float], places: Sequence[frozenset[str]]) -> float:
    """The weight of words in a sentence, beside it, above it and in a title, each where it counts most."""
    factors = load_weights(RANKING)
    shares = tuple(zip(places, (1.0, factors["near"], factors["label"], factors["title"]), strict=True))
    return sum(w * max((share for have, share in shares if word in have), default=0.0) for word, w in weights.items())


def holds_wanted(ranking: SentenceRanking, sentence: PassageSentence) -> bool:
    """Whether a sentence holds something of the wanted kind that the question does not already say."""
    text, wants = sentence.text, ranking.wants
    if wants == "place" and not ranking.question.language and not _PLACE_SIGN.search(text):
        return False
    if wants in ("person", "place", "name"):
        return next(find_new_names(ranking, sentence), "") != ""
    if wants == "date" and (language := ranking.question.language):
        months = LANGUAGES[language].months
        names_month = any(word in months for word in find_words(text.lower())) if months else _NUMBERED_MONTH.search(text)
        if names_month:
            return True
    sign = _SIGNS.get(wants)
    matches = (m.group() for m in sign.finditer(f"{sentence.label} {text}" if wants == "code" else text)) if sign else ()
    return any(m not in ranking.question.text for m in matches)


def list_candidates(ranking: SentenceRanking, usable: Sequence[Scored], pages: Collection[int]) -> list[Scored]:
    """The sentences of pages about one thing, with those that hold what is asked for and no word of the question."""
    own = [s for s in usable if s.page in pages]
    own_places = {(s.page, s.place) for s in own}
    if ranking.wants in ("date", "number", "place", "person"):
        own += [
            Scored(0.0, page, place, sentence, frozenset())
            for page in pages
            for place, sentence in enumerate(ranking.sentences[page])
            if (page, place) not in own_places and sentence.kind == "prose" and holds_wanted(ranking, sentence)
        ]
    return own


def find_wanted_words(ranking: SentenceRanking, words: Sequence[str]) -> list[int]:
    """The places of the words that are of the wanted kind and new to the question."""
    sign = _SIGNS.get(ranking.wants) or (_NAME_WORD if ranking.wants in ("person", "place", "name") else None)
    question = ranking.question.text
    return [i for i, word in enumerate(words) if sign and sign.search(word) and word.strip(".,;:()") not in question]


def find_new_names(ranking: SentenceRanking, sentence: PassageSentence) -> Iterator[str]:
    """The capitalised words inside a sentence that the question does not say."""
    question_stems = ranking.question.weights.keys()
    return (m.group() for m in _CAPITAL.finditer(sentence.text) if not question_stems >= set(ranking.words.stems(m.group())))


def find_page_subject(title: str) -> str:
    """What a page is about by its title: without the site's name and without a bracketed hint."""
    first = re.split(r"\s+[-–—|·»]\s+", title.strip(), maxsplit=1)[0]
    return re.sub(r"\s*\([^)]*\)\s*$", "", first).strip() or first


def flatten_words(text: str) -> str:
    """Words only, lower case and without accents, with a space at both ends, so that containment means whole words."""
    return " " + " ".join(w if w.isascii() else normalise_word(w) for w in find_words(text.lower())) + " "


def is_named(about: str, text: str) -> bool:
    """Whether a text names a subject, word for word."""
    return len(flatten_words(about)) > MIN_NAME_CHARS and flatten_words(about) in flatten_words(text)


def rank_hits(question: Question, outcomes: Iterable[SearchOutcome], compare: Compare | None = None) -> list[str]:
    """URLs of all hits, the most promising first: title and snippet against the question, then the backend's own order."""
    weights, places = load_weights(RANKING), [(place, hit) for outcome in outcomes for place, hit in enumerate(outcome.hits)]
    texts = [f"{hit.title}. {hit.snippet}"[:MAX_COMPARED_CHARS] for _, hit in places]
    nearness = (compare(question.text, texts) if compare and not question.language else None) or [0.0] * len(texts)
    best: dict[str, float] = {}
    for (place, hit), near in zip(places, nearness, strict=True):
        score = sum_points(describe_hit(question, hit, place) | {"hit nearness": near}, weights)
        best[hit.url] = max(best.get(hit.url, 0.0), score)
    return sorted(best, key=lambda url: -best[url])


def describe_hit(question: Question, hit: Hit, place: int) -> dict[str, float]:
    """What speaks for a hit: the words it shares with the question, its title, and how high the backend has it."""
    words, subject = ContentWords(question.language), find_page_subject(hit.title)
    title = set(words.stems(subject))
    have = title.union(words.stems(hit.snippet))
    return {
        "hit cover": sum(w for s, w in question.weights.items() if s in have) / (sum(question.weights.values()) or 1.0),
        "hit about": len(title & question.weights.keys()) / len(title) if title else 0.0,
        "hit named": float(is_named(subject, question.text)),
        "hit place": 1 / (1 + place),
    }
