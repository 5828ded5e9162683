"""One POST to an address of the operator's, behind the same guard as pages, signed by the rules of Standard Webhooks."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from contextlib import suppress

import nexi
from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.transport import Transport
from nexi.net.retry import RetryPolicy, call_with_retries
from nexi.ports import Clock

TIMEOUT_S = 5.0
RETRIES = RetryPolicy(max_retries=3, base_s=1.0, patience_s=10.0)


class WebhookSender:
    """Sends signed notices, each again while the receiver does not take it."""

    def __init__(self, guard: AddressGuard, transport: Transport, clock: Clock, secret: str) -> None:
        self._guard, self._transport, self._clock, self._secret = guard, transport, clock, secret

    async def send(self, url: str, notice_id: str, body: bytes) -> None:
        """Deliver a notice. Raises FetchError when its receiver does not take it in the end."""
        target = self._guard.check_url(url)
        key = self._secret.encode()
        if self._secret.startswith("whsec_"):  # base64 behind it, as the standard writes it, else the text itself
            with suppress(binascii.Error):
                key = base64.b64decode(self._secret.removeprefix("whsec_"), validate=True)

        async def post() -> None:
            timestamp = str(int(self._clock.now().timestamp()))
            signature = hmac.new(key, f"{notice_id}.{timestamp}.".encode() + body, hashlib.sha256)
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "User-Agent": f"nexi/{nexi.__version__}",
                "webhook-id": notice_id,
                "webhook-timestamp": timestamp,
                "webhook-signature": f"v1,{base64.b64encode(signature.digest()).decode()}",
            }
            try:
                async with asyncio.timeout(TIMEOUT_S), self._transport.ask(target, headers, body) as answer:
                    status = answer.status
            except TimeoutError as error:
                raise FetchError(f"{target.host} did not answer", reason="timeout", retryable=True) from error
            if not 200 <= status < 300:
                raise FetchError(f"{target.host} answered {status}", status=status, retryable=status == 429)

        await call_with_retries(post, RETRIES, self._clock)

    async def aclose(self) -> None:
        await self._transport.aclose()
