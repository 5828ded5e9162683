"""Sharing: a run as one HTML page behind a link that cannot be guessed, where the owner of the server allows it.

Above, the page; below, exports and the labels of runs. The link needs no token of the server and shows nothing but this run;
nothing on it runs or loads. Whoever may use the page may take it back.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets

from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi, check_run_id
from nexi.errors import NexiError, StoreError
from nexi.exports import export_run
from nexi.types import RunAudience
from nexi.web.contract import Contract
from nexi.web.page.history import read_labels, set_label
from nexi.web.payload import Refused, build_refusal, json_reply
from nexi.web.runs import SHOWN

CONTRACT = Contract()
KEY_BYTES = 24
TEAM, NOBODY = RunAudience(team=True), RunAudience()
HEADERS = {**SHOWN, "cache-control": "private, no-store", "x-robots-tag": "noindex, nofollow"}
_KEY = re.compile(r"[A-Za-z0-9_-]{32}")


@CONTRACT.serve("POST /page/runs/{id}/share")
async def _share_run(request: Request) -> Response:
    """The path of the link to a finished run; asked again, it is the same one."""
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    if nexi.state:  # a team has no strangers: its own page shows the run to whoever signs in
        await asyncio.to_thread(nexi.state.sharing.set_audience, run_id, TEAM)
        return json_reply({"path": f"/runs/{run_id}"})
    if not nexi.config.share:
        raise build_refusal(403, "not_allowed", "this server shares no runs", fix="its owner may: nexi config set share true")
    try:
        await export_run(nexi.runs(), nexi.pages(), run_id, "html")  # what cannot be shown is not shared
    except NexiError as error:
        if error.code != "not_ended":
            raise
        raise build_refusal(409, error.code, str(error), fix=error.fix) from error
    async with request.app.state.taking:
        label = (await asyncio.to_thread(read_labels, nexi)).get(run_id, {})
        key = label.get("share") or secrets.token_urlsafe(KEY_BYTES)
        await asyncio.to_thread(set_label, nexi, run_id, {"share": key})
    return json_reply({"path": f"/shared/{key}"})


async def describe_sharing(nexi: Nexi, run_id: str) -> dict[str, bool]:
    """On a team server: whether others may read this run, and whether it is somebody else's."""
    if nexi.state is None:
        return {}
    try:
        audience = await asyncio.to_thread(nexi.state.sharing.read_audience, run_id)
    except StoreError:
        return {"shared": False, "of_another": True}
    return {"shared": audience != NOBODY, "of_another": False}


@CONTRACT.serve("DELETE /page/runs/{id}/share")
async def _unshare_run(request: Request) -> Response:
    nexi, run_id = request.app.state.nexi, check_run_id(request.path_params["id"])
    if nexi.state:
        await asyncio.to_thread(nexi.state.sharing.set_audience, run_id, NOBODY)
        return Response(status_code=204)
    if not await asyncio.to_thread(nexi.runs().has_run, run_id):
        raise build_refusal(404, "no_such_run", f"there is no run {run_id}", fix="open the history")
    async with request.app.state.taking:
        await asyncio.to_thread(set_label, nexi, run_id, {"share": ""})
    return Response(status_code=204)


@CONTRACT.serve("GET /shared/{key}")
async def _show_shared(request: Request) -> Response:
    nexi: Nexi = request.app.state.nexi
    key = request.path_params["key"]
    labels = await asyncio.to_thread(read_labels, nexi) if nexi.config.share and _KEY.fullmatch(key) else {}
    keys = {run_id: str(label.get("share", "")) for run_id, label in labels.items()}
    run_id = next((run_id for run_id, own in keys.items() if hmac.compare_digest(own.encode(), key.encode())), None)
    if run_id is None:
        raise _not_shared()
    try:
        body = await export_run(nexi.runs(), nexi.pages(), run_id, "html")
    except NexiError as error:
        raise _not_shared() from error
    return Response(body, media_type="text/html", headers=HEADERS)


def _not_shared() -> Refused:
    return build_refusal(404, "not_shared", "nothing is shared under this link", fix="ask who sent it for a new one")
