"""Whether a report is worth reading: broad questions researched over the mini-webs, judged part by part.

    python -m evals.rubric [--sample N] [--save] [--show] [--data DIR]
    python -m evals.rubric --scripted [--one-call] [--save]
    python -m evals.rubric --base-url http://127.0.0.1:18080/v1 --model qwen2.5-1.5b --sample 4 [--save]

`rubric.json` has the questions. Each part of a question names the passages that answer it: a page of the web, and the first
words of its paragraphs. A part is covered when a sentence of the report stands in one of them and cites that page. A sentence
is stray when it stands neither in such a passage nor in one that is listed as related. A double repeats an earlier sentence.
Fails when the built-in model covers fewer parts, or has more stray sentences, than the limits allow. The rig's scripted model
and any OpenAI-compatible server can research too; they have no limits. `--save` replaces the rows of the same model. `.eval/`
keeps the last reports.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evals.answers import DATA, SEED, find_source, keep
from evals.research import report_on
from nexi.config import Config
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import stem
from nexi.text.words import content_words
from rig import miniweb, scripted_llm
from rig.research_script import SectionScript
from rig.score import canonical

QUESTIONS = Path(__file__).with_name("rubric.json")
TABLE = Path(__file__).with_name("rubric.md")
WEBS = ("dev", "multi")
MIN_COVERED, MAX_STRAY = 70.0, 5.0
SAMPLE_ALLOWANCE = 20.0  # points by which a small sample may miss a limit by chance
SAME_PASSAGE = 0.75  # the share of a sentence's words that a passage holds
SAME_SENTENCE = 0.8  # the share of common words from which a sentence repeats another
MIN_WORDS = 3  # of a sentence; "Yes." states nothing that could be stray
HEADS = (
    "model",
    "web",
    "asked",
    "parts",
    "covered",
    "stray",
    "doubles",
    "verified",
    "words",
    "sections",
    "cited",
    "pages",
    "calls",
    "tokens",
    "seconds",
)
HEAD = """# Reports on broad questions

`python -m evals.rubric --save`: broad questions with two to four parts over the mini-webs. Covered is the share of parts with a
cited sentence from a passage that answers them; stray, the share of sentences from a passage that bears on no part; doubles,
the share that repeats an earlier one; verified, the share that the check finds in its source. These are per cent, the rest are
means for one question; tokens and seconds are those of all its calls.

Scripted is the rig's model (`--scripted`), which copies sentences of what it is shown: it measures the evidence that a model
gets, and not how well one writes. Its sections have an outline, a call for each section and one for the introduction; with
`--one-call` it writes the report in one call from the researchers' reports, as before there were sections.

Qwen2.5 1.5B, when it wrote sections of its own, covered 33.3 % of the parts of four questions, with 20.0 % stray, 90.9 %
verified, 94.5 words, 4.5 pages, 6.0 calls, 3,206 tokens and 347 seconds: most of what it wrote failed the check. Small models
now only introduce a report that quotes the pages.

The questions were written before the writer of reports; its weights were chosen by them. Seven passages were added to the
labels after the first reports had quoted them. The length of a section's evidence was chosen by them too,
from 300, 400, 600 and 900 words (covered 72.3, 70.3, 76.2 and 77.2, stray 8.8, 12.6, 10.1 and 11.8): between these, chance
decides as much as length. Before there was a writer, 65.3 % of the parts were covered, 29.7 % of the
sentences were stray, and a report had 148 words.

"""

_HEADING = re.compile(r"^#{1,6}\s.*$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"((?:\s*\[\d+\])+)[.]?")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a report, with the pages it cites."""

    text: str
    pages: frozenset[str]

    @property
    def stems(self) -> frozenset[str]:
        return read_stems(self.text)


@dataclass(frozen=True)
class Judged:
    """One report by the rubric."""

    parts: int
    covered: int
    sentences: int
    stray: tuple[str, ...]
    doubles: int


def read_stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))


