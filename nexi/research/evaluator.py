"""The evaluator: compares the researchers' reports with the agenda, and writes or plans the report or delegates new tasks.

The orchestrator above calls it when a round is over; below is a model behind its port. Every reply that is neither a delegation
nor an outline is the report, so that research cannot get stuck; it is released while it arrives. Where no model can be asked,
the reports become a digest, which adds nothing to them, repeats nothing, and leaves out what is not about its task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers, strip_sources_section
from nexi.checking.sentences import without_markers
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.state import MAX_TASKS, EvaluateStep, ResearchState
from nexi.research.titles import make_title
from nexi.structured.json_reader import as_mapping, find_values
from nexi.text.stems import stem
from nexi.text.words import content_words, drop_stop_words, find_names, find_words
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Message, StopReason

MIN_REPORT_BYTES = 500
PROMPT_TOKENS = 900
MAX_DELEGATION_CHARS = 20_000
MIN_SECTIONS = 2
MAX_SECTIONS = 6
MIN_SECTION_WORDS = 100
MAX_HEADING_CHARS = 120  # also of the title
MAX_COVERS_CHARS = 400
MAX_PROSE_CHARS = 600  # before a delegation; a longer text is the report
MAX_BUILT_IN_ROUNDS = 2  # word coverage cannot tell whether more rounds would help
MIN_COVERED_SHARE = 0.5
MIN_SHARED_WORDS = 2
SHORT_ANSWER_WORDS = 4  # a text with fewer words is a short answer, which the sentence after it may repeat

Release = Callable[[str], None]  # gets the report as it grows

_HEADING = re.compile(r"^#{1,3} ", re.MULTILINE)
_ANY_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
LEAKED_TAGS = re.compile(r"<think>.*?</think>|</?(?:think|answer|report|final)>", re.DOTALL)
_TAGS = tuple(f"<{slash}{name}>" for name in ("think", "answer", "report", "final") for slash in ("", "/"))
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_JSON_STARTS = "{`"
AFTER_CITATION = re.compile(r"(?:(?<=\d\])|(?<=\d\]\.))\s+")
_NUMBERS = re.compile(r"\s*\[\d+\]")
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
SPENT = "The budget is spent."
CUT_OFF = "cut"  # recorded as the author of a report whose end never came


class Section(Struct, frozen=True):
    """One section: its heading, what it must tell, and the numbers of the pages it rests on."""

    heading: str
    covers: str = ""
    sources: tuple[int, ...] = ()

    @property
    def subject(self) -> str:
        """The words by which evidence for this section is found."""
        return f"{self.heading} {self.covers}".strip()


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
    stream = _ReportStream(release or (lambda _: None))
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
        sections = _parse_outline(value)
        outline = RoundJudgement("outline", sections=sections, title=_parse_title(value), gaps=_parse_gaps(value))
        return outline if sections else RoundJudgement("synthesise")
    listed = value.get("queries") if isinstance(value.get("queries"), list) else value.get("tasks")
    texts = [t for t in listed if isinstance(t, str) and t.strip()] if isinstance(listed, list) else []
    tasks = tuple(dict.fromkeys(" ".join(t.split()) for t in texts))[:MAX_TASKS]
    return RoundJudgement("delegate" if tasks else "synthesise", tasks)


def _parse_title(value: Mapping[str, Any]) -> str:
    """The title that a model gives its report; "" for one that is missing, asks, or runs on."""
    title = value.get("title")
    line = " ".join(title.split()).lstrip("# ").rstrip(".:") if isinstance(title, str) else ""
    is_title = any(map(str.isalnum, line)) and len(line) <= MAX_HEADING_CHARS and not line.endswith(("?", "？", "؟"))
    return line if is_title and not extract_citation_markers(line) else ""


def _parse_outline(value: Mapping[str, Any]) -> tuple[Section, ...]:
    """Parse the sections of an outline; what is no section is left out, and of two with the same heading the second."""
    listed = value.get("sections")
    sections = [_parse_section(item) for item in listed] if isinstance(listed, list) else []
    by_heading = {section.heading.casefold(): section for section in reversed(sections) if section}
    return tuple(by_heading[key] for key in dict.fromkeys(s.heading.casefold() for s in sections if s))[:MAX_SECTIONS]


def _parse_gaps(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse the parts of the question that no report answers, as the model names them."""
    listed = value.get("not_found")
    lines = (without_markers(_read_line(item, MAX_HEADING_CHARS)) for item in (listed if isinstance(listed, list) else ()))
    return tuple(dict.fromkeys(line.rstrip(" .:") for line in lines if any(map(str.isalnum, line))))[:MAX_SECTIONS]


