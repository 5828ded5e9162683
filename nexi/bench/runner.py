"""Asks the questions of a benchmark in parallel, and saves every answer as soon as it arrives.

Questions in the results file are not asked again. The cost limit is for the whole benchmark.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from nexi.app import Nexi, RunRequest
from nexi.bench.questions import BenchQuestion
from nexi.bench.results import BenchRow, Results
from nexi.errors import ConfigError, NexiError
from nexi.events import RunFailed
from nexi.types import Usage


class BenchRunner:
    """Asks the questions that have no result yet."""

    def __init__(
        self,
        nexi: Nexi,
        results: Results,
        template: RunRequest,
        *,
        workers: int = 2,
        max_cost: float | None = None,
        tell: Callable[[BenchQuestion, BenchRow], None] = lambda question, row: None,
    ) -> None:
        self._nexi, self._results, self._template = nexi, results, template
        self._workers, self._max_cost, self._tell = workers, max_cost, tell
        self._in_flight = 0
        self.is_out_of_budget = False

    async def run(self, questions: Sequence[BenchQuestion]) -> None:
        """Ask all questions without a final row. Raises StoreError if rows cannot be written."""
        rows = self._results.rows
        queue = [q for q in reversed(questions) if q.id not in rows or not rows[q.id].is_done]
        failure: NexiError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._workers, len(queue))):
                    group.create_task(self._ask_waiting(queue))
        except* NexiError as bundle:
            failure = next(e for e in bundle.exceptions if isinstance(e, NexiError))
        if failure is not None:
            raise failure

    async def _ask_waiting(self, queue: list[BenchQuestion]) -> None:
        while queue:
            money = None
            if self._max_cost is not None:  # an equal share of the rest for each parallel question
                money = (self._max_cost - self._results.cost) / (self._workers if self._in_flight else 1)
            if money is not None and money <= 0:
                self.is_out_of_budget = True
                return
            question = queue.pop()
            self._in_flight += 1
            try:
                row = await self._ask_question(question, money)
            finally:
                self._in_flight -= 1
            self._results.add(row)
            self._tell(question, row)

    async def _ask_question(self, question: BenchQuestion, money: float | None) -> BenchRow:
        start = time.perf_counter()
        limits = replace(self._template.limits, max_cost=money)
        async with self._nexi.search(replace(self._template, question=question.text, limits=limits)) as run:
            await run.drive()
            seconds = round(time.perf_counter() - start, 3)
            try:
                result = run.result()
            except ConfigError:
                raise
            except NexiError as error:
                usage = next((fact.usage for fact in reversed(run.facts) if isinstance(fact, RunFailed)), Usage())
                message = f"{error.code}: {error}"[:500]
                return BenchRow(question.id, tokens=usage.total, cost=usage.cost, seconds=seconds, error=message)
        end, review = result.finished, result.answer.review
        return BenchRow(
            question.id,
            result.answer.text,
            citations=tuple(source.url for source in result.answer.sources),
            read=tuple(source.url for source in result.session.book.sources),
            pages=end.pages,
            model_calls=end.model_calls,
            tokens=end.usage.total,
            cost=end.usage.cost,
            seconds=seconds,
            supported=review.proof.passed if review else 0,
            checked=len(review.proof.checked) if review else 0,
            conflicts=len(result.answer.conflicts),
            run=result.id,
        )
