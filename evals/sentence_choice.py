"""Learns how the built-in model chooses its sentence, and measures the choice on questions it was not learned from.

    python -m evals.sentence_choice fit [--save]      weights in nexi/llm/extractive/choice.json, and the table of unseen folds
    python -m evals.sentence_choice words [--save]    nexi/llm/extractive/related.txt

`fit` lets the built-in model search and read the mini-webs in process, takes the sentences it ranks best as candidates, and
learns by a softmax over the candidates of a question which of them hold the gold answer on a gold page. Folds keep questions
about one page together. `words` needs the vectors of wordllama (MIT) and counts sentences of FEVER (CC BY-SA 3.0), WiCE
(ODC-BY), Factcheck-GPT (Apache-2.0) and WCXB (CC BY 4.0); only counts and similarities go into the package.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from evals.answers import DATA, ROOT, find_source
from nexi.formats import extract
from nexi.llm.extractive import _choice, model
from nexi.llm.extractive._choice import describe_candidates
from nexi.llm.extractive._evidence import SentenceRanking
from nexi.llm.extractive._limits import MAX_CANDIDATES
from nexi.llm.extractive.passages import ContentWords
from nexi.llm.extractive.questions import read_question
from nexi.types import Hit, Message, PageView, SearchOutcome, ToolResult
from rig import miniweb, score

WEB = "dev"
WEIGHTS = ROOT / "nexi" / "llm" / "extractive" / "choice.json"
RELATED = ROOT / "nexi" / "llm" / "extractive" / "related.txt"
TABLE = Path(__file__).with_name("sentence_choice.md")
SHARED = DATA.parent
FOLDS, SEED = 5, 0
STRENGTH = 0.03  # of the penalty on large weights
STEPS, RATE = 400, 0.05
TOPS = (1, 2, 3, 5)
MIN_SENTENCES = 4  # that a word must occur in
MIN_COUNTED = 12  # the same for a word without related ones
MIN_SIMILARITY, MAX_RELATED = 0.4, 10
MIN_LOWER = 0.3  # the share of its occurrences that are in lower case, else it is a name
BASE = "http://127.0.0.1:1"
HEAD = """# Choosing the sentence that answers

Made by `python -m evals.sentence_choice fit --save`: in how many per cent of the {questions} questions of {web} a sentence
with the gold answer, on a gold page, is among the first of the candidates. The learned order is that of weights which never saw
a question about the same page ({folds} folds).

"""


class MiniWeb:
    """A mini-web without a server: its search, and its pages as nexi extracts them."""

    def __init__(self, source: Path) -> None:
        pages = miniweb.read_jsonl(source, "pages.jsonl")
        self.questions = miniweb.read_jsonl(source, "questions.jsonl")
        self.corpus = miniweb.Corpus(pages)
        self._world = miniweb.World(self.corpus, miniweb.Settings())
        self._places = {_loopback(page["url"]): i for i, page in enumerate(pages)}
        self._texts: dict[str, tuple[str, str]] = {}

    def search(self, query: str) -> SearchOutcome:
        found = self.corpus.search(query, 10)[1]
        pages = self.corpus.pages
        hits = [Hit(_loopback(pages[i]["url"]), pages[i].get("title", ""), self.corpus.snippet(i, query)) for i, _ in found]
        return SearchOutcome(query, tuple(hits), "miniweb")

    def read(self, url: str) -> tuple[str, str] | None:
        """Title and text."""
        if url not in self._texts and url in self._places:
            html = self._world.rewrite(self.corpus.pages[self._places[url]]["html"], _loopback)
            found = extract(html, "text/html", url)
            self._texts[url] = (found.title, found.text)
        return self._texts.get(url)

    def ask(self, question: str) -> tuple[str, list[PageView]]:
        """The answer of the built-in model and the pages it read."""
        messages = [Message("user", question)]
        views: dict[str, PageView] = {}
        while (reply := model.next_reply(messages, frozenset(("web_search", "web_get")), 4000)).tool_calls:
            call = reply.tool_calls[0]
            arguments = json.loads(call.arguments)
            if call.name == "web_search":
                value: tuple[object, ...] = tuple(self.search(query) for query in arguments["queries"])
            else:
                for url in arguments["urls"]:
                    title, text = self.read(url) or ("", "")
                    views.setdefault(url, PageView(url, len(views) + 1, title, text, "" if text else "not found"))
                value = tuple(views[url] for url in arguments["urls"])
            messages += [Message("assistant", "", (call,)), Message("tool", "", (), call.id, ToolResult(value, ""))]
        return reply.text, [view for view in views.values() if view.text]


def _loopback(url: str) -> str:
    return f"{BASE}/{url.split('//', 1)[1]}"


@dataclass(frozen=True)
class Example:
    """A question's candidates: what speaks for each, and which of them answer."""

    group: str
    features: np.ndarray[Any, Any]
    answers: np.ndarray[Any, Any]


