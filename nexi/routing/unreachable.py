"""What people are told where no search service can be reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nexi.config import name_service
from nexi.errors import NoEvidenceError
from nexi.types import Failure

__all__ = ["UNREACHABLE", "describe_unreachable", "explain_unreachable"]

MAX_NAMED = 4
# The codes of a service that cannot be reached at all. A SearXNG may also be at a wrong address in the user's own network.
UNREACHABLE = frozenset({"dns", "network"})
OWN_SERVICES = frozenset({"searxng"})


def explain_unreachable(failures: Sequence[Failure]) -> NoEvidenceError | None:
    """The error where no service of the web could be reached; None where one could, or where only the user's own was asked."""
    public = [failure.provider for failure in failures if failure.provider not in OWN_SERVICES]
    if not public or not all(failure.code in UNREACHABLE for failure in failures):
        return None
    return NoEvidenceError(
        "No internet connection",
        cause=describe_unreachable(failures),
        fix="check the connection, or answer from the knowledge base with --local; nexi doctor tests every part",
    )


def describe_unreachable(failures: Sequence[Failure]) -> str:
    """Such as "neither DuckDuckGo nor Wikipedia could be reached"."""
    *names, last = dict.fromkeys(name_service(failure.provider) for failure in failures)
    if len(names) >= MAX_NAMED:
        best_known = [name for name in ("DuckDuckGo", "Wikipedia") if name in (*names, last)] or names[:1]
        return f"none of {len(names) + 1} search services could be reached, {' and '.join(best_known)} among them"
    return f"neither {', '.join(names)} nor {last} could be reached" if names else f"{last} could not be reached"
