"""The verdict on each sentence of an answer: hard facts first, then how many of its words stand in one stretch of a page.

Above `sentences`, `pages` and `alignment`, below the checks of an answer and of a document. Hard facts are compared one by one
and never averaged with the words around them: a value, quotation or name that is missing is never outweighed. What cannot be
compared is a stated gap, never a pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from nexi.checking.alignment import NEAR_COPY, align, find_overstatements, has_negation
from nexi.checking.evidence import list_terms
from nexi.checking.lexicon import ASKING_WORDS, AUXILIARIES, PRONOUNS
from nexi.checking.links import page_number
from nexi.checking.pages import PREFIX_CHARS, Pages, ParsedText, Snapshot, parse_text
from nexi.checking.sentences import Clause, Sentence, cut_at_joints, cut_at_markers, read_answer, read_sentence
from nexi.checking.values import DOTTED_THOUSANDS, find_missing
from nexi.notices import Notice
from nexi.text.blocks import list_cells
from nexi.text.plain import fold_text
from nexi.text.stems import WORD, normalise_word, word_terms
from nexi.types import Claim, Evidence, Proof, Verdict

ENOUGH_WORDS = 0.6  # share of a sentence's words that its source must hold
ENOUGH_UNSPACED = 0.75  # the same in scripts without spaces, whose pairs of characters meet by chance
TOUCHED = 0.4  # share from which a source speaks of the same thing at all
ENOUGH_TO_CONTRADICT = 0.5  # share without which two values speak of different things
ENOUGH_QUESTION = 0.5  # more than this share of the question's words, for an answer too short to be read alone
FRAGMENT_WORDS = 4  # content words and values of one
MIN_WORDS = 2  # of what is compared without its question
MAX_WORDS, MAX_VALUES = 400, 60  # of one sentence
MAX_COMPARED_CHARS = 2_000  # of a sentence that is looked for in pages it does not cite
MAX_COMPARED_PAGES = 4
MAX_CITED = 24  # sources of one sentence that are compared; a sentence with more says nothing by them
COPY = 0.8  # share of a sentence in the order of one of the page's, which is then not looked for in parts
ALMOST = 0.1  # two near copies no further apart than this are equally near

MAX_TERMS = 96  # of one sentence that are looked for
MAX_CANDIDATES = 6  # sentences of a page that are looked at
MAX_BOUND = 2  # sentences before one that its pronouns may speak of
CONTEXT_WORTH = 0.6  # of a word that stands only in the heading or at the head of the page
MIN_CLAUSE_WORDS = 3  # fewer, such as an abbreviation in brackets, are no clause
MAX_SAID = 1 / 3  # share of its words that stand in the page, of a clause that the page does not say
MAX_PLACES = 50  # of a page that are looked at for one quotation
NOTHING = "no passage holds its words"
_REPLY_WORD = re.compile(r"(yes|no)[,:;] +(?=(?:\S+ ){2})", re.IGNORECASE)
# Of which no one value can be read: a number as tokenised text has it, and one of two ("1755 or 1757").
_UNCLEAR_NUMBER = re.compile(r"\d\. \d|\d, \d{3}(?!\d)|ty - \w|\d or \d")
_QUOTE = re.compile(r"(?<![^\W_])\"\s?([^\"\n]{2,600}?)\s?\"|「([^」\n]{2,300})」|『([^』\n]{2,300})』")
_SINGLE = re.compile(r"(?<![\w'])'(?=\w)([^'\n]{12,400}(?:'\w[^'\n]{0,200}){0,3})(?<=[\w.,!?])'(?!\w)")
_CODE = re.compile(
    r"(?<![\w/])(?:\$[^$\n]{1,200}[=^\\][^$\n]{1,200}\$|--[a-z][\w-]+|(?!(?:[A-Z]\.)+\w?\b)[A-Za-z]\w*(?:\.\w+)+\(?\)?|\w+\(\)|[A-Za-z0-9]*_[A-Za-z0-9_]+"
    r"|[a-z]{2,}[A-Z]\w+|v?\d+(?:\.\d+){2,}\w*|(?:~|\.{0,2})/[\w.-]+(?:/[\w.-]*)*)"
)
_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Z][A-Za-z]{0,7}-?\d[\w-]*(?![\w-])")
_ASIDE = r"(?:(?<=, of which )|(?<=, because )|(?<=, since )|(?<=, although )|(?<=, while )|(?<= because ))[^,;:]+"
_CLAUSE = re.compile(rf"[;:()]|\s[-–—]+\s|—|{_ASIDE}")  # where one ends, or all of it
_LEFT_OUT = re.compile(r"\s*(?:\[\.{3}\]|\.{3}|…)\s*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_CLOSE = "close"  # a passage that says most of a claim tells more than a gap
_BY_RANK = (Verdict.FOUND, Verdict.CONTRADICTED, _CLOSE, Verdict.UNCHECKED, Verdict.NOT_FOUND)


class _SentenceWindow(Struct, frozen=True):
    """A stretch of a page from sentence `first` to `last`; `share` is how much of the claim's words it holds."""

    # One sentence of the page, with the one or two before it where a pronoun binds them; its heading, the head of its table,
    # the first sentence and the title of the page lend it words at a discount. Every word counts the same: on labelled
    # sentences a weight by rarity brought nothing.

    first: int
    last: int
    share: float
    context: tuple[int, ...] = ()  # the sentences that lend it words


