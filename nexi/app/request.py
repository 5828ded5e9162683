"""RunRequest: what a person wants from one run. A door fills it in; `resolve` turns it into what the run works with.

It is the first fact of the run's log, so that a run can be resumed and replayed from its log alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi.budget import Budget
from nexi.config import EFFORT_LEVELS, Config
from nexi.errors import ConfigError, QuestionError
from nexi.events import RunStarted
from nexi.structured.json_reader import as_mapping
from nexi.types import Query

RunMode = Literal["search", "research", "agentic"]
RunScope = Literal["web", "local", "both"]
ReportLength = Literal["", "brief", "standard", "long"]

MAX_QUESTION_CHARS = 100_000
LAST_RUN = "last"  # as `continues`: the conversation of the newest answer
AGENTIC_SETTINGS = (
    "completeness_threshold", "max_iterations", "max_urls_per_iteration", "url_score_threshold", "use_search_hints"
)  # fmt: skip


class RunLimits(Struct, frozen=True):
    """What one run may use; None leaves the config's word."""

    max_iterations: int | None = None
    time_target: float | None = None
    max_output_tokens: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    is_quota: bool = False  # tokens or cost are what is left of a person's quota


class RunRequest(Struct, frozen=True):
    """One question and how it is to be answered; "" and None leave the config's word."""

    question: str
    mode: RunMode = "search"
    effort: str = ""
    limits: RunLimits = RunLimits()
    query: Query = Query("")  # sites, time range, language and focus of every search
    model: str = ""  # another than the config's, at the same endpoint
    scope: RunScope = "both"  # local: nothing leaves this machine
    system_prompt: str = ""
    attachments: tuple[str, ...] = ()  # files to look into first
    continues: str = ""  # the id of the run whose conversation goes on, or LAST_RUN
    holds_plan: bool = False  # research waits with its plan until somebody settles it
    depth: int = 0
    length: ReportLength = ""  # of a report
    strict: bool | None = None
    agentic: Mapping[str, Any] = {}  # settings of an agentic search
    space: str = ""  # the address of the space it is asked in
    instructions: str = ""  # of the space
    services: tuple[str, ...] = ()  # the search services that the space allows; empty allows all
    door: str = ""
    client_body: Mapping[str, Any] = {}  # what a client sent, where its reply can be asked for again
    keeps_history: bool = True
    keeps_log: bool = True

    @property
    def is_local(self) -> bool:
        return self.scope == "local"


_RARE_FIELDS = ("space", "instructions", "services", "client_body")  # not in the logs of runs without them
_PLAIN_FIELDS = ("effort", "model", "scope", "system_prompt", "continues", "holds_plan", "depth", "length", "strict", "door")


def request_to_dict(request: RunRequest) -> dict[str, Any]:
    """The request as its run's log holds it; the question and the mode stand beside it."""
    fields = asdict(request.query).items()
    query = {name: list(value) if isinstance(value, tuple) else value for name, value in fields if name != "text"}
    plain = {name: getattr(request, name) for name in _PLAIN_FIELDS if name != "length" or request.length}
    more = {"attachments": list(request.attachments), "agentic": dict(request.agentic)}
    limits = {name: value for name, value in asdict(request.limits).items() if name != "is_quota" or value}
    rare = {name: value for name in _RARE_FIELDS if (value := getattr(request, name))}
    return {**plain, **more, **rare, "limits": limits, "query": query}


def request_of_run(started: RunStarted) -> RunRequest:
    """The request a run began with, from its first fact. Reads what every earlier version wrote."""
    form = started.request or _request_of_old_log(started.settings)
    fields = {name: value for name, value in form.items() if value is not None}
    fields |= {"question": started.query, "mode": started.mode, "effort": fields.get("effort") or started.effort}
    fields["query"] = {**as_mapping(fields.get("query")), "text": ""}
    return msgspec.convert(fields, RunRequest, strict=False)


def _request_of_old_log(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Logs of version 0.1 spread the request over the settings of their first fact."""
    options = as_mapping(settings.get("asked"))
    is_local = settings.get("only_local") or options.get("only_local")
    return {
        "model": options.get("model") or "",
        "scope": "local" if is_local else "both",
        "system_prompt": options.get("system_prompt") or "",
        "holds_plan": bool(settings.get("held")),
        "depth": int(settings.get("depth") or 0),
        "door": str(settings.get("door") or ""),
        "limits": {name: options.get(name) for name in ("time_target", "max_output_tokens", "max_cost")},
        "query": as_mapping(options.get("query")),
        "agentic": as_mapping(settings.get("agentic")),
    }


def check_request(request: RunRequest, config: Config) -> RunRequest:
    """The request with a clean question and its effort. Raises QuestionError or ConfigError."""
    effort = request.effort or config.default_effort
    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"effort {effort!r} is unknown", cause="it must be s, m or l", fix="use -e s, -e m or -e l")
    limits = request.limits
    iterations = limits.max_iterations or int(EFFORT_LEVELS[effort]["max_iter"])
    seconds = limits.time_target if limits.time_target is not None else config.time_target
    limits = replace(limits, max_iterations=iterations, time_target=seconds)
    keeps_history = request.keeps_history and request.mode != "agentic"  # its answer is JSON for programs
    question = clean_question(request.question)
    return replace(request, question=question, effort=effort, limits=limits, keeps_history=keeps_history)


def budget_for(config: Config, limits: RunLimits = RunLimits()) -> Budget:  # noqa: B008 - a frozen value
    """The budget of one run: its own limits, then the config's."""
    return Budget(
        max_iterations=limits.max_iterations,
        max_seconds=limits.time_target,
        max_tokens=config.max_tokens if limits.max_tokens is None else limits.max_tokens,
        max_model_calls=config.max_model_calls,
        max_cost=config.max_cost if limits.max_cost is None else limits.max_cost,
        max_pages=config.max_pages,
        is_quota=limits.is_quota,
    )


def clean_question(question: str) -> str:
    """The question without control characters and stray bytes. Raises QuestionError when nothing usable is left."""
    whole = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", question)  # surrogates that are not escaped bytes
    text = whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0)).strip()
    if not text.strip("\ufffd \n\t"):
        raise QuestionError("the question is empty", fix='ask one: nexi "your question"')
    if len(text) > MAX_QUESTION_CHARS:
        cause = f"at most {MAX_QUESTION_CHARS:,} are taken"
        raise QuestionError(f"the question has {len(text):,} characters", cause=cause, fix="ask a shorter question")
    return text
