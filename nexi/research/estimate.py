"""Estimates the cost of research before money is spent: a range, because the web decides how much is read."""

from __future__ import annotations

from msgspec import Struct

from nexi.research.state import EXTRA_ROUNDS, FIRST_RESEARCHERS, TARGET_ROUNDS

__all__ = ["estimate_cost"]


CALLS_PER_RESEARCHER = (4, 9)  # at least and at most, as its phases allow
PROMPT_TOKENS_PER_CALL = (3_000, 14_000)  # on average
REPLY_TOKENS_PER_CALL = (150, 900)
REPORT_TOKENS = (1_500, 6_000)


class CostEstimate(Struct, frozen=True):
    """Low and high: model calls, tokens, and US dollars where prices are known."""

    calls: tuple[int, int]
    tokens: tuple[int, int]
    cost: tuple[float, float] | None = None

    def describe(self) -> str:
        tokens = " to ".join(map(_format_tokens, self.tokens))
        text = f"about {self.calls[0]} to {self.calls[1]} model calls and {tokens} tokens"
        return text if self.cost is None else f"{text}, ${self.cost[0]:.2f} to ${self.cost[1]:.2f}"


def estimate_cost(complexity: int, tasks: int, window: int, price: tuple[float, float] | None = None) -> CostEstimate:
    """Estimate an agenda of this many tasks; `price` is in dollars per million tokens, of input and output."""
    later = TARGET_ROUNDS[complexity] + EXTRA_ROUNDS - 1
    researchers = (tasks, tasks + later * max(1, FIRST_RESEARCHERS[complexity] // 2))
    rounds = (1, later + 1)
    calls = tuple(r * c + n + 1 for r, c, n in zip(researchers, CALLS_PER_RESEARCHER, rounds, strict=True))
    prompts = tuple(c * min(p, window) for c, p in zip(calls, PROMPT_TOKENS_PER_CALL, strict=True))
    replies = tuple(c * r + t for c, r, t in zip(calls, REPLY_TOKENS_PER_CALL, REPORT_TOKENS, strict=True))
    cost = None
    if price is not None:
        low, high = ((p * price[0] + r * price[1]) / 1e6 for p, r in zip(prompts, replies, strict=True))
        cost = (low, high)
    return CostEstimate((calls[0], calls[1]), (prompts[0] + replies[0], prompts[1] + replies[1]), cost)


def _format_tokens(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1_000_000 else f"{tokens // 1000} k"
