"""How the answers of web services are read: what a status means, and JSON that may be anything. Pure."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from nexi.errors import BackendError
from nexi.net.retry import retry_after
from nexi.notices import Notice
from nexi.types import Hit, Query

_TAG = re.compile(r"<[^>]{0,500}>")


def check_status(service: str, status: int, headers: Mapping[str, str], body: bytes, *, key_setting: str = "") -> None:
    """Raise what a status other than 200 stands for."""
    if status == 200:
        return
    cause = f"HTTP {status}: {service_message(body)}"
    fix_key = f"check {key_setting}" if key_setting else "this service needs no key; look for a proxy in between"
    if status in (401, 403):
        message = Notice("service.refused_us", "{service} refused us", service=service)
        raise BackendError(message, code="wrong_key" if key_setting else "refused_us", cause=cause, fix=fix_key)
    if status == 402:
        fix = f"top up the account, or change {key_setting or 'it'}"
        message = Notice("service.payment", "{service} requires payment", service=service)
        raise BackendError(message, code="quota", cause=cause, fix=fix)
    wish = retry_after(headers)
    if status == 429:
        fix = "wait, or put another backend before it in search_backend"
        message = Notice("service.rate", "{service} limits how often it may be asked", service=service)
        raise BackendError(message, code="rate_limit", cause=cause, fix=fix, retry_after=wish, retryable=True)
    if status in (301, 302, 303, 307, 308):
        target = f"HTTP {status} to {headers.get('location', 'an address it does not name')[:200]}"
        fix = "a login or a new address is the usual reason; try again later, or correct the address of the service"
        raise BackendError(f"{service} sends us elsewhere", code="redirect", cause=target, fix=fix)
    if status >= 500:
        raise BackendError(
            f"{service} has a fault", code="server_error", cause=cause, fix="try again later", retryable=True, retry_after=wish
        )
    fix = "change the query"
    raise BackendError(f"{service} did not accept the query", code="bad_query", cause=cause, fix=fix, actor="model")


def json_object(service: str, body: bytes) -> dict[str, Any]:
    """The JSON object of a body, or a BackendError."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unreadable_error(service, f"it is no JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise _unreadable_error(service, "its JSON is no object")
    return data


def read_answer(service: str, status: int, headers: Mapping[str, str], body: bytes, *, key_setting: str = "") -> dict[str, Any]:
    """The JSON object of an answer. Raises BackendError for a status that is no answer, and for what is no such object."""
    check_status(service, status, headers, body, key_setting=key_setting)
    return json_object(service, body)


def read_hit(row: Mapping[str, Any], backend: str, url: str, snippet: str, *days: str, max_chars: int | None = None) -> Hit:
    """A row as a hit: the names under which its address, its text and perhaps its day stand."""
    day = next((str(row[name]) for name in days if row.get(name)), "")
    return Hit(row[url], plain_line(row.get("title")), plain_line(row.get(snippet))[:max_chars], day, backend)


def read_rows(value: object, text_field: str = "") -> list[dict[str, Any]]:
    """The objects of what should be a list of objects; with `text_field`, those that have a text under that name."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return [row for row in rows if isinstance(row.get(text_field), str) and row[text_field]] if text_field else rows


def plain_line(value: object) -> str:
    """Text on one line, without tags and entities."""
    return " ".join(html.unescape(_TAG.sub("", value)).split()) if isinstance(value, str) else ""


def read_tag(xml: str, name: str) -> str:
    """The text of the first element of a name, on one line."""
    match = re.search(rf"<{name}\b[^>]*>(.*?)</{name}>", xml, re.DOTALL)
    return plain_line(match[1]) if match else ""


def service_message(body: bytes, default: str = "no reason given") -> str:
    """The service's own words, as far as they can be found."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return plain_line(body[:2000].decode("utf-8", "replace"))[:200] or default
    answer = data if isinstance(data, dict) else {}
    for name in ("error", "errors", "message", "detail", "readableMessage", "error_message", "errMsg"):
        inner = answer.get(name)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        text = inner.get("info") or inner.get("message") or inner.get("detail") if isinstance(inner, dict) else inner
        if isinstance(text, str) and text:
            return text[:200]
    return default


def with_sites(query: Query) -> str:
    """The words of a query with its sites as the operators every search engine knows."""
    only = " OR ".join(f"site:{site}" for site in query.sites)
    return " ".join(part for part in (query.text.strip(), only, *(f"-site:{site}" for site in query.excluded_sites)) if part)


def _unreadable_error(service: str, cause: str) -> BackendError:
    message, fix = f"{service} sent an answer that cannot be read", "try again later"
    return BackendError(message, code="bad_json", cause=cause, fix=fix, retryable=True)
