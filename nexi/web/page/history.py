"""The page's list of what was asked: runs with their state, and answers of the history whose run is gone.

Above, the page; below, the run log and the history. A search covers questions and answers. To delete one is to forget its run
and its line of the history. A run belongs to the conversation of the one it continues. The name, the pin and the shared link
that a person gave a run are its label, in one small file beside the runs, which it never changes. A shared run is one HTML page
behind a link that cannot be guessed, where the owner of the server allows it: the link needs no token of the server and shows
nothing but this run, and nothing on it runs or loads. Whoever may use the page may take it back.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi, check_run_id
from nexi.app.conversation import cited_sources
from nexi.errors import NexiError, StoreError
from nexi.events import RunFinished, RunStarted
from nexi.exports import export_run
from nexi.files import write_json_object
from nexi.ports import HistoryStore, RunStore
from nexi.text.words import contains_words
from nexi.types import RunAudience
from nexi.web.contract import Contract
from nexi.web.page.view import answer_html, answered_of, source_view, view_of
from nexi.web.payload import Refused, bad_request, build_refusal, json_reply, parse_number, read_body, told_reply
from nexi.web.runs import SHOWN, delete_run

__all__ = ["CONTRACT", "LISTED", "MAX_LISTED", "describe_sharing", "read_from_history", "words_of"]

CONTRACT = Contract()
LISTED, MAX_LISTED = 100, 1000
FILTERS = ("space", "state", "mode")
MAX_SEARCH_CHARS = 200
EXCERPT_CHARS = 160
LABELS = "labels.json"
ONLY_AN_ANSWER = "answer kept"
MAX_TURNS = 30
KEY_BYTES = 24
TEAM, NOBODY = RunAudience(team=True), RunAudience()
SHARED_HEADERS = {**SHOWN, "cache-control": "private, no-store", "x-robots-tag": "noindex, nofollow"}
_KEY = re.compile(r"[A-Za-z0-9_-]{32}")


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """The name and the pin of a run; what is left out stays."""

    title: Annotated[str, Meta(max_length=300)] | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET


@CONTRACT.serve("GET /page/history")
async def _list_history(request: Request) -> Response:
    """The newest first: all of them, or those whose question or answer contains `q`, or of one space, state or mode."""
    nexi: Nexi = request.app.state.nexi
    words, limit = words_of(request), parse_number(request, "limit", LISTED, most=MAX_LISTED)
    labels = await asyncio.to_thread(_read_labels, nexi)
    filters = {name: value for name in FILTERS if (value := request.query_params.get(name, ""))}
    most = MAX_LISTED if filters else limit + 1
    items = await asyncio.to_thread(_list_entries, nexi.runs(), nexi.history(), labels, words.casefold(), most)
    items = [item for item in items if all(item[name] == value for name, value in filters.items())]
    shown_labels = {  # whether a run is shared, and never the key of its link
        run_id: {name: bool(value) if name == "share" else value for name, value in label.items()}
        for run_id, label in labels.items()
    }
    page = [{**item, **shown_labels.get(item["id"], {})} for item in items[:limit]]
    return json_reply({"items": page, "more": len(items) > limit})


def words_of(request: Request) -> str:
    words = " ".join(request.query_params.get("q", "").split())
    if len(words) > MAX_SEARCH_CHARS:
        raise bad_request(f"q has more than {MAX_SEARCH_CHARS} characters", parameter="q")
    return words


def _list_entries(
    runs: RunStore, history: HistoryStore, labels: Mapping[str, Mapping[str, Any]], words: str, most: int
) -> list[dict[str, Any]]:
    """Runs and lone answers that fit, as the page lists them, those with a pin first. Raises StoreError."""
    entries = {entry.id: entry for entry in (history.find(words, most) if words else history.read(most)).entries}
    pinned = {run_id for run_id, label in labels.items() if label.get("pinned")}
    titles = {run_id: str(label["title"]) for run_id, label in labels.items() if label.get("title")}
    labelled = {run_id for run_id, title in titles.items() if any(word in title.casefold() for word in words.split())}
    if words:  # a pin may be older than the newest that fit, and some of the words may stand in a name
        old = (history.get(run_id) for run_id in (pinned | labelled) - entries.keys())
        texts = ((entry, f"{titles.get(entry.id, '')}\n{entry.query}\n{entry.answer}") for entry in old if entry)
        entries |= {entry.id: entry for entry, text in texts if contains_words(text, words)}
    summaries = {run.id: run for run in (runs.find_runs(words, most) if words else runs.list_runs(most))}
    others = (labelled | pinned | (entries.keys() if words else set())) - summaries.keys()
    summaries |= {run.id: run for run in runs.read_summaries(others)}
    items = []
    for run in summaries.values():
        if run.id in entries or contains_words(f"{titles.get(run.id, '')}\n{run.query}", words):
            state: str = "waiting" if run.is_waiting else run.shown_state
            item = {"id": run.id, "question": run.query, "state": state, "mode": run.mode, "created": run.created}
            spent = {"words": run.words, "seconds": run.seconds, "tokens": run.tokens, "cost": run.cost}
            excerpt = excerpt_answer(entries[run.id].answer, words) if run.id in entries else ""
            first, ids = run, {run.id}  # the first run of the conversation, as far as it is listed
            while (before := summaries.get(first.continues)) and before.id not in ids:
                first = before
                ids.add(first.id)
            items.append({**item, **spent, "thread": first.id, "excerpt": excerpt, "space": run.space})
    for entry in entries.values():
        if entry.id not in summaries:
            state = "finished" if runs.has_run(entry.id) else ONLY_AN_ANSWER
            item = {"id": entry.id, "question": entry.query, "state": state, "mode": "search", "created": entry.ts}
            spent = {"words": len(entry.answer.split()), "seconds": entry.duration_s, "tokens": entry.tokens, "cost": None}
            excerpt = excerpt_answer(entry.answer, words)
            items.append({**item, **spent, "thread": entry.id, "excerpt": excerpt, "space": entry.space})
    return sorted(items, key=lambda item: (item["id"] in pinned, item["created"], item["id"]), reverse=True)[:most]


def excerpt_answer(answer: str, words: str) -> str:
    """A stretch of the answer around the words that were looked for; its beginning where none of them is in it."""
    text = " ".join(answer.split())
    places = [place for word in (words, *words.split()) if word and (place := text.casefold().find(word)) >= 0]
    start = max(0, (places[0] if places else 0) - EXCERPT_CHARS // 3)
    excerpt = text[start : start + EXCERPT_CHARS]
    return ("…" if start else "") + excerpt + ("…" if start + EXCERPT_CHARS < len(text) else "")


def _read_labels(nexi: Nexi) -> dict[str, dict[str, Any]]:
    """Labels by the id of their run; a file that cannot be read is as good as none."""
    try:
        read = json.loads((nexi.config.personal_dir / "state" / LABELS).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(k): v for k, v in read.items() if isinstance(v, dict)} if isinstance(read, dict) else {}


def _set_label(nexi: Nexi, run_id: str, change: Mapping[str, Any] | None) -> dict[str, Any]:
    """Change the label of a run, or remove it. One caller at a time. Raises StoreError."""
    labels, place = _read_labels(nexi), nexi.config.personal_dir / "state" / LABELS
    before = labels.pop(run_id, {})
    label = {name: value for name, value in {**before, **change}.items() if value} if change is not None else {}
    if label:
        labels[run_id] = label
    if label or place.exists():
        write_json_object(place, labels, "the label could not be kept")
    return label


@CONTRACT.serve("DELETE /page/history/{id}")
async def _remove_entry_and_run(request: Request) -> Response:
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    is_removed = await asyncio.to_thread(nexi.history().remove, run_id)  # first: its run may be gone
    try:
        await delete_run(request.app.state.host, run_id)
    except NexiError as error:
        if not is_removed or error.code != "no_such_run":
            raise
    await asyncio.to_thread(_set_label, nexi, run_id, None)
    return Response(status_code=204)


@CONTRACT.serve("POST /page/history/{id}")
async def _label_run(request: Request) -> Response:
    """Give a run a name or a pin, or take them away."""
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    change: dict[str, Any] = to_builtins(await read_body(request, Label))
    await asyncio.to_thread(_require_run, nexi, run_id)
    if "title" in change:
        change["title"] = " ".join(change["title"].split())
    async with request.app.state.taking:  # one at a time: the file is read, changed and written
        label = await asyncio.to_thread(_set_label, nexi, run_id, change)
    return json_reply(label)


def _require_run(nexi: Nexi, run_id: str) -> None:
    if not nexi.runs().has_run(run_id) and nexi.history().get(run_id) is None:
        raise build_refusal(404, "no_such_run", f"there is no run {run_id}", fix="open the history")


@CONTRACT.serve("GET /page/runs/{id}/thread")
async def _show_thread(request: Request) -> Response:
    """The questions and answers before a run in its conversation, the oldest first."""
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    await asyncio.to_thread(_require_run, nexi, run_id)
    return told_reply({"turns": await asyncio.to_thread(_read_thread, nexi, run_id)})


def _read_thread(nexi: Nexi, run_id: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    ids, before = {run_id}, _read_turn(nexi, run_id)[1]
    while before and before not in ids and len(turns) < MAX_TURNS:
        ids.add(before)
        turn, before = _read_turn(nexi, before)
        turns += [turn] if turn else []
    return turns[::-1]


def _read_turn(nexi: Nexi, run_id: str) -> tuple[dict[str, Any] | None, str]:
    """A run as the page shows it, and the run it continues; from the history where the run is gone."""
    try:
        log = nexi.runs().open_log(run_id)
    except NexiError:
        return read_from_history(nexi, run_id), ""
    start = log.facts[0][1] if log.facts else None
    if not isinstance(start, RunStarted):
        return None, ""
    before = str(start.settings.get("continues") or "")
    if not isinstance(log.facts[-1][1], RunFinished):
        return {"id": run_id, "question": start.query, "continues": before}, before
    return view_of(answered_of(run_id, log)), before


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
        "created": entry.ts,
        "text": entry.answer,
        "html": answer_html(entry.answer, (), sources),
        "sources": [source_view(source, ()) for source in sources],
        "seconds": entry.duration_s,
        "tokens": entry.tokens,
        "cost": None,
        **dict.fromkeys(("model", "answered", "answered_note", "figures", "stop"), ""),
        **{name: [] for name in ("claims", "dropped", "conflicts", "timeline", "exports")},
        "kept": False,
    }


@CONTRACT.serve("POST /page/runs/{id}/share")
async def _share_run(request: Request) -> Response:
    """The path of the link to a finished run; asked again, it is the same one."""
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    if nexi.state:  # a team has no strangers: its own page shows the run to whoever signs in
        await asyncio.to_thread(nexi.state.sharing.set_audience, run_id, TEAM)
        return json_reply({"path": f"/runs/{run_id}"})
    if not nexi.config.share:
        raise build_refusal(403, "not_allowed", "this server shares no runs", fix="its owner may: nexi config set share true")
    try:
        await export_run(nexi.runs(), nexi.pages(), run_id, "html")  # what cannot be shown is not shared
    except NexiError as error:
        if error.code != "not_ended":
            raise
        raise build_refusal(409, error.code, str(error), fix=error.fix) from error
    async with request.app.state.taking:
        label = (await asyncio.to_thread(_read_labels, nexi)).get(run_id, {})
        key = label.get("share") or secrets.token_urlsafe(KEY_BYTES)
        await asyncio.to_thread(_set_label, nexi, run_id, {"share": key})
    return json_reply({"path": f"/shared/{key}"})


async def describe_sharing(nexi: Nexi, run_id: str) -> dict[str, bool]:
    """On a team server: whether others may read this run, and whether it is somebody else's."""
    if nexi.state is None:
        return {}
    try:
        audience = await asyncio.to_thread(nexi.state.sharing.read_audience, run_id)
    except StoreError:
        return {"shared": False, "of_another": True}
    return {"shared": audience != NOBODY, "of_another": False}


