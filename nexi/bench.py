"""What `nexi bench` does: reads questions with their right answers, asks them, and reports how the answers score.

It knows the column names of SimpleQA, FRAMES, HotpotQA, TriviaQA, SQuAD and its own format, in any case and order. The results
file has a header, then one JSON line for each answer, written as soon as it arrives. Scores are not stored but computed from
the answers: one is correct if it contains a right answer as whole words, or if the two share nearly all of their words.
"""

from __future__ import annotations

import ast
import asyncio
import csv
import gzip
import io
import json
import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi import files
from nexi.errors import ConfigError, NexiError, StoreError
from nexi.events import RunFailed
from nexi.types import Usage, content_digest

if TYPE_CHECKING:
    from nexi.app import Nexi, RunRequest

T = TypeVar("T")
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
MIN_CORRECT_F1 = 0.8
WILSON_Z = 1.96  # two standard deviations: 95 %
ALL = "all"
MAX_KINDS = 12
WIDTH, BAR, GAP, LEFT, RIGHT = 760, 22, 12, 230, 90
_SCHEMA = "nexi-bench-1"
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)")
_NO_WORD = re.compile(r"[^\w\s]")
_MARKER = re.compile(r"\[\d+\]")
_LIST_OF_SOURCES = re.compile(r"(?im)^\s*(?:sources|references|citations)\s*:")
_YES_NO = ("yes", "no")
_BINS = 12
_HEIGHT = 120
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8").strip()


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
    """Read the questions; an unusable row is named with its line and reason. Raises ConfigError if the file has none."""
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


