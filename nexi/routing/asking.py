"""Asks the services of a route at once, and replaces one that does not answer. Knows no service and no network: `ask` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from nexi.routing.route import Choice, Route
from nexi.types import Failure, SearchOutcome, ServiceAnswer

MAX_LATE_S = 3.0  # how long the others are waited for after the first answer with hits
MAX_ASKED = 10  # with all that replace one another
Ask = Callable[[Choice], Coroutine[Any, Any, SearchOutcome]]


async def ask_services(route: Route, ask: Ask, *, max_late_s: float = MAX_LATE_S) -> list[tuple[ServiceAnswer, SearchOutcome]]:
    """What each service said, in the order of the route; those that are late once there are hits are not waited for."""
    reserve = list(route.reserve)
    order: list[Choice] = []
    answers: dict[str, SearchOutcome] = {}
    loop = asyncio.get_running_loop()
    late_at: float | None = None
    async with asyncio.TaskGroup() as group:
        running: dict[asyncio.Task[SearchOutcome], Choice] = {}

        def start(choice: Choice) -> None:
            order.append(choice)
            running[group.create_task(ask(choice))] = choice

        for choice in route.first:
            start(choice)
        while running:
            seconds_left = None if late_at is None else max(0.0, late_at - loop.time())
            finished_tasks, _ = await asyncio.wait(running, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)
            fresh = [(running.pop(task), task.result()) for task in [*running] if task in finished_tasks]
            answers |= {choice.service: outcome for choice, outcome in fresh}
            if late_at is None and any(outcome.hits for _, outcome in fresh):
                late_at = loop.time() + max_late_s
            for choice, outcome in fresh:
                # A service that failed is replaced; one that has nothing only while no other has anything.
                is_lacking = not answers[choice.service].backend or not any(answer.hits for answer in answers.values())
                if not outcome.hits and reserve and len(order) < MAX_ASKED and is_lacking:
                    # By one that was chosen for the same reason, so that the general web stays asked.
                    start(reserve.pop(next((n for n, other in enumerate(reserve) if other.reason == choice.reason), 0)))
            if not finished_tasks:
                for task in running:
                    task.cancel()
                break
    outcomes = [(choice, answers.get(choice.service)) for choice in order]
    return [(_describe(choice, outcome), outcome or SearchOutcome("")) for choice, outcome in outcomes]


def _describe(choice: Choice, outcome: SearchOutcome | None) -> ServiceAnswer:
    if outcome is None:
        return ServiceAnswer(choice.service, choice.reason, 0, "late", "the others had answered, so it was not waited for")
    failure = next((f for f in outcome.failures if f.code != "filter_ignored"), Failure("", "", ""))
    if outcome.hits:
        failure = Failure("", "", "")
    return ServiceAnswer(choice.service, choice.reason, len(outcome.hits), failure.code, failure.message)