@CONTRACT.serve("DELETE /page/runs/{id}/share")
async def _unshare_run(request: Request) -> Response:
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    if nexi.state:
        await asyncio.to_thread(nexi.state.sharing.set_audience, run_id, NOBODY)
        return Response(status_code=204)
    if not await asyncio.to_thread(nexi.runs().has_run, run_id):
        raise build_refusal(404, "no_such_run", f"there is no run {run_id}", fix="open the history")
    async with request.app.state.taking:
        await asyncio.to_thread(_set_label, nexi, run_id, {"share": ""})
    return Response(status_code=204)


@CONTRACT.serve("GET /shared/{key}")
async def _show_shared(request: Request) -> Response:
    nexi: Nexi = request.app.state.nexi
    key = request.path_params["key"]
    labels = await asyncio.to_thread(_read_labels, nexi) if nexi.config.share and _KEY.fullmatch(key) else {}
    keys = {run_id: str(label.get("share", "")) for run_id, label in labels.items()}
    run_id = next((run_id for run_id, own in keys.items() if hmac.compare_digest(own.encode(), key.encode())), None)
    if run_id is None:
        raise _not_shared()
    try:
        body = await export_run(nexi.runs(), nexi.pages(), run_id, "html")
    except NexiError as error:
        raise _not_shared() from error
    return Response(body, media_type="text/html", headers=SHARED_HEADERS)


def _not_shared() -> Refused:
    return build_refusal(404, "not_shared", "nothing is shared under this link", fix="ask who sent it for a new one")
