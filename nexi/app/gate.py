"""The gate: the only way to a model (`tests/test_layers.py`). It hands out ports that count.

A gate is opened for one piece of work and knows its scope (`is_local`), its budget (the meter) and where each call is written
down (its emit: the log of a run, or the quota of a person). PlainModel is one call through it, without tools, pages or a run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replace_endpoint
from typing import Any

from msgspec.structs import replace

from nexi.answers.streaming import make_safe
from nexi.app.emit import QuietEmit
from nexi.app.factory import PortFactory, fetches_its_model
from nexi.app.request import budget_for
from nexi.budget import Budget, Meter
from nexi.config import EXTRACTIVE, Endpoint, EndpointRole
from nexi.errors import LLMError, NexiError
from nexi.events import Delta, Fact, ModelAsked, ModelFailed, ModelReplied, RunFinished
from nexi.model import NOT_ASKED, CallCounter, MeteredLLM
from nexi.net.addresses import is_loopback_url
from nexi.notices import Notice
from nexi.ports import LLM, Embedder, Emit, PersonalState
from nexi.prompts import render
from nexi.runs.recording import CANCELLED, AgentReplay
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema
from nexi.token_counter import BYTES_PER_TOKEN, TokenCounter
from nexi.types import BACKGROUND_PURPOSES, Embedded, Message, Purpose, Reply, StopReason, Usage, Vector

CALL_TIMEOUT_S = 120.0  # of a plain call
INDEXING_SHARE = 0.2  # of a run's budget: what it stores for later must leave it an answer
PURPOSES_OF_A_RUN = BACKGROUND_PURPOSES | {"suggest", "json"}  # asked for what a run has found, or for what is stored


class ModelGate:
    """The models that one piece of work may ask, as far as its scope and its budget go."""

    def __init__(
        self,
        ports: PortFactory,
        meter: Meter,
        emit: Emit,
        *,
        is_local: bool = False,
        calls: CallCounter | None = None,
        replay: AgentReplay | None = None,
    ) -> None:
        self.ports, self.meter, self.emit = ports, meter, emit
        self.is_local = is_local or ports.is_offline
        self.counter = TokenCounter(ports.config.tokenizer_encoding)
        self.calls = calls or CallCounter()
        self.replay = replay or AgentReplay()

    def is_built_in(self, role: EndpointRole) -> bool:
        """Whether the model of that role is the built-in one, which writes nothing of its own."""
        return self._client(role).name == EXTRACTIVE

    def open_llm(self, role: EndpointRole, purpose: Purpose | None = None, *, has_window: bool = True) -> MeteredLLM:
        """The model of a role. Raises LLMError where the scope forbids it."""
        window = self.ports.config.endpoint(role).max_context if has_window else sys.maxsize
        return self._meter(self._client(role), purpose or role, window)

    def open_judge(self, purpose: Purpose = "judge") -> LLM | None:
        """The judging model; None where only the built-in one may be asked."""
        endpoint = self.ports.config.endpoint("judge")
        return None if endpoint.is_extractive or not self.may_ask("judge") else self.open_llm("judge", purpose)

    def open_context_llm(self) -> LLM | None:
        """The model that puts chunks in context; None where there is only the built-in one."""
        config = self.ports.config
        model_name, judge = config.contextual_embedding_model, config.endpoint("judge")
        if not model_name or judge.is_extractive or not self.may_ask("judge"):
            return self.open_judge("context")
        endpoint = replace_endpoint(judge, model=model_name)
        return self._meter(self.ports.llm_at(endpoint), "context", endpoint.max_context)

    async def open_embedder(self) -> Embedder | None:
        """What makes vectors, its library loaded off the event loop; None where there is none or the scope forbids it."""
        config, endpoint = self.ports.config, self.ports.config.embedding_endpoint()
        is_elsewhere = endpoint is not None and not is_loopback_url(endpoint.base_url)
        if self.is_local and (is_elsewhere or fetches_its_model(config)):
            return None
        embedder = await asyncio.to_thread(self.ports.embedder)
        return _MeteredEmbedder(self, embedder, endpoint) if embedder and endpoint else embedder

    async def list_models(self, role: EndpointRole = "answer") -> list[str] | None:
        """What the endpoint lists; None where it has no list, or the scope forbids asking. Raises LLMError."""
        listing = getattr(self._client(role), "models", None) if self.may_ask(role) else None
        return list(await listing()) if listing else None

    def may_ask(self, role: EndpointRole) -> bool:
        """Whether the scope lets the model of that role be asked; one that was given is its giver's to judge."""
        endpoint = self.ports.config.endpoint(role)
        is_near = endpoint.is_extractive or is_loopback_url(endpoint.base_url)
        return not self.is_local or is_near or self.ports.has_given_llm(role)

    def for_indexing(self) -> ModelGate:
        """The gate of what is stored behind the work: it spends from the same budget, and leaves most of it alone."""
        limits = self.meter.budget
        share = Budget(
            max_tokens=None if limits.max_tokens is None else int(limits.max_tokens * INDEXING_SHARE),
            max_cost=None if limits.max_cost is None else limits.max_cost * INDEXING_SHARE,
            max_model_calls=None if limits.max_model_calls is None else int(limits.max_model_calls * INDEXING_SHARE),
        )
        meter = self.meter.child(share, started=self.ports.clock.monotonic())
        return ModelGate(self.ports, meter, self.emit, is_local=self.is_local, calls=self.calls, replay=self.replay)

    def _client(self, role: EndpointRole) -> LLM:
        if not self.may_ask(role):
            cause = Notice("model.elsewhere", "it is on another machine, and this question is restricted to local knowledge")
            raise LLMError(NOT_ASKED, cause=cause, code="local_scope")
        return self.ports.llm(role)

    def _meter(self, llm: LLM, purpose: Purpose, window: int) -> MeteredLLM:
        clock = self.ports.clock
        return MeteredLLM(llm, purpose, self.meter, self.emit, clock, self.counter, window, self.calls, self.replay)


