"""The words of nexi as frozen values, which know nothing of networks, files, models or clocks."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "tool_calls", "length", "content_filter"]
Vector: TypeAlias = "array[float]"  # as an embedder gives it: numpy reads it without a copy, and nothing else needs numpy
Purpose = Literal[
    "answer", "extract", "judge", "compact", "correct", "embed", "rerank", "context", "suggest", "task", "json", "probe"
]
BACKGROUND_PURPOSES = frozenset(("embed", "rerank", "context"))  # what a search or an index asks for: never replayed


class StopReason(StrEnum):
    """Why a run ended. A limit reached is one of these, never an exception."""

    FINAL_ANSWER = "final_answer"
    PLAIN_ANSWER = "plain_answer"
    TIME_TARGET = "time_target"
    MAX_ITERATIONS = "max_iterations"
    CONTEXT_LIMIT = "context_limit"
    BUDGET_SPENT = "budget_spent"
    API_ERROR = "api_error"
    CANCELLED = "cancelled"
    REPEATED = "repeated"


class Query(Struct, frozen=True):
    text: str
    count: int = 10
    sites: tuple[str, ...] = ()
    excluded_sites: tuple[str, ...] = ()
    time_range: str = ""
    language: str = ""
    focus: str = ""


class Paper(Struct, frozen=True):
    """What an index of papers says of one; empty where it does not say."""

    doi: str = ""
    authors: tuple[str, ...] = ()
    venue: str = ""
    year: str = ""
    licence: str = ""
    open_url: str = ""  # a copy that anyone may read
    standing: str = ""  # "retracted" or "concern", where a notice says so
    notice: str = ""  # its address
    versions: tuple[str, ...] = ()  # of the same work elsewhere: a preprint and its published version share them
    volume: str = ""
    issue: str = ""
    pages: str = ""
    cited_by: int = 0  # papers that cite it, as far as the index knows

    @property
    def mark(self) -> str:
        """What must stand before its title: "" for a paper in good standing."""
        return {"retracted": "RETRACTED", "concern": "EXPRESSION OF CONCERN"}.get(self.standing, "")


class Hit(Struct, frozen=True):
    """A search result. Its snippet is a hint and never counts as a read page."""

    url: str
    title: str = ""
    snippet: str = ""
    published: str = ""
    backend: str = ""
    paper: Paper | None = None


class Failure(Struct, frozen=True):
    """One provider that could not serve: what happened, why, and what fixes it."""

    provider: str
    code: str
    message: str
    fix: str = ""


class ServiceAnswer(Struct, frozen=True):
    """One of several services that were asked at once: why it was asked, and how many hits it had or what it said."""

    service: str
    reason: str
    hits: int = 0
    code: str = ""
    message: str = ""


class SearchOutcome(Struct, frozen=True):
    """The hits of one query, and which backends answered or did not."""

    query: str
    hits: tuple[Hit, ...] = ()
    backend: str = ""
    failures: tuple[Failure, ...] = ()
    asked: tuple[ServiceAnswer, ...] = ()  # of a backend that asks several services


class FetchLimits(Struct, frozen=True):
    """What one page may cost."""

    max_bytes: int = 2_000_000
    max_pdf_bytes: int = 16_000_000  # of documents that cannot be read from their beginning alone
    max_chars: int = 300_000
    max_redirects: int = 5
    timeout_s: float = 20.0
    content_types: tuple[str, ...] = ()  # none: all that can be read
    cites_notes: bool = False  # make citations of the footnotes of an HTML page

    def accepts(self, kind: str) -> bool:
        """Whether what is of a media type may be read; JSON and XML in disguise count as such."""
        if not self.content_types or kind in self.content_types:
            return True
        base = f"application/{kind.rpartition('+')[2]}"
        is_plain = base in ("application/json", "application/xml") and base in self.content_types
        return is_plain and kind.startswith("application/")


class Picture(Struct, frozen=True):
    """The picture that a page shows of itself elsewhere, its description, and the licence that the page declares."""

    url: str
    description: str = ""
    licence: str = ""


class PictureFile(Struct, frozen=True):
    """A picture as its site sent it; the type is what its first bytes say."""

    content_type: str
    data: bytes


class Imprint(Struct, frozen=True):
    """What a reference to a page tells besides its title and address; empty where the page does not say."""

    author: str = ""
    published: str = ""
    site: str = ""
    language: str = ""
    content_type: str = ""
    accessed: str = ""
    updated: str = ""
    paper: Paper | None = None
    picture: Picture | None = None


class Page(Struct, frozen=True):
    """What was fetched, as Markdown, with what the page says of itself."""

    url: str
    text: str
    title: str = ""
    final_url: str = ""
    content_type: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    description: str = ""
    links: tuple[str, ...] = ()
    downloaded_bytes: int = 0
    truncated: bool = False
    fetched_at: str = ""
    fetcher: str = ""
    etag: str = ""
    modified: str = ""
    site: str = ""
    headings: tuple[str, ...] = ()
    code_languages: tuple[str, ...] = ()
    redirects: int = 0
    unread: str = ""  # which of its pages could not be read
    updated: str = ""  # when the content was last changed, by what it says; `modified` is a validator of HTTP
    paper: Paper | None = None  # its record, where an index of papers led to it
    tags: tuple[str, ...] = ()  # its own, each with a #, unlike those that a user gives a source
    picture: Picture | None = None

    @property
    def digest(self) -> str:
        return content_digest(self.text)

    @property
    def imprint(self) -> Imprint:
        return Imprint(
            self.author,
            self.published,
            self.site,
            self.language,
            self.content_type,
            self.fetched_at,
            self.updated,
            self.paper,
            self.picture,
        )


class Source(Struct, frozen=True):
    """A page with a citation number: it was handed to the model. `link` opens it where the first evidence in it stands."""

    number: int
    url: str
    title: str = ""
    digest: str = ""
    imprint: Imprint = Imprint()
    link: str = ""


class PageView(Struct, frozen=True):
    """What the model was given of one page: its number and text, or the reason there is none."""

    url: str
    number: int = 0
    title: str = ""
    text: str = ""
    error: str = ""
    fix: str = ""  # for people; a model is not told how to widen what may be read
    day: str = ""  # of its text, where the page says it
    read_on: str = ""  # the day on which a question is asked of it


class ToolSpec(Struct, frozen=True):
    """A tool as offered to a model; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    """A call as the model wrote it: `arguments` is unchecked JSON text."""

    id: str
    name: str
    arguments: str


