"""An answer under way: what the model writes goes in and out at once; when it is whole, it is checked.

Above is the agent, which owns the tasks and says who judges and whether the model may be asked again; below are the rules,
the evidence and the judge. The order is: rules look at the words; a judge reads every sentence that states something, with
the passages that bear on it; what it rejects is written again and judged again. Without a judge nothing is changed. Only a
strict answer waits: it is released when it is known what of it may stand.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import NumbersByUse, drop_unknown, extract_citation_markers, is_row
from nexi.answers.echoes import is_prompt_text
from nexi.answers.safe_markdown import MarkdownGuard
from nexi.answers.streaming import AnswerStream, make_safe
from nexi.checking.evidence import list_terms
from nexi.checking.judge import Judge, choose_passages
from nexi.checking.lexicon import FRAME_WORDS
from nexi.checking.pages import Pages, Snapshot, parse_text, prepare
from nexi.checking.review import build_cases, describe_gap, edit_text, find_failing, is_rejected, judge_claims, soften_claims
from nexi.checking.rules import check_answer, check_claim, find_anywhere
from nexi.checking.sentences import SOURCES, has_verb, without_markers
from nexi.errors import StoreError
from nexi.notices import Notice
from nexi.ports import PageStore
from nexi.runs.session import Session
from nexi.text.blocks import parse_blocks
from nexi.text.plain import strip_markdown
from nexi.types import REVIEW_VERSION, Claim, Correction, Proof, Review, Source, Verdict
from nexi.urls import is_web_url

MAX_CHARS = 400_000  # of one answer
SHOWN_AT_ONCE = (Verdict.FOUND, Verdict.CONTRADICTED)  # what rules may say of a sentence
MAX_NEW_WORDS = 2  # that no page has, in a title of a strict answer
MIN_LETTERS = 24  # of a quotation; less may stand anywhere
MIN_BODY_LETTERS = 16  # the same behind the line that names what it is about
MAX_DISTANCE_LETTERS = 32_000  # that a line may stand above what it names
_ABOUT_CODE = re.compile(
    r"[`{}<>=]|\w\(|\w_\w|--\w|\b(?:code|function|command|script|program|snippet|python|javascript|java|rust|sql|bash|shell|regex|api"
    r"|library|compile|install|configure|config|query|method|class|error|exception|git|docker|html|css|json|yaml|linux)s?\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_CODE_SIGNS = re.compile(r"[{};=<>$\\]|\w\(|^\s*(?:#|//|--|\$|>>>)")
PROSE_LETTERS = 0.75
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_BETWEEN_LETTERS = re.compile(r"(?<!\d)[\W_]+|[\W_]+(?!\d)")
_BRACKETS = re.compile(r"\s*\([^()]{0,300}\)")
_PART = re.compile(r"(.+?)((?:\s*\[\d{1,3}\])+)", re.DOTALL)
_CELLS = " – "


class Rejected(Struct, frozen=True):
    """A sentence that a judge rejected, and the passages that bear on it: the number of the page and its words."""

    claim: Claim
    passages: tuple[tuple[int, str], ...] = ()


# New sentences by the position of the rejected one, "" for one to take out; None when the model was not asked.
RewriteSentences: TypeAlias = Callable[[Sequence[Rejected]], Awaitable[Mapping[int, str] | None]]


@dataclass(eq=False, repr=False)
class Snapshots:
    """The stored texts behind the citation numbers of a session, each prepared once, off the event loop."""

    # A page that was numbered in an earlier run is found by its digest. A text that is gone or damaged is None, which the proof
    # calls unchecked: a gap is said, never passed.

    session: Session
    store: PageStore
    _prepared: dict[str, Snapshot] = field(default_factory=dict, init=False)  # by address: an answer may change numbers
    _running: dict[str, asyncio.Future[Snapshot]] = field(default_factory=dict, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def numbers(self) -> list[int]:
        """Every number there is."""
        return [source.number for source in self.session.book.sources]

    async def of(self, numbers: Collection[int]) -> dict[int, Snapshot | None]:
        """The snapshots of these numbers; None for a number without a stored text."""
        async with self._turn:
            for source in filter(None, map(self.session.book.by_number, numbers)):
                if source.url not in self._prepared:
                    await self._prepare(source)
        sources = {number: self.session.book.by_number(number) for number in numbers}
        return {number: self._prepared.get(source.url) if source else None for number, source in sources.items()}

    async def prepare_all(self) -> None:
        """Prepare whatever was numbered, so that the first sentence need not wait for it."""
        for number in self.numbers:
            await self.of([number])

    async def _prepare(self, source: Source) -> None:
        page = self.session.find_page(source.url)
        text = page.text if page and source.digest in ("", page.digest) else None
        if text is None and source.digest:
            with suppress(StoreError):
                text = await self.store.get(source.digest)
        if text is not None:
            if source.url not in self._running:  # a caller that is cancelled leaves its work to the next one
                work = partial(prepare, text, source.url, source.digest, title=source.title)
                self._running[source.url] = asyncio.get_running_loop().run_in_executor(None, work)
            self._prepared[source.url] = await asyncio.shield(self._running[source.url])


class Verifier(Struct, frozen=True):
    """How the answers of a run are checked. `rewrites` is for a model that can be asked to write a sentence again."""

    # `open_judge` opens all there is for the text of a model (True), for quotations (False) what costs nothing.

    snapshots: Snapshots
    strict: bool = False
    rewrites: bool = True
    open_judge: Callable[[bool], Judge | None] = lambda by_model: None
    begin_test: Callable[[], None] = lambda: None
    question: str = ""


@dataclass(eq=False, repr=False)
class AnswerCheck:
    """One answer: feed it, `drain` it now and then, and `finish` it; what rules know of a segment goes to `show_marks`."""

    # `by_model` is False for quotations; `renumbers` gives sources of a book that is ordered so numbers by their first use.

    session: Session
    verifier: Verifier | None
    release: Callable[[str], None]
    _: KW_ONLY
    by_model: bool = True
    show_marks: Callable[[Sequence[Claim]], None] | None = None
    renumbers: bool = False
    drops_repeats: bool = False
    _queue: deque[tuple[str, int]] = field(default_factory=deque, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _out: list[str] = field(default_factory=list, init=False)
    _blanks: str = field(default="", init=False)
    _length: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        book = self.session.book
        self._numbers = NumbersByUse(book) if self.renumbers and book.orders_by_use else None
        self.stream = AnswerStream(
            {source.number for source in book.sources},
            self._take_segment,
            place=self._place_given,
            translate=self._numbers.translate if self._numbers else str,
            is_echo=self._is_echo,
            drops_repeats=self.drops_repeats,
            guards_code=bool(self.session.private),
        )

    @property
    def is_waiting(self) -> bool:
        return bool(self._queue)

    @property
    def is_strict(self) -> bool:
        return self.verifier is not None and self.verifier.strict

    @property
    def moved_numbers(self) -> dict[int, int]:
        """The numbers that sources have now, by those that the model was given."""
        return self._numbers.moved if self._numbers else {}

    def _take_segment(self, segment: str, is_code: bool) -> None:
        """Pass a segment on. Blanks wait for what follows them, so that the answer begins and ends with a word."""
        body = (self._blanks + segment).rstrip()
        start = self._length
        self._blanks = (self._blanks + segment)[len(body) :]
        if not body:
            return
        self._out.append(body)
        self._length += len(body)
        if not self.is_strict:
            self.release(body)
            if self.verifier and self.show_marks and not is_code and self._length <= MAX_CHARS:
                self._queue.append((body, start))

    async def drain(self) -> None:
        """Show what rules know of the segments that wait. A cancelled call loses nothing."""
        async with self._turn:
            while self._queue:
                segment, start = self._queue[0]
                claims = await self._check_by_rules(segment)
                self._queue.popleft()
                marks = [c for c in claims if c.verdict in SHOWN_AT_ONCE]
                if self.show_marks and marks:
                    self.show_marks([replace(c, start=c.start + start, end=c.end + start) for c in marks])

    async def finish(self, judge: Judge | None = None, rewrite: RewriteSentences | None = None) -> tuple[str, Review | None]:
        """The whole answer, and how it was checked."""
        self.stream.finish()
        text = "".join(self._out)
        if self.verifier is None:
            return text, None
        await self.drain()
        claims = soften_claims(await self._check_by_rules(text[:MAX_CHARS]))
        review = Review(Proof(claims), strict=self.is_strict, version=REVIEW_VERSION)
        if len(text) > MAX_CHARS:
            review = replace(review, gap=f"only the first {MAX_CHARS:,} characters of the answer were checked")
        if judge and review.proof.checked:
            pages = await self._pages()
            review = await self._judge(review, judge, pages, text)
            if rewrite and any(map(is_rejected, review.proof.claims)):
                text, review = await self._correct(text, review, judge, rewrite, pages)
        if self.is_strict:
            text, review = self._leave_out(text, review)
            self.release(text)
        return text, review

    @property
    def _question(self) -> str:
        return self.verifier.question if self.verifier else ""

    async def _pages(self) -> Pages:
        snapshots = self.verifier.snapshots if self.verifier else None
        return await snapshots.of(snapshots.numbers) if snapshots else {}

    async def _check_by_rules(self, text: str) -> tuple[Claim, ...]:
        return await asyncio.to_thread(self._compare, text, await self._pages()) if self.verifier else ()

    def _compare(self, text: str, pages: Pages) -> tuple[Claim, ...]:
        """The claims of a text against the pages it cites; a sentence that cites none against all that were read."""
        if self.is_strict:
            text = _expose_code(text, keeps_prose_only=bool(_ABOUT_CODE.search(self._question)))
        claims = check_answer(text, pages, self._question).claims
        if not self.by_model:
            claims = _accept_quotations(claims, pages)
        if self.is_strict:
            claims = tuple(_hold_to_account(claim, pages, self._question) for claim in claims)
        matches = ((claim, find_anywhere(claim, pages, self._question)) for claim in claims)
        return tuple(
            replace(match, reason=f"it cites no page; its words stand in [{match.evidence[0].number}]")
            if match is not claim and match.verdict is Verdict.FOUND
            else claim
            for claim, match in matches
        )

    async def _judge(self, review: Review, judge: Judge, pages: Pages, text: str) -> Review:
        claims, judging = await judge_claims(review.proof.claims, self._question, pages, judge, text)
        judges = (judging.judge,) if judging.judge else ()
        return replace(review, proof=Proof(claims), judges=judges, gap=describe_gap(judging.judgements) or review.gap)

    async def _correct(
        self, text: str, review: Review, judge: Judge, rewrite: RewriteSentences, pages: Pages
    ) -> tuple[str, Review]:
        """Have rejected sentences written again, once, and take what the judge then accepts."""
        claims = [claim for claim in review.proof.claims if is_rejected(claim)]
        choices = await asyncio.to_thread(lambda: [choose_passages(build_cases([claim])[0], pages) for claim in claims])
        passages = [tuple((p.page, p.text) for p in own) for own in choices]
        offers = await rewrite(list(map(Rejected, claims, passages)))
        if not offers:
            return text, replace(review, asked=offers is not None)
        by_index = {claim.index: claim for claim in claims}
        good: dict[int, str] = {}
        for claim, offer in ((claims[n], offer) for n, offer in offers.items() if 0 <= n < len(claims)):
            sentence = self.stream.clean(offer, self._place).strip()
            # only a row can stand in for a row of a table, and nothing with several lines for a sentence
            if not sentence or (is_row(sentence) == is_row(claim.text.strip()) and "\n" not in sentence):
                good[claim.index] = sentence
        judged_claims: dict[int, Claim] = {}
        if sentences := {i: sentence for i, sentence in good.items() if sentence}:
            drafts = []
            for i, sentence in sentences.items():
                own_pages = {n: pages.get(n) for n in sorted(extract_citation_markers(sentence))}
                drafts.append(check_claim(sentence, own_pages, self._question, index=i, start=by_index[i].start))
            second_review = await self._judge(Review(Proof(soften_claims(drafts))), judge, pages, text)
            judged_claims = {claim.index: claim for claim in second_review.proof.claims}
        supported_indices = {i for i, claim in judged_claims.items() if claim.verdict is Verdict.SUPPORTED}
        changes = {i: sentence for i, sentence in good.items() if not sentence or i in supported_indices}
        new_text, standing = edit_text(text, review.proof.claims, changes)
        if not build_cases(standing) or self._finds_exits(new_text):
            return text, replace(review, asked=True)
        corrections = tuple(Correction(by_index[i].text.strip(), new, by_index[i].reason) for i, new in changes.items())
        final_claims = (
            replace(judged_claims[c.index], text=c.text, start=c.start, end=c.end) if changes.get(c.index) else c
            for c in standing
        )
        proof = Proof(tuple(replace(c, index=n) for n, c in enumerate(final_claims)))
        count = sum(bool(sentence) for sentence in changes.values())
        return new_text, replace(review, proof=proof, corrections=corrections, corrected=count, asked=True)

    def _leave_out(self, text: str, review: Review) -> tuple[str, Review]:
        """A strict answer without what is neither supported nor found."""
        dropped_claims = find_failing(review.proof.claims)
        if not dropped_claims:
            return text, review
        new_text, standing = edit_text(text, review.proof.claims, {claim.index: "" for claim in dropped_claims})
        if self._finds_exits(new_text):  # what was left out can turn code into a link
            new_text = make_safe(new_text, self._place)
            places = ((claim, new_text.find(claim.text)) for claim in standing)
            standing = tuple(replace(c, start=at, end=at + len(c.text)) for c, at in places if at >= 0)
        proof = Proof(tuple(replace(claim, index=n) for n, claim in enumerate(standing)))
        return new_text, replace(review, proof=proof, dropped=tuple(dropped_claims))

    def _finds_exits(self, text: str) -> bool:
        return bool(MarkdownGuard(self._place, guards_code=bool(self.session.private)).find_exits(text))

    def _is_echo(self, segment: str) -> bool:
        """Whether a segment repeats a prompt, and no page that was read says it."""
        if not is_prompt_text(segment):
            return False
        words = " ".join(without_markers(segment).split())
        return not any(words in " ".join(page.text.split()) for page in self.session.pages.values())

    def _place_given(self, url: str) -> int | None:
        """The same, with the number that the model knows."""
        if self._numbers and is_web_url(url) and (source := self.session.book.find(url)):
            return self._numbers.given_number(source)
        return self._place(url)

    def _place(self, url: str) -> int | None:
        """The number of a read page; 0 for an address that stands in the question or in a page that was read."""
        if is_web_url(url) and (source := self.session.book.find(url)):
            return source.number
        questions = (message.content for message in self.session.messages if message.role == "user")
        pages = self.session.pages.values()
        is_given = any(url in text for text in questions) or any(url in page.text or url in page.links for page in pages)
        return 0 if is_given else None


def _hold_to_account(claim: Claim, pages: Pages, question: str) -> Claim:
    """A title or lead-in that states something in a strict answer: most of its words are in no page and not asked for."""
    if claim.needs_citation or claim.evidence:
        return claim
    terms = set(list_terms(claim.text)).difference(FRAME_WORDS, list_terms(question))
    own = [term for term in terms if not any(page and term in page.places for page in pages.values())]
    sentence = parse_text(without_markers(claim.text))
    is_telling = bool(sentence.names or sentence.firm_values or has_verb(sentence))
    most = MAX_NEW_WORDS - is_telling
    return replace(claim, needs_citation=True, reason="states what no page says") if len(own) > most else claim


def _expose_code(text: str, *, keeps_prose_only: bool) -> str:
    """A text with blanks of the same length in place of fences, a title of sources, and of code where only prose is claimed."""
    # Behind a fence or such a title nothing would be read.
    lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        is_fence = bool(_FENCE.match(line))
        dense = "".join(line.split())
        is_prose = len(line.split()) > 3 and sum(map(str.isalpha, dense)) >= PROSE_LETTERS * len(dense)
        is_code = inside and keeps_prose_only and (not is_prose or _CODE_SIGNS.search(line) is not None)
        hides = is_fence or SOURCES.match(line) or is_code
        inside ^= is_fence
        body = line.rstrip("\n")
        lines.append(" " * len(body) + line[len(body) :] if hides else line)
    return "".join(lines)


def _accept_quotations(claims: Sequence[Claim], pages: Pages) -> tuple[Claim, ...]:
    """The claims of a writer who only quotes, where a quotation is supported by the page it stands in letter for letter."""
    # Nothing is reworded there, so nothing is compared by meaning; the cut of a sentence may leave half a date.
    doubtful = {claim.index for claim in find_failing(claims)}
    return tuple(_accept_quotation(claim, pages) if claim.index in doubtful else claim for claim in claims)


def _accept_quotation(claim: Claim, pages: Pages) -> Claim:
    def is_in_page(words: str, number: int) -> bool:
        page = pages.get(number)
        return page is not None and _is_quoted(words, page.plain.text)

    sentence, _ = drop_unknown(claim.text, set())
    for evidence in claim.evidence:
        if is_in_page(sentence, evidence.number):
            reason = Notice("quote.verbatim", "quoted letter for letter")
            good = replace(evidence, verdict=Verdict.FOUND, presence=1.0, fit=1.0, reason=reason, missing=(), other="")
            others = (good if e is evidence else e for e in claim.evidence)
            return replace(claim, verdict=Verdict.FOUND, reason=reason, evidence=tuple(others))
    parts = _PART.findall(claim.text)
    if len(parts) > 1 and all(any(is_in_page(part, int(n)) for n in re.findall(r"\d+", marks)) for part, marks in parts):
        return replace(claim, verdict=Verdict.FOUND, reason=Notice("quote.by_parts", "quoted letter for letter, part by part"))
    return claim


def _is_quoted(sentence: str, text: str) -> bool:
    """Whether a sentence was put together from letters of a page alone, whatever marks stand between them."""
    cells = [letters for cell in sentence.split(_CELLS) if (letters := _keep_letters(cell))]
    if len(cells) > 1 and sum(map(len, cells)) >= MIN_LETTERS:  # of one row of a table, each as it stands there
        rows = (_keep_letters(text[b.start : b.end]) for b in parse_blocks(text) if b.kind in ("row", "head"))
        if any(all(cell in row for cell in cells) for row in rows):
            return True
    bare = _remove_brackets(sentence)
    return any(_stands_in(sentence, page) or _stands_in(bare, _remove_brackets(page)) for page in (text, strip_markdown(text)))


def _stands_in(sentence: str, text: str) -> bool:
    """As one stretch, or as `line: sentence` where the page has the line above the sentence."""
    whole, page = _keep_letters(sentence), _keep_letters(text)
    if len(whole) < MIN_LETTERS or whole in page:
        return len(whole) >= MIN_LETTERS
    for colon in re.finditer(r":\s", sentence):
        head, body = _keep_letters(sentence[: colon.start()]), _keep_letters(sentence[colon.end() :])
        if len(body) < MIN_BODY_LETTERS or not head:
            return False
        at = page.find(body)
        if at >= 0 and head in page[max(0, at - MAX_DISTANCE_LETTERS) : at]:
            return True
    return False


def _keep_letters(text: str) -> str:
    """Letters and digits; between two digits one mark stays, so that 1.5 is not 15."""
    return _BETWEEN_LETTERS.sub("", _BETWEEN_DIGITS.sub(lambda marks: marks[0][0], text))


def _remove_brackets(text: str) -> str:
    """Without what stands in brackets, and in brackets inside them."""
    return _BRACKETS.sub(" ", _BRACKETS.sub("", text))
