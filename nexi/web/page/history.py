"""The page's list of what was asked: runs with their state, and answers of the history whose run is gone.

Above, the page; below, the run log and the history. A search covers questions and answers. To delete one is to forget its run
and its line of the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import Nexi, RunSummary, check_run_id
from nexi.app.conversation import cited_sources
from nexi.errors import NexiError
from nexi.ports import HistoryStore, RunStore
from nexi.types import HistoryEntry
from nexi.web.page.view import answer_html, source_view
from nexi.web.payload import json_reply
from nexi.web.problems import bad_request
from nexi.web.runs import delete_run

__all__ = ["limit_of", "read_from_history", "routes", "words_of"]


LISTED, MOST_LISTED = 100, 1000
LONGEST_SEARCH = 200
EXCERPT_CHARS = 160
ONLY_AN_ANSWER = "answer kept"


def routes() -> list[Route]:
    return [
        Route("/page/history", _list_history, methods=["GET"]),
        Route("/page/history/{id}", _remove_entry_and_run, methods=["DELETE"]),
    ]


async def _list_history(request: Request) -> Response:
    """The newest first: all of them, or those whose question or answer has the words of `q` in it."""
    nexi: Nexi = request.app.state.nexi
    wanted, limit = words_of(request), limit_of(request)
    found = await asyncio.to_thread(_list_entries, nexi.runs(), nexi.history(), wanted.casefold(), limit + 1)
    return json_reply({"items": found[:limit], "more": len(found) > limit})


def words_of(request: Request) -> str:
    wanted = " ".join(request.query_params.get("q", "").split())
    if len(wanted) > LONGEST_SEARCH:
        raise bad_request(f"q has more than {LONGEST_SEARCH} characters", parameter="q")
    return wanted


def limit_of(request: Request) -> int:
    text = request.query_params.get("limit", "") or str(LISTED)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST_LISTED):
        raise bad_request(f"limit must be a number from 1 to {MOST_LISTED}", parameter="limit")
    return int(text)


def _list_entries(runs: RunStore, history: HistoryStore, wanted: str, most: int) -> list[dict[str, Any]]:
    """Runs and lone answers that fit, as the page lists them. Raises StoreError."""
    read = history.find(wanted) if wanted else history.read(most)
    entries = {entry.id: entry for entry in read.entries}
    summaries = {run.id: run for run in runs.list_runs(0 if wanted else most)}
    items = [*_of_runs(summaries.values(), entries, wanted), *_of_answers(entries, summaries, runs, wanted)]
    return sorted(items, key=lambda item: (item["created"], item["id"]), reverse=True)[:most]


def _of_runs(summaries: Iterable[RunSummary], entries: Mapping[str, HistoryEntry], wanted: str) -> Iterator[dict[str, Any]]:
    for run in summaries:
        if wanted in run.query.casefold() or run.id in entries:
            item = {"id": run.id, "question": run.query, "state": run.state, "mode": run.mode, "created": run.created}
            yield {**item, "excerpt": excerpt_answer(entries[run.id].answer, wanted) if run.id in entries else ""}


def _of_answers(
    entries: Mapping[str, HistoryEntry], summaries: Mapping[str, RunSummary], runs: RunStore, wanted: str
) -> Iterator[dict[str, Any]]:
    for entry in entries.values():
        if entry.id not in summaries:
            is_kept = runs.has_run(entry.id)
            state = "finished" if is_kept else ONLY_AN_ANSWER
            item = {"id": entry.id, "question": entry.query, "state": state, "mode": "search", "created": entry.ts}
            yield {**item, "excerpt": excerpt_answer(entry.answer, wanted)}


def excerpt_answer(answer: str, wanted: str) -> str:
    """A stretch of the answer around the words that were looked for; its beginning where they are not in it."""
    text = " ".join(answer.split())
    at = max(0, text.casefold().find(wanted)) if wanted else 0
    start = max(0, at - EXCERPT_CHARS // 3)
    cut = text[start : start + EXCERPT_CHARS]
    return ("…" if start else "") + cut + ("…" if start + EXCERPT_CHARS < len(text) else "")


async def _remove_entry_and_run(request: Request) -> Response:
    """Forget a run and its answer."""
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    gone = await asyncio.to_thread(nexi.history().remove, run_id)
    try:
        await delete_run(request.app.state.host, run_id)
    except NexiError as error:
        if not gone or error.code != "no_such_run":
            raise
    return Response(status_code=204)


def read_from_history(nexi: Nexi, run_id: str) -> dict[str, Any] | None:
    """What the history still has of a run that is gone, in the form of a run's view; None where it has nothing."""
    entry = nexi.history().get(run_id)
    if entry is None:
        return None
    sources = cited_sources(nexi.runs(), entry)
    return {
        "id": entry.id,
        "question": entry.query,
        "mode": "search",
        "model": "",
        "created": entry.ts,
        "text": entry.answer,
        "html": answer_html(entry.answer, (), sources),
        "answered": "",
        "answered_note": "",
        "figures": "",
        "claims": [],
        "dropped": [],
        "conflicts": [],
        "sources": [source_view(source, ()) for source in sources],
        "stop": "",
        "seconds": entry.duration_s,
        "tokens": entry.tokens,
        "cost": None,
        "timeline": [],
        "kept": False,
    }