class ToolResult(Struct, frozen=True):
    """What a tool gave back: a typed value for our own model, and the text any model reads."""

    value: object
    text: str
    ok: bool = True


class Message(Struct, frozen=True, eq=False):
    """One turn of a conversation."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    result: ToolResult | None = None

    def __eq__(self, other: object) -> bool:
        """Two messages are equal if a model reads the same in them; `result` is not sent."""
        return self._parts() == other._parts() if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return (self.role, self.content, self.tool_calls, self.tool_call_id)

    def to_dict(self) -> dict[str, Any]:
        """The OpenAI form; an assistant turn of calls alone has null content."""
        data: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            data["content"] = self.content or None
            data["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.tool_calls
            ]
        if self.role == "tool":
            data["tool_call_id"] = self.tool_call_id
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read the OpenAI form, tolerating absent fields."""
        calls = tuple(
            ToolCall(str(c.get("id") or ""), str(c["function"]["name"]), str(c["function"].get("arguments") or ""))
            for c in data.get("tool_calls") or ()
        )
        return cls(data["role"], content_text(data.get("content")), calls, str(data.get("tool_call_id") or ""))


class Usage(Struct, frozen=True):
    """Tokens of one or more model calls. `cost` is in US dollars, None where a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost: float | None = 0.0

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        read, written = self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        return Usage(read, written, self.estimated or other.estimated, cost)


class ReplyDefect(Struct, frozen=True):
    """Why a reply cannot be read as the tool call or the object that it attempts, and how much of its text was passed on."""

    problems: tuple[str, ...]
    shown: str = ""


class Reply(Struct, frozen=True):
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: Finish = "stop"
    defect: ReplyDefect | None = None


class ConflictValue(Struct, frozen=True):
    """One value that sources give for a thing, as the first of them writes it, and how many origins stand behind it."""

    value: str
    numbers: tuple[int, ...]
    origins: int
    quote: str = ""
    day: str = ""  # of the newest of them
    standing: str = ""  # whether they are drafts, superseded, archived, or do not hold yet ("upcoming")


class Conflict(Struct, frozen=True):
    """A thing on which sources disagree, with their readings, the best supported first."""

    kind: Literal["number", "date", "polarity", "name"]
    subject: str
    readings: tuple[ConflictValue, ...]
    is_settled: bool = False  # where the others are older than the first, or hold no longer or not yet

    def sentence(self) -> str:
        """The disagreement in one cited sentence; of a settled one what the sources for other times say."""
        is_quote = self.kind == "polarity"
        readings = []
        for r in self.readings[self.is_settled :]:
            independent = f"{r.origins} independent" if r.origins > 1 else ""
            notes = ", ".join(note for note in (independent, r.standing, r.day) if note)
            value = f"{f'“{r.value}”' if is_quote else r.value} {''.join(f'[{n}]' for n in r.numbers)}"
            readings.append(f"{value} ({notes})" if notes else value)
        about = "" if is_quote else f" on {self.subject}"
        times = {r.standing == "upcoming" for r in self.readings[1:]}
        others = "Sources for a later time" if True in times else "Older sources"
        others = "Sources for other times" if len(times) > 1 else others
        lead = f"{others} differ" if self.is_settled else "Sources disagree"
        return f"{lead}{about}: {' and '.join(filter(None, (', '.join(readings[:-1]), readings[-1])))}."


Approach: TypeAlias = Literal["", "tools", "passages"]  # how a model is used; "" until its first reply shows it
# Whether pages answer a question; "depends" where it can mean several things, "" where nothing rated it, as in older logs.
Answered: TypeAlias = Literal["yes", "likely", "no", "depends", ""]


class Answer(Struct, frozen=True):
    """What the user gets: the text with [n] and the sources those numbers name."""

    text: str
    sources: tuple[Source, ...] = ()
    stop: StopReason = StopReason.FINAL_ANSWER
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    review: Review | None = None
    answered: Answered = ""


class Verdict(StrEnum):
    """What a check says of a sentence and its sources."""

    SUPPORTED = "supported"  # a judge: the passages say what the sentence says
    FOUND = "found"  # rules: the words and every hard fact are in the cited page
    CONTRADICTED = "contradicted"
    NOT_FOUND = "not_found"
    NOT_CONFIRMED = "not_confirmed"  # neutral: rules did not find it, and nobody has judged it
    UNCHECKED = "unchecked"  # a stated gap, never a pass


# the gravest first
STANDINGS: Mapping[str, str] = {"retracted": "a retracted paper", "concern": "a paper with an expression of concern"}


class Evidence(Struct, frozen=True):
    """What one cited source says to one sentence."""

    number: int
    url: str = ""
    digest: str = ""
    verdict: Verdict = Verdict.UNCHECKED
    presence: float = 0.0  # how much of the sentence stands in the span
    fit: float = 0.0  # how much of it the span says: a sentence with a wrong year has a high presence and no fit
    start: int = 0  # offsets into the stored text, and that text
    end: int = 0
    span: str = ""
    reason: str = ""
    missing: tuple[str, ...] = ()
    other: str = ""
    page: int = 0
    places: tuple[tuple[int, int], ...] = ()  # offsets of other parts, of a sentence that the source says in several places
    standing: str = ""  # of the paper: "retracted", "concern" or ""


class Claim(Struct, frozen=True):
    """One sentence of an answer, where it stands in the answer's text, and what its sources say to it."""

    index: int
    text: str
    start: int
    end: int
    verdict: Verdict = Verdict.UNCHECKED
    needs_citation: bool = True
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    judge: str = ""  # the model whose verdict this is; "" where rules alone decided

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(e.number for e in self.evidence)

    @property
    def standing(self) -> str:
        """The gravest standing of a paper that it cites: "retracted", "concern" or ""."""
        standings = {e.standing for e in self.evidence}
        return next((standing for standing in STANDINGS if standing in standings), "")


