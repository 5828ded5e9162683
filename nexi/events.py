"""What a run says: facts and deltas, and the one codec for both.

A fact happened. It is numbered and committed to the run log before any door sees it; every run ends with exactly one
terminal fact, and every tool that started finishes. A delta is ephemeral and never logged; the fact that follows
replaces it. A fact names its `agent`, the researcher it belongs to; "" is the run itself.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, TypeAlias, Union

from msgspec import Struct

from nexi.errors import FetchReason
from nexi.notices import TABLE, add_notices, restore_notices
from nexi.types import (
    Answered,
    Conflict,
    Evidence,
    Failure,
    Finish,
    Hit,
    Imprint,
    Purpose,
    ReplyDefect,
    Review,
    Source,
    StopReason,
    ToolCall,
    Usage,
    Verdict,
)


class _Event(Struct, frozen=True):
    """Its tag in logs and streams is the name of its class, which therefore never changes."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class RunStarted(_Event, frozen=True):
    """A question was taken, and under which settings it is answered."""

    query: str
    effort: str
    model: str
    mode: str = "search"
    max_iterations: int = 0
    settings: Mapping[str, Any] = {}
    request: Mapping[str, Any] = {}  # what was asked for, as `app.request` reads it


class RunResumed(_Event, frozen=True):
    """A run was resumed after this many facts, having worked for so many seconds."""

    after: int
    seconds: float


class ModelAsked(_Event, frozen=True):
    """The intent to spend: committed before the request leaves."""

    call: int
    purpose: Purpose
    model: str
    prompt_tokens: int
    prompt_digest: str = ""
    agent: str = ""


class ModelReplied(_Event, frozen=True):
    """A reply that was paid for, whole, so that it is never bought twice."""

    call: int
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    finish: Finish
    seconds: float
    agent: str = ""
    defect: ReplyDefect | None = None


class ModelFailed(_Event, frozen=True):
    """A call that brought no reply, after its retries, or that was broken off; what it cost all the same is `usage`."""

    call: int
    code: str
    message: str
    fix: str
    seconds: float
    agent: str = ""
    usage: Usage = Usage()
    text: str = ""  # what had arrived of the reply by then
    arrived: tuple[ToolCall, ...] = ()  # one without an id was still coming
    window: int = 0  # which a server named when it refused a request for its length


class ToolStarted(_Event, frozen=True):
    """A tool call of the model begins, as the model wrote it."""

    call_id: str
    name: str
    arguments: str
    agent: str = ""


class ToolFinished(_Event, frozen=True):
    """A tool call ended; `text` is what the model reads."""

    call_id: str
    name: str
    ok: bool
    text: str
    seconds: float
    agent: str = ""


class SearchDelayed(_Event, frozen=True):
    """A backend failed in a way that may pass: it is asked again after so many seconds."""

    query: str
    backend: str
    code: str
    seconds: float
    agent: str = ""


class SearchFinished(_Event, frozen=True):
    """One query was answered, by which backend, and who failed before it."""

    query: str
    backend: str
    hits: tuple[Hit, ...]
    failures: tuple[Failure, ...]
    seconds: float
    agent: str = ""

    @property
    def reason(self) -> str:
        """Why no service answered, in the words of the last one; "" where one did."""
        return "" if self.backend or self.hits or not self.failures else self.failures[-1].message


class PageFetched(_Event, frozen=True):
    """The text is kept under `digest` in the shared pages folder, and its links, one a line, under `links`."""

    url: str
    final_url: str
    title: str
    digest: str
    chars: int
    downloaded_bytes: int
    seconds: float
    ahead: bool = False
    agent: str = ""
    imprint: Imprint = Imprint()
    links: str = ""


class PageFailed(_Event, frozen=True):
    """A page that could not be read, with one of the fetch reasons."""

    url: str
    reason: FetchReason
    message: str
    seconds: float
    ahead: bool = False
    agent: str = ""


class SourceNumbered(_Event, frozen=True):
    """A page was handed to the model under this number."""

    source: Source
    agent: str = ""


class SourcesRenumbered(_Event, frozen=True):
    """The answer cites its sources in the order of their first use; these have other numbers than the model was given."""

    sources: tuple[Source, ...]
    agent: str = ""


class ContextCompacted(_Event, frozen=True):
    """Older turns became a summary, or could not."""

    tokens_before: int
    tokens_after: int
    ok: bool
    agent: str = ""


class PrefetchEnded(_Event, frozen=True):
    """How much work ahead of the model was used."""

    used: int
    unused: tuple[str, ...]
    agent: str = ""


class AgendaProposed(_Event, frozen=True):
    """A plan waits for a person's word before money is spent; `estimate` says in a sentence what it may come to."""

    tasks: tuple[str, ...]
    complexity: int
    by: str = "model"
    estimate: str = ""


