"""What people are told where no search service can be reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nexi.config import name_service
from nexi.errors import NoEvidenceError
from nexi.notices import Notice
from nexi.types import Failure

MAX_NAMED = 4
# The codes of a service that cannot be reached at all. A SearXNG may also be at a wrong address in the user's own network.
UNREACHABLE = frozenset({"dns", "network"})
OWN_SERVICES = frozenset({"searxng"})


def explain_unreachable(failures: Sequence[Failure]) -> NoEvidenceError | None:
    """The error where no service of the web could be reached; None where one could, or where only the user's own was asked."""
    public = [failure.provider for failure in failures if failure.provider not in OWN_SERVICES]
    if not public or not all(failure.code in UNREACHABLE for failure in failures):
        return None
    fix = "check the connection, or answer from the knowledge base with --local; nexi doctor tests every part"
    return NoEvidenceError(Notice("network.none", "No internet connection"), cause=describe_unreachable(failures), fix=fix)


def describe_unreachable(failures: Sequence[Failure]) -> str:
    """Such as "neither DuckDuckGo nor Wikipedia could be reached"."""
    *names, last = dict.fromkeys(name_service(failure.provider) for failure in failures)
    if len(names) >= MAX_NAMED:
        best_known = [name for name in ("DuckDuckGo", "Wikipedia") if name in (*names, last)] or names[:1]
        return Notice(
            "services.none_of",
            "none of {n} search services could be reached, {services} among them",
            n=len(names) + 1,
            services=" and ".join(best_known),
        )
    if not names:
        return Notice("services.unreachable", "{service} could not be reached", service=last)
    return Notice("services.neither", "neither {services} nor {last} could be reached", services=", ".join(names), last=last)
