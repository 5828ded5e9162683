"""The words of the panel that makes tables of values, in the language of the reader; the table itself is `POST /v1/table`."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.web.page.localization import COOKIE, choose_language, read_texts
from nexi.web.payload import json_reply

__all__ = ["routes"]


def routes() -> list[Route]:
    return [Route("/page/table", _show_words, methods=["GET"])]


async def _show_words(request: Request) -> Response:
    language = choose_language(request.cookies.get(COOKIE, ""), request.headers.get("accept-language", ""))
    return json_reply((await asyncio.to_thread(read_texts, language))["table"])