class AgendaSet(_Event, frozen=True):
    """A deep question was divided into tasks, one researcher each, and `estimate` says in a sentence what it may come to."""

    tasks: tuple[str, ...]
    complexity: int
    by: str = "model"  # or fallback, built-in, user
    estimate: str = ""
    seconds: float = 0.0  # that a person took over it, which no limit counts


class ResearcherStarted(_Event, frozen=True):
    """A researcher took a task. Its id, as in `1.2` for the second of round one, is the `agent` of what it does."""

    researcher: str
    round: int
    task: str


class ReportsShared(_Event, frozen=True):
    """Reports of others reached a researcher before its turn of this number; 0 is its first words."""

    researcher: str
    turn: int
    reports: tuple[str, ...]


class ResearcherReported(_Event, frozen=True):
    researcher: str
    report: str
    stop: StopReason = StopReason.FINAL_ANSWER


class ResearcherFailed(_Event, frozen=True):
    researcher: str
    code: str
    message: str
    fix: str = ""


class RoundEvaluated(_Event, frozen=True):
    """All researchers of a round have ended and were judged: `delegate` with new tasks, or `synthesise` with the report."""

    round: int
    decision: str
    tasks: tuple[str, ...] = ()
    text: str = ""
    by: str = "model"


class LimitNear(_Event, frozen=True):
    """More than four fifths of a limit are used: the evaluator is told."""


class LimitApplied(_Event, frozen=True):
    """A limit decided what an agent did at this place. In a replay, where no time passes, this fact decides it."""

    at: str
    stop: StopReason
    agent: str = ""


class LimitReached(_Event, frozen=True):
    """The run may begin nothing more: it goes on to its answer from what there is."""

    stop: StopReason


class ConflictsFound(_Event, frozen=True):
    """The pages that were read disagree on something the answer or the question is about."""

    conflicts: tuple[Conflict, ...]


class KnowledgeSearched(_Event, frozen=True):
    """The knowledge store was asked; `best` is the score of the first passage, `urls` the pages of all, best first."""

    query: str
    passages: int
    best: float
    urls: tuple[str, ...]
    seconds: float
    agent: str = ""


class PageIndexed(_Event, frozen=True):
    """A page is in the knowledge store. `outcome`: stored, unchanged, linked (equal content is there) or empty."""

    url: str
    outcome: str
    chunks: int
    embedded: int
    seconds: float
    agent: str = ""


class Judged(_Event, frozen=True):
    """A judgement of a knowledge search: about completeness, urls, queries or hints, by a model or by the stand-in."""

    about: str
    by: str
    score: float = 0.0
    items: tuple[str, ...] = ()
    agent: str = ""


class Warned(_Event, frozen=True):
    """Something the user should know although the run goes on. Of warnings with the same `cause` only the first is emitted."""

    code: str
    message: str
    agent: str = ""
    cause: str = ""


class AnswerChecked(_Event, frozen=True):
    """The answer was compared with the pages it cites, sentence by sentence; the terminal fact follows."""

    review: Review
    agent: str = ""


class RunFinished(_Event, frozen=True):
    """Terminal: an answer, whole, with the sources it cites and what it cost."""

    answer: str
    sources: tuple[Source, ...]
    stop: StopReason
    iterations: int
    usage: Usage
    seconds: float
    pages: int
    model_calls: int
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    answered: Answered = ""


class RunFailed(_Event, frozen=True):
    code: str
    message: str
    cause: str
    fix: str
    stop: StopReason
    iterations: int
    usage: Usage
    seconds: float


class TextDelta(_Event, frozen=True):
    """A stretch of the answer whose citations passed; the terminal fact repeats it whole."""

    text: str


class SentenceMark(Struct, frozen=True):
    start: int
    end: int
    verdict: Verdict
    reason: str = ""


class MarksDelta(_Event, frozen=True):
    """What rules make of the sentences that were just released; `answer_checked` has what a judge raised or lowered."""

    marks: tuple[SentenceMark, ...]


class StatusDelta(_Event, frozen=True):
    """What is going on, for a spinner."""

    text: str


Fact: TypeAlias = (
    RunStarted | RunResumed | ModelAsked | ModelReplied | ModelFailed | ToolStarted | ToolFinished | SearchDelayed
    | SearchFinished | PageFetched | PageFailed | SourceNumbered | SourcesRenumbered | ContextCompacted | PrefetchEnded
    | AgendaProposed | AgendaSet | ResearcherStarted | ReportsShared | ResearcherReported | ResearcherFailed | RoundEvaluated
    | LimitNear | LimitApplied | LimitReached | ConflictsFound | KnowledgeSearched | PageIndexed | Judged | Warned
    | AnswerChecked | RunFinished | RunFailed
)  # fmt: skip
Delta: TypeAlias = TextDelta | MarksDelta | StatusDelta
Event: TypeAlias = Fact | Delta

