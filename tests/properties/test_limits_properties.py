"""Whatever is asked when, no key gets more than its burst and its rate."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from nexi.net.limits import RateLimiter
from nexi.testing import FakeClock

ASKED = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 20)), max_size=200)


@given(st.floats(1, 6000), st.integers(1, 50), ASKED)
def test_no_key_gets_more_than_its_burst_and_its_rate(per_minute: float, burst: int, asked: list[tuple[str, float]]) -> None:
    clock, taken = FakeClock(), {"a": 0, "b": 0}
    limiter, start = RateLimiter(clock, burst=burst, rate=per_minute / 60), clock.monotonic()
    for key, seconds in asked:
        clock.advance(seconds)
        wait = limiter.try_take(key)
        taken[key] += not wait
        assert wait >= 0
        assert max(taken.values()) <= burst + (clock.monotonic() - start) * per_minute / 60 + 1e-6


@given(st.floats(1, 600), st.integers(1, 5))
def test_a_key_that_waits_as_long_as_it_is_told_gets_a_token(per_minute: float, burst: int) -> None:
    clock = FakeClock()
    limiter = RateLimiter(clock, burst=burst, rate=per_minute / 60)
    assert [limiter.try_take("a") for _ in range(burst)] == [0.0] * burst
    wait = limiter.try_take("a")
    assert wait > 0
    clock.advance(math.ceil(wait) + 1e-6)
    assert limiter.try_take("a") == 0.0
