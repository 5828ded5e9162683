"""Own files in dated versions: whether a value that no longer holds is shown as the current one.

    python -m evals.versions [--sample 12] [--show]

Writes 150 files: 30 things, each in five documents that differ in date, version, period or standing, as a title, a file name, a
folder, front matter or a line says; of some, the last one holds only later. Each thing is asked about without a time, about
now, and about one of its periods.
A stale value in the answer, outside the line that names older sources, ends with exit code 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date

from evals.own_documents import ask_documents
from nexi.types import Answer

SEED = 33
THINGS = (
    ("Marlow Freight", "pallet fee", "€{}", "The pallet fee of Marlow Freight is {}."),
    ("Ewell Library", "loan limit", "{} books", "At the Ewell Library the loan limit is {}."),
    ("Orsa Ferry", "ticket price", "£{}", "Orsa Ferry asks for a ticket price of {}."),
    ("Tarn Energy", "standing charge", "{} cents", "Customers of Tarn Energy pay a standing charge of {}."),
)
FORMS = {
    "date": 4,
    "version": 3,
    "standing": 3,
    "period": 2,
    "letter": 3,
    "folder": 3,
    "effective": 3,
    "year": 3,
    "announced": 3,
    "next year": 3,
}  # things of each
FILES = 5
_OTHER_TIMES = re.compile(r"^(?:Older sources|Sources for)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A thing in five documents. `current` holds; `asked` are questions with the value that answers each."""

    files: dict[str, str]
    asked: dict[str, str]
    values: tuple[str, ...]


def make_cases(seed: int = SEED) -> list[Case]:
    dice = random.Random(seed)
    cases = []
    for form, count in FORMS.items():
        for place, (owner, noun, unit, sentence) in enumerate(THINGS[:count]):
            numbers = dice.sample(range(11, 99), FILES)
            values = tuple(unit.format(number) for number in numbers)
            cases.append(_make_case(form, f"{owner}", noun, sentence, values, place))
    return cases


def _make_case(form: str, owner: str, noun: str, sentence: str, values: tuple[str, ...], place: int) -> Case:
    files, slug = {}, noun.replace(" ", "-")
    for n, value in enumerate(values):
        text = sentence.format(value) if n % 2 else f"For {owner}, the {noun} was set to {value}."
        year = 2020 + n
        match form:
            case "date":
                files[f"{slug}-{'abcde'[n]}.md"] = f"---\ndate: {year}-0{place + 1}-15\n---\n# {owner}: {noun}\n\n{text}\n"
            case "version":
                files[f"{slug}-v{n + 7}.md"] = f"# {owner} {noun} v{n + 7}\n\n{text}\n"
            case "standing":
                mark = ("SUPERSEDED: ", "Draft: ", "ARCHIVED: ", "OBSOLETE: ", "")[n]
                files[f"{slug}-{'abcde'[n]}.md"] = f"# {mark}{owner} {noun}\n\n{text}\n"
            case "letter":
                files[f"{slug}-rev-{'abcde'[n]}.md"] = f"# {owner} {noun}, Rev {'ABCDE'[n]}\n\n{text}\n"
            case "folder":
                files[f"{year}/{slug}.md"] = f"# {owner} {noun}\n\n{text}\n"
            case "effective":
                files[f"{slug}-{'abcde'[n]}.md"] = f"# {owner} {noun}\n\nEffective {place + 3} May {year}\n\n{text}\n"
            case "announced":
                day = f"{place + 3} May {year if n < FILES - 1 else 2098}"
                files[f"{slug}-{'abcde'[n]}.md"] = f"# {owner} {noun}\n\nEffective {day}\n\n{text}\n"
            case "next year":
                named_year = date.today().year + 2 - FILES + n
                files[f"{slug}-{named_year}.md"] = f"# {owner}: {noun} {named_year}\n\n{text}\n"
            case "year":
                files[f"{slug}-{year}.md"] = f"# {owner}: {noun} {year}\n\n{text}\n"
            case _:
                files[f"{slug}-{year}.md"] = f"# {owner} {noun}, fiscal {year}\n\n{text}\n"
    current = values[-2] if form in ("announced", "next year") else values[-1]
    asked = {f"What is the current {noun} of {owner}?": current}
    if form != "period":
        asked[f"What is the {noun} of {owner}?"] = current
    if form == "period":
        asked[f"What was the {noun} of {owner} in fiscal 2022?"] = values[2]
    return Case(files, asked, values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="only so many things")
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in make_cases()[: options.sample or None]:
        counts["files"] += len(case.files)
        for question, value in case.asked.items():
            answer = ask_documents(case.files, question)
            text = _OTHER_TIMES.split(answer.text)[0] if isinstance(answer, Answer) else ""
            stale = [other for other in case.values if other != value and other in text]
            counts["questions"] += 1
            counts["right"] += value in text
            counts["stale"] += bool(stale)
            if options.show and (stale or value not in text):
                print(f"{question} should be {value}: {answer.text if isinstance(answer, Answer) else answer}", file=sys.stderr)
    print("| files | questions | right | stale shown as current |", "|---|---|---|---|", sep="\n")
    print(f"| {counts['files']} | {counts['questions']} | {counts['right']} | {counts['stale']} |")
    return int(counts["stale"] > 0)


if __name__ == "__main__":
    sys.exit(main())
