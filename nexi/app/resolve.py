"""Resolve: a request and a config become what a run works with, once and for every door: model, window, budget and scope.

The answering model is used with tools of its own, or for a sentence or two over passages that nexi chose for it. A test with
`nexi models --probe` is kept for each model and server; without one the size decides.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from nexi.app.local_scope import restrict_to_local
from nexi.app.request import RunRequest, budget_for, check_request
from nexi.budget import Budget
from nexi.config import DEFAULT_CONFIG, Config, get_system_prompt
from nexi.errors import ConfigError, StoreError
from nexi.files import read_json_object, write_json_object
from nexi.llm.local import LocalModel, LocalServer, describe_server
from nexi.llm.openai.prices import price_of, price_table
from nexi.net.addresses import is_loopback_url
from nexi.notices import Notice
from nexi.ports import LLM, Clock
from nexi.research.planner import CostEstimate, estimate_cost
from nexi.routing.table import SERVICES
from nexi.tools.specs import FINAL_ANSWER, SPECS, WEB_GET, WEB_SEARCH, parse_arguments
from nexi.types import Approach, Message, ToolSpec

MAX_PROBE_S = 3.0  # for a server on this machine to describe itself, also while a model keeps every core busy
PROBE_AGAIN_S = 60.0
APPROACHES_FILE = "approaches.json"
MAX_SMALL_BILLIONS = 9.5  # models of 9B by name have up to 9.4
MAX_APPROACHES = 200
MAX_TEST_TOKENS = 300
_SIZE = re.compile(r"(?<![A-Za-z0-9.])e?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![A-Za-z0-9])", re.I)
_TEST_QUESTION = "How high is the tower of Ebenau?"
_TEST_URL = "https://ebenau.example/tower"
_TEST_HITS = {
    "searches": [{"results": [{"title": "The tower of Ebenau", "url": _TEST_URL, "description": "History, height."}]}]
}
_TEST_PAGE = {"pages": [{"url": _TEST_URL, "content": f"[1] {_TEST_URL}\n---\nThe tower of Ebenau is 57 metres high."}]}


class ResolvedRun(Struct, frozen=True):
    """What one run works with."""

    request: RunRequest
    config: Config
    budget: Budget
    max_parallel_researchers: int = 0  # 0: as many as research allows
    notices: tuple[str, ...] = ()  # what the user should know before the answer
    approach: Approach = "tools"
    is_small: bool = False  # the answering model


class ModelProbe(Protocol):
    """Finds out what the model server of this machine offers."""

    async def server_at(self, base_url: str) -> LocalServer | None:
        """The server behind a loopback address; None where there is none."""


class LocalModelProbe:
    """Asks the model server of this machine what it offers, at most once a minute for each address."""

    def __init__(self, clock: Clock, *, patience_s: float = MAX_PROBE_S) -> None:
        self._clock, self._patience_s = clock, patience_s
        self._seen: dict[str, tuple[float, LocalServer | None]] = {}

    async def server_at(self, base_url: str) -> LocalServer | None:
        """The server behind a loopback address; None for any other address, and where none answers in time."""
        if not is_loopback_url(base_url):
            return None
        when, server = self._seen.get(base_url, (float("-inf"), None))
        if self._clock.monotonic() - when >= PROBE_AGAIN_S:
            server = await describe_server(base_url, patience_s=self._patience_s)
            self._seen[base_url] = self._clock.monotonic(), server
        return server


async def resolve(request: RunRequest, base: Config, probe: ModelProbe | None) -> ResolvedRun:
    """What a run of this request works with; without a `probe`, as for models that were given, no server is asked. Raises
    QuestionError or ConfigError."""
    config, notices = resolve_config(request, base)
    endpoint = config.endpoint("answer")
    server = await probe.server_at(endpoint.base_url) if probe and not endpoint.is_extractive else None
    model = server.model(endpoint.model) if server else None
    default = DEFAULT_CONFIG["max_context"]  # unless the user set another, the real window of a local model wins
    if model and model.context and config.origin.file.get("max_context", default) == default:
        config = config.override(max_context=model.context)
    request = check_request(request, config)
    parallel = server.max_parallel if server else 0
    budget = budget_for(config, request.limits)
    if request.mode == "research":  # which counts its iterations for each researcher, not for the whole
        budget = replace(budget, max_iterations=None)
    has_limit = budget.max_tokens is not None or budget.max_cost is not None
    if has_limit and request.mode == "research" and not endpoint.is_extractive:
        # say, before anything is spent, that a limit is below the lowest estimate
        least = estimate_research(config, request.depth or 1, 1)
        if budget.max_tokens is not None and budget.max_tokens < least.tokens[0]:
            tokens = {"n": f"{budget.max_tokens:,}", "m": f"{least.tokens[0]:,}"}
            few = Notice("research.few_tokens", "{n} tokens are few for research, which takes at least about {m}", **tokens)
            notices = (*notices, few)
        elif budget.max_cost is not None and least.cost and budget.max_cost < least.cost[0]:
            costs = {"n": f"{budget.max_cost:g}", "m": f"{least.cost[0]:.2g}"}
            little = Notice("research.little_money", "${n} is little for research, which takes at least about ${m}", **costs)
            notices = (*notices, little)
    approach, is_small = choose_approach(config, model)
    return ResolvedRun(request, config, budget, parallel, notices, approach, is_small)


def estimate_research(config: Config, complexity: int, tasks: int) -> CostEstimate:
    """What research of so many tasks may cost with the answering model."""
    endpoint = config.endpoint("answer")
    price = price_of(endpoint.model, price_table(config.prices))
    return estimate_cost(complexity, tasks, endpoint.max_context, (price.input, price.output) if price else None)


def resolve_config(request: RunRequest, base: Config) -> tuple[Config, tuple[str, ...]]:
    """The config under a request, and what the user should know about it. Raises ConfigError."""
    limits = request.limits
    wishes: dict[str, Any] = {"model": request.model or None, "strict": request.strict}
    wishes |= {"max_cost": limits.max_cost, "max_tokens": limits.max_tokens}
    config = base.override(**{name: value for name, value in wishes.items() if value is not None})
    if request.scope == "web":
        config = config.override(knowledge=False)
    if names := request.services:  # those of a space
        open_services = tuple(name for name in names if name.removeprefix("-") in SERVICES)
        chain = (*(name for name in names if name not in open_services), *(("services",) if open_services else ()))
        if config.person:  # who chooses among the services of her server
            chain = tuple(name for name in chain if name in config.search_chain())
        if not chain:
            cause = f"it allows {', '.join(names)} alone, and this server asks {', '.join(config.search_chain())}"
            raise ConfigError("the space allows no search service that is used here", cause=cause, fix="change its services")
        config = config.override(search_backend=chain, services=open_services)
    return restrict_to_local(config) if request.is_local else (config, ())


# how the answering model is used


def choose_approach(config: Config, model: LocalModel | None = None) -> tuple[Approach, bool]:
    """How the answering model is used, and whether it is small. "" is for a model of unknown size that was never tested."""
    endpoint = config.endpoint("answer")
    if endpoint.is_extractive:
        return "tools", False
    is_small = _is_small_model(endpoint.model, model)
    return _kept_approach(config) or ("passages" if is_small else ""), is_small


def _is_small_model(name: str, model: LocalModel | None = None) -> bool:
    """Whether a model has at most about 9 billion parameters, by its server's word or by its name."""
    sizes = [float(size) / (1 if unit in "bB" else 1000) for size, unit in _SIZE.findall(name)]
    billions = (model.billions if model else None) or max(sizes, default=0.0)
    return 0 < billions <= MAX_SMALL_BILLIONS


