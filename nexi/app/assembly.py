"""Nexi: the clients of one config, and the searches and single calls made with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nexi.app.clients import Clients
from nexi.app.emit import QuietEmit
from nexi.app.options import AS_CONFIGURED, SearchOptions, clean_question, with_effort
from nexi.app.pages import read_page
from nexi.app.parts import Parts
from nexi.app.run import Run, RunResult
from nexi.budget import Budget, Meter
from nexi.ports import Emit
from nexi.runs.recording import Pace
from nexi.runs.session import Session
from nexi.types import FetchLimits, Page, Query, Review, SearchOutcome, ToolCall, ToolResult

if TYPE_CHECKING:
    from nexi.app.agentic import AgenticRun
    from nexi.app.research import ResearchRun
    from nexi.app.resume import Replay
    from nexi.app.verification import Target
    from nexi.research.orchestrator import PlanApproval
    from nexi.search_api import SearchService
    from nexi.verify.recheck import Verification


class Nexi(Clients):
    """Searches, and single calls outside a search, over the clients of one config."""

    _search_service: SearchService | None = None

    def search(self, question: str, *, options: SearchOptions = AS_CONFIGURED, session: Session | None = None) -> Run:
        """A run to enter: `async with nexi.search(q) as run`. Raises QuestionError or ConfigError at once."""
        asked, options = clean_question(question), with_effort(options, self.config)
        return Run(self._clients_for(options), asked, options, session or Session())

    def _clients_for(self, options: SearchOptions) -> Self:
        """The clients that a run with these options may use."""
        clients = self.answering_with(options.model)
        return clients.restricted_to_local() if options.only_local else clients

    def research(
        self,
        question: str,
        *,
        depth: int = 0,
        options: SearchOptions = AS_CONFIGURED,
        session: Session | None = None,
        approve: PlanApproval | None = None,
        held: bool = False,
    ) -> ResearchRun:
        """A deep run to enter; depth 0 lets the coordinator choose, and `approve` may change its plan.

        One that is `held` waits with its plan at `run.gate` until somebody settles it there.
        """
        from nexi.app.research import ResearchRun

        asked, options = clean_question(question), with_effort(options, self.config)
        nexi = self._clients_for(options)
        return ResearchRun(nexi, asked, options, session or Session(), depth=depth, approve=approve, held=held)

    async def resume(self, run_id: str, *, options: SearchOptions = AS_CONFIGURED, pace: Pace | None = None) -> Run:
        """A run that was cut off or ended early, to enter and go on with. Raises StoreError.

        What its log holds is not asked for again; `pace` lets recorded waits take their time.
        """
        from nexi.app.resume import build, is_local, reopened, session_of

        runs = self.runs()
        started, past = await asyncio.to_thread(reopened, runs, run_id, pace=pace)
        options = replace(options, only_local=options.only_local or is_local(started))
        return build(self._clients_for(options), started, past, await session_of(started, runs, past.facts), options)

    async def replay(self, run_id: str) -> Replay:
        """A finished run played again from its log, with no network. Raises StoreError."""
        from nexi.app.resume import Replay, Silent, build, config_of, recorded, session_of

        runs = self.runs()
        started, past, told = await asyncio.to_thread(recorded, runs, run_id)
        silent = Silent(started.model)
        llms = {"answer": silent, "extract": silent, "judge": silent}
        options = SearchOptions(keeps_history=False, keeps_log=False)
        session, config = await session_of(started, runs, past.facts), config_of(started, self.config)
        async with (
            Nexi(config, clock=self.clock, llms=llms, backends=(), fetchers=()) as nexi,
            build(nexi, started, past, session, options) as run,
        ):
            async for _ in run:
                pass
            return Replay(run_id, told, run.result())

    async def answer(
        self, question: str, *, options: SearchOptions = AS_CONFIGURED, session: Session | None = None
    ) -> RunResult:
        """Search to the end. Raises NexiError when there is no answer."""
        async with self.search(question, options=options, session=session) as run:
            async for _ in run:
                pass
            return run.result()

    async def run_tool(self, call: ToolCall, *, question: str = "") -> ToolResult:
        """One tool call outside a search, for a caller who vouches for the URLs in it."""
        session = Session()
        async with asyncio.TaskGroup() as tasks:
            emit = QuietEmit()
            meter = Meter(Budget(max_pages=self.config.max_pages), started=self.clock.monotonic())
            parts = Parts(self, session, meter, emit, tasks, question, AS_CONFIGURED)
            toolbox = parts.toolbox(parts.metered("extract"))
            session.allow(parts.urls_of(call))
            result = await toolbox.run(call)
            parts.reader.cancel()
        return result

    async def find_known(self, query: Query | str, *, tags: Sequence[str] = ()) -> SearchOutcome:
        """Hits out of the knowledge store, with no network unless a Qdrant or embedding server is named."""
        from nexi.app.local import LocalBackend
        from nexi.searcher import Searcher
        from nexi.types import Scope

        asked = Query(query) if isinstance(query, str) else query
        asked = replace(asked, text=clean_question(asked.text))
        backends = (LocalBackend(self.knowledge(), QuietEmit(), Scope(tags=tuple(tags))),)
        return await Searcher(lambda: backends, emit=QuietEmit(), clock=self.clock).search(asked)

    async def agentic_search(self, query: str, **asked: Any) -> dict[str, Any]:
        """Look at what is known, and read only what is missing; the seed's JSON.

        `asked` may name completeness_threshold, max_iterations, max_urls_per_iteration, url_score_threshold and
        use_search_hints; what is not named is as configured. Raises QuestionError or ConfigError.
        """
        from nexi.app.agentic import agentic_search

        return await agentic_search(self, query, asked)

    def agentic(self, question: str, *, options: SearchOptions = AS_CONFIGURED, **asked: Any) -> AgenticRun:
        """The same as a run to enter, with facts, a log and a stop. Raises QuestionError or ConfigError at once."""
        from nexi.app.agentic import AgenticRun

        return AgenticRun(
            self._clients_for(options), clean_question(question), with_effort(options, self.config), Session(), asked=asked
        )

    async def find(self, query: Query | str) -> SearchOutcome:
        """Raw hits along the search chain; an empty outcome says who failed and why. Raises QuestionError or ConfigError."""
        asked = Query(query) if isinstance(query, str) else query
        asked = replace(asked, text=clean_question(asked.text))
        return await self.searcher(QuietEmit()).search(asked)

    def review_of(self, run_id: str) -> Review | None:
        """How the answer of a past run was checked; None where that is not known."""
        from nexi.app.verification import facts_of
        from nexi.events import AnswerChecked

        checked = (f.review for f in reversed(facts_of(self.runs(), run_id)) if isinstance(f, AnswerChecked) and not f.agent)
        return next(checked, None)

    async def verify(self, target: Target, *, refetch: bool = False) -> Verification:
        """Check an answer or any Markdown with links once more, against stored pages or fresh ones.

        Raises NexiError when there is no such run, NoEvidenceError when it cites nothing.
        """
        from nexi.app.verification import Archive, document_of
        from nexi.verify.recheck import recheck

        runs = self.runs()
        document = await asyncio.to_thread(document_of, target, runs, self.config.history_path)
        archive = Archive(runs, self.page_cache(), self.config.fetch_chain(), run=document.run)
        if not refetch:
            return await recheck(document, archive.text)
        async with Nexi(self.config.override(page_cache=False), clock=self.clock, fetchers=self._fetchers_given) as fresh:
            return await recheck(document, archive.text, fresh.fetch)

    async def fetch(self, url: str) -> Page:
        """One page along the fetch chain, for a caller who vouches for its URL; the guard holds. Raises FetchError."""
        return await read_page(self, url, FetchLimits(timeout_s=self.config.fetch_timeout), emit=QuietEmit())

    def search_api(self, settings: Path | None = None, *, emit: Emit | None = None) -> SearchService:
        """The stateless search service, built once; the first caller may name its searcher.yaml. Raises ConfigError."""
        if self._search_service is None:
            from nexi.app.search_service import build, settings_of

            self._search_service = build(self, settings_of(self.config.root, settings), emit or QuietEmit())
        return self._search_service
