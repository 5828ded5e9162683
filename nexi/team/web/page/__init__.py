"""What the page has on a team server alone: the account with schedules and tokens, and sharing of knowledge.

`app` adds these routes to the app of each person; below are the page itself, whose scripts load these when they are wanted, and
the texts of each language.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from nexi.web.contract import Contract
from nexi.web.page import respond_compressed, respond_in_language, show_index
from nexi.web.page.assets import pack_bytes, static_bytes
from nexi.web.payload import build_refusal

__all__ = ["ACCOUNT_PATH", "CONTRACT", "SCRIPTS"]

ACCOUNT_PATH = "/profile"  # /account is for programs
CONTRACT = Contract()
SCRIPTS = ("access.js", "account.js", "sharing.js", "start.js", "texts.js")


CONTRACT.serve(f"GET {ACCOUNT_PATH}")(show_index)


@functools.cache
def texts_bytes(language: str, compressed: bool) -> bytes:
    texts = json.loads((resources.files(__package__) / "texts" / f"{language}.json").read_text(encoding="utf-8"))
    return pack_bytes(json.dumps(texts, ensure_ascii=False).encode(), compressed)


@CONTRACT.serve("GET /static/team/texts")
async def _show_texts(request: Request) -> Response:
    return respond_in_language(request, texts_bytes, "application/json")


@CONTRACT.serve("GET /static/team/{name}")
async def _serve_script(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in SCRIPTS:
        raise build_refusal(404, "not_found", "there is nothing at this path", fix="open /")
    read = functools.partial(static_bytes, name, package=__package__)
    return respond_compressed(request, read, "text/javascript", {"vary": "accept-encoding"})
