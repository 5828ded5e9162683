"""Payload: what comes in with a request and what goes out: problems, JSON, and streams of events.

The contract modules stand above. A problem is a status, a code and words: modules raise `Refused` or let a NexiError through,
and `guard` gives both the shape of the path. A body is read strictly; a reply can hold whatever a request or a page held,
halves of characters too. What runs do, and what the frames of a stream say, is not known here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nexi import errors
from nexi.notices import add_notices
from nexi.structured.json_reader import parse_json
from nexi.structured.schema_check import BodyError, read_value

T = TypeVar("T", bound=Struct)
MAX_EXACT = 2**53
STATUSES: Mapping[str, int] = {
    **dict.fromkeys(("bad_space", "bad_plan"), 400),
    **dict.fromkeys(("not_yours", "model_refused"), 403),
    **dict.fromkeys(("no_such_run", "bad_run_id", "not_found", "no_such_space"), 404),
    **dict.fromkeys(("space_exists", "run_locked", "complete", "cancelled", "no_plan", "not_ended", "ambiguous"), 409),
    **dict.fromkeys(("quota_reached", "budget_spent"), 429),
    **dict.fromkeys(("database", "busy"), 503),
}
STATUSES_OF_KINDS = (
    (errors.QuestionError, 400),
    ((errors.NoEvidenceError, errors.VerificationError), 422),  # the request was sound; asking again would change nothing
    (errors.ConfigError, 503),
    ((errors.LLMError, errors.BackendError), 502),
)
RETRY_S = 5


class Problem(Struct, frozen=True):
    """One refusal or failure. `retry_after` in seconds, 0 where asking again would not help."""

    status: int
    code: str
    message: str
    fix: str = ""
    retry_after: int = 0
    parameter: str = ""
    allow: str = ""

    @property
    def advice(self) -> str:
        """The message with what to do, for contracts whose errors are one text."""
        return f"{self.message}. {self.fix}" if self.fix else self.message


Shape: TypeAlias = Callable[[Problem], Any]


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault
    """Ends a request with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def build_refusal(status: int, code: str, message: str, *, fix: str = "", retry_after: int = 0, parameter: str = "") -> Refused:
    return Refused(Problem(status, code, message, fix, retry_after, parameter))


def bad_request(message: str, *, fix: str = "", parameter: str = "") -> Refused:
    return build_refusal(400, "bad_request", message, fix=fix, parameter=parameter)


def problem_of(error: errors.NexiError) -> Problem:
    """An error of ours as a status. The caller's own doing is 4xx; what the operator or a provider must fix is 5xx."""
    of_kind = next((number for kinds, number in STATUSES_OF_KINDS if isinstance(error, kinds)), 500)
    status = STATUSES.get(error.code) or of_kind
    wait = getattr(error, "retry_after", None) if status in (429, 502, 503) else None
    if error.code in ("database", "busy"):
        wait = RETRY_S
    # the log of a run tells the cause of our own faults
    message = error.message if isinstance(error, errors.InternalError) else str(error)
    return Problem(status, error.code, message, error.fix, round(wait) if wait else 0)


def own_shape(problem: Problem) -> dict[str, Any]:
    """The shape of nexi's own paths."""
    fields = {"code": problem.code, "message": problem.message, "fix": problem.fix, "parameter": problem.parameter}
    return add_notices({"error": {name: value for name, value in fields.items() if value}})


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


class EventStream(Response):
    """Frames as they come. They are closed when the reader leaves, so that no work is done for a reader who has left."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self._frames = frames
        self.status_code, self.background = 200, None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending, leaving = asyncio.create_task(self._send_all(scope, send)), asyncio.create_task(wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))  # neither outlives the response
        return None if sending.cancelled() else sending.result()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                async for frame in frames:
                    if frame:  # one that its reader has seen is empty
                        await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def send_frames(frames: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Frames that are all there, for a stream."""
    for frame in frames:
        yield frame


async def wait_for_disconnect(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
