"""Extracts what a page says about a question with the extract model: a summary, or passages verbatim."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from nexi.errors import NexiError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check_schema, object_schema
from nexi.text.chunking import chunk_markdown
from nexi.types import Message

MAX_SUMMARY_TOKENS = 2000
MAX_FALLBACK_CHARS = 2000
MAX_CHUNK_CHARS = 2000
MAX_CHUNKS = 60


class ExtractLimits(Struct, frozen=True):
    deadline: float | None = None
    prompts_folder: Any = None
    window_bytes: int = 60_000
    summary_tokens: int = MAX_SUMMARY_TOKENS

    def cut_to_window(self, text: str) -> str:
        """Cut a request to the window of the extract model; a text never has more tokens than bytes."""
        return text.encode("utf-8", "replace")[: self.window_bytes].decode("utf-8", "ignore")


async def summarise(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """Summarise a page for a question; returns the beginning of the page if the model fails."""
    wish = instructions or "Answer the question."
    prompt = render("extractor", folder=limits.prompts_folder, query=question, instructions=wish)
    messages = [Message("system", prompt), Message("user", limits.cut_to_window(text))]
    try:
        reply = await llm.complete(messages, max_tokens=limits.summary_tokens, temperature=0.0, deadline=limits.deadline)
    except NexiError:
        return text[:MAX_FALLBACK_CHARS]
    return reply.text.strip() or text[:MAX_FALLBACK_CHARS]


async def pick_chunks(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """Return the passages the model chose, verbatim and in order; the beginning of the page if it chose none."""
    chunks = [text[chunk.start : chunk.end].strip("\n") for chunk in chunk_markdown(text, MAX_CHUNK_CHARS)[:MAX_CHUNKS]]
    listing = "\n\n".join(f"[chunk {i}]\n{chunk}" for i, chunk in enumerate(chunks))
    prompt = render("chunks", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question.")
    schema = object_schema({"pick": {"type": "array", "items": {"type": "integer"}, "maxItems": len(chunks)}})
    messages = [Message("system", prompt), Message("user", limits.cut_to_window(listing))]
    try:
        reply = await llm.complete(messages, max_tokens=256, temperature=0.0, deadline=limits.deadline, schema=schema)
        value = parse_lenient(reply.text)
    except (NexiError, ValueError):
        return text[:MAX_FALLBACK_CHARS]
    if check_schema(value, schema) or not isinstance(value, dict):
        return text[:MAX_FALLBACK_CHARS]
    picks = sorted({i for i in value["pick"] if 0 <= i < len(chunks)})
    return "\n\n".join(chunks[i] for i in picks) or text[:MAX_FALLBACK_CHARS]
