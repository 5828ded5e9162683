"""
title: nexi models
author: nexi
description: nexi's answers and research as models of Open WebUI, streamed, with their sources.
version: 0.1.0
license: MIT
"""
# ruff: noqa: S310 - the scheme of the address is checked before it is opened

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field

Emitter = Callable[[dict], Awaitable[None]] | None
MOST_BYTES = 8_000_000


class NexiError(Exception):
    """What a user should read."""


class Pipe:
    class Valves(BaseModel):
        base_url: str = Field(default="http://127.0.0.1:8000", description="Where `nexi serve` listens.")
        token: str = Field(default="", description="NEXI_TOKEN, where the server has one.")
        name_prefix: str = Field(default="", description="Put in front of the names of the models.")
        timeout_s: int = Field(default=900, description="Seconds to wait for the next words.", ge=1)

    def __init__(self):
        self.type = "manifold"
        self.valves = self.Valves()

    def pipes(self) -> list:
        """The models of the server; its trouble is shown in their place."""
        try:
            with self._open("/v1/models", None, 5) as response:
                models = json.loads(response.read(MOST_BYTES))["data"]
            return [{"id": str(m["id"]), "name": f"{self.valves.name_prefix}{m['id']}"} for m in models]
        except NexiError as error:
            return [{"id": "error", "name": f"nexi: {error}"}]
        except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
            return [{"id": "error", "name": "nexi: the server sent no models; check base_url"}]

    async def pipe(
        self, body: dict, __event_emitter__: Emitter = None, __task__: str | None = None
    ) -> str | AsyncIterator[str]:
        """An answer, whole or as it is written. A task about the chat, such as its title, goes to the plain model."""
        asked = {
            "model": str(body.get("model", "")).rpartition(".")[2],
            "messages": body.get("messages") or [],
            "stream": bool(body.get("stream")) and not __task__,
            "sources": False,
        }
        if __task__:
            return await self._do_task({**asked, "search": False})
        if asked["stream"]:
            return self._streamed(asked, __event_emitter__)
        try:
            reply = await asyncio.to_thread(self._whole, asked)
            message = reply["choices"][0]["message"]
        except NexiError as error:
            return f"nexi: {error}"
        except (KeyError, IndexError, TypeError):
            return "nexi: the server sent no answer"
        await _cite_all(__event_emitter__, reply.get("citations") or [], message.get("annotations") or [])
        return str(message["content"])

    async def _do_task(self, asked: dict) -> str:
        """The reply to a task; an empty one where it failed, so that no error becomes the title of a chat."""
        try:
            return str((await asyncio.to_thread(self._whole, asked))["choices"][0]["message"]["content"])
        except (NexiError, KeyError, IndexError, TypeError):
            return ""

    def _whole(self, asked: dict) -> dict:
        with self._open("/v1/chat/completions", asked, self.valves.timeout_s) as response:
            try:
                return json.loads(response.read(MOST_BYTES))
            except ValueError:
                raise NexiError("the server sent no JSON; check base_url") from None

    async def _streamed(self, asked: dict, emit: Emitter) -> AsyncIterator[str]:
        try:
            response = await asyncio.to_thread(self._open, "/v1/chat/completions", asked, self.valves.timeout_s)
        except NexiError as error:
            yield f"nexi: {error}"
            return
        is_working = False
        try:
            while line := await asyncio.to_thread(response.readline):
                chunk = _chunk(line)
                if "error" in chunk:
                    yield f"\n\nnexi: {_words(chunk['error'])}"
                delta = next((c.get("delta") or {} for c in chunk.get("choices") or []), {})
                if delta.get("reasoning_content"):
                    is_working = True
                    await _show_progress(emit, str(delta["reasoning_content"]).strip())
                if delta.get("content") and is_working:
                    is_working = False
                    await _show_progress(emit, "", done=True)
                if delta.get("content"):
                    yield str(delta["content"])
                if chunk.get("citations"):
                    await _cite_all(emit, chunk["citations"], delta.get("annotations") or [])
        except (OSError, http.client.HTTPException) as error:
            yield f"\n\nnexi: the answer broke off ({error})"
        finally:  # also when the user stops the answer: the server ends a run whose reader left
            await asyncio.to_thread(response.close)

    def _open(self, path: str, body: dict | None, timeout: float) -> Any:
        """A response to read. Raises NexiError in words."""
        base = self.valves.base_url.rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise NexiError(f"{base[:100]!r} is no web address; set base_url in the valves")
        headers = {"Content-Type": "application/json"}
        if self.valves.token:
            headers["Authorization"] = f"Bearer {self.valves.token}"
        data = None if body is None else json.dumps(body).encode("utf-8", "replace")
        request = urllib.request.Request(base + path, data, headers, method="GET" if body is None else "POST")
        try:
            return urllib.request.urlopen(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise NexiError(_refusal(error)) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise NexiError(f"nexi at {base} cannot be reached ({why}); start it with: nexi serve") from None
        except ValueError:
            raise NexiError(f"nexi at {base} cannot be asked; check base_url and token in the valves") from None


def _chunk(line: bytes) -> dict:
    """The object of a line of server-sent events; an empty one for every other line."""
    if not line.startswith(b"data:"):
        return {}
    try:
        value = json.loads(line[5:])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _words(told: Any) -> str:
    return str(told.get("message", told) if isinstance(told, dict) else told)[:300]


def _refusal(error: urllib.error.HTTPError) -> str:
    if error.code == 401:
        return "the server requires a token; set it in the valves"
    try:
        words = _words(json.loads(error.read(100_000)).get("error", ""))
    except (ValueError, OSError, AttributeError):
        words = ""
    return f"the server answered {error.code}" + (f": {words}" if words else "")


async def _show_progress(emit: Emitter, text: str, *, done: bool = False) -> None:
    """A line above the answer; an empty one that is done takes it away."""
    if emit:
        await emit({"type": "status", "data": {"description": text[:200], "done": done, "hidden": done and not text}})


async def _cite_all(emit: Emitter, urls: list, annotations: list) -> None:
    marks = [mark.get("url_citation", {}) for mark in annotations if isinstance(mark, dict)]
    titles = {str(mark.get("url")): str(mark.get("title") or mark.get("url")) for mark in marks}
    for url in map(str, urls) if emit else ():
        name = titles.get(url, url)
        await emit(
            {
                "type": "citation",
                "data": {"document": [name], "metadata": [{"source": url}], "source": {"name": name, "url": url}},
            }
        )
