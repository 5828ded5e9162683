"""snippet_rank and llm_query: one model call each, a strict reply, and a fixed fallback.

The service stands above, a model behind its port below; `ranking` says what a reply must be and what stands in for one.
Nothing is asked twice. Each answer says whether it fell back, and is told as a fact, which `nexi serve -v` logs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from nexi.apis.search.schema import QueryField, clean_query, query_text, read_body, request_error
from nexi.errors import LLMError
from nexi.events import Judged
from nexi.ports import LLM, Clock, Emit
from nexi.prompts import render
from nexi.structured import ranking
from nexi.structured.ranking import Pick
from nexi.types import Message

__all__ = ["RankBody", "rank_snippets", "rewrite_query"]

TOP_K = 10
WANT_N = 3
MAX_TOP_K = 50
TEMPERATURE = 0.0
MAX_TEMPERATURE = 0.2
MAX_TOKENS = (64, 128)
CALL_S = 30.0
SNIPPET_CHARS = 300
TITLE_CHARS = 200
USER_TEXT_CHARS = 8_000


class ModelCall(Struct, frozen=True, kw_only=True):
    """How the model is asked."""

    temperature: Annotated[float, Meta(ge=0, le=MAX_TEMPERATURE)] | None = TEMPERATURE
    max_tokens: Annotated[int, Meta(ge=MAX_TOKENS[0], le=MAX_TOKENS[1])] | None = MAX_TOKENS[0]


class RankCandidate(Struct, frozen=True):
    """A result to choose from."""

    i: Annotated[int, Meta(ge=0, description="its index, as `pick_ids` has it; else its place")] | None = None
    title: str | None = None
    snippet: str | None = None
    url: str | None = None


class RankBody(ModelCall, frozen=True, kw_only=True):
    """Results, of which the most relevant are wanted."""

    qid: Annotated[str, Meta(description="the caller's own name for this request; echoed")] | None = None
    query: QueryField
    candidates: Annotated[tuple[RankCandidate, ...], Meta(max_length=1000)]
    want_n: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] | None = WANT_N
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] | None = TOP_K


class RewriteBody(ModelCall, frozen=True, kw_only=True):
    """What a user wrote, to be made a query."""

    text: Annotated[str, Meta(min_length=1, max_length=100_000)]


async def rank_snippets(data: object, llm: LLM | None, clock: Clock, emit: Emit, prompts: Path | None) -> dict[str, Any]:
    """`{"pick": [...], "fallback_used": ...}`, the best candidates first. Raises QuestionError."""
    request = read_body(data, RankBody)
    query = query_text(request.query)
    candidates = request.candidates[: request.top_k or TOP_K]
    indices = [place if c.i is None else c.i for place, c in enumerate(candidates)]  # the caller's own, where it has some
    if len(set(indices)) < len(indices):
        raise request_error(f"candidates: two have the same index in {json.dumps(indices)}")
    lines = []
    for place, candidate in enumerate(candidates):
        title, snippet = _one_line(candidate.title, TITLE_CHARS), _one_line(candidate.snippet, SNIPPET_CHARS)
        url = _one_line(candidate.url, 500)
        lines.append(f"{place}) {title} — {snippet}" + (f" (URL: {url})" if url else ""))
    listing, want = "\n".join(lines), min(request.want_n or WANT_N, len(candidates))
    messages = (
        Message("system", render("snippet_rank", folder=prompts, today=f"{clock.now():%Y-%m-%d}", want_n=want)),
        Message("user", f"Question: {query}\n\nCandidates:\n{listing}\nReturn JSON only."),
    )
    pick, reason, count = Pick(()), "", len(candidates)
    if count:
        text, reason = await _ask_model(llm, messages, request, ranking.pick_schema(count, want), clock)
        try:
            pick = ranking.first_ones(count, want) if reason else ranking.read_pick(text, count, want)
        except ValueError as error:
            pick, reason = ranking.first_ones(count, want), f"the reply could not be used: {error}"
    urls = [_one_line(candidates[place].url, 8192) for place in pick.order]
    picks = [indices[place] for place in pick.order]
    by = "fallback" if pick.fell_back else "model"
    await emit(Judged("snippets", by, items=tuple(f"{i} {url}".strip() for i, url in zip(picks, urls, strict=True))))
    name, why = {} if request.qid is None else {"qid": request.qid}, {"why": list(pick.why)} if pick.why else {}
    return {**name, "pick": picks, "urls": urls, "fallback_used": pick.fell_back, "reason": reason, **why}


async def rewrite_query(data: object, llm: LLM | None, clock: Clock, emit: Emit, prompts: Path | None) -> dict[str, Any]:
    """`{"query": ..., "fallback_used": ...}`: what to search for, from what a user wrote. Raises QuestionError."""
    request = read_body(data, RewriteBody)
    own = clean_query(request.text)
    messages = (
        Message("system", render("llm_query", folder=prompts, today=f"{clock.now():%Y-%m-%d}")),
        Message("user", request.text.encode("utf-8", "replace").decode()[:USER_TEXT_CHARS]),
    )
    text, reason = await _ask_model(llm, messages, request, ranking.queries_schema(1, 1), clock)
    try:
        query = ranking.read_queries(text, 1, 1)[0] if not reason else ""
    except ValueError as error:
        query, reason = "", f"the reply could not be used: {error}"
    await emit(Judged("query", "model" if query else "fallback", items=(query or own,)))
    return {"query": query or own, "fallback_used": not query, "reason": reason}


async def _ask_model(
    llm: LLM | None, messages: Sequence[Message], request: ModelCall, schema: Mapping[str, Any], clock: Clock
) -> tuple[str, str]:
    """What the model wrote, and why there is nothing where there is nothing."""
    if llm is None:
        return "", "no model is configured"
    try:
        reply = await llm.complete(
            messages,
            max_tokens=request.max_tokens or MAX_TOKENS[0],
            temperature=request.temperature or TEMPERATURE,
            deadline=clock.monotonic() + CALL_S,
            schema=schema,
            retries=False,  # the client has a fallback and waits
        )
    except LLMError as error:
        return "", f"the model could not be asked: {error}"
    return reply.text, ""


def _one_line(text: object, most: int) -> str:
    return " ".join(str(text or "").encode("utf-8", "replace").decode().split())[:most]
