"""Pair models of one config: the installed cross-encoder, and the judge of a run, each tested before it is believed.

A test of the judge is paid from the run's budget and kept; a replay uses the grade that its log holds and tests nobody.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate
from nexi.checking.judge import TOKENS_PER_CASE, GradedJudge, Judge, JudgePairModel, LlmJudge, PairJudge
from nexi.checking.quiz import MAX_PAIRS, Grade, GradedPairModel, Quiz, grade_scores, packaged_quiz, take_quiz
from nexi.config import Config
from nexi.errors import NexiError, StoreError
from nexi.events import Judged
from nexi.files import read_json_object, write_json_object
from nexi.model import MeteredLLM
from nexi.net.addresses import is_loopback_url
from nexi.pair_models.folder import (
    ModelFolder,
    describe_folder,
    download_model,
    find_published,
    gather_files,
    installed_model,
    published_models,
    put_in_place,
    read_manifest,
    remove_model,
    stage_files,
)
from nexi.ports import LLM, Clock, Emit, PairModel
from nexi.prompts import template
from nexi.runs.recording import AgentReplay
from nexi.tasks import catch_error, raise_error, start_task
from nexi.types import PairScore, Usage, content_digest

if TYPE_CHECKING:
    from nexi.pair_models.onnx import OnnxPairModel

__all__ = ["Grade", "ModelFolder", "find_published", "installed_model", "published_models", "remove_model"]  # for doors

JUDGE_SHARE = 0.33  # of a run's tokens
MIN_ALLOWANCE_TOKENS = 16_000  # of a run without a limit: an answer with its passages, and what was corrected
TEXT_ALLOWANCE_TOKENS = 600_000  # of the check of a text without a limit, whose work is all judging
MAX_TEST_S = 45.0  # inside a run; a slow server is tested with `nexi doctor --judge`
JUDGE: Literal["judge"] = "judge"
MIN_CHARS_PER_TOKEN = 3
PASSAGES = "passages"  # what the installed model judges
PROBE = "test it by hand, with more time: nexi doctor --judge"
GRADES_VERSION = 1
MAX_GRADES = 200
MAX_REASON_CHARS = 300
RETRY_AFTER = timedelta(days=1)
GRADES, FAILURES = "grades", "failures"


class GradeBook:
    """Grades by key in a JSON file. What cannot be read counts as not tested; what cannot be written is tested again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def grade(self, key: str) -> Grade | None:
        try:
            return msgspec.convert(self._read_part(GRADES)[key], Grade)
        except (KeyError, msgspec.ValidationError):
            return None

    def put(self, key: str, grade: Grade) -> None:
        """Raises StoreError where the file cannot be written."""
        self._write_part(GRADES, key, grade.as_json())

    def failure(self, key: str, now: datetime) -> str:
        """Why the last test did not end, where that was less than a day ago: a slow server is not tried in every run."""
        try:
            entry = self._read_part(FAILURES)[key]
            return str(entry["reason"]) if now - datetime.fromisoformat(entry["at"]) < RETRY_AFTER else ""
        except (KeyError, TypeError, ValueError):
            return ""

    def put_failure(self, key: str, reason: str, now: datetime) -> None:
        """Raises StoreError where the file cannot be written."""
        self._write_part(FAILURES, key, {"reason": reason[:MAX_REASON_CHARS], "at": now.isoformat()})

    def _write_part(self, part: str, key: str, value: Mapping[str, Any]) -> None:
        parts = {name: self._read_part(name) for name in (GRADES, FAILURES)}
        for entries in parts.values():
            entries.pop(key, None)
        parts[part] = {**dict(list(parts[part].items())[-MAX_GRADES + 1 :]), key: value}
        write_json_object(self._path, {"version": GRADES_VERSION, **parts}, "The grade of a judge could not be kept")

    def _read_part(self, part: str) -> dict[str, Any]:
        value = read_json_object(self._path)
        entries = value.get(part) if value.get("version") == GRADES_VERSION else None
        return dict(entries) if isinstance(entries, dict) else {}


def model_root(config: Config) -> Path:
    """Where the cross-encoder is installed."""
    return config.root / "proof"


