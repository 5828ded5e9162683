"""Reads questions with their right answers from a file.

It knows the column names of SimpleQA, FRAMES, HotpotQA, TriviaQA, SQuAD and its own format, in any case and order. An unusable
row is reported with its line and reason, and skipped.
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.errors import ConfigError, StoreError
from nexi.types import content_digest

MAX_BYTES = 200_000_000
MAX_QUESTION_CHARS = 20_000
QUESTION_COLUMNS = ("question", "problem", "prompt", "query", "query_text", "input", "q")
ANSWER_COLUMNS = (
    "answers", "answer", "gold_answers", "gold_answer", "gold", "expected_answer", "expected", "correct_answer", "target",
    "reference_answer", "reference", "ground_truth", "solution", "label", "a", "output",
)  # fmt: skip
ID_COLUMNS = ("id", "_id", "qid", "uid", "question_id", "original_index", "index", "unnamed: 0")
KIND_COLUMNS = ("kind", "topic", "type", "level", "category", "reasoning_types")
PAGE_COLUMNS = ("gold_urls", "wiki_links", "urls", "url")
OTHER_PAGES = ("also_urls",)
LIST_KEYS = ("data", "questions", "rows", "examples", "items")


class BenchQuestion(Struct, frozen=True):
    """A question with every spelling of its right answer."""

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str = ""
    pages: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class _QuestionFile(Struct, frozen=True):
    questions: tuple[BenchQuestion, ...]
    bad: tuple[str, ...] = ()


def read_questions(path: Path) -> _QuestionFile:
    """Read the questions. Raises ConfigError if the file has none."""
    questions: dict[str, BenchQuestion] = {}
    bad: list[str] = []
    for place, row in _parse_rows(_read_text(path)):
        try:
            question = _parse_question(row)
        except ValueError as error:
            bad.append(f"{place}: {error}")
            continue
        if question.id in questions:
            is_same = question.text == questions[question.id].text
            bad.append(f"{place}: {'duplicate question' if is_same else f'duplicate id {question.id[:60]}'}")
        questions.setdefault(question.id, question)
    if not questions:
        fix = 'each row needs a question and its answer, as in {"question": "...", "answer": "..."}'
        raise ConfigError(f"no questions in {path}", cause=bad[0] if bad else "it is empty", fix=fix)
    return _QuestionFile(tuple(questions.values()), tuple(bad))


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} is too large", cause=f"the limit is {MAX_BYTES:,} bytes", fix="split it")
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MAX_BYTES)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"cannot read {path}", cause=cause, fix="use a .jsonl, .json, .csv or .tsv file") from error
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")


def _parse_rows(text: str) -> Iterator[tuple[str, Any]]:
    """Yield each row with its place; a broken row is a string with the reason."""
    start = text.lstrip()[:1]
    whole: list[Any] | None = None  # the rows of a file that is one JSON value
    if start in ("[", "{"):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            if isinstance(value, dict):
                whole = next((value[name] for name in LIST_KEYS if isinstance(value.get(name), list)), [value])
            elif isinstance(value, list):
                whole = value
    if start == "[" or whole is not None:
        yield from ((f"row {number}", row) for number, row in enumerate(whole if whole is not None else [None], 1))
    elif start == "{":
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                yield f"line {number}", f"invalid JSON ({error})"
    else:
        csv.field_size_limit(10_000_000)
        head = text.partition("\n")[0]
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if head.count("\t") > head.count(",") else ",")
        try:
            for row in lines:
                yield f"line {lines.line_num}", {str(k): v for k, v in row.items() if k is not None and v is not None}
        except csv.Error as error:
            yield f"line {lines.line_num}", f"invalid CSV ({error})"


def _parse_question(row: Any) -> BenchQuestion:
    if isinstance(row, str):
        raise ValueError(row)  # noqa: TRY004 - a row that could not be read says why itself
    if not isinstance(row, Mapping):
        raise ValueError("not an object with a question and an answer")  # noqa: TRY004 - one kind of error for one kind of row
    columns = {str(name).strip().lower(): value for name, value in row.items()}
    question = " ".join(str(_first_value(columns, QUESTION_COLUMNS) or "").split())
    if not question:
        raise ValueError(f"no question (looked for {', '.join(QUESTION_COLUMNS[:4])}, …)")
    if len(question) > MAX_QUESTION_CHARS:
        raise ValueError(f"the question is too long ({len(question):,} characters)")
    answers = tuple(dict.fromkeys(a.strip() for a in _parse_answers(_first_value(columns, ANSWER_COLUMNS)) if a.strip()))
    if not answers:
        raise ValueError(f"no answer (looked for {', '.join(ANSWER_COLUMNS[:4])}, …)")
    id_value = _first_value(columns, ID_COLUMNS)
    name = str(id_value) if id_value not in (None, "") else content_digest(question)[:12]
    kind = _first_value(columns, KIND_COLUMNS)
    pages, also = (tuple(_parse_answers(_first_value(columns, names))) for names in (PAGE_COLUMNS, OTHER_PAGES))
    return BenchQuestion(name, question, answers, str(kind or "")[:60], pages, also)


def _first_value(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "", [])), None)


def _parse_answers(value: Any) -> list[str]:
    """All accepted answers in a string, a list, a list written as a string, or an object with aliases."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        spellings = [value.get(name) for name in ("value", "text", "answer", "aliases", "normalized_aliases")]
        return [answer for spelling in spellings for answer in _parse_answers(spelling)]
    if isinstance(value, list | tuple):
        return [answer for item in value for answer in _parse_answers(item)]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):  # a list written into one cell
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            items = ast.literal_eval(value)
            if isinstance(items, list) and items:
                return [str(item) for item in items]
    return [str(value)]
