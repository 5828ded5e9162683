"""What httpcore2 leaves unsaid and undone over HTTP/2: its failures in words, and streams that are left before their end.

A page that is left early costs HTTP/1.1 its connection. Over HTTP/2 other pages share the connection, so the one stream is
cancelled and what came of it is given back to the flow control; httpcore2 does neither, and after a few large pages such a
connection would stand still. This file reaches into its objects for that, and closes the connection where it does not find
them as it knows them.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import httpcore2

CANCEL_TIMEOUT_S = 0.5  # a site that does not take the cancellation within this loses the connection
CANCELLED = 8  # the error code CANCEL of RFC 9113

if installed := find_spec("h2") is not None:
    # httpcore2 has imported it already: this costs nothing.
    from h2.events import ConnectionTerminated, DataReceived, StreamReset
    from h2.exceptions import H2Error

    FAILURES: tuple[type[Exception], ...] = (H2Error, httpcore2.ConnectionNotAvailable)
else:
    FAILURES = ()


def describe_error(error: Exception) -> str:
    """What went wrong, in words; "" for what has nothing to do with HTTP/2."""
    if not installed:
        return ""
    event = error.args[0] if error.args else None
    if isinstance(event, StreamReset | ConnectionTerminated):
        deed = "broke the answer off" if isinstance(event, StreamReset) else "ended the connection"
        return f"the site {deed} (HTTP/2 {getattr(event.error_code, 'name', event.error_code)})"
    if isinstance(error, FAILURES) or isinstance(event, H2Error):
        return f"the site does not keep to HTTP/2 ({type(event if isinstance(event, H2Error) else error).__name__})"
    return ""


async def cancel_response(response: httpcore2.Response, timeout_s: float = CANCEL_TIMEOUT_S) -> None:
    """Cancel what is still to come of an answer, and close it."""
    try:
        async with asyncio.timeout(timeout_s):
            stream: Any = response.stream
            body = stream._stream
            connection, number = body._connection, body._stream_id
            unread = [event for event in connection._events.get(number, ()) if isinstance(event, DataReceived)]
            state = connection._h2_state
            try:
                state.acknowledge_received_data(sum(event.flow_controlled_length or 0 for event in unread), number)
                state.reset_stream(number, CANCELLED)
            except FAILURES:
                pass  # it has ended, or the connection has
            else:
                await connection._write_outgoing_data(body._request)
    except (AttributeError, TimeoutError, httpcore2.NetworkError, httpcore2.ProtocolError):
        await response.extensions["network_stream"].aclose()
    await response.aclose()
