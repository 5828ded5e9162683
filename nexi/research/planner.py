"""The planner: divides a question into tasks that researchers can work on at the same time, and says what they may cost.

The orchestrator above calls it once; below is a model behind its port. Without a usable reply the parts of the question are the
agenda, so planning never fails a run. A held run waits at the gate until the user has settled the tasks; doors show the plan
and pass on the decision. How the user is asked is not known here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import LLMError, ResearchError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.state import EXTRA_ROUNDS, FIRST_RESEARCHERS, MAX_TASKS, TARGET_ROUNDS
from nexi.structured.json_reader import parse_lenient
from nexi.structured.schema_check import object_schema
from nexi.text.parts import (
    asks_about_one,
    find_antecedent,
    find_object,
    find_subject,
    has_pronoun,
    name_subject,
    split_enumeration,
)
from nexi.text.sentences import sentence_bounds
from nexi.text.words import STOP, content_words, find_names
from nexi.types import Message

CALLS_PER_RESEARCHER = (4, 9)  # at least and at most, as its phases allow
PROMPT_TOKENS_PER_CALL = (3_000, 14_000)  # on average
REPLY_TOKENS_PER_CALL = (150, 900)
REPORT_TOKENS = (1_500, 6_000)
MAX_TASK_CHARS = 2000
MAX_PLAN_TOKENS = 1500
MAX_CONVERSATION_CHARS = 6000
MAX_NAMES = 2  # of a question with one part, because a comparison has two sides
SCHEMA = object_schema(
    {
        "complexity": {"type": "integer", "minimum": 1, "maximum": 3},
        "tasks": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_TASKS},
    }
)
QUESTION_PREFIX = "Question: "
LIST_KEYS = ("tasks", "agenda", "queries", "items", "plan")
TEXT_KEYS = ("task", "query", "question", "title", "name", "description")

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+(\S.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^?!。？！;]+[?!。？！;]?")
MAX_SENTENCE_CHARS = 1_500
MAXTOPIC_WORDS = 8
# What a prompt of several sentences asks for by a command; the command itself is not searched for.
COMMAND = re.compile(
    r"\W*(?:(?:please|also|then|finally|and|(?:can|could|would) you|(?:it|this|that|the (?:report|brief|summary)) "
    r"(?:should|must|has to|needs to))\s+)*(?:describe|compare|explain|discuss|list|outline|"
    r"summari[sz]e|research|analy[sz]e|investigate|cover|include|mention|state|name|say|tell me|show|identify|"
    r"(?:(?:i|we) (?:need|want)|write|prepare|give|make|create)\b(?: me| us)?(?: an?| the)?(?: [\w-]+){0,2}? "
    r"(?:report|overview|summary|analysis|brief(?:ing)?) (?:of|on|about))\s+",
    re.IGNORECASE,
)
_WH = r"(?:how|what|who|whom|when|where|why|which|whose)\b"
_OTHER_LANGUAGES = (
    r"und\s+(?=(?:wie|was|wer|wen|wann|wo|warum|welche[rsnm]?)\b)|et\s+(?=(?:comment|quand|pourquoi|qui|où|quel(?:le)?s?)\b)"
    r"|y\s+(?=(?:cómo|cuándo|dónde|quién|qué|cuál)\b)|и\s+(?=(?:как|когда|где|кто|что|почему)\b)"
)
_QUESTION_WORD = re.compile(
    rf"\b{_WH}|^\W*(?:is|are|was|were|did|do|does|can|should|must|may|wie|wer|wann|wo|warum|comment|quand|qui|cómo|quién|как|кто|что)\b",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(
    rf",?\s+(?:(?:and|as well as)\s+(?={_WH}|(?:is|are|did|do|does|must|can|should)\b)|{_OTHER_LANGUAGES})"
    rf"|,\s+(?={_WH}|(?:is|are|was|were|do|does|did|must|can|should|may)\s+(?:it|they|he|she)\b)",
    re.IGNORECASE,
)
# "Locks in Zorb: how they work, and what ends them" is about locks in Zorb.
TOPIC = re.compile(rf"^([^:?]{{2,80}}): (?={_WH})", re.IGNORECASE)
_ACTIVITY = re.compile(r"^how (?:do|can|should|does) (?:you|i|we|one) ([^?]+)", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(he|she|it|they|him|them)\b|\b(his|her|its|their)\b", re.IGNORECASE)
_BARE = re.compile(r"how to \w+", re.IGNORECASE)
_REFERS = re.compile(
    rf"{_WH} (?:(?:is|are|was|were|does|do|did) )?(?:he|she|it|they)(?: (?:is|are|was|were|does|do|did))?", re.I
)
_INDEFINITE = re.compile(r"\ban? [\w-]+")
# "Write a brief on locks: their kinds, what ends them and their price" after its command.
_LISTED = re.compile(r"([^:?]{2,80}): ([^:?]+)")
_FOR_WHOM = re.compile(r" for (?:my|our) \w+(?: \w+)?$")
_VERSUS = re.compile(r"(.+?)\s+(?:vs\.?|versus|compared (?:to|with))\s+(.+)", re.IGNORECASE)


class Agenda(Struct, frozen=True):
    tasks: tuple[str, ...]
    complexity: int
    by: str = "model"


class PlanningContext(Struct, frozen=True):
    """What the model is told besides the question; with depth 0 it chooses the complexity."""

    today: str
    depth: int = 0
    conversation: str = ""
    prompts_folder: Path | None = None
    deadline: float | None = None
    instructions: str = ""  # of the user for every model of the run, as they follow its rules


async def plan_research(question: str, llm: LLM, context: PlanningContext) -> Agenda:
    """Make an agenda with the model or, if it fails, from the parts of the question."""
    lowest = "Choose the lowest that does the question justice."
    depth = f"The complexity is given: {context.depth}." if context.depth else lowest
    rules = render("planner", folder=context.prompts_folder, depth=depth, today=context.today) + context.instructions
    before = f"The conversation so far:\n{context.conversation[-MAX_CONVERSATION_CHARS:]}\n\n" if context.conversation else ""
    messages = [Message("system", rules), Message("user", f"{before}Question: {question}")]
    try:
        reply = await llm.complete(
            messages, max_tokens=MAX_PLAN_TOKENS, temperature=0.2, deadline=context.deadline, schema=SCHEMA
        )
    except LLMError as error:
        return plan_by_parts(question, context, "built-in" if error.code == "unsupported" else "fallback")
    if agenda := _parse_agenda(reply.text, context.depth):
        return replace(agenda, tasks=tuple(_name_subject(task, question) for task in agenda.tasks))
    return plan_by_parts(question, context, "fallback")


def plan_by_parts(question: str, context: PlanningContext, by: str = "built-in") -> Agenda:
    """Make an agenda of the question and its parts or names, for a model that is too small to plan or that failed."""
    question = _resolve_from_conversation(question, context.conversation)
    whole = _clean_task(question)
    parts, names = split_question(question), find_names(question)
    subject = find_subject(whole).split()
    # "Amazon" alone is not what "Why does the Amazon rainforest burn" is about.
    whole_names = [n for n in names if " " in n] or [n for n in names if n not in subject or subject[-1] == n]
    candidates = [whole, *(parts if len(parts) > 1 else whole_names)]
    tasks = list(dict.fromkeys(filter(None, map(_clean_task, candidates)))) or ["the question"]
    complexity = context.depth or _complexity_for_tasks(1 + max(len(parts), min(len(names), MAX_NAMES)))
    return Agenda(tuple(tasks[: FIRST_RESEARCHERS[complexity]]), complexity, by)


def _parse_agenda(text: str, depth: int = 0) -> Agenda | None:
    """Parse the agenda in a reply: JSON in any of the shapes models use, or a plain list; None where there is none."""
    try:
        value: object = parse_lenient(text)
    except ValueError:
        value = None
    entries = value
    if isinstance(value, Mapping):
        entries = next((value[key] for key in LIST_KEYS if isinstance(value.get(key), list)), None)
    texts = []
    for entry in entries if isinstance(entries, list) else ():
        is_object = isinstance(entry, Mapping)
        texts.append(next((entry[k] for k in TEXT_KEYS if isinstance(entry.get(k), str)), "") if is_object else entry)
    texts = [t for t in texts if isinstance(t, str) and t] or [match[1] for match in _BULLET.finditer(text)]
    tasks = list(dict.fromkeys(filter(None, map(_clean_task, texts))))
    if not tasks:
        return None
    given = value.get("complexity") if isinstance(value, Mapping) else None
    if not isinstance(given, int) or isinstance(given, bool) or given not in FIRST_RESEARCHERS:
        given = _complexity_for_tasks(len(tasks))
    complexity = depth or given
    return Agenda(tuple(tasks[: FIRST_RESEARCHERS[complexity]]), complexity)


def _complexity_for_tasks(tasks: int) -> int:
    return next((c for c, count in FIRST_RESEARCHERS.items() if tasks <= count), max(FIRST_RESEARCHERS))


def split_question(question: str) -> list[str]:
    """Split a question into its sentences, and these at "and what" or "versus"."""
    # pronouns in a part are replaced by the name they refer to, because its researcher sees nothing else
    asking = _list_asking(question)
    requests, topics = zip(*map(_split_topic, asking), strict=True)
    sentences = [s.strip() for request in requests for s in _SENTENCE.findall(request) if content_words(s)]
    topic = sentences[0] if len(asking) > 1 and find_names(f"of {sentences[0]}") == [sentences[0]] else ""
    parts = [part for sentence in sentences[bool(topic) :] for part in _split_conjunctions(sentence)]
    if len(parts) == 1 and (sides := _VERSUS.fullmatch(parts[0])):
        return [sides[1].strip(), sides[2].strip()]
    questions = [part for part in parts if _asks_something(part)]
    # What came before a colon, and what is named in it: "the history of the Huguenots". The latest comes first.
    subjects = [name for topic in topics if topic for name in (topic, topic.partition(" of ")[2]) if name]
    subject = next(iter(subjects), "") or (_find_topic(questions[0]) if len(questions) > 1 and not topic else "")
    names = find_names(question) if asking == [question] else next(filter(None, map(find_names, sentences)), [])
    items = _split_list(questions[0]) or ([] if subjects else split_enumeration(questions[0])) if len(questions) == 1 else []
    if len(items) > 1:
        return items
    resolved_parts: list[str] = []
    for part in questions:
        thing = next((each for each in subjects if each.lower().startswith(("a ", "an "))), "")
        part = re.sub(r"\bone\b", thing, part, count=1) if thing and asks_about_one(part) else part
        antecedent = find_antecedent(part, subjects)
        resolved_parts += [name_subject(one, antecedent) for one in split_enumeration(part)]
        own = antecedent if antecedent and has_pronoun(part) else find_subject(part)
        subjects = [own, *subjects, find_object(part, own)] if own else subjects
    questions = resolved_parts
    if any(map(asks_about_one, questions)):  # "how is one found": the thing, and no longer who uses it
        subject = _find_one_of(questions[0])
    return [
        _make_self_contained(part, [subject])
        if asks_about_one(part)
        else _make_self_contained(part, names or questions[:1], subject)
        for part in questions
    ] or [question.strip()]


def _split_list(request: str) -> list[str]:
    """The points of "Write a brief on locks: their kinds, their price and their history", each with what it is about."""
    match = _LISTED.fullmatch(COMMAND.sub("", request).rstrip(". ")) if COMMAND.match(request) else None
    items = re.split(r",\s*(?:and\s+)?|\s+and\s+", match[2]) if match else []
    return [f"{item[:1].upper()}{item[1:]} ({match[1]})" for item in items if item] if match and len(items) > 1 else []


def _find_topic(part: str) -> str:
    """What the other parts of a prompt are about, where this is its first: its subject, or itself where it asks for nothing."""
    if _QUESTION_WORD.search(part) or len(part.split()) > MAXTOPIC_WORDS:
        return find_subject(part)
    return _lower_first(COMMAND.sub("", part.rstrip(". ")))


def _split_topic(request: str) -> tuple[str, str]:
    """A request without what stands before its colon, and what that is about."""
    match = TOPIC.match(request)
    if not match:
        return request, ""
    topic = COMMAND.sub("", match[1])
    topic = (find_subject(topic) or topic) if _QUESTION_WORD.search(topic) else topic
    return request[match.end() :], _lower_first(topic)


def _lower_first(topic: str) -> str:
    """A topic as it stands inside a sentence: "full-text search in SQLite", but "Napoleon in Egypt"."""
    first, _, rest = topic.partition(" ")
    is_common = first[1:].islower() and not set("'’").intersection(first) and rest[:1].islower() and rest.split()[0] not in STOP
    return topic[:1].lower() + topic[1:] if is_common else topic


def _find_one_of(part: str) -> str:
    """What "one" means after a question: "old offices" of "Why do firms rent old offices", else its subject, else all of it."""
    subject = find_subject(part)
    _, _, rest = part.rstrip("?. ").partition(f"{subject} ")
    if subject:
        thing = rest.partition(" ")[2]
        return thing if content_words(thing) and rest.split()[0] not in STOP else subject
    return next(reversed(_INDEFINITE.findall(part)), part)


def _list_asking(question: str) -> list[str]:
    """The sentences of a prompt that ask for something, without their commands; a question of one sentence as it is."""
    sentences: list[str] = []
    for start, end in sentence_bounds(question, MAX_SENTENCE_CHARS):
        text = question[start:end].strip()
        if sentences and text.startswith("("):  # which of several things is meant
            sentences[-1] = f"{sentences[-1]} {text}"
        elif text:
            sentences.append(text)
    if len(sentences) < 2:
        return [question]
    asking = [s for s in sentences if COMMAND.match(s) or _QUESTION_WORD.search(s)]
    bare = [_FOR_WHOM.sub("", rest.rstrip(". ")) if (rest := COMMAND.sub("", s, count=1)) != s else s for s in asking]
    requests = [text if _QUESTION_WORD.match(text) else text.rstrip(". ") for text in bare]
    return [text[:1].upper() + text[1:] for text in requests if text] or [question]


def _split_conjunctions(sentence: str) -> list[str]:
    """Split a sentence at "and" between questions; words that ask nothing stay with the question after them."""
    sides, start = [], 0
    for conjunction in _CONJUNCTION.finditer(sentence):
        side = sentence[start : conjunction.start()]
        if (_QUESTION_WORD.search(side) or COMMAND.match(side)) and _asks_something(side):
            sides.append(side)
            start = conjunction.end()
    sides.append(sentence[start:])
    return [side.strip(" ,") for side in sides] if content_words(sides[-1]) else [sentence]


def _make_self_contained(part: str, names: Sequence[str], subject: str = "") -> str:
    """Name the subject in a part that only refers to it: `where did he die` of Ingmar Bergman."""
    text, mark = part, part[-1:] if part[-1:] in "?." else ""
    if subject:
        if not set(content_words(subject)) & set(content_words(part)) and not find_names(part):
            if activity := _ACTIVITY.match(names[0]) if names and len(content_words(part)) == 1 else None:
                subject = activity[1]  # "which tools are there"
            is_bare = _BARE.fullmatch(part.rstrip("?. "))
            text = f"{part.rstrip('?. ')} {subject if is_bare else f'({subject})'}{mark}"
        elif names and names[0] in subject and not find_names(part) and names[0] not in part:
            text = f"{part.rstrip('?. ')} ({names[0]}){mark}"  # "why are some files tracked", after "how does Git ignore files"
    elif names and not any(name in part for name in names):
        if _PRONOUN.search(part) and not _QUESTION_WORD.match(names[0]) and find_antecedent(part, names, strict=True):
            text = _PRONOUN.sub(lambda m: names[0] if m[1] else f"{names[0]}'s", part, count=1)
        else:
            text = f"{part.rstrip('?. ')} ({', '.join(name.rstrip('?. ') for name in names)}){mark}"
    text = text[:1].upper() + text[1:]
    return f"{text}?" if _QUESTION_WORD.match(text) and text[-1:] not in "?!.。？！" else text


def _name_subject(task: str, question: str) -> str:
    """Put the name from the question into a task that says only "he" or "it", as some models write."""
    names = find_names(question)
    refers = names and _PRONOUN.search(task) and not find_names(task) and not any(n.lower() in task.lower() for n in names)
    return _make_self_contained(task, names[:1]) if refers else task


def _asks_something(part: str) -> bool:
    return bool(content_words(part)) or _REFERS.fullmatch(part.strip("?. ")) is not None


def _clean_task(task: str) -> str:
    return " ".join(task.replace("**", "").split())[:MAX_TASK_CHARS]


def _resolve_from_conversation(question: str, conversation: str) -> str:
    """Complete a question that names nothing with the name from the last question that has one."""
    questions = [line.removeprefix(QUESTION_PREFIX) for line in conversation.splitlines() if line.startswith(QUESTION_PREFIX)]
    names = next((names_in_text for text in reversed(questions) if (names_in_text := find_names(text))), [])
    return question if find_names(question) or not names else _make_self_contained(question, names[:1])


def render_conversation(messages: Sequence[Message]) -> str:
    """Render earlier questions and answers, so that the model knows what "it" means."""
    spoken = [m for m in messages if m.role in ("user", "assistant") and m.content.strip()]
    return "\n\n".join(f"{QUESTION_PREFIX if m.role == 'user' else 'Answer: '}{m.content.strip()}" for m in spoken)


class PlanGate:
    """The gate of one run. `proposed` is the plan that waits for a decision, None while there is none."""

    def __init__(self) -> None:
        self.proposed: Agenda | None = None
        self._decision: asyncio.Future[Agenda | None] | None = None

    async def __call__(self, agenda: Agenda) -> Agenda | None:
        """Wait for the decision on a plan: the agenda to research, or None to research nothing."""
        self._decision = asyncio.get_running_loop().create_future()
        self.proposed = agenda
        try:
            return await self._decision
        finally:
            self.proposed = None

    def settle(self, tasks: Sequence[str] | None = None) -> Agenda:
        """Accept the plan, with these tasks instead of the proposed ones if some are given. Raises ResearchError."""
        agenda = self._require_proposal()
        settled = agenda if tasks is None else edit_agenda(agenda, tasks)
        self._resolve(settled)
        return settled

    def refuse(self) -> None:
        """Reject the plan. Raises ResearchError."""
        self._require_proposal()
        self._resolve(None)

    def _require_proposal(self) -> Agenda:
        if self.proposed is None:
            cause = "it is not made yet, or it was settled already"
            fix = "follow the run's events: agenda_proposed says when it waits"
            raise ResearchError("no plan waits here", cause=cause, fix=fix, code="no_plan")
        return self.proposed

    def _resolve(self, agenda: Agenda | None) -> None:
        self.proposed = None
        if self._decision and not self._decision.done():
            self._decision.set_result(agenda)


def edit_agenda(agenda: Agenda, tasks: Sequence[str]) -> Agenda:
    """Replace the tasks of a plan by the user's. Raises ResearchError if they cannot be used."""
    edited = tuple(dict.fromkeys(" ".join(task.split()) for task in tasks if task.strip()))
    if not 1 <= len(edited) <= MAX_TASKS:
        raise _bad_plan(f"it has {len(edited)} tasks, and a plan has 1 to {MAX_TASKS}")
    if longest := max((len(task) for task in edited if len(task) > MAX_TASK_CHARS), default=0):
        raise _bad_plan(f"a task has {longest:,} characters, and at most {MAX_TASK_CHARS:,} are taken")
    return agenda if edited == agenda.tasks else replace(agenda, tasks=edited, by="user")


