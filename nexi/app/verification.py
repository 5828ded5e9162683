"""Documents to verify, and the stored texts they rest on: run logs, pages by digest, history and the page cache, joined."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence

from msgspec import Struct

from nexi.answers.citations import extract_citation_markers
from nexi.answers.document import Document, build_answer_document, read_answer, read_markdown
from nexi.app.request import RunLimits
from nexi.errors import NexiError, NoEvidenceError, StoreError
from nexi.events import Fact, PageFetched, RunFinished, RunStarted, SourceNumbered, find_end, map_sources
from nexi.fetchers.cache import PageCache, cache_key
from nexi.ports import HistoryStore, RunStore
from nexi.runs.log_format import DamagedLogError
from nexi.types import Source, content_digest
from nexi.urls import dedup_key, is_web_url


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


class PageArchive:
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


def document_of(target: Target, runs: RunStore, history: HistoryStore) -> Document:
    """The document to verify. Raises NexiError where there is none, NoEvidenceError where nothing is in it."""
    document = _by_id(target.id, runs, history) if target.id else read_text(target.text)
    if not document.text.strip():
        raise nothing_to_verify("it is empty")
    return document


def nothing_to_verify(cause: str, fix: str = "give an answer, a report or any text") -> NoEvidenceError:
    return NoEvidenceError("there is nothing to verify", cause=cause, fix=fix)


def read_text(text: str) -> Document:
    """A text as a document: what `--json` printed, HTML with its notes, or Markdown."""
    begin = text[:2_000].lstrip("\ufeff \t\r\n").casefold()
    if begin.startswith("{"):
        try:
            return read_answer(json.loads(text))
        except (ValueError, AttributeError, RecursionError):
            return read_markdown(text)
    if begin.startswith(("<!doctype html", "<html")):
        from nexi.formats import extract

        return read_markdown(extract(text, "text/html", "", cites_notes=True).text)
    return read_markdown(text)


def _by_id(prefix: str, runs: RunStore, history: HistoryStore) -> Document:
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
