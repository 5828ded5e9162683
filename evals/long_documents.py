"""Whether a fact is found and cited wherever it stands in a document of any length, through every door.

    python -m evals.long_documents [--length 5 100 1000 5000] [--door web model file local] [--facts 4] [--save]

Writes documents of many chapters in which every sentence has the form of a fact about some invented town, asks for facts that
stand at chosen places, and counts the answers that say the fact, cite the document and pass the check. `web` is a page over
HTTP, found by a search; `model` the same with the rig's scripted model, which sees only what the tools give it; `file` a file
given with the question; `local` a stored file. A cell of a long document below the short one ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.answers import ROOT, answering
from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.app.request import RunRequest, RunScope
from nexi.config import Config
from nexi.errors import NexiError
from rig import miniweb

RESULTS = ROOT / "evals" / "long_documents.md"
SEED = 19
LENGTHS = (5, 100, 1000, 5000)  # thousands of characters
PLACES = (0, 25, 50, 75, 99)  # per cent of the document
DOORS = ("web", "model", "file", "local")
PAGE = "http://annals.example/annals"
TITLE = "Annals of the northern towns"
SHORT_DOCUMENT = min(LENGTHS)
THINGS = ("lighthouse", "granary", "windmill", "ferry", "library", "tannery", "observatory", "brewery", "cistern", "playhouse")
DEEDS = ("painted", "rebuilt", "surveyed", "endowed", "roofed", "heated", "repaired", "mapped", "insured")
UNITS = ("barrels", "benches", "lanterns", "ledgers", "anchors", "carts")
NAMES = ("Ada Lund", "Piet Okker", "Maren Voss", "Tilo Brandt", "Ines Kaldor", "Rune Falk", "Oda Strand", "Emil Rask")
SYLLABLES = re.findall("[a-z]+", "quib bar ton mel dra vik sund holm fen gar ost lin mor wyn keld thorn ask rav ulv brom")


@dataclass(frozen=True)
class PlantedFact:
    """A sentence of a document, the question it answers and the words the answer must say."""

    sentence: str
    question: str
    gold: str
    place: int


@dataclass
class Cell:
    asked: int = 0
    answered: int = 0
    verified: int = 0
    seconds: float = 0.0


def make_fact(random_: random.Random, town: str, kind: int, place: int = -1) -> PlantedFact:
    thing, deed, person = random_.choice(THINGS), random_.choice(DEEDS), random_.choice(NAMES)
    year, count, unit = random_.randint(1650, 1930), random_.randint(12, 980), random_.choice(UNITS)
    if kind == 0:
        sentence = f"The {thing} of {town} was {deed} by {person} in the spring of {year}."
        return PlantedFact(sentence, f"Who {deed} the {thing} of {town}?", person, place)
    if kind == 1:
        sentence = f"In {year} the council of {town} opened its first {thing} beside the harbour."
        return PlantedFact(sentence, f"When did {town} open its first {thing}?", str(year), place)
    if kind == 2:
        sentence = f"The {thing} at {town} keeps {count} {unit} in its lower hall."
        return PlantedFact(sentence, f"How many {unit} does the {thing} at {town} keep?", str(count), place)
    sentence = f"Visitors reach the {thing} of {town} by the {random_.choice(SYLLABLES)}{random_.choice(SYLLABLES)} causeway."
    return PlantedFact(sentence, f"How do visitors reach the {thing} of {town}?", sentence.split()[-2], place)


def name_towns(random_: random.Random) -> Iterator[str]:
    """Names of towns, each once."""
    seen: set[str] = set()
    while True:
        name = "".join(random_.choice(SYLLABLES) for _ in range(random_.randint(2, 4))).capitalize()
        if name not in seen:
            seen.add(name)
            yield name


def write_document(length: int, facts_per_place: int) -> tuple[str, list[PlantedFact]]:
    """A Markdown document of about `length` thousand characters, and the facts in it that are asked for."""
    random_ = random.Random(SEED)
    towns = name_towns(random_)
    facts = [make_fact(random_, next(towns), n % 4, place) for place in PLACES for n in range(facts_per_place)]
    target, planted = length * 1000, sum(len(f.sentence) for f in facts)
    blocks, size, waiting = [f"# {TITLE}"], 0, list(facts)
    while size < target - planted or waiting:
        town = next(towns)
        section = [f"## The town of {town}"] if len(blocks) % 3 == 1 else []
        sentences = [make_fact(random_, next(towns), random_.randrange(4)).sentence for _ in range(5)]
        if waiting and size >= waiting[0].place / 100 * (target - planted):
            sentences.insert(random_.randrange(6), waiting.pop(0).sentence)
        blocks += [*section, " ".join(sentences)]
        size += sum(map(len, blocks[-1 - len(section) :]))
    return "\n\n".join(blocks), facts


def to_html(markdown: str) -> str:
    parts = []
    for block in markdown.split("\n\n"):
        level = len(block) - len(block.lstrip("#"))
        tag = f"h{level}" if level else "p"
        parts.append(f"<{tag}>{html.escape(block.lstrip('# '))}</{tag}>")
    return f"<html><head><title>{TITLE}</title></head><body><main>{''.join(parts)}</main></body></html>"


async def ask(config: Config, request: RunRequest, fact: PlantedFact, cell: Cell) -> None:
    started = time.process_time()
    cell.asked += 1
    try:
        async with Nexi(config) as nexi:
            result = await nexi.answer(request)
    except NexiError as error:
        print(f"  {fact.question}: {error}", file=sys.stderr)
        return
    text = result.answer.text
    is_answered = fact.gold in text and bool(result.answer.sources) and "[1]" in text
    cell.answered += is_answered
    cell.verified += is_answered and "[unverified]" not in text
    cell.seconds += time.process_time() - started
    if not is_answered or "[unverified]" in text:
        print(f"  {fact.place} % {fact.question} ({fact.gold}): {text[:200]!r}", file=sys.stderr)


async def ask_all(door: str, config: Config, document: str, facts: Sequence[PlantedFact]) -> dict[int, Cell]:
    cells: dict[int, Cell] = defaultdict(Cell)
    path = config.root / "annals.md"
    path.write_text(document, encoding="utf-8")
    if door == "local":
        async with Nexi(config) as nexi:
            await DocumentIndexing(nexi, nexi.knowledge()).take(str(path))
    for fact in facts:
        attachments = (str(path),) if door == "file" else ()
        scope: RunScope = "local" if door in ("file", "local") else "both"
        request = RunRequest(fact.question, scope=scope, attachments=attachments)
        await ask(config, request, fact, cells[fact.place])
    return dict(cells)


def measure(door: str, length: int, facts_per_place: int) -> dict[int, Cell]:
    document, facts = write_document(length, facts_per_place)
    page = {"url": PAGE, "title": TITLE, "html": to_html(document)}
    with (
        tempfile.TemporaryDirectory() as home,
        miniweb.serve(miniweb.Corpus([page])) as base_url,
        answering(door == "model") as model,
    ):
        config = Config(
            searxng_url=base_url,
            allow_private=(base_url.removeprefix("http://"),),
            home=Path(home),
            page_cache=False,
            knowledge=door in ("file", "local"),
            verify_judge=False,
            **model,
        )
        return asyncio.run(ask_all(door, config, document, facts))


def render_rows(door: str, length: int, cells: dict[int, Cell]) -> str:
    shown = [f"{cells[p].answered}/{cells[p].verified}/{cells[p].asked}" for p in PLACES]
    seconds = sum(c.seconds for c in cells.values()) / max(1, sum(c.asked for c in cells.values()))
    return f"| {door} | {length} | " + " | ".join(shown) + f" | {seconds:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Facts at any place of documents of any length.")
    parser.add_argument("--length", type=int, nargs="+", default=LENGTHS, help="thousands of characters")
    parser.add_argument("--door", choices=DOORS, nargs="+", default=DOORS)
    parser.add_argument("--facts", type=int, default=4, help="facts at each place")
    parser.add_argument("--save", action="store_true", help="write evals/long_documents.md")
    args = parser.parse_args()
    lines = ["| door | thousand characters | " + " | ".join(f"{p} %" for p in PLACES) + " | CPU seconds |", "|---" * 8 + "|"]
    print("\n".join(lines))
    worse = []
    for door in args.door:
        short = None
        for length in args.length:
            cells = measure(door, length, args.facts)
            lines.append(render_rows(door, length, cells))
            print(lines[-1], flush=True)
            found = sum(c.answered for c in cells.values())
            short = found if short is None else short
            worse += [f"{door} {length}: {found} found, {short} in the short document"] if found < short else []
    if args.save:
        RESULTS.write_text(
            "# A fact at any place of a document of any length\n\n"
            f"Made by `python -m evals.long_documents --facts {args.facts} --save`. Every sentence of a document has the form\n"
            "of a fact about some invented town. A cell has the answers that say the fact and cite the document, those of\n"
            "them with nothing marked as unverified, and the questions. The built-in model answers; `model` is the rig's\n"
            "scripted model, which sees only what the tools give it. CPU seconds are for one question.\n\n"
            + "\n".join(lines)
            + "\n",
            encoding="utf-8",
        )
    for problem in worse:
        print(problem, file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
