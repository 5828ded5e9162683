"""Shows a research run: a panel with a line for each researcher on a terminal, plain lines elsewhere.

All numbers come from the state that is folded from the facts, so that this panel and the page agree.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from nexi import events
from nexi.app.research_state import UNITS_PER_RESEARCHER, Researcher, ResearchState, reduce
from nexi.output._messages import cost_text, print_note
from nexi.output.screen import LiveDisplay, ProgressDisplay, ProgressLines
from nexi.output.streams import takes_colors
from nexi.text.controls import clean_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


MAX_TASK_CHARS = 60
BAR_COLUMNS = 8
MARKS = {"reported": "✓", "failed": "✗"}
PLAIN_MARKS = {"reported": "+", "failed": "x"}


def panel_for(verbose: bool, quiet: bool, state: ResearchState, clock: Callable[[], float]) -> ProgressDisplay:
    """Choose how to show research on the available streams."""
    if quiet and not verbose:
        return ProgressDisplay()
    return _Panel(verbose, state, clock) if takes_colors(sys.stderr) else _PlainPanel(verbose)


class _PlainPanel(ProgressDisplay):
    """A line for each change; with `verbose` for everything."""

    def __init__(self, verbose: bool) -> None:
        self._details = ProgressLines(verbose=True) if verbose else None

    def show_event(self, event: events.Event) -> None:
        if text := _format_change(event):
            print_note(text)
        elif self._details:
            self._details.show_event(event)


class _Panel(LiveDisplay):
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
