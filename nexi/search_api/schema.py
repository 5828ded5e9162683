"""What a request may say, and the request as a value.

The JSON schema here is what `check` holds a request against and what the API's own description shows, so the two cannot
differ. Unknown fields are let through, so that a newer client can talk to an older service. Limits of the service lie
over limits of the client: a larger number is taken as the service's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from nexi.errors import QuestionError
from nexi.structured.schema_check import check_schema
from nexi.types import FetchLimits, Hit
from nexi.urls import is_web_url

SIMPLE, FULL = "simple", "full"
MAX_QUERY_CHARS = 2_000
MAX_ITEMS = 50
MAX_FETCH_PAGES = 20
MAX_CONTEXT_CHARS = 400_000
MAX_TIME_MS = 120_000
MAX_REDIRECTS = 20
MAX_RETRIES = 5
FULL_MODE_PAGES = 3
LANGUAGE = r"^([A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}|all|auto)?$"
INTENTS = ("fact_check", "fresh_data", "background", "verification")


def _integer_field(default: int | None, about: str, least: int = 0) -> dict[str, Any]:
    shown = {} if default is None else {"default": default}
    return {"type": ["integer", "null"], "minimum": least, "description": about, **shown}


def _text_field(about: str, **more: Any) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": about, **more}


def _object_field(properties: dict[str, Any], about: str, **more: Any) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": properties, "description": about, **more}


SHOWN = r"[^\s\x00-\x1f\x7f-\x9f]"  # of a query, at least one character must be
QUERY_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS, "pattern": SHOWN}
QUERY_OBJECT = {
    "type": "object",
    "properties": {"text": QUERY_TEXT, "lang": _text_field("a language like `en` or `pt-BR`", pattern=LANGUAGE)},
    "required": ["text"],
}
QUERY = {
    "description": "The query, as text or as an object; `query.lang` wins over `constraints.lang`.",
    "anyOf": [QUERY_TEXT, QUERY_OBJECT],
}
SEED_ITEM = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "maxLength": 8192, "format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
        "title": _text_field("its title"),
        "snippet": _text_field("its snippet"),
        "engine": _text_field("the backend it came from"),
    },
    "required": ["url"],
}
CONSTRAINTS = _object_field(
    {
        "backend": _text_field("the backend to ask first: `searxng`, `duckduckgo`, or another one the server has"),
        "search_mode": {"enum": [SIMPLE, FULL, None], "default": SIMPLE, "description": "`full` reads pages"},
        "lang": _text_field("a language like `en` or `pt-BR`", pattern=LANGUAGE),
        "pick_ids": {
            "type": ["array", "null"],
            "items": {},
            "maxItems": 1000,
            "description": "0-based indices into the results, in the order wanted; invalid ones are ignored",
        },
        "seed_items": {
            "type": ["array", "null"],
            "items": SEED_ITEM,
            "maxItems": MAX_ITEMS,
            "description": "the items the client saw: they are used instead of a new search, so that `pick_ids` fit",
        },
    },
    "How the search is executed.",
)
TIMEOUTS = _object_field(
    {"search": _integer_field(8000, "for the search", 1), "fetch": _integer_field(8000, "for each page", 1)},
    "Milliseconds for one request.",
)
BUDGET = _object_field(
    {
        "max_tool_calls": _integer_field(None, "echoed: one request is one call"),
        "max_search_retries": _integer_field(1, "how often a backend is asked again after a failure that may pass"),
        "max_results": _integer_field(10, f"items at most; the service gives up to {MAX_ITEMS}"),
        "max_fetch_pages": _integer_field(None, f"pages read in `full` mode, {FULL_MODE_PAGES} when it is not given"),
        "max_download_bytes_per_page": _integer_field(2_000_000, "bytes of one page", 1),
        "max_extract_chars_per_page": _integer_field(300_000, "characters of one page's text"),
        "allowed_content_types": {
            "type": ["array", "null"],
            "items": {"type": "string", "maxLength": 200},
            "maxItems": 100,
            "description": "media types that may be read; without it all that the service can read",
        },
        "max_redirects": _integer_field(5, "redirects of one page"),
        "max_context_chars": _integer_field(8000, "characters of `rendered_text`"),
        "max_total_time_ms": _integer_field(12_000, "milliseconds for everything", 1),
        "per_request_timeout_ms": TIMEOUTS,
    },
    "Limits of this request.",
)
SEARCH_REQUEST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": QUERY,
        "intent": _text_field("a hint that changes nothing", maxLength=200, examples=list(INTENTS)),
        "constraints": CONSTRAINTS,
        "budget": BUDGET,
        "want": _object_field(
            {
                "items": {"type": ["boolean", "null"], "default": True},
                "rendered_text": {"type": ["boolean", "null"], "default": True},
            },
            "Which parts to return.",
        ),
        "context_hint": _object_field(
            {"known_topics": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 1000}},
            "What the caller knows; echoed.",
        ),
    },
    "required": ["query"],
    "example": {"query": {"text": "bm25 ranking algorithm"}, "constraints": {"search_mode": "simple"}},
}


class Limits(Struct, frozen=True):
    """The budget of one request, as far as it means something in one call."""

    retries: int = 1
    results: int = 10
    pages: int = 0
    page: FetchLimits = FetchLimits(timeout_s=8.0)
    context_chars: int = 8000
    total_s: float = 12.0
    search_s: float = 8.0


class SearchRequest(Struct, frozen=True):
    """A checked request. `picks` is None where nothing was picked; `seeds` is None where a search is to be made."""

    text: str
    language: str = ""
    mode: str = SIMPLE
    backend: str = ""
    picks: tuple[object, ...] | None = None
    seeds: tuple[Hit, ...] | None = None
    limits: Limits = Limits()
    wants_items: bool = True
    wants_text: bool = True


def read_request(data: object) -> SearchRequest:
    """The request in `data`. Raises QuestionError that names the field."""
    text = read_query_text(data)
    data = check_object(data, SEARCH_REQUEST)
    query, constraints = data["query"], _read_part(data, "constraints")
    own = query if isinstance(query, Mapping) else {}
    mode = constraints.get("search_mode") or SIMPLE
    want = _read_part(data, "want")
    picks = constraints.get("pick_ids")
    return SearchRequest(
        clean_query(text),
        read_language(own.get("lang") or constraints.get("lang") or ""),
        mode,
        (constraints.get("backend") or "").strip().lower(),
        tuple(picks) if picks else None,
        _read_seed_items(constraints.get("seed_items")),
        _read_limits(_read_part(data, "budget"), mode),
        want.get("items") is not False,
        want.get("rendered_text") is not False,
    )


def read_query_text(data: object) -> str:
    """The text of a request's query in either form. Raises QuestionError about the form that was meant."""
    query = data.get("query") if isinstance(data, Mapping) else None
    if isinstance(query, Mapping):
        own = check_object(query, QUERY_OBJECT, "query.")
        read_language(own.get("lang") or "")
        return str(own["text"])
    return str(check_object(data, {"type": "object", "properties": {"query": QUERY}, "required": ["query"]})["query"])


