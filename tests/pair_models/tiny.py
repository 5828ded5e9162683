"""A cross-encoder in small, as a folder: its graph counts the words that premise and hypothesis share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("onnxruntime")

VOCABULARY = (
    "the bridge over tamar was opened in 1859 1895 and carries two tracks it is late penguins breed on southern ice winter "
    "of to a die brücke wurde eröffnet"
)
NLI = {"0": "contradiction", "1": "entailment", "2": "neutral"}


def write_model(
    folder: Path,
    *,
    labels: dict[str, str] | None = None,
    max_tokens: int = 64,
    graph: Any = None,
    manifest: dict[str, Any] | None = None,
) -> Path:
    """A folder as a hub publishes it."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = NLI if labels is None else labels
    onnx.save(graph or share_graph(max(len(labels), 1)), folder / "model.onnx")
    _tokenizer().save(str(folder / "tokenizer.json"))
    config = {"model_type": "bert", "max_position_embeddings": max_tokens, "id2label": labels}
    (folder / "config.json").write_text(json.dumps(config))
    if manifest is not None:
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _tokenizer() -> Any:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(re.findall(r"\w+", VOCABULARY)), "."]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def share_graph(outputs: int, *, inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")) -> Any:
    """Logits from the share of the hypothesis' tokens that the premise has."""
    make, types = onnx.helper.make_node, onnx.TensorProto
    columns = {1: ["z"], 2: ["n", "z"], 3: ["n", "z", "nil"]}[outputs]
    nodes = [
        make("Unsqueeze", ["input_ids", "two"], ["down"]),
        make("Unsqueeze", ["input_ids", "one"], ["across"]),
        make("Equal", ["down", "across"], ["same"]),
        make("Cast", ["same"], ["same_f"], to=types.FLOAT),
        make("Cast", ["attention_mask"], ["mask_f"], to=types.FLOAT),
        make("Cast", ["token_type_ids"], ["types_f"], to=types.FLOAT),
        make("Mul", ["types_f", "mask_f"], ["hypothesis"]),
        make("Sub", ["mask_f", "hypothesis"], ["premise"]),
        make("Unsqueeze", ["premise", "one"], ["premise_row"]),
        make("Mul", ["same_f", "premise_row"], ["hits"]),
        make("ReduceMax", ["hits"], ["hit"], axes=[2], keepdims=0),
        make("Mul", ["hit", "hypothesis"], ["counted"]),
        make("ReduceSum", ["counted", "one"], ["shared"], keepdims=1),
        make("ReduceSum", ["hypothesis", "one"], ["all"], keepdims=1),
        make("Div", ["shared", "all"], ["share"]),
        make("Sub", ["share", "middle"], ["centred"]),
        make("Mul", ["centred", "ten"], ["z"]),
        make("Neg", ["z"], ["n"]),
        make("Sub", ["z", "z"], ["nil"]),
        make("Concat", columns, ["logits"], axis=1),
    ]
    tensor = onnx.helper.make_tensor
    constants = [
        tensor("one", types.INT64, [1], [1]),
        tensor("two", types.INT64, [1], [2]),
        tensor("middle", types.FLOAT, [1], [0.6]),
        tensor("ten", types.FLOAT, [1], [10.0]),
    ]
    given = [onnx.helper.make_tensor_value_info(name, types.INT64, ["b", "s"]) for name in inputs]
    result = onnx.helper.make_tensor_value_info("logits", types.FLOAT, ["b", outputs])
    graph = onnx.helper.make_graph(nodes, "share", given, [result], constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