TERMINAL = (RunFinished, RunFailed)
PROGRESS = (ModelReplied, SearchFinished, PageFetched)  # what a run has gained from the world
MAX_LOSSES = 8  # of its process without progress: a run that ends it each time is given up
DURABLE = (ModelAsked, ModelReplied, RunFinished, RunFailed)  # they cost money or end a run: fsync before anyone sees them
KINDS: Mapping[str, type[Any]] = {cls.kind: cls for cls in typing.get_args(Fact) + typing.get_args(Delta)}


def is_fact(event: Event) -> typing.TypeGuard[Fact]:
    return not isinstance(event, TextDelta | MarksDelta | StatusDelta)


def map_sources(facts: Iterable[Event]) -> dict[int, Source]:
    """The sources of a run by the numbers that its answer has for them."""
    sources: dict[int, Source] = {}
    for fact in facts:
        if isinstance(fact, SourceNumbered | SourcesRenumbered):
            changes = fact.sources if isinstance(fact, SourcesRenumbered) else (fact.source,)
            sources |= {source.number: source for source in changes}
    return sources


def find_review(facts: Sequence[Event]) -> Review | None:
    """How the answer of a run was checked; None where it was not."""
    return next((f.review for f in reversed(facts) if isinstance(f, AnswerChecked) and not f.agent), None)


def find_end(facts: Sequence[Event]) -> RunFinished | RunFailed | None:
    """The terminal fact of a run; None while it has none."""
    return next((f for f in reversed(facts) if isinstance(f, TERMINAL)), None)


def encode(event: Event) -> dict[str, Any]:
    """A JSON object, `kind` first and notices last; the run's own facts name no agent, and a sound reply no defect."""
    fields = {name: value for name, value in _to_plain(event).items() if value or name not in ("agent", "defect")}
    return add_notices({"kind": event.kind, **fields})


def decode(data: Mapping[str, Any]) -> Event:
    """The event that `encode` wrote. Unknown kinds are a ValueError; unknown fields are left out."""
    cls = KINDS.get(data.get("kind", ""))
    if cls is None:
        raise ValueError(f"unknown event kind {data.get('kind')!r}")
    if TABLE in data:
        data = restore_notices({name: value for name, value in data.items() if name != TABLE}, data[TABLE])
    if cls is AnswerChecked:
        # in a review of version 0.1, what rules called supported is found today, and what they called partly is not
        review = dict(data["review"])
        proof = {**(review.get("proof") or {})}
        proof["claims"] = [_upgrade_claim(claim) for claim in proof.get("claims") or ()]
        dropped_claims = [_upgrade_claim(claim) for claim in review.get("dropped") or ()]
        data = {**data, "review": {**review, "proof": proof, "dropped": dropped_claims}}
    event: Event = _build_value(cls, data)
    return event


def _upgrade_claim(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """No claim was supported before there was a judge; of a claim that is found, a source said its part."""
    if "judge" in claim:
        return claim
    part = Verdict.FOUND if claim.get("verdict") in ("supported", "found") else Verdict.NOT_FOUND
    words = {"supported": Verdict.FOUND.value, "partly": part.value}
    evidence = [{**e, "verdict": words.get(e.get("verdict"), e.get("verdict"))} for e in claim.get("evidence") or ()]
    return {**claim, "verdict": words.get(claim.get("verdict", ""), claim.get("verdict")), "evidence": evidence}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Struct):
        fields = {name: _to_plain(getattr(value, name)) for name in value.__struct_fields__}
        if isinstance(value, Evidence) and not value.standing:
            del fields["standing"]  # few sources are papers, and fewer have one
        return {name: plain for name, plain in fields.items() if plain is not None or name not in ("paper", "picture")}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): _to_plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_to_plain(v) for v in value]
    return value


@functools.cache  # resolving the hints costs more than all the rest of decoding
def _field_types(kind: type[Any]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {name: hints[name] for name in kind.__struct_fields__}


def _build_value(kind: Any, data: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind(**{name: _build_value(hint, data[name]) for name, hint in _field_types(kind).items() if name in data})
    origin = typing.get_origin(kind)
    if origin is tuple:
        return tuple(_build_value(typing.get_args(kind)[0], item) for item in data)
    if origin in (Union, types.UnionType):
        inner = [k for k in typing.get_args(kind) if k is not type(None)]
        return None if data is None else _build_value(inner[0], data)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    return data
