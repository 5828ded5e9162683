"""A test for pair models: labelled pairs, half of them lies, and what a model may do with the share it gets right.

Any PairModel can take it. What it costs and where results are kept is the business of `app`; here are the pairs, the grade
and the thresholds that follow from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import fmean
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from nexi.errors import NexiError
from nexi.ports import PairModel
from nexi.tasks import catch_error
from nexi.types import JudgeFigure, PairScore, content_digest

__all__ = ["Grade", "GradedPairModel", "Quiz", "grade_scores", "packaged_quiz", "take_quiz"]

UNREADABLE = "the judge gave no verdict that can be read"
MAX_PAIRS = 24  # of the quiz that a judge takes
MIN_TO_RAISE = 0.75  # balanced accuracy; below, a model may only lower
MIN_TO_ASK = 0.60

_Share = Annotated[float, Meta(ge=0, le=1)]


class QuizPair(Struct, frozen=True):
    """One pair with its label; `kind` says which kind of lie it is, or why it is true."""

    id: str
    kind: str
    premise: str
    hypothesis: str
    label: Literal["supported", "not_supported", "contradicted"]

    @property
    def is_true(self) -> bool:
        return self.label == "supported"


class Quiz(Struct, frozen=True):
    pairs: tuple[QuizPair, ...]
    digest: str

    @classmethod
    def parse(cls, text: str) -> Quiz:
        """Raises ValueError where the text is no quiz with both true and false pairs."""
        try:
            pairs = msgspec.json.decode(text, type=_QuizFile).pairs
        except msgspec.DecodeError as error:
            raise ValueError(f"not a quiz: {error}") from None
        if min(sum(p.is_true for p in pairs), sum(not p.is_true for p in pairs)) < 2:
            raise ValueError("not a quiz: too few pairs of a label")
        return cls(pairs, content_digest(text)[:16])


class _QuizFile(Struct, frozen=True):
    pairs: tuple[QuizPair, ...]


@lru_cache(maxsize=1)
def packaged_quiz() -> Quiz:
    """The quiz that a judge takes in one request: as many true pairs of the whole one as lies, from all of it."""
    quiz = whole_quiz()
    halves = ([p for p in quiz.pairs if p.is_true is is_true] for is_true in (True, False))
    most = MAX_PAIRS // 2
    ids = {half[len(half) * n // most].id for half in halves for n in range(min(most, len(half)))}
    pairs = tuple(pair for pair in quiz.pairs if pair.id in ids)
    return Quiz(pairs, content_digest(f"{quiz.digest} {len(pairs)}")[:16])


@lru_cache(maxsize=1)
def whole_quiz() -> Quiz:
    """All pairs that nexi carries; it works from a zipped package too."""
    import pkgutil

    try:
        return Quiz.parse((pkgutil.get_data(__name__.rpartition(".")[0], "quiz.json") or b"").decode("utf-8"))
    except (OSError, ValueError) as error:
        fix = "install nexi again"
        raise NexiError("the quiz for judges is missing from the installation", cause=str(error), fix=fix) from error


class Grade(Struct, frozen=True):
    """What a quiz says of a model: how often it is right, from which scores on it is believed, and what it cost."""

    balanced_accuracy: _Share
    true_kept: _Share
    lies_passed: _Share
    supported_from: _Share
    contradicted_from: float = 1.01  # above every score; earlier versions set it, and logs have it
    pairs: int = 0
    gaps: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    tested_at: str = ""

    @property
    def may_raise(self) -> bool:
        return self.balanced_accuracy >= MIN_TO_RAISE

    @property
    def may_be_asked(self) -> bool:
        return self.balanced_accuracy >= MIN_TO_ASK

    @property
    def role(self) -> str:
        """What the model may do with this grade, in words."""
        if self.may_raise:
            return "it may raise and lower"
        return "it may only lower" if self.may_be_asked else "it is not asked"

    def apply(self, score: PairScore, name: str = "") -> PairScore:
        """The score with one half at the model's own thresholds; support by a model that may not raise is a gap."""
        if not score.known:
            return score
        value, threshold = score.supported, self.supported_from
        supported = 0.5 + (value - threshold) / (1 - threshold) / 2 if value >= threshold else value / threshold / 2
        if supported >= 0.5 and not self.may_raise:
            return PairScore.gap(f"a judge that is right in {self.balanced_accuracy:.0%} of its test may only lower")
        figure = JudgeFigure(name, self.balanced_accuracy, self.pairs)
        return PairScore(supported, score.contradicted, reason=score.reason, judge=figure)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def take_quiz(model: PairModel, quiz: Quiz, *, deadline: float | None = None) -> list[PairScore]:
    """Score every pair. Raises NexiError where the model could not be asked, which says nothing of how good it is."""
    scores = list(await model.score([(p.premise, p.hypothesis) for p in quiz.pairs], deadline=deadline))
    scores = (scores + [PairScore.gap(UNREADABLE)] * len(quiz.pairs))[: len(quiz.pairs)]
    if outage := next((s.reason for s in scores if not s.known and s.reason != UNREADABLE), ""):
        raise NexiError(f"{model.name} could not be tested", cause=outage, code="untested")
    return scores


