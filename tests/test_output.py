"""What is printed, off a terminal and on one that only remembers."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from nexi import output
from nexi.errors import ConfigError
from nexi.events import (
    Event,
    ModelAsked,
    ModelFailed,
    PageFailed,
    PageFetched,
    RunFinished,
    SearchFinished,
    StatusDelta,
    TextDelta,
    ToolStarted,
    Warned,
)
from nexi.output.proof import evidence_line
from nexi.output.screen import Screen
from nexi.output.status import RunTally, detail_of, progress_of, status_of
from nexi.types import Answer, Evidence, Hit, Source, StopReason, Usage, Verdict

MOON = Source(1, "https://www.moon.example/facts", "Moon facts")
ASKED = ModelAsked(1, "answer", "scripted", 100)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


Terminals = Callable[..., tuple[Terminal, Terminal]]


@pytest.fixture
def terminals(monkeypatch: pytest.MonkeyPatch) -> Terminals:
    """Both streams as terminals of 60 columns, from the call on."""

    def use(*, same: bool = False, **env: str) -> tuple[Terminal, Terminal]:
        for name, value in {"COLUMNS": "60", "LINES": "20", "TERM": "xterm", **env}.items():
            monkeypatch.setenv(name, value)
        out = Terminal()
        err = out if same else Terminal()
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        return out, err

    return use


class Result:
    """As much of a run's result as a screen reads."""

    def __init__(self, text: str, *sources: Source, cost: float | None = 0.0) -> None:
        self.answer = Answer(text, sources)
        usage = Usage(1200, 34, cost=cost)
        self.finished = RunFinished(text, sources, StopReason.FINAL_ANSWER, 2, usage, 1.26, 3, 2)
        self.read_urls = [source.url for source in sources]


def show(screen: Screen, *events: Event, result: Any = None) -> None:
    for event in events:
        screen.show(event)
    screen.end()
    if result:
        screen.finish(result)


# Text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 👩‍🚀 שלום\n\ttext", "plain ü 👩‍🚀 שלום\n\ttext"),
        ("\x1b[1;31mred\x1b[0m \x9b31mred", "red red"),
        ("\x1b]8;;http://evil.test\x07link\x1b]8;;\x1b\\ \x1b]52;c;aGk=\x07", "link "),
        ("\x1bPq#1\x1b\\ \x1bc \x1b(B", "  "),
        ("an unfinished \x1b]0;title", "an unfinished 0;title"),
        ("one\r\ntwo\rthree\x0bfour\x85five\u2028six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("\u202egnp.exe\u202c \u2067x\u2069 bell\x07 nul\x00 del\x7f", "gnp.exe x bell nul del"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_text_of_strangers_shows_and_does_nothing_else(text: str, shown: str) -> None:
    assert output.clean_text(text) == shown


def test_what_is_written_is_clean_and_fits_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    output.write("é \x1b[2Jשלום\n")
    assert raw.getvalue() == b"\xe9 ????\n"


def test_json_loses_nothing_and_commands_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"answer": "\x1b[31m \x9b \u202e \x7f é שלום \u2028"}
    output.print_json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert shown == '{"answer": "\\u001b[31m \\u009b \\u202e \\u007f é שלום \\u2028"}\n'


# Messages


def test_an_answer_in_a_pipe_is_markdown_with_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_answer(
        "**Far** [2] [1].",
        url_citations={"https://b.example/": 2, "https://a.example/\x1b[1m": 1},
        url_to_title={"https://b.example/": "A \x1b[31mtitle\nof two lines"},
    )
    assert capsys.readouterr() == (
        "**Far** [2] [1].\n\nSources:\n[1] https://a.example/\n[2] A title of two lines - https://b.example/\n",
        "",
    )


def test_an_answer_on_a_terminal_is_drawn(terminals: Terminals) -> None:
    out, _err = terminals()
    output.print_answer("# Moon\nIt is **far** [1].", url_citations={MOON.url: 1}, url_to_title={MOON.url: MOON.title})
    assert out.getvalue() == (
        "\x1b[1;4mMoon\x1b[0m\n\nIt is \x1b[1mfar\x1b[0m [1].\n\n"
        "\x1b[1mSources\x1b[0m\n"
        "\x1b[36m[1] \x1b[0mMoon facts\x1b[32m  moon.example\x1b[0m\n"
        "\x1b[2m    https://www.moon.example/facts\x1b[0m\n"
    )


@pytest.mark.parametrize(
    ("cost", "words"), [(None, "cost unknown"), (0.0, "free"), (0.00001, "under $0.0001"), (0.01234, "$0.0123")]
)
def test_the_summary_says_time_pages_tokens_and_cost(
    capsys: pytest.CaptureFixture[str], cost: float | None, words: str
) -> None:
    show(Screen(usage=True), result=Result("Far [1].", MOON, cost=cost))
    assert capsys.readouterr().err == f"1.3 s, 2 iterations, 1 page read, 1,234 tokens, {words}\n"


def test_a_failure_says_what_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("it broke", cause="a \x1b[2Jreason", fix="mend it")
    output.print_failure(error)
    output.print_failure(error, as_json=True)
    said = capsys.readouterr()
    assert said.err == "Error: it broke: a reason\n  Fix: mend it\n"
    assert json.loads(said.out) == {"error": "it broke: a \x1b[2Jreason", "code": error.code, "fix": "mend it"}


@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_the_environment_can_forbid_colours(terminals: Terminals, name: str) -> None:
    _, err = terminals(**{name: "dumb"})
    output.print_warning("careful")
    assert err.getvalue() == "Warning: careful\n"


# Progress


