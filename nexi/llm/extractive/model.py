"""The built-in model that needs no model: it searches with the question, reads, and quotes the sentences that answer.

Above it is whatever drives the LLM port; below it are `questions`, `evidence` and `composition`, all pure. It sees only what
the port gives: messages with typed tool results, tool specs, a schema. It never writes a statement of its own beyond a short
answer taken from the pages, costs nothing, and gives the same reply to the same messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from msgspec import Struct

from nexi.answers.answered import NOTHING_FOUND
from nexi.errors import LLMError
from nexi.llm.extractive._evidence import Compare, rank_hits
from nexi.llm.extractive._found import FoundPassage, find_passages, quote_passages
from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_PAGES_READ, MAX_QUESTION_CHARS, MAX_ROUNDS
from nexi.llm.extractive._quotation import join_quotations
from nexi.llm.extractive._summary import is_about_pages, page_views, pick_parts, summarise_pages, summarise_text
from nexi.llm.extractive.composition import NOT_ANSWERED, ExtractiveAnswer, NextStep, compose_answer, find_next_step
from nexi.llm.extractive.questions import Question, extract_keywords, list_queries, read_question, split_question
from nexi.ports import AskOptions
from nexi.structured.ranking import ENOUGH, Assessment
from nexi.text.references import find_namesakes, find_qualified
from nexi.text.scope import DocumentScope, order_versions, read_scope
from nexi.types import Message, PageView, Reply, SearchOutcome, ToolCall, ToolSpec, Usage

MORE_PAGES = 2
NOTHING_READ = "No page could be read, so this question has no answer from the web."
SEARCHING = ("web_search", "search")  # what the tools that search and those that read may be called
READING = ("web_get", "scrape")
LOCAL = "local_search"
STORE = "local"  # the backend name of the knowledge store
_URL = re.compile(r"https?://[^\s<>\"'`\])]+")
_PAGE_TEXT = re.compile(r"\[\d{1,4}\] \S+(?:\n|\\n)---(?:\n|\\n)")


class Extractive:
    """The LLM port without a language model; `compare` is a model that reads, where there is one."""

    def __init__(self, compare: Compare | None = None) -> None:
        self._compare = compare

    @property
    def name(self) -> str:
        return "extractive"

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Unpack[AskOptions]
    ) -> Reply:
        """One step, worked out off the event loop; `temperature`, `deadline` and `retries` change nothing here."""
        on_call, on_arguments = options.get("on_call"), options.get("on_arguments")
        if (schema := options.get("schema")) is not None:
            reply = _text_reply(json.dumps(_pick_numbers(schema, messages)))
        else:
            names = frozenset(tool.name for tool in tools)
            reply = await asyncio.to_thread(next_reply, tuple(messages), names, options["max_tokens"], self._compare)
        for call in reply.tool_calls:
            if on_arguments:
                on_arguments(call.name, call.arguments)
            if on_call:
                on_call(call)
        if reply.text and (on_text := options.get("on_text")):
            on_text(reply.text)
        return reply


class _ExtractiveQuestion(Struct, frozen=True):
    """What the conversation holds about its last question; `latest` is what the last search of the web found."""

    question: Question
    outcomes: tuple[SearchOutcome, ...]
    latest: tuple[SearchOutcome, ...]
    pages: tuple[PageView, ...]
    asked: frozenset[str]
    searches: int
    reads: int
    known: Assessment | None = None
    stored: frozenset[int] = frozenset()

    @property
    def quotable_pages(self) -> tuple[PageView, ...]:
        """What may be quoted, each page once. Stored pages of the web give way to those that a search brought up now."""
        read = tuple({p.number: p for p in self.pages if p.text and not p.error and p.number > 0}.values())
        if self.knows_enough:
            return read
        pages = tuple(p for p in read if p.number not in self.stored or p.url in self.asked or p.url.startswith("file:"))
        return pages if any(p.number not in self.stored or p.url in self.asked for p in pages) else read

    @property
    def knows_enough(self) -> bool:
        """Whether what was known already answers the question."""
        return self.known is not None and self.known.score >= ENOUGH and bool(self.stored)


def next_reply(messages: Sequence[Message], tools: frozenset[str], max_tokens: int, compare: Compare | None = None) -> Reply:
    """The next step of a conversation: search, read, or answer."""
    turn = _read_turn(messages)
    if not tools and not turn.pages:
        instructions = [m.content for m in messages if m.role == "system"]
        return _text_reply(summarise_text(instructions, [m.content for m in messages if m.role != "system"], max_tokens))
    if reply := _next_call(turn, tools, len(messages), compare):
        return reply
    text = _draft_answer(turn, compare) if turn.quotable_pages else NOTHING_READ
    return _call_reply("final_answer", {"answer": text}, len(messages)) if "final_answer" in tools else _text_reply(text)


def _next_call(turn: _ExtractiveQuestion, tools: frozenset[str], step: int, compare: Compare | None) -> Reply | None:
    """A search or a read that may still help, else None. What is known comes first; the web is for what is missing."""
    begins = turn.known is None and not turn.searches and not turn.reads and not _URL.search(turn.question.text)
    if LOCAL in tools and begins:
        return _call_reply(LOCAL, {"queries": list_queries(turn.question), "get_full": True}, step)
    if turn.knows_enough:
        return None
    # Where what is known was searched and not read, as a researcher does it, the web is searched too, then both read.
    knows_only_where = turn.known is not None and not turn.stored and not turn.searches and not turn.reads
    reading = next((name for name in READING if name in tools), "")
    urls = [] if knows_only_where else _wanted_urls(turn, compare if reading == "scrape" else None)
    unread = [u for u in urls if u not in turn.asked]
    whole = {"get_full": True} if reading == "web_get" else {}
    searching = next((name for name in SEARCHING if name in tools), "")
    if reading and unread and (count := _pages_to_read(turn)):
        return _call_reply(reading, {"urls": unread[:count], **whole}, step)
    step_on = NextStep()
    if turn.reads == 1 and turn.searches <= 1 and turn.quotable_pages:  # only where the first pages lead on, so that a run ends
        hits = {hit.url: hit for outcome in turn.latest for hit in outcome.hits}
        best_hits = [hits[url] for url in rank_hits(turn.question, turn.latest)]
        step_on = find_next_step(turn.question, turn.quotable_pages, best_hits, turn.asked)
    queries = list_queries(turn.question) if not turn.searches and not turn.reads else []
    if turn.searches == 1:
        queries = list(step_on.queries) if any(o.hits for o in turn.outcomes) else [extract_keywords(turn.question)]
    if searching and queries:
        return _call_reply(searching, {"queries": queries}, step)
    further = list(dict.fromkeys((*step_on.links[:MORE_PAGES], *step_on.named[:MORE_PAGES])))
    if reading and further and turn.reads < MAX_ROUNDS:
        return _call_reply(reading, {"urls": further, **whole}, step)
    return None


def _pages_to_read(turn: _ExtractiveQuestion) -> int:
    """The first pages; the next ones when those failed; a few for a name that was looked up."""
    if turn.reads == 0 or (turn.reads < MAX_ROUNDS and not turn.quotable_pages):
        hits = [hit for outcome in turn.latest for hit in outcome.hits]
        leads = [(hit.title, hit.snippet) for hit in hits]
        is_stored = all(hit.backend == STORE for hit in hits)  # nothing is fetched for these
        text = turn.question.text
        is_open = split_question(turn.question) or find_namesakes(text, leads) or find_qualified(text, leads)
        return MAX_PAGES_READ * (2 if is_stored or is_open else 1)
    return MORE_PAGES if turn.reads < min(turn.searches, MAX_ROUNDS) else 0


def _wanted_urls(turn: _ExtractiveQuestion, compare: Compare | None = None) -> list[str]:
    own = [u.rstrip(".,;:!?") for u in _URL.findall(turn.question.text)]
    store_urls = [passage.url for passage in _found_passages(turn)]
    hits = {hit.url: hit for outcome in turn.latest for hit in outcome.hits}
    urls = list(dict.fromkeys([*store_urls, *rank_hits(turn.question, turn.latest, compare)]))
    scopes = [
        read_scope(hit.title, url, hit.snippet if hit.backend == STORE else "", hit.published[:10])
        if (hit := hits.get(url))
        else DocumentScope()
        for url in urls
    ]
    return list(dict.fromkeys([*own, *(urls[n] for n in order_versions(turn.question.text, scopes))]))


def _found_passages(turn: _ExtractiveQuestion, pages: Sequence[PageView] = ()) -> list[FoundPassage]:
    """What the first search of the knowledge store has found, where it was searched instead of the web."""
    hits = turn.outcomes[0].hits if turn.outcomes else ()
    return find_passages(turn.question, hits, pages) if hits and all(hit.backend == STORE for hit in hits) else []


def _draft_answer(turn: _ExtractiveQuestion, compare: Compare | None) -> str:
    pages = turn.quotable_pages
    if is_about_pages(turn.question.text, pages):
        return join_quotations(summarise_pages(pages)) or NOTHING_FOUND
    draft = compose_answer(turn.question, pages, compare)
    if draft.parts:
        return _render_parts(draft)
    is_whole = draft.short or draft.answered == "depends"
    if not draft.lines:
        return NOTHING_FOUND
    passages = "" if is_whole else quote_passages(_found_passages(turn, pages), pages)
    quotations = passages or join_quotations(draft.lines)
    if draft.answered == "no":
        return f"{NOT_ANSWERED}\n\n{quotations}"
    return f"{draft.short} {quotations}" if draft.short else quotations


def _render_parts(draft: ExtractiveAnswer) -> str:
    """A paragraph for each question that is answered, then those that are not; what answers two of them stands once."""
    paragraphs, shown, open_parts = list[str](), set[tuple[str, int]](), list[str]()
    for question, answer in draft.parts:
        lines = [line for line in answer.lines if line not in shown]
        # what only seems to answer a question, and surely answers another one, is likely to answer no more than that
        if answer.answered == "no" or (answer.answered == "likely" and not lines):
            open_parts.append(f"“{question.rstrip('?')}”")
        elif lines:
            shown.update(lines)
            paragraphs.append(f"{answer.short} {join_quotations(lines)}".strip())
    gap = f"None of the pages that were read answers {' or '.join(open_parts)}." if open_parts else ""
    return "\n\n".join(filter(None, (*paragraphs, gap)))


def _read_turn(messages: Sequence[Message]) -> _ExtractiveQuestion:
    """The last question, what was searched and read for it, and every page of the conversation."""
    # Tool messages, and later user messages that carry pages as text because no tools were offered.
    first = next((i for i, m in enumerate(messages) if m.role == "user"), 0)
    has_pages = [m.role == "user" and i > first and bool(_PAGE_TEXT.search(m.content)) for i, m in enumerate(messages)]
    results = [i for i, m in enumerate(messages) if m.role == "tool" or has_pages[i]]
    # A user message straight after a tool's result would be the loop speaking.
    places = [i for i, m in enumerate(messages) if m.role == "user" and i not in results]
    at = ([i for i in places if i - 1 not in results] or places or [0])[-1]
    asked_before = [messages[i].content[:MAX_QUESTION_CHARS] for i in places if i < at]
    question = read_question(messages[at].content if messages else "", " ".join(asked_before[-MAX_ROUNDS:]))
    names = {call.id: call.name for m in messages for call in m.tool_calls}
    here = [messages[i] for i in results if i > at]
    local_results = [m for m in here if names.get(m.tool_call_id) == LOCAL]
    tool_names = [names.get(m.tool_call_id, "") for m in here]
    outcomes = [tuple(_typed_items(m, SearchOutcome)) for m in here]
    searches = [i for i, name in enumerate(tool_names) if name in SEARCHING]
    # the last search of the web that brought anything; with only one search, what is known of other places too
    latest = max((i for i in searches if outcomes[i]), default=0) if len(searches) > 1 else 0
    return _ExtractiveQuestion(
        question,
        tuple(itertools.chain.from_iterable(outcomes)),
        tuple(itertools.chain.from_iterable(outcomes[latest:])),
        tuple(p for i in results for p in _pages_of(messages[i])),
        _asked_urls(messages, results),
        len(searches),
        sum(name in READING and _answers_with_pages(m) for m, name in zip(here, tool_names, strict=True)),
        next((a for m in local_results for a in _typed_items(m, Assessment)), Assessment(0.0) if local_results else None),
        frozenset(view.number for m in local_results for view in _pages_of(m)),
    )


def _asked_urls(messages: Sequence[Message], results: Sequence[int]) -> frozenset[str]:
    """Every page that was asked for; a call that only announces pages does not count, nor one whose arguments are no JSON."""
    announcements = {messages[i].tool_call_id for i in results if not _answers_with_pages(messages[i])}
    urls: set[str] = set()
    for call in (c for m in messages for c in m.tool_calls if c.name in READING and c.id not in announcements):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            urls.update([str(url) for url in json.loads(call.arguments)["urls"]])
    return frozenset(urls)


def _answers_with_pages(message: Message) -> bool:
    return message.result is None or message.result.value != ()


def _typed_items(message: Message, kind: type[Any]) -> Iterable[Any]:
    value = message.result.value if message.result else ()
    return [v for v in value if isinstance(v, kind)] if isinstance(value, tuple) else []


def _pages_of(message: Message) -> list[PageView]:
    """The pages of a result: typed, or read back from the text every model is given."""
    if message.result is not None:
        return list(_typed_items(message, PageView))
    content = message.content
    try:
        texts = [str(page["content"]) for page in json.loads(content[content.index("{") :])["pages"]]
    except (ValueError, KeyError, TypeError):
        texts = [content]
    return [view for text in texts for view in page_views(text)]


def _pick_numbers(schema: Mapping[str, Any], messages: Sequence[Message]) -> dict[str, list[int]]:
    """The one structured answer given without a model: which numbered parts of the prompt bear on its question."""
    properties = schema.get("properties")
    pick = properties.get("pick") if isinstance(properties, Mapping) else None
    if not isinstance(pick, Mapping) or pick.get("type") != "array":
        raise LLMError(
            "the built-in model cannot fill in this form",
            cause="it has no language model behind it",
            fix="configure a model: nexi config setup",
            code="unsupported",
        )
    most = min(MAX_ALTERNATIVES, int(pick.get("maxItems", MAX_ALTERNATIVES)))
    return {"pick": pick_parts([m.content for m in messages], most)}


def _call_reply(name: str, arguments: Mapping[str, Any], step: int) -> Reply:
    call = ToolCall(f"extractive_{step}", name, json.dumps(arguments, ensure_ascii=False))
    return Reply("", (call,), Usage(0, 0, cost=0.0), "tool_calls")


def _text_reply(text: str) -> Reply:
    return Reply(text, (), Usage(0, 0, cost=0.0), "stop")
