"""Fine-tunes a base model on prepared rows, exports it as int8 ONNX with its manifest, and writes the table.

    python -m evals.pair_training.fit --base FOLDER --rows FOLDER --out FOLDER --licence NAME [--epochs 2] [--name NAME]

The base is a folder in the form of Hugging Face (config.json, tokenizer.json, weights) of any encoder. Needs torch,
transformers, onnx and onnxruntime, which only `make train-pair-model` installs, and runs best on an accelerator. What comes out
is a folder for `nexi proof install`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

LABELS = ("contradiction", "entailment", "neutral")
MAX_TOKENS = 256
MEASURED_AS_INT8 = ("attrib", "begin", "redteam held-out", "redteam development", "pairs open")
VALIDATION_SHARE = 0.03
TWICE = ("fever", "fcgpt", "wice_part", "redteam")  # rows of people about prose, of which there are few
Pair = tuple[str, str]


def read_rows(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Encoder:
    """Pairs as token numbers; the premise is cut where a pair is too long."""

    def __init__(self, base: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(base)

    def encode(self, pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
        premises, hypotheses = [p for p, _ in pairs], [h for _, h in pairs]
        coded = self.tokenizer(
            premises, hypotheses, truncation="only_first", max_length=MAX_TOKENS, return_token_type_ids=True, verbose=False
        )
        self.has_types = any(any(types) for types in coded["token_type_ids"])
        return list(zip(coded["input_ids"], coded["token_type_ids"], strict=True))

    def batch(self, coded: Sequence[Any], device: str) -> dict[str, torch.Tensor]:
        width = max(len(ids) for ids, _ in coded)
        ids = torch.full((len(coded), width), self.tokenizer.pad_token_id)
        mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, (numbers, kinds) in enumerate(coded):
            ids[row, : len(numbers)] = torch.tensor(numbers)
            mask[row, : len(numbers)] = 1
            types[row, : len(numbers)] = torch.tensor(kinds)
        given = {"input_ids": ids, "attention_mask": mask} | ({"token_type_ids": types} if self.has_types else {})
        return {name: value.to(device, non_blocking=True) for name, value in given.items()}


def batches(lengths: Sequence[int], size: int, chance: random.Random) -> Iterator[list[int]]:
    """Rows of like length together, in an order of chance."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + chance.random() * 12)
    chunks = [order[i : i + size] for i in range(0, len(order), size)]
    chance.shuffle(chunks)
    yield from chunks


