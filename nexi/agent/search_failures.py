"""Why a run has no evidence: what its searches and pages failed with, as one cause and one fix for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexi.config import name_service
from nexi.errors import NoEvidenceError
from nexi.types import Failure, Message

MAX_CAUSES = 4
# The codes of a service that cannot be reached at all. A SearXNG may also be at a wrong address in the user's own network.
UNREACHABLE = frozenset({"dns", "network"})
OWN_SERVICES = frozenset({"searxng"})


def explain_no_evidence(messages: Sequence[Message], *, message: str, cause: str, fix: str) -> NoEvidenceError:
    """The error of a run without evidence; where no service on the internet could be reached, that is the only cause."""
    failures = _last_failures(messages)
    public = [failure.provider for failure in failures if failure.provider not in OWN_SERVICES]
    if public and all(failure.code in UNREACHABLE for failure in failures):
        return NoEvidenceError(
            "No internet connection",
            cause=f"{_join_names([failure.provider for failure in failures])} could be reached",
            fix="check the connection, or answer from the knowledge base with --local; nexi doctor tests every part",
        )
    causes = "; ".join(part for part in (cause, _describe_failures(messages)) if part)
    return NoEvidenceError(message, cause=causes or "no page was read", fix=fix)


def describe_failed_web(messages: Sequence[Message], stored: str) -> str:
    """Why the web has no part in an answer: every service failed, and hits, if any, came from the backend `stored`."""
    outcomes = (outcome for message in messages for outcome in _outcomes_of(message))
    if any(hit.backend != stored for outcome in outcomes for hit in getattr(outcome, "hits", ())):
        return ""
    failures = _last_failures(messages)
    if failures and all(failure.code in UNREACHABLE for failure in failures):
        return f"{_join_names([failure.provider for failure in failures])} could be reached"
    return "; ".join(failure.message.partition(";")[0] for failure in failures[:MAX_CAUSES])


def _describe_failures(messages: Sequence[Message]) -> str:
    """What failed, one phrase for each service and page, in their own words; "" when nothing did."""
    causes = [f"{failure.provider}: {failure.message}" for failure in _last_failures(messages)]
    outcomes = (outcome for message in messages for outcome in _outcomes_of(message))
    causes += [f"{outcome.url}: {outcome.error}" for outcome in outcomes if getattr(outcome, "error", "")]
    return "; ".join(dict.fromkeys(causes[:MAX_CAUSES]))


def _last_failures(messages: Sequence[Message]) -> list[Failure]:
    """The last failure of each service in searches that had no hits."""
    last: dict[str, Failure] = {}
    for message in messages:
        for outcome in _outcomes_of(message):
            if not getattr(outcome, "hits", True):
                last.update({failure.provider: failure for failure in outcome.failures})
    return list(last.values())


def _outcomes_of(message: Message) -> Sequence[Any]:
    value = message.result.value if message.result else None
    return value if isinstance(value, tuple) else ()


def _join_names(providers: Sequence[str]) -> str:
    """Such as "neither DuckDuckGo nor Wikipedia"."""
    *names, last = map(name_service, providers)
    return f"neither {', '.join(names)} nor {last}" if names else f"not even {last}"
