"""What the form of the page needs: what can be chosen, which models there are, files to be known, and what to ask now or next.

Above, the page, and a browser that uses nexi as its search engine; below, `Nexi`, the intake of files and the list of models. A
file that is dropped on the page is read once, cut into passages and not kept itself; its name is all that is believed of it.
What is offered while somebody types is sent to no model or search service.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from nexi.answers.answered import narrow_question
from nexi.app import Nexi, check_run_id
from nexi.app.spaces import find_own_space
from nexi.config import name_service
from nexi.errors import LLMError
from nexi.events import RunFinished, RunStarted
from nexi.web.contract import Contract
from nexi.web.guard import FILES_PATH, MAX_FILE_BYTES
from nexi.web.page.history import words_of
from nexi.web.page.setup import SETUP_FIX, ready_services
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body
from nexi.web.runs import FOCUS, NewRun, parse_run_request

CONTRACT = Contract()
LISTED_S = 8.0
MAX_MODELS = 500
DROPPED = "dropped"
LIMITS = ("time_target", "max_cost", "max_tokens", "max_model_calls", "max_pages")
MAX_QUESTIONS, MAX_TITLES = 6, 4
MAX_ENTRIES = 100  # that have the words in their question or their answer
MAX_SOURCES = 5_000  # whose titles are looked at, the last fetched first
MAX_SUGGESTION_CHARS = 200
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:]+")


@CONTRACT.serve("GET /page/form")
async def _show_form(request: Request) -> Response:
    """What can be chosen here, and the limits every run has."""
    nexi: Nexi = request.app.state.nexi
    config, endpoint, is_first = nexi.config, nexi.config.endpoint("answer"), False
    if endpoint.is_extractive:
        is_first = not await asyncio.to_thread(lambda: nexi.runs().list_runs(1) or nexi.history().read(1).entries)
    form = {
        "model": endpoint.model,
        "has_model": not endpoint.is_extractive,
        "add_a_model": SETUP_FIX,
        "first_run": is_first,
        "search": [name_service(service) for service in ready_services(config)],
        "editable": request.app.state.edits_settings,
        "effort": config.default_effort,
        "focus": list(FOCUS),
        "limits": {name: getattr(config, name) for name in LIMITS},
        "most_file": MAX_FILE_BYTES,
        "share": config.share or nexi.state is not None,
        "team": nexi.state is not None,
        "keeps_offline": nexi.state is None and not config.token,
        "suggestions": config.suggestions,
    }
    return json_reply(form)


@CONTRACT.serve("GET /page/models")
async def _list_models(request: Request) -> Response:
    """The models of the configured endpoint; `problem` says why there are none."""
    nexi: Nexi = request.app.state.nexi
    endpoint = nexi.config.endpoint("answer")
    own = [] if endpoint.is_extractive else [endpoint.model]
    names, problem = None, ""
    try:
        async with asyncio.timeout(LISTED_S):
            names = await nexi.gate().list_models() if own else None
    except LLMError as error:
        problem = str(error)
    except TimeoutError:
        problem = "the endpoint did not list its models in time"
    others = sorted(set(names or ()) - set(own))[:MAX_MODELS]
    return json_reply({"models": [*own, *others, "extractive"], "problem": problem})


@CONTRACT.serve(f"POST {FILES_PATH}")
async def _take_file(request: Request) -> Response:
    """A file into the knowledge store, under the name in `name`."""
    from nexi.app.intake import DocumentIndexing
    from nexi.files import make_private_directory, replace_file, store_error

    base = unquote(request.query_params.get("name", "")).replace("\\", "/").rpartition("/")[2]
    name = _UNSAFE.sub("-", base).strip(" .-").encode("utf-8", "replace").decode()
    if not name or len(name.encode()) > 200:
        raise bad_request("name must be the name of a file", parameter="name")
    data = await request.body()
    if not data.strip():
        raise bad_request(f"{name} is empty", fix="drop a file with text in it")
    nexi, space = request.app.state.nexi, request.query_params.get("space", "")
    tags = (DROPPED, (await find_own_space(nexi.ports, space)).tag) if space else (DROPPED,)
    place = nexi.config.personal_dir / "state" / DROPPED / name
    async with request.app.state.taking:  # one at a time: each lies on the disk for a moment, under its own name
        try:
            await asyncio.to_thread(make_private_directory, place.parent)
            await asyncio.to_thread(replace_file, place, data)
        except OSError as error:
            raise store_error("the file could not be taken", place, error) from error
        indexing = DocumentIndexing(nexi, nexi.knowledge(), tags=tags)
        try:
            await indexing.take(str(place))
        finally:
            await asyncio.to_thread(place.unlink, missing_ok=True)  # only its passages are kept
    intake = indexing.taken
    if intake.skipped:
        reason = intake.skipped[0][1]
        raise build_refusal(422, "file_not_taken", f"not taken: {reason}", fix="the formats that can be are in the handbook")
    outcome = next((outcome for outcome, count in intake.outcomes.items() if count), "unchanged")
    return json_reply({"name": name, "outcome": outcome, "chunks": intake.chunks, "warnings": intake.warnings})


@CONTRACT.serve("GET /suggest")
async def _suggest(request: Request) -> Response:
    """What an address bar offers, in the form of OpenSearch suggestions: what was typed, and what it may become. Own questions
    that contain `q`, those that begin with it first, then titles of stored pages and files."""
    nexi: Nexi = request.app.state.nexi
    words, knowledge, titles, count = words_of(request), nexi.knowledge(), list[str](), 0
    folded, questions = words.casefold(), list[str]()
    if words:
        entries = (await asyncio.to_thread(nexi.history().find, words, MAX_ENTRIES)).entries  # the newest first
        past_questions = (" ".join(entry.query.split()) for entry in entries)
        fitting = [question for question in past_questions if folded in question.casefold()]
        questions = _unique(sorted(fitting, key=lambda question: not question.casefold().startswith(folded)), words)
    if words and knowledge.may_hold_something():
        async for source in knowledge.sources():
            count += 1
            if source.title and folded in source.title.casefold():
                titles = _unique([*titles, " ".join(source.title.split())], words)
            if len(titles) == MAX_TITLES or count == MAX_SOURCES:
                break
    suggestions = _unique([*questions[:MAX_QUESTIONS], *titles], words)
    body = json.dumps([request.query_params.get("q", ""), suggestions], ensure_ascii=False).encode("utf-8", "replace")
    headers = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
    return Response(body, media_type="application/x-suggestions+json", headers=headers)


def _unique(texts: Iterable[str], words: str) -> list[str]:
    """The texts that may be offered, each once whatever its case; what was typed is no offer."""
    offers: dict[str, str] = {}
    for text in texts:
        if len(text) <= MAX_SUGGESTION_CHARS and text.casefold() != words.casefold():
            offers.setdefault(text.casefold(), text)
    return list(offers.values())


@CONTRACT.serve("POST /page/open-question")
async def _show_open_question(request: Request) -> Response:
    """What a question may mean, so that the page can ask back before it is researched; the body is that of a run."""
    wish = parse_run_request(await read_body(request, NewRun))
    open_question = await request.app.state.nexi.find_open_question(wish)
    readings = [{"name": name, "question": narrow_question(wish.question, name)} for name in open_question.readings]
    return json_reply({"readings": readings, "kind": open_question.kind})


@CONTRACT.serve("GET /page/runs/{id}/suggestions")
async def _show_suggestions(request: Request) -> Response:
    """At most three questions to go on with; none where they are switched off."""
    from nexi.app.questions import suggestions_after

    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    facts = (await request.app.state.host.open_log(run_id)).bare_facts
    if not facts or not isinstance(facts[0], RunStarted) or not isinstance(facts[-1], RunFinished):
        raise build_refusal(409, "no_answer", f"run {run_id} has no answer", fix="follow its events")
    return json_reply({"suggestions": list(await suggestions_after(nexi, run_id, facts))})
