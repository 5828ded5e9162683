"""Past: what is known of a run that began before, from its log.

`run` takes it up; `resume` makes it. A past with a log goes on in that log, and one without is repeated in a log of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime

from nexi.events import Fact, ModelAsked, ModelReplied, PageFetched, RunResumed, SourceNumbered
from nexi.ports import RunLog
from nexi.recording import Pace, Recording
from nexi.types import Source, Usage
from nexi.values import frozen


@frozen
class Past:
    """The facts of a run so far, and what follows from them. `seconds` is how long it had worked."""

    run: str = ""
    facts: tuple[Fact, ...] = ()
    recording: Recording = field(default_factory=Recording)
    log: RunLog | None = None
    today: str = ""
    seconds: float = 0.0

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(f.source for f in self.facts if isinstance(f, SourceNumbered))

    @property
    def calls(self) -> int:
        """The number of the last model call that is in the log."""
        return max((f.call for f in self.facts if isinstance(f, ModelAsked)), default=0) if self.log else 0

    def spent(self, *, agents: bool) -> tuple[Usage, int, int]:
        """Usage, model calls and pages, of the researchers or of everyone."""
        counted = [f for f in self.facts if not agents or getattr(f, "agent", None)]
        replies = [f for f in counted if isinstance(f, ModelReplied)]
        usage = sum((f.usage for f in replies), Usage())
        return usage, len(replies), sum(isinstance(f, PageFetched) for f in counted)


def past_of(
    run: str,
    facts: Sequence[Fact],
    created: str,
    *,
    log: RunLog | None = None,
    seconds: float = 0.0,
    only: bool = False,
    pace: Pace | None = None,
) -> Past:
    """The past that a log tells. `only` forbids to ask for anything it does not hold."""
    day = datetime.fromisoformat(created).date().isoformat()
    recorded = [f for f in facts if not isinstance(f, RunResumed)]
    return Past(run, tuple(facts), Recording(recorded, pace=pace, only=only), log, day, seconds)