def read_report(text: str, sources: Mapping[int, str]) -> list[Sentence]:
    """The sentences of a report that state something; headings and items under "Not found" do not."""
    body = _HEADING.sub("\n", _CODE.sub("\n", text.split("\n## Not found")[0]))
    found: list[Sentence] = []
    pieces = _CITED.split(body)
    for piece, numbers in zip(pieces[::2], [*pieces[1::2], ""], strict=False):
        pages = frozenset(sources[int(n)] for n in re.findall(r"\d+", numbers) if int(n) in sources)
        for block in filter(str.strip, piece.split("\n\n")):
            plain = " ".join(block.split()).lstrip("-*> ")
            found += [Sentence(plain[start:end], pages) for start, end in sentence_bounds(plain, 2000)]
    return [s for s in found if len(s.text.split()) >= MIN_WORDS]


def find_passages(page: str, keys: Sequence[str]) -> list[frozenset[str]]:
    """The words of the paragraphs of a page that begin with these keys; a subscript such as O₂ does not end one."""
    lines = re.sub(r"\n(?=\d[ .,)])", " ", page).split("\n")
    return [read_stems(line) for key in keys for line in lines if line.startswith(key)]


def stands_in(sentence: Sentence, passages: Sequence[frozenset[str]]) -> bool:
    words = sentence.stems
    return any(len(words & passage) >= SAME_PASSAGE * len(words) for passage in passages)


def judge(question: Mapping[str, Any], text: str, sources: Mapping[int, str], pages: Mapping[str, str]) -> Judged:
    """Judge one report; `pages` are the texts of the web by their address."""
    sentences = read_report(text, sources)
    gold = [(part["page"], find_passages(pages[part["page"]], part["keys"])) for part in question["parts"]]
    near = [(other["page"], find_passages(pages[other["page"]], other["keys"])) for other in question["related"]]
    covered = sum(any(page in s.pages and stands_in(s, passages) for s in sentences) for page, passages in gold)
    stray = [s.text for s in sentences if not any(page in s.pages and stands_in(s, found) for page, found in (*gold, *near))]
    return Judged(len(gold), covered, len(sentences), tuple(stray), count_doubles(sentences))


def count_doubles(sentences: Sequence[Sentence]) -> int:
    words = [s.stems for s in sentences]
    return sum(any(_repeats(mine, other) for other in words[:index]) for index, mine in enumerate(words))


def _repeats(mine: frozenset[str], other: frozenset[str]) -> bool:
    return bool(mine) and len(mine & other) >= SAME_SENTENCE * len(mine | other)


