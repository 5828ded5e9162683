"""
title: nexi evidence
author: nexi
description: Searches the web with nexi and puts what it found in front of the message, for any model.
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
from datetime import date
from typing import Any

from pydantic import BaseModel, Field

Emitter = Callable[[dict], Awaitable[None]] | None
MOST_BYTES = 8_000_000
MOST_QUERY_CHARS = 1000


class NexiError(Exception):
    """What a user should read."""


class Filter:
    class Valves(BaseModel):
        priority: int = Field(default=0, description="Filters with smaller numbers come first.")
        base_url: str = Field(default="http://127.0.0.1:8000", description="Where `nexi serve` listens.")
        token: str = Field(default="", description="NEXI_TOKEN, where the server has one.")
        timeout_s: int = Field(default=30, description="Seconds to wait for nexi.", ge=1)
        max_results: int = Field(default=5, description="Results to put in front.", ge=1, le=50)
        max_context_chars: int = Field(default=8000, description="Characters of evidence.", ge=500)

    class UserValves(BaseModel):
        prefix: str = Field(default="???", description="Search for messages that begin with this; empty means always.")
        full: bool = Field(default=False, description="Read pages, not only snippets.")
        snippet_rank: bool = Field(default=False, description="Let nexi's model pick the best results first.")
        inject_date: bool = Field(default=True, description="Tell the model today's date.")

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(self, body: dict, __event_emitter__: Emitter = None, __user__: dict | None = None) -> dict:
        """Put evidence in front of the last message; a failure is shown and the message goes on without."""
        wishes = self._wishes(__user__)
        message = _last_of_user(body)
        text = _text_of(message)
        if message is None or not text.startswith(wishes.prefix):
            return body
        question = text[len(wishes.prefix) :].strip()
        if not question:
            return body
        await _status(__event_emitter__, f"Searching: {question[:100]}")
        try:
            pack = await asyncio.to_thread(self._searched, question, wishes)
            rendered, items = str(pack["rendered_text"]), list(pack["items"])
        except NexiError as error:
            await _status(__event_emitter__, f"nexi: {error}", done=True)
            _set_text(message, question)
            return body
        except (KeyError, TypeError, AttributeError):
            await _status(__event_emitter__, "nexi sent something else than was asked for", done=True)
            _set_text(message, question)
            return body
        today = f"Today is {date.today().isoformat()}.\n" if wishes.inject_date else ""
        _set_text(message, f"{today}{rendered}\n\n{question}")
        for item in items:
            await _cite(__event_emitter__, item)
        await _status(__event_emitter__, f"Found {len(items)} results", done=True)
        return body

    def _wishes(self, user: dict | None) -> Any:
        given = (user or {}).get("valves")
        if isinstance(given, dict):
            return self.UserValves(**given)
        return given if given is not None else self.UserValves()

    def _searched(self, question: str, wishes: Any) -> dict:
        query = " ".join(question.split())[:MOST_QUERY_CHARS]
        mode = "full" if wishes.full else "simple"
        budget = {"max_results": self.valves.max_results, "max_context_chars": self.valves.max_context_chars}
        constraints: dict = {"search_mode": mode}
        if wishes.snippet_rank:
            wide = {"query": {"text": query}, "want": {"items": True, "rendered_text": False}, "budget": {"max_results": 10}}
            seen = self._post("/v1/search", wide)["items"]
            candidates = [{"i": i, **{n: str(x.get(n, "")) for n in ("title", "snippet", "url")}} for i, x in enumerate(seen)]
            if candidates:
                ranked = self._post("/v1/snippet_rank", {"query": query, "candidates": candidates})
                kept = [{n: str(x.get(n, "")) for n in ("url", "title", "snippet", "engine")} for x in seen]
                constraints.update(seed_items=kept, pick_ids=ranked["pick"])
        return self._post("/v1/search", {"query": {"text": query}, "constraints": constraints, "budget": budget})

    def _post(self, path: str, body: dict) -> Any:
        """One request. Raises NexiError in words."""
        base = self.valves.base_url.rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise NexiError(f"{base[:100]!r} is no web address; set base_url in the valves")
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.valves.token:
            headers["Authorization"] = f"Bearer {self.valves.token}"
        data = json.dumps(body).encode("utf-8", "replace")
        request = urllib.request.Request(base + path, data, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self.valves.timeout_s) as response:
                return json.loads(response.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise NexiError(_refusal(error)) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise NexiError(f"nexi at {base} cannot be reached ({why}); start it with: nexi serve") from None
        except ValueError:
            raise NexiError(f"nexi at {base} sent no JSON; check the address") from None


def _refusal(error: urllib.error.HTTPError) -> str:
    if error.code == 401:
        return "nexi requires a token; set it in the valves"
    try:
        told = json.loads(error.read(100_000)).get("error", {})
        words = told.get("message", "") if isinstance(told, dict) else str(told)
    except (ValueError, OSError, AttributeError):
        words = ""
    return f"nexi answered {error.code}" + (f": {words[:300]}" if words else "")


def _last_of_user(body: dict) -> dict | None:
    messages = [m for m in body.get("messages") or [] if isinstance(m, dict)]
    return messages[-1] if messages and messages[-1].get("role") == "user" else None


def _text_of(message: dict | None) -> str:
    """The text of a message; with images it is one of several parts."""
    content = (message or {}).get("content")
    if isinstance(content, list):
        content = next((p.get("text", "") for p in content if isinstance(p, dict) and p.get("type") == "text"), "")
    return content.strip() if isinstance(content, str) else ""


def _set_text(message: dict, text: str) -> None:
    if not isinstance(message["content"], list):
        message["content"] = text
        return
    for part in message["content"]:
        if isinstance(part, dict) and part.get("type") == "text":
            part["text"] = text
            return


async def _status(emit: Emitter, text: str, done: bool = False) -> None:
    if emit:
        await emit({"type": "status", "data": {"description": text, "done": done, "hidden": False}})


async def _cite(emit: Emitter, item: dict) -> None:
    url = str(item.get("url", ""))
    if emit:
        source = {"name": str(item.get("title") or url), "url": url}
        data = {"document": [str(item.get("snippet", ""))], "metadata": [{"source": url}], "source": source}
        await emit({"type": "citation", "data": data})
