"""Research as it is shown: plain lines, the header, and a line for each researcher."""

from __future__ import annotations

import pytest

from nexi.events import (
    AgendaSet,
    Event,
    LimitReached,
    ModelReplied,
    ResearcherFailed,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    RunResumed,
    RunStarted,
    SearchFinished,
    StatusDelta,
    ToolFinished,
    ToolStarted,
    is_fact,
)
from nexi.output.screen import _format_change, _format_headline, _format_researcher, _PlainPanel
from nexi.research.state import ResearchState, fold
from nexi.types import StopReason, Usage

EVENTS: list[Event] = [
    RunStarted("How far is the Moon?", "m", "model", "research"),
    StatusDelta("planning"),
    AgendaSet(("How far is the Moon?", "What are\x1b[31m tides?"), 1),
    ResearcherStarted("1.1", 1, "How far is the Moon?"),
    ResearcherStarted("1.2", 1, "What are\x1b[31m tides?"),
    ToolStarted("c1", "search", '{"queries": ["Moon"]}', "1.1"),
    SearchFinished("Moon", "searxng", (), (), 0.1, "1.1"),
    ToolFinished("c1", "search", True, "", 0.1, "1.1"),
    ModelReplied(1, "", (), Usage(1200, 34, cost=0.0123), "stop", 0.5, "1.1"),
    ResearcherReported("1.1", "Far [1]."),
    ResearcherFailed("1.2", "llm", "the model is gone"),
    RoundEvaluated(1, "delegate", ("What is a neap tide?",)),
    ResearcherStarted("2.1", 2, "What is a neap tide?"),
    LimitReached(StopReason.BUDGET_SPENT),
    ResearcherReported("2.1", "Low [2]."),
    RoundEvaluated(2, "synthesise", text="# Report"),
]


def after(count: int) -> ResearchState:
    return fold(e for e in EVENTS[:count] if is_fact(e))


def test_off_a_terminal_everything_that_changes_the_picture_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    panel = _PlainPanel(verbose=False)
    for event in EVENTS:
        panel.show_event(event)
    assert capsys.readouterr().err.splitlines() == [
        "Planned 2 tasks (depth 1): How far is the Moon?; What are tides?",
        "Researcher 1.1 started: How far is the Moon?",
        "Researcher 1.2 started: What are tides?",
        "Researcher 1.1 reported",
        "Researcher 1.2 found nothing",
        "Round 1: following up on What is a neap tide?",
        "Researcher 2.1 started: What is a neap tide?",
        "Finishing: budget spent",
        "Researcher 2.1 reported",
        "Round 2 done; writing the report",
    ]


def test_with_verbose_the_details_stand_between_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    panel = _PlainPanel(verbose=True)
    for event in EVENTS[:9]:
        panel.show_event(event)
    lines = capsys.readouterr().err.splitlines()
    assert "Researcher 1.1 started: How far is the Moon?" in lines
    assert any("search" in line and "Moon" in line for line in lines[-4:])


def test_a_resumed_run_says_how_much_is_known() -> None:
    assert _format_change(RunResumed(17, 3.0)) == "Resuming after 17 facts"


@pytest.mark.parametrize(
    ("count", "status", "head"),
    [
        (1, "planning", "Research: planning · 31 s"),
        (5, "", "Research: 6% · round 1 of 2 · 31 s"),
        (9, "", "Research: 10% · round 1 of 2 · 1,234 tokens · $0.0123 · 31 s"),
        (11, "evaluating", "Research: 66% · round 1 of 2 · evaluating · 1,234 tokens · $0.0123 · 31 s"),
        (14, "", "Research: 70% · round 2 of 2 · finishing: budget spent · 1,234 tokens · $0.0123 · 31 s"),
    ],
)
def test_the_header_tells_progress_round_cost_and_time(count: int, status: str, head: str) -> None:
    assert _format_headline(after(count), 31.2, status) == head


def test_each_researcher_is_a_line_with_its_phase_its_last_action_and_what_it_took() -> None:
    assert [_format_researcher(r) for r in after(9).researchers] == [
        '1.1 · gathering · 1,234 tokens · $0.0123 · search "Moon" · How far is the Moon?',
        "1.2 · starting · What are tides?",
    ]
    assert [_format_researcher(r) for r in after(11).researchers] == [
        "1.1 · reported · 1,234 tokens · $0.0123 · How far is the Moon?",
        "1.2 · failed · the model is gone · What are tides?",
    ]