class _Finding(Struct, frozen=True):
    """What a page says to a claim: the verdict, the sentences from `first` to `last`, why, and how much of it (`fit`)."""

    # `is_close` is for a passage that says most of a claim that is not found: it is shown, with what it lacks.

    verdict: Verdict
    reason: str
    share: float = 0.0
    first: int = -1
    last: int = -1
    missing: tuple[str, ...] = ()
    other: str = ""
    follows: float = 0.0
    is_negated: bool = False
    is_close: bool = False
    fit: float = 0.0

    @property
    def rank(self) -> int:
        """The more a finding tells, the lower it ranks."""
        return _BY_RANK.index(_CLOSE if self.is_close else self.verdict)

    @property
    def is_absent(self) -> bool:
        return self.verdict is Verdict.NOT_FOUND and not self.is_close


def check_answer(text: str, snapshots: Pages, question: str = "") -> Proof:
    """Every sentence of an answer, in order; `start` and `end` of a claim are offsets into `text`."""
    sentences = enumerate(read_answer(text, question))
    return Proof(tuple(_check(s, {n: snapshots.get(n) for n in s.numbers}, question, index) for index, s in sentences))


def check_claim(text: str, cited: Pages, question: str = "", *, index: int = 0, start: int = 0) -> Claim:
    """One sentence against the sources it cites; a source that is None has no stored text, and the claim says so."""
    return _check(read_sentence(text, start, question), cited, question, index)


def find_anywhere(claim: Claim, pages: Pages, question: str) -> Claim:
    """A sentence that cites no page, found in one of these, contradicted there, or with what comes closest."""
    if claim.evidence or not claim.needs_citation or len(claim.text) > MAX_COMPARED_CHARS:
        return claim
    terms = list_terms(claim.text)
    readable = {number: page for number, page in pages.items() if page is not None}
    best = sorted(readable, key=lambda n: -sum(term in readable[n].places for term in terms))[:MAX_COMPARED_PAGES]
    checks = [check_claim(claim.text, {n: readable[n]}, question, index=claim.index, start=claim.start) for n in best]
    for verdict in (Verdict.FOUND, Verdict.CONTRADICTED):
        if match := next((check for check in checks if check.verdict is verdict), None):
            return match
    return checks[0] if checks else claim


