"""A cross-encoder that runs on this machine: ONNX Runtime on one thread, with the tokenizer that came with the model.

The model is loaded with the first pair, after its files were compared with their hashes. Whatever is wrong with them, with a
library or with one pair is a gap with its reason, so that rules alone decide.
"""

from __future__ import annotations

import asyncio
import mmap
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from msgspec import Struct

from nexi.errors import NexiError, StoreError
from nexi.install import import_silenced, install_command
from nexi.pair_models.folder import MODEL, REINSTALL, TOKENIZER, Labels, ModelFolder
from nexi.ports import Clock
from nexi.text.languages import LANGUAGES, name_language
from nexi.text.words import SMALL_WORDS, language_of
from nexi.types import CHECK_TOO_LATE, PairScore

__all__ = ["OnnxPairModel"]

MAX_BATCH_PAIRS = 8
MAX_BATCH_TOKENS = 2_048
MAX_PREMISE_CHARS = 20_000
MAX_HYPOTHESIS_CHARS = 4_000
MAX_SLICES = 4  # of a premise that is longer than the model's window
SLICE_OVERLAP_TOKENS = 32
MIN_LETTER_SHARE = 0.6  # of prose; a row of numbers or a line of code has less
MIN_ASCII_SHARE = 0.95  # of the letters of a text in which no language stands out

OTHER_LANGUAGE = "the model does not read this language"
NO_PROSE = "the model reads prose only"
TOO_LONG = "the sentence is too long for the model"

_WORD = re.compile(r"[^\W\d_]+")


class Encoded(Struct, frozen=True):
    """One pair, or one slice of it, as token numbers."""

    position: int
    ids: tuple[int, ...]
    types: tuple[int, ...]


