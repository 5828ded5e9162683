"""Reads pages for one run: each page once, along the chain of fetchers, within the page budget.

Above it are the tools; below it, fetchers and the page store behind their ports. Pages may be read ahead of the model
(`warm`): such a page has no citation number until it is asked for, and what stays unused is reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from nexi.budget import Meter
from nexi.errors import FetchError, StoreError
from nexi.events import PageFailed, PageFetched, PrefetchEnded, Warned
from nexi.ports import Clock, ContentFetcher, Emit, PageStore
from nexi.runs.recording import Track
from nexi.runs.session import Session
from nexi.types import FetchLimits, Page
from nexi.urls import hit_key

AHEAD_PER_SEARCH = 3


class Reader:
    """Owned by a run: `tasks` is the run's task group, which ends every fetch that is still going.

    `fetchers` is asked for the chain when the first page is wanted, so that building it does not delay the first request.
    `keep` is told of every page and must not wait.
    """

    def __init__(
        self,
        fetchers: Callable[[], Sequence[ContentFetcher]],
        *,
        limits: FetchLimits,
        session: Session,
        meter: Meter,
        store: PageStore,
        emit: Emit,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        ahead: Callable[[ContentFetcher], bool] = lambda _: False,
        track: Track | None = None,
        keep: Callable[[Page], object] | None = None,
    ) -> None:
        self._keep = keep
        self._fetchers = fetchers
        self._may_read_ahead = ahead
        self._limits = limits
        self._session = session
        self._meter = meter
        self._store = store
        self._emit = emit
        self._clock = clock
        self._tasks = tasks
        self._track = track or Track()
        self._running: dict[str, asyncio.Task[Page | FetchError]] = {}
        self._warmed: dict[str, str] = {}
        self._used: dict[str, str] = {}

    async def read(self, url: str) -> Page:
        """The page, fetched now or before. Raises FetchError."""
        key = hit_key(url)
        self._used.setdefault(key, url)
        if not self._track.has_own_page(url) and (page := self._session.page(url)):
            return page
        before = self._running.get(key)
        outcome = await self._join(key)
        if not isinstance(outcome, Page):
            if self._running.get(key) is before:  # else who waited beside us has begun it anew
                if not self._take_page(url, ahead=False):
                    raise FetchError("the page was not read", cause="the page budget of this run is spent", reason="blocked")
                self._start(url, key, self._fetchers(), ahead=False)
            outcome = await asyncio.shield(self._running[key])
        if isinstance(outcome, FetchError):
            raise outcome
        return outcome

    def warm(self, urls: Iterable[str]) -> None:
        """Begin to read the best hits while the model thinks, through free fetchers only."""
        fetchers = [f for f in self._fetchers() if self._may_read_ahead(f)]
        fresh = [u for u in urls if hit_key(u) not in self._running and not self._session.page(u)]
        for url in fresh[:AHEAD_PER_SEARCH] if fetchers else ():
            if not self._take_page(url, ahead=True):
                return
            key = hit_key(url)
            self._warmed[key] = url
            self._start(url, key, fetchers, ahead=True)

    async def report(self) -> None:
        """Say what reading ahead was good for."""
        if self._warmed:
            unused = tuple(url for key, url in self._warmed.items() if key not in self._used)
            await self._emit(PrefetchEnded(len(self._warmed) - len(unused), unused))

    def asked_for(self) -> list[Page]:
        """The pages that were asked for and are there, in the order of asking."""
        return [page for url in self._used.values() if (page := self._session.page(url))]

    def cancel(self) -> None:
        for task in self._running.values():
            task.cancel()

    async def _join(self, key: str) -> Page | FetchError | None:
        """What an earlier fetch of this page gave; a failure while reading ahead does not count against asking."""
        task = self._running.get(key)
        if task is None or (task.done() and task.cancelled()):
            return None
        return await asyncio.shield(task)

    def _start(self, url: str, key: str, fetchers: Sequence[ContentFetcher], *, ahead: bool) -> asyncio.Task[Page | FetchError]:
        task = self._tasks.create_task(self._fetch(url, fetchers, ahead=ahead), name=f"fetch {url[:80]}")
        self._running[key] = task
        return task

    def _take_page(self, url: str, *, ahead: bool) -> bool:
        if self._track.has_page(url):
            self._meter.replay_page()
            return True
        return self._meter.take_page(ahead=ahead)

    async def _fetch(self, url: str, fetchers: Sequence[ContentFetcher], *, ahead: bool) -> Page | FetchError:
        if (known := await self._track.page(url)) and (recorded := await self._again(url, known)):
            return recorded
        started = self._clock.monotonic()
        outcome = await self._along_the_chain(url, fetchers)
        seconds = round(self._clock.monotonic() - started, 3)
        if isinstance(outcome, FetchError):
            await self._emit(PageFailed(url, outcome.reason, str(outcome), seconds, ahead))
            return outcome
        links = await self._keep_evidence(outcome)
        self._session.keep(url, outcome)
        self._remember(url, outcome)
        await self._emit(
            PageFetched(
                url,
                outcome.final_url or url,
                outcome.title,
                outcome.digest,
                len(outcome.text),
                outcome.downloaded_bytes,
                seconds,
                ahead,
                imprint=outcome.imprint,
                links=links,
            )
        )
        return outcome

    def _remember(self, url: str, page: Page) -> None:
        """Hand the page to whoever keeps pages for later runs, under the address that it answered at."""
        if self._keep:
            self._keep(replace(page, url=page.final_url or url))

    async def _again(self, url: str, known: PageFetched | PageFailed) -> Page | FetchError | None:
        """A page as it was recorded; None when its text is gone, so that it must be fetched anew."""
        if isinstance(known, PageFailed):
            await self._emit(known)
            return FetchError(known.message, reason=known.reason)
        text = await self._store.get(known.digest)
        if text is None:
            return None
        links = await self._store.get(known.links) if known.links else ""
        page = rebuilt(known, text, tuple((links or "").split()))
        self._session.keep(url, page)
        self._remember(url, page)
        await self._emit(known)
        return page

    async def _along_the_chain(self, url: str, fetchers: Sequence[ContentFetcher]) -> Page | FetchError:
        if self._track.only:
            return FetchError("the page was not read", cause="the log does not hold it")
        failure = FetchError("the page was not read", cause="no fetcher is configured", fix="set content_fetcher")
        for fetcher in fetchers:
            try:
                page = await fetcher.fetch(url, self._limits)
            except FetchError as error:
                failure = error
                if error.reason in ("blocked", "robots") and not error.status:
                    return error  # a URL the guard or robots.txt refuses goes to nobody else
                continue
            return page if page.fetcher else replace(page, fetcher=fetcher.name)
        return failure

    async def _keep_evidence(self, page: Page) -> str:
        """Keep the text, and its links, whose digest is returned: a run that is taken up again may follow them."""
        try:
            await self._store.put(page.text)
            return await self._store.put("\n".join(page.links)) if page.links else ""
        except StoreError as error:
            await self._emit(Warned("evidence_not_kept", f"{error}. {error.fix}".strip()))
        return ""


def rebuilt(known: PageFetched, text: str, links: tuple[str, ...]) -> Page:
    """A page from its fact and its kept text."""
    about = known.imprint
    return Page(
        known.url,
        text,
        title=known.title,
        final_url=known.final_url,
        content_type=about.content_type,
        language=about.language,
        author=about.author,
        published=about.published,
        site=about.site,
        fetched_at=about.accessed,
        links=links,
        downloaded_bytes=known.downloaded_bytes,
    )