class BenchRow(Struct, frozen=True):
    """The result of one question. `supported` of `checked` sentences are found in their pages; `cost` is None if unknown."""

    id: str
    answer: str = ""
    citations: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    pages: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    supported: int = 0
    checked: int = 0
    conflicts: int = 0
    run: str = ""
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the question need not be asked again: any failure may be temporary."""
        return not self.error


class Results:
    """The rows so far, and the file that they are appended to.

    A line cut off by a stop is skipped and its question asked again; of two lines for one question the later one counts.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], rows: dict[str, BenchRow], damaged: int) -> None:
        self.path, self.about, self.rows, self.damaged = path, about, rows, damaged

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> Self:
        """Open an existing or new file. Raises ConfigError if it has results of another model or effort."""
        rows: dict[str, BenchRow] = {}
        with files.translate_os_errors("Could not read the results", path):
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        damaged = 0
        if any(lines):
            header = _parse_line(lines[0], dict[str, Any]) or {}
            if header.get("schema") != _SCHEMA:
                cause, fix = "its header is missing", "choose another file with --output"
                raise ConfigError(f"{path} is not a results file", cause=cause, fix=fix)
            for name, value in about.items():
                if header.get(name) != value:
                    cause = f"its {name} is {header.get(name)!r}, not {value!r}"
                    raise ConfigError(f"cannot continue {path}", cause=cause, fix="choose another file with --output")
            for line in filter(None, lines[1:]):
                row = _parse_line(line, BenchRow)
                damaged += row is None
                if row is not None:
                    rows[row.id] = row
        results = cls(path, about, rows, damaged)
        if not any(lines):
            results._append_line({"schema": _SCHEMA, **about})
        return results

    def add(self, row: BenchRow) -> None:
        self._append_line(asdict(row))
        self.rows[row.id] = row

    @property
    def cost(self) -> float:
        return sum(row.cost or 0.0 for row in self.rows.values())

    def _append_line(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with files.translate_os_errors("Could not write the results", self.path), files.open_locked(self.path) as fd:
            files.append_line(fd, line)


def _parse_line(line: bytes, kind: type[T]) -> T | None:
    """Parse a line; None if it is incomplete or foreign."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


async def ask_questions(
    nexi: Nexi,
    questions: Sequence[BenchQuestion],
    results: Results,
    template: RunRequest,
    *,
    workers: int = 2,
    max_cost: float | None = None,
    tell: Callable[[BenchQuestion, BenchRow], None] = lambda question, row: None,
) -> bool:
    """Ask all questions without a final row; whether the cost limit ended it. Raises StoreError if rows cannot be written."""
    rows = results.rows
    queue = [q for q in reversed(questions) if q.id not in rows or not rows[q.id].is_done]
    in_flight, is_out_of_budget = 0, False
    failure: NexiError | None = None

    async def ask_waiting() -> None:
        nonlocal in_flight, is_out_of_budget
        while queue:
            money = None
            if max_cost is not None:  # an equal share of the rest for each parallel question
                money = (max_cost - results.cost) / (workers if in_flight else 1)
            if money is not None and money <= 0:
                is_out_of_budget = True
                return
            question = queue.pop()
            in_flight += 1
            try:
                limits = replace(template.limits, max_cost=money)
                row = await _ask_question(nexi, question.id, replace(template, question=question.text, limits=limits))
            finally:
                in_flight -= 1
            results.add(row)
            tell(question, row)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(queue))):
                group.create_task(ask_waiting())
    except* NexiError as bundle:
        failure = next(e for e in bundle.exceptions if isinstance(e, NexiError))
    if failure is not None:
        raise failure
    return is_out_of_budget


async def _ask_question(nexi: Nexi, question_id: str, request: RunRequest) -> BenchRow:
    start = time.perf_counter()
    async with nexi.search(request) as run:
        await run.drive()
        seconds = round(time.perf_counter() - start, 3)
        try:
            result = run.result()
        except ConfigError:
            raise
        except NexiError as error:
            usage = next((fact.usage for fact in reversed(run.facts) if isinstance(fact, RunFailed)), Usage())
            message = f"{error.code}: {error}"[:500]
            return BenchRow(question_id, tokens=usage.total, cost=usage.cost, seconds=seconds, error=message)
    end, review = result.finished, result.answer.review
    return BenchRow(
        question_id,
        result.answer.text,
        citations=tuple(source.url for source in result.answer.sources),
        read=tuple(source.url for source in result.session.book.sources),
        pages=end.pages,
        model_calls=end.model_calls,
        tokens=end.usage.total,
        cost=end.usage.cost,
        seconds=seconds,
        supported=review.proof.passed if review else 0,
        checked=len(review.proof.checked) if review else 0,
        conflicts=len(result.answer.conflicts),
        run=result.id,
    )


class _AnswerScore(Struct, frozen=True):
    correct: bool
    exact: bool
    f1: float
    words: int


class Share(Struct, frozen=True):
    """A percentage with its 95 % Wilson interval."""

    percent: float
    low: float
    high: float


def score_answer(answer: str, right: Sequence[str]) -> _AnswerScore:
    """Score an answer against the closest right answer."""
    prose = _LIST_OF_SOURCES.split(_MARKER.sub(" ", answer))[0]
    text, golds = _normalise_text(prose), [g for g in map(_normalise_text, right) if g]
    words, best, has_answer = text.split(), 0.0, False
    for gold in golds:
        gold_words = gold.split()
        same = sum((Counter(words) & Counter(gold_words)).values())
        best = max(best, 2 * same / (len(words) + len(gold_words)) if same else 0.0)
        if gold in _YES_NO:
            has_answer = has_answer or words[:1] == [gold]
        elif f" {gold} " in f" {text} " or (not gold.isascii() and " " not in gold and gold in text):
            has_answer = True
    return _AnswerScore(best >= MIN_CORRECT_F1 or has_answer, text in golds, best, len(prose.split()))


def _normalise_text(text: str) -> str:
    """Lower case, no articles, no punctuation, 1,200 as 1200."""
    text = unicodedata.normalize("NFKC", _THOUSANDS.sub("", text)).lower()
    return " ".join(_NO_WORD.sub(" ", _ARTICLE.sub(" ", text)).split())


def wilson_share(count: int, total: int) -> Share:
    if not total:
        return Share(0.0, 0.0, 100.0)
    p, z = count / total, WILSON_Z
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return Share(100 * p, max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half)))


class _Figures(Struct, frozen=True):
    """The figures of a group of questions; words, citations and the rest are means per question."""

    name: str
    asked: int
    failed: int
    correct: Share
    exact: float
    f1: float
    sentences: Share
    checked: int
    words: float
    citations: float
    pages: float
    model_calls: float
    tokens: float
    seconds: float
    slowest: float
    cost: float | None
    conflicts: int


def group_figures(questions: Sequence[BenchQuestion], rows: Mapping[str, BenchRow]) -> list[_Figures]:
    """Figures of the questions that were asked, failed ones as wrong: of all, then of each kind if there are a few kinds."""
    questions_asked = [q for q in questions if q.id in rows]
    kinds = sorted({q.kind for q in questions_asked if q.kind})
    groups = [(ALL, questions_asked)]
    if 1 < len(kinds) <= MAX_KINDS:
        groups += [(kind, [q for q in questions_asked if q.kind == kind]) for kind in kinds]
    return [_compute_figures(name, group, [rows[q.id] for q in group]) for name, group in groups]


def _compute_figures(name: str, questions: Sequence[BenchQuestion], rows: Sequence[BenchRow]) -> _Figures:
    scores = [score_answer(row.answer, q.answers) for q, row in zip(questions, rows, strict=True)]
    seconds = sorted(row.seconds for row in rows)
    costs = [row.cost for row in rows]
    checked = sum(row.checked for row in rows)
    return _Figures(
        name=name,
        asked=len(rows),
        failed=sum(bool(row.error) for row in rows),
        correct=wilson_share(sum(s.correct for s in scores), len(rows)),
        exact=_mean([100.0 * s.exact for s in scores]),
        f1=_mean([100.0 * s.f1 for s in scores]),
        sentences=wilson_share(sum(row.supported for row in rows), checked),
        checked=checked,
        words=_mean([float(s.words) for s in scores]),
        citations=_mean([float(len(set(row.citations))) for row in rows]),
        pages=_mean([float(row.pages) for row in rows]),
        model_calls=_mean([float(row.model_calls) for row in rows]),
        tokens=_mean([float(row.tokens) for row in rows]),
        seconds=median(seconds) if seconds else 0.0,
        slowest=seconds[-1] if seconds else 0.0,
        cost=None if any(c is None for c in costs) else sum(c or 0.0 for c in costs),
        conflicts=sum(bool(row.conflicts) for row in rows),
    )


def render_table(groups: Sequence[_Figures]) -> str:
    heads = (
        "questions", "asked", "correct % (95 %)", "F1", "sentences found %", "words", "citations", "pages", "tokens",
        "seconds", "cost $", "failed",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for f in groups:
        cells = [
            f.name.replace("|", "/"),
            str(f.asked),
            f"{f.correct.percent:.1f} ({f.correct.low:.0f} to {f.correct.high:.0f})",
            f"{f.f1:.1f}",
            f"{f.sentences.percent:.1f} of {f.checked}" if f.checked else "not checked",
            f"{f.words:.0f}",
            f"{f.citations:.1f}",
            f"{f.pages:.1f}",
            f"{f.tokens:.0f}",
            f"{f.seconds:.1f}",
            "unknown" if f.cost is None else f"{f.cost:.4f}",
            str(f.failed),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def render_plot(title: str, groups: Sequence[_Figures], times: Sequence[tuple[float, bool]]) -> str:
    """Render bars with 95 % intervals and a histogram of seconds for right and wrong answers, for light and dark pages."""
    parts = [f'<text class="head" x="16" y="26">{escape(_shorten_line(title, 90))}</text>']
    top, room = 50, WIDTH - LEFT - RIGHT
    for group in groups:
        bars = [("right", "correct", group.correct)]
        bars += [("proof", "sentences found", group.sentences)] if group.checked else []
        for kind, label, value in bars:
            end, low, high = (round(LEFT + room * percent / 100, 1) for percent in (value.percent, value.low, value.high))
            middle, name = top + BAR / 2, escape(f"{_shorten_line(group.name, 12)}: {label}")
            parts.append(
                f'<text x="{LEFT - 10}" y="{middle + 4}" text-anchor="end">{name}</text>'
                f'<rect class="rail" x="{LEFT}" y="{top}" width="{room}" height="{BAR}"/>'
                f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{round(end - LEFT, 1)}" height="{BAR}"/>'
                f'<line class="line" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
                f'<text x="{WIDTH - RIGHT + 10}" y="{middle + 4}">{value.percent:.1f} %</text>'
            )
            top += BAR + GAP
    picture, height = _render_histogram(top + 24, times)
    parts += picture
    total = top + 24 + height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" role="img">\n'
        f"<title>{escape(_shorten_line(title, 200))}</title>\n<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _render_histogram(top: int, times: Sequence[tuple[float, bool]]) -> tuple[list[str], int]:
    """A histogram of the seconds, in equal steps up to the slowest."""
    if not times:
        return [], 10
    longest = max(seconds for seconds, _ in times) or 1.0
    bins = [[0, 0] for _ in range(_BINS)]
    for seconds, right in times:
        bins[min(_BINS - 1, int(_BINS * seconds / longest))][0 if right else 1] += 1
    most, step = max(map(sum, bins)), (WIDTH - 2 * 16) / _BINS
    parts = [f'<text class="small" x="16" y="{top}">seconds for an answer (green: correct)</text>']
    floor = top + 12 + _HEIGHT
    for index, counts in enumerate(bins):
        y = float(floor)
        for count, kind in zip(counts, ("right", "wrong"), strict=True):
            tall = round(_HEIGHT * count / most, 1)
            y = round(y - tall, 1)
            if count:
                x = round(16 + index * step, 1)
                parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{round(step - 3, 1)}" height="{tall}"/>')
    ends = ((16, "start", 0.0), (WIDTH - 16, "end", longest))
    parts += [f'<text class="small" x="{x}" y="{floor + 16}" text-anchor="{a}">{s:.1f} s</text>' for x, a, s in ends]
    return parts, _HEIGHT + 46


def _shorten_line(text: str, most: int) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
