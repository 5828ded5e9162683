"""The notice that a run has ended, for `webhook_url`: its id and its figures, never its question or its answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from nexi.app.factory import PortFactory
from nexi.errors import FetchError
from nexi.events import Fact, RunFinished, find_end

log = logging.getLogger("nexi.webhook")


async def send_notice(ports: PortFactory, run_id: str, mode: str, facts: Sequence[Fact]) -> None:
    """Tell the address of `webhook_url` once that a run has ended; a failure is logged and costs nothing else."""
    notice = _describe_end(run_id, mode, facts)
    if notice is None:
        return
    from nexi.fetchers.guard import AddressGuard
    from nexi.fetchers.transport import Transport
    from nexi.fetchers.webhook import WebhookSender

    guard = AddressGuard(ports.config.allow_private)
    sender = WebhookSender(guard, Transport(guard, **ports.connections()), ports.clock, ports.config.webhook_secret)
    try:
        await sender.send(ports.config.webhook_url, run_id, json.dumps(notice).encode())
    except FetchError as error:
        log.warning("The webhook of run %s was not delivered: %s", run_id, error)
    finally:
        await sender.aclose()


def _describe_end(run_id: str, mode: str, facts: Sequence[Fact]) -> dict[str, Any] | None:
    """The body of the notice; None for a run that has not ended."""
    end = find_end(facts)
    if end is None:
        return None
    tokens = {"input": end.usage.input_tokens, "output": end.usage.output_tokens}
    figures = {"stop": end.stop.value, "seconds": end.seconds, "tokens": tokens, "cost": end.usage.cost}
    head = {"schema": "nexi-webhook-1", "id": run_id, "mode": mode}
    if isinstance(end, RunFinished):
        return {**head, "event": "run.finished", "pages": end.pages, "answered": end.answered, **figures}
    return {**head, "event": "run.failed", "code": end.code, **figures}