class _MeteredEmbedder:
    """An embedding endpoint whose every request is reserved, written down before it is sent, and settled."""

    def __init__(self, gate: ModelGate, embedder: Embedder, endpoint: Endpoint) -> None:
        self._gate, self._embedder, self._endpoint, self.name = gate, embedder, endpoint, embedder.name

    @property
    def dims(self) -> int:
        return self._embedder.dims

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        from nexi.llm.embeddings import BATCH

        vectors: list[Vector] = []
        usage = Usage()
        for start in range(0, len(texts), BATCH):
            batch = await self._embed_batch(texts[start : start + BATCH], query)
            vectors += batch.vectors
            usage += batch.usage
        return Embedded(tuple(vectors), usage)

    async def _embed_batch(self, texts: Sequence[str], query: bool) -> Embedded:
        gate, tokens = self._gate, sum(len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1 for text in texts)
        reservation = gate.meter.reserve_call(tokens, is_model_call=False)
        if isinstance(reservation, StopReason):
            raise LLMError("no vectors were asked for", cause=gate.meter.describe_spent(), code="budget_spent")
        call, start = gate.calls.next(), gate.ports.clock.monotonic()
        usage = Usage(tokens, 0, estimated=True, cost=0.0)
        digest = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:32]
        try:
            await gate.emit(ModelAsked(call, "embed", self.name, tokens, digest))
            batch = await self._embedder.embed(texts, query=query)
            usage = self._with_cost(batch.usage)
            await gate.emit(ModelReplied(call, "", (), usage, "stop", self._seconds_since(start)))
        except LLMError as error:
            usage = self._with_cost(error.usage or Usage())
            await gate.emit(ModelFailed(call, error.code, str(error), error.fix, self._seconds_since(start), usage=usage))
            raise
        except asyncio.CancelledError:
            seconds = self._seconds_since(start)
            await gate.emit(ModelFailed(call, CANCELLED, "the call was broken off", "", seconds, usage=usage))
            raise
        finally:
            gate.meter.settle_call(reservation, usage)
        return Embedded(batch.vectors, usage)

    def _with_cost(self, usage: Usage) -> Usage:
        """A server of this machine costs nothing."""
        is_free = usage.cost is None and is_loopback_url(self._endpoint.base_url)
        return Usage(usage.input_tokens, usage.output_tokens, usage.estimated, 0.0) if is_free else usage

    def _seconds_since(self, start: float) -> float:
        return round(self._gate.ports.clock.monotonic() - start, 3)


