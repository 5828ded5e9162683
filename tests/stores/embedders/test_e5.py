"""The small model that nexi reads with: how it cuts words, what it finds near, and what it says of a file it cannot use."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi.errors import LLMError, StoreError
from nexi.stores.embedders import E5_MODEL, E5_VOCABULARY, MAX_REMEMBERED, E5Encoder, LibraryEmbedder

numpy = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")

FOLDER = Path(__file__).resolve().parents[3] / "reader" / "nexi_reader"
needs_model = pytest.mark.skipif(
    not (FOLDER / E5_MODEL).exists(), reason="make fetches the model: python reader/fetch_model.py"
)


def pieces_of(text: str) -> list[str]:
    known = (FOLDER / E5_VOCABULARY).read_text(encoding="utf-8").splitlines()
    return [known[number] for number in E5Encoder(FOLDER).tokenise(text)]


def test_words_are_cut_into_the_longest_pieces_without_case_and_accents() -> None:
    assert pieces_of("Übungen, e.g. 3.5 km_x") == [
        "[CLS]",
        "u",
        "##bu",
        "##ngen",
        ",",
        "e",
        ".",
        "g",
        ".",
        "3",
        ".",
        "5",
        "km",
        "_",
        "x",
        "[SEP]",
    ]
    assert pieces_of("東京\u200b!") == ["[CLS]", "東", "京", "!", "[SEP]"]


def test_a_word_that_no_piece_fits_and_a_text_beyond_the_window_stay_one_text() -> None:
    assert pieces_of("ꙮ") == ["[CLS]", "[UNK]", "[SEP]"]
    assert len(pieces_of("owl " * 3000)) == 512


@needs_model
def test_the_sentence_that_answers_lies_nearest_whatever_words_it_has() -> None:
    texts = ["The museum closes at six.", "She established the company in Oslo.", "It rained all of March."]
    near = E5Encoder(FOLDER).compare("who founded the firm", texts)
    assert max(near) == near[1]


def test_a_comparison_survives_another_one_that_forgets_all_vectors() -> None:
    class TwoResearchers(E5Encoder):
        """While one compares its last text, the other begins, and too much is remembered."""

        def encode(self, texts: Sequence[str], *, query: bool = False) -> list[Any]:
            if list(texts) == ["last"]:
                assert self.compare("the other question", ["another"]) == [1.0]
            return [numpy.array([1.0])]

    texts = [*(f"text {number}" for number in range(MAX_REMEMBERED + 1)), "last"]
    assert TwoResearchers(FOLDER).compare("a question", texts) == [1.0] * len(texts)


@needs_model
async def test_the_knowledge_base_can_use_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexi.stores.embedders.find_package", lambda name: FOLDER)
    embedder = LibraryEmbedder("e5:e5-small", FOLDER)
    (vector,) = (await embedder.embed(["owls hunt at night"])).vectors
    assert (embedder.name, embedder.dims, round(sum(n * n for n in vector), 3)) == ("e5:e5-small", 384, 1.0)


def test_a_cut_off_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    shutil.copy(FOLDER / E5_VOCABULARY, tmp_path)
    (tmp_path / E5_MODEL).write_bytes(b"half a model")
    with pytest.raises(StoreError) as caught:
        E5Encoder(tmp_path).compare("who", ["someone"])
    assert "cut off or of another version (12 bytes)" in str(caught.value.cause)
    assert "./reader" in str(caught.value.fix)


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        E5Encoder(tmp_path).encode(["owl"])


async def test_an_embedder_without_its_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexi.stores.embedders.find_package", lambda name: None)
    with pytest.raises(LLMError) as caught:
        await LibraryEmbedder("e5:e5-small", tmp_path).embed(["owl"])
    assert "not installed" in str(caught.value.cause)
    assert "./reader" in str(caught.value.fix)
