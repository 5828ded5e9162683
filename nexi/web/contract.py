"""Contract: the paths of one module, each declared beside its function with what the OpenAPI document says of it.

The modules of doors stand above; the server mounts the routes, and `operations` puts the documents together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.structured.schema_check import schema_of

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Schema: TypeAlias = type[Struct] | Mapping[str, Any]
Named: TypeAlias = Mapping[str, tuple[str, Mapping[str, Any]]]  # parameters: what each says, and its schema
ANSWERS = {200: "Done.", 201: "Made.", 202: "Accepted.", 204: "Nothing to say."}


class ErrorDetail(Struct):
    """What went wrong, and what to do about it."""

    code: str
    message: str
    fix: str = ""
    parameter: str = ""


class ErrorBody(Struct):
    """A request that was refused or failed."""

    error: ErrorDetail


class Contract:
    """The paths of one module. `tag` is their group, `error` the form of their errors, `path` what stands in braces."""

    def __init__(self, tag: str = "", *, error: Schema = ErrorBody, path: Named | None = None) -> None:
        self.routes: list[Route] = []
        self._tag, self._error, self._path = tag, error, path or {}
        self._descriptions: list[tuple[str, str, dict[str, Any]]] = []

    def serve(
        self, operation: str, summary: str = "", outcomes: Mapping[int, Any] | None = None, **about: Any
    ) -> Callable[[Handler], Handler]:
        """Serve an operation such as "GET /v1/runs"; one with a summary is in the document, with what `_describe` takes."""
        method, _, path = operation.partition(" ")

        def add(handler: Handler) -> Handler:
            self.routes.append(Route(path, handler, methods=[method]))
            if summary:
                self._descriptions.append((path, method.lower(), {"summary": summary, "outcomes": outcomes, **about}))
            return handler

        return add

    def openapi(self) -> dict[str, Any]:
        """Its part of the document, made anew: the caller may add to it."""
        paths: dict[str, Any] = {}
        for path, method, about in self._descriptions:
            paths.setdefault(path, {})[method] = self._describe(path, **about)
        return paths

    def _describe(
        self,
        path: str,
        summary: str,
        outcomes: Mapping[int, Any] | None = None,
        *,
        body: Schema | None = None,
        ok: Schema | None = None,
        streams: bool = False,
        query: Named | None = None,
        responses: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """One operation. What comes back is `ok`, maybe as a stream, or one of the outcomes: a schema, media types, or None."""
        answers = {str(code): _describe_outcome(ANSWERS[code], outcome) for code, outcome in (outcomes or {}).items()}
        failure = "Refused or failed; Retry-After says when to ask again."
        if ok is not None:
            answers = {"200": _describe_outcome("The answer.", ok)}
            answers["400"] = _describe_outcome("The request cannot be used.", self._error)
            failure = "The service could not answer."
        if streams:
            answers["200"]["content"]["text/event-stream"] = {"schema": {}}
        answers |= {"default": _describe_outcome(failure, self._error), **(responses or {})}
        operation = {"summary": summary, "tags": [self._tag], "responses": answers, **more}
        if body:
            operation["requestBody"] = {"required": True, "content": _json_content(body)}
        parameters = [("path", name, self._path[name]) for name in self._path if f"{{{name}}}" in path]
        parameters += [("query", name, parameter) for name, parameter in (query or {}).items()]
        if parameters:
            operation["parameters"] = [
                {"name": name, "in": place, "required": place == "path", "description": text, "schema": dict(schema)}
                for place, name, (text, schema) in parameters
            ]
        return operation


def _describe_outcome(description: str, outcome: Any) -> dict[str, Any]:
    if outcome is None:
        return {"description": description}
    content = {kind: {"schema": {}} for kind in outcome} if isinstance(outcome, tuple) else _json_content(outcome)
    return {"description": description, "content": content}


def _json_content(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": dict(schema_of(schema) if isinstance(schema, type) else schema)}}
