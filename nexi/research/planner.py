"""The coordinator: divides a question into tasks that researchers can take at the same time.

The orchestrator above asks once; below is a model behind its port. What the model writes is read with tolerance, and where
nothing usable comes back the question's own parts are the agenda, so planning never ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.state import FIRST_RESEARCHERS, MOST_TASKS
from nexi.structured.json_reader import parse_lenient
from nexi.text.stopwords import STOP
from nexi.types import Message
from nexi.values import frozen

MAX_TASK_CHARS = 2000
PLAN_TOKENS = 1500
CONVERSATION_CHARS = 6000
MOST_NAMES = 2  # of a question with one part: a comparison has two sides
SCHEMA = {
    "type": "object",
    "properties": {
        "complexity": {"type": "integer", "minimum": 1, "maximum": 3},
        "tasks": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_TASKS},
    },
    "required": ["complexity", "tasks"],
}
ASKED = "Question: "
LIST_KEYS = ("tasks", "agenda", "queries", "items", "plan")
TEXT_KEYS = ("task", "query", "question", "title", "name", "description")

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+(\S.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^?!。？！;]+[?!。？！;]?")
_WH = r"(?:how|what|who|whom|when|where|why|which|whose)\b"
_ELSEWHERE = (
    r"und\s+(?=(?:wie|was|wer|wen|wann|wo|warum|welche[rsnm]?)\b)|et\s+(?=(?:comment|quand|pourquoi|qui|où|quel(?:le)?s?)\b)"
    r"|y\s+(?=(?:cómo|cuándo|dónde|quién|qué|cuál)\b)|и\s+(?=(?:как|когда|где|кто|что|почему)\b)"
)
_ASKS = re.compile(
    rf"\b{_WH}|^\W*(?:is|are|was|were|did|do|does|can|should|wie|wer|wann|wo|warum|comment|quand|qui|cómo|quién|как|кто|что)\b",
    re.IGNORECASE,
)
_AND = re.compile(
    rf",?\s+(?:(?:and|as well as)\s+(?={_WH}|(?:is|are|did|do|does)\b)|{_ELSEWHERE})|,\s+(?={_WH})", re.IGNORECASE
)
_PRONOUN = re.compile(r"\b(he|she|it|they|him|them)\b|\b(his|her|its|their)\b", re.IGNORECASE)
_VERSUS = re.compile(r"(.+?)\s+(?:vs\.?|versus|compared (?:to|with))\s+(.+)", re.IGNORECASE)
_CAPITAL = r"[A-ZÀ-ÞΑ-ΩА-Я][\w'’.-]*"
_NAME = re.compile(rf"[\"“«]([^\"”»]{{2,80}})[\"”»]|({_CAPITAL}(?:\s+(?:&\s+|(?:of|the|de|la|von|van|der)\s+)*{_CAPITAL})*)")
_OPENINGS = frozenset(("compare", "explain", "describe", "list", "name", "find", "show", "tell", "give", "between", "besides"))


@frozen
class Agenda:
    tasks: tuple[str, ...]
    complexity: int
    by: str = "model"


@frozen
class Brief:
    """What the coordinator is told besides the question; depth 0 lets it choose."""

    today: str
    depth: int = 0
    conversation: str = ""
    folder: Path | None = None
    deadline: float | None = None


async def plan(question: str, llm: LLM, brief: Brief) -> Agenda:
    """An agenda, by the model or, where it fails, by the question's own parts."""
    depth = f"The complexity is given: {brief.depth}." if brief.depth else "Choose the lowest that does the question justice."
    rules = Message("system", render("planner", folder=brief.folder, depth=depth, today=brief.today))
    before = f"The conversation so far:\n{brief.conversation[-CONVERSATION_CHARS:]}\n\n" if brief.conversation else ""
    try:
        reply = await llm.complete(
            [rules, Message("user", f"{before}Question: {question}")],
            max_tokens=PLAN_TOKENS,
            temperature=0.2,
            deadline=brief.deadline,
            schema=SCHEMA,
        )
    except LLMError as error:
        by = "built-in" if error.code == "unsupported" else "fallback"
        return fallback_agenda(in_context(question, brief.conversation), brief.depth, by=by)
    if agenda := read_agenda(reply.text, brief.depth):
        return replace(agenda, tasks=tuple(_named(task, question) for task in agenda.tasks))
    return fallback_agenda(in_context(question, brief.conversation), brief.depth)


def read_agenda(text: str, depth: int = 0) -> Agenda | None:
    """The agenda in what a model wrote: JSON in any of the shapes models use, or a plain list; None where there is none."""
    try:
        value: object = parse_lenient(text)
    except ValueError:
        value = None
    tasks = _tasks_in(value) or [m[1] for m in _BULLET.finditer(text)]
    tasks = list(dict.fromkeys(t for t in (_clean(task) for task in tasks) if t))
    if not tasks:
        return None
    complexity = depth or _complexity_in(value) or complexity_for(len(tasks))
    return Agenda(tuple(tasks[: FIRST_RESEARCHERS[complexity]]), complexity)


