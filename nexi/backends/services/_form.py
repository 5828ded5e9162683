"""How an open service is asked and how its answers read: its form, as values that the files beside it fill in. Pure.

Answers may be anything, so their rows are read by functions that give "" for what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from nexi.backends._replies import plain_line, read_rows
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query
from nexi.urls import is_web_url

Row: TypeAlias = dict[str, Any]  # one result, as its service writes it

MAX_SNIPPET_CHARS = 500
_DAY = re.compile(r"(\d{4})-?(\d\d)?-?(\d\d)?")
_DOI = re.compile(r"10\.\d{4,9}/\S+", re.IGNORECASE)


class Caller(Struct, frozen=True):
    """Who asks, and where: the service's address or a mirror's, a key, and an address for complaints."""

    base: str
    key: str = ""
    contact: str = ""

    def build_request(self, path: str, params: Mapping[str, str] = {}, headers: Mapping[str, str] = {}) -> BackendRequest:
        """A request without the parameters and headers that are empty, such as a key that is not set."""
        query = tuple((name, value) for name, value in params.items() if value)
        return BackendRequest(self.base + path, params=query, headers={k: value for k, value in headers.items() if value})


class ServiceForm(Struct, frozen=True):
    """How one service is asked and how its answers read; `rows` is the path to its results, "" for the whole answer."""

    base: str
    request: Callable[[Query, Caller], BackendRequest]
    read_row: Callable[[Row], Hit | None]  # a hit without an address is left out
    rows: str = ""
    unfold: Callable[[Any], Any] | None = None  # makes a list of rows of what stands at the path
    is_empty: Callable[[Any], bool] | None = None  # says that an answer without the path means no results
    missing_is_empty: bool = False  # 404 means no results
    follow: Callable[[Any, Caller], BackendRequest | None] | None = None  # a second request, made from the first answer
    first_rows: str = ""  # what the first answer must have, where a second one follows


def search_by(
    path: str, words: str, count: str = "", more: Mapping[str, str] = {}, *, most: int = 50
) -> Callable[[Query, Caller], BackendRequest]:
    """The requests of a service that takes the words of a query and how many results are wanted, under these names."""

    def request(query: Query, caller: Caller) -> BackendRequest:
        size = {count: str(min(query.count, most))} if count else {}
        return caller.build_request(path, {words: query.text, **size, **more})

    return request


def dig(value: Any, path: str) -> Any:
    """What stands at a path of names and numbers; None where the path leads nowhere."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
    return value


def dig_rows(value: Any, path: str) -> list[Row]:
    return read_rows(dig(value, path))


def read_line(row: Any, *paths: str) -> str:
    """The first of these paths that has text or a number, on one line."""
    for path in paths:
        value = dig(row, path)
        if isinstance(value, list):
            value = next((item for item in value if isinstance(item, str)), "")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if line := plain_line(value):
            return line
    return ""


def read_lines(row: Any, path: str, field: str = "") -> list[str]:
    """The texts of a list, or of a field of its rows."""
    items = dig(row, path)
    lines = (read_line(item, field) if field else plain_line(item) for item in (items if isinstance(items, list) else ()))
    return [line for line in lines if line]


def read_day(row: Any, *paths: str) -> str:
    """A date as far as it is known: 2024, 2024-05 or 2024-05-17."""
    match = _DAY.match(read_line(row, *paths))
    return "-".join(part for part in match.groups() if part) if match else ""


def read_doi(*texts: str) -> str:
    """The first DOI among texts, in lower case."""
    for text in texts:
        if match := _DOI.search(text):
            return match[0].rstrip(".,;)").lower()
    return ""


def read_web_url(row: Any, *paths: str) -> str:
    """The first of these paths that is a web address."""
    return next((url for path in paths if is_web_url(url := read_line(row, path))), "")


def join_parts(parts: Iterable[str], mark: str = " · ") -> str:
    """What is there of some parts, as a snippet."""
    return mark.join(part for part in parts if part)[:MAX_SNIPPET_CHARS]
