"""Operations: `/healthz`, `/readyz`, `/metrics` and `/openapi.json`, for the operator.

The OpenAPI document is put together from the modules that serve the paths, so that it says what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from nexi import __version__
from nexi.web.metrics import METRICS_TYPE
from nexi.web.payload import json_reply
from nexi.web.schemas import build_responses

__all__ = ["assemble_document"]


def routes() -> list[Route]:
    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", _show_metrics, methods=["GET"]),
        Route("/openapi.json", _show_openapi, methods=["GET"]),
    ]


async def healthz(request: Request) -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


async def readyz(request: Request) -> Response:
    """It takes work: not while it shuts down, nor with all the runs it can carry."""
    host = request.app.state.host
    if host.draining or host.is_full:
        return PlainTextResponse("draining\n" if host.draining else "full\n", 503, {"retry-after": "5"})
    return PlainTextResponse("ready\n")


async def _show_metrics(request: Request) -> Response:
    state = request.app.state
    return PlainTextResponse(state.metrics.text({"nexi_runs_active": state.host.active}), media_type=METRICS_TYPE)


async def _show_openapi(request: Request) -> Response:
    return json_reply(request.app.state.openapi)


def openapi() -> dict[str, Any]:
    ready = {"200": _text_response("It does."), "503": _text_response("Not now; Retry-After says when.")}
    document = {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}}
    return {
        "/healthz": {"get": _operation("Whether the process answers.", {"200": _text_response("It does.")}, security=[])},
        "/readyz": {"get": _operation("Whether it takes work.", ready, security=[])},
        "/metrics": {"get": _operation("Numbers for Prometheus.", {"200": _text_response("The numbers.")})},
        "/openapi.json": {"get": _operation("This document.", document)},
    }


def _operation(summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"summary": summary, "tags": ["Operations"], "responses": {**build_responses({}), **responses}, **more}


def _text_response(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}


def assemble_document(parts: Iterable[dict[str, Any]], *, is_open: Callable[[str, str], bool]) -> dict[str, Any]:
    """One OpenAPI document of the paths of all modules. `is_open` says which methods of which paths need no token."""
    paths = {path: operations for part in parts for path, operations in part.items()}
    for path, operations in paths.items():
        for method, operation in operations.items():
            if is_open(method.upper(), path):
                operation.setdefault("security", [{}, {"token": []}])
    return {
        "openapi": "3.1.0",
        "info": {"title": "nexi", "version": __version__, "summary": "Answers with proof, over HTTP."},
        "paths": paths,
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
