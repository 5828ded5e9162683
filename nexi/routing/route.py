"""Chooses services for a question by cheap features: its words, its names, its marks, its language, and its vector.

A question has a kind for each cue that it shows; the services of the strongest kinds are asked first, and the general web
beside them, since a guess may be wrong. At the end they are asked at once by a function that knows them and the network.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.routing.table import SERVICES
from nexi.text.languages import LANGUAGES, detect_language, strip_question_words
from nexi.text.words import STOP, find_names, read_word_sets
from nexi.types import Failure, Query, SearchOutcome, ServiceAnswer
from nexi.urls import find_urls, host_of

MAX_SERVICES = 4  # asked at once
MAX_ASKED = 10  # with all that replace one another
MAX_LATE_S = 3.0  # how long the others are waited for after the first answer with hits
MAX_KEYWORDS = 10
MAX_WORDS = 24
MEANING_WEIGHT = 8.0  # of a rate of 1, against the words
MIN_RATE = 0.2
FURTHER = 0.8  # of a kind's other words, each
MIN_SHARE = 0.5  # of the strongest kind's score, for another kind to count

SMALL_INDEXES = ("marginalia", "mwmbl", "yacy")  # of the web, which know no dates
GENERAL = ("duckduckgo", *SMALL_INDEXES)  # one of them is asked beside every guess
WEB = ("duckduckgo", "wikipedia", *SMALL_INDEXES)
_Kinds = dict[str, dict[str, tuple[str, ...]]]
_KINDS = msgspec.json.decode(Path(__file__).with_name("kinds.json").read_bytes(), type=_Kinds)
KINDS = _KINDS["services"]  # by kind, the best first
FOCUS_KINDS = _KINDS["of_focus"]
_FINER = _KINDS["finer"]


class _Cue(Struct, frozen=True):
    """Words and phrases of one kind, in the languages in which people ask, or the shape of an identifier."""

    kind: str
    weight: float  # words of a large one decide by themselves, those of a small one add up
    words: tuple[str, ...] = ()  # `*` stands for the rest of a word
    pattern: str = ""

    def compile(self) -> re.Pattern[str]:
        """One pattern, the longest first, so that a phrase counts once."""
        if self.pattern:
            return re.compile(self.pattern)
        entries = sorted(self.words, key=len, reverse=True)
        inner = "|".join(re.escape(entry).replace(r"\*", r"\w*").replace(r"\ ", r"\s+") for entry in entries)
        return re.compile(rf"(?<![\w-])(?:{inner})(?![\w-])", re.IGNORECASE)


_CUES = tuple(
    (cue.kind, cue.weight, cue.compile())
    for cue in msgspec.json.decode(Path(__file__).with_name("cues.json").read_bytes(), type=tuple[_Cue, ...])
)
_QUERY_WORD = re.compile(r"[\w'’.+#/:-]+")
_WORDS = read_word_sets(__file__)
_PACKAGE = (
    re.compile(r"(?:pip3? install|npm (?:install|i)|yarn add|cargo (?:add|install))\s+(?:-\w+\s+)*([@\w./-]+)", re.IGNORECASE),
    re.compile(r"\b([@\w./-]+) (?:package|library|crate|module)\b", re.IGNORECASE),
    re.compile(r"\b(?:package|library|crate|module|of|does) (?:the )?([@\w./-]+)", re.IGNORECASE),
    re.compile(r"\b([@\w./-]+) on (?:pypi|npm|crates)", re.IGNORECASE),
)
_STAMP = re.compile(r"\b(19\d\d|20\d\d)\b")
_HOST = re.compile(r"\b(?:[\w-]+\.)+(?:com|org|net|edu|gov|io|de|fr|uk|info)\b(?:/\S*)?", re.IGNORECASE)


class Choice(Struct, frozen=True):
    """A service, and why it is asked."""

    service: str
    reason: str


class Route(Struct, frozen=True):
    """The services to ask at once, in order, and those that replace one which does not answer."""

    first: tuple[Choice, ...]
    reserve: tuple[Choice, ...] = ()


def route_query(query: Query, available: Collection[str], meaning: Mapping[str, float] = {}) -> Route:
    """The services for a query among those available, at most MAX_SERVICES at once."""
    # `meaning` says how much the question is of each kind by what it means, where a model on this machine can tell.
    choices: dict[str, Choice] = {}

    def add(services: Sequence[str], reason: str) -> None:
        for service in services:
            if service in available and _can_take(service, query):
                choices.setdefault(service, Choice(service, reason))

    # The best service of each of the two strongest kinds, and the next of the strongest.
    kinds = list(_rank_kinds(query, meaning))[:2]
    for kind, reason in kinds:
        add(KINDS[kind][:1], reason)
    for kind, reason in kinds[:1]:
        add(KINDS[kind][1:2], reason)
    add([service for service in GENERAL if service in available and _can_take(service, query)][:1], "the general web")
    if not kinds or len(choices) < MAX_SERVICES - 1:
        add(("wikipedia",), "facts and names")
    if not kinds and len(choices) < 2:
        add(WEB, "the general web")
    count = min(len(choices), MAX_SERVICES)
    # What follows stands in reserve.
    for kind, reason in kinds:
        add(KINDS[kind], reason)
    add(WEB, "the general web")
    add(("wikidata",), "names")
    every = tuple(choices.values())
    return Route(every[:count], every[count:])


def _can_take(service: str, query: Query) -> bool:
    """Whether a service has what a query needs: a filter that was asked for, an address, a name of a package."""
    row = SERVICES[service]
    if query.sites and "site" not in row.filters:
        return any(site.strip("./").endswith(row.hosts) for site in query.sites)
    if query.time_range and "time" not in row.filters and service in SMALL_INDEXES:
        return False
    return row.wording not in ("address", "package") or bool(phrase_query(query, service).text)


def _rank_kinds(query: Query, meaning: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """The kinds of a question with the words that show them, strongest first; a focus goes before all of them."""
    kinds_of_focus = FOCUS_KINDS.get(query.focus, ())
    yield from ((kind, f"focus {query.focus}") for kind in kinds_of_focus)
    if kinds_of_focus:
        return
    scores: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for kind, weight, pattern in _CUES:
        matches = {match[0].strip().lower() for match in pattern.finditer(query.text)}
        if matches:
            scores[kind] = scores.get(kind, 0.0) + weight + FURTHER * (len(matches) - 1)
            reasons.setdefault(kind, f"{kind}: {' '.join(sorted(matches, key=len)[-1].split())[:40]!r}")
    if query.time_range and query.time_range[:1].lower() in ("d", "w"):
        scores["news"] = scores.get("news", 0.0) + 3
        reasons.setdefault("news", "news: only the last days are wanted")
    for kind, rate in meaning.items():
        if rate >= MIN_RATE:
            # The model knows fewer kinds than the words: what it says counts for the finest that they show.
            own = "facts" if kind == "encyclopedia" else kind
            own = max((name for name in _FINER.get(own, ()) if name in scores), key=lambda name: scores[name], default=own)
            scores[own] = scores.get(own, 0.0) + MEANING_WEIGHT * rate
            reasons.setdefault(own, f"{kind}, by its meaning")
    best = max(scores.values(), default=0.0)
    for kind in sorted(scores, key=lambda kind: -scores[kind]):
        if scores[kind] >= MIN_SHARE * best:
            yield kind, reasons[kind]


def phrase_query(query: Query, service: str) -> Query:
    """The query in the words that a service understands, and in its language where the question has one."""
    row, language = SERVICES[service], query.language
    if not language and "language" in row.filters and service != "duckduckgo":
        language = detect_language(query.text)
        language = "" if language == "en" else language
    return replace(query, text=_WORDINGS[row.wording](query.text), language=language)


def _keep_keywords(text: str) -> str:
    """What a question is about: also without the words that name the kind of service."""
    content = _content_words(text)
    return " ".join(([word for word in content if word.lower() not in _WORDS["noise"]] or content)[:MAX_KEYWORDS])


def _content_words(text: str) -> list[str]:
    language = detect_language(text)
    text = strip_question_words(text, language)
    small = STOP | (LANGUAGES[language].stop if language in LANGUAGES else frozenset())
    words = [word.strip("'’.:/-") for word in _QUERY_WORD.findall(text)]
    return [word for word in words if word and word.lower() not in small] or words


def _find_package(text: str) -> str:
    for pattern in _PACKAGE:
        for match in pattern.finditer(text):
            name = match[1].strip("./-")
            if name and name.lower() not in _WORDS["no_packages"]:
                return name
    return " ".join(_keep_keywords(text).split()[:4])


def _find_address(text: str) -> str:
    """An address and, where a year is named, the year."""
    urls = find_urls(text)
    host = _HOST.search(text)
    address = urls[0] if urls else host[0] if host else ""
    if urls and not host_of(urls[0]):
        return ""
    year = _STAMP.search(text.replace(address, " "))
    return f"{address} {year[1]}" if address and year else address


_WORDINGS: Mapping[str, Callable[[str], str]] = {
    "question": lambda text: text,
    "words": lambda text: " ".join(_content_words(text)[:MAX_WORDS]),
    "keywords": _keep_keywords,
    "name": lambda text: max(find_names(text), key=len, default="") or _keep_keywords(text),
    "package": _find_package,
    "address": _find_address,
}


class _Weights(Struct, frozen=True):
    kinds: tuple[str, ...]
    size: int
    scale: float
    numbers: bytes  # the mean vector first, then one row for each kind


@cache
def _load_weights() -> tuple[_Weights, list[array[int]]]:
    weights = msgspec.json.decode(Path(__file__).with_name("weights.json").read_bytes(), type=_Weights)
    numbers = array("h", weights.numbers)
    return weights, [numbers[start : start + weights.size] for start in range(0, len(numbers), weights.size)]


def rate_kinds(vector: Sequence[float]) -> Mapping[str, float]:
    """How much a question is of each kind, by its vector of the reading model: about 1 for the right one, else about 0."""
    # The weights are made by `python -m evals.routing --train` from questions that were written for the purpose.
    weights, (mean, *rows) = _load_weights()
    if len(vector) != weights.size:
        return {}
    differences = [value - part * weights.scale for value, part in zip(vector, mean, strict=True)]
    rates = (sum(value * part for value, part in zip(differences, row, strict=True)) * weights.scale for row in rows)
    return dict(zip(weights.kinds, rates, strict=True))


async def ask_services(
    route: Route, ask: Callable[[Choice], Coroutine[Any, Any, SearchOutcome]], *, max_late_s: float = MAX_LATE_S
) -> list[tuple[ServiceAnswer, SearchOutcome]]:
    """What each service said, in the order of the route; those that are late once there are hits are not waited for."""
    reserve = list(route.reserve)
    order: list[Choice] = []
    answers: dict[str, SearchOutcome] = {}
    loop = asyncio.get_running_loop()
    late_at: float | None = None
    async with asyncio.TaskGroup() as group:
        running: dict[asyncio.Task[SearchOutcome], Choice] = {}

        def start(choice: Choice) -> None:
            order.append(choice)
            running[group.create_task(ask(choice))] = choice

        for choice in route.first:
            start(choice)
        while running:
            seconds_left = None if late_at is None else max(0.0, late_at - loop.time())
            finished_tasks, _ = await asyncio.wait(running, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED)
            fresh = [(running.pop(task), task.result()) for task in [*running] if task in finished_tasks]
            answers |= {choice.service: outcome for choice, outcome in fresh}
            if late_at is None and any(outcome.hits for _, outcome in fresh):
                late_at = loop.time() + max_late_s
            for choice, outcome in fresh:
                # A service that failed is replaced; one that has nothing only while no other has anything.
                is_lacking = not answers[choice.service].backend or not any(answer.hits for answer in answers.values())
                if not outcome.hits and reserve and len(order) < MAX_ASKED and is_lacking:
                    # By one that was chosen for the same reason, so that the general web stays asked.
                    start(reserve.pop(next((n for n, other in enumerate(reserve) if other.reason == choice.reason), 0)))
            if not finished_tasks:
                for task in running:
                    task.cancel()
                break
    outcomes = [(choice, answers.get(choice.service)) for choice in order]
    return [(_describe_answer(choice, outcome), outcome or SearchOutcome("")) for choice, outcome in outcomes]


def _describe_answer(choice: Choice, outcome: SearchOutcome | None) -> ServiceAnswer:
    if outcome is None:
        return ServiceAnswer(choice.service, choice.reason, 0, "late", "the others had answered, so it was not waited for")
    failures = () if outcome.hits else outcome.failures
    failure = next((f for f in failures if f.code != "filter_ignored"), Failure("", "", ""))
    return ServiceAnswer(choice.service, choice.reason, len(outcome.hits), failure.code, failure.message)
