"""What a research run is, as frozen values folded from its facts.

The reducer makes these values; orchestrator, terminal, web page and MCP read them. Nothing here acts or knows a clock, a model
or a file.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from nexi.types import StopReason, Usage

ResearchStatus: TypeAlias = Literal["planning", "researching", "completed", "failed"]
ResearcherStatus: TypeAlias = Literal["running", "reported", "failed"]
ResearcherPhase: TypeAlias = Literal["starting", "gathering", "scraping", "reporting", "reported", "failed"]

FIRST_RESEARCHERS = {1: 2, 2: 3, 3: 5}
TARGET_ROUNDS = {1: 2, 2: 3, 3: 5}
EXTRA_ROUNDS = 2
MAX_PARALLEL_RESEARCHERS = 3
GATHERING_CALLS = 4
SCRAPING_CALLS = 4
UNITS_PER_RESEARCHER = 1 + GATHERING_CALLS + SCRAPING_CALLS + 1  # the start, the calls, the report
MAX_TASKS = 5
NEAR_LIMIT_SHARE = 0.8  # of a limit
MAX_UNFINISHED_PROGRESS = 0.99

SCRAPING_TOOL = "scrape"
REPORTING_TOOL = "final_answer"  # every other tool gathers


class Researcher(Struct, frozen=True):
    """One researcher: its task, its progress and its report."""

    id: str
    round: int
    task: str
    status: ResearcherStatus = "running"
    gathered: int = 0
    scraped: int = 0
    last_action: str = ""
    usage: Usage = Usage()
    report: str = ""
    reason: str = ""
    code: str = ""
    fix: str = ""

    @property
    def phase(self) -> ResearcherPhase:
        if self.status != "running":
            return self.status
        if self.scraped:
            return "scraping" if self.scraped < SCRAPING_CALLS else "reporting"
        return "gathering" if self.gathered else "starting"

    @property
    def units(self) -> int:
        """Units of work done, of UNITS_PER_RESEARCHER; a researcher that has ended has done all."""
        if self.status != "running":
            return UNITS_PER_RESEARCHER
        return 1 + min(self.gathered, GATHERING_CALLS) + min(self.scraped, SCRAPING_CALLS)


class ResearchState(Struct, frozen=True):
    """A research run, folded from its facts."""

    question: str = ""
    status: ResearchStatus = "planning"
    complexity: int = 0
    proposed: tuple[str, ...] = ()
    agenda: tuple[str, ...] = ()
    round: int = 0
    pending_tasks: tuple[str, ...] = ()
    researchers: tuple[Researcher, ...] = ()
    synthesis: str | None = None
    written_by: str = ""
    is_near_limit: bool = False
    limit: StopReason | None = None
    usage: Usage = Usage()
    progress: float = 0.0
    reason: str = ""

    @property
    def target_rounds(self) -> int:
        return TARGET_ROUNDS.get(self.complexity, 0)

    @property
    def max_rounds(self) -> int:
        return self.target_rounds + EXTRA_ROUNDS if self.target_rounds else 0

    @property
    def running_researchers(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.status == "running")

    @property
    def reported_researchers(self) -> tuple[Researcher, ...]:
        """The researchers that reported, in order of round and researcher, as they were started."""
        return tuple(r for r in self.researchers if r.status == "reported")

    @property
    def current_researchers(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.round == self.round)

    @property
    def header(self) -> str:
        """The line that shows the progress to the user."""
        if self.status == "planning":
            return "Research: the plan is waiting for your approval" if self.proposed else "Research: planning"
        if self.status == "researching" and self.round > self.target_rounds:
            return "Research: exploring"  # more rounds than planned, where a percentage would mislead
        return f"Research: {int(self.progress * 100)}%"


class PlanStep(Struct, frozen=True):
    """Divide the question into tasks."""


class StartStep(Struct, frozen=True):
    """Start a researcher for each of these tasks, given with their ids."""

    tasks: tuple[tuple[str, str], ...]


class WaitStep(Struct, frozen=True):
    """Wait until a running researcher has ended."""


class EvaluateStep(Struct, frozen=True):
    """Evaluate the round. Without `may_delegate` the report must be written now."""

    round: int
    may_delegate: bool


class FinishStep(Struct, frozen=True):
    """The report is written: check it and end the run with it."""

    text: str


class FailStep(Struct, frozen=True):
    """End the run with an error: there is nothing to write a report from."""

    code: str
    message: str
    fix: str = ""


class EndedStep(Struct, frozen=True):
    """The run has ended."""


Step: TypeAlias = PlanStep | StartStep | WaitStep | EvaluateStep | FinishStep | FailStep | EndedStep
