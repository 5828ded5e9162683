"""Vectors of E5-small from the data package `nexi_reader`: none of its code runs, and nothing is ever fetched."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from nexi.errors import StoreError
from nexi.install import find_package, import_silenced

__all__ = ["E5Encoder"]

MODEL, VOCABULARY = "e5-small-int8.onnx", "vocab.txt"
SHA256 = "d54d1c152ccc45f401fb31b123ef4c698ae9129751da3ebab8c9909bc5154768"
MAX_TOKENS = 512
MAX_WORD_CHARS = 100
MAX_REMEMBERED = 2_000  # vectors; the parts of a report compare many texts, most of them several times
_IDEOGRAPHS = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f])")
INSTALL = "Install the folder `reader` of nexi's repository beside nexi: pip install ./reader"
REINSTALL = "Install the folder `reader` of nexi's repository again: pip install --force-reinstall ./reader"
_PIECES = re.compile(r"[^\W_]+|[^\s\w]|_")


class E5Encoder:
    """Texts as vectors of length one; a question and a passage that answers it lie close together."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or find_package("nexi_reader")
        self._vectors: dict[str, Any] = {}

    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[Any]:
        """One vector for each text. Raises StoreError where the files or the libraries are missing or other ones."""
        np, session = self._session
        names = [argument.name for argument in session.get_inputs()]
        vectors = []
        for text in texts:  # one by one: the file was made for a single text at a time
            ids = np.array([self.tokenise(("query: " if query else "passage: ") + text)], np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            mean = session.run(None, {name: inputs[name] for name in names})[0][0].mean(axis=0)
            vectors.append(mean / np.linalg.norm(mean))
        return vectors

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        """How near each text is to a question, as a cosine. Raises StoreError as `encode` does."""
        if not texts:
            return []
        if len(self._vectors) > MAX_REMEMBERED:
            self._vectors.clear()
        query_vector = self.encode([question], query=True)[0]
        nearness: list[float] = []
        for text in texts:  # the same sentences are compared when an answer is written and when it is rated
            vector = self._vectors.get(text)  # researchers compare at the same time, and each may clear what is remembered
            if vector is None:
                vector = self._vectors[text] = self.encode([text])[0]
            nearness.append(float(vector @ query_vector))
        return nearness

    @cached_property
    def _session(self) -> tuple[Any, Any]:
        if self._folder is None:
            raise StoreError("the reading model is not installed", fix=INSTALL, code="not_installed")
        path = self._folder / MODEL
        try:
            np, runtime = import_module("numpy"), import_silenced("onnxruntime")
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except ImportError as error:
            raise StoreError(f"the reading model needs {error.name}", fix=INSTALL) from None
        except OSError as error:
            raise StoreError("the reading model cannot be read", cause=f"{path}: {error.strerror}", fix=REINSTALL) from None
        if digest != SHA256:
            cause = f"{path} is cut off or of another version ({path.stat().st_size:,} bytes)"
            raise StoreError("the reading model is not used", cause=cause, fix=REINSTALL)
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its warnings are about devices that are not there
        options.intra_op_num_threads = 1  # texts are short, and waiting threads would burn the CPU
        return np, runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    @cached_property
    def _vocabulary(self) -> Mapping[str, int]:
        lines = ((self._folder or Path()) / VOCABULARY).read_text(encoding="utf-8").splitlines()
        return {piece: number for number, piece in enumerate(lines)}

    def tokenise(self, text: str) -> list[int]:
        """The numbers of the word pieces of a text, as BERT without case cuts it."""
        vocabulary = self._vocabulary
        plain = unicodedata.normalize("NFD", text[: 8 * MAX_TOKENS].lower())
        letters = (c for c in plain if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c.isspace())
        words = _PIECES.findall(_IDEOGRAPHS.sub(r" \1 ", "".join(letters)))
        pieces = [piece for word in words for piece in _split_word(word, vocabulary)]
        return [vocabulary["[CLS]"], *(vocabulary[piece] for piece in pieces[: MAX_TOKENS - 2]), vocabulary["[SEP]"]]


def _split_word(word: str, vocabulary: Mapping[str, int]) -> Iterable[str]:
    """The longest pieces that are known, from the front."""
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" * (start > 0) + word[start:end]) not in vocabulary:
            end -= 1
        if end == start or len(word) > MAX_WORD_CHARS:
            return ["[UNK]"]
        pieces.append("##" * (start > 0) + word[start:end])
        start = end
    return pieces