async def research_all(
    base_url: str, home: Path, questions: Sequence[Mapping[str, Any]], model: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """One question at a time, each with a Nexi of its own."""
    allowed = (base_url.removeprefix("http://"),)
    config = Config(
        searxng_url=base_url, allow_private=allowed, home=home, page_cache=False, knowledge=False, verify_judge=False, **model
    )
    return {q["id"]: await report_on(config, q, "research") for q in questions}


def summarise(model: str, web: str, replies: Sequence[Mapping[str, Any]], judged: Sequence[Judged]) -> dict[str, Any]:
    count = max(1, len(replies))
    sentences = max(1, sum(j.sentences for j in judged))

    def mean(name: str) -> float:
        return sum(reply.get(name, 0) for reply in replies) / count

    return {
        "model": model,
        "web": web,
        "asked": len(replies),
        "parts": sum(j.parts for j in judged),
        "covered": 100 * sum(j.covered for j in judged) / max(1, sum(j.parts for j in judged)),
        "stray": 100 * sum(len(j.stray) for j in judged) / sentences,
        "doubles": 100 * sum(j.doubles for j in judged) / sentences,
        "verified": 100 * mean("verified") / (mean("checked") or 1),
        "words": sum(len(reply["answer"].split()) for reply in replies) / count,
        "sections": mean("sections"),
        "cited": sum(len(reply.get("citations", ())) for reply in replies) / count,
        "pages": sum(len(reply.get("fetched", ())) for reply in replies) / count,
        "calls": mean("calls"),
        "tokens": mean("tokens"),
        "seconds": mean("seconds"),
    }


def render_row(figures: Mapping[str, Any]) -> str:
    return "| " + " | ".join(f"{figures[h]:.1f}" if isinstance(figures[h], float) else str(figures[h]) for h in HEADS) + " |"


def measure_web(
    web: str,
    source: Path,
    questions: Sequence[Mapping[str, Any]],
    researching: Callable[[], AbstractContextManager[dict[str, Any]]],
) -> tuple[list[dict[str, Any]], list[Judged]]:
    pages = {page["url"]: miniweb.html_to_text(page["html"]) for page in miniweb.read_jsonl(source, "pages.jsonl")}
    with tempfile.TemporaryDirectory() as home, miniweb.serve(source) as base_url, researching() as model:
        replies = asyncio.run(research_all(base_url, Path(home), questions, model))
    keep(f"rubric-{web}", replies)
    judged = []
    for question in questions:
        reply = replies[question["id"]]
        sources = {int(number): canonical(url) for number, url in reply.get("sources", {}).items()}
        judged.append(judge(question, reply["answer"], sources, pages))
    return list(replies.values()), judged


@contextmanager
def researching(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The settings of the model that researches."""
    if options.base_url:
        yield {"model": options.model, "base_url": options.base_url, "max_context": options.context, "llm_timeout": 900.0}
    elif options.scripted:
        with scripted_llm.serve(scripted_llm.Script(3) if options.one_call else SectionScript(3)) as root:
            yield {"model": "scripted", "base_url": f"{root}/v1"}
    else:
        yield {"model": "extractive"}


def name_model(options: argparse.Namespace) -> str:
    if options.base_url:
        return str(options.name or options.model)
    return f"scripted, {'one call' if options.one_call else 'sections'}" if options.scripted else "built-in"


def merge_rows(saved: str, fresh: Sequence[str]) -> list[str]:
    """The rows of a saved table with fresh ones, which replace those of the same model."""
    models = {row.split("|")[1] for row in fresh}
    old = [row for row in saved.splitlines() if row.startswith("| ") and not row.startswith("| model ")]
    return [*(row for row in old if row.split("|")[1] not in models), *fresh]


def find_problems(figures: Mapping[str, Any], *, sampled: bool) -> list[str]:
    slack = SAMPLE_ALLOWANCE if sampled else 0.0
    problems = []
    if figures["covered"] < MIN_COVERED - slack:
        problems.append(f"rubric: {figures['covered']:.1f} % of the parts are covered, not {MIN_COVERED:.0f}")
    if figures["stray"] > MAX_STRAY + slack:
        problems.append(f"rubric: {figures['stray']:.1f} % of the sentences are stray, more than {MAX_STRAY:.0f}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N questions in all, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the webs")
    parser.add_argument("--scripted", action="store_true", help="let the rig's scripted model research; it has no limits")
    parser.add_argument("--one-call", action="store_true", help="let the scripted model write its report in one call")
    parser.add_argument("--base-url", default="", help="let a model behind an OpenAI-compatible server research")
    parser.add_argument("--model", default="", help="the name that server knows it by")
    parser.add_argument("--name", default="", help="its name in the table")
    parser.add_argument("--context", type=int, default=8192, help="its context in tokens")
    parser.add_argument("--show", action="store_true", help="print what each report covers, and its stray sentences")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    sources = {web: find_source(options.data, web) for web in WEBS}
    if not all(sources.values()):
        print(f"rubric: the mini-webs are not in {options.data}; give their folder with --data")
        return 0
    questions = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    sampled = 0 < options.sample < len(questions)
    questions = random.Random(SEED).sample(questions, options.sample) if sampled else questions
    model, rows = name_model(options), []
    replies: list[dict[str, Any]] = []
    judged: list[Judged] = []
    for web, source in sources.items():
        own = [q for q in questions if q["web"] == web]
        if source is None or not own:
            continue
        more, its = measure_web(web, source, own, partial(researching, options))
        replies, judged = replies + more, judged + its
        rows.append(render_row(summarise(model, web, more, its)))
        for question, found in zip(own, its, strict=True) if options.show else ():
            print(f"{question['id']} {found.covered}/{found.parts} of {found.sentences}: {question['question']}")
            print("".join(f"    stray: {text}\n" for text in found.stray), end="")
    figures = summarise(model, "all", replies, judged)
    rows.append(render_row(figures))
    head = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    print("\n".join([*head, *rows]))
    if options.save:
        saved = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
        TABLE.write_text(HEAD + "\n".join([*head, *merge_rows(saved, rows)]) + "\n", encoding="utf-8")
    is_limited = not (options.scripted or options.base_url)
    problems = find_problems(figures, sampled=sampled) if is_limited else []
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
