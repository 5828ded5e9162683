"""A researcher's tools and their budgets: gathering, then scraping in batches, then the report.

The one loop above runs them like any others; below are the searchers and the reader that every toolbox has. What a phase
allows is kept in code and told to the model in words when it is used up. Which backends stand behind a searcher is not known.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nexi.research.state import GATHERING_CALLS, SCRAPING_TOOL
from nexi.runs.recording import Track
from nexi.searcher import Searcher
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.tools.results import as_json, error_result, pages_form
from nexi.tools.specs import FINAL_ANSWER, WEB_GET, WEB_SEARCH, read_arguments
from nexi.tools.toolbox import Toolbox
from nexi.types import Page, ToolCall, ToolResult, ToolSpec
from nexi.urls import hit_key
from nexi.values import frozen

BATCHES = (3, 2, 3)
CONTEXT_GATE = 0.55
PAGE_BYTES = 9_000
FIRST_PROJECTION = 2_500  # tokens of a page, until this researcher has read some
MOST_URLS = 8
PAGES_A_WINDOW = 10  # of a small window no page takes more than a tenth

_QUERY = {"type": "string", "minLength": 1, "maxLength": 1000}


def _one_query(name: str, description: str) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object", "properties": {"query": _QUERY}, "required": ["query"]})


SEARCH = ToolSpec(
    "search",
    "Search the web. Give 1 to 5 different queries; they run in parallel and count as one gathering call.",
    {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": _QUERY, "minItems": 1, "maxItems": 5}},
        "required": ["queries"],
    },
)
SECURITY_SEARCH = _one_query("security_search", "Search NVD, CISA KEV, GitHub Advisories and OSV for vulnerabilities.")
STACKEXCHANGE = _one_query("stackexchange", "Search questions and answers of the Stack Exchange network.")
GREP = _one_query("grep", "Search the local code for a pattern.")
LOCAL_SEARCH = replace(
    SEARCH,
    name="local_search",
    description="Search what nexi already knows: pages read before and the user's own files. Takes 1 to 5 queries.",
)
SCRAPE = ToolSpec(
    SCRAPING_TOOL,
    "Read pages. The first call only tells which of your URLs others have read; then come three batches of at most 3, 2 and 3 "
    "URLs. Every page comes with its citation number.",
    {
        "type": "object",
        "properties": {
            "urls": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 8192},
                "minItems": 1,
                "maxItems": MOST_URLS,
            }
        },
        "required": ["urls"],
    },
)
SAME = {WEB_SEARCH.name: SEARCH.name, WEB_GET.name: SCRAPE.name}
SINGLE = {spec.name: spec for spec in (SECURITY_SEARCH, STACKEXCHANGE, GREP, LOCAL_SEARCH)}


@dataclass
class LinkPool:
    """The URLs that researchers of one run have read, and who did."""

    readers: dict[str, str] = field(default_factory=dict)

    def by_others(self, urls: Sequence[str], me: str) -> dict[str, str]:
        return {url: who for url in urls if (who := self.readers.get(hit_key(url), me)) != me}

    def add(self, urls: Sequence[str], me: str) -> None:
        for url in urls:
            self.readers.setdefault(hit_key(url), me)


@dataclass
class Phases:
    """What a researcher has used of its calls."""

    gathered: int = 0
    shook_hands: bool = False
    batches: int = 0
    read_bytes: list[int] = field(default_factory=list)


@frozen
class Context:
    """How full a researcher's context is: `used` tokens of `window`."""

    used: Callable[[], int]
    window: int

    def room(self) -> int:
        """Tokens left below the gate."""
        return int(self.window * CONTEXT_GATE) - self.used()


