"""Passes as a SearXNG: `GET` and `POST /searxng/search`, `GET /searxng/?q=`.

Programs that read SearXNG's JSON work with it unchanged: always JSON, every field they look for, and their tolerance for
engines and categories that do not exist. Refusals are `{"error": ...}` with status 400. What backends did not answer is in
`unresponsive_engines`, and the status is 200 then too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from nexi import __version__
from nexi.apis.openwebui import OpenWebUISearch
from nexi.apis.search.pack import RankedHit
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import LANGUAGE, MAX_ITEMS, MAX_QUERY_CHARS, Limits, SearchRequest, clean_query, read_language
from nexi.structured.bodies import schema_of
from nexi.structured.schema_check import object_schema
from nexi.types import Query
from nexi.web.payload import build_operation, json_reply
from nexi.web.problems import Problem, bad_request

__all__ = ["searxng_error"]

PER_PAGE = 10
ANSWER_TIMEOUT_S = 9.0  # clients give up after ten
TIME_RANGES = ("day", "week", "month", "year")
ANSWERED = ("empty", "filter_ignored")  # failures of a backend that did answer


def searxng_error(problem: Problem) -> dict[str, Any]:
    return {"error": problem.advice.rstrip(". ") if problem.fix else problem.message}


async def search_web(request: Request, answer_timeout_s: float) -> Response:
    parameters = await _read_parameters(request)
    query, page = _parse_query(parameters), _parse_page(parameters)
    count = min(MAX_ITEMS, page * PER_PAGE)  # backends know no pages, so those before it come too
    limits = Limits(results=count, total_s=answer_timeout_s, search_s=answer_timeout_s)
    outcome = await service_of(request.app.state).run(SearchRequest(query.text, query.language, limits=limits), query)
    first = (page - 1) * PER_PAGE
    silent = [[f.provider, f.message] for f in outcome.failures if f.code not in ANSWERED]
    return json_reply(
        {
            "query": query.text,
            "number_of_results": len(outcome.results),
            "results": [_build_result(result) for result in outcome.results[first : first + PER_PAGE]],
            **{name: [] for name in ("answers", "corrections", "infoboxes", "suggestions")},
            "unresponsive_engines": silent,
        }
    )


async def show_config(request: Request) -> Response:
    """What clients look at before they search."""
    engine = {"name": "nexi", "categories": ["general"], "shortcut": "nx", "enabled": True, "paging": True}
    return json_reply({"instance_name": "nexi", "version": __version__, "categories": ["general"], "engines": [engine]})


async def healthz(request: Request) -> Response:
    return PlainTextResponse("OK")


def routes(*, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> list[Route]:
    answer = partial(search_web, answer_timeout_s=answer_timeout_s)
    return [
        Route("/searxng/search", answer, methods=["GET", "POST"]),
        Route("/searxng/", answer, methods=["GET", "POST"]),
        Route("/searxng", answer, methods=["GET", "POST"]),
        Route("/searxng/config", show_config),
        Route("/searxng/healthz", healthz),
    ]


async def _read_parameters(request: Request) -> Mapping[str, str]:
    """Those of the address, and over them those of a form."""
    parameters: dict[str, str] = dict(request.query_params)
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/x-www-form-urlencoded", ""):
            raise bad_request("Invalid content type", fix="send the form as application/x-www-form-urlencoded")
        text = (await request.body()).decode("utf-8", "replace")
        try:
            parameters.update(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            raise bad_request("Invalid form", fix="send at most 100 fields") from error
    return parameters


def _parse_query(parameters: Mapping[str, str]) -> Query:
    text = parameters.get("q", "")
    if not text.strip():
        raise bad_request("No query", parameter="q")
    if len(text) > MAX_QUERY_CHARS:
        raise bad_request(f"The query has more than {MAX_QUERY_CHARS} characters", parameter="q")
    period = parameters.get("time_range", "").strip()
    if period not in ("", "None", *TIME_RANGES):
        raise _invalid_parameter("time_range", period)
    language = parameters.get("language", "").strip()
    if not re.fullmatch(LANGUAGE, language):
        raise _invalid_parameter("language", language)
    return Query(clean_query(text), time_range=period if period in TIME_RANGES else "", language=read_language(language))


def _parse_page(parameters: Mapping[str, str]) -> int:
    """Which page, from 1; those beyond what a backend gives are empty."""
    text = parameters.get("pageno", "").strip() or "1"
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) < 1:
        raise _invalid_parameter("pageno", text)
    return int(text)


def _invalid_parameter(name: str, value: str) -> Exception:
    return bad_request(f'Invalid value "{value[:60]}" for parameter {name}', parameter=name)


def _build_result(result: RankedHit) -> dict[str, Any]:
    hit, place = result.hit, result.place + 1
    try:  # scheme, host, path, parameters, query, fragment
        parts = urlsplit(hit.url)
        parsed_url = [parts.scheme, parts.netloc, parts.path, "", parts.query, parts.fragment]
    except ValueError:
        parsed_url = ["", "", hit.url, "", "", ""]
    return {
        "url": hit.url,
        "title": hit.title,
        "content": hit.snippet,
        "engine": hit.backend,
        "engines": [hit.backend],
        "category": "general",
        "score": round(1 / place, 3),
        "positions": [place],
        "publishedDate": hit.published or None,
        "thumbnail": "",
        "img_src": "",
        "template": "default.html",
        "parsed_url": parsed_url,
    }


def openapi() -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": "q", "in": "query", "required": True, "schema": schema_of(OpenWebUISearch)["properties"]["query"]},
        {"name": "format", "in": "query", "schema": {"type": "string"}, "description": "whatever it says, the answer is JSON"},
        {"name": "pageno", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 999_999}},
        {"name": "language", "in": "query", "schema": {"type": "string", "pattern": LANGUAGE}},
        {"name": "time_range", "in": "query", "schema": {"enum": ["", *TIME_RANGES]}},
        *({"name": n, "in": "query", "schema": {"type": "string"}} for n in ("categories", "engines", "safesearch")),
    ]
    describe = partial(build_operation, tag="SearXNG", error=object_schema({"error": _TEXT}))
    search = describe("Search as SearXNG does.", ok=_ANSWER, parameters=parameters)
    fields = {p["name"]: p["schema"] for p in parameters}
    form = {"schema": {"type": "object", "properties": fields, "required": ["q"]}}
    posted = describe("The same, with a form.", ok=_ANSWER)
    posted["requestBody"] = {"required": True, "content": {"application/x-www-form-urlencoded": form}}
    about = describe("What this instance has.", ok={"type": "object"})
    health = describe("Whether it is there.", ok=_TEXT)
    health["responses"]["200"] = {"description": "OK", "content": {"text/plain": {"schema": _TEXT}}}
    return {
        **{path: {"get": search, "post": posted} for path in ("/searxng/search", "/searxng/", "/searxng")},
        "/searxng/config": {"get": about},
        "/searxng/healthz": {"get": health},
    }


_TEXT = {"type": "string"}
_RESULT = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("url", "title", "content", "engine", "category", "template", "thumbnail", "img_src"), _TEXT),
        "engines": {"type": "array", "items": _TEXT},
        "score": {"type": "number"},
        "positions": {"type": "array", "items": {"type": "integer"}},
        "publishedDate": {"type": ["string", "null"]},
        "parsed_url": {"type": "array", "items": _TEXT},
    },
    "required": ["url", "title", "content", "engine", "engines", "category", "score", "publishedDate"],
}
_LISTS = ("answers", "corrections", "infoboxes", "suggestions", "unresponsive_engines")
_RESULTS = {"type": "array", "items": _RESULT}
_ANSWER = object_schema({"query": _TEXT, "results": _RESULTS, **{name: {"type": "array"} for name in _LISTS}})
_ANSWER["properties"]["number_of_results"] = {"type": "integer"}
