"""The page: a few static files, and what they ask for besides the runs themselves.

HTML is made here, on the server, from Markdown in which nothing is raw: no markup, no images, no addresses but web addresses;
pictures of sources come through the server.
The browser is told to run our scripts alone, to load nothing from elsewhere, and to let no page frame it.
"""

from __future__ import annotations

import asyncio
import functools
import html
from collections.abc import Callable
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import Nexi, check_run_id
from nexi.errors import NexiError
from nexi.events import SentenceMark
from nexi.types import Picture
from nexi.urls import host_of
from nexi.web.contract import Contract
from nexi.web.documents import VerifyBody, parse_verify_request
from nexi.web.guard import PANELS
from nexi.web.page import asking, history, knowledge, setup
from nexi.web.page.assets import choose_language, index_bytes, read_texts, sentences_bytes, static_bytes
from nexi.web.page.timeline import open_bars_of, timeline_of
from nexi.web.page.view import AnsweredRun, answer_html, answered_of, claim_to_dict, draft_html, is_web, view_of
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body, told_reply
from nexi.web.runs import export_response

if TYPE_CHECKING:
    from nexi.checking.recheck import Verification

FILES = {
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    "app.webmanifest": "application/manifest+json",
    **{file.name: "text/javascript" for file in resources.files(__package__).iterdir() if file.name.endswith(".js")},
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
OPEN_SEARCH = """<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>nexi</ShortName><Description>Answers with evidence</Description><InputEncoding>UTF-8</InputEncoding>
<Image width="16" height="16" type="image/svg+xml">{origin}/static/icon.svg</Image>
<Url type="text/html" template="{origin}/?q={{searchTerms}}"/>
<Url type="application/x-suggestions+json" template="{origin}/suggest?q={{searchTerms}}"/>
</OpenSearchDescription>
"""
CONTRACT = Contract()
MAX_PICTURES = 6
PICTURE_HEADERS = {
    "cache-control": "private, max-age=86400",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
}
AROUND = 1500  # characters shown before and after the evidence


class _DraftMark(SentenceMark, frozen=True, kw_only=True):
    """A verdict on a sentence of a draft."""

    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=0)]