class Proof(Struct, frozen=True):
    """An answer, checked sentence by sentence. Sentences that claim nothing are in it and count for nothing."""

    claims: tuple[Claim, ...] = ()

    @property
    def checked(self) -> tuple[Claim, ...]:
        """The sentences that claim something."""
        return tuple(c for c in self.claims if c.needs_citation or c.evidence)

    @property
    def supported(self) -> int:
        return sum(c.verdict is Verdict.SUPPORTED for c in self.checked)

    @property
    def found(self) -> int:
        """Sentences whose words and facts are in their pages; no model says more of them."""
        return sum(c.verdict is Verdict.FOUND for c in self.checked)

    @property
    def passed(self) -> int:
        """Sentences that are found in their pages, whether a model also calls them supported or not."""
        return self.supported + self.found

    @property
    def presence(self) -> float:
        return _mean(max((e.presence for e in c.evidence), default=0.0) for c in self.checked)

    @property
    def fit(self) -> float:
        return _mean(max((e.fit for e in c.evidence), default=0.0) for c in self.checked)

    def count_citing(self, standing: str) -> int:
        """Sentences that cite a paper of this standing, and none of a graver one."""
        return sum(c.standing == standing for c in self.checked)

    def figures(self) -> str:
        total = len(self.checked)
        sentences = f"{total} sentence{'s' * (total != 1)}"
        if not self.passed and not any(c.judge or c.verdict is Verdict.CONTRADICTED for c in self.checked):
            verdicts = f"{sentences} not confirmed: only rules have read the answer, and they see words"
        elif not self.supported:
            verdicts = f"{self.found} of {sentences} found in the cited pages"
        else:
            verdicts = f"{self.supported} of {sentences} supported" + (f", {self.found} more found" if self.found else "")
        counts = [(self.count_citing(standing), words) for standing, words in STANDINGS.items()]
        return ", ".join((verdicts, *(f"{n} cite{'s' * (n == 1)} {words}" for n, words in counts if n)))