def _check(sentence: Sentence, cited: Pages, question: str, index: int) -> Claim:
    claim = Claim(index, sentence.text, sentence.start, sentence.end, Verdict.NOT_FOUND, sentence.is_claim, sentence.reason)
    if not cited or not WORD.search(sentence.plain):
        return replace(claim, reason=sentence.reason or Notice("rules.no_source", "needs a source and cites none"))
    claim_text, pages = parse_text(sentence.plain), dict(list(cited.items())[:MAX_CITED])
    if reply := _REPLY_WORD.match(sentence.plain):
        rest = parse_text(sentence.plain[reply.end() :])
        if (reply[1].casefold() == "no") == has_negation(rest):  # the rest says the same: "No, 1 is not a prime number"
            claim_text = rest
    findings = {number: find(claim_text, page, question) for number, page in pages.items()}
    too_many = Notice("rules.many_sources", "cites more sources than one sentence is compared with")
    default_finding = _Finding(Verdict.UNCHECKED, too_many)
    evidence = tuple(_make_evidence(number, page, findings.get(number, default_finding)) for number, page in cited.items())
    best = min(findings.values(), key=lambda f: (f.rank, -f.fit, -f.share))
    claim = replace(claim, verdict=best.verdict, reason=best.reason, evidence=evidence)
    return _check_by_clauses(claim, sentence, pages, list(findings.values()))


def find(claim: ParsedText, page: Snapshot | None, question: str = "") -> _Finding:
    """The best that a page has for a claim."""
    if page is None or not page.text.strip():
        empty = Notice("rules.empty_source", "the stored text of this source is empty")
        return _Finding(Verdict.UNCHECKED, empty if page else Notice("rules.no_text", "no stored text of this source"))
    if len(claim.words) > MAX_WORDS or len(claim.values) > MAX_VALUES:
        return _Finding(Verdict.UNCHECKED, Notice("rules.too_long", "too long to be compared as one sentence"))
    # a few words without a verb, such as a name or a date: what they say depends on what was asked
    is_short = len(claim.terms) + len(claim.values) <= FRAGMENT_WORDS >= len(claim.words) and " | " not in claim.text
    fragment = is_short and not any(w.flat in AUXILIARIES for w in claim.words)
    if fragment and not question and len(claim.terms) + len(claim.values) < MIN_WORDS:
        return _Finding(Verdict.UNCHECKED, Notice("rules.too_short", "too short to be compared without its question"))
    lacks = [*_find_missing_literals(claim, page), *_find_absent_names(claim, page), *_find_unsaid_clauses(claim, page)]
    best = _choose([_compare(claim, window, page, lacks) for window in _find_windows(claim, page)])
    # a fragment may have the first cell of a row of a table, which says what the row is about
    at = best.first
    cells = list_cells(page.words_between(at, at)) if fragment and at in page.rows else ()
    names_row = any(cells) and {w.flat for w in parse_text(cells[0]).words} <= {w.flat for w in claim.words}
    is_answer = not fragment or names_row or _answers(parse_text(question), best, page)
    if question and best.verdict is Verdict.FOUND and not is_answer:
        reason = Notice("rules.off_topic", "the passage does not speak of what was asked")
        return replace(best, verdict=Verdict.NOT_FOUND, reason=reason, is_close=True)
    if best.is_absent and page.read_chars < len(page.text):
        read = f"{page.read_chars:,}"
        unread = Notice("rules.rest_unread", "not in the first {n} characters; the rest of the page was not read", n=read)
        return _Finding(Verdict.UNCHECKED, unread)
    return best


def _choose(findings: list[_Finding]) -> _Finding:
    """The best finding: a near copy decides, or one as near that negates it; a passage that says more outweighs both."""
    if not findings:
        return _Finding(Verdict.NOT_FOUND, NOTHING)
    nearest = max(f.follows for f in findings)
    copies = [f for f in findings if f.follows >= max(NEAR_COPY, nearest - ALMOST)] or findings
    best = min(copies, key=lambda f: (f.rank, -f.share, f.last - f.first))
    if best.verdict is not Verdict.FOUND:
        best = next((f for f in findings if f.verdict is Verdict.FOUND and f.share > best.share), best)
    return next((f for f in copies if f.is_negated and f.share >= best.share and not f.is_absent), best)