@frozen
class ResearchToolbox(Toolbox):
    """The tools of one researcher. `others` are the searchers of the tools besides `search`, those that can be used."""

    me: str = ""
    phases: Phases = field(default_factory=Phases)
    pool: LinkPool = field(default_factory=LinkPool)
    others: Mapping[str, Searcher] = field(default_factory=dict)
    context: Context = Context(lambda: 0, 1)
    track: Track = field(default_factory=Track)

    async def run(self, call: ToolCall) -> ToolResult:
        """The tools of an ordinary search are understood too: the loop uses them for a model that uses none, and some models
        know no others. Who reads so has nobody to shake hands with."""
        if call.name == WEB_GET.name:
            self.phases.shook_hands = True
        return await super().run(replace(call, name=SAME.get(call.name, call.name)))

    async def _dispatch(self, call: ToolCall) -> ToolResult:
        """What others had read by then decides what scraping does, so a recorded call is given its recorded pages."""
        known = self.track.tool(call.id) if call.name == SCRAPE.name else None
        if known and not self.phases.shook_hands:
            self.phases.shook_hands = True
            return ToolResult((), known.text, known.ok)
        if known and (batch := _pages_in(known.text)):
            return await self._read_batch(batch, read_arguments(call, SCRAPE)[0].get("urls", batch))
        return await super()._dispatch(call)

    def runners(self) -> Mapping[str, Callable[[Mapping[str, Any]], Awaitable[ToolResult]]]:
        single = {name: self._gatherer(name) for name in self.others}
        return {SEARCH.name: self._search, SCRAPE.name: self._scrape, **single}

    async def text_of(self, page: Page, arguments: Mapping[str, Any]) -> str:
        """A short page whole, of a long one the passages that matter, word for word, so that they can be proved."""
        most = min(PAGE_BYTES, self.context.window * BYTES_PER_TOKEN // PAGES_A_WINDOW, self.summary_tokens * BYTES_PER_TOKEN)
        if len(page.text.encode("utf-8", "replace")) <= most:
            return page.text
        return await super().text_of(page, {})

    # gathering

    async def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        return self._gathering_over() or await self._counted(self.searcher, arguments["queries"])

    def _gatherer(self, name: str) -> Callable[[Mapping[str, Any]], Awaitable[ToolResult]]:
        async def gather(arguments: Mapping[str, Any]) -> ToolResult:
            return self._gathering_over() or await self._counted(
                self.others[name], arguments["queries"] if "queries" in arguments else [arguments["query"]]
            )

        return gather

    async def _counted(self, searcher: Searcher, queries: Sequence[str]) -> ToolResult:
        self.phases.gathered += 1
        result = await self.search_with(searcher, queries)
        left = GATHERING_CALLS - self.phases.gathered
        note = f"{left} gathering calls are left." if left else "That was the last gathering call: scrape what matters now."
        return _noted(result, note)

    def _gathering_over(self) -> ToolResult | None:
        if self.phases.gathered < GATHERING_CALLS:
            return None
        return error_result(f"all {GATHERING_CALLS} gathering calls are used; read pages with scrape, or write the report")

    # scraping

    async def _scrape(self, arguments: Mapping[str, Any]) -> ToolResult:
        urls = list(dict.fromkeys(arguments["urls"]))
        if not self.phases.shook_hands:
            return self._handshake(urls)
        if self.phases.batches >= len(BATCHES):
            return error_result("all scraping batches are used; write the report with final_answer")
        batch = self._batch(urls)
        if not batch:
            return error_result(
                f"skipped: the context is {self._fullness()} full and pages are read up to {CONTEXT_GATE:.0%}; write the report"
            )
        return await self._read_batch(batch, urls)

    async def _read_batch(self, batch: Sequence[str], urls: Sequence[str]) -> ToolResult:
        self.phases.batches += 1
        self.pool.add(batch, self.me)
        views = await self.read_pages({"urls": list(batch)})
        self.phases.read_bytes += [len(v.text.encode("utf-8", "replace")) for v in views if not v.error]
        text = as_json({**pages_form(views), **_left_out(urls, batch), "note": self._scraping_note()})
        return ToolResult(views, text, any(not v.error for v in views))

    def _handshake(self, urls: Sequence[str]) -> ToolResult:
        self.phases.shook_hands = True
        known = self.pool.by_others(urls, self.me)
        form = {
            "already_read_by_others": [{"url": url, "researcher": who} for url, who in known.items()],
            "note": f"Nothing was fetched yet. Call scrape again with at most {BATCHES[0]} URLs, best those nobody has read.",
        }
        return ToolResult((), as_json(form))

    def _batch(self, urls: Sequence[str]) -> list[str]:
        """What may be read now: as many as the batch takes and as are projected to fit, in the order asked for.

        Pages that others have read are not fetched again: the run has them, and whoever asks after the handshake wants them.
        """
        fitting = max(0, self.context.room() // self._projection())
        return list(urls[: min(BATCHES[self.phases.batches], fitting)])

    def _projection(self) -> int:
        """Tokens to expect of one more page."""
        read = self.phases.read_bytes
        if not read:
            return min(FIRST_PROJECTION, max(1, self.context.window // 20))
        return max(1, sum(read) // len(read) // BYTES_PER_TOKEN)

    def _fullness(self) -> str:
        return f"{self.context.used() / max(1, self.context.window):.0%}"

    def _scraping_note(self) -> str:
        left = len(BATCHES) - self.phases.batches
        if not left:
            return "That was the last batch: write the report with final_answer now."
        return f"{left} batches are left; the next takes at most {BATCHES[self.phases.batches]} URLs."


def specs_for(others: Mapping[str, Searcher], about_local: str = "") -> tuple[ToolSpec, ...]:
    """What a researcher is offered: only tools that can be used here. `about_local` says what the local search
    looks into, where that is not what nexi knows."""
    local = replace(LOCAL_SEARCH, description=f"{about_local} {LOCAL_SEARCH.description}".strip())
    single = {**SINGLE, local.name: local}
    return (SEARCH, *(single[name] for name in single if name in others), SCRAPE, FINAL_ANSWER)


def _left_out(urls: Sequence[str], batch: Sequence[str]) -> dict[str, list[str]]:
    rest = [u for u in urls if u not in batch]
    return {"not_read_in_this_batch": rest} if rest else {}


def _pages_in(text: str) -> list[str]:
    """The URLs of the pages a recorded batch brought."""
    try:
        return [str(page["url"]) for page in json.loads(text)["pages"]]
    except (ValueError, KeyError, TypeError):
        return []


def _noted(result: ToolResult, note: str) -> ToolResult:
    """The result with a word on the budget, which the model reads last."""
    return ToolResult(result.value, as_json({**json.loads(result.text), "note": note}), result.ok)
