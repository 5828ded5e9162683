"""The coordinator: divides a question into tasks that researchers can take at the same time.

The orchestrator above asks once; below is a model behind its port. What the model writes is read with tolerance, and where
nothing usable comes back the question's own parts are the agenda, so planning never ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexi.errors import LLMError
from nexi.language import STOP
from nexi.ports import LLM
from nexi.prompts import render
from nexi.research.state import FIRST_RESEARCHERS, MOST_TASKS
from nexi.schema import parse_lenient
from nexi.types import Message
from nexi.values import frozen

MAX_TASK_CHARS = 2000
PLAN_TOKENS = 1500
CONVERSATION_CHARS = 6000
SCHEMA = {
    "type": "object",
    "properties": {
        "complexity": {"type": "integer", "minimum": 1, "maximum": 3},
        "tasks": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_TASKS},
    },
    "required": ["complexity", "tasks"],
}
LIST_KEYS = ("tasks", "agenda", "queries", "items", "plan")
TEXT_KEYS = ("task", "query", "question", "title", "name", "description")

_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+(\S.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^?!。？！;]+[?!。？！;]?")
_QUESTION_WORD = r"(?:how|what|who|when|where|why|which|whose|is|are|was|were|did|do|does)\b"
_AND = re.compile(rf",?\s+(?:and|as well as)\s+(?={_QUESTION_WORD})", re.IGNORECASE)
_VERSUS = re.compile(r"(.+?)\s+(?:vs\.?|versus|compared (?:to|with))\s+(.+)", re.IGNORECASE)
_NAME = re.compile(
    r"[\"“«]([^\"”»]{2,80})[\"”»]|((?:[A-ZÀ-ÞА-Я][\w'’.-]*)(?:\s+(?:of|the|de|von|van)?\s*[A-ZÀ-ÞА-Я][\w'’.-]*)*)"
)


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
        return fallback_agenda(question, brief.depth, by="built-in" if error.code == "unsupported" else "fallback")
    return read_agenda(reply.text, brief.depth) or fallback_agenda(question, brief.depth)


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
    """The question's parts, then the names in it, then the question itself, as many as the complexity wants."""
    parts = parts_of(question)
    names = [f"What is known about {name}?" for name in names_in(question)]
    wanted = [*parts, *names] if len(parts) > 1 else [question, *names]
    tasks = list(dict.fromkeys(t for t in map(_clean, wanted) if t)) or [_clean(question) or "the question"]
    complexity = depth or (complexity_for(len(parts)) if len(parts) > 1 else 1)
    return Agenda(tuple(tasks[: FIRST_RESEARCHERS[complexity]]), complexity, by)


def parts_of(question: str) -> list[str]:
    """The questions inside a question: its sentences, and the sides of an "and what" or a "versus".

    A part that names nothing is given the names of the whole, because its researcher sees nothing else.
    """
    sentences = [s.strip() for s in _SENTENCE.findall(question) if _weight(s)]
    parts = [part.strip(" ,") for sentence in sentences for part in _AND.split(sentence)]
    if len(parts) == 1 and (sides := _VERSUS.fullmatch(parts[0])):
        return [sides[1].strip(), sides[2].strip(), parts[0]]
    names = names_in(question)
    named = [p if not names or any(n in p for n in names) else f"{p} ({', '.join(names)})" for p in parts if _weight(p)]
    return named or [question.strip()]


def names_in(question: str) -> list[str]:
    """Names and quoted titles, in order; the first word of a sentence is a name only with another one."""
    found = []
    for match in _NAME.finditer(question):
        name = (match[1] or match[2]).strip(" .,'’-")
        starts = match.start() == 0 or question[: match.start()].rstrip()[-1:] in "?!."
        words = [w for w in name.split() if w.lower() not in STOP]
        if match[1] or len(words) > 1 or (words and not starts):
            found.append(name if not starts or match[1] else " ".join(words))
    return list(dict.fromkeys(found))


def _weight(text: str) -> int:
    return sum(w not in STOP for w in re.findall(r"\w+", text.lower()))


def _clean(task: str) -> str:
    return " ".join(task.replace("**", "").split())[:MAX_TASK_CHARS]


def conversation_of(messages: Sequence[Message]) -> str:
    """What was asked and answered before, for a coordinator that must know what "it" means."""
    told = [m for m in messages if m.role in ("user", "assistant") and m.content.strip()]
    return "\n\n".join(f"{'Question' if m.role == 'user' else 'Answer'}: {m.content.strip()}" for m in told)
