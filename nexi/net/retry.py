"""How long a service asks to be left alone, in the three forms that services use.

Adapters of every family read it; whether to wait is for those above them to decide. Pure: the time comes with the answer, or is
passed in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The server's own wish in seconds: `retry-after-ms`, or `Retry-After` as seconds or as a date.

    Without `now` a date is measured from the answer's own, so that a clock that is wrong does not matter.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("retry-after", "").strip()
    seconds = _parse_number(wish)
    if seconds is not None or not wish:
        return seconds
    until, said = _parse_moment(wish), now or _parse_moment(headers.get("date", ""))
    return max(0.0, (until - _make_aware(said)).total_seconds()) if until and said else None


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _parse_moment(date: str) -> datetime | None:
    try:
        return _make_aware(parsedate_to_datetime(date))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _make_aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
