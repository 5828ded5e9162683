"""Verification: one text checked outside a run, by a TextCheck, which says where pages come from and who judges.

A text with citations is checked against the pages it cites; one without against pages that are given, found on the web or in
the knowledge base. The text itself is never changed. Its stored pages are in run logs, by digest, and in the page cache.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers
from nexi.answers.document import Document, build_answer_document, read_markdown
from nexi.answers.document import read_answer as read_printed_answer
from nexi.answers.papers import mark_title
from nexi.app.assembly import Nexi
from nexi.app.components import long_page_limits, read_page
from nexi.app.emit import QuietEmit
from nexi.app.factory import PortFactory
from nexi.app.gate import open_gate
from nexi.app.knowledge import Knowledge, LocalBackend
from nexi.app.pair_models import open_text_judge
from nexi.app.request import RunLimits, budget_for
from nexi.checking.recheck import Basis, SourceState, Verification, check_document, describe_failure, recheck, say_all
from nexi.checking.sentences import read_answer
from nexi.errors import ConfigError, FetchError, NexiError, NoEvidenceError, PageLimitError, StoreError
from nexi.events import Fact, PageFetched, RunFinished, RunStarted, SourceNumbered, find_end, map_sources
from nexi.fetchers.cache import PageCache, cache_key
from nexi.ports import HistoryStore, RunStore
from nexi.runs.log_format import DamagedLogError
from nexi.tasks import gather_all
from nexi.text.chunking import headings_of
from nexi.text.stems import word_terms
from nexi.types import Page, Paper, Query, Source, content_digest
from nexi.urls import dedup_key, find_doi, is_web_url

Fetch: TypeAlias = Callable[[str], Awaitable[Page]]
MAX_CONCURRENT_FETCHES = 4
MAX_SEARCHES = 8
MAX_GROUP = 6  # sentences that one search is for
MIN_GROUP = 2
HITS_READ = 2  # of one search
MAX_QUERY_WORDS = 16
MAX_KNOWN_QUERIES = 100
KNOWN_HITS = 3
MAX_PAGES = 30  # that a text without citations is checked against
MAX_AUDITED_PAGES = 100
MAX_WHOLE_FILES = 30  # that are read as they are; of more, those that a search of them brings up
MAX_JUDGING_S = 600.0
TOO_LATE = "the time target was reached"

_WORD = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")


class Target(Struct, frozen=True):
    """What to verify: a text, the id of a run, whole or its beginning, or the address of a page."""

    text: str = ""
    id: str = ""
    url: str = ""


class VerifyRequest(Struct, frozen=True):
    """A text to check, and against what: the pages it cites, those given, what a search brings, else the knowledge base."""

    target: Target
    against: tuple[str, ...] = ()  # files, folders and web addresses
    web: bool = False
    audit: bool = False  # follows the links of a text and counts how well it is cited
    refetch: bool = False
    is_local: bool = False  # nothing leaves this machine
    limits: RunLimits = RunLimits()


class _Evidence(Struct, frozen=True):
    """Pages to check a text against, those that could not be read, and what was not looked for."""

    pages: tuple[Page, ...] = ()
    failures: tuple[tuple[str, FetchError], ...] = ()
    gap: str = ""


class TextCheck:
    """The check of one text. `ports` have the scope of the request."""

    def __init__(self, nexi: Nexi, ports: PortFactory, request: VerifyRequest) -> None:
        self._nexi, self._ports, self._request = nexi, ports, request
        self._gate = open_gate(ports, budget=budget_for(ports.config, request.limits), is_local=request.is_local)

    async def run(self, fetch_fresh: Fetch) -> Verification:
        """Raises NexiError where there is no such text, NoEvidenceError where there is nothing to check it against."""
        request = self._request
        if not request.target.url:
            document = await asyncio.to_thread(self._read_target)
            if not document.text.strip():
                raise _nothing_to_verify("it is empty")
        elif request.is_local:
            raise ConfigError("a page cannot be fetched within the local scope", fix="leave --local out, or give a file")
        else:
            limits = replace(long_page_limits(self._ports.config.fetch_timeout), cites_notes=True)
            page = await read_page(self._ports, request.target.url, limits)
            document = await asyncio.to_thread(_read_text, page.text)
        document = await self._add_records(document)
        if request.audit:
            return await self._audit(document)
        if request.against or request.web or not (document.sources or document.lost):
            return await self._check_against_others(document)
        texts = await self._read_stored(document)
        is_fetched = request.refetch or bool(request.target.url)
        pages = await _fetch_pages(document.sources, fetch_fresh) if is_fetched else None
        return await recheck(document, texts, pages, judge=open_text_judge(self._gate), deadline=self._deadline())

    def _read_target(self) -> Document:
        target = self._request.target
        return _find_document(target.id, self._nexi.runs(), self._nexi.history()) if target.id else _read_text(target.text)

    async def _add_records(self, document: Document) -> Document:
        """The document with the records of the papers whose DOI is in an address: one may be retracted since it was cited."""
        request = self._request
        if request.is_local or not (request.refetch or request.audit or request.web or request.target.url):
            return document  # a check that reads only what is stored asks nobody
        limit = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)

        async def describe(source: Source) -> Source:
            doi = find_doi(source.url)
            if not doi or source.imprint.paper:
                return source
            async with limit:
                paper = await self._ports.find_paper(doi)
            if not paper:
                return source
            title = mark_title(source.title, paper) if source.title else source.title
            return replace(source, title=title, imprint=replace(source.imprint, paper=paper))

        looked_up, rest = document.sources[:MAX_AUDITED_PAGES], document.sources[MAX_AUDITED_PAGES:]
        return replace(document, sources=(*await gather_all(map(describe, looked_up)), *rest))

    async def _read_stored(self, document: Document) -> dict[int, str | None]:
        chain = self._ports.config.fetch_chain()
        archive = _PageArchive(self._nexi.runs(), self._ports.page_cache(), chain, run=document.run)
        return {source.number: await archive.text(source) for source in document.sources}

    def _deadline(self) -> float:
        patience, deadline = self._ports.clock.monotonic() + MAX_JUDGING_S, self._gate.meter.deadline
        return patience if deadline is None else min(patience, deadline)

    def _is_late(self) -> bool:
        deadline = self._gate.meter.deadline
        return deadline is not None and self._ports.clock.monotonic() >= deadline

    async def _fetch(self, url: str) -> Page:
        """One page within the limits on time and pages. Raises FetchError."""
        if self._request.is_local:
            raise FetchError(f"{url[:200]} is not fetched", reason="blocked", cause="the check is local")
        if self._is_late():
            raise PageLimitError(f"{url[:200]} is not fetched", cause=TOO_LATE)
        if not self._gate.meter.take_page():
            raise PageLimitError(f"{url[:200]} is not fetched", cause="max_pages is reached")
        return await read_page(self._ports, url)

    # an audit

    async def _audit(self, document: Document) -> Verification:
        if not (document.sources or document.lost):
            uncited = "it cites no page: no [n] with a list of sources, no footnote and no link"
            raise _nothing_to_verify(uncited, "check it against pages with --against, or with --web")
        pages = await _fetch_pages(document.sources[:MAX_AUDITED_PAGES], self._fetch)
        states = []
        for source in document.sources:
            match pages.get(source.number):
                case Page() as page:
                    title = mark_title(page.title, source.imprint.paper or Paper())
                    shown_source = source if source.title else replace(source, title=title)
                    states.append(SourceState(shown_source, "fresh", digest=page.digest))
                case FetchError() as error:
                    states.append(describe_failure(source, error))
                case _:
                    states.append(SourceState(source, "unread", f"an audit reads at most {MAX_AUDITED_PAGES} pages"))
        texts = {n: page.text if isinstance(page, Page) else None for n, page in pages.items()}
        judge = open_text_judge(self._gate)
        return await check_document(document, texts, tuple(states), judge=judge, deadline=self._deadline(), by_citation=True)

    # a text without citations

    async def _check_against_others(self, document: Document) -> Verification:
        texts = await self._read_stored(document)
        sentences = [s.plain for s in read_answer(document.text) if s.is_claim and not s.numbers]
        if not sentences and not document.sources:
            raise _nothing_to_verify("no sentence of it states anything")
        evidence, basis = await self._gather(document, sentences)
        if not evidence.pages and not any(texts.values()):
            reasons = "; ".join(str(error) for _, error in evidence.failures[:3]) or evidence.gap
            cause, fix = reasons or "no page was found", "name other pages or files with --against"
            if basis == "knowledge":
                cause = "it cites no page, and the knowledge base has none that speaks of it"
                fix = "name pages or files with --against, search with --web, or index some with nexi index"
            raise NoEvidenceError("there is nothing to check this text against", cause=cause, fix=fix)
        states = [_state_of(source, texts[source.number]) for source in document.sources]
        first = max((source.number for source in document.sources), default=max(document.lost, default=0)) + 1
        for number, page in enumerate(evidence.pages, first):
            texts[number] = page.text
            is_new = basis == "web" or (basis == "given" and is_web_url(page.url))
            states.append(_state_of(Source(number, page.url, page.title, page.digest), page.text, is_new=is_new))
        for number, (url, error) in enumerate(evidence.failures, first + len(evidence.pages)):
            states.append(describe_failure(Source(number, url), error))
        document = replace(document, sources=tuple(state.source for state in states))
        judge, deadline = open_text_judge(self._gate), self._deadline()
        verification = await check_document(document, texts, tuple(states), basis=basis, judge=judge, deadline=deadline)
        return replace(verification, gap=say_all(verification.gap, evidence.gap))

    async def _gather(self, document: Document, sentences: Sequence[str]) -> tuple[_Evidence, Basis]:
        if self._request.against:
            given = await self._read_given(sentences)
            web = await self._search_web(document, sentences) if self._request.web else _Evidence()
            return _Evidence((*given.pages, *web.pages), (*given.failures, *web.failures), web.gap), "given"
        if self._request.web:
            return await self._search_web(document, sentences), "web"
        knowledge = self._ports.knowledge()
        pages = await self._find_known(knowledge, sentences) if await knowledge.holds_something() else ()
        return _Evidence(pages), "knowledge"

    async def _read_given(self, sentences: Sequence[str]) -> _Evidence:
        """Given pages and files; of many files, those that speak of the sentences."""
        from nexi.app.documents import files_in, read_document
        from nexi.app.intake import attach_files, place_of

        pages: list[Page] = []
        failures: list[tuple[str, FetchError]] = []
        files: list[Path] = []
        for target in self._request.against:
            if is_web_url(target):
                try:
                    pages.append(await self._fetch(target))
                except FetchError as error:
                    failures.append((target, error))
                continue
            path, is_folder = await asyncio.to_thread(place_of, target)
            files += await asyncio.to_thread(list, files_in(path)) if is_folder else [path]
        if len(files) > MAX_WHOLE_FILES:
            async with attach_files(self._nexi, self._ports, [str(file) for file in files]) as knowledge:
                pages += await self._find_known(knowledge, sentences)
            return _Evidence(tuple(pages), tuple(failures))
        config = self._nexi.config
        for file in files:
            try:
                pages.append(await read_document(file, str(file), config.ocr_languages, config.personal_dir))
            except FetchError as error:
                failures.append((str(file), error))
        return _Evidence(tuple(pages), tuple(failures))

    async def _find_known(self, knowledge: Knowledge, sentences: Sequence[str]) -> tuple[Page, ...]:
        """The stored pages that most searches for groups of sentences bring up."""
        backend = LocalBackend(knowledge, self._gate)
        votes: Counter[str] = Counter()
        for group in _group_sentences(sentences, MAX_KNOWN_QUERIES):
            hits = await backend.search(Query(" ".join(group)[:2_000], KNOWN_HITS))
            votes.update({hit.url: KNOWN_HITS - rank for rank, hit in enumerate(hits)})
        pages = [await knowledge.page(url) for url, _ in votes.most_common(MAX_PAGES)]
        return tuple(page for page in pages if page)

    async def _search_web(self, document: Document, sentences: Sequence[str]) -> _Evidence:
        """The first pages of a search for each group of sentences, read."""
        if self._request.is_local:
            raise ConfigError("--web cannot search within the local scope", fix="leave --local or --web out")
        groups = _group_sentences(sentences, MAX_SEARCHES)[:MAX_SEARCHES]
        topic = next(iter(headings_of(document.text)), "")
        searcher = self._ports.searcher(QuietEmit())
        urls: dict[str, str] = {}
        failures: list[str] = []
        for group in groups:
            if self._is_late():
                failures.append(TOO_LATE)
                break
            outcome = await searcher.search(Query(_build_query(group, topic), 2 * HITS_READ))
            failures += [f"{failure.provider}: {failure.message}" for failure in outcome.failures if not outcome.hits]
            for hit in outcome.hits[:HITS_READ]:
                urls.setdefault(dedup_key(hit.url), hit.url)
        sources = [Source(number, url) for number, url in enumerate(urls.values(), 1)]
        outcomes = await _fetch_pages(sources, self._fetch)
        pages = tuple(page for page in outcomes.values() if isinstance(page, Page))
        unread = tuple((s.url, error) for s in sources if isinstance(error := outcomes[s.number], FetchError))
        looked_for = sum(map(len, groups))
        most = f"only the first {looked_for} sentences were searched for" if looked_for < len(sentences) else ""
        why = f"searches failed: {'; '.join(dict.fromkeys(failures))}" if failures else ""
        return _Evidence(pages, unread, say_all(most, why))


async def _fetch_pages(sources: Sequence[Source], fetch: Fetch) -> dict[int, Page | FetchError]:
    limit = asyncio.Semaphore(MAX_CONCURRENT_FETCHES)

    async def one(source: Source) -> Page | FetchError:
        async with limit:
            try:
                return await fetch(source.url)
            except FetchError as error:
                return error

    outcomes = await gather_all(map(one, sources))
    return {source.number: outcome for source, outcome in zip(sources, outcomes, strict=True)}


def _state_of(source: Source, text: str | None, *, is_new: bool = False) -> SourceState:
    if text is None:
        return SourceState(source, "missing", "no stored text of this page was found")
    return SourceState(source, "fresh" if is_new else "stored", digest=source.digest)


def _group_sentences(sentences: Sequence[str], most: int) -> list[Sequence[str]]:
    """Neighbouring sentences in groups of nearly one size, about as many groups as may be looked for."""
    size = min(MAX_GROUP, max(MIN_GROUP, -(-len(sentences) // most)))
    return [sentences[at : at + size] for at in range(0, len(sentences), size)]


def _build_query(sentences: Sequence[str], topic: str) -> str:
    """The words of some sentences that tell most: names and numbers first, then long words, in their order."""
    words = list(dict.fromkeys(word for text in (topic, *sentences) for word in _WORD.findall(text) if word_terms(word)))
    names = {word for text in sentences for word in _WORD.findall(text)[1:] if word[0].isupper() or word[0].isdigit()}
    best = sorted(words, key=lambda word: (word not in names, -len(word)))[:MAX_QUERY_WORDS]
    return " ".join(word for word in words if word in best)


# documents, and the stored texts they rest on


class _PageArchive:
    """Stored texts of pages. A source that names its digest is found by that alone: another text is not what was cited."""

    def __init__(self, runs: RunStore, cache: PageCache, fetchers: tuple[str, ...], *, run: str = "") -> None:
        self._runs, self._cache, self._fetchers = runs, cache, fetchers
        self._known: dict[str, str] = {}
        self._rest = self._runs_to_read(run)

    async def text(self, source: Source) -> str | None:
        """The text behind a source, or None where nothing sound is kept."""
        if source.digest:
            return await self._runs.pages.get(source.digest) or await asyncio.to_thread(self._cached_text, source)
        if not is_web_url(source.url):
            return None
        digest = await asyncio.to_thread(self._last_digest, dedup_key(source.url))
        stored_text = await self._runs.pages.get(digest) if digest else None
        return stored_text if stored_text is not None else await asyncio.to_thread(self._cached_text, source)

    def _last_digest(self, key: str) -> str:
        """The digest under which a run fetched this page last; logs are read only as far as that takes."""
        while key not in self._known and (run := next(self._rest, "")):
            for fact in _facts_of(self._runs, run):
                addresses, digest = [], ""
                if isinstance(fact, PageFetched):
                    addresses, digest = [fact.url, fact.final_url], fact.digest
                elif isinstance(fact, SourceNumbered) and fact.source.digest:
                    addresses, digest = [fact.source.url], fact.source.digest
                for url in filter(is_web_url, addresses):
                    self._known.setdefault(dedup_key(url), digest)
        return self._known.get(key, "")

    def _runs_to_read(self, first: str) -> Iterator[str]:
        """The run a document says it comes from, then all others, newest first."""
        if first:
            yield first
        yield from (run.id for run in self._runs.list_runs() if run.id != first)

    def _cached_text(self, source: Source) -> str | None:
        for name in self._fetchers if is_web_url(source.url) else ():
            page, _ = self._cache.get(cache_key(name, source.url))
            if page and source.digest in ("", content_digest(page.text)):
                return page.text
        return None


def _facts_of(runs: RunStore, run_id: str) -> Sequence[Fact]:
    """The facts of a run as far as they can be read."""
    try:
        return runs.open_log(run_id).bare_facts
    except DamagedLogError as error:
        return error.readable.bare_facts if error.readable else ()
    except StoreError:
        return ()


def _nothing_to_verify(cause: str, fix: str = "give an answer, a report or any text") -> NoEvidenceError:
    return NoEvidenceError("there is nothing to verify", cause=cause, fix=fix)


def _read_text(text: str) -> Document:
    """A text as a document: what `--json` printed, HTML with its notes, or Markdown."""
    begin = text[:2_000].lstrip("\ufeff \t\r\n").casefold()
    if begin.startswith("{"):
        try:
            return read_printed_answer(json.loads(text))
        except (ValueError, AttributeError, RecursionError):
            return read_markdown(text)
    if begin.startswith(("<!doctype html", "<html")):
        from nexi.formats import extract

        return read_markdown(extract(text, "text/html", "", cites_notes=True).text)
    return read_markdown(text)


def _find_document(prefix: str, runs: RunStore, history: HistoryStore) -> Document:
    if runs.has_run(prefix):
        matches, entry = [prefix], history.get(prefix)
    else:
        entries = {entry.id: entry for entry in reversed(history.read().entries) if entry.id.startswith(prefix)}
        matches = sorted({run.id for run in runs.list_runs() if run.id.startswith(prefix)} | set(entries))
        entry = entries.get(matches[0]) if matches else None
    name = prefix[:80]
    if not matches:
        cause = "an id is six hexadecimal digits, such as 3fa9c1, or the first few of them"
        fix = "nexi --last 10 lists ids; - reads stdin"
        raise NexiError(f"there is no file and no run called {name!r}", cause=cause, fix=fix, code="not_found")
    if len(matches) > 1:
        cause = ", ".join(matches[:10])
        raise NexiError(f"{name!r} begins several ids", cause=cause, fix="give more of the id", code="ambiguous")
    run_id = matches[0]
    facts = _facts_of(runs, run_id)
    end = find_end(facts)
    if isinstance(end, RunFinished):
        question = facts[0].query if isinstance(facts[0], RunStarted) else ""
        sources = {**map_sources(facts), **{source.number: source for source in end.sources}}
        numbers = extract_citation_markers(end.answer)
        citations = tuple(source for number, source in sorted(sources.items()) if number in numbers)
        return build_answer_document(end.answer, citations, run_id, question)
    if entry is None:
        cause, fix = "it did not end with one", "nexi --last 10 lists answers"
        raise NexiError(f"run {run_id} has no answer", cause=cause, fix=fix, code="not_ended")
    # the history keeps URLs in the order of their numbers, and no digests
    citations = tuple(Source(number, url) for number, url in enumerate(entry.urls, 1))
    return build_answer_document(entry.answer, citations, entry.id, entry.query)