class Chunk(Struct, frozen=True):
    """A piece of a page as it is stored. `heading` is the path of headings above it, `code` the language if it is code."""

    text: str
    heading: str = ""
    context: str = ""
    code: str = ""
    start: int = 0


class StoredSource(Struct, frozen=True):
    """A page the knowledge store keeps."""

    url: str
    title: str = ""
    domain: str = ""
    language: str = ""
    fetched_at: str = ""
    digest: str = ""
    chunk_count: int = 0
    words: int = 0
    tags: tuple[str, ...] = ()
    published: str = ""
    updated: str = ""
    owner: str = ""  # the name of whoever shares it, where it is somebody else's


class KnowledgeOffer(Struct, frozen=True):
    """The knowledge base of somebody who lets one read it; it is searched once it is accepted."""

    owner: str
    name: str
    state: Literal["offered", "accepted", "muted"]


class IndexedPage(Struct, frozen=True):
    """A page ready to be stored: its chunks in order, and a vector for each of them or none at all."""

    source: StoredSource
    chunks: tuple[Chunk, ...] = ()
    vectors: tuple[Vector, ...] = ()


class Scope(Struct, frozen=True):
    """Which part of the store a search covers; what is empty does not restrict. A domain covers its subdomains."""

    urls: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    excluded_domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    code: bool | None = None


EVERYTHING = Scope()
TEAM = "team"  # in place of a person: what everybody on a server reads


class Passage(Struct, frozen=True):
    """A stored chunk with a score. `number` is its place in the page, from 0; `id` is the store's own name for it."""

    id: str
    url: str
    number: int
    text: str
    score: float = 0.0
    title: str = ""
    domain: str = ""
    heading: str = ""
    context: str = ""
    code: str = ""
    language: str = ""
    fetched_at: str = ""
    tags: tuple[str, ...] = ()
    start: int = 0
    published: str = ""
    updated: str = ""
    owner: str = ""


class Embedded(Struct, frozen=True):
    """The vectors of some texts, in their order, and what they cost."""

    vectors: tuple[Vector, ...]
    usage: Usage = Usage()


class StoreStats(Struct, frozen=True):
    """What a knowledge store holds. `unembedded` chunks have no vector; `damage` says what could not be read."""

    sources: int = 0
    chunks: int = 0
    words: int = 0
    unembedded: int = 0
    embedder: str = ""
    dims: int = 0
    bytes: int = 0
    damage: str = ""


class StoreRepair(Struct, frozen=True):
    """What a repair kept, what it could not, and where the damaged file was put aside."""

    sources: int = 0
    chunks: int = 0
    lost_sources: tuple[str, ...] = ()
    lost_chunks: int = 0
    unembedded: int = 0
    kept_aside: str = ""
    lost_count: int = 0  # of sources, at least: a damaged file may not know of all it held, nor name each


class JudgeFigure(Struct, frozen=True):
    """How often a model that judges sentences was right in its test: the mean over true and false pairs."""

    name: str
    accuracy: float
    pairs: int = 0


