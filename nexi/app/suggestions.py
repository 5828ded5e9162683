"""Suggestions: what one might ask next, by a model in one cheap call, made once, or else from the pages that were read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from nexi.answers.answered import list_readings, narrow_question
from nexi.answers.follow_ups import AnswerPage, make_follow_ups
from nexi.app.assembly import Nexi
from nexi.app.gate import open_gate
from nexi.app.request import budget_for
from nexi.app.resume import request_to_resume
from nexi.errors import LLMError
from nexi.events import Fact, PageFetched, RunFinished, RunStarted
from nexi.files import keep_json, read_json_as
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured import ranking
from nexi.types import Message

MAX_QUESTIONS = 3
ANSWER_CHARS = 6_000
MAX_TOKENS = 300
PATIENCE_S = 20.0
MAX_PAGES = 8
QUOTA_REACHED = "quota_reached"


async def suggestions_after(nexi: Nexi, run_id: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """At most three questions after a run that ended with an answer, within its scope and budget; one for each reading of a
    question that may mean several things. Raises NexiError where a quota is reached."""
    started, finished = facts[0], facts[-1]
    if not isinstance(started, RunStarted) or not isinstance(finished, RunFinished):
        raise TypeError("these are not the facts of a run that ended with an answer")
    if not nexi.config.suggestions or not finished.answer.strip():
        return ()
    if readings := list_readings(finished.answer, finished.answered):
        return tuple(narrow_question(started.query, reading) for reading in readings)
    request = request_to_resume(started, None)
    budget, calls = replace(budget_for(nexi.config, request.limits), max_seconds=None), finished.model_calls
    gate = open_gate(nexi.ports, budget=budget, is_local=request.is_local, spent=finished.usage, calls=calls)
    llm = gate.open_judge("suggest")
    if llm is None and not nexi.config.endpoint("judge").is_extractive:
        return ()  # the scope keeps the model out
    if llm:  # a model is asked once; it may have nothing usable to say
        place = nexi.config.runs_dir / run_id / "suggestions.json"
        questions = await asyncio.to_thread(read_json_as, place, tuple[str, ...])
        if questions is None:
            questions = await _ask_model(nexi, llm, started.query, finished.answer)
            await asyncio.to_thread(keep_json, place, questions, makes_folder=False)  # of a run that is gone
        if questions:
            return questions[:MAX_QUESTIONS]
    # what the pages say beside the answer, those that it cites first
    pairs = [(source.digest, source.title) for source in finished.sources]
    pairs += [(fact.digest, fact.title) for fact in facts if isinstance(fact, PageFetched)]
    store, titles = nexi.pages(), dict(pairs)
    texts = [(digest, await store.get(digest)) for digest in list(titles)[:MAX_PAGES] if digest]
    pages = [AnswerPage(titles[digest], text) for digest, text in texts if text]
    return await asyncio.to_thread(make_follow_ups, started.query, finished.answer, pages)


async def _ask_model(nexi: Nexi, llm: LLM, question: str, answer: str) -> tuple[str, ...]:
    text = f"Question: {question[:2_000]}\n\nAnswer: {answer[:ANSWER_CHARS]}"
    messages = [Message("system", render("follow_ups", folder=nexi.config.prompts_dir)), Message("user", text)]
    deadline = nexi.clock.monotonic() + PATIENCE_S
    schema = ranking.queries_schema(1, MAX_QUESTIONS)
    try:
        reply = await llm.complete(messages, max_tokens=MAX_TOKENS, deadline=deadline, schema=schema)
        return ranking.read_queries(reply.text, 1, MAX_QUESTIONS)
    except LLMError as error:
        if error.code == QUOTA_REACHED:
            raise
        return ()  # a convenience: an answer without it is whole
    except ValueError:
        return ()
