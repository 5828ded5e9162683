"""What the page needs of a run under way besides its events: the timeline so far, as its log has it.

Above, the page; below, the run log. An event does not say when it happened and its place in the log does.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app import Nexi, check_run_id
from nexi.web.page.timeline import open_bars_of, timeline_of
from nexi.web.payload import json_reply


def routes() -> list[Route]:
    return [Route("/page/runs/{id}/timeline", _show_timeline, methods=["GET"])]


async def _show_timeline(request: Request) -> Response:
    """The bars up to fact number `facts`, and how many seconds ago the run began."""
    nexi: Nexi = request.app.state.nexi
    log = await asyncio.to_thread(nexi.runs().open_log, check_run_id(request.path_params["id"]))
    bars = timeline_of(log.facts, log.moments, log.header.created)
    open_bars = open_bars_of(log.facts, log.moments, log.header.created)
    ago = nexi.clock.now().timestamp() - datetime.fromisoformat(log.header.created).timestamp()
    return json_reply({"bars": bars, "open": open_bars, "seconds": round(max(0.0, ago), 3), "facts": len(log.facts)})
