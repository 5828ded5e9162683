"""
title: nexi
author: nexi
description: Verified answers from the web, raw search, pages and research, from a nexi server of your own.
version: 0.1.0
license: MIT
"""
# ruff: noqa: S310 - the scheme of the address is checked before it is opened

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field

Emitter = Callable[[dict], Awaitable[None]] | None
MOST_BYTES = 8_000_000


class NexiError(Exception):
    """What a user should read."""


class Tools:
    class Valves(BaseModel):
        base_url: str = Field(default="http://127.0.0.1:8000", description="Where `nexi serve` listens.")
        token: str = Field(default="", description="NEXI_TOKEN, where the server has one.")
        effort: str = Field(default="m", description="s quick, m balanced, l thorough.")
        max_results: int = Field(default=5, description="Results of a raw search.", ge=1, le=50)
        max_page_chars: int = Field(default=20000, description="Characters of a page.", ge=500)
        timeout_s: int = Field(default=120, description="Seconds to wait for nexi.", ge=1)

    def __init__(self):
        self.valves = self.Valves()
        self.citation = False  # the sources are cited one by one below

    async def ask_the_web(self, question: str, __event_emitter__: Emitter = None) -> str:
        """
        Answer a question from the live web, with [n] citations that were checked against the pages.
        :param question: The question, in plain words.
        """
        await _status(__event_emitter__, f"Asking the web: {question[:100]}")
        body = {"model": f"nexi-{self.valves.effort}", "messages": [{"role": "user", "content": question}]}
        try:
            reply = await self._call("/v1/chat/completions", body)
            message = reply["choices"][0]["message"]
            text, sources = str(message["content"]), _sources(reply, message)
        except NexiError as error:
            return await _failed(__event_emitter__, error)
        except (KeyError, IndexError, TypeError):
            return await _failed(__event_emitter__, NexiError("nexi sent no answer"))
        for url, title in sources:
            await _cite(__event_emitter__, url, title, text)
        await _status(__event_emitter__, f"Answered from {len(sources)} sources", done=True)
        listed = "\n".join(f"[{n}] {title}: {url}" for n, (url, title) in enumerate(sources, 1))
        return f"{text}\n\nSources:\n{listed}" if listed else text

    async def search_the_web(self, query: str, __event_emitter__: Emitter = None) -> str:
        """
        Search the web and get titles, addresses and snippets.
        :param query: What to search for; operators like site:example.com work.
        """
        await _status(__event_emitter__, f"Searching: {query[:100]}")
        budget = {"max_results": self.valves.max_results}
        try:
            pack = await self._call("/v1/search", {"query": {"text": query}, "budget": budget})
        except NexiError as error:
            return await _failed(__event_emitter__, error)
        if not isinstance(pack, dict):
            return await _failed(__event_emitter__, NexiError("nexi sent something else than was asked for"))
        items = [item for item in pack.get("items") or [] if isinstance(item, dict)]
        for item in items:
            await _cite(__event_emitter__, str(item.get("url")), str(item.get("title")), str(item.get("snippet")))
        await _status(__event_emitter__, f"Found {len(items)} results", done=True)
        return str(pack.get("rendered_text") or "Nothing was found.")

    async def read_web_page(self, url: str, __event_emitter__: Emitter = None) -> str:
        """
        Read a web page, PDF or document as text.
        :param url: The full address of the page.
        """
        await _status(__event_emitter__, f"Reading {url[:100]}")
        try:
            pages = await self._call("/openwebui/load", {"urls": [url]})
            page = str(pages[0]["page_content"])
        except NexiError as error:
            return await _failed(__event_emitter__, error)
        except (KeyError, IndexError, TypeError):
            return await _failed(__event_emitter__, NexiError("nexi sent no page"))
        await _cite(__event_emitter__, url, url, page[:1000])
        await _status(__event_emitter__, f"Read {url[:100]}", done=True)
        return page[: self.valves.max_page_chars]

    async def _call(self, path: str, body: dict) -> Any:
        return await asyncio.to_thread(_post, self.valves, path, body)


def _post(valves: Any, path: str, body: dict) -> Any:
    """One request. Raises NexiError in words."""
    base = valves.base_url.rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise NexiError(f"{base[:100]!r} is no web address; set base_url in the valves")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if valves.token:
        headers["Authorization"] = f"Bearer {valves.token}"
    request = urllib.request.Request(base + path, json.dumps(body).encode("utf-8", "replace"), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=valves.timeout_s) as response:
            return json.loads(response.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            raise NexiError(_refusal(error)) from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise NexiError(f"nexi at {base} cannot be reached ({why}); start it with: nexi serve") from None
    except ValueError:
        raise NexiError(f"nexi at {base} sent no JSON; check base_url and token") from None


def _refusal(error: urllib.error.HTTPError) -> str:
    if error.code == 401:
        return "nexi requires a token; set it in the valves"
    try:
        said = json.loads(error.read(100_000))
    except (ValueError, OSError):
        said = {}
    told = said.get("error", said.get("detail", "")) if isinstance(said, dict) else ""
    words = told.get("message", "") if isinstance(told, dict) else told
    return f"nexi answered {error.code}" + (f": {str(words)[:300]}" if words else "")


def _sources(reply: dict, message: dict) -> list:
    """The cited pages in the order of their numbers, with titles where an annotation has one."""
    marks = [mark.get("url_citation", {}) for mark in message.get("annotations") or [] if isinstance(mark, dict)]
    titles = {str(mark.get("url")): str(mark.get("title") or mark.get("url")) for mark in marks}
    return [(str(url), titles.get(str(url), str(url))) for url in reply.get("citations") or []]


async def _status(emit: Emitter, text: str, done: bool = False) -> None:
    if emit:
        await emit({"type": "status", "data": {"description": text, "done": done, "hidden": False}})


async def _cite(emit: Emitter, url: str, title: str, text: str) -> None:
    if emit:
        data = {"document": [text], "metadata": [{"source": url}], "source": {"name": title or url, "url": url}}
        await emit({"type": "citation", "data": data})


async def _failed(emit: Emitter, error: NexiError) -> str:
    await _status(emit, str(error), done=True)
    return f"The web could not be used: {error}. Tell the user so."
