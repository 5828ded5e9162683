"""Passes as a SearXNG: `GET` and `POST /searxng/search`, `GET /searxng/?q=`.

Programs that read SearXNG's JSON work with it unchanged: always JSON, every field they look for, and their tolerance for
engines and categories that do not exist. Refusals are `{"error": ...}` with status 400. What backends did not answer is in
`unresponsive_engines`, and the status is 200 then too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from nexi import __version__
from nexi.apis.openwebui import OpenWebUISearch
from nexi.apis.search.pack import RankedHit
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import LANGUAGE, MAX_ITEMS, MAX_QUERY_CHARS, Limits, SearchRequest, clean_query, read_language
from nexi.structured.schema_check import object_schema, schema_of
from nexi.types import Query
from nexi.web.contract import Contract
from nexi.web.payload import Problem, bad_request, json_reply

__all__ = ["CONTRACT", "searxng_error"]

PER_PAGE = 10
ANSWER_TIMEOUT_S = 9.0  # clients give up after ten
TIME_RANGES = ("day", "week", "month", "year")
ANSWERED = ("empty", "filter_ignored")  # failures of a backend that did answer
_TEXT = {"type": "string"}
ANSWER = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "q": schema_of(OpenWebUISearch)["properties"]["query"],
    "format": _TEXT,
    "pageno": {"type": "integer", "minimum": 1, "maximum": 999_999},
    "language": {"type": "string", "pattern": LANGUAGE},
    "time_range": {"enum": ["", *TIME_RANGES]},
    **dict.fromkeys(("categories", "engines", "safesearch"), _TEXT),
}
_ABOUT: Mapping[str, Any] = {"q": {"required": True}, "format": {"description": "whatever it says, the answer is JSON"}}
PARAMETERS = [{"name": name, "in": "query", "schema": schema, **_ABOUT.get(name, {})} for name, schema in FIELDS.items()]
_FORM = {"schema": {"type": "object", "properties": FIELDS, "required": ["q"]}}
FORM = {"required": True, "content": {"application/x-www-form-urlencoded": _FORM}}
HEALTH = {"200": {"description": "OK", "content": {"text/plain": {"schema": _TEXT}}}}
CONTRACT = Contract("SearXNG", error=object_schema({"error": _TEXT}))


def searxng_error(problem: Problem) -> dict[str, Any]:
    return {"error": problem.advice.rstrip(". ") if problem.fix else problem.message}


async def search_web(request: Request) -> Response:
    patience_s = getattr(request.app.state, "answer_timeout_s", ANSWER_TIMEOUT_S)
    parameters = dict(request.query_params)  # those of the address, and over them those of a form
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/x-www-form-urlencoded", ""):
            raise bad_request("Invalid content type", fix="send the form as application/x-www-form-urlencoded")
        text = (await request.body()).decode("utf-8", "replace")
        try:
            parameters.update(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            raise bad_request("Invalid form", fix="send at most 100 fields") from error
    query, page_text = _parse_query(parameters), parameters.get("pageno", "").strip() or "1"
    if not re.fullmatch("[0-9]{1,6}", page_text) or int(page_text) < 1:
        raise _invalid_parameter("pageno", page_text)
    page = int(page_text)  # from 1; those beyond what a backend gives are empty
    count = min(MAX_ITEMS, page * PER_PAGE)  # backends know no pages, so those before it come too
    limits = Limits(results=count, total_s=patience_s, search_s=patience_s)
    outcome = await service_of(request.app.state).run(SearchRequest(query.text, query.language, limits=limits), query)
    first = (page - 1) * PER_PAGE
    return json_reply(
        {
            "query": query.text,
            "number_of_results": len(outcome.results),
            "results": [_build_result(result) for result in outcome.results[first : first + PER_PAGE]],
            **{name: [] for name in ("answers", "corrections", "infoboxes", "suggestions")},
            "unresponsive_engines": [[f.provider, f.message] for f in outcome.failures if f.code not in ANSWERED],
        }
    )


for _path in ("/searxng/search", "/searxng/", "/searxng"):
    CONTRACT.serve(f"GET {_path}", "Search as SearXNG does.", ok=ANSWER, parameters=PARAMETERS)(search_web)
    CONTRACT.serve(f"POST {_path}", "The same, with a form.", ok=ANSWER, requestBody=FORM)(search_web)


@CONTRACT.serve("GET /searxng/config", "What this instance has.", ok={"type": "object"})
async def show_config(request: Request) -> Response:
    """What clients look at before they search."""
    engine = {"name": "nexi", "categories": ["general"], "shortcut": "nx", "enabled": True, "paging": True}
    return json_reply({"instance_name": "nexi", "version": __version__, "categories": ["general"], "engines": [engine]})


@CONTRACT.serve("GET /searxng/healthz", "Whether it is there.", ok=_TEXT, responses=HEALTH)
async def healthz(request: Request) -> Response:
    return PlainTextResponse("OK")


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
