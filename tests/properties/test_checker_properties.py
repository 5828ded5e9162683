"""Whatever a model writes: what is out is never taken back, and the proof is of what is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.types import Review, Verdict
from nexi.verify import MARK, FailedClaim
from tests.verify.shelf import Desk

SENTENCES = (
    "The Eiffel Tower is 330 metres tall [1].",
    "It was completed in 1889 [1].",
    "The Tacoma bridge collapsed in March 1951 [2].",
    "The Loire flows into the Atlantic Ocean [2].",
    "The Loire flows into the Atlantic Ocean.",
    "Bananas are blue [9].",
    "- The river Loire is 1,006 kilometres long [3].\n",
    "- The river Loire is 9,006 kilometres long [3].\n",
    "| tall | 330 metres [1] |\n",
    "```\ncode [2].\n```\n",
    "# Heading\n",
    "\n\n",
    "Nobody knows",
)
answers = st.lists(st.one_of(st.sampled_from(SENTENCES), st.text("ab [1]2.\n|-*`", max_size=12)), max_size=7).map(" ".join)
settle = settings(max_examples=60, deadline=None)


class Watch:
    """Writes an answer and notes what was out at every step."""

    def __init__(self, text: str, *, strict: bool, rewrites: bool, replies: Sequence[str]) -> None:
        self.seen: list[str] = []
        self.asked = 0
        self.desk = Desk(strict=strict, rewrites=rewrites)
        self.review: Review = asyncio.run(self._write(text, replies))

    async def _write(self, text: str, replies: Sequence[str]) -> Review:
        release = self.desk.released.append
        self.desk.checker._release = lambda piece: (release(piece), self.seen.append("".join(self.desk.released)))[0]
        await self.desk.write(text, 17)

        async def rewrite(failed: Sequence[FailedClaim]) -> dict[int, str]:
            self.asked += 1
            return dict(zip(range(len(failed)), replies, strict=False))

        return await self.desk.checker.finish(rewrite)


@settle
@given(answers, st.booleans(), st.booleans(), st.lists(st.sampled_from((*SENTENCES[:5], "", "gibberish [1]")), max_size=3))
def test_released_text_is_a_prefix_of_the_answer_and_the_proof_is_of_it(
    text: str, strict: bool, rewrites: bool, replies: list[str]
) -> None:
    watch = Watch(text, strict=strict, rewrites=rewrites, replies=replies)
    answer, review = watch.desk.text, watch.review
    assert all(answer.startswith(seen) for seen in watch.seen)
    assert "".join(watch.desk.released) == answer == answer.strip()
    assert [answer[c.start : c.end] for c in review.proof.claims] == [c.text for c in review.proof.claims]
    assert watch.asked <= 1
    unsupported = {c.index for c in review.proof.checked if c.verdict is not Verdict.FOUND}
    assert unsupported == (set() if strict else set(review.marked))
    assert answer.count(MARK.strip()) == len(review.marked)