def _tasks_in(value: object) -> list[str]:
    if isinstance(value, Mapping):
        value = next((value[key] for key in LIST_KEYS if isinstance(value.get(key), list)), None)
    if not isinstance(value, list):
        return []
    return [text for item in value if (text := _text_in(item))]


def _text_in(item: Any) -> str:
    if isinstance(item, Mapping):
        item = next((item[key] for key in TEXT_KEYS if isinstance(item.get(key), str)), "")
    return item if isinstance(item, str) else ""


def _complexity_in(value: object) -> int:
    given = value.get("complexity") if isinstance(value, Mapping) else None
    return given if isinstance(given, int) and not isinstance(given, bool) and given in FIRST_RESEARCHERS else 0


def complexity_for(tasks: int) -> int:
    return next((c for c, count in FIRST_RESEARCHERS.items() if tasks <= count), max(FIRST_RESEARCHERS))


def fallback_agenda(question: str, depth: int = 0, *, by: str = "fallback") -> Agenda:
    """The question itself, its parts, and the names in it, as many as the complexity wants."""
    whole = _clean(question)
    parts = parts_of(question)
    names = names_in(question)
    wanted = [whole, *(parts if len(parts) > 1 else ()), *([n for n in names if " " in n] or names)]
    tasks = list(dict.fromkeys(t for t in map(_clean, wanted) if t)) or ["the question"]
    complexity = depth or complexity_for(1 + max(len(parts), min(len(names), MOST_NAMES)))
    return Agenda(tuple(tasks[: FIRST_RESEARCHERS[complexity]]), complexity, by)


def parts_of(question: str) -> list[str]:
    """The questions inside a question: its sentences, and the sides of an "and what" or a "versus".

    A part stands alone: its pronouns become the name before them, because its researcher sees nothing else.
    """
    sentences = [s.strip() for s in _SENTENCE.findall(question) if _weight(s)]
    parts = [part for sentence in sentences for part in _sides(sentence)]
    if len(parts) == 1 and (sides := _VERSUS.fullmatch(parts[0])):
        return [sides[1].strip(), sides[2].strip()]
    told = [part for part in parts if _weight(part)]
    names = names_in(question)
    return [*(_alone(part, names or told[:1]) for part in told)] or [question.strip()]


def _sides(sentence: str) -> list[str]:
    """The questions that "and" joins; words that ask nothing stay with the question after them."""
    sides, start = [], 0
    for cut in _AND.finditer(sentence):
        side = sentence[start : cut.start()]
        if _ASKS.search(side) and _weight(side):
            sides.append(side)
            start = cut.end()
    sides.append(sentence[start:])
    return [side.strip(" ,") for side in sides] if _weight(sides[-1]) else [sentence]


def _alone(part: str, names: Sequence[str]) -> str:
    """The part as a question that needs no other: `where did he die` of Ingmar Bergman."""
    told = part
    if names and not any(name in part for name in names):
        if _PRONOUN.search(part) and not _ASKS.match(names[0]):
            told = _PRONOUN.sub(lambda m: names[0] if m[1] else f"{names[0]}'s", part, count=1)
        else:
            told = f"{part.rstrip('?')} ({', '.join(names)})" + ("?" if part.endswith("?") else "")
    told = told[:1].upper() + told[1:]
    return f"{told}?" if _ASKS.match(told) and told[-1:] not in "?!.。？！" else told


def _named(task: str, question: str) -> str:
    """A task that says only "he" or "it", as models write them in spite of all, with the name that the question has."""
    names = names_in(question)
    refers = names and _PRONOUN.search(task) and not names_in(task) and not any(n.lower() in task.lower() for n in names)
    return _alone(task, names[:1]) if refers else task


def names_in(question: str) -> list[str]:
    """Names and quoted titles, in order; the first word of a sentence is a name only with another one."""
    found = []
    for match in _NAME.finditer(question):
        name = (match[1] or match[2]).strip(" .,'’-")
        starts = match.start() == 0 or question[: match.start()].rstrip()[-1:] in "?!."
        words = name.split()
        while words and not match[1] and words[0].lower() in (STOP | _OPENINGS if starts else STOP - {"the"}):
            words = words[1:]
            starts = False
        if match[1] or len(words) > 1 or (words and not starts):
            found.append(" ".join(words))
    return list(dict.fromkeys(name for name in found if name))


def _weight(text: str) -> int:
    return sum(w not in STOP for w in re.findall(r"\w+", text.lower()))


def _clean(task: str) -> str:
    return " ".join(task.replace("**", "").split())[:MAX_TASK_CHARS]


def in_context(question: str, conversation: str) -> str:
    """A question that names nothing, with the names of the last one that did."""
    asked = [line.removeprefix(ASKED) for line in conversation.splitlines() if line.startswith(ASKED)]
    names = next((found for text in reversed(asked) if (found := names_in(text))), [])
    return question if names_in(question) or not names else _alone(question, names[:1])


def conversation_of(messages: Sequence[Message]) -> str:
    """What was asked and answered before, for a coordinator that must know what "it" means."""
    told = [m for m in messages if m.role in ("user", "assistant") and m.content.strip()]
    return "\n\n".join(f"{ASKED if m.role == 'user' else 'Answer: '}{m.content.strip()}" for m in told)
