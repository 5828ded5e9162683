"""What models say when they are asked to pick, order, score or propose: one schema, one check and one fallback for each.

Engines that judge and the search service stand above; `json_reader` and `schema_check` stand below. It knows no prompt
and no model. A reader takes the text a model wrote and gives a frozen value, or raises ValueError in words the model can
act on; what a caller falls back to is a function here too, so that it is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nexi.structured.json_reader import as_mapping, parse_json, parse_lenient
from nexi.structured.schema_check import check_schema, object_schema

MAX_REASON = 500
MAX_WHY = 80
MAX_GAPS = 8
MAX_GAP = 200
MAX_QUERY = 300
ENOUGH = 0.8  # the score of an Assessment from which nothing more needs to be looked for
_TEXT = {"type": "string"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


class Pick(Struct, frozen=True):
    """Candidates by index, best first. `fell_back` says that the model's own answer could not be used."""

    order: tuple[int, ...]
    fell_back: bool = False
    why: tuple[str, ...] = ()


class UrlScore(Struct, frozen=True):
    """How useful one candidate is, from 0 to 1."""

    index: int
    score: float
    reasoning: str = ""


class Assessment(Struct, frozen=True):
    """How completely some passages answer a question, from 0 to 1, and what they leave open."""

    score: float
    reasoning: str = ""
    gaps: tuple[str, ...] = ()


def pick_schema(count: int, want: int) -> dict[str, Any]:
    """`{"pick": [...]}`: as many distinct indices as wanted, or as there are."""
    most = max(0, min(count, want))
    items = {"type": "integer", "minimum": 0, "maximum": max(0, count - 1)}
    return object_schema({"pick": {"type": "array", "items": items, "maxItems": most}}, is_closed=True)


def read_pick(text: str, count: int, want: int) -> Pick:
    """The usable part of a pick in one JSON object: known indices, each once, at most `want`. Raises ValueError for none."""
    answer = as_mapping(parse_json(text.strip()))
    picks, why = answer.get("pick"), answer.get("why")
    if not isinstance(picks, list):
        raise ValueError('expected one JSON object with a list "pick"')  # noqa: TRY004 a reader raises ValueError and nothing else
    reasons = why if isinstance(why, list) and len(why) == len(picks) else [""] * len(picks)
    reason_by_index: dict[int, str] = {}
    for index, reason in zip(picks, reasons, strict=True):
        is_index = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < count
        if is_index and index not in reason_by_index:
            reason_by_index[index] = reason[:MAX_WHY] if isinstance(reason, str) else ""
    order = tuple(reason_by_index)[: max(0, want)]
    if not order:
        raise ValueError(f'"pick" names no candidate; they are numbered 0 to {count - 1}')
    return Pick(order, why=tuple(reason_by_index[i] for i in order) if any(reason_by_index.values()) else ())


def first_ones(count: int, want: int) -> Pick:
    """What stands in for a pick that cannot be used: the first candidates as they came."""
    return Pick(tuple(range(max(0, min(count, want)))), fell_back=True)


def pick_or_first(text: str, count: int, want: int) -> Pick:
    """A model's pick, or the first candidates where it has none that can be used."""
    try:
        return read_pick(text, count, want)
    except ValueError:
        return first_ones(count, want)


def scores_schema(count: int) -> dict[str, Any]:
    """`{"ranked": [{"i", "score", "reasoning"}]}`, one entry for each candidate."""
    index = {"type": "integer", "minimum": 0, "maximum": max(0, count - 1)}
    entry = object_schema({"i": index, "score": _SHARE, "reasoning": _TEXT}, required=["i", "score"])
    return object_schema({"ranked": {"type": "array", "items": entry, "maxItems": count}})


def read_scores(text: str, count: int) -> tuple[UrlScore, ...]:
    """Every well-formed entry, the best first; of two for one candidate the first counts. Raises ValueError when none is."""
    entries = _parse_object(text).get("ranked")
    if not isinstance(entries, list):
        raise ValueError('expected {"ranked": [{"i": 0, "score": 0.5, "reasoning": "..."}]}')  # noqa: TRY004
    entry_schema = scores_schema(count)["properties"]["ranked"]["items"]
    score_by_index: dict[int, UrlScore] = {}
    problems: list[str] = []
    for entry in entries:
        if wrong := check_schema(entry, entry_schema):
            problems += wrong
        else:
            reasoning = _one_line(entry.get("reasoning", ""), MAX_REASON)
            score_by_index.setdefault(entry["i"], UrlScore(entry["i"], float(entry["score"]), reasoning))
    if not score_by_index:
        raise ValueError("; ".join(problems[:3]) or "no candidate was scored")
    return in_order(score_by_index.values())


def in_order(scores: Iterable[UrlScore]) -> tuple[UrlScore, ...]:
    """The best first; equals stay as the candidates came."""
    return tuple(sorted(scores, key=lambda s: (-s.score, s.index)))


def assessment_schema() -> dict[str, Any]:
    """`{"score", "reasoning", "gaps"}`."""
    return object_schema({"score": _SHARE, "reasoning": _TEXT, "gaps": {"type": "array", "items": _TEXT}})


def read_assessment(text: str) -> Assessment:
    """A whole assessment, nothing missing and nothing out of range. Raises ValueError."""
    value = _parse_object(text)
    if problems := check_schema(value, assessment_schema()):
        raise ValueError("; ".join(problems[:3]))
    gaps = _distinct_lines(value["gaps"], MAX_GAPS, MAX_GAP)
    return Assessment(float(value["score"]), _one_line(value["reasoning"], MAX_REASON), gaps)


def queries_schema(least: int, most: int) -> dict[str, Any]:
    """`{"queries": [...]}`."""
    return object_schema({"queries": {"type": "array", "items": _TEXT, "minItems": least, "maxItems": most}})


def read_queries(text: str, least: int, most: int) -> tuple[str, ...]:
    """At least `least` distinct queries of one line each; those beyond `most` are left out. Raises ValueError."""
    entries = _parse_object(text).get("queries")
    if not isinstance(entries, list):
        raise ValueError('expected {"queries": ["...", "..."]}')  # noqa: TRY004
    queries = _distinct_lines([e for e in entries if isinstance(e, str)], most, MAX_QUERY)
    if len(queries) < least:
        raise ValueError(f"expected {least} to {most} different queries, got {len(queries)}")
    return queries


def _parse_object(text: str) -> Mapping[str, Any]:
    value = parse_lenient(text)
    if not isinstance(value, Mapping):
        raise ValueError("expected one JSON object")  # noqa: TRY004
    return value


def _one_line(text: str, most: int) -> str:
    """Text on one line; a line of a model may go into prompts and search boxes."""
    return " ".join(text.split())[:most]


def _distinct_lines(texts: Sequence[str], most: int, longest: int) -> tuple[str, ...]:
    line_by_key: dict[str, str] = {}
    for text in texts:
        if line := _one_line(text, longest):
            line_by_key.setdefault(line.casefold(), line)
    return tuple(line_by_key.values())[:most]
