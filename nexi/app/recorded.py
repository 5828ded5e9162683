"""RecordedRun: what the log of an earlier run tells `run`, which goes on in that log or is repeated in one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from nexi.events import Fact, ModelAsked, ModelFailed, ModelReplied, PageFetched, RunResumed, RunStarted, SourceNumbered
from nexi.ports import RunLog
from nexi.runs.log_format import ReadLog
from nexi.runs.recording import Pace, Recording
from nexi.types import Source, Usage

RECORDED_SETTINGS = (  # which shape the requests of a run, so that it can be replayed elsewhere
    "max_context", "max_output_tokens", "auto_compact_thresh", "compact_target_words", "preserve_last_n_messages",
    "tokenizer_encoding", "system_prompt", "strict", "verify_judge", "prefetch", "max_pages",
)  # fmt: skip


class RecordedRun(Struct, frozen=True):
    """The facts of a run so far, and what follows from them. `seconds` is how long it had worked."""

    run: str = ""
    facts: tuple[Fact, ...] = ()
    recording: Recording = msgspec.field(default_factory=Recording)
    log: RunLog | None = None
    today: str = ""
    seconds: float = 0.0

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(f.source for f in self.facts if isinstance(f, SourceNumbered))

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the run was started with."""
        return next((f.settings for f in self.facts if isinstance(f, RunStarted)), {})

    def has_setting(self, name: str, *, by_default: bool = True) -> bool:
        """Whether a setting holds: `by_default` for a new run; one that is resumed or replayed goes on as it began."""
        return bool(self.settings.get(name)) if self.facts else by_default

    @property
    def calls(self) -> int:
        """The number of the last model call that is in the log."""
        return max((f.call for f in self.facts if isinstance(f, ModelAsked)), default=0) if self.log else 0

    def usage_so_far(self, *, agents: bool) -> tuple[Usage, int, int]:
        """Usage, model calls and pages, of the researchers or of everyone."""
        facts = [f for f in self.facts if not agents or getattr(f, "agent", None)]
        replies = [f for f in facts if isinstance(f, ModelReplied | ModelFailed)]
        usage = sum((f.usage for f in replies), Usage())
        return usage, len(replies), sum(isinstance(f, PageFetched) for f in facts)

    def unreplayed_usage(self, mode: str) -> tuple[Usage, int]:
        """Usage and calls that limit new calls of a resumed run although they are not in its meter: a search meets its recorded
        calls one by one, while research has restored them in its meter."""
        recorded_usage, calls, _ = self.usage_so_far(agents=False)
        usage, lost = self.lost_usage()
        return (usage, lost) if mode == "research" else (usage + recorded_usage, lost + calls)

    def lost_usage(self) -> tuple[Usage, int]:
        """An estimate of what the calls in flight at a kill cost, and how many there were: their intent is in the log alone."""
        ends = {f.call for f in self.facts if isinstance(f, ModelReplied | ModelFailed)}
        calls = [f for f in self.facts if isinstance(f, ModelAsked)]
        lost = [f for f in calls if f.call not in ends]
        if not lost:
            return Usage(), 0
        usage, _, _ = self.usage_so_far(agents=False)
        prompts, known_prompts = sum(f.prompt_tokens for f in lost), sum(f.prompt_tokens for f in calls if f.call in ends)
        scale = prompts / known_prompts if known_prompts else 0.0
        tokens_in = round(usage.input_tokens * scale) if known_prompts else prompts
        cost = None if usage.cost is None else usage.cost * scale
        return Usage(tokens_in, round(usage.output_tokens * scale), estimated=True, cost=cost), len(lost)


def read_recorded_run(
    log: ReadLog,
    facts: tuple[Fact, ...],
    *,
    writer: RunLog | None = None,
    seconds: float = 0.0,
    only: bool = False,
    pace: Pace | None = None,
) -> RecordedRun:
    """What these facts of a log tell of its run. `only` forbids asking for anything they do not hold."""
    day = datetime.fromisoformat(log.header.created).date().isoformat()
    recorded = [f for f in facts if not isinstance(f, RunResumed)]
    recording = Recording(recorded, pace=pace, is_replay_only=only, start_offsets=log.beginnings if writer else None)
    return RecordedRun(log.header.run, facts, recording, writer, day, seconds)
