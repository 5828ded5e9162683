"""The routes of the contracts over a scripted world, as an application without the server's guard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from nexi.apis import openwebui, searxng, tavily
from nexi.apis.search import routes as search
from nexi.app import Nexi
from nexi.errors import NexiError
from nexi.web import list_error_shapes
from nexi.web.contract import Contract
from nexi.web.payload import Refused, own_shape, problem_of, response_of
from tests.apis.search.support import nexi

DOORS = tuple(module.CONTRACT for module in (search, searxng, tavily, openwebui))


@contextmanager
def client(tmp_path: Path, *backends: Any, **world: Any) -> Iterator[TestClient]:
    """A client of all contracts; a fault of ours is an exception here, not a status."""
    app = application(nexi(tmp_path, *backends, **world))
    with TestClient(app) as caller:
        yield caller


def application(shared: Nexi, contracts: Sequence[Contract] = DOORS) -> Starlette:
    return without_guard([route for contract in contracts for route in contract.routes], shared)


def without_guard(routes: Sequence[Route], shared: Nexi) -> Starlette:
    app = Starlette(routes=routes, exception_handlers={Refused: show_refusal, NexiError: show_refusal})
    app.state.nexi = shared
    return app


async def show_refusal(request: Request, error: Exception) -> Response:
    """A refusal in the shape of its path, as the guard gives it."""
    shapes = list_error_shapes()
    prefix = max((prefix for prefix in shapes if request.url.path.startswith(prefix)), key=len, default="")
    problem = error.problem if isinstance(error, Refused) else problem_of(error)
    return response_of(problem, shapes.get(prefix, own_shape))
