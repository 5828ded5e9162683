"""Nexi: the clients of one config, the runs and the single calls made with them. Every door asks here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from nexi.app import resume
from nexi.app.clock import SystemClock
from nexi.app.components import RunComponents, SearchEngine, read_page
from nexi.app.conversation import load_conversation_after, load_last_conversation
from nexi.app.emit import QuietEmit
from nexi.app.environment import RecordedRun, RunEnvironment
from nexi.app.factory import PortFactory, SharedClients
from nexi.app.gate import ModelGate, PlainModel, open_gate
from nexi.app.knowledge import LocalBackend
from nexi.app.local_scope import restrict_to_local
from nexi.app.questions import OpenQuestion, find_open_question
from nexi.app.request import LAST_RUN, RunMode, RunRequest, budget_for, check_request, clean_question
from nexi.app.resolve import LocalModelProbe, ModelProbe, ResolvedRun, resolve, resolve_config
from nexi.app.resume import Replay
from nexi.app.run import Run, RunEngine, RunOpening, RunResult
from nexi.app.spaces import enter_space, open_space_knowledge
from nexi.budget import Budget, Meter, smallest_limit
from nexi.config import Config
from nexi.errors import ConfigError, FetchError, NexiError
from nexi.events import Judged
from nexi.ports import LLM, Clock, Emit, HistoryStore, PageStore, PersonalState, RunLog, RunStore, SpaceStore
from nexi.runs.recording import Pace
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.tools.specs import WEB_GET, parse_arguments
from nexi.types import Message, Page, PictureFile, Query, Scope, SearchOutcome, ToolCall, ToolResult
from nexi.urls import is_web_url

if TYPE_CHECKING:
    from nexi.apis.search import SearchService
    from nexi.app.intake import Step
    from nexi.app.knowledge import Knowledge
    from nexi.app.value_table import TableRequest
    from nexi.app.verification import Target, VerifyRequest
    from nexi.checking.recheck import Verification
    from nexi.tables.cells import ValueTable


class Nexi:
    """Runs, and single calls outside a run, over the clients of one config; ports may be given, for tests and embedding."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        llms: Mapping[str, LLM] | None = None,
        backends: Sequence[Any] | None = None,
        fetchers: Sequence[Any] | None = None,
        probe: ModelProbe | None = None,
        state: PersonalState | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.ports = PortFactory(config, SharedClients(config, clock, llms or {}, backends, fetchers, state))
        self._probe: ModelProbe | None = probe or (None if llms else LocalModelProbe(clock))
        self._search_service: SearchService | None = None
        self._replaced: list[SharedClients] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for clients in (self.ports.shared, *self._replaced):
            await clients.aclose()

    def reconfigure(self, config: Config) -> None:
        """Use another config for runs that begin from now on; those under way keep their clients until the end."""
        if config == self.config:
            return
        clients = self.ports.shared
        self._replaced.append(clients)
        self.ports, self._search_service = PortFactory(config, clients.renew()), None

    def build_for_guests(self) -> Nexi:
        """A `Nexi` with the same model and web and nothing that the owner keeps, for a caller that enters and leaves it."""
        config = self.config.for_guests()
        guests = Nexi(config, clock=self.clock)
        guests.ports, guests._probe = PortFactory(config, self.ports.shared.renew()), self._probe
        return guests

    # what it is made of

    @property
    def config(self) -> Config:
        return self.ports.config

    @property
    def clock(self) -> Clock:
        return self.ports.clock

    def gate(self, *, is_local: bool = False) -> ModelGate:
        """The way to models for work outside a run, which has no budget of its own; quotas count it."""
        return open_gate(self.ports, is_local=is_local)

    def knowledge(self) -> Knowledge:
        return self.ports.knowledge()

    def runs(self) -> RunStore:
        return self.ports.runs()

    def history(self) -> HistoryStore:
        return self.ports.history()

    @property
    def state(self) -> PersonalState | None:
        """What a team server keeps for this person, and who else reads it; None where there is nobody else."""
        return self.ports.shared.state

    def spaces(self) -> SpaceStore:
        return self.ports.spaces()

    def pages(self) -> PageStore:
        return self.ports.pages()

    # runs

    def run(self, request: RunRequest, *, session: Session | None = None, log: RunLog | None = None) -> RunOpening:
        """A run to enter: `async with nexi.run(request) as run`. Raises QuestionError or ConfigError at once. A `session`
        carries on a conversation of this process, `request.continues` one of the run logs; a `log` is of a run made before."""
        self.check_request(request)

        async def prepare(closing: AsyncExitStack) -> Run:
            conversation = session or Session()
            if session is None and request.continues == LAST_RUN:
                conversation = await load_last_conversation(self.runs(), self.history())
            elif session is None and request.continues:
                runs = self.runs()
                await asyncio.to_thread(runs.open_log, request.continues)  # raises StoreError when the run is not there
                conversation = await load_conversation_after(runs, request.continues)
            admitted = request if log else await self.admit(request)
            return await self._build_run(admitted, closing, conversation, RecordedRun(), log)

        return RunOpening(prepare)

    async def _build_run(
        self, request: RunRequest, closing: AsyncExitStack, session: Session, recorded: RecordedRun, log: RunLog | None = None
    ) -> Run:
        resolved = await resolve(request, self.config, self._probe)
        request = resolved.request
        ports = self.ports.with_config(resolved.config, is_offline=request.is_local)
        attached: Knowledge | None = None  # of the files that came with the question, or of its space
        if request.attachments:
            if request.is_local and (page := next((a for a in request.attachments if is_web_url(a)), "")):
                cause, fix = "fetching it would leave this machine", "index it first with nexi index, or ask without --local"
                raise ConfigError(f"{page[:200]} cannot be attached to a local question", cause=cause, fix=fix)
            from nexi.app.intake import attach_files

            attached = await closing.enter_async_context(attach_files(self, ports, request.attachments))
        elif request.space:
            attached = await open_space_knowledge(ports, request.space)
        return Run(ports, resolved, _build_engine, session=session, recorded=recorded, attached=attached, log=log)

    def check_request(self, request: RunRequest) -> None:
        """Refuse a request that cannot become a run. Raises QuestionError or ConfigError."""
        resolve_config(check_request(request, self.config), self.config)

    async def admit(self, request: RunRequest, *, is_queued: bool = False) -> RunRequest:
        """Count a new run; its request with what its space says, within what its person may still use. Raises NexiError with
        the code quota_reached, model_refused or no_such_space."""
        if request.continues and not request.space:
            request = replace(request, space=await asyncio.to_thread(self._find_space, request.continues))
        if request.space:
            request = await enter_space(self.ports, request)
        if (state := self.state) is None:
            return request
        if request.model not in ("", self.config.model):
            own = await asyncio.to_thread(state.list_models)
            models = (self.config.team_models or None) if own is None else own
            if models is not None and request.model not in models:
                fix = f"use one of {', '.join(models)}, or leave it out" if models else "leave it out"
                raise NexiError(f"the model {request.model} is not offered here", fix=fix, code="model_refused")
        quota = await asyncio.to_thread(state.take_run, is_queued=is_queued)
        budget = budget_for(self.config, request.limits)
        tokens, cost = smallest_limit(budget.max_tokens, quota.tokens), smallest_limit(budget.max_cost, quota.cost)
        is_quota = (tokens, cost) != (budget.max_tokens, budget.max_cost)
        return replace(request, limits=replace(request.limits, max_tokens=tokens, max_cost=cost, is_quota=is_quota))

    def search(self, question: str | RunRequest, *, session: Session | None = None) -> RunOpening:
        """`run` for a question that is answered in one conversation."""
        return self.run(_request_for(question, "search"), session=session)

    def research(self, question: str | RunRequest, *, session: Session | None = None) -> RunOpening:
        """`run` for a deep question: a plan, researchers in rounds, and a report."""
        return self.run(_request_for(question, "research"), session=session)

    def _find_space(self, run_id: str) -> str:
        """The space of the run that a question continues, while there is one. Raises StoreError."""
        summaries = self.runs().list_runs(1) if run_id == LAST_RUN else self.runs().read_summaries([run_id])
        addresses = [space.address for space in self.spaces().list_all()] if any(run.space for run in summaries) else []
        return next((run.space for run in summaries if run.space in addresses), "")

    def _ports_within(self, is_local: bool) -> PortFactory:
        """The ports for work outside a run, under the scope `local` if it is asked for. Raises ConfigError."""
        config = restrict_to_local(self.config)[0] if is_local else self.config
        return self.ports.with_config(config, is_offline=is_local)

    def resume(self, run_id: str, *, changes: RunRequest | None = None, pace: Pace | None = None) -> RunOpening:
        """A run that was cut off or ended early, to enter and go on with; what its log holds is not asked for again. `changes`
        may name another model and limits; `pace` lets recorded waits take their time. Entering raises StoreError."""

        async def prepare(closing: AsyncExitStack) -> Run:
            runs = self.runs()
            started, recorded = await asyncio.to_thread(resume.reopen_run, runs, run_id, pace=pace)
            session = await resume.session_of(started, runs, recorded.facts)
            return await self._build_run(resume.request_to_resume(started, changes), closing, session, recorded)

        return RunOpening(prepare)

    async def replay(self, run_id: str) -> Replay:
        """A finished run played again from its log, with no network. Raises StoreError."""
        runs = self.runs()
        started, recorded, answer = await asyncio.to_thread(resume.read_finished_run, runs, run_id)
        judge = next((fact.by for fact in recorded.facts if isinstance(fact, Judged) and fact.about == "judge"), "")
        llm = resume.RecordedLLM(started.model)
        llms = {"answer": llm, "extract": llm, "judge": resume.RecordedLLM(judge or started.model)}
        session, config = await resume.session_of(started, runs, recorded.facts), resume.config_of_run(started, self.config)

        async with Nexi(config, clock=self.clock, llms=llms, backends=(), fetchers=(), state=self.state) as nexi:

            async def prepare(_: AsyncExitStack) -> Run:
                resolved = resume.resolve_replay(started, config)
                return Run(nexi.ports, resolved, _build_engine, session=session, recorded=recorded)

            try:
                outcome = Replay(run_id, answer, await RunOpening(prepare).drive())
            except NexiError as error:
                await asyncio.to_thread(resume.refuse_damaged_replay, runs, run_id, recorded.facts, error)
                raise
        if not outcome.is_same:
            await asyncio.to_thread(resume.refuse_damaged_replay, runs, run_id, recorded.facts)
        return outcome

    async def answer(self, question: str | RunRequest, *, session: Session | None = None) -> RunResult:
        """Search to the end. Raises NexiError when there is no answer."""
        return await self.search(question, session=session).drive()

    async def agentic_search(self, query: str, **settings: Any) -> dict[str, Any]:
        """The seed's JSON of a search that reads what the store lacks. `settings` are of AGENTIC_SETTINGS. Raises NexiError."""
        result = await self.run(RunRequest(query, mode="agentic", agentic=settings, keeps_log=False)).drive()
        response: dict[str, Any] = json.loads(result.answer.text)
        return response

    # single calls

    async def run_tool(self, call: ToolCall, *, question: str = "") -> ToolResult:
        """One tool call outside a run, for a caller who vouches for the URLs in it."""
        session, ports = Session(), self.ports
        async with asyncio.TaskGroup() as tasks:
            meter = Meter(Budget(max_pages=self.config.max_pages), started=self.clock.monotonic())
            resolved = ResolvedRun(RunRequest(question), self.config, Budget())
            stop = asyncio.Event()
            environment = RunEnvironment(ports, resolved, session, meter, QuietEmit(), stop, RecordedRun(), None, False)
            components = RunComponents(environment, tasks)
            toolbox = components.build_toolbox(components.metered_llm("extract"))
            if call.name == WEB_GET.name:
                session.allow_urls(parse_arguments(call, WEB_GET)[0].get("urls", ()))
            result = await toolbox.run(call)
            components.reader.cancel()
        return result

    async def find_known(self, query: Query | str, *, tags: Sequence[str] = ()) -> SearchOutcome:
        """Hits out of the knowledge base; nothing leaves this machine. Raises ConfigError when the store is elsewhere."""
        query, ports = _clean_query(query), self._ports_within(is_local=True)
        backends = (LocalBackend(ports.knowledge(), open_gate(ports, is_local=True), Scope(tags=tuple(tags))),)
        return await Searcher(lambda: backends, emit=QuietEmit(), clock=self.clock).search(query)

    async def find(self, query: Query | str) -> SearchOutcome:
        """Raw hits along the search chain; an empty outcome says who failed and why. Raises QuestionError or ConfigError."""
        return await self.ports.searcher(QuietEmit()).search(_clean_query(query))

    async def find_open_question(self, request: RunRequest, earlier: Sequence[Message] = ()) -> OpenQuestion:
        """What a question leaves open, for a door that can ask a person back. Raises QuestionError or ConfigError."""
        return await find_open_question(self, request, earlier)

    async def verify(self, request: VerifyRequest | Target) -> Verification:
        """Check a text sentence by sentence; nothing in it is changed. Raises NexiError when there is no such run,
        NoEvidenceError when there is nothing to check it against."""
        from nexi.app.verification import Target, TextCheck, VerifyRequest

        request = VerifyRequest(request) if isinstance(request, Target) else request
        check = TextCheck(self, self._ports_within(request.is_local), request)
        uncached, fetchers = self.config.override(page_cache=False), self.ports.shared.given_fetchers
        async with Nexi(uncached, clock=self.clock, fetchers=fetchers) as fresh:
            return await check.run(fresh.fetch)

    async def table(self, request: TableRequest, on_step: Callable[[Step], None] = lambda _: None) -> ValueTable:
        """Values of documents by columns, each with its quote; `on_step` is told of each document. Raises NexiError."""
        from nexi.app.value_table import TableWork

        return await TableWork(self._ports_within(request.is_local), request, on_step).run()

    async def fetch(self, url: str) -> Page:
        """One page along the fetch chain, for a caller who vouches for its URL; the guard holds. Raises FetchError."""
        return await read_page(self.ports, url)

    def search_api(self, settings: Path | None = None, *, emit: Emit | None = None) -> SearchService:
        """The stateless search service, built once; the first caller may name its searcher.yaml. Raises ConfigError."""
        if self._search_service is None:
            from nexi.apis.search import build_search_service, settings_of

            own = settings_of(self.config.root, settings)
            self._search_service = build_search_service(self.ports, own, emit or QuietEmit())
        return self._search_service

    def plain_model(self) -> PlainModel | None:
        """The answering model for calls without a search; None where only the built-in one is set up. Raises ConfigError."""
        return None if self.gate().is_built_in("answer") else PlainModel(self.ports)

    async def fetch_picture(self, url: str) -> PictureFile:
        """The picture that a page shows of itself. Raises FetchError, also where none is to be fetched."""
        fetcher = self.ports.picture_fetcher()
        if fetcher is None:
            raise FetchError("pictures are not fetched here", reason="blocked", fix="nexi config set show_pictures true")
        return await fetcher.fetch_picture(url)


def _clean_query(query: Query | str) -> Query:
    query = Query(query) if isinstance(query, str) else query
    return replace(query, text=clean_question(query.text))


def _request_for(question: str | RunRequest, mode: RunMode) -> RunRequest:
    return RunRequest(question, mode=mode) if isinstance(question, str) else replace(question, mode=mode)


def _build_engine(environment: RunEnvironment) -> RunEngine:
    """The engine of a run's mode."""
    if environment.request.mode == "research":
        from nexi.app.research import ResearchEngine

        return ResearchEngine(environment)
    if environment.request.mode == "agentic":
        from nexi.app.agentic import AgenticEngine

        return AgenticEngine(environment)
    return SearchEngine(environment)