def _bad_plan(cause: str) -> ResearchError:
    return ResearchError("the plan cannot be used", cause=cause, fix="name other tasks, one question each", code="bad_plan")


class CostEstimate(Struct, frozen=True):
    """Low and high: model calls, tokens, and US dollars where prices are known."""

    calls: tuple[int, int]
    tokens: tuple[int, int]
    cost: tuple[float, float] | None = None

    def describe(self) -> str:
        tokens = " to ".join(f"{n / 1e6:.1f} M" if n >= 1_000_000 else f"{n // 1000} k" for n in self.tokens)
        text = f"about {self.calls[0]} to {self.calls[1]} model calls and {tokens} tokens"
        return text if self.cost is None else f"{text}, ${self.cost[0]:.2f} to ${self.cost[1]:.2f}"


def estimate_cost(complexity: int, tasks: int, window: int, price: tuple[float, float] | None = None) -> CostEstimate:
    """Estimate an agenda of this many tasks; `price` is in dollars per million tokens, of input and output."""
    later = TARGET_ROUNDS[complexity] + EXTRA_ROUNDS - 1
    researchers = (tasks, tasks + later * max(1, FIRST_RESEARCHERS[complexity] // 2))
    calls = tuple(r * c + n + 1 for r, c, n in zip(researchers, CALLS_PER_RESEARCHER, (1, later + 1), strict=True))
    prompts = tuple(c * min(p, window) for c, p in zip(calls, PROMPT_TOKENS_PER_CALL, strict=True))
    replies = tuple(c * r + t for c, r, t in zip(calls, REPLY_TOKENS_PER_CALL, REPORT_TOKENS, strict=True))
    cost = None
    if price is not None:
        low, high = ((p * price[0] + r * price[1]) / 1e6 for p, r in zip(prompts, replies, strict=True))
        cost = (low, high)
    return CostEstimate((calls[0], calls[1]), (prompts[0] + replies[0], prompts[1] + replies[1]), cost)