def _compare(claim: ParsedText, window: _SentenceWindow, page: Snapshot, lacks: list[str]) -> _Finding:
    rows = [parse_text(row) for row in page.read_row(window.last, claim)]
    source = rows[-1] if rows else page.parse_between(window.first, window.last)
    sentences = rows or [page.parse_between(at, at) for at in range(window.first, window.last + 1)]
    texts = [source, page.parsed_title, *(page.parse_between(at, at) for at in window.context)]
    others = [[*sentences[:at], *sentences[at + 1 :], *texts[1:]] for at in range(len(sentences))]
    borrowed_terms = [{term for text in lending for term in text.terms} for lending in others]
    subject = page.parsed_title.terms
    absent = [v.text.strip() for v in find_missing(claim.values, [v for text in texts for v in text.values])]
    alignments = [align(claim, *pair, page.places, subject) for pair in zip(sentences, borrowed_terms, strict=True)]
    if rows and not absent:  # the order of figures and heads in a sentence need not be that of the table
        alignments = [min(alignments, key=lambda a: len(a.changes) + len(a.contradictions))]
    alignment = max(alignments, key=lambda a: a.follows)
    lacks = list(dict.fromkeys([*absent, *lacks, *alignment.changes, *find_overstatements(claim, source)]))
    gaps = tuple(lack for at, lack in enumerate(lacks) if not any(lack in other.split() for other in lacks[:at]))
    values = len(claim.firm_values)
    share = (window.share * len(claim.terms) + values - len(absent)) / (len(claim.terms) + values)
    finding = _Finding(
        Verdict.NOT_FOUND, NOTHING, share, window.first, window.last, gaps, "", alignment.follows, alignment.is_negated
    )
    may_contradict = alignment.contradictions and share >= ENOUGH_TO_CONTRADICT
    if may_contradict and not _UNCLEAR_NUMBER.search(f"{source.text}\n{claim.text}"):
        our_value, their_value = (value.text.strip() for value in alignment.contradictions[0])
        ours, theirs = repr(our_value), repr(their_value)
        reason = Notice(
            "rules.other_value", "the source says {stated} where the sentence says {claimed}", stated=theirs, claimed=ours
        )
        return replace(finding, verdict=Verdict.CONTRADICTED, reason=reason, other=their_value)
    enough = ENOUGH_UNSPACED if claim.is_unspaced else ENOUGH_WORDS
    if share < TOUCHED or (gaps and share < enough):
        return finding
    if gaps or share < enough:
        unsaid = gaps or dict.fromkeys(w.text for w in claim.words if w.term and not any(w.term in t.terms for t in texts))
        lacking = Notice("rules.missing", "not in this passage: {words}", words=", ".join(list(unsaid)[:4]))
        return replace(finding, reason=lacking, is_close=True, fit=share * max(0.0, 1 - len(gaps) / (values + 1)))
    ours, theirs = (f" {' '.join(word.flat for word in text.words)} " for text in (claim, source))
    word_for_word = Notice("rules.word_for_word", "said word for word")
    reason = word_for_word if ours in theirs else Notice("rules.together", "its words stand in this passage")
    return replace(finding, verdict=Verdict.FOUND, reason=reason, fit=share)


def _find_windows(claim: ParsedText, page: Snapshot) -> list[_SentenceWindow]:
    terms = frozenset(claim.terms[:MAX_TERMS])
    digits = [term for word in claim.words if word.value for term in word_terms(word.text)]
    counts: Counter[int] = Counter()
    for term in terms.union(digits):
        counts.update(page.places.get(term, ()))
    windows: list[_SentenceWindow] = []
    for last in nsmallest(MAX_CANDIDATES, counts, key=lambda at: (-counts[at], at)):
        first = last
        while first > 0 and last - first < MAX_BOUND and _is_bound(first, page):
            first -= 1
        terms_by_sentence = [terms & _terms_at(at, page) for at in range(first, last + 1)]
        while len(terms_by_sentence) > 1 and terms_by_sentence[0] <= frozenset().union(*terms_by_sentence[1:]):
            # a sentence that adds no word is no part of the evidence
            terms_by_sentence, first = terms_by_sentence[1:], first + 1
        context = tuple(sorted({0, page.above[last], page.rows.get(last, -1)} - {-1, *range(first, last + 1)}))
        own_terms = frozenset[str]().union(*terms_by_sentence)
        lent_terms = frozenset(page.parsed_title.terms).union(*(_terms_at(at, page) for at in context))
        count = len(own_terms) + CONTEXT_WORTH * len((terms & lent_terms) - own_terms)
        windows.append(_SentenceWindow(first, last, count / len(terms) if terms else 0.0, context))
    return sorted(windows, key=lambda w: (-w.share, w.last - w.first, w.first))


