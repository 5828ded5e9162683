"""One call to the answering model, without tools, pages or a run: for tasks about a chat, and to put an answer into JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nexi.answers.streaming import make_safe
from nexi.app.factory import PortFactory
from nexi.app.gate import open_gate
from nexi.budget import Budget
from nexi.errors import LLMError
from nexi.events import RunFinished
from nexi.model import MeteredLLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema
from nexi.types import Message, Purpose, Reply, Usage

CALL_TIMEOUT_S = 120.0


class PlainModel:
    """The answering model of one config, asked once at a time."""

    def __init__(self, ports: PortFactory) -> None:
        self._ports = ports

    async def reply(self, messages: Sequence[Message], *, max_tokens: int) -> Reply:
        """What the model writes to these messages. Raises LLMError, or NexiError where a quota is reached."""
        reply = await self._open_llm("task", Usage(), 0).complete(messages, max_tokens=max_tokens, deadline=self._deadline())
        return replace(reply, text=_make_safe(reply.text, messages))

    async def write_json(
        self, question: str, answer: str, schema: Mapping[str, Any], *, max_tokens: int, after: RunFinished
    ) -> Reply:
        """The answer of a run as JSON that fits the schema, paid from what the run has left. Raises NexiError."""
        prompt = render("json_answer", folder=self._ports.config.prompts_dir, schema=json.dumps(schema, ensure_ascii=False))
        messages = (Message("system", prompt), Message("user", f"Question: {question}\n\nAnswer:\n{answer}"))
        llm = self._open_llm("json", after.usage, after.model_calls)
        reply = await llm.complete(messages, max_tokens=max_tokens, deadline=self._deadline(), schema=schema)
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

    def _open_llm(self, purpose: Purpose, spent: Usage, calls: int) -> MeteredLLM:
        config = self._ports.config
        budget = Budget(max_tokens=config.max_tokens, max_cost=config.max_cost, max_model_calls=config.max_model_calls)
        return open_gate(self._ports, budget=budget, spent=spent, calls=calls).open_llm("answer", purpose)

    def _deadline(self) -> float:
        return self._ports.clock.monotonic() + CALL_TIMEOUT_S


def _make_safe(text: str, messages: Sequence[Message]) -> str:
    """The text without a way out; a link must stand in what the model was given."""
    return make_safe(text, lambda url: 0 if any(url in message.content for message in messages) else None)


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _map_texts(inner, change) for name, inner in value.items()}
    return [_map_texts(inner, change) for inner in value] if isinstance(value, list) else value
