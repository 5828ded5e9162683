"""The evaluator: compares the researchers' reports with the agenda, and writes or plans the report or delegates new tasks.

The orchestrator above calls it when a round is over; below is a model behind its port. Every reply that is neither a delegation
nor an outline is the report, so that research cannot get stuck. Where no model can be asked, the reports become a digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research._digest import build_digest, content_stems, is_covered
from nexi.research._stream import LEAKED_TAGS, MAX_PROSE_CHARS, ReportStream
from nexi.research.outline import MIN_SECTIONS, Section, most_sections, parse_gaps, parse_outline, parse_title
from nexi.research.state import MAX_TASKS, EvaluateStep, ResearchState
from nexi.structured.json_reader import as_mapping, find_values
from nexi.text.words import drop_stop_words
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message, StopReason

MIN_REPORT_BYTES = 500
PROMPT_TOKENS = 900
MAX_DELEGATION_CHARS = 20_000
MAX_BUILT_IN_ROUNDS = 2  # word coverage cannot tell whether more rounds would help

Release = Callable[[str], None]  # gets the report as it grows

_HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
SPENT = "The budget is spent."
CUT_OFF = "cut"  # recorded as the author of a report whose end never came


class RoundJudgement(Struct, frozen=True):
    """The decision on a round: `delegate` with tasks, `outline` with sections, or `synthesise` with the text of the report."""

    decision: str
    tasks: tuple[str, ...] = ()
    text: str = ""
    by: str = "model"
    reached_output_limit: bool = False
    sections: tuple[Section, ...] = ()
    title: str = ""  # of an outline
    gaps: tuple[str, ...] = ()  # that an outline names: parts of the question that no report answers


class EvaluationLimits(Struct, frozen=True):
    """The limits of one evaluation. `budget_note` is a sentence for the model on what is left of the budget."""

    window: int
    max_tokens: int
    budget_note: str = ""
    prompts_folder: Path | None = None
    deadline: float | None = None
    plans_sections: bool = False  # asks for an outline first, instead of the whole report
    words: int = 0  # that the report should have; 0 leaves it to the evidence
    instructions: str = ""

    @property
    def prompt_tokens(self) -> int:
        """What the rules of a request take of the window, with the user's instructions."""
        return PROMPT_TOKENS + len(self.instructions.encode()) // BYTES_PER_TOKEN


async def evaluate_round(
    state: ResearchState, step: EvaluateStep, llm: LLM, limits: EvaluationLimits, release: Release | None = None
) -> RoundJudgement:
    """Ask the model to judge a round, once more if it delegates although it may not; `release` gets the report as it grows."""
    # a report without citations, where the researchers gave some, cannot be verified: a digest of theirs takes its place
    cited = any(extract_citation_markers(r.report) for r in state.reported_researchers)
    messages = build_messages(state, step.may_delegate, limits)
    for may_delegate in (step.may_delegate, False):
        try:
            judgement = await _request_judgement(messages, llm, limits, release)
        except LLMError:
            return judge_without_model(state, step)
        if judgement.decision == "synthesise" and judgement.text:
            if cited and not extract_citation_markers(judgement.text):
                break
            return judgement
        if judgement.decision == "outline" or (judgement.decision == "delegate" and may_delegate):
            return judgement
        messages = build_messages(state, may_delegate=False, limits=limits)
        if not may_delegate:
            messages.append(Message("user", render("must_write", folder=limits.prompts_folder).strip()))
    return judge_without_model(state, EvaluateStep(step.round, may_delegate=False))


async def _request_judgement(
    messages: Sequence[Message], llm: LLM, limits: EvaluationLimits, release: Release | None, *, may_retry: bool = True
) -> RoundJudgement:
    """Ask the model, once more where a reply breaks off unreleased; a released one is the report as far as it came."""
    stream = ReportStream(release or (lambda _: None))
    try:
        on_text = stream.receive if release else None
        reply = await llm.complete(
            messages, max_tokens=limits.max_tokens, temperature=0.2, deadline=limits.deadline, on_text=on_text
        )
    except LLMError as error:
        if stream.released:
            return RoundJudgement("synthesise", text=stream.finish(), by=CUT_OFF)
        if may_retry and stream.text and error.code != "timeout":
            return await _request_judgement(messages, llm, limits, release, may_retry=False)
        raise
    report = stream.finish()
    judgement = RoundJudgement("synthesise", text=report) if stream.released else _parse_judgement(reply.text)
    return replace(judgement, reached_output_limit=judgement.decision == "synthesise" and reply.finish == "length")