def check_object(value: object, schema: Mapping[str, Any], path: str = "") -> Mapping[str, Any]:
    """The object, if it fits the schema. Raises QuestionError that names the fields."""
    problems = check_schema(value, schema)
    if problems or not isinstance(value, Mapping):
        raise request_error("; ".join(f"{path}{problem}" for problem in problems[:3]) or "expected an object")
    return value


def request_error(why: str, code: str = "bad_request") -> QuestionError:
    return QuestionError("the request cannot be used", cause=why, fix="see /openapi.json for its fields", code=code)


def clean_query(text: str) -> str:
    """One line of printable text. Raises QuestionError when nothing is left."""
    whole = text.encode("utf-8", "replace").decode()
    line = " ".join("".join(c if _is_shown(c) else " " for c in whole).split())
    if not line:
        raise request_error("query: it is empty")
    return line[:MAX_QUERY_CHARS]


def read_language(text: str) -> str:
    """A language as backends take it; "" where any will do."""
    if not re.fullmatch(LANGUAGE, text):
        raise request_error(f"lang: expected a language like en or pt-BR, got {text[:40]!r}")
    return "" if text in ("all", "auto") else text.replace("_", "-")


def pick_ids(picks: Sequence[object], count: int) -> tuple[int, ...]:
    """The picks that name a result, each once, in their order."""
    known = (p for p in picks if isinstance(p, int) and not isinstance(p, bool) and 0 <= p < count)
    return tuple(dict.fromkeys(known))


def _is_shown(c: str) -> bool:
    return ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0


def _read_part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return data.get(name) or {}


def _read_seed_items(items: Sequence[Mapping[str, Any]] | None) -> tuple[Hit, ...] | None:
    if items is None:
        return None
    for place, item in enumerate(items):
        if not is_web_url(item["url"]):
            raise request_error(f"constraints.seed_items[{place}].url: expected a web address, got {item['url'][:60]!r}")
    return tuple(Hit(i["url"], i.get("title") or "", i.get("snippet") or "", backend=i.get("engine") or "") for i in items)


def _read_limits(budget: Mapping[str, Any], mode: str) -> Limits:
    times = budget.get("per_request_timeout_ms") or {}
    pages = FULL_MODE_PAGES if budget.get("max_fetch_pages") is None else min(budget["max_fetch_pages"], MAX_FETCH_PAGES)
    return Limits(
        min(_read_number(budget, "max_search_retries", 1), MAX_RETRIES),
        min(_read_number(budget, "max_results", 10), MAX_ITEMS),
        pages if mode == FULL else 0,
        _page_limits(budget, _to_seconds(_read_number(times, "fetch", 8000))),
        min(_read_number(budget, "max_context_chars", 8000), MAX_CONTEXT_CHARS),
        _to_seconds(_read_number(budget, "max_total_time_ms", 12_000)),
        _to_seconds(_read_number(times, "search", 8000)),
    )


def _page_limits(budget: Mapping[str, Any], timeout_s: float) -> FetchLimits:
    """What one page may cost: a limit that is named holds for documents too."""
    usual = FetchLimits()
    most = budget.get("max_download_bytes_per_page")
    types = budget.get("allowed_content_types")
    return FetchLimits(
        max_bytes=usual.max_bytes if most is None else min(most, usual.max_pdf_bytes),
        max_pdf_bytes=usual.max_pdf_bytes if most is None else min(most, usual.max_pdf_bytes),
        max_chars=min(_read_number(budget, "max_extract_chars_per_page", usual.max_chars), usual.max_chars),
        max_redirects=min(_read_number(budget, "max_redirects", usual.max_redirects), MAX_REDIRECTS),
        timeout_s=timeout_s,
        content_types=usual.content_types if types is None else tuple(t.partition(";")[0].strip().lower() for t in types),
    )


def _read_number(part: Mapping[str, Any], name: str, default: int) -> int:
    value = part.get(name)
    return default if value is None else int(value)


def _to_seconds(milliseconds: int) -> float:
    return min(milliseconds, MAX_TIME_MS) / 1000
