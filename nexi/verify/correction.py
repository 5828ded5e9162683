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
from nexi.verify.checker import Doubt
from nexi.verify.edits import opening

MOST_SENTENCES = 40
SPAN_CHARS = 600
TOKENS_PER_SENTENCE = 120
FEWEST_TOKENS = 300

_BLANK = re.compile(r"\s+")
_TEXT = {"type": "string"}


def _listing(name: str, text: str, most: int) -> dict[str, Any]:
    """The schema of a reply: a list of numbers with a text each."""
    entry = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, text: _TEXT},
        "required": ["n", text],
        "additionalProperties": False,
    }
    entries = {"type": "array", "items": entry, "maxItems": most}
    return {"type": "object", "properties": {name: entries}, "required": [name], "additionalProperties": False}


class Request(Struct, frozen=True):
    """How a model is asked: whose, until when, and with which prompts."""

    llm: LLM
    question: str
    max_tokens: int
    deadline: float | None = None
    prompts_folder: Path | None = None

    async def mended(self, doubts: Sequence[Doubt]) -> dict[int, str]:
        """New sentences by position in `doubts`, "" for one to leave out. Raises LLMError."""
        asked = doubts[:MOST_SENTENCES]
        task = f"Question: {self.question}\n\n" + "\n\n".join(_doubt_text(n, d) for n, d in enumerate(asked, 1))
        entries = await self._ask("correction", task, _listing("sentences", "text", len(asked)))
        return {e["n"] - 1: _BLANK.sub(" ", e["text"]).strip() for e in entries if 1 <= e["n"] <= len(asked)}

    async def _ask(self, prompt: str, task: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        name = next(iter(schema["properties"]))
        most = schema["properties"][name]["maxItems"]
        reply = await self.llm.complete(
            [Message("system", render(prompt, folder=self.prompts_folder)), Message("user", task)],
            max_tokens=min(self.max_tokens, max(FEWEST_TOKENS, TOKENS_PER_SENTENCE * most)),
            temperature=0.0,
            deadline=self.deadline,
            schema=schema,
        )
        try:
            value = parse_lenient(reply.text)
        except ValueError:
            return []
        return list(value[name]) if isinstance(value, dict) and not check_schema(value, schema) else []


def _doubt_text(n: int, doubt: Doubt) -> str:
    claim = doubt.claim
    lines = [f"Sentence {n}: {claim.text[len(opening(claim.text)) :].strip()}", f"What is wrong: {_problem(claim)}"]
    seen: set[str] = set()
    for evidence in (*claim.evidence, *doubt.hints):
        if evidence.span and evidence.span not in seen:
            seen.add(evidence.span)
            lines.append(f"Page [{evidence.number}] says: {_quoted(evidence)}")
    return "\n".join(lines)


def _problem(claim: Claim) -> str:
    """The verdict in words, with what is missing and what the page has instead."""
    parts = [claim.reason or claim.verdict.value.replace("_", " ")]
    for evidence in claim.evidence:
        if evidence.missing:
            parts.append(f"[{evidence.number}] does not say: {', '.join(evidence.missing)}")
        if evidence.other:
            parts.append(f"[{evidence.number}] says {evidence.other} instead")
    return "; ".join(parts)


def _quoted(evidence: Evidence) -> str:
    """A passage as a JSON string, so that nothing in it can end the quotation."""
    return json.dumps(_BLANK.sub(" ", evidence.span)[:SPAN_CHARS], ensure_ascii=False)
