"""Guard: what every request must pass before a door sees it, and what every response passes on its way out.

Host and Origin (another site's page may not use a server of this machine), the token, the rate of one client, the size and
pace of the body, the time until a response begins. Above is the web server, below are the routes. Refusals have the shape of
the contract whose path was asked for. Questions, keys and bodies are not known here.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import math
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nexi.errors import NexiError
from nexi.net.addresses import is_address, is_loopback_host
from nexi.net.limits import RateLimiter
from nexi.ports import Clock
from nexi.types import Principal
from nexi.web.operations import Metrics
from nexi.web.payload import Problem, Refused, Shape, own_shape, problem_of, response_of

log = logging.getLogger("nexi.web")
FILES_PATH = "/page/files"
PANELS = ("/history", "/knowledge", "/check", "/table", "/setup")
PAGES = ("/", "/runs/*", "/spaces/*", *PANELS)  # what a browser opens; the data in them is asked for apart
STATIC_PATH = "/static/"
MAX_FILE_BYTES = 16_000_000
MAX_HEAD_BYTES = 32_768
PRINCIPAL = "principal"  # in the state of a scope: who asks
CROWDED = "crowded"  # in the state of a scope: its client, or the server, has too many connections
MAX_CLIENTS = 10_000  # whose rates are remembered
HEALTH_PATH = "/healthz"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")


class GuardRules(Struct, frozen=True):
    """What the guard holds requests to. `bound` is the address listened on; `hosts` are further names it is known by."""

    bound: str = "127.0.0.1"
    token: str = ""
    hosts: tuple[str, ...] = ()
    public: tuple[str, ...] = (HEALTH_PATH, "/readyz", *PAGES, "/static/*", "/shared/*")
    max_body: int = 2_000_000
    max_file: int = MAX_FILE_BYTES  # at FILES_PATH
    body_s: float = 30.0
    respond_s: float = 900.0
    per_minute: float = 600.0
    burst: float = 120.0
    most_requests: int = 512
    most_of_one: int = 0  # open at once for each person; 0 where there is only one

    def __repr__(self) -> str:
        return f"GuardRules(bound={self.bound!r}, hosts={self.hosts!r})"


class _Draining(Protocol):
    """Who knows whether the server is shutting down."""

    draining: bool


Identify = Callable[[Headers, Scope], Awaitable[Principal]]  # who asks; raises Refused


class RequestGuard:
    """The outermost layer of the app."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        rules: GuardRules,
        metrics: Metrics,
        clock: Clock,
        shapes: Mapping[str, Shape],
        host: _Draining,
        identify: Identify | None = None,
    ) -> None:
        self._identify = identify or self._check_token
        self._app, self._rules, self._metrics, self._clock, self._host = app, rules, metrics, clock, host
        self._shapes = sorted(shapes.items(), key=lambda item: -len(item[0]))
        self._rates = RateLimiter(clock, burst=rules.burst, rate=rules.per_minute / 60, max_keys=MAX_CLIENTS, evicts=True)
        self._open = 0
        self._open_of: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        shape = next((shape for prefix, shape in self._shapes if scope["path"].startswith(prefix)), own_shape)
        exchange = _Exchange(scope, receive, send, self._clock, shape)
        self._open += 1
        try:
            await self._serve_request(exchange)
        finally:
            self._open -= 1
            if exchange.person:
                self._open_of[exchange.person] -= 1
                if not self._open_of[exchange.person]:  # so that it does not grow with all who ever came
                    del self._open_of[exchange.person]
            seconds = (exchange.began or self._clock.monotonic()) - exchange.started
            route = str(getattr(scope.get("route"), "path", "")) or "unknown"  # its pattern: no id or question becomes a label
            self._metrics.request(route, exchange.method, exchange.status, seconds)
            facts = {"request": exchange.id, "method": exchange.method, "route": route, "status": exchange.status}
            log.info("request", extra={**facts, "ms": round(seconds * 1000, 1), "client": exchange.client})

    async def _serve_request(self, exchange: _Exchange) -> None:
        """The edge of this door: whatever goes wrong inside ends as a response, and never as a traceback in one."""
        most = self._rules.max_file if exchange.scope["path"] == FILES_PATH else self._rules.max_body
        try:
            self._admit_request(exchange)
            await self._set_principal(exchange)
            self._admit_body(exchange, most)
            body = [await self._read_body(exchange.receive, most)]
        except Refused as refusal:
            self._metrics.count("nexi_refusals_total", reason=refusal.problem.code)
            exchange.closes = True  # what is left of its body is not read
            return await exchange.fail(refusal.problem)

        async def replay() -> Message:
            """The body once, and then whatever comes after it."""
            return {"type": "http.request", "body": body.pop(), "more_body": False} if body else await exchange.receive()

        try:
            async with asyncio.timeout(self._rules.respond_s) as limit:
                exchange.on_start = lambda: limit.reschedule(None)  # what has begun may last
                await self._app(exchange.scope, replay, exchange.send)
        except Refused as refusal:
            await exchange.fail(refusal.problem)
        except NexiError as error:
            await exchange.fail(problem_of(error))
        except TimeoutError:
            await exchange.fail(Problem(504, "timeout", "the answer took too long", "ask for a run instead: POST /v1/runs"))
        except Exception:
            log.exception("a request failed", extra={"path": exchange.scope["path"], "request": exchange.id})
            await exchange.fail(Problem(500, "internal", "an internal error ended the request", f"its log has {exchange.id}"))

    def _admit_request(self, exchange: _Exchange) -> None:
        headers, scope = exchange.headers, exchange.scope
        # a proxy before this server could read another request than it does
        if "content-length" in headers and "transfer-encoding" in headers:
            message, fix = "the request has both Content-Length and Transfer-Encoding", "send one of them"
            raise Refused(Problem(400, "bad_framing", message, fix))
        path, query = scope.get("raw_path") or b"", scope.get("query_string") or b""
        if len(path) + len(query) + sum(len(k) + len(v) + 4 for k, v in headers.raw) > MAX_HEAD_BYTES:
            message = f"the head of the request is larger than {MAX_HEAD_BYTES:,} bytes"
            raise Refused(Problem(431, "large_head", message, "send less"))
        self._check_host(headers)
        self._check_origin(headers, scope)
        if scope["path"].startswith(STATIC_PATH) or scope["path"] == HEALTH_PATH:
            return  # the page is some thirty small files, and a server that restarts for a busy client is no help to anybody
        if wait := self._rates.try_take(exchange.client):
            raise Refused(Problem(429, "rate_limited", "too many requests from this client", "ask less often", math.ceil(wait)))

    def _admit_body(self, exchange: _Exchange, most: int) -> None:
        headers, scope = exchange.headers, exchange.scope
        if not matches_any(scope["path"], self._rules.public):
            if self._host.draining:
                raise Refused(Problem(503, "draining", "the server is shutting down", "ask again soon", 5))
            is_crowded = scope.get("state", {}).get(CROWDED)
            if is_crowded or self._open > self._rules.most_requests:
                message = f"too many {'connections' if is_crowded else 'requests'} are open"
                raise Refused(Problem(503, "overloaded", message, "ask again soon", 1))
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(Problem(415, "packed_body", "packed bodies are not unpacked here", "send the body as it is"))
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)

    def _check_host(self, headers: Headers) -> None:
        """A page of another site can make its own name mean this machine, but not an address, nor a name without a dot."""
        hosts, bound = headers.getlist("host"), self._rules.bound
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        host = match[1].strip("[]").lower().rstrip(".") if match else ""
        is_known = host in self._rules.hosts or host == bound.strip("[]").lower() or is_loopback_host(host)
        is_harmless = not is_loopback_host(bound) and (is_address(host) or "." not in host)
        if match is None or not (is_known or is_harmless):
            fix = "call it by its address, or name the host in serve_hosts"
            raise Refused(Problem(421, "host_refused", "the Host header names no host of this server", fix))

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].lower() != headers["host"].lower()
        site = headers.get("sec-fetch-site", "none")
        page = scope["path"] == "/" or scope["path"].startswith(("/runs/", "/login"))  # a provider sends people back
        opened = page and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if foreign or (site not in ("none", "same-origin") and not opened):
            fix = "call it from a program, or from its own page"
            raise Refused(Problem(403, "origin_refused", "pages of other origins may not use this server", fix))

    async def _set_principal(self, exchange: _Exchange) -> None:
        """Find out who asks; on public paths anybody may. Raises Refused."""
        scope = exchange.scope
        principal = None if matches_any(scope["path"], self._rules.public) else await self._identify(exchange.headers, scope)
        needed_scope = "read" if scope["method"] in ("GET", "HEAD", "OPTIONS") else "ask"
        if principal and needed_scope not in principal.scopes:
            raise Refused(Problem(403, "scope_missing", "this token may only read", "use a token that may ask"))
        scope.setdefault("state", {})[PRINCIPAL] = principal
        if principal and self._rules.most_of_one:
            exchange.person = principal.person
            self._open_of[principal.person] += 1
            if self._open_of[principal.person] > self._rules.most_of_one:
                message = f"you have {self._rules.most_of_one} requests and streams open"
                raise Refused(Problem(429, "too_many_open", message, "close some, or wait for their end", 1))

    async def _check_token(self, headers: Headers, scope: Scope) -> Principal:
        """The one person who has the token, where there is one. Raises Refused."""
        token = self._rules.token.encode()
        if token and not hmac.compare_digest(given_token(headers).encode("utf-8", "replace"), token):  # takes as long for any
            raise unauthorized()
        return Principal()

    async def _read_body(self, receive: Receive, most: int) -> bytes:
        """The whole body, if it comes in time and is not too large."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._rules.body_s):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise _too_large(most)
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise Refused(Problem(408, "slow_body", "the body did not come in time", "send it faster")) from None
        return bytes(body)


class _Exchange:
    """One request and what became of it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, clock: Clock, shape: Shape) -> None:
        self.scope, self.receive, self._send, self._clock, self._shape = scope, receive, send, clock, shape
        self.headers = Headers(scope=scope)
        self.client = (scope.get("client") or ("local", 0))[0]
        self.method = scope["method"] if scope["method"] in METHODS else "other"
        self.id = secrets.token_hex(6)
        self.status = 499  # the client left before anything was said
        self.closes = False
        self.person = ""  # whose share of the open requests it takes
        self.on_start: Callable[[], None] = lambda: None
        self.started = clock.monotonic()
        self.began = 0.0  # when its response did
        self._ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.began, self.status = self._clock.monotonic(), message["status"]
            self.on_start()
            message["headers"] = [*message.get("headers", ()), *HEADERS, (b"x-request-id", self.id.encode())]
            if self.closes:
                message["headers"].append((b"connection", b"close"))
        self._ended = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def fail(self, problem: Problem) -> None:
        """Answer with the problem; where a response has begun, end it there."""
        self.on_start = lambda: None
        if not self.began:
            await response_of(problem, self._shape)(self.scope, self.receive, self.send)
        elif not self._ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    return any(path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1])) for pattern in patterns)


def principal_of(request: Request) -> Principal:
    """Who asks, on a path where somebody must be known."""
    principal: Principal = request.scope["state"][PRINCIPAL]
    return principal


def address_of(request: Request) -> str:
    """Where a request comes from, for the audit log; "" where that is unknown."""
    return request.client.host if request.client else ""


def given_token(headers: Headers) -> str:
    """The token a client sent: as a bearer, as X-API-Key, or as the password of a basic login."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (ValueError, UnicodeDecodeError):
            return ""
    return headers.get("x-api-key", "")


def unauthorized() -> Refused:
    return Refused(Problem(401, "unauthorized", "the token is missing or wrong", "send it as `Authorization: Bearer TOKEN`"))


def _too_large(most: int) -> Refused:
    return Refused(Problem(413, "too_large", f"the body is larger than {most:,} bytes", "send less"))