def grade_book(config: Config) -> GradeBook:
    return GradeBook(config.state_dir / "judges.json")


def judge_key(config: Config, quiz: Quiz) -> str:
    """Names a judge, its server, and what it was tested with: after a change of any of them it is tested again."""
    endpoint = config.endpoint(JUDGE)
    prompt, _ = template("judge", config.prompts_dir)
    return f"{endpoint.label} {quiz.digest} {content_digest(prompt)[:8]}"


def _model_key(folder: ModelFolder) -> str:
    return f"{folder.name} {folder.digest} {packaged_quiz().digest}"


def kept_judge_grade(config: Config) -> Grade | None:
    """The grade of the configured judge, where it was tested before."""
    with suppress(NexiError):
        return None if config.endpoint(JUDGE).is_extractive else grade_book(config).grade(judge_key(config, packaged_quiz()))
    return None


def kept_model_grade(config: Config, folder: ModelFolder) -> Grade | None:
    with suppress(NexiError):
        return grade_book(config).grade(_model_key(folder))
    return None


async def grade_judge(config: Config, llm: LLM, clock: Clock, *, deadline: float | None = None) -> Grade:
    """Test the configured judge now, whatever is kept, and keep the result. Raises NexiError where it could not be asked."""
    judge = LlmJudge(llm, clock, prompts_folder=config.prompts_dir, max_cases=MAX_PAIRS)
    key = judge_key(config, packaged_quiz())
    return await _take_test(config, key, JudgePairModel(judge), clock, deadline=deadline, judge=judge)


async def grade_model(config: Config, folder: ModelFolder, model: PairModel, clock: Clock) -> Grade:
    """The same for an installed cross-encoder."""
    return await _take_test(config, _model_key(folder), model, clock)


async def _take_test(
    config: Config, key: str, model: PairModel, clock: Clock, *, deadline: float | None = None, judge: LlmJudge | None = None
) -> Grade:
    quiz, start = packaged_quiz(), clock.monotonic()
    grade = grade_scores(quiz, await take_quiz(model, quiz, deadline=deadline))
    spent, seconds = judge.spent if judge else Usage(cost=None), round(clock.monotonic() - start, 1)
    grade = replace(grade, seconds=seconds, tested_at=clock.now().date().isoformat(), tokens=spent.total, cost=spent.cost)
    with suppress(StoreError):  # a grade that cannot be kept still holds for this run
        await asyncio.to_thread(grade_book(config).put, key, grade)
    return grade


def describe_grade(grade: Grade) -> str:
    """One line: how often it is right, what follows, and what the test cost."""
    spent = f"{grade.tokens:,} tokens" if grade.tokens else ""
    cost = f"${grade.cost:.4f}" if grade.cost else ""
    paid = ", ".join(part for part in (spent, cost, f"{grade.seconds:g} s") if part)
    right = f"right in {grade.balanced_accuracy:.0%} of a test of {grade.pairs} pairs: {grade.role}"
    return f"{right} (keeps {grade.true_kept:.0%} of what is true, passes {grade.lies_passed:.0%} of lies; {paid})"


async def install_model(
    ports: PortFactory, name: str, folder: Path | None, *, mirror: str = "", on_bytes: Callable[[int], None] = lambda _: None
) -> tuple[ModelFolder, OnnxPairModel]:
    """Install a cross-encoder from a folder, or a published one by its name, once it was seen to work. Raises NexiError."""
    from nexi.pair_models.onnx import OnnxPairModel

    root = model_root(ports.config)
    with TemporaryDirectory(prefix="nexi-proof-") as fetched:
        if folder is None:
            published, trust = find_published(name), ports.config.trust
            described = published.to_dict()
            proxy = ports.proxy_for(published.url_of(published.files[0], mirror))
            files = await download_model(published, Path(fetched), mirror=mirror, proxy=proxy, trust=trust, on_bytes=on_bytes)
        else:
            files = gather_files(folder)
            described = {"name": folder.name, "source": "folder", **describe_folder(folder)}
        staged = await asyncio.to_thread(stage_files, root, files, described)
    try:
        trial = OnnxPairModel(read_manifest(staged), ports.clock)
        await trial.load()
        await trial.aclose()
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, staged, ignore_errors=True)
        raise
    await asyncio.to_thread(put_in_place, staged, root)
    installed = read_manifest(root / "model")
    return installed, OnnxPairModel(installed, ports.clock)


