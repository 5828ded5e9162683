"""The user's own model as a judge: several numbered claims with their passages in one request, verdicts as JSON.

The PairModel port is above; below is the LLM port, metered by whoever built it. What a model replies is never trusted: an
item that is missing, unreadable or given twice is a gap, and nothing a reply says can raise an item it does not name.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.checking.gaps import TOO_LATE, UNREADABLE, build_gap
from nexi.checking.judge import list_entries, read_number
from nexi.errors import ContextOverflowError, LLMError
from nexi.ports import LLM, Clock
from nexi.prompts import render
from nexi.types import Message, PairScore, Usage

__all__ = ["CHARS_PER_TOKEN", "MAX_ITEMS", "TOKENS_PER_ITEM", "JudgePairModel"]


MAX_ITEMS = 24  # of one request
MAX_PASSAGES = 2  # of one claim
MAX_PASSAGE_CHARS = 900
MAX_CLAIM_CHARS = 1_200
MAX_REASON_CHARS = 200
MAX_CONCURRENT = 3
MAX_WAIT_S = 120.0  # for one request where the caller sets no deadline
TOKENS_PER_ITEM = 60  # of a reply
MIN_REPLY_TOKENS = 300
CHARS_PER_TOKEN = 3  # a cautious estimate
DEFAULT_SURE = 80
VERDICTS = ("supported", "not_supported", "contradicted")
OVER_BUDGET = "the judge's share of the budget is used up"

_BLANK = re.compile(r"\s+")


class JudgedItem(Struct, frozen=True):
    """One claim with its passages, and the positions of the pairs it answers for."""

    claim: str
    passages: tuple[str, ...]
    positions: tuple[int, ...]


class JudgePairModel:
    """The PairModel port over a language model.

    Neighbouring pairs with the same hypothesis are one claim with two passages and share a score. Pairs are asked in the
    order given: `allowance` says how many tokens may be spent in all, and what no longer fits is a gap. `spent` is what the
    requests cost so far.
    """

    def __init__(
        self,
        llm: LLM,
        clock: Clock,
        *,
        allowance: Callable[[], int] | None = None,
        prompts_folder: Path | None = None,
        max_reply_tokens: int = 4_096,
    ) -> None:
        self._llm = llm
        self._clock = clock
        self._allowance = allowance
        self._folder = prompts_folder
        self._max_reply_tokens = max_reply_tokens
        self.spent = Usage()

    @property
    def name(self) -> str:
        return _BLANK.sub(" ", self._llm.name).strip() or "judge"

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        instructions = render("entailment", folder=self._folder)  # raises here for a mistake in the user's own file
        scores = [build_gap(OVER_BUDGET)] * len(pairs)
        limit = asyncio.Semaphore(MAX_CONCURRENT)

        async def judge_batch(batch: Sequence[JudgedItem]) -> None:
            async with limit:
                verdicts = await self._judge_items(instructions, batch, deadline)
            for item, verdict in zip(batch, verdicts, strict=True):
                for position in item.positions:
                    scores[position] = verdict

        async with asyncio.TaskGroup() as tasks:
            for batch in self._affordable_batches(instructions, group_pairs(pairs)):
                tasks.create_task(judge_batch(batch))
        return scores

    def _affordable_batches(self, instructions: str, items: Sequence[JudgedItem]) -> Iterator[Sequence[JudgedItem]]:
        left = self._allowance() - self.spent.total if self._allowance else None
        for start in range(0, len(items), MAX_ITEMS):
            batch = []
            cost = _count_tokens(instructions)
            for item in items[start : start + MAX_ITEMS]:
                cost += _count_tokens(_item_text(0, item)) + TOKENS_PER_ITEM
                if left is not None and cost > left:
                    break
                batch.append(item)
            if not batch:
                return
            left = None if left is None else left - cost
            yield batch

    async def _judge_items(self, instructions: str, items: Sequence[JudgedItem], deadline: float | None) -> list[PairScore]:
        """One score per item. A batch that the window cannot hold is asked in halves."""
        try:
            return read_verdicts(await self._ask_model(instructions, items, deadline), len(items))
        except ContextOverflowError as error:
            if len(items) == 1:
                return [build_gap(f"the judge was not asked ({error})")]
            half = len(items) // 2
            first = await self._judge_items(instructions, items[:half], deadline)
            return [*first, *await self._judge_items(instructions, items[half:], deadline)]
        except LLMError as error:
            self.spent += error.usage or Usage()
            return [build_gap(f"the judge could not be asked ({error})")] * len(items)
        except TimeoutError:
            return [build_gap(TOO_LATE)] * len(items)

    async def _ask_model(self, instructions: str, items: Sequence[JudgedItem], deadline: float | None) -> str:
        now = self._clock.monotonic()
        until = now + MAX_WAIT_S if deadline is None else deadline
        if until <= now:
            raise TimeoutError
        task = "\n\n".join(_item_text(n, item) for n, item in enumerate(items, 1))
        async with asyncio.timeout(until - now):
            reply = await self._llm.complete(
                [Message("system", instructions), Message("user", task)],
                max_tokens=min(self._max_reply_tokens, max(MIN_REPLY_TOKENS, TOKENS_PER_ITEM * len(items) * 2)),
                temperature=0.0,
                deadline=until,
                schema=reply_schema(len(items)),
            )
        self.spent += reply.usage
        return reply.text


def group_pairs(pairs: Sequence[tuple[str, str]]) -> list[JudgedItem]:
    """Claims with up to two passages each, in the order of the pairs."""
    items = []
    for claim, group in groupby(enumerate(pairs), key=lambda numbered: numbered[1][1]):
        numbered = list(group)
        for start in range(0, len(numbered), MAX_PASSAGES):
            part = numbered[start : start + MAX_PASSAGES]
            items.append(JudgedItem(claim, tuple(premise for _, (premise, _) in part), tuple(position for position, _ in part)))
    return items


def _item_text(n: int, item: JudgedItem) -> str:
    """Passages and claim as JSON strings, so that nothing in them can end the quotation."""
    lines = [f"Item {n}", *(f"Passage: {_quote_text(p, MAX_PASSAGE_CHARS)}" for p in drop_contained(item.passages))]
    return "\n".join([*lines, f"Claim: {_quote_text(item.claim, MAX_CLAIM_CHARS)}"])


def drop_contained(passages: Sequence[str]) -> list[str]:
    """The passages without those that are part of another one."""
    return [
        p for n, p in enumerate(passages) if not any(p in q and (p != q or m < n) for m, q in enumerate(passages) if m != n)
    ]


def _quote_text(text: str, most: int) -> str:
    return json.dumps(_BLANK.sub(" ", text).strip()[:most].encode("utf-8", "replace").decode(), ensure_ascii=False)


def _count_tokens(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // CHARS_PER_TOKEN + 1


def reply_schema(most: int) -> dict[str, Any]:
    entry = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "differs": {"type": "string"},
            "verdict": {"type": "string", "enum": list(VERDICTS)},
            "sure": {"type": "integer"},
        },
        "required": ["n", "differs", "verdict", "sure"],
        "additionalProperties": False,
    }
    entries = {"type": "array", "items": entry, "maxItems": most}
    return {"type": "object", "properties": {"items": entries}, "required": ["items"], "additionalProperties": False}


def read_verdicts(text: str, count: int) -> list[PairScore]:
    """One score per item of a reply in any order; an item that is missing, unreadable or judged twice is a gap."""
    scores = [build_gap(UNREADABLE)] * count
    seen: set[int] = set()
    for entry in list_entries(text):
        number = read_number(entry.get("n"))
        if number is None or not 1 <= number <= count:
            continue
        repeated = number in seen
        seen.add(number)
        scores[number - 1] = build_gap(UNREADABLE) if repeated else _score_of(entry)
    return scores


def _score_of(entry: Mapping[str, Any]) -> PairScore:
    verdict = entry.get("verdict")
    verdict = re.sub(r"[\s-]+", "_", verdict.strip().casefold()) if isinstance(verdict, str) else ""
    sure = entry.get("sure", DEFAULT_SURE)
    readable = isinstance(sure, int | float) and not isinstance(sure, bool) and math.isfinite(sure) and 0 <= sure <= 100
    if verdict not in VERDICTS or not readable:
        return build_gap(UNREADABLE)
    certainty = 0.5 + (sure * 100 if isinstance(sure, float) and sure < 1 else sure) / 200
    differs = entry.get("differs")
    reason = _BLANK.sub(" ", differs).strip()[:MAX_REASON_CHARS] if isinstance(differs, str) else ""
    if verdict == "supported":
        return PairScore(certainty, 0.0, reason=reason)
    return PairScore(1 - certainty, certainty if verdict == "contradicted" else 0.0, reason=reason)
