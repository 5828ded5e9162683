"""What a page says about a question, by the extract model: a summary, or passages word for word."""

from __future__ import annotations

from typing import Any

from nexi.errors import NexiError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import check
from nexi.types import Message
from nexi.values import frozen

SUMMARY_TOKENS = 2000
FALLBACK_CHARS = 2000
CHUNK_CHARS = 2000
CHUNKS_SHOWN = 60


@frozen
class ExtractLimits:
    deadline: float | None = None
    prompts_folder: Any = None
    window_bytes: int = 60_000
    summary_tokens: int = SUMMARY_TOKENS

    def fit(self, text: str) -> str:
        """What of a page the extract model can take in; bytes bound tokens in every script."""
        return text.encode("utf-8", "replace")[: self.window_bytes].decode("utf-8", "ignore")


async def summarise(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """What matters of a page, in at most `summary_tokens`; the page's beginning when the model fails."""
    prompt = render(
        "extractor", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question."
    )
    messages = [Message("system", prompt), Message("user", limits.fit(text))]
    try:
        reply = await llm.complete(messages, max_tokens=limits.summary_tokens, temperature=0.0, deadline=limits.deadline)
    except NexiError:
        return text[:FALLBACK_CHARS]
    return reply.text.strip() or text[:FALLBACK_CHARS]


async def pick_chunks(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """The passages the model chose, word for word and in order; the page's beginning when it chose none."""
    chunks = split_chunks(text)[:CHUNKS_SHOWN]
    numbered = "\n\n".join(f"[chunk {i}]\n{chunk}" for i, chunk in enumerate(chunks))
    prompt = render("chunks", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question.")
    schema = {
        "type": "object",
        "properties": {"pick": {"type": "array", "items": {"type": "integer"}, "maxItems": len(chunks)}},
        "required": ["pick"],
    }
    messages = [Message("system", prompt), Message("user", limits.fit(numbered))]
    try:
        reply = await llm.complete(messages, max_tokens=256, temperature=0.0, deadline=limits.deadline, schema=schema)
        picked = parse_lenient(reply.text)
    except (NexiError, ValueError):
        return text[:FALLBACK_CHARS]
    if check(picked, schema) or not isinstance(picked, dict):
        return text[:FALLBACK_CHARS]
    chosen = sorted({i for i in picked["pick"] if 0 <= i < len(chunks)})
    return "\n\n".join(chunks[i] for i in chosen) or text[:FALLBACK_CHARS]


def split_chunks(text: str, size: int = CHUNK_CHARS) -> list[str]:
    """Paragraphs joined up to `size` characters; a longer paragraph is cut."""
    chunks: list[str] = []
    current = ""
    for paragraph in text.split("\n\n"):
        for piece in [paragraph[i : i + size] for i in range(0, len(paragraph), size)] or [""]:
            if current and len(current) + len(piece) + 2 > size:
                chunks.append(current)
                current = ""
            current = f"{current}\n\n{piece}" if current else piece
    return [c for c in [*chunks, current] if c.strip()]
