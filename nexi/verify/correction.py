"""Asks the model to rewrite the sentences of its answer that failed the check.

Above it is the loop, which says whether the budget allows a call; below it is the LLM port. A reply is JSON or it is nothing:
what cannot be read changes no sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema
from nexi.types import Claim, Evidence, Message
from nexi.verify.checker import FailedClaim
from nexi.verify.edits import find_opening

MAX_SENTENCES = 40
MAX_SPAN_CHARS = 600
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

    async def rewrite_sentences(self, failed: Sequence[FailedClaim]) -> dict[int, str]:
        """New sentences by position in `failed`, "" for one to leave out. Raises LLMError."""
        asked = failed[:MAX_SENTENCES]
        task = f"Question: {self.question}\n\n" + "\n\n".join(_failed_text(n, d) for n, d in enumerate(asked, 1))
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


def _failed_text(n: int, failed_claim: FailedClaim) -> str:
    claim = failed_claim.claim
    lines = [
        f"Sentence {n}: {claim.text[len(find_opening(claim.text)) :].strip()}",
        f"What is wrong: {_describe_problem(claim)}",
    ]
    seen: set[str] = set()
    for evidence in (*claim.evidence, *failed_claim.hints):
        if evidence.span and evidence.span not in seen:
            seen.add(evidence.span)
            lines.append(f"Page [{evidence.number}] says: {_quote_span(evidence)}")
    return "\n".join(lines)


def _describe_problem(claim: Claim) -> str:
    """The verdict in words, with what is missing and what the page has instead."""
    parts = [claim.reason or claim.verdict.value.replace("_", " ")]
    for evidence in claim.evidence:
        if evidence.missing:
            parts.append(f"[{evidence.number}] does not say: {', '.join(evidence.missing)}")
        if evidence.other:
            parts.append(f"[{evidence.number}] says {evidence.other} instead")
    return "; ".join(parts)


def _quote_span(evidence: Evidence) -> str:
    """A passage as a JSON string, so that nothing in it can end the quotation."""
    return json.dumps(_BLANK.sub(" ", evidence.span)[:MAX_SPAN_CHARS], ensure_ascii=False)