class _AnswerDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer under way, with the verdicts on its sentences so far."""

    text: Annotated[str, Meta(max_length=400_000)]
    marks: Annotated[tuple[_DraftMark, ...], Meta(max_length=2_000)] = ()


@CONTRACT.serve("GET /static/sentences")
async def _show_sentences(request: Request) -> Response:
    """What the server says in English, in the language of the reader."""
    return respond_in_language(request, sentences_bytes, "application/json")


@CONTRACT.serve("GET /page/check")
@CONTRACT.serve("GET /page/table")
async def _show_words(request: Request) -> Response:
    """The words of a panel, which come with it since few readers open it."""
    texts = await asyncio.to_thread(read_texts, _language_of(request))
    return json_reply(texts[request.url.path.rpartition("/")[2]])


@CONTRACT.serve("GET /static/opensearch.xml")
async def _describe_search(request: Request) -> Response:
    origin = html.escape(f"{request.url.scheme}://{request.url.netloc}")
    return Response(OPEN_SEARCH.format(origin=origin), media_type="application/opensearchdescription+xml", headers=HEADERS)


async def show_index(request: Request) -> Response:
    """The page. A question that another site put into its address is filled in and not asked: asking costs."""
    question = request.query_params.get("q", "")
    if question and request.headers.get("sec-fetch-site") not in ("none", "same-origin"):
        return RedirectResponse(f"/?{urlencode({'draft': question})}", 303, headers=HEADERS)
    return respond_in_language(request, index_bytes, "text/html")


for _path in ("/", "/runs/{id}", "/spaces/{name}", *PANELS):
    CONTRACT.serve(f"GET {_path}")(show_index)


@CONTRACT.serve("GET /static/{name}")  # after what is made
async def _serve_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in FILES:
        raise build_refusal(404, "not_found", "there is nothing at this path", fix="open /")
    more = {"vary": "accept-encoding", "service-worker-allowed": "/"}  # the worker serves every address of the page
    return respond_compressed(request, functools.partial(static_bytes, name), FILES[name], more)


def _language_of(request: Request) -> str:
    return choose_language(request.cookies.get("nexi-language", ""), request.headers.get("accept-language", ""))


def respond_in_language(request: Request, read: Callable[[str, bool], bytes], media_type: str) -> Response:
    """What `read` gives for the language of the reader."""
    language = _language_of(request)
    more = {"content-language": language, "vary": "accept-encoding, accept-language, cookie"}
    return respond_compressed(request, functools.partial(read, language), media_type, more)


def respond_compressed(request: Request, read: Callable[[bool], bytes], media_type: str, headers: dict[str, str]) -> Response:
    """What `read` gives, compressed for a client that takes it so."""
    accepts = "gzip" in request.headers.get("accept-encoding", "")
    more = {"content-encoding": "gzip"} if accepts else {}
    return Response(read(accepts), media_type=media_type, headers={**HEADERS, **headers, **more})


@CONTRACT.serve("POST /page/render")
async def _render_draft(request: Request) -> Response:
    draft = await read_body(request, _AnswerDraft)
    return json_reply({"html": await asyncio.to_thread(draft_html, draft.text, draft.marks)})


@CONTRACT.serve("POST /page/check")
async def _check_text(request: Request) -> Response:
    """A text that was checked as its panel shows it, with marks and passages."""
    verification = await request.app.state.nexi.verify(parse_verify_request(await read_body(request, VerifyBody)))
    return told_reply(await asyncio.to_thread(_verification_to_dict, verification))


def _verification_to_dict(verification: Verification) -> dict[str, Any]:
    """The text as safe HTML, its sentences with their passages, its sources, and the figures."""
    audit, sources = verification.citations, []
    for state in verification.sources:
        link = state.source.url if is_web(state.source.url) else ""
        about = {"n": state.source.number, "title": state.source.title or state.source.url, "link": link}
        sources.append({**about, "state": state.state, "reason": state.reason})
    text, claims = verification.document.text, verification.proof.claims
    return {
        "html": answer_html(text, claims, [state.source for state in verification.sources]),
        "claims": [{**claim_to_dict(claim), "index": claim.index} for claim in verification.proof.checked],
        "sources": sources,
        "counts": verification.counts,
        "judge": verification.judge,
        "gap": verification.gap,
        "precision": audit and audit.precision,
        "recall": audit and audit.recall,
        "is_bound": bool(audit and audit.is_bound),
    }


@CONTRACT.serve("GET /page/runs/{id}")
async def _show_run(request: Request) -> Response:
    """A finished run as the page shows it: its answer with its evidence, its sources and where the time went."""
    try:
        answered, log = await _read_answered(request)
    except NexiError as error:
        # the answer of a run that is gone, where the history has it
        kept = await asyncio.to_thread(history.read_from_history, request.app.state.nexi, request.path_params["id"])
        if kept is None or error.code != "no_such_run":
            raise
        return told_reply(kept)
    view = await asyncio.to_thread(view_of, answered)
    timeline = timeline_of(log.facts, log.moments, log.header.created) if log.moments else []  # of a log that was kept
    images = _describe_pictures(request.app.state.nexi, answered)
    more = {"created": log.header.created, "timeline": timeline, **images}
    return told_reply({**view, **more, **await history.describe_sharing(request.app.state.nexi, answered.id)})


def _describe_pictures(nexi: Nexi, answered: AnsweredRun) -> dict[str, Any]:
    """The pictures that the page may show of an answer, and whether it shows them unasked; those of a strict one wait."""
    pictures = _find_pictures(answered) if nexi.config.show_pictures else {}
    entries = [
        {"n": number, "description": picture.description, "licence": picture.licence, "host": host_of(picture.url)}
        for number, picture in pictures.items()
    ]
    return {"pictures": entries, "shows_pictures": not answered.started.settings.get("strict")}


def _find_pictures(answered: AnsweredRun) -> dict[int, Picture]:
    """By the number of their source, each picture once; none of a run of scope local."""
    if answered.started.request.get("scope") == "local":
        return {}
    pictures: dict[int, Picture] = {}
    for source in answered.end.sources:
        picture = source.imprint.picture
        if picture and is_web(source.url) and picture.url not in {other.url for other in pictures.values()}:
            pictures[source.number] = picture
    return dict(list(pictures.items())[:MAX_PICTURES])


@CONTRACT.serve("GET /page/runs/{id}/picture")
async def _send_picture(request: Request) -> Response:
    """One picture of a run that its caller may read, fetched through nexi's guard, so that the browser tells no site anything.

    An address that the run does not have is never fetched."""
    run_id = check_run_id(request.path_params["id"])
    answered = answered_of(run_id, await request.app.state.host.open_log(run_id))
    number = request.query_params.get("source", "")
    picture = _find_pictures(answered).get(int(number) if number.isdecimal() and len(number) < 9 else 0)
    if picture is None:
        raise build_refusal(404, "no_picture", f"the answer has no picture of source {number[:9]}", fix="open the page itself")
    file = await request.app.state.nexi.fetch_picture(picture.url)
    return Response(file.data, media_type=file.content_type, headers=PICTURE_HEADERS)


@CONTRACT.serve("GET /page/runs/{id}/export")
async def _export_file(request: Request) -> Response:
    form, run_id = request.query_params.get("format", ""), check_run_id(request.path_params["id"])
    if form not in EXPORT_FORMATS:
        raise bad_request(f"format must be one of {', '.join(EXPORT_FORMATS)}", parameter="format")
    return await export_response(request, await request.app.state.host.open_log(run_id), run_id, form, as_file=True)


@CONTRACT.serve("GET /page/runs/{id}/timeline")
async def _show_timeline(request: Request) -> Response:
    """The bars of a run up to fact number `facts`, and how many seconds ago it began.

    The log says when something happened and an event does not, so the page of a run under way asks for this."""
    nexi: Nexi = request.app.state.nexi
    log = await asyncio.to_thread(nexi.runs().open_log, check_run_id(request.path_params["id"]))
    bars = timeline_of(log.facts, log.moments, log.header.created)
    open_bars = open_bars_of(log.facts, log.moments, log.header.created)
    ago = nexi.clock.now().timestamp() - datetime.fromisoformat(log.header.created).timestamp()
    return json_reply({"bars": bars, "open": open_bars, "seconds": round(max(0.0, ago), 3), "facts": len(log.facts)})


@CONTRACT.serve("GET /page/runs/{id}/passage")
async def _show_passage(request: Request) -> Response:
    """The evidence in the stored text of its page, with what stands around it, and whether more does."""
    from nexi.checking.links import link_to  # with all of proof behind it, which a server that starts does not need

    answered, _ = await _read_answered(request)
    numbers = []
    for name in ("source", "start", "end"):
        value = request.query_params.get(name, "")
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise bad_request(f"{name} must be a whole number", parameter=name)
        numbers.append(int(value))
    source = next((s for s in answered.end.sources if s.number == numbers[0]), None)
    if source is None:
        raise build_refusal(404, "no_such_source", f"the answer has no source {numbers[0]}", fix="cite one of its sources")
    text = await request.app.state.nexi.pages().get(source.digest)
    if text is None:
        raise build_refusal(404, "no_snapshot", "the text of this page is no longer kept", fix="open the page itself")
    around = len(text) if request.query_params.get("whole") else AROUND
    start, end = (min(place, len(text)) for place in sorted(numbers[1:]))
    first, last = max(0, start - around), end + around
    link = link_to(source.url, text, start, end, source.imprint.content_type) if is_web(source.url) else ""
    parts = {"before": text[first:start], "span": text[start:end], "after": text[end:last]}
    return json_reply({**parts, "link": link, "cut": first > 0, "left": last < len(text)})


async def _read_answered(request: Request) -> tuple[AnsweredRun, Any]:
    run_id = check_run_id(request.path_params["id"])
    log = await request.app.state.host.open_log(run_id)
    try:
        return answered_of(run_id, log), log
    except NexiError as error:
        raise build_refusal(409, error.code, error.message, fix="follow its events, or resume it") from error


_MODULES = (asking, history, knowledge, setup)
ROUTES = [*CONTRACT.routes, *(route for module in _MODULES for route in module.CONTRACT.routes)]
