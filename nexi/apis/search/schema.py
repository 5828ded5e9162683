"""What a request may say, and the request as a value.

The Structs here check a request and are the API's own description, so the two cannot differ. Unknown fields are let through,
so that a newer client can talk to an older service. Limits of the service lie over limits of the client: a larger number is
taken as the service's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from nexi.errors import QuestionError
from nexi.structured.schema_check import BodyError, read_value
from nexi.types import FetchLimits, Hit
from nexi.urls import is_web_url

SIMPLE: Literal["simple"] = "simple"
FULL: Literal["full"] = "full"
MAX_QUERY_CHARS = 2_000
MAX_ITEMS = 50
MAX_FETCH_PAGES = 20
MAX_CONTEXT_CHARS = 400_000
MAX_TIME_MS = 120_000
MAX_REDIRECTS = 20
MAX_RETRIES = 5
FULL_MODE_PAGES = 3
LANGUAGE = r"^([A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8}){0,3}|all|auto)?$"
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
T = TypeVar("T", bound=Struct)
SHOWN = r"[^\s\x00-\x1f\x7f-\x9f]"  # of a query, at least one character must be
Count = Annotated[int, Meta(ge=0)]
Milliseconds = Annotated[int, Meta(ge=1)]
# `clean_query` and `read_language` refuse what does not match, in words.
QueryText = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, extra_json_schema={"pattern": SHOWN})]
Language = Annotated[str, Meta(description="a language like `en` or `pt-BR`", extra_json_schema={"pattern": LANGUAGE})]
WEB_ADDRESS = {"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"}


class QueryObject(Struct, frozen=True):
    """A query with its language."""

    text: QueryText
    lang: Language | None = None


QueryField = Annotated[
    QueryText | QueryObject, Meta(description="The query, as text or as an object; `query.lang` wins over `constraints.lang`.")
]


class SeedItem(Struct, frozen=True):
    """A result that the client saw."""

    url: Annotated[str, Meta(min_length=1, max_length=8192, extra_json_schema=WEB_ADDRESS)]
    title: Annotated[str | None, Meta(description="its title")] = None
    snippet: Annotated[str | None, Meta(description="its snippet")] = None
    engine: Annotated[str | None, Meta(description="the backend it came from")] = None


class SearchConstraints(Struct, frozen=True):
    """How the search is executed."""

    backend: Annotated[
        str | None, Meta(description="the backend to ask first: `searxng`, `duckduckgo`, or another one the server has")
    ] = None
    search_mode: Annotated[Literal["simple", "full"] | None, Meta(description="`full` reads pages")] = SIMPLE
    lang: Language | None = None
    pick_ids: Annotated[
        Annotated[list[Any], Meta(max_length=1000)] | None,
        Meta(description="0-based indices into the results, in the order wanted; invalid ones are ignored"),
    ] = None
    seed_items: Annotated[
        Annotated[tuple[SeedItem, ...], Meta(max_length=MAX_ITEMS)] | None,
        Meta(description="the items the client saw: they are used instead of a new search, so that `pick_ids` fit"),
    ] = None


class RequestTimeouts(Struct, frozen=True):
    """Milliseconds for one request."""

    search: Annotated[Milliseconds | None, Meta(description="for the search")] = 8000
    fetch: Annotated[Milliseconds | None, Meta(description="for each page")] = 8000


class SearchBudget(Struct, frozen=True):
    """Limits of this request."""

    max_tool_calls: Annotated[Count | None, Meta(description="echoed: one request is one call")] = None
    max_search_retries: Annotated[
        Count | None, Meta(description="how often a backend is asked again after a failure that may pass")
    ] = 1
    max_results: Annotated[Count | None, Meta(description=f"items at most; the service gives up to {MAX_ITEMS}")] = 10
    max_fetch_pages: Annotated[
        Count | None, Meta(description=f"pages read in `full` mode, {FULL_MODE_PAGES} when it is not given")
    ] = None
    max_download_bytes_per_page: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="bytes of one page, 2,000,000 when it is not given")
    ] = None
    max_extract_chars_per_page: Annotated[Count | None, Meta(description="characters of one page's text")] = 300_000
    allowed_content_types: Annotated[
        Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=100)] | None,
        Meta(description="media types that may be read; without it all that the service can read"),
    ] = None
    max_redirects: Annotated[Count | None, Meta(description="redirects of one page")] = 5
    max_context_chars: Annotated[Count | None, Meta(description="characters of `rendered_text`")] = 8000
    max_total_time_ms: Annotated[Milliseconds | None, Meta(description="milliseconds for everything")] = 12_000
    per_request_timeout_ms: RequestTimeouts | None = None


class WantedParts(Struct, frozen=True):
    """Which parts to return."""

    items: bool | None = True
    rendered_text: bool | None = True


class ContextHint(Struct, frozen=True):
    """What the caller knows; echoed."""

    known_topics: Annotated[tuple[str, ...], Meta(max_length=1000)] | None = None


class SearchBody(Struct, frozen=True):
    """A search, as a client sends it."""

    query: QueryField
    intent: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(description="a hint that changes nothing", examples=["fact_check", "fresh_data", "background", "verification"]),
    ] = None
    constraints: SearchConstraints | None = None
    budget: SearchBudget | None = None
    want: WantedParts | None = None
    context_hint: ContextHint | None = None


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
    body = read_body(data, SearchBody)
    constraints, want = body.constraints or SearchConstraints(), body.want or WantedParts()
    own_language = body.query.lang if isinstance(body.query, QueryObject) else None
    text, language = query_text(body.query), read_language(own_language or constraints.lang or "")
    seeds, mode = constraints.seed_items, constraints.search_mode or SIMPLE
    for place, item in enumerate(seeds or ()):
        if not is_web_url(item.url):
            raise request_error(f"constraints.seed_items[{place}].url: expected a web address, got {item.url[:60]!r}")
    hits = (Hit(item.url, item.title or "", item.snippet or "", backend=item.engine or "") for item in seeds or ())
    return SearchRequest(
        text,
        language,
        mode,
        (constraints.backend or "").strip().lower(),
        tuple(constraints.pick_ids) if constraints.pick_ids else None,
        None if seeds is None else tuple(hits),
        _read_limits(body.budget or SearchBudget(), mode),
        want.items is not False,
        want.rendered_text is not False,
    )


def query_text(query: str | QueryObject) -> str:
    """The text of a query in either form, as one line. Raises QuestionError."""
    if isinstance(query, str):
        return clean_query(query)
    read_language(query.lang or "")
    return clean_query(query.text)


def read_body(value: object, kind: type[T]) -> T:
    """The value as what it stands for. Raises QuestionError that names the fields."""
    try:
        return read_value(value, kind)
    except BodyError as error:
        raise request_error(str(error)) from error


def request_error(why: str) -> QuestionError:
    return QuestionError("the request cannot be used", cause=why, fix="see /openapi.json for its fields", code="bad_request")


def clean_query(text: str) -> str:
    """One line of printable text. Raises QuestionError when nothing is left."""
    line = " ".join(_INVISIBLE.sub(" ", text.encode("utf-8", "replace").decode()).split())
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
    return tuple(dict.fromkeys(p for p in picks if isinstance(p, int) and not isinstance(p, bool) and 0 <= p < count))


def _read_limits(budget: SearchBudget, mode: str) -> Limits:
    times = budget.per_request_timeout_ms or RequestTimeouts()
    pages = FULL_MODE_PAGES if budget.max_fetch_pages is None else min(budget.max_fetch_pages, MAX_FETCH_PAGES)
    usual, most, types = FetchLimits(), budget.max_download_bytes_per_page, budget.allowed_content_types
    page = FetchLimits(
        max_bytes=usual.max_bytes if most is None else min(most, usual.max_pdf_bytes),  # one that is named is of documents too
        max_pdf_bytes=usual.max_pdf_bytes if most is None else min(most, usual.max_pdf_bytes),
        max_chars=min(_read_number(budget, "max_extract_chars_per_page"), usual.max_chars),
        max_redirects=min(_read_number(budget, "max_redirects"), MAX_REDIRECTS),
        timeout_s=_to_seconds(_read_number(times, "fetch")),
        content_types=usual.content_types if types is None else tuple(t.partition(";")[0].strip().lower() for t in types),
    )
    return Limits(
        min(_read_number(budget, "max_search_retries"), MAX_RETRIES),
        min(_read_number(budget, "max_results"), MAX_ITEMS),
        pages if mode == FULL else 0,
        page,
        min(_read_number(budget, "max_context_chars"), MAX_CONTEXT_CHARS),
        _to_seconds(_read_number(budget, "max_total_time_ms")),
        _to_seconds(_read_number(times, "search")),
    )


def _read_number(part: SearchBudget | RequestTimeouts, name: str) -> int:
    """A number of a request; null stands for what is usual."""
    value: int | None = getattr(part, name)
    return int(getattr(type(part)(), name)) if value is None else value


def _to_seconds(milliseconds: int) -> float:
    return min(milliseconds, MAX_TIME_MS) / 1000
