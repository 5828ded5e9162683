"""The bodies of nexi's own paths as Structs.

A Struct checks a body, documents it and is the value that a route works with, so that the document cannot say anything else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from nexi.app import RunLimits
from nexi.app.request import RunMode, RunScope
from nexi.web.contract import Named

State = Literal["running", "finished", "stopped", "failed", "unfinished", "damaged"]
Focus = Literal["web", "docs", "discussions", "papers", "code", "news", "places", "local"]
STATES: tuple[State, ...] = get_args(State)
FOCUS: tuple[Focus, ...] = get_args(Focus)
MAX_TASKS = 5
MAX_ATTACHMENTS = 20
Site = Annotated[str, Meta(min_length=1, max_length=253)]
Sites = Annotated[tuple[Site, ...], Meta(max_length=50)]
Seconds = Annotated[float, Meta(ge=0.001, le=86400)]
Tokens = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(ge=0.000001, le=100_000, description="In US dollars.")]
Share = Annotated[float, Meta(ge=0, le=1, description="Of an agentic search.")]
OnlyLocal = Annotated[bool, Meta(description="Send nothing to another machine.")]
Address = Annotated[str, Meta(max_length=8_000)]
Tasks = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=2000)], ...], Meta(min_length=1, max_length=MAX_TASKS)]


class LimitedWork(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Work that is no run, a check or a table, and what it may use."""

    time_target: Annotated[Seconds | None, Meta(description="Stop after so many seconds.")] = None
    max_tokens: Tokens | None = None
    max_cost: Dollars | None = None

    @property
    def limits(self) -> RunLimits:
        return RunLimits(time_target=self.time_target, max_tokens=self.max_tokens, max_cost=self.max_cost)


class RunOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a question is to be answered; what is left out or null is as the server has it."""

    effort: Literal["s", "m", "l"] | None = None
    max_iterations: Annotated[int, Meta(ge=1, le=1000)] | None = None
    time_target: Annotated[Seconds | None, Meta(description="Answer after about so many seconds.")] = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    max_cost: Dollars | None = None
    max_tokens: Annotated[Tokens | None, Meta(description="Of all model calls together.")] = None
    strict: Annotated[bool | None, Meta(description="Leave out sentences that are not found in the pages.")] = None
    system_prompt: Annotated[str, Meta(max_length=100_000, description="Instructions of your own.")] = ""
    depth: Annotated[int, Meta(ge=0, le=3, description="Of research; 0 lets the coordinator choose.")] = 0
    length: Annotated[
        Literal["brief", "standard", "long"] | None, Meta(description="Of a report: about 300, 1,000 or 3,000 words.")
    ] = None
    plan: Annotated[
        bool, Meta(description="Research waits with its plan (the event agenda_proposed) until POST /v1/runs/{id}/plan.")
    ] = False
    model: Annotated[
        str,
        Meta(max_length=200, description="Another model of the configured endpoint, or `extractive`, which calls no service."),
    ] = ""
    focus: Annotated[Focus, Meta(description="Where to look; `local` is the knowledge base only.")] = "web"
    count: Annotated[int, Meta(ge=1, le=100, description="Hits a search asks for.")] = 10
    sites: Annotated[Sites, Meta(description="Search only these.")] = ()
    excluded_sites: Annotated[Sites, Meta(description="Search these not.")] = ()
    time_range: Literal["", "d", "w", "m", "y"] = ""
    language: Annotated[str, Meta(max_length=20)] = ""
    scope: Annotated[
        RunScope, Meta(description="`local` is the knowledge base only, `web` leaves it out; `local` sends nothing elsewhere.")
    ] = "both"
    only_local: Annotated[bool, Meta(description="The same as the scope `local`.")] = False
    attachments: Annotated[
        tuple[Address, ...], Meta(max_length=MAX_ATTACHMENTS, description="Web pages and documents to look into first.")
    ] = ()
    completeness_threshold: Share | None = None
    max_urls_per_iteration: Annotated[int, Meta(ge=1, le=20, description="Of an agentic search.")] | None = None
    url_score_threshold: Share | None = None
    use_search_hints: Annotated[bool, Meta(description="Of an agentic search.")] | None = None


class RunQuestion(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question, and how it is to be answered."""

    question: Annotated[str, Meta(min_length=1, max_length=100_000)]
    mode: RunMode = "search"
    options: RunOptions = RunOptions()
    space: Annotated[str, Meta(max_length=300, description="The space it is asked in: NAME, or NAME@OWNER.")] = ""


class NewRun(RunQuestion, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question to answer now."""

    continues: Annotated[str, Meta(max_length=100, description="The id of a run whose conversation goes on.")] = ""


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a proposed plan."""

    tasks: Annotated[Tasks | None, Meta(description="The tasks to research instead of the proposed ones.")] = None


class RunStatus(Struct):
    """How a run is doing."""

    schema: str
    id: str
    state: State
    mode: str
    question: str
    created: str
    last_event_id: int
    links: dict[str, str]
    space: str = ""


RUNS: dict[str, Any] = {
    "type": "object",
    "required": ["runs"],
    "properties": {"runs": {"type": "array", "items": {"type": "object", "required": ["id", "state", "question", "created"]}}},
}


ID: Named = {"id": ("The id of the run.", {"type": "string", "pattern": "^([0-9a-f]{6}|[0-9a-f]{32})$"})}