def grade_scores(quiz: Quiz, scores: Sequence[PairScore]) -> Grade:
    """Thresholds are chosen on all pairs; accuracy is measured on halves whose threshold comes from the other half."""
    # A gap is wrong for a true pair and for a lie alike: a model that does not answer is no judge.
    answers = list(zip(quiz.pairs, scores, strict=True))
    by_label = sorted(answers, key=lambda answer: not answer[0].is_true)
    first, second = by_label[::2], by_label[1::2]  # every other pair of each label: both halves have as many lies
    right = [_right_answers(first, _best_threshold(second)), _right_answers(second, _best_threshold(first))]
    true_kept = fmean(right[0][True] + right[1][True])
    lies_caught = fmean(right[0][False] + right[1][False])
    return Grade(
        round((true_kept + lies_caught) / 2, 4),
        round(true_kept, 4),
        round(1 - lies_caught, 4),
        round(_best_threshold(answers), 4),
        pairs=len(answers),
        gaps=sum(not score.known for _, score in answers),
    )


Answers = Sequence[tuple[QuizPair, PairScore]]


def _best_threshold(answers: Answers) -> float:
    """The threshold with the highest balanced accuracy; of several, the one nearest to one half."""
    values = sorted({score.supported for _, score in answers if score.known})
    candidates = [0.5, *((low + high) / 2 for low, high in pairwise(values))]

    def quality(threshold: float) -> float:
        right = _right_answers(answers, threshold)
        return round(fmean(right[True]) + fmean(right[False]), 9)

    return max(candidates, key=lambda threshold: (quality(threshold), -abs(threshold - 0.5)))


def _right_answers(answers: Answers, threshold: float) -> dict[bool, list[bool]]:
    """Whether each true pair was kept, and whether each lie was caught."""
    right: dict[bool, list[bool]] = {True: [], False: []}
    for pair, score in answers:
        right[pair.is_true].append(score.known and (score.supported >= threshold) == pair.is_true)
    return right


# The grade of a model, from an earlier test or a new one that must end at the deadline. Raises NexiError where there is none.
Test: TypeAlias = Callable[[float | None], Awaitable[Grade]]


@dataclass(eq=False, repr=False)
class GradedPairModel:
    """The PairModel port over another one. Its scores are calibrated: one half decides."""

    model: PairModel
    test: Test
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _grade: Grade | NexiError | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        return self.model.name

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        if not pairs:
            return []
        async with self._turn:  # the test is taken once
            if self._grade is None:
                self._grade = await catch_error(self.test(deadline))
        grade = self._grade
        if isinstance(grade, NexiError):
            return [PairScore.gap(str(grade))] * len(pairs)
        if not grade.may_be_asked:
            share = f"{grade.balanced_accuracy:.0%}"
            return [PairScore.gap(f"{self.name} was right in {share} of its test, too rarely to be asked")] * len(pairs)
        return [grade.apply(score, self.name) for score in await self.model.score(pairs, deadline=deadline)]
