"""The library for code without an event loop: find, fetch, search, research and export as plain functions.

    from nexi import sync

    print(sync.search("How far is the Moon from Earth on average?").answer.text)

`SyncNexi` keeps connections and a conversation over several calls; the functions open one for a single call. Below is
`nexi.app`, which does the work; nothing is decided here. Inside a running event loop every call is refused: use `nexi.app`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from nexi.app import Nexi, RunRequest, RunResult, Session
from nexi.config import Config, load_config
from nexi.errors import NexiError
from nexi.events import Event
from nexi.ports import LLM
from nexi.types import Page, Query, SearchOutcome

Question = str | RunRequest
OnEvent = Callable[[Event], object]
T = TypeVar("T")


class SyncNexi:
    """A `Nexi` that waits for each call. Use it in a `with` block, from one thread; ports may be given as to `Nexi`."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        llms: Mapping[str, LLM] | None = None,
        backends: Sequence[Any] | None = None,
        fetchers: Sequence[Any] | None = None,
    ) -> None:
        _refuse_running_loop()
        self.nexi = Nexi(config or load_config(), llms=llms, backends=backends, fetchers=fetchers)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._wait(self.nexi.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._wait(self.nexi.__aexit__(kind, error, trace))
        finally:
            self._runner.close()

    def find(self, query: Query | str) -> SearchOutcome:
        """Hits along the search chain; an empty outcome says which backend failed and why. Raises NexiError."""
        return self._wait(self.nexi.find(query))

    def fetch(self, url: str) -> Page:
        """One page as Markdown; private addresses are refused. Raises FetchError."""
        return self._wait(self.nexi.fetch(url))

    def search(self, question: Question, *, session: Session | None = None, on_event: OnEvent | None = None) -> RunResult:
        """Search, read pages and answer. Raises NexiError when there is no answer.

        `on_event` gets every event as it happens; a `session` carries a conversation from call to call.
        """
        return self._wait(self.nexi.search(question, session=session).drive(on_event))

    def research(self, question: Question, *, session: Session | None = None, on_event: OnEvent | None = None) -> RunResult:
        """Plan, research in rounds and write a report. Raises NexiError when there is none."""
        return self._wait(self.nexi.research(question, session=session).drive(on_event))

    def export(self, run_id: str, form: str) -> bytes:
        """A finished run as a file: md, json, html, pdf, docx, ris, bibtex or csl. Raises NexiError."""
        from nexi.exports import export_run

        return self._wait(export_run(self.nexi.runs(), self.nexi.pages(), run_id, form))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            _refuse_running_loop()
        except NexiError:
            work.close()
            raise
        return self._runner.run(work)


def find(query: Query | str, config: Config | None = None) -> SearchOutcome:
    """Hits along the search chain; an empty outcome says which backend failed and why. Raises NexiError."""
    with SyncNexi(config) as nexi:
        return nexi.find(query)


def fetch(url: str, config: Config | None = None) -> Page:
    """One page as Markdown; private addresses are refused. Raises FetchError."""
    with SyncNexi(config) as nexi:
        return nexi.fetch(url)


def search(question: Question, config: Config | None = None, *, on_event: OnEvent | None = None) -> RunResult:
    """Search, read pages and answer. Raises NexiError when there is no answer."""
    with SyncNexi(config) as nexi:
        return nexi.search(question, on_event=on_event)


def research(question: Question, config: Config | None = None, *, on_event: OnEvent | None = None) -> RunResult:
    """Plan, research in rounds and write a report. Raises NexiError when there is none."""
    with SyncNexi(config) as nexi:
        return nexi.research(question, on_event=on_event)


def export(run_id: str, form: str, config: Config | None = None) -> bytes:
    """A finished run as a file: md, json, html, pdf, docx, ris, bibtex or csl. Raises NexiError."""
    with SyncNexi(config) as nexi:
        return nexi.export(run_id, form)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise NexiError("nexi.sync was called inside a running event loop", fix="await the methods of nexi.app.Nexi instead")
