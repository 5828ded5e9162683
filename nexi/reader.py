"""Reads pages for one run: each page once, with a chain of fetchers, within the page budget.

Pages may be fetched before the model requests them (`prefetch`): such a page has no citation number until it is requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from msgspec.structs import asdict, replace

from nexi.answers.papers import list_preprints, mark_title
from nexi.budget import Meter
from nexi.errors import FetchError, StoreError
from nexi.events import PageFailed, PageFetched, PrefetchEnded, Warned
from nexi.notices import join_sentences
from nexi.ports import Clock, ContentFetcher, Emit, PageStore
from nexi.runs.recording import AgentReplay
from nexi.runs.session import Session
from nexi.tasks import start_task
from nexi.types import FetchLimits, Page, Paper
from nexi.urls import find_doi, hit_key

MAX_PREFETCH_PER_SEARCH = 3
NOT_RECORDED = "the log does not hold it"  # the cause of a page that a replay cannot have


@dataclass(eq=False)
class Reader:
    """Reads the pages of one run."""

    # called when the first page is wanted, so that building the chain does not delay the first model request
    fetchers: Callable[[], Sequence[ContentFetcher]]
    _: KW_ONLY
    limits: FetchLimits
    session: Session
    meter: Meter
    store: PageStore
    emit: Emit
    clock: Clock
    tasks: asyncio.TaskGroup  # the run's, which cancels fetches that are still running
    ahead: Callable[[ContentFetcher], bool] = lambda _: False
    replay: AgentReplay = field(default_factory=AgentReplay)
    keep: Callable[[Page], object] | None = None  # gets every page and must not block
    find_record: Callable[[str], Awaitable[Paper | None]] | None = None  # of a paper, by its DOI
    _running: dict[str, asyncio.Task[Page | FetchError]] = field(default_factory=dict, init=False)
    _prefetched: dict[str, str] = field(default_factory=dict, init=False)
    _requested: dict[str, str] = field(default_factory=dict, init=False)

    async def read(self, url: str) -> Page:
        """Return the page, fetched now or before. Raises FetchError."""
        key = hit_key(url)
        self._requested.setdefault(key, url)
        if not self.replay.has_own_page(url) and (page := self.session.find_page(url)):
            return page
        before = self._running.get(key)
        is_cancelled = before is not None and before.done() and before.cancelled()
        outcome = None if before is None or is_cancelled else await asyncio.shield(before)
        if not isinstance(outcome, Page):
            if self._running.get(key) is before:  # else another waiting caller has restarted it
                if not self._reserve_page(url, ahead=False):
                    raise FetchError("the page was not read", cause="the page budget of this run is spent", reason="blocked")
                self._start_fetch(url, key, self.fetchers(), ahead=False)
            outcome = await asyncio.shield(self._running[key])
        if isinstance(outcome, FetchError):
            raise outcome
        return outcome

    def prefetch(self, urls: Iterable[str]) -> None:
        """Start to fetch the best hits while the model thinks, with free fetchers only."""
        fetchers = [f for f in self.fetchers() if self.ahead(f)]
        fresh = [u for u in urls if hit_key(u) not in self._running and not self.session.find_page(u)]
        for url in fresh[:MAX_PREFETCH_PER_SEARCH] if fetchers else ():
            if not self._reserve_page(url, ahead=True):
                return
            key = hit_key(url)
            self._prefetched[key] = url
            self._start_fetch(url, key, fetchers, ahead=True)

    async def report_prefetch(self) -> None:
        if self._prefetched:
            unread_urls = tuple(url for key, url in self._prefetched.items() if key not in self._requested)
            await self.emit(PrefetchEnded(len(self._prefetched) - len(unread_urls), unread_urls))

    def requested_pages(self) -> list[Page]:
        """The pages that were requested and are there, in the order of the requests."""
        return [page for url in self._requested.values() if (page := self.session.find_page(url))]

    def cancel(self) -> None:
        for task in self._running.values():
            task.cancel()

    def _start_fetch(self, url: str, key: str, fetchers: Sequence[ContentFetcher], *, ahead: bool) -> None:
        self._running[key] = start_task(self.tasks, self._fetch(url, fetchers, ahead=ahead), name=f"fetch {url[:80]}")

    def _reserve_page(self, url: str, *, ahead: bool) -> bool:
        if self.replay.has_page(url):
            self.meter.replay_page()
            return True
        return self.meter.take_page(ahead=ahead)

    async def _fetch(self, url: str, fetchers: Sequence[ContentFetcher], *, ahead: bool) -> Page | FetchError:
        if (fact := await self.replay.next_page(url)) and (page := await self._replay_page(url, fact)):
            return page
        start = self.clock.monotonic()
        outcome = await self._read_paper(url, fetchers)
        seconds = round(self.clock.monotonic() - start, 3)
        if isinstance(outcome, FetchError):
            await self.emit(PageFailed(url, outcome.reason, str(outcome), seconds, ahead))
            return outcome
        links = ""  # their digest: a resumed run may follow them
        try:
            await self.store.put(outcome.text)
            links = await self.store.put("\n".join(outcome.links)) if outcome.links else ""
        except StoreError as error:
            await self.emit(Warned("evidence_not_kept", join_sentences(str(error), error.fix), cause=error.fix))
        self.session.add_page(url, outcome)
        self._hand_over(url, outcome)
        final_url, size = outcome.final_url or url, len(outcome.text)
        event = PageFetched(url, final_url, outcome.title, outcome.digest, size, outcome.downloaded_bytes, seconds, ahead)
        await self.emit(replace(event, imprint=outcome.imprint, links=links))
        return outcome

    async def _read_paper(self, url: str, fetchers: Sequence[ContentFetcher]) -> Page | FetchError:
        """The page; of a paper an open copy, else a preprint, with what the index says of it. A failure is that of the page."""
        paper = self.session.find_paper(url)
        if paper is None and self.find_record and not self.replay.is_replay_only and (doi := find_doi(url)):
            paper = await self.find_record(doi)
        if paper is None:
            return await self._try_fetchers(url, fetchers)
        outcome: Page | FetchError | None = None
        for place in dict.fromkeys((paper.open_url, url, *list_preprints(paper))):
            attempt = await self._try_fetchers(place, fetchers) if place else None
            if isinstance(attempt, Page):
                return replace(  # a retraction or a concern stands before the title, wherever that is shown
                    attempt,
                    paper=paper,
                    title=mark_title(attempt.title, paper),
                    author=attempt.author or "; ".join(paper.authors),
                    published=attempt.published or paper.year,
                    site=attempt.site or paper.venue,
                )
            outcome = attempt if place == url else outcome
        return outcome or FetchError("the page was not read")

    def _hand_over(self, url: str, page: Page) -> None:
        """Pass the page, under its final URL, to the store of pages for later runs."""
        if self.keep:
            self.keep(replace(page, url=page.final_url or url))

    async def _replay_page(self, url: str, fact: PageFetched | PageFailed) -> Page | FetchError | None:
        """Replay a recorded page; None when its text is gone and it must be fetched again."""
        if isinstance(fact, PageFailed):
            await self.emit(fact)
            return FetchError(fact.message, reason=fact.reason)
        text = await self.store.get(fact.digest)
        if text is None:
            return None
        links = await self.store.get(fact.links) if fact.links else ""
        page = rebuild_page(fact, text, tuple((links or "").split()))
        self.session.add_page(url, page)
        self._hand_over(url, page)
        await self.emit(fact)
        return page

    async def _try_fetchers(self, url: str, fetchers: Sequence[ContentFetcher]) -> Page | FetchError:
        if self.replay.is_replay_only:
            return FetchError("the page was not read", cause=NOT_RECORDED)
        failure = FetchError("the page was not read", cause="no fetcher is configured", fix="set content_fetcher")
        for fetcher in fetchers:
            try:
                page = await fetcher.fetch(url, self.limits)
            except FetchError as error:
                failure = error
                if error.reason in ("blocked", "robots") and not error.status:
                    return error  # a URL that the guard or robots.txt refuses is not tried with other fetchers
                continue
            return page if page.fetcher else replace(page, fetcher=fetcher.name)
        return failure


def rebuild_page(fact: PageFetched, text: str, links: tuple[str, ...]) -> Page:
    about = asdict(fact.imprint)  # whose fields are those of a page, but for the time
    about["fetched_at"], size = about.pop("accessed"), fact.downloaded_bytes
    return Page(fact.url, text, title=fact.title, final_url=fact.final_url, links=links, downloaded_bytes=size, **about)