class RunJudge:
    """The judge of one run: what it may spend, and its grade, kept, recorded or from a test that this run pays for. Both are a
    fact of the run, so that a replay, which has no budget, asks the same questions."""

    def __init__(
        self, config: Config, llm: MeteredLLM, *, share: float = JUDGE_SHARE, min_tokens: int = MIN_ALLOWANCE_TOKENS
    ) -> None:
        """`share` is of the work's limit on tokens; without one it is at least `min_tokens`."""
        self._config, self._llm, self._share, self._min_tokens = config, llm, share, min_tokens
        self._judge = LlmJudge(llm, llm.clock, allowance=lambda: self._allowance, prompts_folder=config.prompts_dir)
        self._allowance = 0
        self._test_tokens = 0
        self._turn = asyncio.Lock()
        self._known: Grade | NexiError | None = None
        self._test: asyncio.Task[Grade | NexiError] | None = None

    def begin_test(self, tasks: asyncio.TaskGroup) -> None:
        """Test the judge beside the work of the run, where this delays nothing and takes nothing from the answer."""
        if self._test or self._llm.replay.is_replay_only or self._llm.replay.find_judgement(JUDGE):
            return
        judge, answer = self._config.endpoint(JUDGE), self._config.endpoint("answer")
        # a limit is for the answer first, and a server on this machine does one thing at a time: the test then follows the text
        is_busy = judge.base_url == answer.base_url and is_loopback_url(judge.base_url)
        if not is_busy and not self._llm.meter.has_spending_limit:
            self._test = start_task(tasks, catch_error(self._kept_or_tested(self._llm.meter.deadline)), name="test the judge")

    def cancel_test(self) -> None:
        if self._test:
            self._test.cancel()

    def open(self, stand_in: Judge | None) -> Judge:
        """The judge as far as its grade allows; `stand_in` judges where it may not be asked."""
        return GradedJudge(self._judge, self.find_grade, stand_in)

    async def find_grade(self, deadline: float | None) -> Grade:
        """Its grade, which is found or made once. Raises NexiError where there is none."""
        async with self._turn:
            if self._known is None:
                self._known = await catch_error(self._grade(deadline))
        return raise_error(self._known)

    async def _grade(self, deadline: float | None) -> Grade:
        if recorded := self._llm.replay.find_judgement(JUDGE):
            grade, self._allowance = msgspec.convert(json.loads(recorded.items[0]), Grade), int(recorded.items[1])
        else:
            grade = raise_error(await self._test) if self._test else await self._kept_or_tested(deadline)
            # tokens for judging: a share of the limit, less a test, or without a limit of what else the run has spent
            meter = self._llm.meter.root
            if limit := meter.token_limit:
                self._allowance = int(limit * self._share) - self._test_tokens
            else:
                self._allowance = max(self._min_tokens, int((meter.usage.total - self._test_tokens) * self._share))
        items = (json.dumps(grade.as_json()), str(self._allowance))
        await self._llm.emit(Judged(JUDGE, self._judge.name, grade.balanced_accuracy, items))
        return grade

    async def _kept_or_tested(self, deadline: float | None) -> Grade:
        config, name, book = self._config, self._judge.name, grade_book(self._config)
        key = judge_key(config, packaged_quiz())
        if grade := await asyncio.to_thread(book.grade, key):
            return grade
        now = self._llm.clock.now()
        if self._llm.replay.is_replay_only:
            raise NexiError(f"{name} was not tested when this run was recorded")
        if failure := await asyncio.to_thread(book.failure, key, now):
            raise NexiError(f"{name} could not be tested", cause=failure, fix=PROBE)
        meter, pairs = self._llm.meter, packaged_quiz().pairs
        # what the test takes, cautiously: the pairs, a reply for each, and the instructions
        tokens = sum(len(p.premise) + len(p.hypothesis) for p in pairs) // MIN_CHARS_PER_TOKEN
        tokens += TOKENS_PER_CASE * len(pairs) + 700
        limit, tokens_left = meter.root.token_limit, meter.tokens_left
        is_too_dear = (limit is not None and tokens > limit * self._share) or (tokens_left is not None and tokens > tokens_left)
        if is_too_dear or not meter.can_make_calls(2):  # the test, and what it is for
            cause = f"the test does not fit into {self._share:.0%} of the budget of this run"
            raise NexiError(f"{name} could not be tested", cause=cause, fix=PROBE)
        latest = self._llm.clock.monotonic() + MAX_TEST_S
        try:
            grade = await grade_judge(config, self._llm, self._llm.clock, deadline=min(latest, deadline or latest))
        except NexiError as error:
            with suppress(StoreError):
                await asyncio.to_thread(book.put_failure, key, error.cause or error.message, now)
            raise
        self._test_tokens = grade.tokens
        return grade


