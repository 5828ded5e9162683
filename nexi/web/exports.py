"""A finished run as a file over HTTP, for the page and for the API of runs alike.

Below is `nexi.exports`, which makes the file. Page text is hostile here: a browser that opens one is told to run nothing.
"""

from __future__ import annotations

from contextlib import nullcontext

from starlette.requests import Request
from starlette.responses import Response

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import ReadLog
from nexi.errors import NexiError
from nexi.exports import export_log
from nexi.web.payload import build_refusal

SHOWN = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-popups"}
SAVED = {"content-security-policy": "default-src 'none'; sandbox"}
IN_BROWSER = ("md", "json", "html")
STATUSES = {"not_ended": 409, "no_references": 404, "no_browser": 501, "no_pandoc": 501, "not_printed": 500}


async def export_response(request: Request, log: ReadLog, run_id: str, form: str, *, as_file: bool) -> Response:
    """The run in one of EXPORT_FORMATS; a program beside this one makes a PDF or a Word file, one at a time."""
    state, target = request.app.state, EXPORT_FORMATS[form]
    try:
        async with nullcontext() if target.is_text else state.printing:
            body = await export_log(log, state.nexi.pages(), run_id, form)
    except NexiError as error:
        if error.code not in STATUSES:
            raise
        raise build_refusal(STATUSES[error.code], error.code, str(error), fix=error.fix) from error
    is_saved = as_file or form not in IN_BROWSER
    name = {"content-disposition": f'attachment; filename="nexi-{run_id}.{target.suffix}"'} if is_saved else {}
    return Response(body, media_type=target.media_type, headers={**name, **(SAVED if is_saved else SHOWN)})
