"""Failures of a model's endpoint, told as LLMErrors: what happened, why, and what fixes it.

Keys never get into a message: whatever a server or a library says is redacted before it is cut to length.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx2
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import ContextOverflowError, LLMError
from nexi.net.causes import PROXY_CODE, describe_proxy_fault, plain_cause, status_of_refusal
from nexi.notices import Notice, map_notice

MAX_CAUSE_CHARS = 300
MAX_SCAN_CHARS = 20_000

_KEY_FIX = "set the right key: nexi config setup"
_MODEL_FIX = "choose another model: -m MODEL"
_ADDRESS_FIX = "correct base_url; it usually ends in /v1"
_WAIT_FIX = "wait or choose another model: -m MODEL"
_SERVER_FIX = "start the model server, or correct its address: nexi config setup"


@dataclass(frozen=True)
class EndpointLabel:
    """How an endpoint is named in messages, and the keys that must not appear in them."""

    where: str
    model: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def clean(self, text: str) -> str:
        """One line of at most MAX_CAUSE_CHARS characters without keys or control characters."""
        return map_notice(text, self._clean_line)

    def _clean_line(self, text: str) -> str:
        text = text[:MAX_SCAN_CHARS]
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "[key]") if len(secret) >= 4 else text
        text = re.sub(_KEYLIKE, "[key]", text)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= MAX_CAUSE_CHARS else text[: MAX_CAUSE_CHARS - 1] + "…"


class _Kind(Struct, frozen=True):
    """`notice` is the code of what happened, beside that of the error."""

    code: str
    notice: str
    what: str
    fix: str
    cause: str = ""  # of each failure that has no words of its own
    retryable: bool = False


AUTH = _Kind("auth", "model.key", "{where} refused the API key", _KEY_FIX)
_PAYMENT = _Kind("payment", "model.payment", "{where} requires payment", f"top up the account, or {_MODEL_FIX}")
_RATE = _Kind("rate_limit", "model.rate", "{where} is limiting requests", _WAIT_FIX, retryable=True)
_MISSING = _Kind("not_found", "model.missing", "{where} has nothing at this address", _ADDRESS_FIX)
_UNKNOWN_FIX = "choose another: `nexi models` lists them; with Ollama, `ollama pull {model}` downloads it"
_UNKNOWN_MODEL = _Kind("not_found", "model.unknown", "{where} does not have the model {model}", _UNKNOWN_FIX)
_ACCESS_FIX = "check that this key may use the model, or choose another: -m MODEL"
_FORBIDDEN = _Kind("auth", "model.access", "{where} refused access", _ACCESS_FIX)
_REQUEST_FIX = f"{_MODEL_FIX}, or check the config: nexi doctor"
_BAD_REQUEST = _Kind("bad_request", "model.bad_request", "{where} refused the request", _REQUEST_FIX)
_SERVER = _Kind("server", "model.server", "{where} failed", _WAIT_FIX, retryable=True)
_TIME_FIX = "raise the time target, or choose a faster model: -m MODEL"
_TIMEOUT = _Kind("timeout", "model.timeout", "{where} did not answer in time", _TIME_FIX, retryable=True)
PAST_DEADLINE = replace(_TIMEOUT, cause="the time for this request is used up", retryable=False)
_HTML = _Kind("html_reply", "model.html", "{where} answered with a web page", _ADDRESS_FIX)
_MOVED_FIX = "set base_url to the new address: nexi --edit-config"
_MOVED = _Kind("not_found", "model.moved", "{where} points somewhere else", _MOVED_FIX)
_CONNECT = _Kind("connect", "model.unreachable", "{where} cannot be reached", _SERVER_FIX, retryable=True)
_DNS = _Kind("dns", "model.dns", "the name of {where} cannot be resolved", "check the network connection and base_url")
TLS = _Kind("tls", "model.tls", "no secure connection to {where}", "check base_url and the certificates of this machine")
STREAM_CLOSED = _Kind(
    "stream_closed",
    "model.closed",
    "{where} closed the connection in the middle of a reply",
    _WAIT_FIX,
    "the reply has no end",
    True,
)
_NO_TEXT = Notice("model.no_text", "no text and no tool call")
EMPTY = _Kind("empty_reply", "model.empty", "{where} sent an empty reply", _MODEL_FIX, _NO_TEXT, retryable=True)
_VECTORS_FIX = "name an embedding model: NEXI_EMBEDDING_MODEL"
BAD_EMBEDDINGS = _Kind("bad_reply", "model.no_vectors", "{where} answered with something that is no vectors", _VECTORS_FIX)
_BAD_REPLY = _Kind(
    "bad_reply", "model.bad_reply", "{where} sent a reply that is no chat completion", _ADDRESS_FIX, retryable=True
)
_URL_FIX = "set base_url to http://... or https://...: nexi --edit-config"
_ADDRESS = _Kind("connect", "model.address", "base_url is not an address that can be called", _URL_FIX)
PROXY = _Kind("connect", "model.bad_proxy", "the proxy for {where} cannot be used", "correct HTTPS_PROXY, or unset it")
THOUGHT_ONLY = _Kind(
    "empty_reply",
    "model.thoughts",
    "{model} used all its output for thinking",
    f"raise max_output_tokens, or {_MODEL_FIX}",
    "the reply was cut at the output limit before any text",
)

_BY_STATUS: Mapping[int, _Kind] = (
    {401: AUTH, 402: _PAYMENT, 403: _FORBIDDEN, 404: _MISSING, 429: _RATE}
    | dict.fromkeys((408, 504), _TIMEOUT)
    | dict.fromkeys((409, 425), _SERVER)
)


def from_response(
    endpoint: EndpointLabel, status: int, body: bytes, *, retry_after: float | None = None, location: str = ""
) -> LLMError:
    """A reply whose status says that it failed."""
    text = body.decode("utf-8", "replace")[:MAX_SCAN_CHARS]
    if 300 <= status < 400:
        return build_error(endpoint, _MOVED, f"redirect to {location}" if location else f"HTTP {status}", status=status)
    return _from_words(endpoint, status, _server_words(text), text, retry_after)


def from_error_event(endpoint: EndpointLabel, error: object) -> LLMError:
    """An error that came inside a reply whose status was fine."""
    raw = ""
    with suppress(TypeError, ValueError, RecursionError):
        raw = error if isinstance(error, str) else json.dumps(error)[:MAX_SCAN_CHARS]
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 0
    return _from_words(endpoint, status, _words_of(error) or raw, raw, None)


def from_transport(endpoint: EndpointLabel, error: Exception, proxy: str = "") -> LLMError:
    """A connection that failed below HTTP; through a proxy, only what came after it can be the fault of the endpoint."""
    causes: list[BaseException] = [error]
    while len(causes) < 10 and (cause := causes[-1].__cause__ or causes[-1].__context__):
        causes.append(cause)
    is_secure_fault = any(isinstance(cause, ssl.SSLError) for cause in causes)
    if proxy and not is_secure_fault and isinstance(error, httpx2.ProxyError | httpx2.ConnectError):
        is_refusal = isinstance(error, httpx2.ProxyError)
        return from_proxy(endpoint, proxy, status_of_refusal(str(error)) if is_refusal else 0)
    words = next((str(cause) for cause in causes if str(cause)), type(error).__name__)
    name_error = next((cause for cause in causes if isinstance(cause, socket.gaierror)), None)
    if name_error is not None:
        fault = build_error(endpoint, _DNS, Notice("network.down", "the network is down, or the name is misspelt"))
        fault.retryable = name_error.errno == socket.EAI_AGAIN
        return fault
    kinds = (
        (httpx2.DecodingError, _BAD_REPLY),
        (httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError, _ADDRESS),
        (httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError, _CONNECT),
        (httpx2.TimeoutException, _TIMEOUT),
    )
    kind = TLS if is_secure_fault else next((kind for errors, kind in kinds if isinstance(error, errors)), STREAM_CLOSED)
    return build_error(endpoint, kind, plain_cause(words))


def from_proxy(endpoint: EndpointLabel, proxy: str, status: int) -> LLMError:
    """A proxy that refused, or could not be reached."""
    fault = describe_proxy_fault(proxy, endpoint.where.partition("/")[0], status)
    return LLMError(fault.message, cause=fault.cause, fix=fault.fix, code=PROXY_CODE, status=status)


def timed_out(endpoint: EndpointLabel, seconds: float) -> LLMError:
    return build_error(endpoint, _TIMEOUT, Notice("model.silent", "nothing came for {n} s", n=f"{seconds:g}"))


def web_page(endpoint: EndpointLabel, body: bytes) -> LLMError:
    return build_error(endpoint, _HTML, _server_words(body.decode("utf-8", "replace")[:MAX_SCAN_CHARS]))


def bad_reply(endpoint: EndpointLabel, body: bytes) -> LLMError:
    cause = f"it begins: {body[:200].decode('utf-8', 'replace')}" if body.strip() else "no reply in it"
    return build_error(endpoint, _BAD_REPLY, cause)


def _from_words(endpoint: EndpointLabel, status: int, words: str, raw: str, retry_after: float | None) -> LLMError:
    if status == 413 or (
        status not in (401, 402, 403, 429) and re.search("|".join(_read_patterns()["overflow"]), raw, re.IGNORECASE)
    ):
        fault = ContextOverflowError(
            Notice("model.overflow", "the request is larger than the context window of {model}", model=endpoint.model),
            cause=endpoint.clean(words),
            fix="lower max_context in the config: nexi --edit-config, or choose a model with a larger window: -m MODEL",
            status=status,
        )
        matches = (re.search(pattern, raw, re.IGNORECASE) for pattern in _read_patterns()["windows"])
        sizes = (int(re.sub(r"\D", "", match[1])) for match in matches if match)
        fault.window = next((size for size in sizes if size >= 128), None)  # the window that the message names, if it does
        return fault
    kind = _BY_STATUS.get(status) or (_SERVER if status >= 500 or not status else _BAD_REQUEST)
    if status == 429 and re.search(_NO_CREDIT, raw):
        kind = _PAYMENT
    elif status == 404 and re.search(r"model", words, re.IGNORECASE):
        kind = _UNKNOWN_MODEL
    return build_error(endpoint, kind, words or f"HTTP {status}", status=status, retry_after=retry_after)


def build_error(
    endpoint: EndpointLabel, kind: _Kind, cause: str = "", *, status: int = 0, retry_after: float | None = None
) -> LLMError:
    values = {"where": endpoint.where, "model": endpoint.model}
    what = Notice(kind.notice, kind.what, **{name: value for name, value in values.items() if f"{{{name}}}" in kind.what})
    cause, fix = endpoint.clean(cause or kind.cause), kind.fix.replace("{model}", endpoint.model)
    return LLMError(
        what, cause=cause, fix=fix, code=kind.code, status=status, retryable=kind.retryable, retry_after=retry_after
    )


# --- the server's own words


def _server_words(text: str) -> str:
    try:
        return _words_of(json.loads(text)) or text
    except (ValueError, RecursionError):
        title = re.search(r"<title[^>]{0,200}>([^<]{1,200})", text, re.IGNORECASE)
        return title.group(1) if title else re.sub(r"<[^<>]{0,500}>", " ", text)


def _words_of(value: object) -> str:
    """The message in an error body, wherever this kind of server keeps it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, (_words_of(item) for item in value[:5])))
    if not isinstance(value, Mapping):
        return ""
    where = ".".join(str(step) for step in value["loc"]) if isinstance(value.get("loc"), list) else ""
    words = next(filter(None, (_words_of(value.get(key)) for key in ("error", "message", "detail", "msg", "errors"))), "")
    metadata = value.get("metadata")
    deeper = _words_of(metadata.get("raw")) if isinstance(metadata, Mapping) else ""
    return ": ".join(filter(None, (where, words, deeper)))


# Patterns are compiled when a failure needs them: most runs never do.
_KEYLIKE = r"(?i)\bbearer\s+\S+|\b(?:sk|pk|gsk|xai|hf|jina|tvly|key)[-_][\w*.-]{8,}|\bAIza[\w*-]{10,}"
_NO_CREDIT = r"(?i)insufficient_quota|insufficient (?:balance|credits?|funds)|exceeded your current quota|billing"


@cache
def _read_patterns() -> dict[str, list[str]]:
    """How servers say that a request is larger than the window, and how large the window is."""
    return msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, list[str]])