class OnnxPairModel:
    """The PairModel port over an installed folder."""

    def __init__(self, folder: ModelFolder, clock: Clock) -> None:
        self.name, self.digest = folder.name, folder.digest
        self._folder, self._clock = folder, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nexi-proof")
        self._loaded: CrossEncoder | None = None
        self._problem = ""

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        try:
            encoder = await self.load() if pairs else None
        except NexiError as error:
            self._problem = str(error)
        if self._problem or encoder is None:
            return [PairScore.gap(self._problem)] * len(pairs)
        scores = [PairScore.gap(CHECK_TOO_LATE)] * len(pairs)
        encoded = await self._run_in_thread(encoder.encode, pairs, self._folder.languages, scores)
        for batch in encoder.batches(encoded):
            if deadline is not None and self._clock.monotonic() >= deadline:
                return scores
            for item, score in zip(batch, await self._run_in_thread(encoder.score, batch), strict=True):
                if not scores[item.position].known or score.supported > scores[item.position].supported:
                    scores[item.position] = score
        return scores

    async def load(self) -> CrossEncoder:
        """The model, loaded once. Raises NexiError with the reason why it cannot be used."""
        if self._loaded is None:
            self._loaded = await self._run_in_thread(load_encoder, self._folder)
        return self._loaded

    async def aclose(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run_in_thread(self, work: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)


class CrossEncoder:
    """A loaded model; every method runs in the model's own thread."""

    def __init__(
        self, session: Any, tokenizer: Any, labels: Labels, max_tokens: int, *, temperature: float, alone: bool
    ) -> None:
        """`alone`: int8 models that scale by what stands in a batch get one pair at a time, so that no pair changes another."""
        self._session, self._tokenizer, self._labels = session, tokenizer, labels
        self._max_tokens, self._temperature, self._alone = max_tokens, temperature, alone
        self._inputs = [argument.name for argument in session.get_inputs()]
        self._numpy = import_module("numpy")

    def encode(self, pairs: Sequence[tuple[str, str]], languages: Sequence[str], scores: list[PairScore]) -> list[Encoded]:
        """Pairs as numbers, a long premise in slices; what the model cannot read becomes a gap in `scores`."""
        encoded: list[Encoded] = []
        for position, (premise, hypothesis) in enumerate(pairs):
            premise, hypothesis = _clean_text(premise, MAX_PREMISE_CHARS), _clean_text(hypothesis, MAX_HYPOTHESIS_CHARS)
            if not can_read(f"{premise[:2_000]} {hypothesis}", languages):
                scores[position] = PairScore.gap(OTHER_LANGUAGE)
            elif not is_prose(hypothesis):
                scores[position] = PairScore.gap(NO_PROSE)
            elif slices := self.slice_pair(position, premise, hypothesis):
                encoded += slices
            else:
                scores[position] = PairScore.gap(TOO_LONG)
        return encoded

    def slice_pair(self, position: int, premise: str, hypothesis: str) -> list[Encoded]:
        """The pair whole, or its premise in overlapping parts; none where the hypothesis leaves no room for a premise."""
        whole = self._tokenizer.encode(premise, hypothesis)
        if len(whole.ids) <= self._max_tokens:
            return [Encoded(position, tuple(whole.ids), tuple(whole.type_ids))]
        alone = self._tokenizer.encode(premise, add_special_tokens=False)
        room = self._max_tokens - (len(whole.ids) - len(alone.ids))  # beside the hypothesis and the special tokens
        if room < self._max_tokens // 3:
            return []
        step = room - min(SLICE_OVERLAP_TOKENS, room // 4)
        slices = []
        for start in range(0, len(alone.ids), step)[:MAX_SLICES]:
            offsets = alone.offsets[start : start + room]
            part = self._tokenizer.encode(premise[offsets[0][0] : offsets[-1][1]], hypothesis)
            slices.append(Encoded(position, tuple(part.ids[: self._max_tokens]), tuple(part.type_ids[: self._max_tokens])))
        return slices

    def batches(self, encoded: Sequence[Encoded]) -> list[list[Encoded]]:
        """Pairs of like length together, so that little is spent on padding."""
        batches: list[list[Encoded]] = []
        for item in sorted(encoded, key=lambda e: len(e.ids)):
            last = batches[-1] if batches else []
            full = len(last) >= MAX_BATCH_PAIRS or (len(last) + 1) * len(item.ids) > MAX_BATCH_TOKENS
            if not last or full or self._alone:
                batches.append([item])
            else:
                last.append(item)
        return batches

    def score(self, batch: Sequence[Encoded]) -> list[PairScore]:
        np = self._numpy
        try:
            shape = len(batch), max(len(item.ids) for item in batch)
            ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
            ids += self._tokenizer.token_to_id("[PAD]") or self._tokenizer.token_to_id("<pad>") or 0
            for row, item in enumerate(batch):
                ids[row, : len(item.ids)] = item.ids
                mask[row, : len(item.ids)] = 1
                types[row, : len(item.ids)] = item.types
            arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            (logits, *_) = self._session.run(None, {name: arrays[name] for name in self._inputs})
        except Exception as error:  # noqa: BLE001 - the edge of a foreign library: it raises whatever its parts raise
            return [PairScore.gap(f"the model failed ({' '.join(str(error).split())[:200]})")] * len(batch)
        if logits.shape != (right_shape := (len(batch), self._labels.count)):
            return [PairScore.gap(f"the model's output has the shape {tuple(logits.shape)}, not {right_shape}")] * len(batch)
        return [self._score_of(row) for row in logits]

    def _score_of(self, logits: Any) -> PairScore:
        np = self._numpy
        scaled = np.asarray(logits, np.float64) / self._temperature
        if not np.isfinite(scaled).all():
            return PairScore.gap("the model's output is no number")
        if self._labels.count == 1:
            return PairScore(float(1 / (1 + np.exp(-np.clip(scaled[0], -50, 50)))))
        shares = np.exp(scaled - scaled.max())
        shares /= shares.sum()
        contradicted = self._labels.contradicted
        return PairScore(float(shares[self._labels.supported]), 0.0 if contradicted is None else float(shares[contradicted]))


def load_encoder(folder: ModelFolder) -> CrossEncoder:
    """Check the files, load them, and refuse a model of another shape. Raises NexiError."""
    folder.check_files()
    labels = folder.labels()
    try:
        runtime, tokenizers = import_silenced("onnxruntime"), import_module("tokenizers")
        import_module("numpy")
    except ImportError as error:
        fix = f"Install it: {install_command('proof')}"
        raise NexiError(f"{folder.name} cannot run", cause=f"{error.name} is not installed", fix=fix) from None
    path = folder.path / MODEL
    try:
        # one thread, and memory that is given back after each batch
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 4
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(folder.path / TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            alone = data.find(b"DynamicQuantizeLinear") >= 0  # int8 that is scaled at run time
    except Exception as error:  # the edge of foreign libraries: they raise whatever their parts raise
        cause = " ".join(str(error).split())[:300] or type(error).__name__
        raise StoreError(f"{folder.name} cannot be loaded", cause=cause, fix=REINSTALL) from error
    inputs = {argument.name for argument in session.get_inputs()}
    if not {"input_ids", "attention_mask"} <= inputs <= {"input_ids", "attention_mask", "token_type_ids"}:
        cause = f"it wants {', '.join(sorted(inputs))[:200]}"
        raise StoreError(f"{folder.name} is no cross-encoder", cause=cause, fix="use a sequence classifier")
    encoder = CrossEncoder(session, tokenizer, labels, folder.max_tokens(), temperature=folder.temperature, alone=alone)
    (trial,) = encoder.score(encoder.slice_pair(0, "It is late.", "It is late.")[:1])
    if not trial.known:
        raise StoreError(f"{folder.name} cannot be used", cause=trial.reason, fix=REINSTALL)
    return encoder


def can_read(text: str, languages: Sequence[str]) -> bool:
    """Whether a text is in one of a model's languages; every text where it names none."""
    names = {name_language(code) if code == "en" or code in LANGUAGES else code for code in languages}
    if not names:
        return True
    if text_language := language_of(text):
        return text_language in names
    words = _WORD.findall(text.casefold())
    letters = "".join(words)
    ascii_share = sum(letter.isascii() for letter in letters) / len(letters) if letters else 0.0
    small = any(word in SMALL_WORDS.get(name, ()) for name in names for word in words)
    return small and ascii_share >= MIN_ASCII_SHARE


def is_prose(text: str) -> bool:
    """Whether most of a text is letters, and no line of it is a row of a table."""
    dense = [c for c in text if not c.isspace()]
    return bool(dense) and sum(map(str.isalpha, dense)) / len(dense) >= MIN_LETTER_SHARE and text.count("|") < 2


def _clean_text(text: str, most: int) -> str:
    return text[:most].encode("utf-8", "replace").decode("utf-8")
