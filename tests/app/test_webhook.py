"""The end of a run is told once, signed, to an address that the guard allows, and again while nobody takes it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from nexi.app import Nexi, RunRequest
from nexi.config import Config
from nexi.errors import ConfigError, LLMError, NexiError
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM, answering, reading, searching
from tests.scenarios.world import MOON, PAGES, QUESTION

Make = Callable[..., Config]
SECRET = "a-secret-of-this-test-alone"
ANSWER = "It has no air [1]."


class Receiver:
    """Takes notices, after it has refused some with the statuses it is given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.statuses: list[int] = []
        self.taken: list[tuple[dict[str, str], bytes]] = []

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.taken]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.taken.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(made.statuses.pop(0) if made.statuses else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


async def ask(config: Config, *steps: Any, scope: Any = "both", clock: FakeClock | None = None) -> str:
    llm, web = ScriptedLLM(*(steps or (searching("moon"), reading(MOON), answering(ANSWER)))), FakeWeb(PAGES)
    llms = dict.fromkeys(("answer", "extract", "judge"), llm)
    async with Nexi(config, clock=clock or FakeClock(), llms=llms, backends=[web], fetchers=[web]) as nexi:
        async with nexi.run(RunRequest(QUESTION, scope=scope)) as run:
            async for _ in run:
                pass
        with contextlib.suppress(NexiError):
            await nexi.replay(run.id)  # a replay tells nobody
        return run.id


def allowing(make_config: Make, receiver: Receiver, **values: Any) -> Config:
    host = receiver.url.removeprefix("http://").partition("/")[0]
    return make_config(webhook_url=receiver.url, webhook_secret=SECRET, allow_private=host, **values)


async def test_the_end_of_a_run_is_told_once_without_its_question_and_answer(make_config: Make, receiver: Receiver) -> None:
    run_id = await ask(allowing(make_config, receiver))
    assert receiver.notices == [
        {
            "schema": "nexi-webhook-1",
            "id": run_id,
            "mode": "search",
            "event": "run.finished",
            "pages": 1,
            "answered": "likely",
            "stop": "final_answer",
            "seconds": 0.0,
            "tokens": {"input": 300, "output": 30},
            "cost": 0.0,
        }
    ]


async def test_a_run_that_failed_is_told_with_its_code(make_config: Make, receiver: Receiver) -> None:
    await ask(allowing(make_config, receiver), LLMError("the key was refused", code="auth"))
    (notice,) = receiver.notices
    assert (notice["event"], notice["code"], notice["stop"]) == ("run.failed", "auth", "api_error")


@pytest.mark.parametrize(
    ("secret", "key"), [(SECRET, SECRET.encode()), ("whsec_" + base64.b64encode(b"k" * 24).decode(), b"k" * 24)]
)
async def test_a_notice_is_signed_as_standard_webhooks_are(
    make_config: Make, receiver: Receiver, secret: str, key: bytes
) -> None:
    run_id = await ask(allowing(make_config, receiver).override(webhook_secret=secret))
    ((headers, body),) = receiver.taken
    signed = f"{run_id}.{headers['webhook-timestamp']}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert (headers["webhook-id"], headers["webhook-signature"]) == (run_id, f"v1,{signature}")


@pytest.mark.parametrize(("statuses", "sent"), [([500, 503], 3), ([429], 2), ([500] * 9, 4), ([404, 404], 1), ([302], 1)])
async def test_a_notice_is_sent_again_while_its_receiver_fails(
    make_config: Make, receiver: Receiver, caplog: pytest.LogCaptureFixture, statuses: list[int], sent: int
) -> None:
    receiver.statuses = statuses
    clock = FakeClock()
    with caplog.at_level(logging.WARNING, "nexi.webhook"):
        await ask(allowing(make_config, receiver), clock=clock)
    assert (len(receiver.taken), len(clock.slept)) == (sent, sent - 1)
    assert len({headers["webhook-id"] for headers, _ in receiver.taken}) == 1
    assert bool(caplog.records) is (sent in (1, 4))


async def test_a_private_address_that_is_not_allowed_is_told_nothing(
    make_config: Make, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    await ask(make_config(webhook_url=receiver.url, webhook_secret=SECRET))
    assert (receiver.taken, "was not delivered" in caplog.text) == ([], True)


async def test_a_local_question_tells_nobody_on_another_machine(make_config: Make, caplog: pytest.LogCaptureFixture) -> None:
    await ask(make_config(webhook_url="https://hooks.example/nexi", webhook_secret=SECRET), scope="local")
    assert caplog.text == ""


@pytest.mark.parametrize("secret", ["", "short"])
async def test_an_address_without_a_secret_is_refused_before_anything_is_spent(
    make_config: Make, receiver: Receiver, secret: str
) -> None:
    async with Nexi(allowing(make_config, receiver).override(webhook_secret=secret)) as nexi:
        with pytest.raises(ConfigError, match="without webhook_secret"):
            nexi.ports.check()