def collect(served: MiniWeb, names: list[str]) -> Iterator[Example]:
    """An example for each question of a mini-web; `names` becomes the names of the features."""
    for question in served.questions:
        ranking = SentenceRanking(read_question(question["question"]), served.ask(question["question"])[1])
        candidates = [s for s in ranking.ranked if s.is_quotable][:MAX_CANDIDATES]
        described = describe_candidates(ranking, candidates)
        names[:] = names or list(described[0]) if described else names
        gold = {*question["gold_urls"], *(question.get("also_urls") or ())}
        answers = [
            score.canonical(ranking.pages[s.page].url) in gold and holds_answer(s.sentence.text, question["answers"])
            for s in candidates
        ]
        rows = [[row[name] for name in names] for row in described] or np.zeros((0, 1))
        yield Example(question["gold_urls"][0], np.array(rows), np.array(answers, bool))


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    text = score.normalise(text)
    return any(re.search(rf"\b{re.escape(gold)}\b", text) for gold in map(score.normalise, answers) if gold)


def learn(examples: Sequence[Example]) -> np.ndarray[Any, Any]:
    """The weight of each feature, by gradient descent on the log chance of the sentences that answer."""
    useful = [e for e in examples if e.answers.any()]
    rows = np.concatenate([e.features for e in useful])
    scale = rows.std(0) + 1e-6
    size, width = max(len(e.answers) for e in useful), rows.shape[1]
    x, y = np.zeros((len(useful), size, width)), np.zeros((len(useful), size))
    mask = np.full((len(useful), size), -1e9)
    for i, example in enumerate(useful):
        n = len(example.answers)
        x[i, :n], y[i, :n], mask[i, :n] = (example.features - rows.mean(0)) / scale, example.answers, 0.0
    weights, mean, square = np.zeros(width), np.zeros(width), np.zeros(width)
    for step in range(1, STEPS + 1):
        points = x @ weights + mask
        chances = np.exp(points - points.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        target = chances * y
        target /= target.sum(1, keepdims=True)
        slope = STRENGTH * weights - np.einsum("ij,ijk->k", target - chances, x) / len(useful)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights / scale


def share_found(examples: Sequence[Example], points: Sequence[np.ndarray[Any, Any]]) -> dict[int, float]:
    """In how many per cent of questions one of the first sentences answers, by their number."""
    orders = [np.argsort(-p, kind="stable") for p in points]
    return {
        top: 100 * sum(e.answers[o[:top]].any() for e, o in zip(examples, orders, strict=True)) / max(1, len(examples))
        for top in TOPS
    }


def learn_apart(examples: Sequence[Example]) -> list[np.ndarray[Any, Any]]:
    """For each example, weights that were learned without its page."""
    groups = sorted({e.group for e in examples})
    random.Random(SEED).shuffle(groups)
    fold = {group: i % FOLDS for i, group in enumerate(groups)}
    learned = [learn([e for e in examples if fold[e.group] != i]) for i in range(FOLDS)]
    return [learned[fold[e.group]] for e in examples]


def answer_apart(served: MiniWeb, names: Sequence[str], weights: Sequence[np.ndarray[Any, Any]]) -> dict[str, Any]:
    """The scorer's figures of the answers that are composed with the weights of each question."""
    replies = {}
    for question, learned in zip(served.questions, weights, strict=True):
        with patch.object(_choice, "load_weights", return_value=dict(zip(names, learned.tolist(), strict=True))):
            text, views = served.ask(question["question"])
        numbers = {int(n) for n in re.findall(r"\[(\d+)\]", text)}
        replies[question["id"]] = {"answer": text, "citations": [view.url for view in views if view.number in numbers]}
    figures: dict[str, Any] = score.table(served.questions, replies)["all"]
    return figures


def fit(data: Path, *, keep: bool) -> None:
    names: list[str] = []
    source = find_source(data, WEB)
    if source is None:
        print(f"sentence_choice: the mini-web {WEB} is not in {data}; give its folder with --data")
        return
    served = MiniWeb(source)
    examples = list(collect(served, names))
    apart = learn_apart(examples)
    unseen = [e.features @ w if len(e.answers) else np.zeros(0) for e, w in zip(examples, apart, strict=True)]
    scores = [e.features[:, names.index("score")] if len(e.answers) else np.zeros(0) for e in examples]
    lines = ["| order | " + " | ".join(f"in the first {top}" for top in TOPS) + " |", "|---|" + "---|" * len(TOPS)]
    for order, points in (("score alone", scores), ("learned, unseen pages", unseen)):
        shares = share_found(examples, points)
        lines.append(f"| {order} | " + " | ".join(f"{share:.1f}" for share in shares.values()) + " |")
    figures = answer_apart(served, names, apart)
    lines += ["", f"Answers composed with those weights: supported {figures['supported']}, {figures['words']} words."]
    print("\n".join(lines))
    weights = {name: round(float(w), 3) for name, w in zip(names, learn(examples), strict=True)}
    print(json.dumps(weights))
    if keep:
        WEIGHTS.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(questions=len(examples), web=WEB, folds=FOLDS) + "\n".join(lines) + "\n", encoding="utf-8")


