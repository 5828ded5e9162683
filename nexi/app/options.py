"""Options: what one search may override, and the question as it is taken. Doors make them; nothing here runs anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexi.budget import Budget
from nexi.config import EFFORT_LEVELS, Config
from nexi.errors import ConfigError, QuestionError
from nexi.types import Query
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.app.knowledge import Knowledge

MAX_QUESTION_CHARS = 100_000


@frozen
class SearchOptions:
    """What one search may override; None and "" leave the config's word."""

    effort: str = ""
    max_iterations: int | None = None
    time_target: float | None = None
    max_output_tokens: int | None = None
    system_prompt: str = ""
    query: Query = Query("")
    max_cost: float | None = None
    model: str = ""  # another than the config's, at the same endpoint
    keeps_history: bool = True
    keeps_log: bool = True
    door: str = ""
    seats: int = 0  # how many researchers work at the same time; 0 for as many as may
    only_local: bool = False  # ask what is known, and nobody else
    shelf: Knowledge | None = None  # what to look into first, where it is not what nexi knows


AS_CONFIGURED = SearchOptions()
RECORDED_OPTIONS = ("time_target", "max_output_tokens", "system_prompt", "max_cost", "only_local", "model")


def recorded_options(options: SearchOptions) -> dict[str, Any]:
    """What a door was asked for, so that a run it began can be taken up within the same limits."""
    narrowed = {name: value for name, value in vars(options.query).items() if name != "text"}
    return {**{name: getattr(options, name) for name in RECORDED_OPTIONS}, "query": narrowed}


def options_from(recorded: Mapping[str, Any], door: str) -> SearchOptions:
    """The options that `recorded_options` wrote; unknown names are left out."""
    narrowed = recorded.get("query")
    narrow = narrowed if isinstance(narrowed, Mapping) else {}
    told: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in narrow.items()}
    query = Query("", **{name: told[name] for name in vars(Query("")) if name != "text" and name in told})
    return SearchOptions(**{n: recorded[n] for n in RECORDED_OPTIONS if recorded.get(n)}, query=query, door=door)


def budget_of(config: Config, options: SearchOptions = AS_CONFIGURED) -> Budget:
    """The limits of one run."""
    return Budget(
        max_iterations=options.max_iterations,
        max_seconds=options.time_target,
        max_tokens=config.max_tokens,
        max_model_calls=config.max_model_calls,
        max_cost=config.max_cost if options.max_cost is None else options.max_cost,
        max_pages=config.max_pages,
    )


def clean_question(question: str) -> str:
    """The question without control characters and stray bytes. Raises QuestionError when nothing usable is left."""
    whole = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", question)  # halves of characters that are no escaped bytes
    text = whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0)).strip()
    if not text.strip("\ufffd \n\t"):
        raise QuestionError("the question is empty", fix='ask one: nexi "your question"')
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"the question has {len(text):,} characters",
            cause=f"at most {MAX_QUESTION_CHARS:,} are taken",
            fix="ask a shorter question",
        )
    return text


def with_effort(options: SearchOptions, config: Config) -> SearchOptions:
    effort = options.effort or config.default_effort
    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"effort {effort!r} is unknown", cause="it must be s, m or l", fix="use -e s, -e m or -e l")
    iterations = options.max_iterations or EFFORT_LEVELS[effort]["max_iter"]
    seconds = options.time_target if options.time_target is not None else config.time_target
    return replace(options, effort=effort, max_iterations=int(iterations), time_target=seconds)
