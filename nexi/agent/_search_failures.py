"""Why a run has no evidence: what its searches and pages failed with, as one cause and the fix for that cause. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from nexi.config import name_service
from nexi.errors import FetchReason, NoEvidenceError
from nexi.net.causes import PROXY_CODE
from nexi.notices import Notice, join_causes
from nexi.routing.unreachable import UNREACHABLE, describe_unreachable, explain_unreachable
from nexi.types import Failure, Message, PageView, SearchOutcome

MAX_CAUSES = 4
OTHER_WORDS = Notice("fix.other_words", "ask in other words")
ADD_SERVICE = Notice("fix.add_service", "ask in other words, or add a search service: nexi config setup")
NO_FAULT = frozenset({"empty", "focus_dropped", "filter_ignored"})  # a service that answered


def explain_no_evidence(messages: Sequence[Message], *, message: str, cause: str = "", fix: str = "") -> NoEvidenceError:
    """The first of what stood in the way of evidence, with its fix; a limit (`cause`, `fix`) where no search service failed."""
    failures = _last_failures(messages)
    if unreachable := explain_unreachable(failures):
        return unreachable
    if faults := _list_faults(failures):
        reasons = dict.fromkeys(failure.message for failure in faults[:MAX_CAUSES])
        first = next((failure.fix for failure in faults if failure.fix), "test it: nexi doctor")
        return NoEvidenceError(message, cause=join_causes(reasons), fix=first)
    if cause:
        return NoEvidenceError(message, cause=cause, fix=fix)
    if unread := [value for value in _values(messages) if isinstance(value, PageView) and value.error]:
        # of several pages that failed, those that failed like the first are counted with it
        example = next((view for view in unread if view.fix), unread[0])
        alike = len({view.url for view in unread if view.error == example.error})
        others = len({view.url for view in unread}) - alike
        code, _, words = example.error.partition(": ")
        reason = words if code in get_args(FetchReason) else example.error
        more = f" ({alike} pages)" if alike > 1 else ""
        rest = f"; {others} more could not be read" if others else ""
        return NoEvidenceError(message, cause=f"{reason}{more}{rest}", fix=example.fix or OTHER_WORDS)
    if failures:
        empty = Notice("search.empty", "{services} found nothing for this question", services=_name_services(failures))
        return NoEvidenceError(message, cause=empty, fix=ADD_SERVICE)
    return NoEvidenceError(message, cause=Notice("pages.none", "no page was read"), fix=OTHER_WORDS)


def describe_failed_web(messages: Sequence[Message], store: str) -> str:
    """Why the web has no part in an answer: no service brought a hit, and those there are came from the backend `store`."""
    if any(hit.backend != store for outcome in list_outcomes(messages) for hit in outcome.hits):
        return ""
    failures = _last_failures(messages)
    if not failures:
        return ""
    faults, names = _list_faults(failures), _name_services(failures)
    if not faults:
        return Notice("search.empty_web", "{services} found nothing on the web for this question", services=names)
    is_unreachable = all(failure.code in UNREACHABLE for failure in faults)
    why = describe_unreachable(faults) if is_unreachable else join_causes(f.message for f in faults[:MAX_CAUSES])
    return Notice("search.failed", "the web could not be searched: {cause}", cause=why)


def describe_idleness(messages: Sequence[Message], model: str) -> str:
    """What the model did not do; "" where what it tried failed, which is no fault of the model."""
    values = list(_values(messages))
    if not any(isinstance(value, SearchOutcome | PageView) for value in values):
        return Notice("model.no_tools", "{model} did not use its tools", model=model)
    has_hits = any(outcome.hits for outcome in list_outcomes(messages))
    if not has_hits or any(isinstance(value, PageView) for value in values):
        return ""
    return Notice("model.no_page", "{model} opened no page that was found", model=model)


def _last_failures(messages: Sequence[Message]) -> list[Failure]:
    """The last failure of each service in searches that had no hits; one that rests is named with what it failed with."""
    last: dict[str, Failure] = {}
    for outcome in list_outcomes(messages):
        for failure in outcome.failures if not outcome.hits else ():
            if failure.code != "suspended" or failure.provider not in last:
                last[failure.provider] = failure
    return list(last.values())


def list_outcomes(messages: Sequence[Message]) -> Iterator[SearchOutcome]:
    """What the searches of a conversation found, one by one."""
    return (value for value in _values(messages) if isinstance(value, SearchOutcome))


def _values(messages: Sequence[Message]) -> Iterator[object]:
    """What the tools of a conversation gave back, one by one."""
    for message in messages:
        value = message.result.value if message.result else None
        yield from value if isinstance(value, tuple) else ()


def _list_faults(failures: Sequence[Failure]) -> list[Failure]:
    """The services that failed; where a proxy stood before them, its fault is the only one that is known."""
    faults = [failure for failure in failures if failure.code not in NO_FAULT]
    return [failure for failure in faults if failure.code == PROXY_CODE][:1] or faults


def _name_services(failures: Sequence[Failure]) -> str:
    return " and ".join(dict.fromkeys(name_service(failure.provider) for failure in failures))