def _parse_judgement(text: str) -> RoundJudgement:
    """Parse a reply: a delegation or an outline, bare, fenced or after a few words; every other reply is the report."""
    body = _FENCED.sub(r"\1", LEAKED_TAGS.sub("", text)).strip()
    values = find_values(body[:MAX_DELEGATION_CHARS])
    action = next((v for v in values if as_mapping(v.value).get("action") in ("delegate", "outline")), None)
    # a report with a heading may quote a delegation and is none
    if action is None or action.start > MAX_PROSE_CHARS or _HEADING.search(body[: action.start]):
        return RoundJudgement("synthesise", text=body)
    value = as_mapping(action.value)
    if value["action"] == "outline":
        sections = parse_outline(value)
        outline = RoundJudgement("outline", sections=sections, title=parse_title(value), gaps=parse_gaps(value))
        return outline if sections else RoundJudgement("synthesise")
    listed = value.get("queries") if isinstance(value.get("queries"), list) else value.get("tasks")
    texts = [t for t in listed if isinstance(t, str) and t.strip()] if isinstance(listed, list) else []
    tasks = tuple(dict.fromkeys(" ".join(t.split()) for t in texts))[:MAX_TASKS]
    return RoundJudgement("delegate" if tasks else "synthesise", tasks)


def build_messages(state: ResearchState, may_delegate: bool, limits: EvaluationLimits) -> list[Message]:
    folder = limits.prompts_folder
    choice = (
        render("may_delegate", folder=folder, most_tasks=MAX_TASKS) if may_delegate else render("must_write", folder=folder)
    )
    agenda = "\n".join(f"- {task}" for task in state.agenda)
    values = {"question": state.question, "agenda": agenda, "budget": limits.budget_note, "choice": choice.strip()}
    rounds = {"round": state.round, "target": state.target_rounds, "most": state.max_rounds}
    sections = {"least_sections": MIN_SECTIONS, "most_sections": most_sections(limits.words)} if limits.plans_sections else {}
    rules = render("outline" if limits.plans_sections else "evaluator", folder=folder, **values, **rounds, **sections)
    # every report, each cut to its share of the context window, and the researchers that failed
    room = (limits.window - limits.max_tokens - limits.prompt_tokens) * BYTES_PER_TOKEN
    share = max(MIN_REPORT_BYTES, room // max(1, len(state.reported_researchers)))
    reports = [f"## Researcher {r.id}: {r.task}\n\n{cut_to_bytes(r.report, share)}" for r in state.reported_researchers]
    failed = [f"- {r.id} ({r.task}): {r.reason}" for r in state.researchers if r.status == "failed"]
    request = "\n\n".join([*reports, *(["## Without a report", "\n".join(failed)] if failed else [])])
    return [Message("system", rules + limits.instructions), Message("user", request)]


def cut_to_bytes(text: str, max_bytes: int) -> str:
    """Cut a text to at most `max_bytes`, with a mark; in every script a text has no more tokens than bytes."""
    body = text.encode("utf-8", "replace")
    return text if len(body) <= max_bytes else f"{body[:max_bytes].decode('utf-8', 'ignore')}\n\n[cut here]"


def judge_without_model(state: ResearchState, step: EvaluateStep, *, quoted: bool = False) -> RoundJudgement:
    """Delegate tasks that no report covers once more, then make a digest of the reports, which may be quotations (`quoted`)."""
    if step.may_delegate and state.round < MAX_BUILT_IN_ROUNDS:
        cited = [content_stems(r.report) for r in state.reported_researchers if extract_citation_markers(r.report)]
        open_tasks = [task for task in state.agenda if not any(is_covered(content_stems(task), words) for words in cited)]
        if open_tasks:
            queries = tuple(drop_stop_words(task) or task for task in open_tasks[:MAX_TASKS])
            return RoundJudgement("delegate", queries, by="built-in")
    return RoundJudgement("synthesise", text=build_digest(state, quoted=quoted), by="built-in")


_LIMIT_SENTENCES = {
    StopReason.TIME_TARGET: "The time target was reached.",
    StopReason.MAX_ITERATIONS: "The iteration limit was reached.",
    StopReason.CANCELLED: "The user has stopped the research.",
}


def describe_budget(state: ResearchState, *, names_limit: bool = True) -> str:
    """Describe the budget to the evaluator; without figures, so that a resumed run sends the same request."""
    # runs recorded before limits had names (`names_limit`) were told that the budget is spent, whichever it was
    if state.limit:
        return _LIMIT_SENTENCES.get(state.limit, SPENT) if names_limit else SPENT
    return "More than 80 % of the budget is used: finish soon." if state.is_near_limit else ""
