"""The lead evaluator: compares what was found with the agenda, and writes the report or sends researchers out again.

The orchestrator above asks when a round is over; below is a model behind its port. Anything a model says that is not a
delegation is the report, so that research cannot get stuck, and where no model can be asked the reports themselves become a
digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nexi.answers.citations import extract_citation_markers
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.digest import digest, is_covered, stems
from nexi.research.state import MOST_TASKS, Evaluate, Researcher, ResearchState
from nexi.research.stream import LEAKED, ReportStream
from nexi.structured.json_reader import parse_lenient
from nexi.text.stopwords import STOP
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message
from nexi.values import frozen

LEAST_REPORT_BYTES = 500
PROMPT_TOKENS = 900
BUILT_IN_ROUNDS = 2  # coverage by words cannot tell when more rounds would help

_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
CUT = "cut"  # who wrote a report whose end never came


@frozen
class Judgement:
    """`delegate` with tasks, or `synthesise` with the report's text; `short` is one that reached the output limit."""

    decision: str
    tasks: tuple[str, ...] = ()
    text: str = ""
    by: str = "model"
    short: bool = False


@frozen
class Terms:
    """What the evaluator may spend and must know: `budget` is a sentence on what is left."""

    window: int
    max_tokens: int
    budget: str = ""
    folder: Path | None = None
    deadline: float | None = None


async def evaluate(
    state: ResearchState, step: Evaluate, llm: LLM, terms: Terms, feed: Callable[[str], None] | None = None
) -> Judgement:
    """The judgement of a round; a model that may no longer delegate and does so is asked once more.

    A report is told to `feed` as it is written. One that cites nothing, where the researchers did, cannot be proved: theirs
    become a digest instead.
    """
    cited = any(extract_citation_markers(r.report) for r in state.reported)
    for may_delegate in dict.fromkeys((step.may_delegate, False)):
        try:
            judgement = await _asked(_request(state, may_delegate, terms), llm, terms, feed)
        except LLMError:
            return stand_in(state, step)
        if judgement.decision == "synthesise" and judgement.text:
            if cited and not extract_citation_markers(judgement.text):
                break
            return judgement
        if judgement.decision == "delegate" and may_delegate:
            return judgement
    return stand_in(state, Evaluate(step.round, may_delegate=False))


async def _asked(
    messages: Sequence[Message], llm: LLM, terms: Terms, feed: Callable[[str], None] | None, *, again: bool = True
) -> Judgement:
    """What the model says. A reply that breaks off before anything of it was told is asked for once more; after that, what
    came is the report."""
    stream = ReportStream(feed or (lambda _: None))
    try:
        reply = await llm.complete(
            messages,
            max_tokens=terms.max_tokens,
            temperature=0.2,
            deadline=terms.deadline,
            on_text=stream.take if feed else None,
        )
    except LLMError as error:
        if stream.released:
            return Judgement("synthesise", text=stream.finish(), by=CUT)
        if again and stream.text and error.code != "timeout":
            return await _asked(messages, llm, terms, feed, again=False)
        raise
    whole = stream.finish()
    told = Judgement("synthesise", text=whole) if stream.released else read_judgement(reply.text)
    return replace(told, short=told.decision == "synthesise" and reply.finish == "length")


def read_judgement(text: str) -> Judgement:
    """A delegation where the whole reply is one; every other reply is the report."""
    told = LEAKED.sub("", text)
    fenced = _FENCED.match(told)
    body = (fenced[1] if fenced else told).strip()
    if body.startswith("{"):
        try:
            value: object = parse_lenient(body)
        except ValueError:
            value = None
        if isinstance(value, Mapping) and value.get("action") == "delegate":
            tasks = value.get("queries") if isinstance(value.get("queries"), list) else value.get("tasks")
            asked = [" ".join(t.split()) for t in tasks if isinstance(t, str) and t.strip()] if isinstance(tasks, list) else []
            return Judgement("delegate" if asked else "synthesise", tuple(dict.fromkeys(asked))[:MOST_TASKS])
    return Judgement("synthesise", text=body)


def _request(state: ResearchState, may_delegate: bool, terms: Terms) -> list[Message]:
    choice = (
        render("may_delegate", folder=terms.folder, most_tasks=MOST_TASKS)
        if may_delegate
        else render("must_write", folder=terms.folder)
    )
    rules = render(
        "evaluator",
        folder=terms.folder,
        question=state.question,
        agenda="\n".join(f"- {task}" for task in state.agenda),
        round=state.round,
        target=state.target_rounds,
        most=state.most_rounds,
        budget=terms.budget,
        choice=choice.strip(),
    )
    return [Message("system", rules), Message("user", _reports(state, terms))]


def _reports(state: ResearchState, terms: Terms) -> str:
    """Every report, each cut to its share of what the window holds; what failed is named."""
    room = (terms.window - terms.max_tokens - PROMPT_TOKENS) * BYTES_PER_TOKEN
    share = max(LEAST_REPORT_BYTES, room // max(1, len(state.reported)))
    told = [f"## Researcher {r.id}: {r.task}\n\n{cut(r.report, share)}" for r in state.reported]
    failed = [f"- {r.id} ({r.task}): {r.reason}" for r in state.researchers if r.doing == "failed"]
    return "\n\n".join([*told, *(["## Without a report", "\n".join(failed)] if failed else [])])


def cut(text: str, share: int) -> str:
    """At most `share` bytes; bytes bound tokens in every script."""
    body = text.encode("utf-8", "replace")
    if len(body) <= share:
        return text
    return f"{body[:share].decode('utf-8', 'ignore')}\n\n[cut here]"


# without a model


def stand_in(state: ResearchState, step: Evaluate, *, quoted: bool = False) -> Judgement:
    """The judgement without a model: what no report covers is looked for once more, then the reports become a digest.

    `quoted` says that no model wrote the reports either.
    """
    open_tasks = uncovered(state) if step.may_delegate and state.round < BUILT_IN_ROUNDS else []
    if open_tasks:
        return Judgement("delegate", tuple(open_tasks[:MOST_TASKS]), by="built-in")
    return Judgement("synthesise", text=digest(state, quoted=quoted), by="built-in")


def uncovered(state: ResearchState) -> list[str]:
    """Agenda items whose words no cited report of the run covers, as queries of those words."""
    cited = [stems(r.report) for r in state.reported if extract_citation_markers(r.report)]
    missing = [task for task in state.agenda if not any(is_covered(stems(task), words) for words in cited)]
    return [" ".join(w for w in re.findall(r"[\w'’-]+", task) if w.lower() not in STOP) or task for task in missing]


def budget_words(state: ResearchState) -> str:
    """What the evaluator is told of the budget: no figures, so that a run which is taken up again asks in the same words."""
    if state.limit:
        return "The budget is spent."
    return "More than 80 % of the budget is used: finish soon." if state.nears_limit else ""


def in_order(researchers: Sequence[Researcher]) -> list[Researcher]:
    """By round, then by number."""
    return sorted(researchers, key=lambda r: tuple(int(part) for part in r.id.split(".")))
