"""The seams: what engines ask of the world, as protocols. Adapters implement one each and never import an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol, Required, TypedDict, Unpack

from nexi.errors import BackendError
from nexi.events import Delta, Fact
from nexi.net.breaker import Suspension
from nexi.runs.log_format import ReadLog, RunSummary
from nexi.types import (
    EVERYTHING,
    Allowance,
    Embedded,
    FetchLimits,
    HistoryEntry,
    HistoryRead,
    Hit,
    IndexedPage,
    KnowledgeOffer,
    Message,
    Page,
    PairScore,
    Passage,
    PictureFile,
    Query,
    Reply,
    RunAudience,
    Schedule,
    Scope,
    SharedRun,
    Space,
    StoredSource,
    StoreRepair,
    StoreStats,
    ToolCall,
    ToolSpec,
    Usage,
    Vector,
)


class Emit(Protocol):
    """How an engine speaks: `await emit(fact)` returns when the fact is committed; `emit.delta` is fire and forget."""

    # a fact is committed whole: a caller that is cancelled meanwhile learns of it at its next wait
    async def __call__(self, fact: Fact) -> None: ...

    def delta(self, delta: Delta) -> None: ...


class Named(Protocol):
    """What a log and a person tell apart by its name."""

    @property
    def name(self) -> str: ...


class AskOptions(TypedDict, total=False):
    """How a model is asked, and who hears its reply as it comes."""

    max_tokens: Required[int]
    temperature: float | None
    deadline: float | None
    schema: Mapping[str, Any] | None
    on_text: Callable[[str], None] | None
    on_call: Callable[[ToolCall], None] | None
    on_arguments: Callable[[str, str], None] | None
    retries: bool


class LLM(Named, Protocol):
    """A model. Never assume a well-formed reply: arguments of tool calls are unchecked text."""

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Unpack[AskOptions]
    ) -> Reply:
        """Ask once, until `deadline` by the run's Clock. Raises LLMError.

        `on_text` gets pieces of the text, `on_arguments` the tool's name and pieces of its arguments, and `on_call` each tool
        call that is complete; all of them are in the reply. What of a reply with a `defect` was not passed on is held back.
        """


class SearchBackend(Named, Protocol):
    async def search(self, query: Query) -> list[Hit]:
        """Hits, best first; an empty list means empty on purpose. Raises BackendError.

        What the searcher honours beyond this, each optional: `filters`, the names among "site", "time", "language" and
        "focus" that the backend keeps itself; `interval_s`, the pause it wants between queries; `local`, for hits of this
        machine; and on the list it returns, `failures`, the parts of it that did not answer. A backend over others has
        a `route` (who is asked, who stands in reserve), a `member` by name and the `phrase` for each: the searcher asks them.
        """


class Breaker(Protocol):
    """Which backends rest after failures, kept across processes."""

    async def admit(self, backend: str) -> Suspension | None:
        """None to ask now, or the suspension that forbids it."""

    async def record_success(self, backend: str) -> None: ...

    async def record_failure(self, backend: str, error: BackendError) -> None: ...


class Pacing(Protocol):
    """How often something may happen for each key, in one process or on all machines of a team."""

    async def wait(self, key: str) -> None:
        """Return when it may happen once more."""


MakePacing = Callable[[str, float, float], Pacing]  # of what is paced, its burst, and its rate a second


class ConcurrencyLimit(Protocol):
    """How much may happen at once."""

    def acquire(self) -> AbstractAsyncContextManager[None]:
        """Wait for a free slot and keep it for as long as the block."""


class ContentFetcher(Named, Protocol):
    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        """One page. Raises FetchError with a reason."""


class PictureFetcher(Protocol):
    async def fetch_picture(self, url: str) -> PictureFile:
        """A picture of a usual format and a bounded size. Raises FetchError."""


class PageStore(Protocol):
    """Texts of pages by content hash: the evidence behind citations."""

    async def put(self, text: str) -> str: ...

    async def get(self, digest: str) -> str | None: ...


class Embedder(Named, Protocol):
    """Texts to vectors of length one. The name says which model, so that a store can refuse to mix two."""

    @property
    def dims(self) -> int:
        """The length of its vectors; 0 where only the first answer will tell."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        """One vector per text, in order; `query` for what is searched with. Raises LLMError or StoreError."""


class PairModel(Named, Protocol):
    """Whether a first text entails a second one: (premise, hypothesis), or (question, passage) for relevance."""

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        """One score per pair, in order, computed off the event loop; `deadline` is a time of the run's Clock.

        Never raises for what a model or a file does: a pair that could not be scored is a gap (`known` is False, with a
        reason), and so is every pair left when the deadline passes.
        """


class KnowledgeStore(Named, Protocol):
    """What nexi has read, in chunks. Every method raises StoreError; a write that returned is kept, whole.

    `embedder` names the model that made a vector: a store keeps the first it was given and refuses any other.
    """

    async def put(self, pages: Sequence[IndexedPage], *, embedder: str = "") -> None:
        """Store pages, all or none. A page under a known URL is replaced whole; equal content is kept once for all URLs."""

    async def link(self, source: StoredSource) -> bool:
        """Store another URL of content that is there already (by `digest`), or say that there is none such."""

    async def remove(self, urls: Sequence[str]) -> int:
        """Forget pages by URL, and say how many there were."""

    async def source(self, url: str) -> StoredSource | None: ...

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        """Stored pages, the last fetched first."""

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        """The chunks of one page in order, from number `first` to `last`, both included."""

    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        """By words (BM25), best first. Words no chunk has are left out; code identifiers match whole and in parts."""

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        """By the cosine of vectors, best first; empty while no vector is stored."""

    async def list_unembedded(self, count: int = 100) -> list[Passage]:
        """Chunks that have no vector yet."""

    async def add_vectors(self, vectors: Mapping[str, Vector], *, embedder: str) -> None:
        """Give chunks their vectors, by passage id; a chunk that is gone meanwhile is passed over."""

    async def forget_vectors(self) -> None:
        """Drop every vector and the embedder's name, so that another may embed the texts again."""

    async def prepare_reembedding(self, embedder: str) -> None:
        """Let another embedder give every chunk a vector: from now on `list_unembedded` lists those it has not seen.

        A store that several machines share searches the former vectors until then; a file drops them at once.
        """

    async def stats(self) -> StoreStats: ...

    async def repair(self, on_saved: Callable[[int, int], None] = lambda count, total: None) -> StoreRepair:
        """Save what can be read of a damaged store; `on_saved` hears, in any thread, how many of how many sources are saved."""

    async def aclose(self) -> None: ...


