"""A conversation that went on in another process, taken up again.

The doors above ask for the session after the last answer. It is put together from the logs of the runs that led there and
the page texts they rest on; where a run is gone, the history still has its question, answer and URLs. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nexi.answers.citations import CitationBook, extract_citation_markers, format_citations_section
from nexi.config import Config
from nexi.errors import NexiError, StoreError
from nexi.events import Fact, RunFinished, RunStarted, SourceNumbered
from nexi.history import HistoryEntry, get_latest_entry
from nexi.ports import Clock
from nexi.runs.directory import RunDirectory
from nexi.runs.session import Session
from nexi.types import Message, Page, Source
from nexi.urls import hit_key
from nexi.values import frozen

MOST_TURNS = 10


@frozen
class Turn:
    """One answered question, and the run it continued."""

    id: str
    question: str
    answer: str
    sources: tuple[Source, ...]
    continues: str = ""


async def last_conversation(config: Config, clock: Clock) -> Session:
    """The session after the last answer in the history. Raises NexiError when there is none."""
    entry = get_latest_entry(config.history_path)
    if entry is None:
        raise NexiError("there is no answer to go on from", code="not_found", fix='ask something first: nexi "your question"')
    runs = RunDirectory(config.runs_dir, config.pages_dir, clock=clock)
    return await _session_after(runs, list(_turns(runs, _logged(runs, entry.id) or _remembered(entry))))


async def conversation_after(runs: RunDirectory, run_id: str) -> Session:
    """The session after this run; an empty one when its log is gone."""
    turn = _logged(runs, run_id)
    return await _session_after(runs, list(_turns(runs, turn))) if turn else Session()


async def _session_after(runs: RunDirectory, turns: Sequence[Turn]) -> Session:
    session = Session(message for turn in reversed(turns) for message in _messages(turn))
    session.last_run = turns[0].id
    await take_up(session, runs, turns[0].sources)
    return session


async def take_up(session: Session, runs: RunDirectory, sources: Sequence[Source]) -> None:
    """Give a session the sources of an earlier one, with their numbers and texts."""
    session.book = CitationBook(hit_key, sources)
    for source in sources:
        await _take_up(session, runs, source)


def cited_sources(config: Config, clock: Clock, entry: HistoryEntry) -> tuple[Source, ...]:
    """The sources that an answer of the history cites; where its run is gone, the addresses that the history kept."""
    try:
        facts = [fact for _, fact in RunDirectory(config.runs_dir, config.pages_dir, clock=clock).open_log(entry.id).facts]
    except StoreError:
        facts = []
    end = next((fact for fact in reversed(facts) if isinstance(fact, RunFinished)), None)
    if end is not None:
        return end.sources
    numbers = extract_citation_markers(entry.answer)
    kept = _remembered(entry).sources
    return tuple(s for s in kept if s.number in numbers) or kept


def _turns(runs: RunDirectory, turn: Turn) -> Iterator[Turn]:
    """A turn and those it continued, newest first, as far back as their logs are kept."""
    seen = {turn.id}
    yield turn
    while turn.continues and turn.continues not in seen and len(seen) < MOST_TURNS:
        earlier = _logged(runs, turn.continues)
        if earlier is None:
            return
        turn = earlier
        seen.add(turn.id)
        yield turn


def _logged(runs: RunDirectory, run_id: str) -> Turn | None:
    try:
        facts = [fact for _, fact in runs.open_log(run_id).facts]
    except StoreError:
        return None  # removed, damaged, or never an id: the history knows enough
    return _told(run_id, facts)


def _told(run_id: str, facts: list[Fact]) -> Turn | None:
    if not (facts and isinstance(start := facts[0], RunStarted) and isinstance(end := facts[-1], RunFinished)):
        return None
    sources = {f.source.number: f.source for f in facts if isinstance(f, SourceNumbered)}
    return Turn(run_id, start.query, end.answer, tuple(sources.values()), str(start.settings.get("continues", "")))


def _remembered(entry: HistoryEntry) -> Turn:
    """The history keeps URLs in the order of their numbers."""
    return Turn(entry.id, entry.query, entry.answer, tuple(Source(n, url) for n, url in enumerate(entry.urls, 1)))


def _messages(turn: Turn) -> tuple[Message, Message]:
    urls = {s.number: s.url for s in turn.sources}
    listed = format_citations_section(urls, url_to_title={s.url: s.title for s in turn.sources})
    return Message("user", turn.question), Message("assistant", f"{turn.answer}\n\n{listed}".strip())


async def _take_up(session: Session, runs: RunDirectory, source: Source) -> None:
    """Let the page be read again, from our own disk where its text is kept."""
    session.allow_urls([source.url])
    text = await runs.pages.get(source.digest)
    if text is not None:
        session.add_page(source.url, Page(source.url, text, title=source.title, final_url=source.url))
