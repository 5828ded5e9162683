"""Whether passages support sentences, by a model that reads: all sentences of a text in one request, verdicts by number.

Above are the checks of an answer and of a document; below are the LLM and PairModel ports. No citation is needed: sentences,
pages and a question are enough. What a model replies is never trusted further than it can be read: a sentence that is missing,
judged twice in two ways, or supported by no passage that was shown is a gap. A gap changes nothing: the sentence stands, and
the reason says that it was not judged.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from nexi.checking.evidence import CHARS_PER_TOKEN, MAX_TOKENS, EvidencePassage, EvidenceSet, SentenceQuery, gather_evidence
from nexi.checking.pages import Pages, prepare
from nexi.checking.quiz import UNREADABLE, Test
from nexi.errors import ContextOverflowError, LLMError, NexiError
from nexi.ports import LLM, Clock, PairModel
from nexi.prompts import render
from nexi.structured.json_reader import find_values
from nexi.structured.schema_check import object_schema
from nexi.tasks import catch_error
from nexi.types import CHECK_TOO_LATE, JudgeFigure, Message, PairScore, Usage

__all__ = ["Case", "GradedJudge", "Judge", "JudgePairModel", "Judgement", "Judging", "LlmJudge", "PairJudge"]

MAX_CASES = 20  # sentences of one request
MAX_CONCURRENT = 4
MAX_WAIT_S = 120.0  # for one request where the caller sets no deadline
MAX_SENTENCE_CHARS = 1_200
MAX_REASON_CHARS = 200
MAX_PAIRS = 3  # passages of a sentence that a pair model is shown
PAIR_TOKENS, PAIR_SENTENCES, MAX_PAIR_CHARS = 900, 3, 900
TOKENS_PER_CASE = 70  # of a reply
MIN_REPLY_TOKENS = 400
MIN_EVIDENCE_TOKENS = 300
OVER_BUDGET = "the judge's share of the budget is used up"
NO_PASSAGE = "the judge names no passage that supports it"
IN_TWO_WAYS = "the judge contradicts itself"

Finding = Literal["supported", "contradicted", "not_supported", "nothing", ""]
FINDINGS: tuple[Finding, ...] = ("supported", "contradicted", "not_supported", "nothing")


class Case(SentenceQuery, frozen=True):
    """A sentence to judge, without its citations; `hint` is what rules noticed."""

    hint: str = ""


class Judgement(Struct, frozen=True):
    """What a judge says of a sentence; `finding` is "" where it said nothing that counts, and `reason` then says why."""

    finding: Finding = ""
    passages: tuple[EvidencePassage, ...] = ()
    reason: str = ""


class Judging(Struct, frozen=True):
    """The judgements on some sentences, in their order, and who made them."""

    judgements: tuple[Judgement, ...]
    judge: JudgeFigure | None = None


class Judge(Protocol):
    """Judges sentences by pages. It raises nothing for a model that fails: what was not judged is a gap."""

    @property
    def name(self) -> str: ...

    async def judge(
        self, cases: Sequence[Case], pages: Pages, question: str = "", *, deadline: float | None = None
    ) -> Judging: ...


@dataclass(eq=False, repr=False)
class LlmJudge:
    """A language model as a judge. `allowance` says how many tokens may be spent in all; `spent` is what was."""

    llm: LLM
    clock: Clock
    _: KW_ONLY
    allowance: Callable[[], int] | None = None
    prompts_folder: Path | None = None
    max_reply_tokens: int = 4_096
    max_cases: int = MAX_CASES
    spent: Usage = field(default=Usage(), init=False)
    _reserved: int = field(default=0, init=False)  # tokens of requests under way

    @property
    def name(self) -> str:
        return " ".join(self.llm.name.split()) or "judge"

    async def judge(self, cases: Sequence[Case], pages: Pages, question: str = "", *, deadline: float | None = None) -> Judging:
        instructions = render("judge", folder=self.prompts_folder)  # raises here for a mistake in the user's own file
        request = _Request(instructions, pages, question, deadline)
        limit = asyncio.Semaphore(MAX_CONCURRENT)

        async def judge_batch(batch: Sequence[Case]) -> list[Judgement]:
            async with limit:
                return await self._judge_batch(request, batch)

        async with asyncio.TaskGroup() as tasks:
            batches = [tasks.create_task(judge_batch(batch)) for batch in cut_evenly(cases, self.max_cases)]
        return Judging(tuple(judgement for batch in batches for judgement in batch.result()))

    async def _judge_batch(self, request: _Request, cases: Sequence[Case]) -> list[Judgement]:
        """Judge some sentences in one request, in halves where the window is too small, with the passages that can be paid."""
        words = request.instructions + build_task(request.question, EvidenceSet(), cases)
        overhead = len(words) // CHARS_PER_TOKEN + 1 + TOKENS_PER_CASE * len(cases)
        allowance = MAX_TOKENS if self.allowance is None else self.allowance() - self.spent.total - self._reserved - overhead
        if allowance < MIN_EVIDENCE_TOKENS:
            return [Judgement(reason=OVER_BUDGET)] * len(cases)
        room = min(MAX_TOKENS, allowance)
        self._reserved += room + overhead
        try:
            return await self._ask(request, cases, room)
        except ContextOverflowError as error:
            reason = f"the judge was not asked ({error})"
        except LLMError as error:
            self.spent += error.usage or Usage()
            return [Judgement(reason=f"the judge could not be asked ({error})")] * len(cases)
        except TimeoutError:
            return [Judgement(reason=CHECK_TOO_LATE)] * len(cases)
        finally:
            self._reserved -= room + overhead
        if len(cases) == 1:
            return [Judgement(reason=reason)]
        half = len(cases) // 2
        return [*await self._judge_batch(request, cases[:half]), *await self._judge_batch(request, cases[half:])]

    async def _ask(self, request: _Request, cases: Sequence[Case], room: int) -> list[Judgement]:
        """Raises LLMError and TimeoutError."""
        evidence = await asyncio.to_thread(gather_evidence, cases, request.pages, max_tokens=room)
        task = build_task(request.question, evidence, cases)
        fields = {
            "n": {"type": "integer"},
            "passages": {"type": "array", "items": {"type": "integer"}},
            "differs": {"type": "string"},
            "verdict": {"type": "string", "enum": list(FINDINGS)},
        }
        items = {"type": "array", "items": object_schema(fields, is_closed=True), "maxItems": len(cases)}
        now = self.clock.monotonic()
        until = now + MAX_WAIT_S if request.deadline is None else request.deadline
        async with asyncio.timeout(max(0.0, until - now)):
            reply = await self.llm.complete(
                [Message("system", request.instructions), Message("user", task)],
                max_tokens=min(self.max_reply_tokens, max(MIN_REPLY_TOKENS, TOKENS_PER_CASE * len(cases))),
                temperature=0.0,
                deadline=until,
                schema=object_schema({"items": items}, is_closed=True),
            )
        self.spent += reply.usage
        return read_judgements(reply.text, len(cases), evidence)


class _Request(Struct, frozen=True):
    """What the batches of one text share."""

    instructions: str
    pages: Pages
    question: str
    deadline: float | None


@dataclass(eq=False, repr=False)
class PairJudge:
    """A pair model as a judge: the best passages of every sentence, one by one."""

    model: PairModel

    @property
    def name(self) -> str:
        return self.model.name

    async def judge(self, cases: Sequence[Case], pages: Pages, question: str = "", *, deadline: float | None = None) -> Judging:
        choices = await asyncio.to_thread(lambda: [choose_passages(case, pages) for case in cases])
        pairs = [(p.text[:MAX_PAIR_CHARS], case.text) for case, own in zip(cases, choices, strict=True) for p in own]
        scores = iter(await self.model.score(pairs, deadline=deadline) if pairs else ())
        judgements = []
        figure: JudgeFigure | None = None
        for own in choices:
            score_pairs = [(score, passage) for passage, score in zip(own, scores)]  # noqa: B905 - the iterator is shared
            usable = [(score, passage) for score, passage in score_pairs if score.known]
            if not usable:
                reason = score_pairs[0][0].reason if score_pairs else "no passage of the pages speaks of it"
                judgements.append(Judgement(reason=reason))
                continue
            best, passage = max(usable, key=lambda pair: pair[0].supported)
            figure = best.judge or figure
            finding: Finding = "supported" if best.supports else "not_supported"
            judgements.append(Judgement(finding, (passage,), best.reason))
        return Judging(tuple(judgements), figure)


def choose_passages(case: Case, pages: Pages) -> tuple[EvidencePassage, ...]:
    evidence = gather_evidence([case], pages, max_tokens=PAIR_TOKENS, size=PAIR_SENTENCES)
    by_number = {p.n: p for p in evidence.passages}
    return tuple(by_number[n] for n in evidence.chosen[0][:MAX_PAIRS])


@dataclass(eq=False, repr=False)
class JudgePairModel:
    """The PairModel port over a judge, for its test: every premise is a page, and every hypothesis a sentence that cites it."""

    judge: Judge

    @property
    def name(self) -> str:
        return self.judge.name

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        cases = [Case(hypothesis, (n,)) for n, (_, hypothesis) in enumerate(pairs, 1)]
        pages = {n: prepare(premise) for n, (premise, _) in enumerate(pairs, 1)}
        judging = await self.judge.judge(cases, pages, deadline=deadline)
        return [
            PairScore(float(j.finding == "supported"), float(j.finding == "contradicted"), reason=j.reason)
            if j.finding
            else PairScore.gap(UNREADABLE if j.reason in (NO_PASSAGE, IN_TWO_WAYS) else j.reason)  # a reply, and no outage
            for j in judging.judgements
        ]


@dataclass(eq=False, repr=False)
class GradedJudge:
    """A judge that is believed as far as its test allows; where it may not be asked at all, another one stands in."""

    model: Judge
    test: Test
    stand_in: Judge | None = None

    @property
    def name(self) -> str:
        return self.model.name

    async def judge(self, cases: Sequence[Case], pages: Pages, question: str = "", *, deadline: float | None = None) -> Judging:
        grade = await catch_error(self.test(deadline))
        reason = str(grade) if isinstance(grade, NexiError) else ""  # how it did in its test, `doctor` says, not every answer
        if isinstance(grade, NexiError) or not grade.may_be_asked:
            if self.stand_in:
                return await self.stand_in.judge(cases, pages, question, deadline=deadline)
            return Judging((Judgement(reason=reason),) * len(cases))
        judging = await self.model.judge(cases, pages, question, deadline=deadline)
        figure = JudgeFigure(self.name, grade.balanced_accuracy, grade.pairs)
        if grade.may_raise:
            return Judging(judging.judgements, figure)
        only_lower = f"a judge that is right in {grade.balanced_accuracy:.0%} of its test may only lower"
        lowering = (Judgement(reason=only_lower) if j.finding == "supported" else j for j in judging.judgements)
        return Judging(tuple(lowering), figure)


def cut_evenly(cases: Sequence[Case], most: int) -> list[Sequence[Case]]:
    """Batches of nearly the same size."""
    count = -(-len(cases) // most)
    bounds = [len(cases) * n // count for n in range(count + 1)] if count else [0]
    return [cases[a:b] for a, b in pairwise(bounds)]


def build_task(question: str, evidence: EvidenceSet, cases: Sequence[Case]) -> str:
    """The request: pages with their passages, each once, then the sentences; as JSON strings, which no text in them can end."""
    lines = [f"Question: {quote_text(question)}"] if question else []
    page = 0
    for passage in evidence.passages:
        if passage.page != page:
            page = passage.page
            lines.append(f"\nPage [{page}]")
        trail = f" (under {quote_text(passage.trail)})" if passage.trail else ""
        lines.append(f"Passage {passage.n}{trail}: {quote_text(passage.text)}")
    lines.append("")
    for n, case in enumerate(cases, 1):
        lines.append(f"Sentence {n}: {quote_text(case.text[:MAX_SENTENCE_CHARS])}")
        if case.hint:
            lines.append(f"  Note: {quote_text(case.hint)}")
    return "\n".join(lines)


def quote_text(text: str) -> str:
    return json.dumps(" ".join(text.split()).encode("utf-8", "replace").decode(), ensure_ascii=False)


def read_judgements(text: str, count: int, evidence: EvidenceSet) -> list[Judgement]:
    """One judgement per sentence of a reply in any order; what cannot be read, or is said in two ways, is a gap."""
    by_number: dict[int, Judgement] = {}
    for entry in list_entries(text):
        number = read_number(entry.get("n"))
        if number is None or not 1 <= number <= count:
            continue
        verdict, passage_numbers, differs = entry.get("verdict"), entry.get("passages"), entry.get("differs")
        spelling = re.sub(r"[\s-]+", "_", verdict.strip().casefold()) if isinstance(verdict, str) else ""
        finding = next((each for each in FINDINGS if each == spelling), None)
        numbers = set(map(read_number, passage_numbers if isinstance(passage_numbers, list) else [passage_numbers]))
        passages = tuple(passage for passage in evidence.passages if passage.n in numbers)
        reason = " ".join(differs.split())[:MAX_REASON_CHARS] if isinstance(differs, str) else ""
        judgement = Judgement(finding, passages, reason) if finding else Judgement(reason=UNREADABLE)
        if finding == "supported" and not passages:
            judgement = Judgement(reason=NO_PASSAGE)
        if number in by_number and by_number[number].finding != judgement.finding:
            judgement = Judgement(reason=IN_TWO_WAYS)
        by_number[number] = judgement
    return [by_number.get(number, Judgement(reason=UNREADABLE)) for number in range(1, count + 1)]


def list_entries(text: str) -> Iterator[Mapping[str, Any]]:
    """Every object with a number in a reply: under "items", in a bare list, or one by one."""
    try:
        values = [match.value for match in find_values(text)]
    except ValueError:
        return
    while values:
        value = values.pop(0)
        if isinstance(value, list):
            values.extend(value)
        elif isinstance(value, Mapping) and isinstance(value.get("items"), list):
            values.extend(value["items"])
        elif isinstance(value, Mapping) and "n" in value:
            yield value


def read_number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,4}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
