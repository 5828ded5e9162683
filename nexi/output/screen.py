"""Shows a run: progress on stderr, the answer on stdout.

A terminal gets Markdown and a status line, a plain one gets text, a pipe gets the answer at the end. Research has a panel with
a line for each researcher, whose numbers come from the state that the reducer folds from the facts, as those of the page do.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nexi import events
from nexi.answers.answered import describe_answered
from nexi.answers.papers import count_works
from nexi.answers.streaming import find_rest
from nexi.app.research_state import UNITS_PER_RESEARCHER, Researcher, ResearchState, reduce
from nexi.output._messages import cost_text, print_answer, print_note, print_result_summary, print_sources, print_warning
from nexi.output.blocks import BlockStream
from nexi.output.proof import GOOD, REJECTED, evidence_line, figures_line, support_by_source, verdict_words
from nexi.output.status import RunTally, detail_of, progress_of
from nexi.output.streams import WordWrapper, columns_of, is_tty, open_console, print_styled, takes_colors, write, write_raw
from nexi.text.controls import clean_line, clean_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

    from nexi.app import RunResult
    from nexi.types import Review

REDRAWS_PER_S = 8
ROWS_BELOW = 3  # the blank line above, the status line, and the cursor line
MAX_TASK_CHARS = 60
BAR_COLUMNS = 8
MARKS = {"reported": "✓", "failed": "✗"}
PLAIN_MARKS = {"reported": "+", "failed": "x"}
FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


class _ProgressDisplay:
    """Shows the progress of a run; this base class shows nothing."""

    def show_event(self, event: events.Event) -> None:
        """Show an event."""

    @contextmanager
    def pause_drawing(self) -> Iterator[None]:
        yield

    def show_tail(self, text: str, *, apart: bool = False) -> None:
        """Show the unfinished end of the answer; `apart` puts a blank line above it."""

    def end(self) -> None:
        """Stop showing progress, at least for now."""


class _ProgressLines(_ProgressDisplay):
    """A line for each event, where nothing can be redrawn."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose

    def show_event(self, event: events.Event) -> None:
        if self._verbose:
            text, style = detail_of(event)
        else:  # searches, delays, and pages as they are handed to the model
            text, style = "" if isinstance(event, events.ModelAsked) else clean_line(progress_of(event)), "dim"
        if text:
            print_note(text, None, style)


