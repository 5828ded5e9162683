"""`nexi proof`: a model is installed with consent, pinned, tested, looked at and removed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from nexi.app import pair_models
from nexi.pair_models import folder as model_folder
from nexi.pair_models.folder import PublishedFile, PublishedModel
from tests.cli.command import Command, Terminal
from tests.pair_models.tiny import write_model
from tests.pair_models.toys import TOY_QUIZ
from tests.stub import serving

TESTED = (
    "right in 50% of a test of 20 pairs: it is not asked (keeps 100% of what is true, passes 100% of lies; "  # it knows no year
)


@pytest.fixture(autouse=True)
def toy_quiz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_models, "packaged_quiz", lambda: TOY_QUIZ)


@contextmanager
def published(folder: Path, monkeypatch: pytest.MonkeyPatch, *, changed: bool = False) -> Iterator[None]:
    """A host of published models on this machine."""
    bodies = {path.name: path.read_bytes() for path in write_model(folder).iterdir()}
    files = tuple(PublishedFile(n, n, len(body), hashlib.sha256(body).hexdigest()) for n, body in bodies.items())
    served = {n: body[:-1] + b"?" if changed else body for n, body in bodies.items()}
    routes = {f"GET /me/toy/abc/{n}": lambda _, body=body: (200, body) for n, body in served.items()}
    with serving(routes) as port:
        url = f"http://127.0.0.1:{port}/{{repository}}/{{revision}}/{{path}}"
        model = PublishedModel("toy", url, "me/toy", "abc", "MIT", ("en",), files)
        monkeypatch.setattr(model_folder, "published_models", lambda: {"toy": model})
        yield


def test_a_folder_is_installed_tested_shown_and_removed(nexi: Command, tmp_path: Path) -> None:
    write_model(tmp_path / "tiny", manifest={"name": "mine", "licence": "MIT", "languages": ["en"]})

    said = nexi("proof", "install", str(tmp_path / "tiny"))
    lines = said.out.splitlines()
    place = nexi.home / "proof" / "model"
    assert (said.code, lines[:2]) == (
        0,
        [f"mine, licence MIT, in {place}", "reads en; files unchanged since installation"],
    )
    assert lines[2].startswith(TESTED)

    assert nexi("proof", "status").out.splitlines()[:2] == lines[:2]
    assert nexi("proof", "remove").out == "Removed the model. Rules and the judge still check sentences.\n"
    assert nexi("proof", "status").out.startswith("No model is installed. Published models: nli-deberta-v3-xsmall.")
    assert nexi("proof", "remove").code == 1


def test_json_has_the_pins_and_the_grade(nexi: Command, tmp_path: Path) -> None:
    write_model(tmp_path / "tiny")
    value = json.loads(nexi("proof", "install", str(tmp_path / "tiny"), "--json").out)
    assert (value["schema"], value["installed"]["name"]) == ("nexi-proof-1", "tiny")
    assert sorted(value["installed"]["files"]) == ["config.json", "model.onnx", "tokenizer.json"]
    assert (value["grade"]["balanced_accuracy"], value["grade"]["may_be_asked"]) == (0.5, False)
    nexi("proof", "remove")
    assert json.loads(nexi("proof", "status", "--json").out) == {"schema": "nexi-proof-1", "installed": None, "grade": None}


def test_a_published_model_is_fetched_with_consent(nexi: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with published(tmp_path / "host", monkeypatch):
        refused = nexi("proof", "install", "toy", stdin=Terminal("n\n"))
        assert (refused.code, "licence MIT, reads en" in refused.err, (nexi.home / "proof").exists()) == (1, True, False)
        agreed = nexi("proof", "install", "toy", stdin=Terminal("y\n"))
    assert (agreed.code, agreed.out.splitlines()[0]) == (0, f"toy, licence MIT, in {nexi.home / 'proof' / 'model'}")


def test_without_a_terminal_consent_is_given_by_an_option(
    nexi: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with published(tmp_path / "host", monkeypatch):
        refused = nexi("proof", "install", "toy")
        assert (refused.code, "--yes" in refused.err) == (2, True)
        assert nexi("proof", "install", "toy", "--yes").code == 0


def test_a_file_that_is_not_the_pinned_one_leaves_the_model_before_it(
    nexi: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "tiny")
    nexi("proof", "install", str(tmp_path / "tiny"))
    with published(tmp_path / "host", monkeypatch, changed=True):
        said = nexi("proof", "install", "toy", "--yes")
    assert (said.code, "is not the file that was pinned" in said.err) == (1, True)
    assert nexi("proof", "status").out.startswith("tiny, ")


def test_a_model_that_does_not_work_leaves_the_one_before_it(nexi: Command, tmp_path: Path) -> None:
    write_model(tmp_path / "tiny")
    nexi("proof", "install", str(tmp_path / "tiny"))
    broken = write_model(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"no model")
    said = nexi("proof", "install", str(broken))
    assert (said.code, "broken cannot be loaded" in said.err) == (1, True)
    assert nexi("proof", "status").out.startswith("tiny, ")
    assert [path.name for path in (nexi.home / "proof").iterdir()] == ["model"]


def test_a_file_that_changed_is_said(nexi: Command, tmp_path: Path) -> None:
    nexi("proof", "install", str(write_model(tmp_path / "tiny")))
    (nexi.home / "proof" / "model" / "config.json").write_text("{}")
    said = nexi("proof", "status")
    assert (said.code, "config.json has changed since it was installed" in said.err) == (1, True)


def test_an_unknown_name_is_a_matter_of_configuration(nexi: Command) -> None:
    said = nexi("proof", "install", "gpt", "--yes")
    assert (said.code, "no known model called 'gpt'" in said.err) == (2, True)