class RecordedPairModel:
    """The PairModel port over an installed model, whose scores are a fact of the run: a replay has them without the model."""

    def __init__(self, model: PairModel | None, replay: AgentReplay, emit: Emit) -> None:
        self._model, self._replay, self._emit = model, replay, emit
        self.name = model.name if model else "the installed model"

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        recorded = self._replay.find_judgement(PASSAGES)
        items = recorded.items if recorded else ()
        scores = dict(msgspec.json.decode(item, type=tuple[str, PairScore]) for item in items)
        new_pairs = [pair for pair in pairs if _digest_pair(pair) not in scores]
        if new_pairs and self._model and not self._replay.is_replay_only:
            new_scores = await self._model.score(new_pairs, deadline=deadline)
            scores |= {_digest_pair(pair): score for pair, score in zip(new_pairs, new_scores, strict=True)}
        gap = PairScore.gap(f"{self.name} did not judge this passage when the run was recorded")
        rows = [(digest, scores.get(digest, gap)) for digest in map(_digest_pair, pairs)]
        items = tuple(msgspec.json.encode(row, enc_hook=str).decode() for row in rows)
        await self._emit(Judged(PASSAGES, self.name, 0.0, items))
        return [score for _, score in rows]


def open_text_judge(gate: ModelGate) -> Judge | None:
    """Who judges a text that is checked outside a run: the judge as far as its test allows, else the installed model."""
    config = gate.ports.config
    if not config.verify_judge:
        return None
    local = gate.ports.local_model().pair_model()
    stand_in = PairJudge(local) if local else None
    if config.endpoint(JUDGE).is_extractive or not gate.may_ask(JUDGE):
        return stand_in
    return RunJudge(config, gate.open_llm(JUDGE), share=1.0, min_tokens=TEXT_ALLOWANCE_TOKENS).open(stand_in)


def _digest_pair(pair: tuple[str, str]) -> str:
    return content_digest("\0".join(pair))[:16]


class _GapPairModel:
    """The PairModel port over nothing: a model that cannot be used, whose every score says why."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        return [PairScore.gap(self._reason)] * len(pairs)


class InstalledPairModel:
    """The installed cross-encoder of a config: loaded with its first pair, tested once, shared by all runs."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._opened: OnnxPairModel | None = None
        self._graded: GradedPairModel | None = None

    def pair_model(self) -> PairModel | None:
        """None where no model is installed; one that cannot be used answers with gaps that say why."""
        try:
            folder = installed_model(model_root(self._config))
        except StoreError as error:
            return _GapPairModel("the installed model", str(error))
        if folder is None:
            return None
        if self._graded is None or self._opened is None or self._opened.digest != folder.digest:
            from nexi.pair_models.onnx import OnnxPairModel

            self._opened = OnnxPairModel(folder, self._clock)
            self._graded = GradedPairModel(self._opened, partial(self._grade, folder, self._opened))
        return self._graded

    async def _grade(self, folder: ModelFolder, model: PairModel, deadline: float | None) -> Grade:
        grade = await asyncio.to_thread(kept_model_grade, self._config, folder)
        return grade or await grade_model(self._config, folder, model, self._clock)

    async def aclose(self) -> None:
        if self._opened:
            await self._opened.aclose()
