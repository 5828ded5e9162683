"""The routes of the contracts over a scripted world, as an application without the server's guard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from nexi.apis import openwebui, searxng
from nexi.apis.search import routes as search
from nexi.apis.tavily import search as tavily
from nexi.app import Nexi
from tests.apis.search.support import nexi

MODULES = (search, searxng, tavily, openwebui)


@contextmanager
def client(tmp_path: Path, *backends: Any, **world: Any) -> Iterator[TestClient]:
    """A client of all contracts; a fault of ours is an exception here, not a status."""
    app = application(nexi(tmp_path, *backends, **world))
    with TestClient(app) as caller:
        yield caller


def application(shared: Nexi, modules: Sequence[Any] = MODULES) -> Starlette:
    app = Starlette(routes=[route for module in modules for route in module.routes()])
    app.state.nexi = shared
    return app
