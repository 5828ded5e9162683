"""What a research run is, as frozen values folded from its facts.

The reducer makes these; orchestrator, terminal, page and MCP read them. Nothing here acts, and nothing knows a clock, a model
or a file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from nexi.types import StopReason, Usage
from nexi.values import frozen

Status: TypeAlias = Literal["planning", "researching", "completed", "failed"]
Doing: TypeAlias = Literal["running", "reported", "failed"]
Phase: TypeAlias = Literal["starting", "gathering", "scraping", "reporting", "reported", "failed"]

FIRST_RESEARCHERS = {1: 2, 2: 3, 3: 5}
TARGET_ROUNDS = {1: 2, 2: 3, 3: 5}
EXTRA_ROUNDS = 2
AT_ONCE = 3
GATHERING_CALLS = 4
SCRAPING_CALLS = 4
UNITS = 1 + GATHERING_CALLS + SCRAPING_CALLS + 1  # the start, the calls, the report
MOST_TASKS = 5
NEAR = 0.8  # of a limit
NEARLY_DONE = 0.99

GATHERING_TOOLS = ("search", "security_search", "stackexchange", "grep", "local_search")
SCRAPING_TOOL = "scrape"


@frozen
class Researcher:
    """One researcher: its task, how far it is, and what it brought."""

    id: str
    round: int
    task: str
    doing: Doing = "running"
    gathered: int = 0
    scraped: int = 0
    last_action: str = ""
    usage: Usage = Usage()
    report: str = ""
    reason: str = ""
    code: str = ""

    @property
    def phase(self) -> Phase:
        if self.doing != "running":
            return self.doing
        if self.scraped:
            return "scraping" if self.scraped < SCRAPING_CALLS else "reporting"
        return "gathering" if self.gathered else "starting"

    @property
    def units(self) -> int:
        """Of UNITS; who has ended has done them all."""
        if self.doing != "running":
            return UNITS
        return 1 + min(self.gathered, GATHERING_CALLS) + min(self.scraped, SCRAPING_CALLS)


@frozen
class ResearchState:
    """A run as its facts tell it."""

    question: str = ""
    status: Status = "planning"
    complexity: int = 0
    proposed: tuple[str, ...] = ()
    agenda: tuple[str, ...] = ()
    planned_by: str = ""
    round: int = 0
    waiting: tuple[str, ...] = ()
    researchers: tuple[Researcher, ...] = ()
    synthesis: str | None = None
    written_by: str = ""
    nears_limit: bool = False
    limit: StopReason | None = None
    usage: Usage = Usage()
    progress: float = 0.0
    reason: str = ""

    @property
    def target_rounds(self) -> int:
        return TARGET_ROUNDS.get(self.complexity, 0)

    @property
    def most_rounds(self) -> int:
        return self.target_rounds + EXTRA_ROUNDS if self.target_rounds else 0

    @property
    def running(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.doing == "running")

    @property
    def reported(self) -> tuple[Researcher, ...]:
        """Who reported, in order of round and researcher."""
        return tuple(r for r in self.researchers if r.doing == "reported")

    @property
    def of_this_round(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.round == self.round)

    @property
    def is_exploring(self) -> bool:
        """Whether the run went beyond its plan, where a percentage would mislead."""
        return self.status == "researching" and self.round > self.target_rounds

    @property
    def header(self) -> str:
        """The line a person watches."""
        if self.status == "planning":
            return "Research: the plan waits for a word" if self.proposed else "Research: planning"
        return "Research: exploring" if self.is_exploring else f"Research: {int(self.progress * 100)}%"

    def researcher(self, name: str) -> Researcher | None:
        return next((r for r in self.researchers if r.id == name), None)


@frozen
class Plan:
    """Divide the question into tasks."""


@frozen
class Start:
    """Let these tasks be researched, each under its id."""

    tasks: tuple[tuple[str, str], ...]


@frozen
class Wait:
    """Nothing to begin until one of those who run has ended."""


@frozen
class Evaluate:
    """Judge what was found. Without `may_delegate` the report must be written now."""

    round: int
    may_delegate: bool


@frozen
class Finish:
    """The report is written: check it and end the run with it."""

    text: str


@frozen
class Fail:
    """There is nothing to write a report from."""

    code: str
    message: str


@frozen
class Over:
    """The run has ended."""


Step: TypeAlias = Plan | Start | Wait | Evaluate | Finish | Fail | Over
