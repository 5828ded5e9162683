"""Suggestions: what one might ask next, from a question and its answer, in one cheap model call that is made once.

Above, the page; below, a model and the folder of the run, where they are kept. Without a model there are
none.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nexi.app.gate import open_gate
from nexi.app.request import budget_for
from nexi.app.resume import request_to_resume
from nexi.errors import LLMError
from nexi.events import RunFinished, RunStarted
from nexi.files import replace_file
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured import ranking
from nexi.types import Message

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi

WANTED = 3
ANSWER_CHARS = 6_000
MAX_TOKENS = 300
PATIENCE_S = 20.0
QUOTA_REACHED = "quota_reached"


async def suggestions_after(nexi: Nexi, run_id: str, started: RunStarted, finished: RunFinished) -> tuple[str, ...]:
    """At most three questions; none where they are switched off, there is no model, or it has nothing usable to say.

    They belong to their run: its scope and what is left of its budget hold for them. Raises NexiError where a quota is reached.
    """
    if not nexi.config.suggestions or not finished.answer.strip():
        return ()
    request = request_to_resume(started, None)
    gate = open_gate(
        nexi.ports,
        budget=replace(budget_for(nexi.config, request.limits), max_seconds=None),
        is_local=request.is_local,
        spent=finished.usage,
        calls=finished.model_calls,
    )
    llm = gate.open_judge("suggest")
    if llm is None:
        return ()
    place = nexi.config.runs_dir / run_id / "suggestions.json"
    known = await asyncio.to_thread(_read_kept, place)
    if known is not None:
        return known
    made = await _ask_model(nexi, llm, started.query, finished.answer)
    await asyncio.to_thread(_write_kept, place, made)
    return made


async def _ask_model(nexi: Nexi, llm: LLM, question: str, answer: str) -> tuple[str, ...]:
    told = f"Question: {question[:2_000]}\n\nAnswer: {answer[:ANSWER_CHARS]}"
    messages = [Message("system", render("follow_ups", folder=nexi.config.prompts_dir)), Message("user", told)]
    deadline = nexi.clock.monotonic() + PATIENCE_S
    schema = ranking.queries_schema(1, WANTED)
    try:
        reply = await llm.complete(messages, max_tokens=MAX_TOKENS, deadline=deadline, schema=schema)
        return ranking.read_queries(reply.text, 1, WANTED)
    except LLMError as error:
        if error.code == QUOTA_REACHED:
            raise
        return ()  # a convenience: an answer without it is whole
    except ValueError:
        return ()


def _read_kept(place: Path) -> tuple[str, ...] | None:
    try:
        kept = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return tuple(line for line in kept if isinstance(line, str))[:WANTED] if isinstance(kept, list) else None


def _write_kept(place: Path, made: tuple[str, ...]) -> None:
    try:
        replace_file(place, json.dumps(made).encode())
    except OSError:
        return  # asked again next time
