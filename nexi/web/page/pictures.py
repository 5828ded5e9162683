"""Pictures of the sources of an answer: nexi fetches them through its guard, so that a reader's browser tells no site anything.

Below is `Nexi.fetch_picture`. A run of scope local has none, and those of a strict answer wait until the reader wants them.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi, check_run_id
from nexi.types import Picture
from nexi.urls import host_of
from nexi.web.contract import Contract
from nexi.web.page.view import AnsweredRun, answered_of, is_web
from nexi.web.payload import build_refusal

CONTRACT = Contract()
MAX_PICTURES = 6
HEADERS = {
    "cache-control": "private, max-age=86400",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "same-origin",
}


def describe_pictures(nexi: Nexi, answered: AnsweredRun) -> dict[str, Any]:
    """The pictures that the page may show of an answer, and whether it shows them unasked."""
    pictures = _find_pictures(answered) if nexi.config.show_pictures else {}
    entries = [
        {"n": number, "description": picture.description, "licence": picture.licence, "host": host_of(picture.url)}
        for number, picture in pictures.items()
    ]
    return {"pictures": entries, "shows_pictures": not answered.started.settings.get("strict")}


def _find_pictures(answered: AnsweredRun) -> dict[int, Picture]:
    """By the number of their source, each picture once."""
    if answered.started.request.get("scope") == "local":
        return {}
    pictures: dict[int, Picture] = {}
    for source in answered.end.sources:
        picture = source.imprint.picture
        if picture and is_web(source.url) and picture.url not in {other.url for other in pictures.values()}:
            pictures[source.number] = picture
    return dict(list(pictures.items())[:MAX_PICTURES])


@CONTRACT.serve("GET /page/runs/{id}/picture")
async def _send_picture(request: Request) -> Response:
    """One picture of a run that its caller may read. An address that the run does not have is never fetched."""
    run_id = check_run_id(request.path_params["id"])
    answered = answered_of(run_id, await request.app.state.host.open_log(run_id))
    number = request.query_params.get("source", "")
    picture = _find_pictures(answered).get(int(number) if number.isdecimal() and len(number) < 9 else 0)
    if picture is None:
        raise build_refusal(404, "no_picture", f"the answer has no picture of source {number[:9]}", fix="open the page itself")
    file = await request.app.state.nexi.fetch_picture(picture.url)
    return Response(file.data, media_type=file.content_type, headers=HEADERS)