class RunLog(Protocol):
    """The log of one run, open for writing."""

    @property
    def run_id(self) -> str: ...

    async def append(self, fact: Fact) -> int:
        """Commit a fact and return its number, without holes. Raises StoreError, also when another writer has the run."""

    def stop_requested(self) -> bool:
        """Whether another process asked this run to answer from what it has."""

    def explain_stop(self) -> str:
        """What the user should know about a requested stop; "" where a person asked for it."""

    async def close(self) -> None: ...


class RunStore(Protocol):
    """The runs of one person. Its methods block, so a door calls them in a thread; each raises StoreError.

    A run of somebody else is no run: its id is as unknown as one that was never made.
    """

    @property
    def pages(self) -> PageStore: ...

    def create(self) -> RunLog:
        """A new run under an unused id, open for writing."""

    def reopen(self, run_id: str) -> tuple[ReadLog, RunLog]:
        """Go on with a run that did not end: its facts, and its log. From now on every earlier writer of it is refused."""

    def open_log(self, run_id: str) -> ReadLog: ...

    async def wait_for_facts(self, run_id: str, number: int, timeout_s: float) -> None:
        """Return when there may be facts after that number, or when the time is over. A hint: the log is the truth."""

    def list_runs(self, newest: int = 0, *, state: str = "") -> list[RunSummary]:
        """Runs, newest first, all of them or so many; with `state`, those in that state."""

    def find_runs(self, text: str, newest: int) -> list[RunSummary]:
        """So many runs whose question contains each word of the text, whatever its case, newest first."""

    def read_summaries(self, run_ids: Collection[str]) -> list[RunSummary]:
        """The runs of these ids, as far as there are any, newest first."""

    def has_run(self, run_id: str) -> bool:
        """Whether anything is kept under this id, which may be any text."""

    def is_running(self, run_id: str) -> bool:
        """Whether a writer holds the log."""

    def request_stop(self, run_id: str) -> bool:
        """Ask a run to answer from what it has; False when it is not running."""

    def request_cancel(self, run_id: str) -> None:
        """Ask the process that has this run to end it without an answer."""

    def is_cancel_requested(self, run_id: str) -> bool: ...

    def remove(self, run_id: str) -> None:
        """Delete a run that is not running."""


class HistoryStore(Protocol):
    """The past answers of one person, most recent first. Its methods block; each raises StoreError."""

    def add(self, entry: HistoryEntry) -> None: ...

    def read(self, count: int | None = None) -> HistoryRead:
        """All entries, or the last so many."""

    def find(self, text: str, count: int | None = None) -> HistoryRead:
        """Entries whose question or answer contains the text, whatever its case: all of them, or the last so many."""

    def get(self, entry_id: str) -> HistoryEntry | None: ...

    def remove(self, entry_id: str) -> int:
        """Forget an entry, and say how many there were."""

    def clear(self) -> None: ...


