"""The library without an event loop: the same values and errors, connections and conversations over several calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi import sync
from nexi.app import RunRequest, RunResult, Session
from nexi.config import Config
from nexi.errors import FetchError, NexiError, QuestionError
from nexi.events import Event, RunFinished
from nexi.sync import SyncNexi
from nexi.testing import FakeWeb
from nexi.types import Page, Query, SearchOutcome

MOON, MARS = "https://moon.example/facts", "https://mars.example/facts"
PAGES = {
    MOON: "# Moon facts\n\nThe Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    MARS: "# Mars facts\n\nMars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
}
QUESTION = "How far is the Moon from Earth on average?"


def opened(home: Path, web: FakeWeb | None = None) -> SyncNexi:
    web = web or FakeWeb(PAGES)
    return SyncNexi(Config(home=home, model="extractive"), backends=[web], fetchers=[web])


def test_hits_pages_answers_and_reports_come_back_as_values(tmp_path: Path) -> None:
    with opened(tmp_path) as nexi:
        found: SearchOutcome = nexi.find(Query("moon distance", count=1))
        page: Page = nexi.fetch(MOON)
        answer: RunResult = nexi.search(QUESTION)
        report: RunResult = nexi.research(RunRequest(QUESTION, depth=1))
    assert ([hit.url for hit in found.hits], page.text) == ([MOON], PAGES[MOON])
    assert "384,400 km" in answer.answer.text
    assert [source.url for source in answer.answer.sources] == [MOON]
    assert "384,400 km" in report.answer.text


def test_events_are_told_as_they_happen_and_a_session_carries_the_conversation(tmp_path: Path) -> None:
    events: list[Event] = []
    session = Session()
    with opened(tmp_path) as nexi:
        first = nexi.search(QUESTION, session=session, on_event=events.append)
        nexi.search("Which moons does Mars have?", session=session)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].answer == first.answer.text
    assert [source.url for source in session.book.sources] == [MOON, MARS]


def test_errors_are_those_of_the_library(tmp_path: Path) -> None:
    with opened(tmp_path) as nexi:
        with pytest.raises(FetchError, match="does not exist"):
            nexi.fetch("https://moon.example/nothing")
        with pytest.raises(QuestionError):
            nexi.search("  ")
        assert nexi.fetch(MOON).text == PAGES[MOON]


def test_one_call_opens_and_closes_what_it_needs(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive")
    with pytest.raises(FetchError):
        sync.fetch("http://127.0.0.1:9/", config)
    with pytest.raises(QuestionError):
        sync.find("", config)
    for call in (sync.search, sync.research):
        with pytest.raises(QuestionError):
            call("", config)


async def test_calls_inside_an_event_loop_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NexiError, match="running event loop"):
        sync.search(QUESTION, Config(home=tmp_path, model="extractive"))
