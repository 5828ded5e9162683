"""A cross-encoder on this machine: what it reads, what it refuses, and that a broken one never raises a score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from nexi.errors import NexiError, StoreError
from nexi.pair_models.folder import (
    Labels,
    ModelFolder,
    describe_folder,
    gather_files,
    installed_model,
    put_in_place,
    remove_model,
    stage_files,
)
from nexi.pair_models.onnx import NO_PROSE, OTHER_LANGUAGE, TOO_LONG, OnnxPairModel, can_read, is_prose
from nexi.testing import FakeClock
from nexi.types import CHECK_TOO_LATE, PairScore
from tests.pair_models.tiny import NLI, onnx, share_graph, write_model

PREMISE = "The bridge over the Tamar was opened in 1859 and carries two tracks."
TRUE = "The bridge was opened in 1859."
FALSE = "Penguins breed on the southern ice in winter."


def install(root: Path, source: Path, **described: Any) -> ModelFolder:
    put_in_place(stage_files(root, gather_files(source), {"name": "tiny", **describe_folder(source), **described}), root)
    folder = installed_model(root)
    assert folder is not None
    return folder


def model_of(tmp_path: Path, languages: tuple[str, ...] = (), **options: Any) -> OnnxPairModel:
    source = write_model(tmp_path / "source", **options)
    return OnnxPairModel(install(tmp_path / "proof", source, languages=languages), FakeClock())


async def test_outputs_are_read_by_the_labels_of_the_config(tmp_path: Path) -> None:
    for labels in (NLI, {"0": "REFUTES", "1": "SUPPORTS"}, {"0": "score"}):
        (score,) = await model_of(tmp_path, labels=labels).score([(PREMISE, TRUE)])
        assert score.supported > 0.9, labels
    (score,) = await model_of(tmp_path, labels={"0": "entailment", "1": "contradiction"}).score([(PREMISE, TRUE)])
    assert (score.supported < 0.1, score.contradicted > 0.9) == (True, True)


async def test_a_score_does_not_depend_on_the_pairs_beside_it(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    pairs = [(PREMISE, TRUE), (PREMISE * 3, FALSE), ("It is late.", TRUE), (PREMISE, FALSE)]
    together = await model.score(pairs)
    assert together == [score for pair in pairs for score in await model.score([pair])]


async def test_a_temperature_softens_scores(tmp_path: Path) -> None:
    (sharp,) = await model_of(tmp_path).score([(PREMISE, TRUE)])
    (soft,) = await model_of(tmp_path, manifest={"temperature": 4.0}).score([(PREMISE, TRUE)])
    assert 0.5 < soft.supported < sharp.supported


async def test_a_premise_beyond_the_window_is_read_in_slices(tmp_path: Path) -> None:
    model = model_of(tmp_path, max_tokens=40)
    filler = "It is late. " * 20
    last, beyond = await model.score([(filler + PREMISE, TRUE), (filler * 30 + PREMISE, TRUE)])
    assert last.supported > 0.9
    assert beyond.supported < 0.5


async def test_a_sentence_that_leaves_no_room_for_a_premise_is_a_gap(tmp_path: Path) -> None:
    model = model_of(tmp_path, max_tokens=40)
    assert await model.score([(PREMISE * 3, "the bridge " * 400)]) == [PairScore.gap(TOO_LONG)]


async def test_an_english_model_leaves_other_languages_and_tables_to_the_rules(tmp_path: Path) -> None:
    model = model_of(tmp_path, languages=("en",))
    scores = await model.score(
        [
            (PREMISE, TRUE),
            ("Die Brücke wurde 1859 eröffnet und ist noch in Betrieb.", "Die Brücke wurde 1859 eröffnet."),
            ("橋は1859年に開通した。", "橋は1859年に開通した。"),
            (PREMISE, "| Tamar | 1859 | 2 |"),
            (PREMISE, "x = f(1859, 2) + 3 * 4"),
        ]
    )
    assert scores[0].supported > 0.9
    assert scores[1:] == [PairScore.gap(reason) for reason in (OTHER_LANGUAGE, OTHER_LANGUAGE, NO_PROSE, NO_PROSE)]


@pytest.mark.parametrize(
    ("text", "is_english"),
    [
        ("The bridge was opened in 1859.", True),
        ("Opened to traffic", True),
        ("Ganymede Callisto Europa", False),
        ("Bron öppnades i maj och den är av stål.", False),
        ("Der Turm ist von 1859 und der Bau war teuer.", False),
        ("", False),
    ],
)
def test_a_language_is_told_by_small_words_and_letters(text: str, is_english: bool) -> None:
    assert can_read(text, ("en",)) is is_english


def test_prose_is_mostly_letters() -> None:
    assert [is_prose(text) for text in ("It cost 412 million pounds.", "", "12.4 | 13.1 | 15", "a[0] = b[1]; //")] == [
        True,
        False,
        False,
        False,
    ]


async def test_after_the_deadline_the_rest_are_gaps(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    assert await model.score([(PREMISE, TRUE)] * 2, deadline=1000.0) == [PairScore.gap(CHECK_TOO_LATE)] * 2


# files that cannot be used


async def reason_of(model: OnnxPairModel) -> str:
    first, second = await model.score([(PREMISE, TRUE), (PREMISE, FALSE)])
    assert (first.known, first.supported, second) == (False, 0.0, first)
    return first.reason


async def test_a_file_that_changed_since_it_was_pinned_is_not_used(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    path = tmp_path / "proof" / "model" / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    assert (await reason_of(model)).startswith("tiny is not used: tokenizer.json has changed since it was installed")


async def test_a_file_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    model = model_of(tmp_path)
    (tmp_path / "proof" / "model" / "model.onnx").unlink()
    assert "No such file" in await reason_of(model)


async def test_a_truncated_model_cannot_be_loaded(tmp_path: Path) -> None:
    source = write_model(tmp_path / "source")
    whole = (source / "model.onnx").read_bytes()
    (source / "model.onnx").write_bytes(whole[: len(whole) // 2])
    model = OnnxPairModel(install(tmp_path / "proof", source), FakeClock())
    assert (await reason_of(model)).startswith("tiny cannot be loaded")


async def test_a_model_of_another_shape_is_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, graph=share_graph(2))
    assert await reason_of(model) == "tiny cannot be used: the model's output has the shape (1, 2), not (1, 3)"


async def test_a_model_that_wants_other_inputs_is_refused(tmp_path: Path) -> None:
    graph = share_graph(3)
    for place in (graph.graph.input, graph.graph.node):
        for item in place:
            if getattr(item, "name", "") == "token_type_ids":
                item.name = "pixels"
            for n, name in enumerate(getattr(item, "input", ())):
                if name == "token_type_ids":
                    item.input[n] = "pixels"
    assert (
        await reason_of(model_of(tmp_path, graph=graph))
        == "tiny is no cross-encoder: it wants attention_mask, input_ids, pixels"
    )


async def test_an_output_that_is_no_number_is_refused(tmp_path: Path) -> None:
    graph = share_graph(3)
    next(c for c in graph.graph.initializer if c.name == "ten").CopyFrom(
        onnx.helper.make_tensor("ten", onnx.TensorProto.FLOAT, [1], [float("nan")])
    )
    assert await reason_of(model_of(tmp_path, graph=graph)) == "tiny cannot be used: the model's output is no number"


async def test_a_damaged_tokenizer_cannot_be_loaded(tmp_path: Path) -> None:
    source = write_model(tmp_path / "source")
    (source / "tokenizer.json").write_text("{}")
    assert (await reason_of(OnnxPairModel(install(tmp_path / "proof", source), FakeClock()))).startswith(
        "tiny cannot be loaded"
    )


# folders


def test_a_published_folder_keeps_its_model_under_onnx(tmp_path: Path) -> None:
    source = write_model(tmp_path / "source")
    (source / "onnx").mkdir()
    (source / "model.onnx").rename(source / "onnx" / "model_quint8_avx2.onnx")
    assert gather_files(source) == {
        "model.onnx": source / "onnx" / "model_quint8_avx2.onnx",
        "tokenizer.json": source / "tokenizer.json",
        "config.json": source / "config.json",
    }


def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(StoreError) as caught:
        gather_files(tmp_path)
    assert caught.value.cause == "model.onnx, tokenizer.json is missing"


def test_what_is_installed_is_pinned_and_described(tmp_path: Path) -> None:
    source = write_model(tmp_path / "source", manifest={"name": "mine", "licence": "MIT", "languages": ["en"], "other": 1})
    folder = install(tmp_path / "proof", source)
    assert (folder.name, folder.licence, folder.languages, sorted(folder.files)) == (
        "mine",
        "MIT",
        ("en",),
        ["config.json", "model.onnx", "tokenizer.json"],
    )
    folder.check_files()


def test_installing_another_model_replaces_the_first_and_removing_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "proof"
    first = install(root, write_model(tmp_path / "a"))
    second = install(root, write_model(tmp_path / "b", max_tokens=128))
    assert first.digest != second.digest
    assert [path.name for path in root.iterdir()] == ["model"]
    assert (remove_model(root), remove_model(root), root.exists()) == (True, False, False)


def test_nothing_installed_is_no_error(tmp_path: Path) -> None:
    assert installed_model(tmp_path / "proof") is None


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"version": 1, "name": "x", "files": {"model.onnx": "0"}}', '{"version": 1, "name": "x", "files": 3}'],
)
def test_a_damaged_manifest_is_an_error_that_says_so(tmp_path: Path, manifest: str) -> None:
    install(tmp_path, write_model(tmp_path / "source"))
    (tmp_path / "model" / "manifest.json").write_text(manifest)
    with pytest.raises(StoreError, match="model"):
        installed_model(tmp_path)


def test_a_manifest_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    install(tmp_path, write_model(tmp_path / "source"))
    path = tmp_path / "model" / "manifest.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "files": {**value["files"], "../secret": "0"}}))
    with pytest.raises(StoreError, match="damaged"):
        installed_model(tmp_path)


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        ({"id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"}}, Labels(3, 1, 0)),
        ({"id2label": {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}}, Labels(3, 0, 2)),
        ({"id2label": {"0": "not_entailment", "1": "entailment"}}, Labels(2, 1, None)),
        ({"id2label": {"0": "LABEL_0"}}, Labels(1, 0, None)),
        ({"num_labels": 1}, Labels(1, 0, None)),
    ],
)
def test_labels_are_read_by_their_names(config: dict[str, Any], labels: Labels, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert ModelFolder(tmp_path, "toy").labels() == labels


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}},
        {"id2label": {"0": "entailment", "1": "supported"}},
        {"id2label": {"1": "entailment", "2": "neutral"}},
        {"id2label": "entailment"},
    ],
)
def test_labels_that_do_not_say_what_they_mean_are_refused(config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(NexiError, match="labels do not say"):
        ModelFolder(tmp_path, "toy").labels()


@pytest.mark.parametrize(
    ("config", "tokenizer", "most"),
    [
        ({"max_position_embeddings": 512}, {}, 512),
        ({"max_position_embeddings": 514, "model_type": "roberta"}, {}, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 128}, 128),
        ({"max_position_embeddings": 8192}, {"model_max_length": 1000000000000000019884624838656}, 2048),
        ({}, {}, 512),
        ({"max_position_embeddings": True}, {"model_max_length": "many"}, 512),
    ],
)
def test_the_window_is_the_smallest_that_the_files_give(
    config: dict[str, Any], tokenizer: dict[str, Any], most: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert ModelFolder(tmp_path, "toy").max_tokens() == most
