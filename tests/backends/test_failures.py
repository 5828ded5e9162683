"""Every way a search can fail has a code, a cause and a fix a person can act on."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

import httpx2
import pytest

from nexi.app import QuietEmit
from nexi.backends import sender
from nexi.backends.jina import Jina
from nexi.backends.searxng import Searxng
from nexi.backends.sender import BackendRequest, BackendResponse, HttpBackend, Sender
from nexi.searcher import Searcher
from nexi.testing import FakeClock
from nexi.types import Failure, Query

ROOT = Path(__file__).resolve().parents[2]
SEARXNG, JINA = Searxng("http://127.0.0.1:8080"), Jina("key")


class Answering(Sender):
    """A sender that gives one answer, or fails below HTTP as the real one would."""

    def __init__(self, answer: BackendResponse | Exception) -> None:
        super().__init__(user_agent="test")
        self._answer = answer

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        if isinstance(self._answer, BackendResponse):
            return self._answer
        raise sender._translate_error(service, request, self._answer)


def below(inner: Exception) -> Exception:
    error = httpx2.ConnectError("the connection failed")
    error.__cause__ = inner
    return error


def engines(*reasons: str) -> BackendResponse:
    failed = [[f"engine{n}", reason] for n, reason in enumerate(reasons)]
    return BackendResponse(
        200, {"content-type": "application/json"}, json.dumps({"results": [], "unresponsive_engines": failed}).encode()
    )


async def failures(dialect: Searxng | Jina, answer: BackendResponse | Exception) -> tuple[Failure, ...]:
    backend = HttpBackend(dialect, Answering(answer))
    outcome = await Searcher(lambda: [backend], emit=QuietEmit(), clock=FakeClock()).search(Query("q"))
    assert outcome.hits == ()
    return outcome.failures


TABLE: list[tuple[str, str, Searxng | Jina, BackendResponse | Exception, str]] = [
    ("JSON format off", "json_disabled", SEARXNG, BackendResponse(403, {}, b"<html>"), "search.formats"),
    ("limiter", "limiter", SEARXNG, BackendResponse(429, {}, b"<html>"), "server.limiter"),
    ("captcha", "captcha", SEARXNG, engines("CAPTCHA", "Suspended: CAPTCHA"), "engines"),
    ("all engines suspended", "engines_suspended", SEARXNG, engines("Suspended: too many requests"), "suspension"),
    ("wrong URL, a page", "wrong_url", SEARXNG, BackendResponse(200, {"content-type": "text/html"}, b"<html>"), "SEARXNG_URL"),
    ("wrong URL, not found", "wrong_url", SEARXNG, BackendResponse(404, {}, b""), "SEARXNG_URL"),
    ("fault of the server", "server_error", SEARXNG, BackendResponse(500, {}, b""), "log"),
    ("broken JSON", "bad_json", SEARXNG, BackendResponse(200, {"content-type": "application/json"}, b"{"), "try again"),
    ("query refused", "bad_query", SEARXNG, BackendResponse(400, {}, b'{"error": "bad"}'), "change"),
    ("wrong key", "wrong_key", JINA, BackendResponse(401, {}, b'{"message": "invalid"}'), "JINA_API_KEY"),
    ("quota", "quota", JINA, BackendResponse(402, {}, b'{"message": "balance"}'), "top up"),
    ("rate limit", "rate_limit", JINA, BackendResponse(429, {"retry-after": "60"}, b"{}"), "wait"),
    ("timeout", "timeout", SEARXNG, TimeoutError(), "search_timeout"),
    ("timeout of Jina", "timeout", JINA, TimeoutError(), "jina_timeout"),
    ("DNS", "dns", SEARXNG, below(socket.gaierror(-2, "Name or service not known")), "host"),
    ("TLS", "tls", SEARXNG, below(ssl.SSLCertVerificationError("self-signed certificate")), "certificate"),
    ("nothing listens", "refused", SEARXNG, below(ConnectionRefusedError()), "start"),
    ("another fault of the network", "network", SEARXNG, httpx2.ReadError("reset"), "network"),
    ("empty on purpose", "empty", SEARXNG, BackendResponse(200, {}, b'{"results": []}'), "other words"),
]


@pytest.mark.parametrize(("code", "dialect", "answer", "fix"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
async def test_a_failure_names_its_code_its_cause_and_its_fix(
    code: str, dialect: Searxng | Jina, answer: BackendResponse | Exception, fix: str
) -> None:
    (failure,) = await failures(dialect, answer)
    assert (failure.provider, failure.code) == (dialect.name, code)
    assert failure.message.partition(":")[2].strip() or code == "empty"
    assert fix in failure.fix


async def test_no_backend_at_all_is_a_failure_too() -> None:
    outcome = await Searcher(list, emit=QuietEmit(), clock=FakeClock()).search(Query("q"))
    assert [(f.code, bool(f.message), bool(f.fix)) for f in outcome.failures] == [("no_backend", True, True)]


def test_the_handbook_lists_every_code_of_the_table() -> None:
    text = (ROOT / "docs" / "search-and-pages.md").read_text(encoding="utf-8")
    codes = {row[1] for row in TABLE} | {"suspended", "filter_ignored", "empty_or_blocked", "no_backend", "not_installed"}
    assert sorted(code for code in codes if f"| `{code}` |" not in text) == []