class RunSharing(Protocol):
    """Which runs of one person others may read, and which of theirs she may. Its methods block; each raises StoreError."""

    def read_audience(self, run_id: str) -> RunAudience: ...

    def set_audience(self, run_id: str, audience: RunAudience) -> None:
        """Let exactly these people read a run. Raises NexiError for an unknown name."""

    def list_shared(self) -> list[SharedRun]:
        """The runs of others that she may read, newest first."""


class KnowledgeSharing(Protocol):
    """Who may read the knowledge base of one person, and whose she may. Its methods block; each raises StoreError."""

    def read_audience(self) -> RunAudience: ...

    def set_audience(self, audience: RunAudience) -> None:
        """Let exactly these people read it. Raises NexiError for an unknown name."""

    def list_owners(self) -> dict[str, str]:
        """The people whose knowledge base she reads, since they share it and she has accepted it: names by ids."""

    def list_offers(self) -> list[KnowledgeOffer]:
        """What others share with her, and what she has said to it."""

    def answer_offer(self, owner: str, *, is_accepted: bool) -> None:
        """Accept the knowledge base of somebody, or mute it. Raises NexiError where it is not shared with her."""


class SpaceStore(Protocol):
    """The spaces of one person, and those that others share with her. Its methods block; each raises StoreError."""

    def list_all(self) -> list[Space]:
        """Her own by name, then those of others."""

    def get(self, address: str) -> Space:
        """A space by its name or by its address, her own first. Raises NexiError with the code no_such_space."""

    def add(self, space: Space) -> None:
        """Raises NexiError where she has one of that name, or too many."""

    def change(self, space: Space) -> None:
        """Replace what is kept of her own space of that name. Raises NexiError where there is none."""

    def remove(self, name: str) -> None:
        """Forget her own space of that name. Raises NexiError where there is none."""


class SpaceSharing(Protocol):
    """Who else may read the spaces of one person and ask in them. Its methods block; each raises StoreError."""

    def read_audience(self, name: str) -> RunAudience: ...

    def set_audience(self, name: str, audience: RunAudience) -> None:
        """Share a space with exactly these people. Raises NexiError for an unknown name."""


class ScheduleStore(Protocol):
    """The questions that one person has asked again and again. Its methods block; each raises StoreError."""

    def list_all(self) -> list[Schedule]:
        """The one that is due next first."""

    def add(
        self, question: str, mode: str, request: dict[str, Any], *, every: timedelta, first: datetime | None = None
    ) -> Schedule:
        """A new one; without `first` it is due at once. Raises NexiError where she has too many."""

    def remove(self, schedule: int) -> None:
        """Raises NexiError where she has none such."""


class PersonalState(Protocol):
    """What is kept for one person beyond a process: runs and pages, past answers, knowledge, what she may still use."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def history(self) -> HistoryStore: ...

    @property
    def knowledge(self) -> KnowledgeStore: ...

    @property
    def sharing(self) -> RunSharing: ...

    @property
    def knowledge_sharing(self) -> KnowledgeSharing: ...

    @property
    def schedules(self) -> ScheduleStore: ...

    @property
    def spaces(self) -> SpaceStore: ...

    @property
    def space_sharing(self) -> SpaceSharing: ...

    def knowledge_of(self, owner_id: str) -> KnowledgeStore:
        """The knowledge of another person, for what she shares of it."""

    @property
    def local_embedders(self) -> dict[str, Embedder | None]:
        """The embedders on this machine that were loaded, by the name of their library: one for everybody of a process."""

    def make_pacing(self, name: str, burst: float, rate: float) -> Pacing:
        """A pace that all machines keep together."""

    def make_breaker(self, marks: Mapping[str, str]) -> Breaker:
        """The suspensions of search services, which all machines share."""

    def limit_calls(self, server: str, most: int) -> ConcurrencyLimit:
        """A limit of parallel calls to a model server from all machines."""

    def list_models(self) -> tuple[str, ...] | None:
        """The models that this person may ask for; None where she has no list of her own. It blocks."""

    def take_run(self, *, is_queued: bool = False) -> Allowance:
        """Count a new run, and say what it may use; it blocks. Raises NexiError with the code quota_reached."""

    def take_call(self, tokens: int, *, is_new: bool) -> None:
        """Count the estimate of a model call outside a run; it blocks. One that `is_new` needs a run that may still be made."""

    def settle_call(self, estimate: int, usage: Usage) -> None:
        """Correct what `take_call` counted by what the call did cost; it blocks."""


class Clock(Protocol):
    """Nothing else asks the time."""

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...
