"""Limits apart from usage: a Budget says how much a run may spend, a Meter how much is left.

A child meter spends from its parent, so a limit nests. What a call may cost is reserved before it and settled after it; a limit
reached is a StopReason, never an exception. Time is passed in.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from nexi.notices import Notice
from nexi.types import StopReason, Usage

N = TypeVar("N", int, float)
_QUOTA_FIX = Notice("fix.quota", "ask again after midnight UTC, when your quota is renewed, or ask an administrator for more")
PREFETCH_SHARE = 0.8  # work ahead of the model never touches the last fifth of the page budget


class Budget(Struct, frozen=True):
    """None means no limit."""

    max_iterations: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_model_calls: int | None = None
    max_pages: int | None = None
    is_quota: bool = False  # tokens or cost are what is left of a person's quota


def smallest_limit(*limits: N | None) -> N | None:
    return min((limit for limit in limits if limit is not None), default=None)


class _Reservation(Struct, frozen=True):
    tokens: int
    is_model_call: bool = True


class Meter:
    """What is left of a budget. One owner, one event loop: no locks."""

    def __init__(self, budget: Budget, *, started: float = 0.0, parent: Meter | None = None) -> None:
        self.budget, self.started, self.parent = budget, started, parent
        self.usage = Usage()
        self.model_calls = self.iterations = self.pages = 0
        self.reserved_tokens = self._calls_in_flight = 0  # the tokens are set aside for these calls
        self._unreplayed_usage, self._unreplayed_calls = Usage(), 0

    def child(self, budget: Budget, *, started: float) -> Meter:
        return Meter(budget, started=started, parent=self)

    @property
    def reply_room(self) -> int | None:
        """Tokens that a new call may take, of this meter and those above it; None without a limit on tokens."""
        limit = self.budget.max_tokens
        own = None if limit is None else limit - self._paid_usage.total - self.reserved_tokens
        return smallest_limit(own, self.parent.reply_room if self.parent else None)

    @property
    def _paid_usage(self) -> Usage:
        """Everything that was paid for, also in an earlier life of the run and not replayed."""
        return self.usage + self._unreplayed_usage if self._unreplayed_calls else self.usage

    def describe_spent(self) -> str:
        """Why no further model call is allowed: a limit is used up, or too little of it is left for one."""
        reply_tokens = self.reply_room
        quota, budget = Notice("budget.quota", "your quota for today"), Notice("budget.own", "the budget")
        name = quota if self.root.budget.is_quota else budget
        if self._is_spent():
            return Notice("budget.spent", "{budget} is spent", budget=name)
        if reply_tokens is None or reply_tokens <= 0:
            return Notice("budget.reserved", "the rest of {budget} is set aside for calls in flight", budget=name)
        return Notice(
            "budget.small", "{budget} has {n} tokens left, too few for another model call", budget=name, n=f"{reply_tokens:,}"
        )

    def advise_spent(self) -> str:
        """What to do when no further model call is allowed."""
        if self.root.budget.is_quota:
            return _QUOTA_FIX
        most, calls = self.budget.max_model_calls, self.model_calls + self._unreplayed_calls
        if most is not None and calls >= most:
            return Notice("fix.calls", "raise max_model_calls, which is {n}: nexi config set max_model_calls NUMBER", n=most)
        return Notice("fix.budget", "raise --max-cost or --max-tokens")

    def _is_spent(self) -> bool:
        """Whether a limit of this meter or one above it is used up, not counting what calls in flight may still cost."""
        limits, paid = self.budget, self._paid_usage
        amounts: tuple[tuple[float, float | None], ...] = (
            (paid.total, limits.max_tokens),
            (paid.cost or 0.0, limits.max_cost),
            (self.model_calls + self._unreplayed_calls, limits.max_model_calls),
        )
        is_used_up = any(limit is not None and amount >= limit for amount, limit in amounts)
        return is_used_up or (self.parent is not None and self.parent._is_spent())

    @property
    def deadline(self) -> float | None:
        """The monotonic time at which this meter, or one above it, runs out."""
        own = None if self.budget.max_seconds is None else self.started + self.budget.max_seconds
        return smallest_limit(own, self.parent.deadline if self.parent else None)

    @property
    def token_limit(self) -> int | None:
        """The tokens that this meter, or one above it, may spend in all; a cost limit counts at the price paid so far."""
        tokens_for_cost = None
        if self.budget.max_cost is not None and self.usage.cost and self.usage.total:
            tokens_for_cost = int(self.budget.max_cost / self.usage.cost * self.usage.total)
        return smallest_limit(self.budget.max_tokens, tokens_for_cost, self.parent.token_limit if self.parent else None)

    @property
    def tokens_left(self) -> int | None:
        """What this meter and those above it have left of their tokens; None without a limit."""
        limit = self.token_limit
        own = None if limit is None else limit - self.usage.total - self.reserved_tokens
        return smallest_limit(own, self.parent.tokens_left if self.parent else None)

    @property
    def root(self) -> Meter:
        return self.parent.root if self.parent else self

    @property
    def has_spending_limit(self) -> bool:
        """Whether tokens, cost or calls are limited here or above."""
        budget = self.budget
        is_limited = any(limit is not None for limit in (budget.max_tokens, budget.max_cost, budget.max_model_calls))
        return is_limited or (self.parent is not None and self.parent.has_spending_limit)

    def can_make_calls(self, count: int) -> bool:
        """Whether so many more model calls are within the limit on calls."""
        limit = self.budget.max_model_calls
        is_within = limit is None or self.model_calls + count <= limit
        return is_within and (self.parent is None or self.parent.can_make_calls(count))

    def grace(self, most: float, part: float = 0.5) -> float:
        """Seconds past the deadline for what is in flight then: as much again as the target, and at most `most`."""
        # below another meter it is a part of the time that one still has, so that who waits above is not kept waiting
        holder = self
        while holder.parent and holder.parent.deadline == self.deadline:
            holder = holder.parent
        above = holder.parent.deadline if holder.parent else None
        if self.deadline is None or above is None:
            return min(most, holder.budget.max_seconds or most)
        return min(most, (above - self.deadline) * part)

    def stop_reason(self, now: float, *, is_iteration: bool = True) -> StopReason | None:
        """The limit that forbids another step, if one does."""
        if self.deadline is not None and now >= self.deadline:
            return StopReason.TIME_TARGET
        if is_iteration and self.budget.max_iterations is not None and self.iterations >= self.budget.max_iterations:
            return StopReason.MAX_ITERATIONS
        if self._would_overrun():
            return StopReason.BUDGET_SPENT
        return self.parent.stop_reason(now, is_iteration=is_iteration) if self.parent else None

    def may_call(self, now: float) -> bool:
        """Whether one more model call is within the limits; it need not be an iteration."""
        return self.stop_reason(now, is_iteration=False) is None

    def used_share(self, now: float) -> float:
        """The largest share of any limit that is used up, from 0 to 1 and beyond."""
        limits = self.budget
        spent: list[tuple[float, float | None]] = [
            (self.usage.total, limits.max_tokens),
            (self.usage.cost or 0.0, limits.max_cost),
            (self.model_calls, limits.max_model_calls),
            (self.pages, limits.max_pages),
            (now - self.started, limits.max_seconds),
        ]
        return max((amount / limit if limit else 1.0 for amount, limit in spent if limit is not None), default=0.0)

    def extend(self, seconds: float) -> None:
        self.started += seconds

    def start_iteration(self) -> None:
        self.iterations += 1

    def reserve_call(self, tokens: int, *, is_model_call: bool = True) -> _Reservation | StopReason:
        """Set `tokens` aside for one call, or say which limit forbids it. Embeddings are paid for, but are no model calls."""
        if self._would_overrun(max(1, tokens), unreplayed=True, is_model_call=is_model_call):
            return StopReason.BUDGET_SPENT
        if self.parent:
            above = self.parent.reserve_call(tokens, is_model_call=is_model_call)
            if isinstance(above, StopReason):
                return above
        self.model_calls += is_model_call
        self.reserved_tokens += tokens
        self._calls_in_flight += is_model_call
        return _Reservation(tokens, is_model_call)

    def settle_call(self, reservation: _Reservation, usage: Usage) -> None:
        """Replace the reservation by what the call really cost."""
        self.reserved_tokens -= reservation.tokens
        self._calls_in_flight -= reservation.is_model_call
        self.usage += usage
        if self.parent:
            self.parent.settle_call(reservation, usage)

    def replay_call(self, usage: Usage) -> None:
        """Count a call that was paid for before; a meter above has it in its books already."""
        self.model_calls += 1
        self.usage += usage
        if self._unreplayed_calls:
            self._unreplayed_calls -= 1
            rest = self._unreplayed_usage
            read, written = rest.input_tokens - usage.input_tokens, rest.output_tokens - usage.output_tokens
            cost = None if rest.cost is None or usage.cost is None else max(0.0, rest.cost - usage.cost)
            self._unreplayed_usage = Usage(max(0, read), max(0, written), rest.estimated, cost)

    def carry_over(self, usage: Usage, calls: int) -> None:
        """Hold calls that an earlier life of the run paid for against new calls until they are replayed."""
        # recorded steps cost nothing, so these calls do not end the run by themselves
        self._unreplayed_usage, self._unreplayed_calls = usage, calls

    def take_page(self, *, ahead: bool = False) -> bool:
        """Count one page; `ahead` is for pages that were not asked for yet."""
        limit = self.budget.max_pages
        if limit is not None and self.pages >= (int(limit * PREFETCH_SHARE) if ahead else limit):
            return False
        if self.parent and not self.parent.take_page(ahead=ahead):
            return False
        self.pages += 1
        return True

    def restore(self, usage: Usage, calls: int, pages: int) -> None:
        self.usage += usage
        self.model_calls += calls
        self.pages += pages

    def replay_page(self) -> None:
        self.pages += 1

    def _would_overrun(self, tokens: int = 1, *, unreplayed: bool = False, is_model_call: bool = True) -> bool:
        """Whether a call that takes so many tokens, at least one, is over a limit of this meter."""
        limits, usage = self.budget, self._paid_usage if unreplayed else self.usage
        calls = self.model_calls + (self._unreplayed_calls if unreplayed else 0)
        if is_model_call and limits.max_model_calls is not None and calls >= limits.max_model_calls:
            return True
        cost, ended_calls = usage.cost or 0.0, self.model_calls - self._calls_in_flight
        if unreplayed and ended_calls and self.usage.cost:  # calls in flight will cost as much as those before them
            cost += self._calls_in_flight * self.usage.cost / ended_calls
        if limits.max_cost is not None and cost >= limits.max_cost:
            return True
        return limits.max_tokens is not None and usage.total + self.reserved_tokens + tokens > limits.max_tokens