def _terms_at(index: int, page: Snapshot) -> frozenset[str]:
    return frozenset(term for word in WORD.findall(page.words_between(index, index)) for term in word_terms(word))


def _is_bound(index: int, page: Snapshot) -> bool:
    """Whether a sentence speaks of something that the one before it names; a row of a table never does."""
    if index in page.rows or index - 1 in page.rows:
        return False
    return any(normalise_word(word) in PRONOUNS for word in WORD.findall(page.words_between(index, index)))


def _answers(question: ParsedText, finding: _Finding, page: Snapshot) -> bool:
    """Whether the passage of a fragment says what was asked: most words of the question stand in it, above it or in a title."""
    question_terms = {w.term for w in question.words if w.term and w.flat not in ASKING_WORDS}
    places = {*range(finding.first, finding.last + 1), 0, page.above[finding.first]} - {-1}
    passage_terms = {term for at in places for term in page.parse_between(at, at).terms}.union(page.parsed_title.terms)
    return not question_terms or len(question_terms & passage_terms) > ENOUGH_QUESTION * len(question_terms)


def _make_evidence(number: int, page: Snapshot | None, finding: _Finding) -> Evidence:
    if page is None:
        return Evidence(number, reason=finding.reason)
    evidence = Evidence(
        number, page.url, page.digest, finding.verdict, round(finding.share, 3), round(finding.fit, 3),
        reason=finding.reason, missing=finding.missing, other=finding.other,
    )  # fmt: skip
    if finding.first < 0 or finding.is_absent:
        return evidence
    start, end = page.stored_between(finding.first, finding.last)
    return replace(evidence, start=start, end=end, span=page.text[start:end], page=page_number(page.text, start))


# What must stand in a page as it is written: quotations, code, formulas, identifiers, and names. What is absent is missing; it
# never contradicts anything.