def train(base: Path, rows: Sequence[dict[str, Any]], options: argparse.Namespace, device: str) -> tuple[Any, Encoder]:
    chance = random.Random(options.seed)
    torch.manual_seed(options.seed)
    encoder = Encoder(base)
    names = dict(enumerate(LABELS))
    config = AutoConfig.from_pretrained(base, num_labels=len(LABELS), id2label=names, label2id={v: k for k, v in names.items()})
    model = AutoModelForSequenceClassification.from_pretrained(base, config=config, dtype=torch.float32).to(device)
    coded = encoder.encode([(row["premise"], row["hypothesis"]) for row in rows])
    labels = [LABELS.index(row["label"]) for row in rows]
    lengths = [len(ids) for ids, _ in coded]
    steps = math.ceil(len(rows) / options.batch) * options.epochs
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.lr, total_steps=steps + 1, pct_start=0.06)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.05)
    model.train()
    step, started, running = 0, time.monotonic(), 0.0
    for epoch in range(options.epochs):
        for chosen in batches(lengths, options.batch, chance):
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                logits = model(**encoder.batch([coded[i] for i in chosen], device)).logits
            loss = loss_of(logits.float(), torch.tensor([labels[i] for i in chosen], device=device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
            step += 1
            if step % 200 == 0:
                running = loss.item()
                print(f"epoch {epoch} step {step} of {steps} loss {running:.3f} {time.monotonic() - started:.0f} s", flush=True)
    return model.eval(), encoder


def logits_of(model: Any, encoder: Encoder, pairs: Sequence[Pair], device: str) -> np.ndarray:
    coded = encoder.encode(pairs)
    out = np.zeros((len(pairs), len(LABELS)))
    with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        for chosen in batches([len(ids) for ids, _ in coded], 256, random.Random(0)):
            out[chosen] = model(**encoder.batch([coded[i] for i in chosen], device)).logits.float().cpu().numpy()
    return out


def probabilities(logits: np.ndarray, temperature: float) -> np.ndarray:
    shares = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
    return shares / shares.sum(1, keepdims=True)


def best_temperature(logits: np.ndarray, labels: Sequence[int]) -> float:
    """The temperature under which rows kept aside are least surprising."""
    rows = np.arange(len(labels))
    grid = [0.5 * 1.1**n for n in range(25)]

    def surprise(temperature: float) -> float:
        return float(-np.log(probabilities(logits, temperature)[rows, list(labels)] + 1e-9).mean())

    best: float = min(grid, key=surprise)
    return round(best, 3)


def measure(rows: Sequence[dict[str, Any]], score: Callable[[list[Pair]], np.ndarray]) -> list[dict[str, Any]]:
    """One line for each set: a claim is as good as its best window."""
    pairs = [(window, row["claim"]) for row in rows for window in row["windows"]]
    scores = iter(score(pairs)[:, LABELS.index("entailment")])
    by_set: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row in rows:
        by_set[row["set"]].append((max(next(scores) for _ in row["windows"]), row["true"]))
    return [{"set": name, **figures(values)} for name, values in sorted(by_set.items())]


def figures(values: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    true = np.array([score for score, is_true in values if is_true])
    lies = np.array([score for score, is_true in values if not is_true])
    auc = (true[:, None] > lies).mean() + (true[:, None] == lies).mean() / 2
    found: dict[str, Any] = {"n": len(values), "auc": round(float(auc) * 100, 1)}
    for at in (0.5, 0.8):
        kept, passed = (true >= at).mean() * 100, (lies >= at).mean() * 100
        found |= {f"kept@{at}": round(float(kept), 1), f"passed@{at}": round(float(passed), 1)}
        found[f"balanced@{at}"] = round(float(50 + (kept - passed) / 2), 1)
    return found


def export(model: Any, encoder: Encoder, folder: Path) -> Path:
    """Write the model as ONNX, whole and int8, and return the smaller file."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    folder.mkdir(parents=True, exist_ok=True)
    model = model.float().cpu()
    sample = encoder.batch(encoder.encode([("It is late and it rains.", "It is late."), ("It is late.", "It rains.")]), "cpu")
    names = list(sample)
    axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}}
    whole = folder / "whole.onnx"

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            return self.model(**dict(zip(names, given, strict=True))).logits

    torch.onnx.export(
        Logits(),
        tuple(sample.values()),
        str(whole),
        input_names=names,
        output_names=["logits"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(str(whole), str(folder / "model.onnx"), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    whole.unlink()
    return folder / "model.onnx"


def session_logits(path: Path, encoder: Encoder, pairs: Sequence[Pair], threads: int) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    out = np.zeros((len(pairs), len(LABELS)))
    for row, coded in enumerate(encoder.encode(pairs)):  # one at a time, as nexi does: its scales depend on what is beside it
        feed = {name: value.numpy() for name, value in encoder.batch([coded], "cpu").items()}
        out[row] = session.run(None, feed)[0][0]
    return out


def write_folder(base: Path, folder: Path, model: Any, options: argparse.Namespace, temperature: float) -> None:
    """What `nexi proof install` wants beside the model."""
    config = model.config.to_dict()
    kept = {key: config[key] for key in ("model_type", "max_position_embeddings", "id2label", "label2id") if key in config}
    (folder / "config.json").write_text(json.dumps(kept, indent=1))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (base / name).exists():
            shutil.copyfile(base / name, folder / name)
    described = {"name": options.name, "licence": options.licence, "languages": ["en"], "temperature": temperature}
    (folder / "manifest.json").write_text(json.dumps(described, indent=1))


def render(tables: dict[str, list[dict[str, Any]]]) -> str:
    heads = list(next(iter(tables.values()))[0])
    lines = [f"| model | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    lines += [f"| {name} | {' | '.join(str(row[head]) for head in heads)} |" for name, rows in tables.items() for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--base", "--rows", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--licence", required=True, help="of the base and what was trained on")
    parser.add_argument("--name", default="nexi-pairs")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--lr", type=float, default=6e-5)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--without", default="", help="leave out rows of this origin")
    parser.add_argument("--sample", type=int, default=0, help="train on so many rows only, to see that everything works")
    parser.add_argument("--threads", type=int, default=4, help="for measuring the int8 model")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = read_rows(options.rows / "train.jsonl.xz")
    rows = [row for row in rows if row["from"] != options.without]
    rows = rows[: options.sample] if options.sample else rows
    kept = max(1, int(len(rows) * VALIDATION_SHARE))
    validation, rows = rows[:kept], rows[kept:]
    rows += [row for row in rows if row["from"] in TWICE]
    model, encoder = train(options.base, rows, options, device)
    aside = logits_of(model, encoder, [(row["premise"], row["hypothesis"]) for row in validation], device)
    labels = [LABELS.index(row["label"]) for row in validation]
    temperature = best_temperature(aside, labels)
    print(f"kept aside: {(aside.argmax(1) == labels).mean():.3f} right, temperature {temperature}", flush=True)
    measured = read_rows(options.rows / "measure.jsonl.xz")
    measured = measured[:: max(1, len(measured) // options.sample)] if options.sample else measured
    tables = {"float": measure(measured, lambda pairs: probabilities(logits_of(model, encoder, pairs, device), temperature))}
    print(render(tables), flush=True)
    path = export(model, encoder, options.out)
    write_folder(options.base, options.out, model, options, temperature)
    small = [row for row in measured if row["set"] in MEASURED_AS_INT8]
    tables["int8"] = measure(
        small, lambda pairs: probabilities(session_logits(path, encoder, pairs, options.threads), temperature)
    )
    (options.out / "table.md").write_text(render(tables))
    print(render(tables), f"{path.stat().st_size / 1e6:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
