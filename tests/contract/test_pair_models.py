"""What every pair model promises: one suite over word overlap, the judge and an ONNX model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from evals.overlap import OverlapPairModel, word_share
from nexi.checking.judge import JudgePairModel, LlmJudge
from nexi.ports import PairModel
from nexi.testing import FakeClock, ScriptedLLM
from nexi.types import Message, Reply, Usage

PREMISE = "The bridge over the Tamar was opened in 1859 and carries two tracks."
TRUE = "The bridge was opened in 1859."
OTHER = "Penguins breed on the southern ice in winter."


@contextmanager
def overlap(folder: Path) -> Iterator[PairModel]:
    yield OverlapPairModel()


def judge_words(messages: Sequence[Message]) -> Reply:
    """A judge that counts words, as a language model would say it."""
    lines = [line.partition(": ") for line in messages[1].content.splitlines()]
    passages = " ".join(json.loads(text) for head, _, text in lines if head.startswith("Passage "))
    sentences = [json.loads(text) for head, _, text in lines if head.startswith("Sentence ")]
    entries = []
    for n, sentence in enumerate(sentences, 1):
        verdict = "supported" if word_share(passages, sentence) > 0.5 else "not_supported"
        entries.append({"n": n, "passages": [1], "differs": "", "verdict": verdict})
    return Reply(json.dumps({"items": entries}), (), Usage(10, 10), "stop")


@contextmanager
def judge(folder: Path) -> Iterator[PairModel]:
    yield JudgePairModel(LlmJudge(ScriptedLLM(*[judge_words] * 20, name="toy"), FakeClock()))


@contextmanager
def onnx(folder: Path) -> Iterator[PairModel]:
    from nexi.pair_models.folder import gather_files, installed_model, put_in_place, stage_files
    from nexi.pair_models.onnx import OnnxPairModel
    from tests.pair_models.tiny import write_model

    put_in_place(stage_files(folder, gather_files(write_model(folder / "source")), {"name": "tiny"}), folder)
    installed = installed_model(folder)
    assert installed is not None
    yield OnnxPairModel(installed, FakeClock())


MODELS: dict[str, Callable[[Path], AbstractContextManager[PairModel]]] = {"overlap": overlap, "judge": judge, "onnx": onnx}


@pytest.fixture(params=sorted(MODELS))
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PairModel]:
    if request.param == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
    with MODELS[request.param](tmp_path) as made:
        yield made


async def test_scores_every_pair_in_order(model: PairModel) -> None:
    pairs = [(PREMISE, TRUE), (PREMISE, OTHER), (PREMISE, TRUE)]

    first, second, third = await model.score(pairs)

    assert first == third
    assert first.supported > second.supported
    assert all(score.known for score in (first, second, third))


async def test_scores_are_probabilities(model: PairModel) -> None:
    hard = [
        "",
        " ",
        "\ud800",
        "1859",
        "word " * 5000,
        "\x00",
        "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3042\u308b\u3002",
    ]

    scores = await model.score([(a, b) for a in hard for b in hard])

    assert len(scores) == len(hard) ** 2
    assert all(0 <= score.supported <= 1 and 0 <= score.contradicted <= 1 for score in scores)


async def test_no_pair_has_no_score(model: PairModel) -> None:
    assert list(await model.score([])) == []


async def test_a_model_has_a_name_of_one_line(model: PairModel) -> None:
    assert model.name
    assert model.name == " ".join(model.name.split())
