"""The time a server believes it is, from the Date header of any answer: a clock to compare our own with."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from nexi.errors import ConfigError
from nexi.net.trust import MACHINE, Trust


async def server_time(url: str, *, patience_s: float, proxy: str | None = None, trust: Trust = MACHINE) -> datetime | None:
    """None where the server cannot be reached or names no time."""
    import httpx2

    try:
        verify = trust.context() or True
        async with httpx2.AsyncClient(timeout=patience_s, trust_env=False, proxy=proxy or None, verify=verify) as client:
            answer = await client.head(url)
        then = parsedate_to_datetime(answer.headers.get("date", ""))
    except (ConfigError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError, OverflowError, ImportError):
        return None
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone(UTC)