class _LiveDisplay(_ProgressDisplay, ABC):
    """Redraws itself at the bottom of a terminal; permanent output is written above it, inside `pause_drawing`."""

    def __init__(self, verbose: bool, clock: Callable[[], float]) -> None:
        self._console = open_console("stderr")
        self._details = _ProgressLines(verbose=True) if verbose else None
        self._clock, self._started = clock, clock()
        self._live: Live | None = None
        self._body, self._is_apart = "", False

    def show_event(self, event: events.Event) -> None:
        """Show the display, and with `verbose` the details of the event above it."""
        if self._details and detail_of(event)[0]:
            with self.pause_drawing():
                self._details.show_event(event)
        self.start()

    def start(self) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(
                self,
                console=self._console,
                transient=True,
                refresh_per_second=REDRAWS_PER_S,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)

    def end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    @contextmanager
    def pause_drawing(self) -> Iterator[None]:
        """Remove the display while permanent output is written."""
        was_there = self._live is not None
        self.end()
        yield
        if was_there:
            self.start()

    def show_tail(self, text: str, *, apart: bool = False) -> None:
        """Show the unfinished end of the answer in Markdown; `apart` puts a blank line above it."""
        self._body, self._is_apart = text, apart

    def draw_tail(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        from nexi.output._markdown import render_markdown

        if not self._body.strip():
            return
        if self._is_apart:
            yield Segment.line()
        for line in render_markdown(self._body).lines(console, options)[-max(1, console.size.height - ROWS_BELOW) :]:
            yield from line
            yield Segment.line()

    @abstractmethod
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the display."""


class _StatusLine(_LiveDisplay):
    """A redrawn status line below the end of the answer; with `verbose` also every detail, above both."""

    def __init__(self, verbose: bool, clock: Callable[[], float]) -> None:
        super().__init__(verbose, clock)
        self._tally = RunTally()

    def show_event(self, event: events.Event) -> None:
        self._tally.count_event(event)
        super().show_event(event)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield from self.draw_tail(console, options)
        frames = FRAMES if console.encoding.startswith("utf") else PLAIN_FRAMES
        now = self._clock()
        status = f"{frames[int(now * REDRAWS_PER_S) % len(frames)]} {self._tally.status_line(now - self._started)}"
        yield Text(status, style="dim", no_wrap=True, overflow="ellipsis", end="")


class _PlainPanel(_ProgressDisplay):
    """A line for each change; with `verbose` for everything."""

    def __init__(self, verbose: bool) -> None:
        self._details = _ProgressLines(verbose=True) if verbose else None

    def show_event(self, event: events.Event) -> None:
        if text := _format_change(event):
            print_note(text)
        elif self._details:
            self._details.show_event(event)


class _Panel(_LiveDisplay):
    """The header and one line for each researcher, redrawn; details go above it."""

    def __init__(self, verbose: bool, state: ResearchState, clock: Callable[[], float]) -> None:
        super().__init__(verbose, clock)
        self._state, self._status = state, ""
        # when each researcher called a model first, and when it ended
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def show_event(self, event: events.Event) -> None:
        match event:
            case events.ModelAsked(agent=name) if name:
                self._began.setdefault(name, self._clock())
            case events.ResearcherReported(researcher=name) | events.ResearcherFailed(researcher=name):
                self._ended[name] = self._clock()
            case events.ResearcherStarted(researcher=name):  # again, after a failure
                self._ended.pop(name, None)
        if events.is_fact(event):
            self._state = reduce(self._state, event)
        elif isinstance(event, events.StatusDelta):
            self._status = event.text
        if isinstance(event, events.AgendaSet) and event.estimate and not self._state.proposed:
            with self.pause_drawing():
                print_note(_format_estimate(event))
        super().show_event(event)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        seconds = self._clock() - self._started
        head = Text(_format_headline(self._state, seconds, self._status), style="bold", no_wrap=True, overflow="ellipsis")
        if self._body.strip():
            yield from self.draw_tail(console, options)
            yield head
            return
        yield head
        is_plain = not console.encoding.startswith("utf")
        room = max(1, console.size.height - 3)
        rows = [self._describe_row(researcher, is_plain) for researcher in self._state.researchers]
        rows += [(f" · {_format_waiting(task)}", "dim") for task in self._state.pending_tasks]
        for row, style in rows[-room:]:
            yield Text(row, style=style, no_wrap=True, overflow="ellipsis")

    def _describe_row(self, researcher: Researcher, is_plain: bool) -> tuple[str, str]:
        """Sign, bar, elapsed time, and what a researcher does, with the style of the row."""
        began = self._began.get(researcher.id)
        if began is None and researcher.status == "running":
            return f" · {_format_waiting(researcher.task)}", "dim"
        seconds = 0.0 if began is None else self._ended.get(researcher.id, self._clock()) - began
        mark = (PLAIN_MARKS if is_plain else MARKS).get(researcher.status, "·")
        style = {"reported": "green", "failed": "red"}.get(researcher.status, "dim" if began is None else "")
        full, empty = ("#", "-") if is_plain else ("━", "╌")
        columns = BAR_COLUMNS * researcher.units // UNITS_PER_RESEARCHER
        bar = full * columns + empty * (BAR_COLUMNS - columns)
        return f" {mark} {bar} {seconds:>3.0f} s  {_format_researcher(researcher)}", style


def _format_waiting(task: str) -> str:
    return f"{'':{BAR_COLUMNS}}        waiting · {clean_line(task)[:MAX_TASK_CHARS]}"


def _format_headline(state: ResearchState, seconds: float, status: str = "") -> str:
    """`Research: 45% · round 1 of 3 · 12,400 tokens · $0.02 · 31 s`."""
    parts = [state.header]
    if state.round:
        parts.append(f"round {state.round} of {state.target_rounds}")
    if state.limit:
        parts.append(f"finishing: {state.limit.value.replace('_', ' ')}")
    elif status and not state.running_researchers and state.status != "planning":
        parts.append(clean_line(status))
    if state.usage.total:
        parts.append(f"{state.usage.total:,} tokens")
    if state.usage.cost:
        parts.append(cost_text(state.usage.cost))
    return " · ".join([*parts, f"{seconds:.0f} s"])


def _format_researcher(researcher: Researcher) -> str:
    """One line for a researcher: ID, phase, usage, last action and task; a narrow terminal cuts the end."""
    parts = [researcher.id, researcher.phase]
    if researcher.usage.total:
        parts.append(f"{researcher.usage.total:,} tokens")
    if researcher.usage.cost:
        parts.append(cost_text(researcher.usage.cost))
    if researcher.status == "running" and researcher.last_action:
        parts.append(clean_line(researcher.last_action)[:MAX_TASK_CHARS])
    if researcher.status == "failed":
        parts.append(clean_line(researcher.reason)[:MAX_TASK_CHARS])
    return " · ".join([*parts, clean_line(researcher.task)[:MAX_TASK_CHARS]])


def _format_estimate(event: events.AgendaSet) -> str:
    return f"Depth {event.complexity}: {clean_line(event.estimate)}. Press Ctrl-C once to write the report now."


def _format_change(event: events.Event) -> str:
    """A line for an event where nothing can be redrawn; "" for none."""
    match event:
        case events.AgendaSet(tasks=tasks, complexity=complexity, estimate=estimate):
            count = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
            plan = f"Planned {count} (depth {complexity}): " + "; ".join(clean_line(t) for t in tasks)
            return f"{plan}\n{_format_estimate(event)}" if estimate else plan
        case events.RunResumed(after=after):
            return f"Resuming after {after} facts"
        case events.ResearcherStarted(researcher=name, task=task):
            return f"Researcher {name} started: {clean_line(task)}"
        case events.ResearcherReported(researcher=name):
            return f"Researcher {name} reported"
        case events.ResearcherFailed(researcher=name):  # why is said once, with the report or instead of one
            return f"Researcher {name} found nothing"
        case events.RoundEvaluated(round=number, decision="delegate", tasks=tasks):
            return f"Round {number}: following up on " + "; ".join(clean_line(t) for t in tasks)
        case events.RoundEvaluated(round=number):
            return f"Round {number} done; writing the report"
        case events.LimitReached(stop=stop):
            return f"Finishing: {stop.value.replace('_', ' ')}"
        case _:
            return ""


class _PlainOutput:
    """Writes the answer as text while it is streamed."""

    def __init__(self, progress: _ProgressDisplay) -> None:
        self._progress = progress
        self._newlines = ""  # held back, so that the answer ends with exactly one
        self._wrapper = WordWrapper(columns_of(sys.stdout))

    def add(self, text: str) -> None:
        text = clean_text(text)
        body = text.rstrip("\n")
        if body:
            with self._progress.pause_drawing():
                write_raw(self._wrapper.feed(self._newlines + body), sys.stdout)
        self._newlines = text[len(body) :] if body else self._newlines + text

    def finish(self) -> None:
        write_raw(self._wrapper.finish() + "\n", sys.stdout)


class _MarkdownOutput:
    """Writes the answer with rich: complete blocks are permanent, the unfinished one is part of the status region."""

    def __init__(self, progress: _ProgressDisplay) -> None:
        self._progress = progress
        self._blocks = BlockStream()
        self._console = open_console("stdout")
        self._is_first = True

    def add(self, text: str) -> None:
        for block in self._blocks.feed(clean_text(text)):
            self._print_block(block)
        self._progress.show_tail(self._blocks.open_block, apart=not self._is_first)

    def finish(self) -> None:
        self._print_block(self._blocks.finish())
        self._progress.show_tail("")

    def _print_block(self, block: str) -> None:
        if not block.strip():
            return
        from nexi.output._markdown import render_markdown

        with self._progress.pause_drawing():
            self._progress.show_tail("")
            if not self._is_first:
                self._console.print()
            self._console.print(render_markdown(block.strip("\n")))
        self._is_first = False


class Screen:
    """Shows a run, or research from its state. Pass it every event, call `end` after the last, and `finish` with the result."""

    def __init__(
        self,
        *,
        verbose: bool = False,
        quiet: bool = False,
        stream: bool = True,
        usage: bool = False,
        clock: Callable[[], float] = time.monotonic,
        research: ResearchState | None = None,
    ) -> None:
        self._verbose, self._quiet = verbose, quiet
        self._sums_up = verbose or usage or research is not None or is_tty(sys.stderr)
        self._progress = _ProgressDisplay()
        if verbose or not quiet:
            has_colors = takes_colors(sys.stderr)
            if research is not None:
                self._progress = _Panel(verbose, research, clock) if has_colors else _PlainPanel(verbose)
            else:
                self._progress = _StatusLine(verbose, clock) if has_colors else _ProgressLines(verbose)
        self.pause_drawing = self._progress.pause_drawing
        self._output: _MarkdownOutput | _PlainOutput | None = None  # for an answer that is streamed
        if stream and not quiet and is_tty():
            self._output = _MarkdownOutput(self._progress) if takes_colors(sys.stdout) else _PlainOutput(self._progress)
        self._shown: list[str] = []
        self._held_events: list[events.Event] = []
        self._held_warnings: list[str] = []  # those of a streamed answer, which follow it
        self._warned: set[str] = set()
        self._has_finished = False

    def show(self, event: events.Event) -> None:
        if self._output and isinstance(event, events.TextDelta):
            text = event.text if self._shown else event.text.lstrip()
            if text:
                self._shown.append(text)
                self._output.add(text)
        self._has_finished = self._has_finished or isinstance(event, events.RunFinished)
        if self._shown and isinstance(self._output, _PlainOutput):  # a note would break a line of the answer
            self._held_events.append(event)
        else:
            self._show_progress(event)

    def end(self) -> None:
        self._progress.end()
        if self._output and self._shown:
            self._output.finish()
        later, self._held_events = self._held_events, []
        for event in later:
            self._show_progress(event)
        self._progress.end()
        if not self._has_finished:
            self._print_warnings()

    def finish(self, result: RunResult) -> None:
        """Print the rest of the answer, its sources, and the summary."""
        review = result.answer.review
        streamed_text = "".join(self._shown).rstrip()
        rest = find_rest(streamed_text, result.answer.text)  # the last fact has the whole answer
        if not streamed_text or rest.strip():
            print_answer(rest)
        print_sources(result.answer.sources, support=support_by_source(review.proof) if review else None)
        # whether the question is answered, unless it is: part of the answer on a terminal, else a warning
        unanswered = describe_answered(result.answer.answered)
        if unanswered and is_tty():
            style = "yellow" if result.answer.answered == "no" else "dim"
            print_styled(f"\n? {unanswered}" if takes_colors(sys.stdout) else f"\n{unanswered}", style)
        elif unanswered:
            write(f"{unanswered}\n", sys.stderr)
        if is_tty():
            disagreements = sum(not conflict.is_settled for conflict in result.finished.conflicts)
            _print_figures(review, count_works(result.answer.sources), disagreements)
        self.sum_up(result, with_figures=not is_tty())

    def sum_up(self, result: RunResult, *, with_figures: bool = True) -> None:
        """Print the warnings that were held back and a summary of the run, on a terminal or if requested."""
        self._print_warnings()
        end, review = result.finished, result.answer.review
        if self._verbose and review:
            _print_claims(review)
        if self._sums_up:
            write("\n" if is_tty(sys.stderr) else "", sys.stderr)
            figures = review.proof.figures() if with_figures and review and review.proof.checked else ""
            cost = cost_text(end.usage.cost)
            urls, tokens = result.read_urls, end.usage.total
            print_result_summary(end.iterations, end.seconds, tokens, urls, cost=cost, figures=figures, calls=end.model_calls)

    def _show_progress(self, event: events.Event) -> None:
        if isinstance(event, events.Warned) and not (
            # the verification line below the answer, or the summary, says the same
            event.code in ("unsupported", "left_out") and is_tty() and self._sums_up and not self._quiet
        ):
            if event.message not in self._warned:  # researchers meet the same trouble, which is said once
                self._held_warnings.append(f"researcher {event.agent}: {event.message}" if event.agent else event.message)
            self._warned.add(event.message)
            if not self._shown:
                with self._progress.pause_drawing():
                    self._print_warnings()
        self._progress.show_event(event)

    def _print_warnings(self) -> None:
        warnings, self._held_warnings = self._held_warnings, []
        for message in warnings:
            print_warning(message)


def _print_claims(review: Review) -> None:
    """For `-v`: print a line for each sentence and for each passage found for it."""
    for claim in review.proof.checked:
        style = "dim" if claim.verdict in GOOD else "yellow"
        print_note(f"   {verdict_words(claim)}: {clean_line(claim.text)}", style=style)
        for evidence in claim.evidence:
            print_note(f"      {evidence_line(evidence)}", style="dim")
    if review.gap:
        print_note(f"   {clean_line(review.gap)}", style="yellow")
    for claim in review.dropped:
        print_note(f"   omitted, {verdict_words(claim)}: {clean_line(claim.text)}", style="yellow")


def _print_figures(review: Review | None, sources: int, conflicts: int) -> None:
    line = figures_line(review, sources, conflicts)
    if not line or review is None:
        return
    # A green tick needs a judge for every sentence; what is only found has a neutral sign.
    proof = review.proof
    sign, style = ("✓", "green") if proof.supported == len(proof.checked) else ("○", "cyan")
    if review.dropped or any(c.verdict in REJECTED or c.standing for c in proof.checked):
        sign, style = "!", "yellow"
    print_styled(f"\n{sign} {line}" if takes_colors(sys.stdout) else f"\n{line}", style)
