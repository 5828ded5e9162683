"""Questions beside a run: what one leaves open before research is planned, and what one might ask next.

A person is asked back once; a door without a person lets the run write about each reading. What to ask next comes from a model
in one cheap call, made once, or else from the pages that were read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.answered import list_readings, narrow_question
from nexi.answers.follow_ups import AnswerPage, make_follow_ups
from nexi.app.gate import open_gate
from nexi.app.request import RunRequest, budget_for
from nexi.app.resume import request_to_resume
from nexi.errors import LLMError
from nexi.events import Fact, PageFetched, RunFinished, RunStarted
from nexi.files import keep_json, read_json_as
from nexi.ports import LLM
from nexi.prompts import render
from nexi.structured import ranking
from nexi.text.references import find_namesakes, find_open_reference
from nexi.text.words import find_names
from nexi.types import Hit, Message

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi

MAX_READINGS = 5
MAX_NAME_CHARS = 80
# Marks of code and markup, which a title may hold and a name does not.
_NO_NAME = re.compile(r"[<>{}\[\]|`=;\\]|&\w+;|://")
MAX_QUESTIONS = 3
ANSWER_CHARS = 6_000
MAX_TOKENS = 300
PATIENCE_S = 20.0
MAX_PAGES = 8
QUOTA_REACHED = "quota_reached"


class OpenQuestion(Struct, frozen=True):
    """The things that a question may mean, or the kind of thing that it does not name; neither where it is clear."""

    readings: tuple[str, ...] = ()
    kind: str = ""

    def __bool__(self) -> bool:
        return bool(self.readings or self.kind)


async def find_open_question(nexi: Nexi, request: RunRequest, earlier: Sequence[Message] = ()) -> OpenQuestion:
    """What a question leaves open after those before it; nothing where a search fails, since the run says what failed. Raises
    QuestionError or ConfigError."""
    nexi.check_request(request)
    if kind := "" if request.attachments else find_open_reference(request.question, earlier):
        return OpenQuestion(kind=kind)
    if not find_names(request.question) or (request.is_local and request.space):
        return OpenQuestion()
    query = replace(request.query, text=request.question)
    outcome = await (nexi.find_known(query) if request.is_local else nexi.find(query))
    return OpenQuestion(_list_namesakes(request.question, outcome.hits))


def _list_namesakes(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The things of one name that search results are about, in their order."""
    about = find_namesakes(question, [(hit.title, hit.snippet) for hit in hits])
    names = [name for name in dict.fromkeys(about.values()) if len(name) <= MAX_NAME_CHARS and not _NO_NAME.search(name)]
    return tuple(names[:MAX_READINGS]) if len(names) > 1 else ()


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
