"""Operations: `/healthz`, `/readyz`, `/metrics` and `/openapi.json`, for the operator.

The OpenAPI document is put together from the modules that serve the paths, so that it says what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from nexi import __version__
from nexi.web.contract import Contract
from nexi.web.metrics import METRICS_TYPE
from nexi.web.payload import json_reply

CONTRACT = Contract("Operations")
TEXT = {"text/plain": {"schema": {"type": "string"}}}
ANSWERS = {"200": {"description": "It does.", "content": TEXT}}
NOT_NOW = {"503": {"description": "Not now; Retry-After says when.", "content": TEXT}}
NUMBERS = {"200": {"description": "The numbers.", "content": TEXT}}
DOCUMENT = {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}}


@CONTRACT.serve("GET /healthz", "Whether the process answers.", responses=ANSWERS, security=[])
async def healthz(request: Request) -> Response:
    return PlainTextResponse("ok\n")


@CONTRACT.serve("GET /readyz", "Whether it takes work.", responses={**ANSWERS, **NOT_NOW}, security=[])
async def _readyz(request: Request) -> Response:
    """Not while it shuts down, nor with all the runs it can carry."""
    host = request.app.state.host
    if host.draining or host.is_full:
        return PlainTextResponse("draining\n" if host.draining else "full\n", 503, {"retry-after": "5"})
    return PlainTextResponse("ready\n")


@CONTRACT.serve("GET /metrics", "Numbers for Prometheus.", responses=NUMBERS)
async def _show_metrics(request: Request) -> Response:
    state = request.app.state
    return PlainTextResponse(state.metrics.text({"nexi_runs_active": state.host.active}), media_type=METRICS_TYPE)


@CONTRACT.serve("GET /openapi.json", "This document.", responses=DOCUMENT)
async def _show_openapi(request: Request) -> Response:
    return json_reply(request.app.state.openapi)


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