def read_sentences_of_corpora() -> Iterator[str]:
    """English sentences of people's claims, their evidence, and web pages."""
    for line in _unpack(SHARED / "proof" / "train.jsonl.zst").decode().splitlines():
        row = json.loads(line)
        if row["set"] in ("fever", "wice", "wice_part", "fcgpt"):
            yield from _split_roughly(row["evidence"])
            yield from _split_roughly(row["claim"])
    with tarfile.open(fileobj=io.BytesIO(_unpack(SHARED / "extraction" / "pages-600.tar.zst"))) as archive:
        for member in archive:
            handle = archive.extractfile(member) if member.name.endswith(".json") else None
            text = json.load(handle)["ground_truth"].get("main_content") if handle else ""
            if text and len(re.findall(r"\b(?:the|of|and)\b", text)) > 0.05 * len(text.split()):
                yield from _split_roughly(text)


def _unpack(path: Path) -> bytes:
    return subprocess.run(["zstd", "-dc", "--long=27", str(path)], capture_output=True, check=True).stdout


def _split_roughly(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+|\n+", text) if len(part) >= 25]


def make_words(*, keep: bool) -> None:
    """The table of related words: similar by their vectors, common enough to be worth a line."""
    words, counts = ContentWords(), Counter[str]()
    forms: Mapping[str, Counter[str]] = defaultdict(Counter)
    sentences = set(read_sentences_of_corpora())
    for sentence in sentences:
        seen = set()
        for word in re.findall(r"[^\W\d_]+", sentence):
            stems = words.stems(word)
            if len(stems) == 1:
                seen.add(stems[0])
                forms[stems[0]][word.lower()] += word.islower()
        counts.update(seen)
    common = sorted(s for s, n in counts.items() if n >= MIN_SENTENCES and len(s) > 1 and s.isascii())
    general = [s for s in common if forms[s].total() >= MIN_LOWER * counts[s]]
    vectors = np.array([_vector_of(forms[s]) for s in general])
    pieces = [
        _pieces_of(forms[s].most_common(1)[0][0]) for s in general
    ]  # two words with a piece in common are similar by that alone
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, 0.0)
    related: dict[str, dict[str, float]] = defaultdict(dict)
    for i, stem in enumerate(general):
        for j in np.argsort(-similar[i])[:MAX_RELATED]:
            if similar[i, j] >= MIN_SIMILARITY and (stem[:4] == general[j][:4] or not pieces[i] & pieces[j]):
                related[stem][general[j]] = related[general[j]][stem] = similar[i, j]
    lines = [f"* {len(sentences)}"]
    for stem in common:
        pairs = sorted(related[stem].items(), key=lambda pair: (-pair[1], pair[0]))
        if not pairs and counts[stem] < MIN_COUNTED:
            continue
        lines.append(" ".join([stem, str(counts[stem]), *(f"{other} {min(99, round(100 * s))}" for other, s in pairs)]))
    text = "# Learned by evals/sentence_choice.py, which names its sources: stem, sentences, related stems in hundredths.\n"
    text += "\n".join(lines) + "\n"
    print(f"{len(common)} stems, {len(general)} with vectors, {len(text):,} characters")
    if keep:
        RELATED.write_text(text, encoding="utf-8")


def _vector_of(forms: Counter[str]) -> np.ndarray[Any, Any]:
    """The mean vector of the forms of a word, of length 1."""
    tokenizer, table = _load_vectors()
    total = np.zeros(table.shape[1])
    for form, count in forms.items():
        if (ids := tokenizer.encode(form, add_special_tokens=False).ids) and count:
            vector = table[ids].mean(0)
            total += count * vector / (np.linalg.norm(vector) or 1.0)
    return total / (np.linalg.norm(total) or 1.0)


def _pieces_of(word: str) -> set[int]:
    return set(_load_vectors()[0].encode(word, add_special_tokens=False).ids)


def _load_vectors(cache: list[tuple[Any, Any]] = []) -> tuple[Any, Any]:  # noqa: B006 - loaded once
    if not cache:
        import wordllama
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = Path(wordllama.__file__).parent
        table = next(iter(load_file(folder / "weights" / "l2_supercat_256.safetensors").values()))
        cache.append(
            (Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")), table.astype(np.float32))
        )
    return cache[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fit", "words"))
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--save", action="store_true", help="write the learned files and the table")
    options = parser.parse_args()
    if options.what == "words":
        make_words(keep=options.save)
    else:
        fit(options.data, keep=options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