def _parse_section(item: object) -> Section | None:
    if isinstance(item, str):
        item = {"heading": item}
    if not isinstance(item, Mapping):
        return None
    heading = _read_line(item.get("heading"), MAX_HEADING_CHARS).lstrip("# ").rstrip(":")
    numbers = item.get("sources")
    sources = (n for n in (numbers if isinstance(numbers, list) else ()) if isinstance(n, int) and not isinstance(n, bool))
    covers = _read_line(item.get("covers"), MAX_COVERS_CHARS)
    return Section(heading, covers, tuple(dict.fromkeys(sources))) if any(map(str.isalnum, heading)) else None


def _read_line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def build_messages(state: ResearchState, may_delegate: bool, limits: EvaluationLimits) -> list[Message]:
    folder = limits.prompts_folder
    choice = (
        render("may_delegate", folder=folder, most_tasks=MAX_TASKS) if may_delegate else render("must_write", folder=folder)
    )
    agenda = "\n".join(f"- {task}" for task in state.agenda)
    values = {"question": state.question, "agenda": agenda, "budget": limits.budget_note, "choice": choice.strip()}
    rounds = {"round": state.round, "target": state.target_rounds, "most": state.max_rounds}
    # a report without a length leaves the number of its sections to the evidence
    most = max(MIN_SECTIONS, min(MAX_SECTIONS, limits.words // MIN_SECTION_WORDS)) if limits.words else MAX_SECTIONS
    sections = {"least_sections": MIN_SECTIONS, "most_sections": most} if limits.plans_sections else {}
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
        open_tasks = [task for task in state.agenda if not any(_is_covered(content_stems(task), words) for words in cited)]
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


def build_digest(state: ResearchState, *, quoted: bool = False) -> str:
    """Join the reports in one document: first what answers the question, then a section for each task."""
    # `quoted` reports consist of quotations, so that each sentence can be judged by itself
    main = _task_key(state.question)
    # the first task and the reports on all that ask for the same; the question itself comes first
    sections: dict[frozenset[str], tuple[str, list[str]]] = {}
    for researcher in sorted(state.reported_researchers, key=lambda r: _task_key(r.task) != main):
        body = strip_sources_section(researcher.report).strip()
        if extract_citation_markers(body):
            _, reports = sections.setdefault(_task_key(researcher.task), (researcher.task, []))
            reports.append(_ANY_HEADING.sub("### ", body))
    texts = _render_sections(state, sections, quoted=quoted)
    if not any(texts.values()) and quoted:
        texts = _render_sections(state, sections, quoted=False)
    parts = [f"# {make_title(state.question)}", texts.get(main, "")]
    parts += [f"## {task}\n\n{texts[key]}" for key, (task, _) in sections.items() if key != main and texts[key]]
    words = content_stems("\n".join(texts.values()))
    planned_tasks = dict.fromkeys([*state.agenda, *(r.task for r in state.researchers if r.status == "failed")])
    open_tasks = [t for t in planned_tasks if _task_key(t) != main and not _is_covered(content_stems(t), words)]
    if open_tasks:
        parts.append("## Not found\n\n" + "\n".join(f"- {task}" for task in open_tasks))
    return "\n\n".join(part for part in parts if part)


def _render_sections(
    state: ResearchState, sections: dict[frozenset[str], tuple[str, list[str]]], *, quoted: bool
) -> dict[frozenset[str], str]:
    texts: dict[frozenset[str], str] = {}
    before: list[frozenset[str]] = []
    for key, (task, reports) in sections.items():
        units = [u for report in reports for u in (AFTER_CITATION.split(report) if quoted else report.split("\n\n"))]
        if quoted and key != _task_key(state.question):
            units = _keep_relevant(units, task)
        units = _drop_redundant(units, before)
        before += [content_stems(_NUMBERS.sub("", unit)) for unit in units]
        texts[key] = (" " if quoted else "\n\n").join(units)
    return texts


def _keep_relevant(units: Sequence[str], task: str) -> list[str]:
    """Keep the units that cite a page which at least one unit about the task cites."""
    names = [_normalise_words(name) for name in find_names(task)]
    if not names and not task.endswith("?") and len(task.split()) <= SHORT_ANSWER_WORDS:
        names = [_normalise_words(task)]  # the task is a subject, not a question
    terms = content_stems(task)

    def is_about(unit: str) -> bool:
        if names:
            return any(name in _normalise_words(unit) for name in names)
        return len(terms & content_stems(unit)) >= min(MIN_SHARED_WORDS, len(terms))

    pages = {number for unit in units if is_about(unit) for number in extract_citation_markers(unit)}
    return [unit for unit in units if pages & extract_citation_markers(unit)]


def _drop_redundant(units: Sequence[str], before: Sequence[frozenset[str]]) -> list[str]:
    """Drop units whose words another unit contains; of two with the same words, keep the first."""
    words = [content_stems(_NUMBERS.sub("", unit)) for unit in units]
    distinct = []
    for index, (unit, mine) in enumerate(zip(units, words, strict=True)):
        is_in_later = len(mine) >= SHORT_ANSWER_WORDS and any(mine < other for other in words[index + 1 :])
        if mine and not is_in_later and not any(mine <= other for other in (*before, *words[:index])):
            distinct.append(unit)
    return distinct


def _is_covered(terms: frozenset[str], words: frozenset[str]) -> bool:
    return not terms or len(terms & words) / len(terms) >= MIN_COVERED_SHARE


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, without stop words."""
    return frozenset(map(stem, content_words(text)))


def _normalise_words(text: str) -> str:
    """Reduce a text to lower-case words, so that a name is found whatever stands around it."""
    return " ".join(find_words(re.sub(r"['’]s\b", "", text.casefold())))


def _task_key(task: str) -> frozenset[str]:
    """Identify a task by its stems: tasks with the same words ask for the same."""
    return content_stems(task) or frozenset((task,))


class _ReportStream:
    """Releases the report in one reply while the reply arrives; `released` says whether any of it was passed to `release`.

    Nothing of a delegation is released, nor of the prose that may introduce one, and nothing before the first citation, because
    a report without one is replaced. The released pieces, joined, are the report in `text`.
    """

    def __init__(self, release: Callable[[str], None]) -> None:
        self._release = release
        self._pending = self.text = ""
        self.released = False

    def receive(self, piece: str) -> None:
        """Take a piece; what comes after it can still make a leaked tag of its end, which stays pending."""
        text, settled, at = self._pending + piece, [], 0
        self._pending = ""
        while (tag := text.find("<", at)) >= 0:
            settled.append(text[at:tag])
            length = _tag_length(text, tag)
            if length is None:
                self._pending, at = text[tag:], len(text)
                break
            settled.append("" if length else "<")
            at = tag + (length or 1)
        self._append("".join([*settled, text[at:]]))

    def finish(self) -> str:
        """End the reply: release what was pending, and return the whole report."""
        rest, self._pending = LEAKED_TAGS.sub("", self._pending), ""
        self._append(rest)
        return self.text.strip()

    def _append(self, piece: str) -> None:
        piece = piece if self.text else piece.lstrip()
        if not piece:
            return
        self.text += piece
        if self.released:
            self._release(piece)
            return
        may_delegate = self.text[0] in _JSON_STARTS or (not self.text.startswith("#") and len(self.text) <= MAX_PROSE_CHARS)
        if not may_delegate and extract_citation_markers(self.text):
            self.released = True
            self._release(self.text)


def _tag_length(text: str, at: int) -> int | None:
    """Return how many characters to leave out at this angle bracket; None while that is not certain."""
    if text.startswith(_THOUGHT, at):
        end = text.find(_THOUGHT_END, at)
        return None if end < 0 else end + len(_THOUGHT_END) - at
    if tag_name := next((tag for tag in _TAGS if text.startswith(tag, at)), ""):
        return len(tag_name)
    tail = text[at : at + max(map(len, _TAGS))]
    return None if any(tag.startswith(tail) for tag in _TAGS) else 0
