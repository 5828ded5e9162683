"""How well disagreements between pages are found, and how often one is seen where there is none.

    python -m evals.conflicts [--web dev] [--count 200] [--save] [--data DIR]

A sentence of a mini-web's page is taken as a sentence of an answer. Another page gets a changed copy of it: with another number
or date, said in a frame or in other words, or denied. Such changes must be found. Copies that mean the same, speak of somebody
else or of another year must not be. The pages without any change show how often the web itself raises an alarm. Ends with exit
code 1 where what must be found surely falls below its floor, or what must be quiet rises above its limit.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evals.answers import DATA, find_source
from nexi.bench import wilson_share
from nexi.checking.alignment import has_negation
from nexi.checking.conflicts import find_conflicts
from nexi.checking.pages import ParsedText, Snapshot, parse_text, prepare
from nexi.checking.values import Number
from nexi.formats import extract
from nexi.types import Claim, Evidence, Verdict
from rig import miniweb

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "evals" / "conflicts.md"
WEBS = ("dev", "multi")
SEED = 5
PAGES = 5
FOUND, QUIET = "must be found", "must be quiet"
# Per cent that must be shown at least, and that may be shown at most, where the interval of the sample leaves no doubt.
FLOORS = {
    "another value": 90.0,
    "another value, in a frame": 90.0,
    "another value, in other words": 80.0,
    "another value, in a shorter sentence": 85.0,
    "denied": 95.0,
}
LIMITS = {"the same": 3.0, "another value, of another subject": 10.0, "nothing planted": 3.0}
FRAMES = ("According to a later survey, {}", "Most guides agree on this: {}", "It is often said that {}")
OTHER_WORDS = {
    "built": "constructed", "about": "around", "many": "numerous", "large": "big", "began": "started", "begin": "start",
    "shows": "displays", "used": "employed", "often": "frequently", "became": "turned into", "help": "aid", "made": "produced",
    "people": "persons", "city": "town", "killed": "slain", "founded": "established", "wrote": "penned", "won": "gained",
    "several": "some", "main": "chief", "also": "too", "near": "close to", "including": "among them", "ended": "finished",
}  # fmt: skip
NAMES = ("Ardenholm", "Velmora", "Castrique", "Ostrava-Lund")

Change = Callable[[str, ParsedText, random.Random], str]


def swapped(text: str, reading: ParsedText, dice: random.Random) -> str:
    """Another number or another year; everything else stays."""
    fact = _fact(reading)
    if fact is None:
        return ""
    written = reading.text[fact.start : fact.end]
    digits = re.search(r"\d[\d,]*(?:\.\d+)?", written)
    if digits is None:
        return ""
    value = digits[0]
    if isinstance(fact, Number) and fact.year:
        new = str(int(value) + dice.choice((-23, -9, -4, 6, 17, 31)))
    else:
        number = float(value.replace(",", ""))
        grown = number * dice.choice((1.34, 1.6, 0.7, 2.3))
        if "." in value:
            new = f"{grown:.{len(value.partition('.')[2])}f}"
        else:
            new = f"{max(1, round(grown)):,}" if "," in value else str(max(1, round(grown)))
        new = new if new != value else str(round(number) + 3)
    changed = written.replace(value, new, 1)
    return reading.text[: fact.start] + changed + reading.text[fact.end :]


def framed(text: str, reading: ParsedText, dice: random.Random) -> str:
    other = swapped(text, reading, dice)
    return dice.choice(FRAMES).format(other) if other else ""


def reworded(text: str, reading: ParsedText, dice: random.Random) -> str:
    other = swapped(text, reading, dice)
    said = " ".join(OTHER_WORDS.get(word, word) for word in other.split(" "))
    return said if said != other else ""


def shortened(text: str, reading: ParsedText, dice: random.Random) -> str:
    """Another value, in the first clause that has it alone."""
    fact, other = _fact(reading), swapped(text, reading, dice)
    cut = re.compile(r",? (?:and|which|who|where|with|but|while|after|before|directed|starring)\b|[,;(]").search(
        other, fact.end + 4
    )
    if not other or cut is None or len(other[: cut.start()].split()) < 6 or cut.start() > 0.8 * len(other):
        return ""
    return f"{other[: cut.start()]}."


def denied(text: str, reading: ParsedText, dice: random.Random) -> str:
    other = re.sub(r"\b(is|was|are|were|has|had|can|could|will|would)\b", r"\1 not", text, count=1)
    return other if other != text and not has_negation(reading) else ""


def same(text: str, reading: ParsedText, dice: random.Random) -> str:
    return dice.choice(FRAMES).format(text)


def other_form(text: str, reading: ParsedText, dice: random.Random) -> str:
    """1,200 as 1200 and 1200 as 1,200."""
    fact = _fact(reading)
    if not isinstance(fact, Number) or fact.year:
        return ""
    written = reading.text[fact.start : fact.end]
    new = written.replace(",", "") if "," in written else re.sub(r"\b\d{4,}\b", lambda m: f"{int(m[0]):,}", written)
    return reading.text[: fact.start] + new + reading.text[fact.end :] if new != written else ""


def rounded(text: str, reading: ParsedText, dice: random.Random) -> str:
    fact = _fact(reading)
    if not isinstance(fact, Number) or fact.year or fact.values[0] < 1000 or fact.scale != 1.0:
        return ""
    size = 10 ** (len(str(int(fact.values[0]))) - 2)
    written = reading.text[fact.start : fact.end]
    new = re.sub(r"\d[\d,]*(?:\.\d+)?", f"{round(fact.values[0] / size) * size:,}", written, count=1)
    return reading.text[: fact.start] + "about " + new + reading.text[fact.end :] if new != written else ""


def other_subject(text: str, reading: ParsedText, dice: random.Random) -> str:
    other = swapped(text, reading, dice)
    runs = reading.names
    if not runs or not other:
        return ""
    name = reading.text[runs[0][0].start : runs[0][-1].end]
    return other.replace(name, dice.choice(NAMES)) if name in other else ""


def other_time(text: str, reading: ParsedText, dice: random.Random) -> str:
    """Another number for another year is no disagreement."""
    years = [n for n in reading.numbers if n.year]
    if len(years) != 1 or len(reading.numbers) < 2:
        return ""
    other = swapped(text, reading, dice)
    year = years[0].text
    return other.replace(year, str(int(year) + 11)) if year in other else ""


CHANGES: dict[str, tuple[str, Change]] = {
    "another value": (FOUND, swapped),
    "another value, in a frame": (FOUND, framed),
    "another value, in other words": (FOUND, reworded),
    "another value, in a shorter sentence": (FOUND, shortened),
    "denied": (FOUND, denied),
    "the same": (QUIET, same),
    "the same number, written otherwise": (QUIET, other_form),
    "the same number, rounded": (QUIET, rounded),
    "another value, of another subject": (QUIET, other_subject),
    "another value, of another year": (QUIET, other_time),
}


def _fact(reading: ParsedText) -> Any:
    """The one value of a sentence that has a single one of its kind: a measure, else a year."""
    firm = [n for n in reading.numbers if not n.is_weak and not n.is_ordinal and not n.year and re.search(r"\d", n.text)]
    years = [n for n in reading.numbers if n.year]
    if len(firm) == 1:
        return firm[0]
    return years[0] if len(years) == 1 and not firm and not reading.dates else None


class Web:
    """The pages of a mini-web, prepared when they are looked at, and its search."""

    def __init__(self, source: Path) -> None:
        self._rows = miniweb.read_jsonl(source, "pages.jsonl")
        self._corpus = miniweb.load(source)
        self._prepared: dict[int, Snapshot] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def page(self, number: int) -> Snapshot:
        if number not in self._prepared:
            row = self._rows[number]
            text = extract(row["html"].encode(), "text/html", row["url"]).text
            self._prepared[number] = prepare(text, row["url"])
        return self._prepared[number]

    def title(self, number: int) -> str:
        return str(self._rows[number]["title"])

    def near(self, text: str, besides: int) -> list[int]:
        """The pages that a search for a sentence finds."""
        return [at for at, _ in self._corpus.search(text, PAGES + 1)[1] if at != besides][:PAGES]


def sentences(web: Web, count: int, dice: random.Random) -> Iterator[tuple[int, str]]:
    """Sentences with one value and a name, from all over the web, a few of each page at most."""
    order = list(range(len(web)))
    dice.shuffle(order)
    places = [(at, dice.randrange(max(1, len(web.page(at).bounds)))) for _ in range(4) for at in order]
    for at, place in places:
        page = web.page(at)
        text = " ".join(page.words_between(place, place).split()) if page.bounds else ""
        if not (8 <= len(text.split()) <= 35 and text[:1].isupper() and text[-1:] == "."):
            continue
        reading = parse_text(text)
        if _fact(reading) is not None and reading.names:
            yield at, text
            count -= 1
        if not count:
            return


def with_sentence(page: Snapshot, text: str) -> Snapshot:
    """The page with a sentence in its middle."""
    lines = page.text.split("\n")
    lines.insert(len(lines) // 2, f"\n{text}\n")
    return prepare("\n".join(lines), page.url)


def measure(web: Web, count: int) -> tuple[dict[str, tuple[int, int]], tuple[int, int], list[str]]:
    dice = random.Random(SEED)
    seen: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    alarms = asked = 0
    wrong: list[str] = []
    for at, text in sentences(web, count, dice):
        claim = Claim(0, f"{text} [1]", 0, len(text), Verdict.FOUND, True, "", (Evidence(1, verdict=Verdict.FOUND),))
        numbers = dict(enumerate([at, *web.near(text, at)], 1))
        plain = {number: web.page(i) for number, i in numbers.items()}
        titles = {number: web.title(i) for number, i in numbers.items()}
        if len(plain) < 3:
            continue
        natural = find_conflicts(text, [claim], plain, titles)
        asked, alarms = asked + 1, alarms + bool(natural)
        wrong += [f"nothing planted: {conflict.sentence()}" for conflict in natural]
        for name, (_, change) in CHANGES.items():
            if other := change(text, parse_text(text), dice):
                found = find_conflicts("", [claim], {**plain, 2: with_sentence(plain[2], other)}, {**titles, 2: titles[1]})
                hit = any(2 in reading.numbers for conflict in found for reading in conflict.readings)
                seen[name][0] += hit
                seen[name][1] += 1
                if hit != (CHANGES[name][0] == FOUND):
                    wrong.append(f"{name}: {text} | {other}")
    return {name: (hit, total) for name, (hit, total) in seen.items()}, (alarms, asked), wrong


def table(web: str, figures: dict[str, tuple[int, int]], natural: tuple[int, int]) -> list[str]:
    lines = []
    for name, (wanted, _) in CHANGES.items():
        hit, total = figures.get(name, (0, 0))
        part = wilson_share(hit, total)
        lines.append(f"| {web} | {name} | {wanted} | {total} | {part.percent:.1f} ({part.low:.0f} to {part.high:.0f}) |")
    part = wilson_share(*natural)
    lines.append(
        f"| {web} | nothing planted | {QUIET} | {natural[1]} | {part.percent:.1f} ({part.low:.0f} to {part.high:.0f}) |"
    )
    return lines


def find_failures(web: str, figures: dict[str, tuple[int, int]], natural: tuple[int, int]) -> list[str]:
    """What is shown too seldom or too often, beyond the chance of the sample."""
    shares = {name: wilson_share(*counts) for name, counts in (*figures.items(), ("nothing planted", natural))}
    low = [
        f"{web}: {name} is shown in at most {share.high:.0f} %"
        for name, share in shares.items()
        if share.high < FLOORS.get(name, 0)
    ]
    return low + [
        f"{web}: {name} is shown in at least {share.low:.0f} %"
        for name, share in shares.items()
        if share.low > LIMITS.get(name, 100)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Disagreements between pages: found where planted, quiet elsewhere.")
    parser.add_argument("--web", choices=WEBS, action="append")
    parser.add_argument("--count", type=int, default=200, help="sentences of each web")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--verbose", action="store_true", help="name what went wrong")
    parser.add_argument("--save", action="store_true", help="write evals/conflicts.md")
    args = parser.parse_args()
    failures: list[str] = []
    lines = ["| web | what another page says | | n | shown % (95 %) |", "|---|---|---|---|---|"]
    for web in args.web or WEBS:
        source = find_source(args.data, web)
        if source is None:
            print(f"evals: the mini-web {web} is not in {args.data}; give its folder with --data")
            continue
        figures, natural, wrong = measure(Web(source), args.count)
        lines += table(web, figures, natural)
        failures += find_failures(web, figures, natural)
        if args.verbose:
            print("\n".join(f"{web}, {line}" for line in wrong), file=sys.stderr)
    print("\n".join(lines))
    if args.save:
        head = "# Disagreements between pages\n\nMade by `python -m evals.conflicts --save`; the file has the recipe.\n\n"
        RESULTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(*failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
