"""The rows that a cross-encoder is trained on and measured with, as two files that need nothing of nexi any more.

    python -m evals.pair_training.prepare --out FOLDER [--seed N]

Trained on: the pairs of `train.jsonl.zst` that `evals.labelled` does not hold out, swaps over their supported claims, and swaps
over sentences of mini-web pages that no hand-written sentence is about. Measured with: the labelled sets, the held-out half of
`evals.redteam` in English and the open half of the hand-written pairs, each claim with its best windows, as nexi asks.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from evals import labelled, redteam
from evals.overlap import word_share
from evals.pair_training.swaps import CONTRADICTION, ENTAILMENT, NEUTRAL, change_sentence, names_in, weaken_sentence
from evals.redteam.pairs import read_pairs
from nexi.checking.pages import prepare
from nexi.extract.text import to_markdown
from nexi.pair_models.onnx import can_read
from nexi.text.sentences import sentence_bounds

WEBS = ("dev", "multi", "docs")
LABELS = {"S": ENTAILMENT, "R": CONTRADICTION, "N": NEUTRAL, "P": NEUTRAL}
MAX_PREMISE_CHARS = 1_600
MAX_SENTENCE_CHARS = 300
MIN_SENTENCE_CHARS = 40
SENTENCES_PER_PAGE = 9
WHOLE_CHARS = 1_000  # a text of this length is a window of its own
Row = dict[str, Any]


def sentences_of(text: str) -> list[str]:
    """The sentences of prose, without lines that are headings or rows."""
    lines = (line.strip() for line in text.splitlines())
    prose = [line for line in lines if len(line) > MIN_SENTENCE_CHARS and not line.startswith(("#", "|", "```", "*", "-", ">"))]
    return [line[a:b] for line in prose for a, b in sentence_bounds(line, 2_000)]


def best_windows(text: str, claim: str) -> list[str]:
    """The sentence and the three neighbours that share most words with a claim, and a short text whole."""
    sentences = [line[a:b] for line in text.splitlines() if line.strip() for a, b in sentence_bounds(line, 2_000)] or [text]
    triples = [" ".join(sentences[i : i + 3]) for i in range(max(1, len(sentences) - 2))]
    chosen = [max(part, key=lambda window: word_share(window, claim)) for part in (sentences, triples)]
    return list(dict.fromkeys([*chosen, *([text] if len(text) <= WHOLE_CHARS else [])]))


def human_rows(data: Path) -> Iterator[Row]:
    for row in labelled.read_rows(data / "train.jsonl.zst"):
        if not labelled.is_held_out(row):
            premise = row["evidence"][:MAX_PREMISE_CHARS]
            yield {"premise": premise, "hypothesis": row["claim"], "label": LABELS[row["label"]], "from": row["set"]}


def redteam_rows(webs: Path) -> Iterator[Row]:
    """The development half of the sentences written by hand, each with its best windows."""
    texts = {page: prepare(text, page).text for page, text in redteam.texts(webs).items()}
    for statement in redteam.statements(webs):
        if not statement.held_out and can_read(f"{statement.text} {texts[statement.page][:500]}", ("en",)):
            label = ENTAILMENT if statement.true else NEUTRAL
            for window in best_windows(texts[statement.page], statement.text):
                premise = window[:MAX_PREMISE_CHARS]
                yield {"premise": premise, "hypothesis": statement.text, "label": label, "from": "redteam"}


def swapped_claims(rows: Sequence[Row], chance: Random) -> Iterator[Row]:
    """Lies made of claims that people called supported."""
    for row in rows:
        if row["label"] == ENTAILMENT and row["from"] in ("fever", "fcgpt", "conjnli"):
            around = [*sentences_of(row["premise"]), row["premise"]]
            for kind, label, text in change_sentence(row["hypothesis"], around, chance, lies=2, truths=0):
                yield {"premise": row["premise"], "hypothesis": text, "label": label, "from": f"claim {kind}"}


def swapped_sentences(pages: Iterable[str], chance: Random) -> Iterator[Row]:
    """Truths and lies made of the sentences of pages, and sentences that stand elsewhere on the page."""
    for text in pages:
        sentences = sentences_of(text)
        fitting = [i for i, s in enumerate(sentences) if MIN_SENTENCE_CHARS <= len(s) <= MAX_SENTENCE_CHARS]
        for i in chance.sample(fitting, min(SENTENCES_PER_PAGE, len(fitting))):
            sentence, near = sentences[i], sentences[max(0, i - 3) : i] + sentences[i + 1 : i + 4]
            width = chance.choice((0, 0, 1, 1, 2))
            premise = " ".join(sentences[max(0, i - width) : i + 1 + width])[:MAX_PREMISE_CHARS]
            for kind, label, changed in change_sentence(sentence, near, chance, lies=3, truths=1):
                yield {"premise": premise, "hypothesis": changed, "label": label, "from": f"page {kind}"}
            yield from weakened_premise(sentences, i, width, chance)
            far = [s for s in sentences if s not in premise and MIN_SENTENCE_CHARS <= len(s) <= MAX_SENTENCE_CHARS]
            if far and chance.random() < 0.3:
                yield {"premise": premise, "hypothesis": chance.choice(far), "label": NEUTRAL, "from": "page elsewhere"}


def weakened_premise(sentences: Sequence[str], i: int, width: int, chance: Random) -> Iterator[Row]:
    """A passage that says a sentence with a doubt, a condition or a speaker: the plain sentence is more than it says."""
    weaker = weaken_sentence(sentences[i], chance)
    speakers = sorted({name for s in sentences[max(0, i - 6) : i + 7] for name in names_in(s)} - set(names_in(sentences[i])))
    before, after = sentences[max(0, i - width) : i], sentences[i + 1 : i + 1 + width]
    if weaker and chance.random() < 0.5:
        premise = " ".join([*before, weaker, *after])[:MAX_PREMISE_CHARS]
        yield {"premise": premise, "hypothesis": sentences[i], "label": NEUTRAL, "from": "page weaker"}
        yield {"premise": premise, "hypothesis": weaker, "label": ENTAILMENT, "from": "page weaker, kept"}
    if len(speakers) > 1 and chance.random() < 0.2:
        first, second = chance.sample(speakers, 2)
        said = chance.choice(("According to {}, {}", "{} said that {}", "{} argued that {}"))
        plain = (
            sentences[i][0].lower() + sentences[i][1:]
            if sentences[i].startswith(("The ", "A ", "In ", "It "))
            else sentences[i]
        )
        premise = " ".join([*before, said.format(first, plain), *after])[:MAX_PREMISE_CHARS]
        yield {"premise": premise, "hypothesis": said.format(second, plain), "label": NEUTRAL, "from": "page other speaker"}
        yield {"premise": premise, "hypothesis": said.format(first, plain), "label": ENTAILMENT, "from": "page same speaker"}


def pages_of(data: Path) -> Iterator[str]:
    """English pages of the mini-webs, without those that hand-written sentences are about."""
    taken = {s.page.split(" ", 1)[-1] for s in redteam.statements(data)}
    titles = {pair.page.partition(": ")[2] for half in ("open", "sealed") for pair in read_pairs(half)}
    for web in WEBS:
        with tarfile.open(data / f"{web}.tar.gz") as packed:
            member = next(m for m in packed if m.name.endswith("pages.jsonl"))
            records = [json.loads(line) for line in packed.extractfile(member) or ()]
        for record in records:
            if record["url"] not in taken and not any(title in record["title"] for title in titles):
                yield to_markdown(record["html"], record["url"])


def measured_rows(data: Path, webs: Path) -> Iterator[Row]:
    for name, pairs in labelled.read_sets(data).items():
        for pair in pairs:
            yield {"set": name, "windows": best_windows(pair.evidence, pair.claim), "claim": pair.claim, "true": pair.is_true}
    for own in read_pairs("open"):
        yield {"set": "pairs open", "windows": [own.passage], "claim": own.claim, "true": own.label}
    texts = {page: prepare(text, page).text for page, text in redteam.texts(webs).items()}
    for statement in redteam.statements(webs):
        if can_read(f"{statement.text} {texts[statement.page][:500]}", ("en",)):
            half = "held-out" if statement.held_out else "development"
            windows = best_windows(texts[statement.page], statement.text)
            yield {"set": f"redteam {half}", "windows": windows, "claim": statement.text, "true": statement.true}


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--data", type=Path, default=labelled.DATA)
    options = parser.parse_args()
    webs = options.data.parent / "miniweb"
    chance = Random(options.seed)
    human = list(human_rows(options.data))
    rows = [*human, *redteam_rows(webs), *swapped_claims(human, chance), *swapped_sentences(pages_of(webs), chance)]
    chance.shuffle(rows)
    measured = list(measured_rows(options.data, webs))
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(options.out / "train.jsonl.xz", rows)
    write_rows(options.out / "measure.jsonl.xz", measured)
    print(len(rows), "rows to train on:", Counter(row["label"] for row in rows))
    print(Counter(row["from"] for row in rows).most_common())
    print(len(measured), "to measure with:", Counter(row["set"] for row in measured))


if __name__ == "__main__":
    main()
