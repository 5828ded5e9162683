"""Own sources: what it costs to index a large vault or library, and how often the right note is among the first three.

    python -m evals.own_sources vault --save
    python -m evals.own_sources zotero --save

Notes and records are made here from a seed, with invented names, so that nothing was tuned to them. A note mentions others by
name, which are the wrong answers; a third of the questions use the title, a third an alias and a third a tag with words of
the note. No network and no model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import resource
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.config import Config
from nexi.types import Query

TABLE = Path(__file__).with_name("own_sources.md")
NOTES, ITEMS, QUESTIONS, SEED = 10_000, 2_000, 60, 36
TOP = 3
WORDS = {
    "syllable": "ba bre cal dor el fen gar hol is jun kel lor mar nev or pel quin ras sol tam ur vel wes yar zin",
    "kind": "bridge recipe meeting orchard engine harbour library festival quarry kiln lighthouse archive workshop",
    "place": "north south coast valley island market station castle river forest",
    "colour": "red blue green grey white ochre black yellow",
    "work": "painted repaired measured inspected sold rented insured photographed surveyed moved",
    "thing": "door roof crane pump ledger gate boiler fence sign ladder cellar stove window mast",
}


class Made(NamedTuple):
    """One made-up note: how it is called, how else, under which tag, and what it says."""

    name: str
    alias: str
    tag: str
    thing: str
    work: str
    text: str


class Question(NamedTuple):
    """A question, the title of the note that answers it, and what it was asked by."""

    text: str
    title: str
    by: str


def make_notes(count: int) -> list[Made]:
    draw = random.Random(SEED)
    names = list(dict.fromkeys(f"{_word(draw)} {_pick(draw, 'kind')}".capitalize() for _ in range(count * 2)))[:count]
    return [_make_note(draw, name, names) for name in names]


def _pick(draw: random.Random, kind: str) -> str:
    return draw.choice(WORDS[kind].split())


def _word(draw: random.Random) -> str:
    return "".join(_pick(draw, "syllable") for _ in range(draw.randint(2, 4)))


def _make_note(draw: random.Random, name: str, names: Sequence[str]) -> Made:
    thing, work = _pick(draw, "thing"), _pick(draw, "work")
    tag = f"{_pick(draw, 'place')}/{_word(draw)}"
    alias = f"{_word(draw).capitalize()} {_word(draw)}"
    lines = [
        f"The {thing} was {work} by {_word(draw).capitalize()} in {draw.randint(1950, 2025)}.",
        *(
            f"{draw.choice(['Its', 'The'])} {_pick(draw, 'thing')} is {_pick(draw, 'colour')}, {draw.randint(2, 90)} metres "
            f"from [[{draw.choice(names)}]]."
            for _ in range(draw.randint(4, 12))
        ),
        f"Compare [[{draw.choice(names)}|the other one]] and [[{draw.choice(names)}]].",
    ]
    draw.shuffle(lines)
    return Made(name, alias, tag, thing, work, "\n\n".join(lines))


def ask_about(notes: Sequence[Made]) -> Iterator[Question]:
    draw = random.Random(SEED + 1)
    for number, note in enumerate(draw.sample(list(notes), QUESTIONS)):
        match number % 3:
            case 0:
                yield Question(f"When was the {note.thing} of the {note.name} {note.work}?", note.name, "title")
            case 1:
                yield Question(f"Who {note.work} the {note.thing} of {note.alias}?", note.name, "alias")
            case _:
                yield Question(f"the {note.thing} that was {note.work} #{note.tag}", note.name, "tag")


def write_vault(notes: Sequence[Made], folder: Path) -> None:
    (folder / ".obsidian").mkdir(parents=True)
    for number, note in enumerate(notes):
        place = folder / f"{number % 50:02}"
        place.mkdir(exist_ok=True)
        front = f"---\naliases:\n  - {note.alias}\ntags: [{note.tag}]\ncreated: 2026-01-{number % 28 + 1:02}\n---\n"
        (place / f"{note.name}.md").write_text(f"{front}# {note.name}\n\n{note.text}\n")


def ask_about_items(notes: Sequence[Made]) -> Iterator[Question]:
    draw = random.Random(SEED + 2)
    for number, note in enumerate(draw.sample(list(notes), QUESTIONS)):
        match number % 3:
            case 0:
                yield Question(f"When was the {note.thing} of the {note.name} {note.work}?", note.name, "title")
            case 1:
                yield Question(f"What does {note.alias} say of the {note.thing}?", note.name, "author")
            case _:
                yield Question(f"the {note.thing} that was {note.work} {note.tag}", note.name, "tag")


def write_export(notes: Sequence[Made], file: Path) -> None:
    entries = [
        {
            "id": f"http://zotero.org/users/1/items/{number:08}",
            "type": "article-journal",
            "title": note.name,
            "author": [dict(zip(("given", "family"), note.alias.split(), strict=True))],
            "issued": {"date-parts": [[1990 + number % 35]]},
            "abstract": note.text.replace("[[", "").replace("]]", ""),
            "keyword": note.tag,
        }
        for number, note in enumerate(notes)
    ]
    file.write_text(json.dumps(entries))


async def measure(config: Config, target: str, questions: Sequence[Question]) -> tuple[float, float, dict[str, list[bool]]]:
    """CPU seconds to index and for one question, and by what each question was asked whether its note was found."""
    async with Nexi(config) as nexi:
        started = _cpu()
        taking = DocumentIndexing(nexi, nexi.knowledge(), embeds=False)
        await taking.take(target)
        indexed = _cpu()
        results: dict[str, list[bool]] = {}
        for question in questions:
            hits = (await nexi.find_known(Query(question.text, count=TOP))).hits
            results.setdefault(question.by, []).append(question.title in [hit.title for hit in hits[:TOP]])
        return indexed - started, (_cpu() - indexed) / len(questions), results


def _cpu() -> float:
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def render_row(name: str, index_s: float, question_s: float, results: dict[str, list[bool]]) -> str:
    rows = [hit for hits in results.values() for hit in hits]
    by = ", ".join(f"{kind} {sum(hits)} of {len(hits)}" for kind, hits in results.items())
    share = 100 * sum(rows) / len(rows)
    return f"| {name} | {index_s:.1f} s | {1000 * question_s:.0f} ms | {sum(rows)} of {len(rows)} ({share:.0f} %) | {by} |"


def save_row(row: str) -> None:
    """Put a row into the table, in place of an earlier one of the same name."""
    head = [
        "# Own sources: indexing and finding",
        "",
        "`python -m evals.own_sources vault --save` and `zotero --save`; made from a seed with invented names, no model, words",
        f"alone. {platform.machine()}, Python {platform.python_version()}.",
        "",
        "| source | CPU to index | CPU for a question | right one among the first three | by |",
        "|---|---|---|---|---|",
    ]
    name = row.partition(" | ")[0]
    kept = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")][1:] if TABLE.exists() else []
    rows = sorted({*(line for line in kept if line.partition(" | ")[0] != name), row})
    TABLE.write_text("\n".join([*head, *rows]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["vault", "zotero"])
    parser.add_argument("--count", type=int)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    is_vault = given.kind == "vault"
    notes = make_notes(given.count or (NOTES if is_vault else ITEMS))
    questions = list(ask_about(notes) if is_vault else ask_about_items(notes))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / ("vault" if is_vault else "library.json")
        (write_vault if is_vault else write_export)(notes, target)
        config = Config(home=Path(folder) / "home", model="extractive")
        name = f"vault of {len(notes):,} notes" if is_vault else f"Zotero library of {len(notes):,} items (CSL-JSON)"
        row = render_row(name, *asyncio.run(measure(config, str(target), questions)))
    print(row)
    if given.save:
        save_row(row)


if __name__ == "__main__":
    main()