def _find_missing_literals(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """The quotations, code and identifiers of a sentence that a page does not have."""
    double_quotes = _QUOTE.finditer(claim.text) if claim.text.count('"') % 2 == 0 else ()  # marks that close
    for match in [*double_quotes, *_SINGLE.finditer(claim.text)]:
        for quote in filter(None, _LEFT_OUT.split(next(group for group in match.groups() if group))):
            if not _is_quoted(quote, page):
                yield f'"{quote}"'
    text = _ADDRESS.sub(" ", claim.text)
    codes = [code.rstrip("().,=") for code in _CODE.findall(text) if not DOTTED_THOUSANDS.fullmatch(code)]
    for code in dict.fromkeys([*codes, *_IDENTIFIER.findall(text)]):
        if code.casefold() not in page.folded_text:
            yield code


def _find_absent_names(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """Names of which no word stands anywhere in the page, in whatever form."""
    for name in claim.names:
        words = [word for word in name if word.term and len(word.flat) > 1]
        if words and not any(word.term[:PREFIX_CHARS] in page.prefixes for word in words):
            yield claim.text[name[0].start : name[-1].end]


def _find_unsaid_clauses(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """Clauses and asides of which hardly a content word stands anywhere in the page, however much of the rest does."""
    cuts = {place for match in _CLAUSE.finditer(claim.text) for place in match.span()}
    for start, end in pairwise([0, *sorted(cuts), len(claim.text)] if cuts and not claim.is_unspaced else ()):
        words = [word for word in claim.words if start <= word.start < end]
        terms = [word.term for word in words if word.term]
        count = sum(term[:PREFIX_CHARS] in page.prefixes for term in terms)
        if terms and len(words) >= MIN_CLAUSE_WORDS and count <= MAX_SAID * len(terms):
            yield claim.text[words[0].start : words[-1].end]


def _is_quoted(quote: str, page: Snapshot) -> bool:
    """Whether a quotation stands in the page, word for word."""
    words = [normalise_word(word) for word in WORD.findall(fold_text(quote))]
    row = f" {' '.join(words)} "
    places = [page.places.get(term, []) for word in WORD.findall(fold_text(quote)) for term in word_terms(word)]
    if not places:
        return not words or row in _plain_words(page, 0, len(page.bounds) - 1)
    near = ((max(0, at - 2), min(len(page.bounds) - 1, at + 2)) for at in min(places, key=len)[:MAX_PLACES])
    return any(row in _plain_words(page, first, last) for first, last in near)


def _plain_words(page: Snapshot, first: int, last: int) -> str:
    if last < first:
        return ""
    return f" {' '.join(normalise_word(word) for word in WORD.findall(fold_text(page.words_between(first, last))))} "


# A sentence that several sources, or several places of one, say together.

Part = tuple[Clause, int, _Finding]  # a clause, the source that says most of it, and where


def _check_by_clauses(claim: Claim, sentence: Sentence, pages: Pages, findings: Sequence[_Finding]) -> Claim:
    """The claim, found clause by clause where it was not found whole, or where its clauses cite sources of their own."""
    by_markers = cut_at_markers(sentence.text)
    cites_apart = len({clause.numbers for clause in by_markers if clause.numbers}) > 1
    is_copy = any(f.follows >= (NEAR_COPY if f.verdict is Verdict.CONTRADICTED else COPY) for f in findings)
    may_be_cut = claim.verdict is not Verdict.FOUND and not is_copy and any(f.share > 0 for f in findings)
    for clauses in [by_markers] if cites_apart else cut_at_joints(sentence.plain) if may_be_cut else ():
        parts: list[Part] = []
        for clause in clauses:
            words = parse_text(clause.text)
            findings_by_page = ((clause, number, find(words, pages.get(number))) for number in clause.numbers or pages)
            parts.append(min(findings_by_page, key=lambda part: part[2].rank))
        if all(finding.verdict is Verdict.FOUND for _, _, finding in parts):
            return _join_parts(claim, pages, parts)
        denials = [finding for _, _, finding in parts if finding.verdict is Verdict.CONTRADICTED]
        if cites_apart and denials and claim.verdict is not Verdict.FOUND:
            return replace(claim, verdict=Verdict.CONTRADICTED, reason=denials[0].reason)
    return claim


def _join_parts(claim: Claim, pages: Pages, parts: list[Part]) -> Claim:
    """The claim as found by its clauses; a source shows where it says the longest of its own."""
    numbers = list(dict.fromkeys(number for _, number, _ in parts))
    evidence = []
    for e in claim.evidence:
        own = [(clause.text, finding) for clause, number, finding in parts if number == e.number]
        if own:
            clause, finding = max(own, key=lambda pair: len(pair[0]))
            others = (_make_evidence(e.number, pages[e.number], other) for _, other in own if other is not finding)
            e = _make_evidence(e.number, pages[e.number], finding)
            e = replace(e, places=tuple({(o.start, o.end): None for o in others if o.span and o.span not in e.span}))
            e = e if len(numbers) == 1 else replace(e, reason=Notice("rules.part", "says its part: {part}", part=clause))
        elif e.verdict is not Verdict.UNCHECKED:
            no_use = Notice("rules.unused", "nothing here rests on it")
            e = Evidence(e.number, e.url, e.digest, Verdict.NOT_FOUND, reason=no_use)
        evidence.append(e)
    source_list = " and ".join(f"[{number}]" for number in numbers)
    several = Notice("rules.by_parts", "said part by part by {sources}", sources=source_list)
    reason = several if len(numbers) > 1 else Notice("rules.places", "said in several places of the source")
    return replace(claim, verdict=Verdict.FOUND, reason=reason, evidence=tuple(evidence))