CHECK_TOO_LATE = "the time for checking was used up"  # the reason of a gap


class PairScore(Struct, frozen=True):
    """What a pair model says of one pair: probabilities that the premise supports and contradicts the hypothesis."""

    supported: float
    contradicted: float = 0.0
    known: bool = True  # False where there is no answer to rely on: a gap, which neither raises nor lowers
    reason: str = ""  # of the gap
    judge: JudgeFigure | None = None

    @classmethod
    def gap(cls, reason: str) -> PairScore:
        """What a pair model returns where it has nothing to rely on."""
        return cls(0.0, known=False, reason=reason)

    @property
    def supports(self) -> bool:
        # a tested model is calibrated so that one half decides, whatever its own thresholds are
        return self.known and self.supported >= 0.5


class Correction(Struct, frozen=True):
    """A sentence that a judge rejected, and what stands in its place; "" where it was taken out."""

    before: str
    after: str = ""
    reason: str = ""


REVIEW_VERSION = 2  # a judge decides, and marks stand beside the text; before, rules decided and changed the text


class Review(Struct, frozen=True):
    """How an answer was checked."""

    proof: Proof = Proof()  # of the text as it stands at the end
    marked: tuple[int, ...] = ()  # as `recited`, of reviews before version 2, whose rules changed the text
    dropped: tuple[Claim, ...] = ()  # sentences that a strict answer leaves out
    recited: int = 0
    corrected: int = 0
    asked: bool = False
    strict: bool = False
    judges: tuple[JudgeFigure, ...] = ()
    gap: str = ""  # why some sentences, or all, were not judged
    corrections: tuple[Correction, ...] = ()
    version: int = 0


def content_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_text(content: object) -> str:
    """The text of an OpenAI message content: a string, null, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping))
    return ""


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


class RunAudience(Struct, frozen=True):
    """Who may read a run or a knowledge base besides its owner: everybody of the team, and people by their names."""

    team: bool = False
    people: tuple[str, ...] = ()


class SharedRun(Struct, frozen=True):
    """A run that its owner lets somebody read."""

    id: str
    owner: str
    question: str
    mode: str
    state: str
    created: str


SPACE_TAG = "space:"


class Space(Struct, frozen=True):
    """Questions, files and pages that belong together, and what a question in it leaves open."""

    name: str
    instructions: str = ""
    model: str = ""
    effort: str = ""
    scope: Literal["", "web", "local"] = ""
    services: tuple[str, ...] = ()
    owner: str = ""  # the name of another person who shares it
    owner_id: str = ""  # on a team server

    @property
    def address(self) -> str:
        """What the space is called in a question."""
        return f"{self.name}@{self.owner}" if self.owner else self.name

    @property
    def tag(self) -> str:
        """What marks its sources; on a team server with its owner, since one searches what others share as well."""
        return SPACE_TAG + (f"{self.name}@{self.owner_id}" if self.owner_id else self.name)


class Schedule(Struct, frozen=True):
    """A question that is asked again and again. `last_run` is the id of the last run it became, "" for none."""

    id: int
    owner: str
    question: str
    mode: str
    every: timedelta
    next_at: datetime
    last_run: str = ""


class Allowance(Struct, frozen=True):
    """What is left of a person's quotas; None is without limit."""

    tokens: int | None = None
    cost: float | None = None


class Principal(Struct, frozen=True):
    """Who a request comes from. `person` is "" where one person has the server for herself."""

    person: str = ""
    name: str = ""
    role: str = "administrator"
    scopes: tuple[str, ...] = ("read", "ask")

    @property
    def is_administrator(self) -> bool:
        return self.role == "administrator"


GUEST = Principal("guest", "guest", "guest")  # somebody on this machine who did not show the owner's token


@dataclass(frozen=True)
class HistoryEntry:
    id: str
    ts: str
    query: str
    answer: str
    urls: list[str]
    effort: str
    iterations: int
    duration_s: float
    tokens: int
    space: str = ""  # in which it was asked

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "space" or value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HistoryEntry:
        """Read an entry; fields of a later version are left out. ValueError says which field is wrong."""
        return msgspec.convert({**data, "space": str(data.get("space") or "")}, cls)


class HistoryRead(NamedTuple):
    """Entries, most recent first, and how many lines could not be read."""

    entries: list[HistoryEntry]
    damaged: int = 0
