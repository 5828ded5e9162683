"""Two pair models, the cheaper one first: the second is asked only where the first has a gap or is undecided."""

from __future__ import annotations

from collections.abc import Sequence

from nexi.ports import PairModel
from nexi.types import PairScore

UNDECIDED = 0.2  # on either side of one half


class ChainedPairModel:
    """The PairModel port over two. Where the second has no answer either, the first one's stands."""

    def __init__(self, first: PairModel, second: PairModel) -> None:
        self._first = first
        self._second = second

    @property
    def name(self) -> str:
        return f"{self._first.name}, {self._second.name}"

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        scores = list(await self._first.score(pairs, deadline=deadline))
        doubtful = [n for n, score in enumerate(scores) if not score.known or abs(score.supported - 0.5) < UNDECIDED]
        second = await self._second.score([pairs[n] for n in doubtful], deadline=deadline) if doubtful else ()
        for n, score in zip(doubtful, second, strict=True):
            if score.known or not scores[n].known:
                scores[n] = score
        return scores
