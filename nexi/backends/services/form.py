"""The form of a service: how it is asked and how its answers read, as values that the files beside it fill in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

__all__ = ["Caller", "ServiceForm"]


class Caller(Struct, frozen=True):
    """Who asks, and where: the service's address or a mirror's, a key, and an address for complaints."""

    base: str
    key: str = ""
    contact: str = ""


class ServiceForm(Struct, frozen=True):
    """How one service is asked and how its answers read; `rows` is the path to its results, "" for the whole answer."""

    base: str
    request: Callable[[Query, Caller], BackendRequest]
    read_row: Callable[[dict[str, Any], Caller], Hit | None]
    rows: str = ""
    unfold: Callable[[Any], Any] | None = None  # makes a list of rows of what stands at the path
    is_empty: Callable[[Any], bool] | None = None  # says that an answer without the path means no results
    missing_is_empty: bool = False  # 404 means no results
    follow: Callable[[Any, Caller], BackendRequest | None] | None = None  # a second request, made from the first answer
    first_rows: str = ""  # what the first answer must have, where a second one follows