def _kept_approach(config: Config) -> Approach:
    """What a test of this model at this server showed; "" without one."""
    approach = read_json_object(config.state_dir / APPROACHES_FILE).get(config.endpoint("answer").label)
    return approach if approach in ("tools", "passages") else ""


def _keep_approach(config: Config, approach: Approach) -> None:
    """Remember the result of a test. Raises StoreError."""
    path = config.state_dir / APPROACHES_FILE
    approaches = {**read_json_object(path), config.endpoint("answer").label: approach}
    write_json_object(path, dict(list(approaches.items())[-MAX_APPROACHES:]), "How a model is used could not be kept")


async def probe_tool_use(config: Config, llm: LLM) -> Approach:
    """Let a model search, read and answer once, and keep how it is used from now on. Raises LLMError."""
    approach: Approach = "tools"
    messages = [Message("system", get_system_prompt("s", config=config)), Message("user", _TEST_QUESTION)]
    # each step with its result and with what its arguments must be: the page that was found, the answer with its source
    steps: tuple[tuple[ToolSpec, dict[str, Any], Callable[[dict[str, Any]], bool]], ...] = (
        (WEB_SEARCH, _TEST_HITS, lambda given: "ebenau" in str(given.get("queries", "")).lower()),
        (WEB_GET, _TEST_PAGE, lambda given: given.get("urls") == [_TEST_URL]),
        (FINAL_ANSWER, {}, lambda given: all(part in str(given.get("answer", "")) for part in ("57", "[1]"))),
    )
    for spec, result, is_sound in steps:
        reply = await llm.complete(messages, SPECS, max_tokens=MAX_TEST_TOKENS, temperature=0.0)
        call = next((c for c in reply.tool_calls if c.name == spec.name), None)
        arguments, problem = parse_arguments(call, spec) if call else ({}, "")
        if call is None or problem or not is_sound(arguments):
            approach = "passages"
            break
        messages += [Message("assistant", "", (call,)), Message("tool", json.dumps(result), tool_call_id=call.id)]
    with suppress(StoreError):
        await asyncio.to_thread(_keep_approach, config, approach)
    return approach


def can_test_judge(config: Config) -> bool:
    """Whether the configured judge is asked in runs: there is one, and it is not a small model that judges itself."""
    judge, answer = config.endpoint("judge"), config.endpoint("answer")
    is_own_small = judge.model == answer.model and choose_approach(config)[0] == "passages"
    return config.verify_judge and not judge.is_extractive and not is_own_small
