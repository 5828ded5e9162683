"""Continues a conversation from another process: from the logs of the runs before it and their stored pages.

If a log was removed, the history still has question, answer and URLs. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from nexi.answers.citations import CitationBook, extract_citation_markers, format_citations_section
from nexi.errors import NexiError, StoreError
from nexi.events import RunFinished, RunStarted, find_end, map_sources
from nexi.ports import HistoryStore, RunStore
from nexi.runs.session import Session
from nexi.types import HistoryEntry, Message, Page, Source
from nexi.urls import hit_key

MAX_EXCHANGES = 10


class _PastExchange(Struct, frozen=True):
    """One answered question, and the run it continued."""

    id: str
    question: str
    answer: str
    sources: tuple[Source, ...]
    continues: str = ""


async def load_last_conversation(runs: RunStore, history: HistoryStore) -> Session:
    """Load the session after the last answer in the history. Raises NexiError when there is none."""
    entry = next(iter(history.read(1).entries), None)
    if entry is None:
        raise NexiError("there is no answer to follow up", code="not_found", fix='ask something first: nexi "your question"')
    return await _build_session(runs, _load_exchange(runs, entry.id) or _exchange_from_history(entry))


async def load_conversation_after(runs: RunStore, run_id: str) -> Session:
    """Load the session after this run; an empty one if its log was removed."""
    exchange = _load_exchange(runs, run_id)
    return await _build_session(runs, exchange) if exchange else Session()


async def _build_session(runs: RunStore, newest: _PastExchange) -> Session:
    """The session after an exchange and those it continued, as far back as there are logs."""
    exchanges, ids = [newest], {newest.id}
    while (before := exchanges[-1].continues) and before not in ids and len(ids) < MAX_EXCHANGES:
        if (earlier := _load_exchange(runs, before)) is None:
            break
        exchanges.append(earlier)
        ids.add(earlier.id)
    messages = []
    for exchange in reversed(exchanges):
        urls = {s.number: s.url for s in exchange.sources}
        citations = format_citations_section(urls, url_to_title={s.url: s.title for s in exchange.sources})
        answer = f"{exchange.answer}\n\n{citations}".strip()
        messages += [Message("user", exchange.question), Message("assistant", answer)]
    session = Session(messages)
    session.last_run = newest.id
    await restore_sources(session, runs, newest.sources)
    return session


async def restore_sources(session: Session, runs: RunStore, sources: Sequence[Source]) -> None:
    """Add the sources of an earlier session to this one, with their numbers and texts."""
    session.book = CitationBook(hit_key, sources)
    for source in sources:
        session.allow_urls([source.url])
        if (text := await runs.pages.get(source.digest)) is not None:
            session.add_page(source.url, Page(source.url, text, title=source.title, final_url=source.url))


def cited_sources(runs: RunStore, entry: HistoryEntry) -> tuple[Source, ...]:
    """Return the sources that an answer in the history cites; if its log was removed, the URLs in the history."""
    with suppress(StoreError):
        end = find_end(runs.open_log(entry.id).bare_facts)
        if isinstance(end, RunFinished):
            return end.sources
    numbers = extract_citation_markers(entry.answer)
    sources = _exchange_from_history(entry).sources
    return tuple(s for s in sources if s.number in numbers) or sources


def _load_exchange(runs: RunStore, run_id: str) -> _PastExchange | None:
    try:
        facts = runs.open_log(run_id).bare_facts
    except StoreError:
        return None  # removed, damaged or not an id: the history has enough
    if not (facts and isinstance(start := facts[0], RunStarted) and isinstance(end := facts[-1], RunFinished)):
        return None
    sources = map_sources(facts)
    return _PastExchange(run_id, start.query, end.answer, tuple(sources.values()), str(start.settings.get("continues", "")))


def _exchange_from_history(entry: HistoryEntry) -> _PastExchange:
    """The history keeps URLs in the order of their numbers."""
    return _PastExchange(entry.id, entry.query, entry.answer, tuple(Source(n, url) for n, url in enumerate(entry.urls, 1)))