class _QuotaEmit:
    """Counts calls outside a run in what their person has used today, then tells `after` of them. A request is counted before
    it is sent, also one that is cut, and corrected by its reply. Raises LLMError (quota_reached) where there is no room."""

    def __init__(self, state: PersonalState, after: Emit) -> None:
        self._state, self._after = state, after
        self._estimates: dict[int, int] = {}

    async def __call__(self, fact: Fact) -> None:
        if isinstance(fact, ModelAsked):
            is_new = fact.purpose not in PURPOSES_OF_A_RUN
            try:
                await asyncio.to_thread(self._state.take_call, fact.prompt_tokens, is_new=is_new)
            except NexiError as error:  # to who asks a model, one that may not be asked is one that failed
                raise LLMError(error.message, cause=error.cause, fix=error.fix, code=error.code) from error
            self._estimates[fact.call] = fact.prompt_tokens
        elif isinstance(fact, ModelReplied | ModelFailed) and fact.call in self._estimates:
            await asyncio.to_thread(self._state.settle_call, self._estimates.pop(fact.call), fact.usage)
        await self._after(fact)

    def delta(self, delta: Delta) -> None:
        self._after.delta(delta)


def open_gate(
    ports: PortFactory,
    *,
    budget: Budget = Budget(),  # noqa: B008 - a frozen value
    is_local: bool = False,
    spent: Usage = Usage(),
    calls: int = 0,
    emit: Emit | None = None,
) -> ModelGate:
    """A gate for work outside a run. `spent` and `calls` are what the same piece of work has used of its budget before."""
    meter, state = Meter(budget, started=ports.clock.monotonic()), ports.shared.state
    meter.restore(spent, calls, 0)
    emit = emit or QuietEmit()
    return ModelGate(ports, meter, _QuotaEmit(state, emit) if state else emit, is_local=is_local)


class PlainModel:
    """The answering model for tasks about a chat, and to put an answer into JSON; asked once at a time."""

    def __init__(self, ports: PortFactory) -> None:
        self._ports = ports

    async def reply(self, messages: Sequence[Message], *, max_tokens: int) -> Reply:
        """What the model writes to these messages. Raises LLMError, or NexiError where a quota is reached."""
        reply = await self._ask("task", messages, max_tokens=max_tokens)
        return replace(reply, text=_make_safe(reply.text, messages))

    async def write_json(
        self, question: str, answer: str, schema: Mapping[str, Any], *, max_tokens: int, after: RunFinished
    ) -> Reply:
        """The answer of a run as JSON that fits the schema, paid from what the run has left. Raises NexiError."""
        prompt = render("json_answer", folder=self._ports.config.prompts_dir, schema=json.dumps(schema, ensure_ascii=False))
        messages = (Message("system", prompt), Message("user", f"Question: {question}\n\nAnswer:\n{answer}"))
        reply = await self._ask("json", messages, after, max_tokens=max_tokens, schema=schema)
        try:
            value = parse_lenient(reply.text)
            problems = check_schema(value, schema)
        except ValueError as error:
            value, problems = None, [str(error)]
        if problems:
            cause, fix = "; ".join(problems[:3]), "ask with a simpler schema, or for text"
            raise LLMError("the model wrote no JSON that fits the schema", cause=cause, fix=fix, code="bad_json")
        value = _map_texts(value, lambda text: _make_safe(text, messages))
        return replace(reply, text=json.dumps(value, ensure_ascii=False))

    async def _ask(
        self, purpose: Purpose, messages: Sequence[Message], after: RunFinished | None = None, **options: Any
    ) -> Reply:
        spent, calls = (after.usage, after.model_calls) if after else (Usage(), 0)
        gate = open_gate(self._ports, budget=budget_for(self._ports.config), spent=spent, calls=calls)
        deadline = self._ports.clock.monotonic() + CALL_TIMEOUT_S
        return await gate.open_llm("answer", purpose).complete(messages, deadline=deadline, **options)


def _make_safe(text: str, messages: Sequence[Message]) -> str:
    """The text without a way out; a link must stand in what the model was given."""
    return make_safe(text, lambda url: 0 if any(url in message.content for message in messages) else None)


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _map_texts(inner, change) for name, inner in value.items()}
    return [_map_texts(inner, change) for inner in value] if isinstance(value, list) else value
