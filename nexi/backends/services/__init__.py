"""The services that need no key: each a function that builds its request and one that reads a row of its answer.

`ServiceDialect` puts such a pair on the shared sender. What goes wrong with an answer is recognised here once for all of
them: a web page in the place of data, an error inside a 200, rows that are not where they should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends._replies import check_status, plain_line, read_rows, service_message
from nexi.backends.sender import MAX_BODY, BackendRequest, BackendResponse, HttpBackend
from nexi.backends.services import papers, web
from nexi.backends.services._form import Caller, ServiceForm, dig
from nexi.errors import BackendError
from nexi.routing.table import SERVICES
from nexi.types import Hit, Query

__all__ = ["FORMS", "Caller", "ServiceBackend", "ServiceDialect"]

FORMS: Mapping[str, ServiceForm] = {**papers.FORMS, **web.FORMS}
_RATE = re.compile(r"rate|limit|thrott|too many|quota|slow down", re.IGNORECASE)
_TITLE = re.compile(rb"<title[^>]*>(.{0,200}?)</title", re.IGNORECASE | re.DOTALL)


class ServiceDialect(Struct, frozen=True):
    """A form with a caller: the BackendDialect of the sender."""

    name: str
    form: ServiceForm
    caller: Caller
    timeout_s: float = 10.0

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(SERVICES[self.name].filters)

    @property
    def interval_s(self) -> float:
        return SERVICES[self.name].interval_s

    @property
    def _title(self) -> str:
        return SERVICES[self.name].title

    def request(self, query: Query) -> BackendRequest:
        return replace(self.form.request(query, self.caller), timeout_s=self.timeout_s)

    def follow(self, response: BackendResponse) -> BackendRequest | None:
        """The second request that the first answer leads to. Raises BackendError."""
        if self.form.follow is None:
            return None
        data = self._read_json(response.status, response.headers, response.body)
        if dig(data, self.form.first_rows) is None:
            raise _wrong_shape(self._title, data, self.form.first_rows)
        request = self.form.follow(data, self.caller)
        return replace(request, timeout_s=self.timeout_s) if request else None

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        if status == 404 and self.form.missing_is_empty:
            return []
        data = self._read_json(status, headers, body)
        rows = dig(data, self.form.rows)
        if self.form.unfold:
            rows = self.form.unfold(rows)
        if rows is None and self.form.is_empty and self.form.is_empty(data):
            return []
        if not isinstance(rows, list):
            raise _wrong_shape(self._title, data, self.form.rows)
        hits = map(self.form.read_row, read_rows(rows))
        return [hit for hit in hits if hit and hit.url]

    def _read_json(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        key_setting = f"api_keys.{self.name}" if self.caller.key else ""
        is_limit = status in (400, 403) and _RATE.search(service_message(body))
        check_status(self._title, 429 if is_limit else status, headers, body, key_setting=key_setting)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _no_data(self._title, body) from error


class ServiceBackend(HttpBackend):
    """A service on the sender, with the second request that some of them need."""

    async def _ask_dialect(self, dialect: Any, query: Query) -> list[Hit]:
        response = await self._sender.send(self.name, dialect.request(query))
        if request := dialect.follow(response):
            response = await self._sender.send(self.name, request)
        elif dialect.form.follow:
            return []
        hits: list[Hit] = dialect.parse(response.status, response.headers, response.body)
        return hits[: query.count]


def _no_data(title: str, body: bytes) -> BackendError:
    """Say what came in the place of JSON: a web page, or a sentence of the service."""
    if len(body) >= MAX_BODY:
        cause = f"it has more than {MAX_BODY // 1_000_000} MB, and the rest was not read"
        return BackendError(f"{title} sent too much", code="too_large", cause=cause, fix="ask for less, or try again later")
    start = body[:2000].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")) or b"<body" in start:
        page = _TITLE.search(body[:20_000])
        name = f": {plain_line(page[1].decode('utf-8', 'replace'))!r}" if page else ""
        cause, message = f"a login, a challenge or a notice{name}", f"{title} sent a web page instead of data"
        fix = "open the service in a browser to see why, or leave it out by the setting services"
        return BackendError(message, code="web_page", cause=cause, fix=fix)
    words = plain_line(body[:300].decode("utf-8", "replace"))
    if _RATE.search(words):
        return _rate_error(title, words)
    cause = f"it is no JSON: {words or 'it is empty'}"
    return BackendError(f"{title} sent an answer that cannot be read", code="bad_json", cause=cause, fix="try again later")


def _rate_error(title: str, words: str) -> BackendError:
    fix = "wait; other services are asked meanwhile"
    return BackendError(f"{title} limits how often it may be asked", code="rate_limit", cause=words, fix=fix, retryable=True)


def _wrong_shape(title: str, data: Any, path: str) -> BackendError:
    """An error inside a 200, or an answer of another version."""
    words = service_message(json.dumps(data)[:5000].encode() if isinstance(data, dict) else b"{}", default="")
    if _RATE.search(words):
        return _rate_error(title, words)
    if words:
        return BackendError(f"{title} reports an error", code="error_inside", cause=words, fix="change the query, or try later")
    return BackendError(
        f"{title} answers in a form that nexi does not know",
        code="bad_schema",
        cause=f"there is no {path or 'list of results'} in it; the service may have a new version",
        fix="look for a newer nexi, or tell its developers",
    )
