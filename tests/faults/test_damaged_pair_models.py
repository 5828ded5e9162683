"""A model file that is damaged, changed or of another shape: the run states a gap, and no sentence gets a tick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.app.pair_models import grade_book, model_root
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.pair_models.folder import describe_folder, gather_files, installed_model, put_in_place, stage_files
from nexi.testing import FakeWeb
from nexi.types import Review, Verdict
from tests.scenarios.test_judged_answers import PAGES, QUESTION
from tests.scenarios.world import World

Make = Callable[..., Config]
CONFIG = {"model_type": "bert", "max_position_embeddings": 64, "id2label": {"0": "contradiction", "1": "entailment"}}


def install_model(config: Config, source: Path) -> Path:
    """Install a folder as it is, with a grade that would let it raise marks."""
    put_in_place(
        stage_files(model_root(config), gather_files(source), {"name": "tiny", **describe_folder(source)}), model_root(config)
    )
    folder = installed_model(model_root(config))
    assert folder is not None
    quiz = packaged_quiz()
    grade_book(config).put(f"{folder.name} {folder.digest} {quiz.digest}", Grade(0.95, 0.95, 0.05, 0.5, pairs=60))
    return folder.path


def write_files(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"weights " * 500)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


async def review_of(config: Config) -> Review:
    world = World(config.override(model="extractive"), web=FakeWeb(PAGES))
    world.roles = {}
    review: Review = (await world.ask(QUESTION)).answer.review
    return review


def assert_gap(review: Review, reason: str) -> None:
    assert {claim.verdict for claim in review.proof.checked} == {Verdict.FOUND}
    assert (review.proof.supported, review.judges) == (0, ())
    assert review.gap.startswith("The sentences were not judged: ")
    assert reason in review.gap


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:100]), "model.onnx has changed since it was installed"),
    "changed": (lambda path: path.write_bytes(path.read_bytes().replace(b"w", b"v", 1)), "has changed since it was installed"),
    "empty": (lambda path: path.write_bytes(b""), "has changed since it was installed"),
    "gone": (lambda path: path.unlink(), "No such file"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be read: Is a directory"),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_model_file_that_is_not_the_installed_one_is_never_used(make_config: Make, tmp_path: Path, damage: str) -> None:
    config = make_config(verify_judge=True, knowledge=False)
    path = install_model(config, write_files(tmp_path / "source"))
    change, reason = DAMAGE[damage]
    change(path / "model.onnx")
    assert_gap(await review_of(config), reason)


async def test_a_manifest_with_the_hash_of_the_changed_file_is_another_model_without_a_grade(
    make_config: Make, tmp_path: Path
) -> None:
    config = make_config(verify_judge=True, knowledge=False)
    path = install_model(config, write_files(tmp_path / "source"))
    (path / "model.onnx").write_bytes(b"other weights")
    manifest = json.loads((path / "manifest.json").read_text())
    text = json.dumps(manifest).replace(
        hashlib.sha256(b"weights " * 500).hexdigest(), hashlib.sha256(b"other weights").hexdigest()
    )
    (path / "manifest.json").write_text(text)
    assert_gap(await review_of(config), "tiny")


@pytest.mark.parametrize("kind", ["truncated before it was installed", "of another shape"])
async def test_a_model_that_cannot_run_leaves_a_gap(make_config: Make, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from tests.pair_models.tiny import share_graph, write_model

    config = make_config(verify_judge=True, knowledge=False)
    source = write_model(tmp_path / "source", graph=share_graph(2) if kind == "of another shape" else None)
    if kind != "of another shape":
        whole = (source / "model.onnx").read_bytes()
        (source / "model.onnx").write_bytes(whole[: len(whole) // 2])
    install_model(config, source)
    assert_gap(await review_of(config), "tiny cannot be")
