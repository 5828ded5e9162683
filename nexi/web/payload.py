"""Payload: JSON in and out.

The contract modules stand above. A body is read strictly; a reply can hold whatever a request or a page held, halves of
characters too. Refusals and errors leave an endpoint as they are: `guard` gives them the shape of the path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.notices import add_notices
from nexi.structured.json_reader import parse_json
from nexi.structured.schema_check import BodyError, read_value
from nexi.web.problems import Problem, Shape, bad_request

T = TypeVar("T", bound=Struct)
MAX_EXACT = 2**53


async def read_body(request: Request, kind: type[T]) -> T:
    """The body as a value of its type. Raises Refused."""
    return parse_body(await read_json(request), kind)


def parse_body(value: object, kind: type[T]) -> T:
    """A JSON value as a value of its type. Raises Refused."""
    try:
        return read_value(value, kind)
    except BodyError as error:
        raise bad_request(str(error), fix="see /openapi.json for the fields") from error


async def read_json(request: Request) -> Any:
    """The body as a JSON value. Raises Refused."""
    try:
        text = (await request.body()).decode("utf-8-sig")
        value = _with_whole_numbers(parse_json(text)) if "." in text or "e" in text else parse_json(text)
    except UnicodeDecodeError as error:
        raise bad_request("the body is not UTF-8", fix="send JSON encoded as UTF-8") from error
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}"[:200], fix="send one JSON object") from error
    return value


def _with_whole_numbers(value: Any) -> Any:
    """JSON knows one kind of number: 5.0 is a count too."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < MAX_EXACT else value
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    return {key: _with_whole_numbers(item) for key, item in value.items()} if isinstance(value, dict) else value


def parse_number(request: Request, name: str, default: int, *, most: int) -> int:
    """A number from 1 to `most` in the address of a request. Raises Refused."""
    text = request.query_params.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise bad_request(f"{name} must be a number from 1 to {most}", parameter=name)
    return int(text)


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response of any text."""
    try:
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a character
        body = json.dumps(value, separators=(",", ":")).encode()
    return Response(body, status, headers, media_type="application/json")


def told_reply(value: dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response with the codes of its notices, for a client that says them in another language."""
    return json_reply(add_notices(value), status, headers)


def response_of(problem: Problem, shape: Shape) -> Response:
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after else {}
    if problem.status == 401:
        headers["www-authenticate"] = 'Bearer realm="nexi"'
    if problem.allow:
        headers["allow"] = problem.allow
    return json_reply(shape(problem), problem.status, headers)
