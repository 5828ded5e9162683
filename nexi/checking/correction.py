"""Asks the model to write the sentences of its answer again that a judge rejected.

Above it is the loop, which says whether the budget allows a call; below it is the LLM port. A reply is JSON or it is nothing:
what cannot be read changes no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.checking.answer import Rejected
from nexi.checking.judge import quote_text
from nexi.checking.review import find_opening
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema
from nexi.types import Message

MAX_SENTENCES = 40
MAX_SPAN_CHARS = 1_200
TOKENS_PER_SENTENCE = 120
MIN_TOKENS = 300

_BLANK = re.compile(r"\s+")
_TEXT = {"type": "string"}


def _reply_schema(name: str, text: str, most: int) -> dict[str, Any]:
    """The schema of a reply: a list of numbers with a text each."""
    entry = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, text: _TEXT},
        "required": ["n", text],
        "additionalProperties": False,
    }
    entries = {"type": "array", "items": entry, "maxItems": most}
    return {"type": "object", "properties": {name: entries}, "required": [name], "additionalProperties": False}


class CorrectionRequest(Struct, frozen=True):
    """How a model is asked: whose, until when, and with which prompts."""

    llm: LLM
    question: str
    max_tokens: int
    deadline: float | None = None
    prompts_folder: Path | None = None

    async def rewrite_sentences(self, rejected: Sequence[Rejected]) -> dict[int, str]:
        """New sentences by position in `rejected`, "" for one to leave out. Raises LLMError."""
        asked = rejected[:MAX_SENTENCES]
        task = f"Question: {self.question}\n\n" + "\n\n".join(_describe_sentence(n, each) for n, each in enumerate(asked, 1))
        entries = await self._ask("correction", task, _reply_schema("sentences", "text", len(asked)))
        return {e["n"] - 1: _BLANK.sub(" ", e["text"]).strip() for e in entries if 1 <= e["n"] <= len(asked)}

    async def _ask(self, prompt: str, task: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        name = next(iter(schema["properties"]))
        most = schema["properties"][name]["maxItems"]
        reply = await self.llm.complete(
            [Message("system", render(prompt, folder=self.prompts_folder)), Message("user", task)],
            max_tokens=min(self.max_tokens, max(MIN_TOKENS, TOKENS_PER_SENTENCE * most)),
            temperature=0.0,
            deadline=self.deadline,
            schema=schema,
        )
        try:
            value = parse_lenient(reply.text)
        except ValueError:
            return []
        return list(value[name]) if isinstance(value, dict) and not check_schema(value, schema) else []


def _describe_sentence(n: int, rejected: Rejected) -> str:
    claim = rejected.claim
    said = claim.text[len(find_opening(claim.text)) :].strip()
    lines = [f"Sentence {n}: {said}", f"What is wrong: {claim.reason}"]
    lines += (f"Page [{page}] says: {quote_text(words[:MAX_SPAN_CHARS])}" for page, words in rejected.passages)
    return "\n".join(lines)
