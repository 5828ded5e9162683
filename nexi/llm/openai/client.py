"""Any OpenAI-compatible endpoint as a model.

`dialect` is how to ask, and reads calls written as text, `stream` is how to read, `faults` what went wrong; this file owns the
connections and the order of these steps. It never believes a reply to be well-formed.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Unpack

import httpx2
from msgspec.structs import replace

from nexi.errors import ConfigError, LLMError
from nexi.llm.openai import faults
from nexi.llm.openai._dialect import Ask, Dialect, adapt_dialect, calls_from_text, find_problems, request_body
from nexi.llm.openai._stream import BodyReader, CallIds, Hold, Listener, ReplyBuffer
from nexi.llm.openai.faults import EndpointLabel
from nexi.llm.openai.prices import Price, price_of
from nexi.net.causes import PROXY_LOGIN_STATUS
from nexi.net.retry import RetryPolicy, retry_after
from nexi.net.trust import MACHINE, Trust, trust_nobody
from nexi.ports import AskOptions, Clock
from nexi.structured import json_reader, schema_check
from nexi.types import Finish, Message, Reply, ReplyDefect, ToolCall, ToolSpec, Usage

CONNECT_S = 10.0
GRACE_S = 2.0  # for usage and the end mark, once the reply itself has finished
DRAIN_S = 0.05  # for the end of the body, so that the connection can be used again
MAX_ERROR_BYTES = 65_536
MAX_MODELS_BYTES = 8_000_000
NEXT_KEY = (401, 402, 403, 429)


@dataclass
class _Turn:
    """One call of `complete`: what was asked, who listens, and what failed attempts cost."""

    ask: Ask
    listener: Listener
    deadline: float | None
    retries: bool = True
    spent: Usage = Usage()
    partial: str = ""
    tried_keys: set[int] = field(default_factory=set)


@dataclass(eq=False, repr=False)  # it has keys
class OpenAICompatible:
    """What it learns of its server (which rung of the tool ladder works, which fields are refused, which key) it keeps."""

    base_url: str
    model: str
    _: KW_ONLY
    api_keys: Sequence[str] = ()
    clock: Clock
    max_retries: int = 3
    prices: Mapping[str, Price] | None = None
    count: Callable[[str], int] | None = None
    idle_timeout_s: float = 60.0
    rng: Callable[[], float] | None = None
    client: httpx2.AsyncClient | None = None
    stream: bool = True
    proxy: str | None = None
    trust: Trust = MACHINE

    def __post_init__(self) -> None:
        # the address in front of /chat/completions or /embeddings, however much of it the user gave
        root, mark, query = self.base_url.strip().partition("?")
        self._root = root.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings").rstrip("/")
        self._query = mark + query
        self.name = self.model
        self._keys = tuple(key.strip() for key in self.api_keys if key.strip())
        self._key = 0
        self._policy = RetryPolicy(self.max_retries)
        self._price = price_of(self.model, self.prices)
        self._count = self.count or (lambda text: len(text.encode("utf-8", "replace")) // 4)
        self._draw = self.rng or random.random
        self._owns_client = self.client is None
        self.dialect = Dialect(stream=self.stream)  # what is known of the server by now
        # no user, no password, no query in the name that messages show
        where = re.sub(r"^[a-z0-9+.-]*://", "", self._root, flags=re.IGNORECASE).rpartition("@")[2][:100]
        self.endpoint = EndpointLabel(where or "the endpoint", self.model, self._keys)

    async def aclose(self) -> None:
        """Close the connections, if they are ours."""
        client, self.client = self.client, None
        if client and self._owns_client:
            await client.aclose()

    async def models(self) -> list[str]:
        """The models that the endpoint lists. Raises LLMError."""
        async with self._send_request("GET", "/models", None) as response, asyncio.timeout(self.idle_timeout_s):
            body = await _read_at_most(response, MAX_MODELS_BYTES)
        if body.lstrip().startswith(b"<"):
            raise faults.web_page(self.endpoint, body)
        entries: object = None
        with suppress(ValueError):
            entries = json_reader.parse_json(body.decode("utf-8", "replace"))
        if isinstance(entries, dict) and {"data", "models"} & entries.keys():
            entries = entries.get("data") or entries.get("models") or []
        elif not isinstance(entries, list):
            raise faults.bad_reply(self.endpoint, body)
        names = (e.get("id") or e.get("name") for e in (entries if isinstance(entries, list) else ()) if isinstance(e, dict))
        return [name for name in names if isinstance(name, str)]

    def cost_of(self, tokens: int) -> float | None:
        """US dollars for tokens that are only read, None where the price is unknown."""
        return self._price.cost(tokens, 0) if self._price else None

    async def post(self, path: str, body: Mapping[str, Any], *, max_bytes: int) -> bytes:
        """The whole answer to a request that is no chat, with other keys and later where that may help. Raises LLMError."""
        turn, attempt = _Turn(Ask((), (), 0), Listener(), None), 0
        while True:
            try:
                async with self._send_request("POST", path, body) as response, asyncio.timeout(self.idle_timeout_s):
                    return await _read_at_most(response, max_bytes)
            except LLMError as fault:
                if not self._switch_key(turn, fault):
                    await self._pause_before_retry(turn, fault, attempt)
                    attempt += 1

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Unpack[AskOptions]
    ) -> Reply:
        """Ask once, as `nexi.ports.LLM` says. Raises LLMError."""
        schema, temperature = options.get("schema"), options.get("temperature")
        ask = Ask(tuple(messages), tuple(tools), options["max_tokens"], temperature, schema)
        listener = Listener(options.get("on_text"), options.get("on_call"), options.get("on_arguments"))
        turn = _Turn(ask, listener, options.get("deadline"), options.get("retries", True))
        try:
            async with asyncio.timeout(self._seconds_left(turn)):
                reply = self._read_reply(ask, await self._ask_with_retries(turn))
        except TimeoutError:
            raise self._add_usage(turn, faults.build_error(self.endpoint, faults.PAST_DEADLINE)) from None
        except LLMError as fault:
            raise self._add_usage(turn, fault) from fault.__cause__
        return replace(reply, usage=turn.spent + reply.usage)

    async def _ask_with_retries(self, turn: _Turn) -> ReplyBuffer:
        """Ask until there is a reply: in another dialect, with another key, or later. Raises the failure that stands."""
        dialect, attempt = self.dialect, 0
        while True:
            body = request_body(turn.ask, self.name, dialect)
            try:
                draft = await self._exchange_once(turn, body)
            except LLMError as fault:
                new_dialect = None if turn.listener.told else adapt_dialect(dialect, body, fault)
                if new_dialect:
                    dialect = new_dialect
                elif turn.listener.told or not self._switch_key(turn, fault):
                    await self._pause_before_retry(turn, fault, attempt)
                    attempt += 1
            else:
                self.dialect = replace(dialect, room=None)
                return draft

    async def _pause_before_retry(self, turn: _Turn, fault: LLMError, attempt: int) -> None:
        """Wait before the next attempt, or raise the failure where there is to be none."""
        fault.retryable = fault.retryable and turn.retries and not turn.listener.told
        wait = self._policy.wait_s(fault, attempt, self._draw(), self._seconds_left(turn))
        if wait is None:
            raise fault
        await self.clock.sleep(wait)

    def _switch_key(self, turn: _Turn, fault: LLMError) -> bool:
        """Turn to a key that this turn has not tried; once all were tried, they may all be tried again later."""
        if fault.status not in NEXT_KEY:
            return False
        turn.tried_keys.add(self._key)
        other_keys = [number for number in range(len(self._keys)) if number not in turn.tried_keys]
        if other_keys:
            self._key = other_keys[0]
        else:
            turn.tried_keys.clear()
        return bool(other_keys)

    async def _exchange_once(self, turn: _Turn, body: Mapping[str, Any]) -> ReplyBuffer:
        ask = turn.ask
        hold: Hold = "calls" if ask.tools else "nothing" if ask.schema is None else "everything"
        call_ids = CallIds(call.id for message in ask.messages for call in message.tool_calls)
        draft = ReplyBuffer(turn.listener, ask.tools, call_ids, hold)
        reader = BodyReader(draft)
        try:
            async with self._send_request("POST", "/chat/completions", body) as response:
                stream = response.aiter_bytes()
                while not reader.is_done and (chunk := await self._next_chunk(stream, reader)) is not None:
                    reader.feed(chunk)
                if reader.closed:
                    await self._next_chunk(stream, reader)
                reader.end()
            self._check_reply(reader)
        except (LLMError, asyncio.CancelledError):
            turn.partial = draft.text or turn.partial
            if draft.events:  # a broken reply is paid for too
                turn.spent += self._read_usage(ask, draft)
            raise
        return draft

    @asynccontextmanager
    async def _send_request(self, method: str, path: str, body: Mapping[str, Any] | None) -> AsyncIterator[httpx2.Response]:
        """The response to one request; leaving the block closes it. Raises LLMError for any that is not a success."""
        try:
            client = self._open_client()
            content = None if body is None else json.dumps(body, ensure_ascii=False, default=dict).encode("utf-8", "replace")
            timeout = httpx2.Timeout(None, connect=CONNECT_S)
            url = f"{self._root}{path}{self._query}"
            request = client.build_request(method, url, content=content, headers=self._request_headers(), timeout=timeout)
            async with asyncio.timeout(self.idle_timeout_s):
                response = await client.send(request, stream=True, follow_redirects=False)
            try:
                if response.is_success:
                    yield response
                    return
                async with asyncio.timeout(self.idle_timeout_s):
                    reply = await _read_at_most(response, MAX_ERROR_BYTES)
                status, location = response.status_code, response.headers.get("location", "")
                wish = retry_after(response.headers, self.clock.now())
                if self.proxy and status == PROXY_LOGIN_STATUS:
                    raise faults.from_proxy(self.endpoint, self.proxy, status)
                raise faults.from_response(self.endpoint, status, reply, retry_after=wish, location=location)
            finally:
                await response.aclose()
        except TimeoutError:
            raise faults.timed_out(self.endpoint, self.idle_timeout_s) from None
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
            raise faults.from_transport(self.endpoint, error, self.proxy or "") from None

    async def _next_chunk(self, stream: AsyncIterator[bytes], reader: BodyReader) -> bytes | None:
        """The next bytes, None at the end. A finished reply is not waited for long, and its broken end is no failure."""
        patience = DRAIN_S if reader.closed else GRACE_S if reader.is_complete else self.idle_timeout_s
        try:
            async with asyncio.timeout(patience):
                return await anext(stream, None)
        except (TimeoutError, httpx2.TransportError):
            if not reader.is_complete:
                raise
            return None

    def _check_reply(self, reader: BodyReader) -> None:
        draft = reader.draft
        if draft.error is not None:
            raise faults.from_error_event(self.endpoint, draft.error)
        if reader.kind == "html":
            raise faults.web_page(self.endpoint, reader.sample)
        if not draft.events and reader.sample.strip():
            raise faults.bad_reply(self.endpoint, reader.sample)
        if reader.kind == "events" and not (reader.is_complete or reader.cut):
            raise faults.build_error(self.endpoint, faults.STREAM_CLOSED)
        if reader.cut:
            draft.finish = "length"
        draft.end()
        if not draft.calls and not draft.text.strip() and draft.finish != "content_filter":
            cut_short = draft.thought and draft.finish == "length"
            raise faults.build_error(self.endpoint, faults.THOUGHT_ONLY if cut_short else faults.EMPTY)

    def _read_reply(self, ask: Ask, draft: ReplyBuffer) -> Reply:
        """The reply, with its defect if it attempts what was asked for and fails."""
        reply = Reply(draft.text, draft.calls, self._read_usage(ask, draft), _finish_reason(draft.finish, draft.calls))
        if ask.schema is not None and not ask.tools:
            return self._read_json(ask.schema, draft, reply)
        if not ask.tools or draft.calls:
            return self._as_text(draft, reply)
        rest, written_calls = calls_from_text(reply.text, ask.tools)
        if not written_calls:
            problems = find_problems(reply.text, ask.tools)
            return _with_defect(reply, draft, problems) if problems else self._as_text(draft, reply)
        calls = tuple(replace(call, id=draft.ids.claim("")) for call in written_calls)
        reply = self._as_text(draft, replace(reply, text=rest))
        for call in calls:
            draft.listener.arguments(call.name, call.arguments)
            draft.listener.call(call)
        return replace(reply, tool_calls=calls, finish=_finish_reason(draft.finish, calls))

    def _read_json(self, schema: Mapping[str, Any], draft: ReplyBuffer, reply: Reply) -> Reply:
        try:
            value = json_reader.parse_lenient(reply.text)
        except ValueError:
            return _with_defect(reply, draft, ["it holds no JSON object"])
        if problems := schema_check.check_schema(value, schema):
            return _with_defect(reply, draft, problems)
        text = reply.text.strip()
        try:
            json_reader.parse_json(text)
        except ValueError:
            text = json.dumps(value, ensure_ascii=False)
        return self._as_text(draft, replace(reply, text=text))

    def _as_text(self, draft: ReplyBuffer, reply: Reply) -> Reply:
        """The reply as it is; what was held back of its text is told now."""
        if reply.text.startswith(draft.released_text):
            draft.listener.text(reply.text[len(draft.released_text) :])
        return reply

    def _read_usage(self, ask: Ask, draft: ReplyBuffer) -> Usage:
        """What the server counted, or an estimate; thoughts are paid for too, although they are not in the text."""
        prompt_tokens = _token_count(draft.usage, "prompt_tokens", "input_tokens")
        reply_tokens = _token_count(draft.usage, "completion_tokens", "output_tokens")
        is_estimate = not prompt_tokens or not reply_tokens
        if not prompt_tokens:
            texts = [m.content + "".join(c.name + c.arguments for c in m.tool_calls) for m in ask.messages]
            tools = json.dumps([[t.name, t.description, t.parameters] for t in ask.tools], default=dict) if ask.tools else ""
            prompt_tokens = sum(self._count(text) + 3 for text in texts) + self._count(tools)
        if not reply_tokens:
            text = draft.text + "".join(call.name + call.arguments for call in draft.calls)
            reply_tokens = max(self._count(text), draft.size // 4)
        cost = draft.usage.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost) or cost < 0:
            cost = self._price.cost(prompt_tokens, reply_tokens) if self._price else None
        return Usage(prompt_tokens, reply_tokens, is_estimate, None if cost is None else float(cost))

    def _add_usage(self, turn: _Turn, fault: LLMError) -> LLMError:
        fault.partial = turn.partial
        fault.usage = turn.spent
        return fault

    def _seconds_left(self, turn: _Turn) -> float | None:
        """Seconds until the deadline. Raises LLMError when there are none."""
        if turn.deadline is None:
            return None
        seconds = turn.deadline - self.clock.monotonic()
        if seconds <= 0:
            raise self._add_usage(turn, faults.build_error(self.endpoint, faults.PAST_DEADLINE))
        return seconds

    def _open_client(self) -> httpx2.AsyncClient:
        if self.client is None:
            # certificates are loaded only where TLS is spoken
            speaks_tls = not self._root.lower().startswith("http://") or (self.proxy or "").lower().startswith("https")
            try:
                certificates = (self.trust.context() or True) if speaks_tls else trust_nobody()
                self.client = httpx2.AsyncClient(verify=certificates, trust_env=False, proxy=self.proxy or None)
            except ConfigError as error:
                kind = replace(faults.TLS, fix=error.fix)
                raise faults.build_error(self.endpoint, kind, f"{error}: {error.cause}") from None
            except (ValueError, ImportError) as error:
                raise faults.build_error(self.endpoint, faults.PROXY, str(error)) from None
        return self.client

    def _request_headers(self) -> dict[str, str]:
        headers = {
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "nexi",
        }
        if self._keys:
            key = self._keys[self._key]
            if not (key.isascii() and key.isprintable()):
                cause = "the key holds characters that no key has, such as a line break"
                raise faults.build_error(self.endpoint, faults.AUTH, cause)
            headers["authorization"] = f"Bearer {key}"
        return headers


async def _read_at_most(response: httpx2.Response, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _finish_reason(finish: Finish | Literal[""], calls: Sequence[ToolCall]) -> Finish:
    """Calls end a reply as calls, and only calls do; a cut stays a cut."""
    if calls:
        return "length" if finish == "length" else "tool_calls"
    return "stop" if finish == "" or finish == "tool_calls" else finish


def _with_defect(reply: Reply, draft: ReplyBuffer, problems: Sequence[str]) -> Reply:
    return replace(reply, defect=ReplyDefect(tuple(problems), draft.released_text))


def _token_count(usage: Mapping[str, Any], *names: str) -> int:
    """A count of tokens as the server gave it, 0 where it gave none worth believing."""
    counts = (usage.get(name) for name in names)
    return next((n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n > 0), 0)
