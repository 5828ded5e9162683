"""Static vectors: pieces as the tokenizer file says, and files that are not what they should be."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from nexi.errors import StoreError
from nexi.install import install_command
from nexi.stores import embedders
from nexi.stores.embedders import Pieces, StaticEmbedder
from tests.contract.test_embedders import write_static

pytest.importorskip("numpy")
VOCABULARY = ["<unk>", "\u2581", "a", "b", "\u2581a", "ab", "\u2581ab", "<0xC3>", "<0xA9>", "<0x0A>"]


def pieces(*merges: str) -> Pieces:
    return Pieces({piece: n for n, piece in enumerate(VOCABULARY)}, merges)


def named(numbers: list[int]) -> list[str]:
    return [VOCABULARY[n] for n in numbers]


def test_the_merge_that_is_listed_first_is_done_first() -> None:
    assert named(pieces("\u2581 a", "a b").split_text("ab")) == ["\u2581a", "b"]
    assert named(pieces("a b", "\u2581 a", "\u2581 ab").split_text("ab")) == ["\u2581ab"]


def test_what_is_unknown_is_written_in_bytes_and_no_piece_reaches_over_a_space() -> None:
    assert named(pieces("\u2581 a").split_text("é a\nb")) == ["\u2581", "<0xC3>", "<0xA9>", "\u2581a", "<0x0A>", "b"]
    assert named(pieces("a \u2581").split_text("a a")) == ["\u2581", "a", "\u2581", "a"]


def test_a_run_without_spaces_takes_no_time_that_grows_with_its_square() -> None:
    assert len(pieces("a b").split_text("ab" * 50_000)) > 40_000


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="nexi[vectors] is not installed")
async def test_the_vectors_of_the_package_know_what_belongs_together() -> None:
    embedder = StaticEmbedder()
    cat, kitten, tax = (await embedder.embed(["The cat sleeps.", "A kitten naps.", "Income tax returns are due."])).vectors
    near, far = (sum(a * b for a, b in zip(cat, other, strict=True)) for other in (kitten, tax))
    assert (embedder.name, embedder.dims) == ("wordllama:l2_supercat_256", 256)
    assert near > far + 0.2


def test_the_code_of_the_package_is_never_run() -> None:
    import sys

    if importlib.util.find_spec("wordllama"):
        StaticEmbedder()
    assert "wordllama" not in sys.modules


def test_a_missing_package_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "find_package", lambda _: None)
    with pytest.raises(StoreError) as missing:
        StaticEmbedder()
    assert install_command("vectors") in missing.value.fix


@pytest.mark.parametrize(
    "harm", ["weights gone", "weights cut", "no header", "tokenizer gone", "tokenizer spoilt", "other form"]
)
async def test_damaged_files_are_named(tmp_path: Path, harm: str) -> None:
    folder = write_static(tmp_path / "package")
    weights, tokenizer = next(folder.glob("weights/*")), next(folder.glob("tokenizers/*"))
    data = weights.read_bytes()
    spoil = {
        "weights gone": weights.unlink,
        "weights cut": lambda: weights.write_bytes(data[:-50]),
        "no header": lambda: weights.write_bytes(b"\xff" * 100),
        "tokenizer gone": tokenizer.unlink,
        "tokenizer spoilt": lambda: tokenizer.write_text('{"model": 3}'),
        "other form": lambda: weights.write_bytes(data.replace(b'"F32"', b'"I64"')),
    }
    spoil[harm]()
    with pytest.raises(StoreError) as failed:
        await StaticEmbedder(folder).embed(["cat"])
    assert "pip install" in failed.value.fix