def test_off_a_terminal_the_model_calls_are_not_shown_and_warnings_have_their_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen(), ASKED, ASKED, Warned("w", "careful"), ASKED, TextDelta("Far [1]."), result=Result("Far [1].", MOON))
    assert capsys.readouterr() == (
        "Far [1].\n\nSources:\n[1] Moon facts - https://www.moon.example/facts\n",
        "Warning: careful\n",
    )


def test_a_quiet_screen_tells_warnings_only(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen(quiet=True), ASKED, TextDelta("Far."), Warned("w", "careful"))
    assert capsys.readouterr() == ("", "Warning: careful\n")


def test_a_plain_terminal_gets_stretches_and_notes_only_between_lines(terminals: Terminals) -> None:
    out, _ = terminals(same=True, NO_COLOR="1")
    result = Result("One [1]. Two.\n\nThree.", MOON)
    show(
        Screen(),
        ASKED,
        TextDelta("\n\nOne [1]. "),
        Warned("w", "careful"),
        TextDelta("Two.\n"),
        TextDelta("\nThree.\n\n"),
        result=result,
    )
    assert out.getvalue() == (
        "One [1]. Two.\n\nThree.\nWarning: careful\n\n"
        "Sources:\n[1] Moon facts - https://www.moon.example/facts\n"
        "\n1.3 s, 2 iterations, 1 page read, 1,234 tokens, free\n"
    )


def test_what_was_not_streamed_follows_and_nothing_is_shown_twice(terminals: Terminals) -> None:
    out, _err = terminals()
    show(Screen(), TextDelta("One.\n\n"), TextDelta("Two. "), result=Result("One.\n\nTwo. Three."))
    assert out.getvalue() == "One.\n\nTwo.\nThree.\n"


def test_an_answer_that_was_streamed_otherwise_is_followed_by_its_corrections(terminals: Terminals) -> None:
    out, _err = terminals()
    show(Screen(), TextDelta("Draft."), result=Result("Final."))
    changes = "\x1b[1m • \x1b[0mRemoved: Draft.\n\x1b[1m • \x1b[0mReplaced by: Final.\n"
    assert out.getvalue() == f"Draft.\nCorrected after it was written:\n\n{changes}"


def test_a_block_under_way_is_never_taller_than_the_terminal(terminals: Terminals) -> None:
    out, err = terminals()
    screen = Screen(clock=lambda: 0.0)
    screen.show(TextDelta("".join(f"- item {n}\n" for n in range(100))))
    drawn = err.getvalue().rpartition("item 99")[0]
    assert drawn.count("item") == 16
    screen.end()
    assert out.getvalue().count("item") == 100


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (ASKED, "Thinking"),
        (ModelAsked(2, "extract", "m", 1), "Reading closely"),
        (ToolStarted("c", "web_search", '{"queries": ["moon", 3, "mars"]}'), 'Searching "moon", "mars"'),
        (ToolStarted("c", "web_search", "[" * 100_000), "Searching "),
        (
            ToolStarted("c", "web_get", '{"urls": ["https://www.a.example/x", "https://a.example/y", "no url"]}'),
            "Reading a.example, no url",
        ),
        (ToolStarted("c", "web_get", '{"urls": "x"}'), "Reading "),
        (ToolStarted("c", "tickets_find", "{}"), "Calling tickets_find"),
        (ToolStarted("c", "final_answer", "{}"), ""),
        (SearchFinished("moon", "searxng", (Hit("https://a.example"),), (), 0.1), 'Found 1 result for "moon"'),
        (PageFetched("https://a.example/x", "", "", "", 1, 1, 0.1), "Read a.example"),
        (PageFetched("https://a.example/x", "", "", "", 1, 1, 0.1, ahead=True), ""),
        (PageFailed("https://a.example/x", "timeout", "slow", 0.1), "Could not read a.example"),
        (TextDelta("x"), "Writing"),
        (StatusDelta("Busy"), "Busy"),
        (Warned("w", "careful"), ""),
    ],
)
def test_the_status_line_says_what_is_going_on(event: Event, status: str) -> None:
    assert status_of(event) == status


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ToolStarted("c", "tickets_find", "{}"), "Calling tickets_find"),
        (ToolStarted("c", "local_search", "{}"), "Searching the knowledge base"),
        (ToolStarted("c", "web_search", '{"queries": ["moon"]}'), ""),
        (SearchFinished("moon", "searxng", (Hit("https://a.example"),), (), 0.1), 'Searched "moon": 1 result from searxng'),
    ],
)
def test_a_line_of_progress_names_each_search_and_each_tool_once(event: Event, line: str) -> None:
    assert progress_of(event) == line


def test_the_status_line_counts_and_stays_one_line() -> None:
    tally = RunTally()
    for event in (SearchFinished("a", "b", (), (), 0.1), PageFetched("https://a.example", "", "", "", 1, 1, 0.1)):
        tally.count_event(event)
    tally.count_event(StatusDelta("two\nlines \x1b[2J"))
    assert tally.status_line(3.4) == "two lines · 1 search · 1 page · 3 s"


def test_details_of_a_failure_have_its_message_only() -> None:
    assert detail_of(ModelFailed(1, "auth", "the key was refused", "mend it", 0.1)) == ("<- failed: the key was refused", "red")


def test_evidence_says_once_why_it_contradicts_and_shows_its_passage_without_links() -> None:
    reason = "the source says '186 metres' where the sentence says '190 metres'"
    span = 'The [Varn bridge](https://varn.example/ "Varn") is **186 metres** long.'
    evidence = Evidence(
        1, "u", "d", Verdict.CONTRADICTED, 0.9, 0.9, 0, 9, span, reason, ("190 metres", "3.9.0"), other="186 metres"
    )
    passage = "“The Varn bridge is 186 metres long.”"
    assert evidence_line(evidence) == f"[1] contradicted; {reason}; also not in this passage: 3.9.0; {passage}"
