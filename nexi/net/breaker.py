"""When a failing backend rests and when it is asked again: a pure state machine.

Above it are the searcher, which asks and reports, and the adapter that keeps states in a file; below it nothing. It knows
no clock, no file and no backend: times are seconds that somebody passes in.

    closed (None) --failure--> open --its time passes--> half-open --one trial: success--> closed
                                 ^------------------------------------ failure --'

A rest begins short, because one refusal says little, and doubles with every further one. The searcher asks a suspended
backend anyway when no other one is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["State", "Suspension", "after_failure", "after_success", "current_standing", "format_duration", "try_admit"]

DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0
ERROR_STEP_S = 5.0
MAX_ERROR_S = 120.0
TRIAL_S = 30.0
MAX_WISH_S = DAY  # a service that asks for a longer rest is tried again after this

# The first rest and the longest one after a refusal; each refusal in a row doubles it.
REFUSAL_RESTS_S: Mapping[str, tuple[float, float]] = {
    "limiter": (10.0, HOUR),
    "rate_limit": (10.0, HOUR),
    "captcha": (MINUTE, 6 * HOUR),
    "refused_us": (MINUTE, 6 * HOUR),
    "quota": (5 * MINUTE, 6 * HOUR),
    "wrong_key": (5 * MINUTE, DAY),
}
# These say nothing of the backend's health: the query, this installation, or an answer that may just be empty.
NO_FAULT = frozenset({"bad_query", "not_installed", "empty_or_blocked", "empty"})

Standing = Literal["closed", "open", "half_open"]


class Suspension(Struct, frozen=True):
    """A backend that rests from `since` to `until`, why, and after how many failures in a row."""

    since: float
    until: float
    code: str
    reason: str = ""
    fix: str = ""
    errors: int = 1
    trial_until: float = 0.0


State = Suspension | None


def current_standing(state: State, now: float) -> Standing:
    """Where a backend stands. A clock that was set back ends a rest rather than making it endless."""
    if state is None:
        return "closed"
    is_resting = state.since <= now < state.until
    is_on_trial = state.trial_until - TRIAL_S <= now < state.trial_until
    return "open" if is_resting or is_on_trial else "half_open"


def try_admit(state: State, now: float) -> tuple[bool, State]:
    """Whether to ask now, and the state after. Of those who ask after a rest, the first tries and the others wait for it."""
    if state is None or current_standing(state, now) == "open":
        return state is None, state
    return True, replace(state, trial_until=now + TRIAL_S)


def after_success(state: State) -> State:
    """An answer, even an empty one, closes the breaker."""
    return None


def after_failure(
    state: State, now: float, code: str, *, reason: str = "", fix: str = "", retry_after: float | None = None
) -> State:
    """The state after a failure. Failures of requests that were under way together count as one."""
    if code in NO_FAULT:
        return state if state is None else replace(state, trial_until=0.0)
    together = state is not None and state.since <= now < state.until
    errors = (state.errors if state else 0) + (0 if together else 1)
    until = now + rest_seconds(code, errors, retry_after)
    if state and together and state.until >= until:
        return state
    return Suspension(now, until, code, reason[:300], fix[:300], errors)


def rest_seconds(code: str, errors: int, retry_after: float | None = None) -> float:
    """How long a backend rests; a service's own wish goes before our table."""
    if code not in REFUSAL_RESTS_S:
        return min(MAX_ERROR_S, ERROR_STEP_S * max(1, errors))
    if retry_after is None or not math.isfinite(retry_after):
        first, longest = REFUSAL_RESTS_S[code]
        return min(longest, first * 2.0 ** min(errors - 1, 20))  # any longest rest is reached before the twentieth
    return min(MAX_WISH_S, max(1.0, retry_after))


def format_duration(seconds: float) -> str:
    """A time for people."""
    whole = max(1, math.ceil(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{math.ceil(whole / 60)} min" if whole < 2 * HOUR else f"{math.ceil(whole / HOUR)} h"
