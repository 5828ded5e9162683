"""Asks the model to write the sentences of its answer again that a judge rejected.

Above it is the loop, which says whether the budget allows a call; below it is the LLM port. A reply is JSON or it is nothing:
what cannot be read changes no sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nexi.checking.answer import Rejected
from nexi.checking.judge import quote_text
from nexi.checking.review import find_opening
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema, object_schema
from nexi.types import Message

MAX_SENTENCES = 40
MAX_SPAN_CHARS = 1_200
TOKENS_PER_SENTENCE = 120
MIN_TOKENS = 300


async def rewrite_sentences(
    llm: LLM,
    question: str,
    rejected: Sequence[Rejected],
    *,
    max_tokens: int,
    deadline: float | None = None,
    prompts_folder: Path | None = None,
) -> dict[int, str]:
    """New sentences by position in `rejected`, "" for one to leave out. Raises LLMError."""
    batch = rejected[:MAX_SENTENCES]
    parts = [f"Question: {question}"]
    for n, each in enumerate(batch, 1):
        sentence = each.claim.text[len(find_opening(each.claim.text)) :].strip()
        lines = [f"Sentence {n}: {sentence}", f"What is wrong: {each.claim.reason}"]
        lines += (f"Page [{page}] says: {quote_text(words[:MAX_SPAN_CHARS])}" for page, words in each.passages)
        parts.append("\n".join(lines))
    entry = object_schema({"n": {"type": "integer"}, "text": {"type": "string"}}, is_closed=True)
    schema = object_schema({"sentences": {"type": "array", "items": entry, "maxItems": len(batch)}}, is_closed=True)
    reply = await llm.complete(
        [Message("system", render("correction", folder=prompts_folder)), Message("user", "\n\n".join(parts))],
        max_tokens=min(max_tokens, max(MIN_TOKENS, TOKENS_PER_SENTENCE * len(batch))),
        temperature=0.0,
        deadline=deadline,
        schema=schema,
    )
    try:
        value = parse_lenient(reply.text)
    except ValueError:
        return {}
    entries = value["sentences"] if isinstance(value, dict) and not check_schema(value, schema) else []
    return {e["n"] - 1: " ".join(e["text"].split()) for e in entries if 1 <= e["n"] <= len(batch)}
