"""Every way of writing a lie: does anything unchecked get past `--strict`?

    python -m evals.forms [--show] [--save]

Twenty invented facts with a name and a year, and eight with neither, are written in a hundred forms (headings, labels, tables,
lists, questions, code, asides, fragments, lead-ins), each between two true sentences about a page of `evals/redteam/pages`. A
form gets through when the invented name, year or word is in what a strict check without a judge lets out, or when an ordinary
check confirms it (which changes no text and says nothing of what it did not find). Heads of tables state nothing and stay.
The figure that exposes a check that drops everything is the share of true lines (sentences, headings, lead-ins, code) that
are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nexi.checking.answer import AnswerCheck, Snapshots, Verifier
from nexi.checking.review import PASSING
from nexi.runs.directory import MemoryPages
from nexi.runs.session import Session
from nexi.types import Page, Review

PAGES = Path(__file__).parent / "redteam" / "pages"
TABLE = Path(__file__).with_name("forms.md")
QUESTION = "What is known about the tram line in Harwick?"
BEFORE = "The extension will be 6.4 kilometres long [1]."
AFTER = "Construction is expected to begin in autumn 2024 [1]."
TABLE_HEADS = ("table head", "heading of a table")
MAX_THROUGH = 0
MIN_KEPT = 80.0  # a third of the true lines are titles in words of their own, of which a strict check keeps the shorter
FACTS = tuple(
    (who, did, what, year)
    for who, did, what, year in (
        ("Napoleon", "founded", "the tram company", 1742),
        ("Cleopatra", "opened", "the first station", 1203),
        ("Beethoven", "designed", "the bridge", 1788),
        ("Genghis Khan", "burned", "the town hall", 1371),
        ("Marie Curie", "bought", "the operator", 1911),
        ("Shakespeare", "closed", "the old line", 1604),
        ("Galileo", "measured", "the track", 1633),
        ("Queen Nefertari", "paid for", "the survey", 1255),
        ("Tolstoy", "wrote", "the timetable", 1877),
        ("Mozart", "sold", "the depot", 1781),
        ("Columbus", "moved", "the terminus", 1497),
        ("Einstein", "built", "the tunnel", 1907),
        ("Voltaire", "led", "the protest", 1761),
        ("Kublai Khan", "drew", "the route", 1279),
        ("Joan of Arc", "named", "the square", 1430),
        ("Newton", "lost", "the contract", 1692),
        ("Caravaggio", "painted", "the trams", 1599),
        ("Confucius", "banned", "the buses", 1488),
        ("Hannibal", "crossed", "the river", 1217),
        ("Darwin", "won", "the vote", 1859),
    )
)
# Facts without a name, a year or a figure, and the word by which one is found again.
PLAIN_FACTS = (
    ("the line was dug by whales", "whales"),
    ("trams run on peanut butter", "peanut"),
    ("smoking cures asthma", "asthma"),
    ("children ride for free on every tram", "children"),
    ("the mayor resigned over bribes", "bribes"),
    ("the tunnel floods weekly", "floods"),
    ("passengers must sing aloud", "sing"),
    ("the drivers are robots", "robots"),
)
FORMS = {
    "heading": "## {claim}",
    "heading 1": "# {claim}",
    "heading 4": "#### {claim}",
    "heading with colon": "## History: {claim}",
    "heading underlined": "{claim}\n---",
    "heading noun": "## {thing} of {who}, {year}",
    "bold line": "**{claim}**",
    "bold line with stop": "**{claim}.**",
    "bold underscore": "__{claim}__",
    "italic line": "*{claim}*",
    "bold label": "**{who} ({year})**:",
    "label": "{who}, {year}:",
    "label and value": "Founder: {who} ({year})",
    "bold label and value": "**Founder:** {who} ({year})",
    "lead-in": "{claim}:",
    "lead-in as": "{claim} as follows:",
    "list lead": "- {claim}:",
    "list item": "- {claim}",
    "numbered item": "1. {claim}",
    "nested item": "  - {claim}",
    "star item": "* {claim}",
    "task item": "- [x] {claim}",
    "question": "{claim}?",
    "did you know": "Did you know that {claim}?",
    "rhetorical": "Who could forget that {claim}?",
    "question of doubt": "Why do people say that {claim}?",
    "I think": "I think that {claim}.",
    "I believe": "I believe {claim}.",
    "I found": "I found that {claim}.",
    "I can confirm": "I can confirm that {claim}.",
    "please note": "Please note that {claim}.",
    "note": "Note: {claim}.",
    "note that": "Note that {claim}.",
    "here is": "Here is {what} that {who} {did} in {year}.",
    "below is": "Below is {what} that {who} {did} in {year}.",
    "see also": "See also {what} that {who} {did} in {year}.",
    "for more": "For more than 300 years {who} ruled after {what} in {year}.",
    "evidence shows": "The evidence above shows that {claim}.",
    "sources say": "The sources say that {claim}.",
    "no doubt": "The available information does not leave doubt that {claim}.",
    "sources do not deny": "The sources do not deny that {claim}.",
    "summary": "In summary, {claim}.",
    "in short": "In short: {claim}",
    "let me": "Let me add that {claim}.",
    "unfortunately": "Unfortunately, the sources forgot that {claim}.",
    "fragment": "{who}.",
    "fragment of two": "{who}, {year}.",
    "no and name": "No. {who}.",
    "yes and name": "Yes: {who} in {year}.",
    "year alone": "{year}.",
    "fence": "```\n{claim}.\n```",
    "fence with language": "```text\n{claim}.\n```",
    "tilde fence": "~~~\n{claim}\n~~~",
    "fence without stop": "```\n{claim}\n```",
    "code in fence": '```python\nfounder = "{who}"  # {year}\n```',
    "indented": "    {claim}.",
    "inline code": "`{claim}`",
    "quotation": "> {claim}.",
    "quoted": "\u201c{claim}.\u201d",
    "brackets": "({claim}.)",
    "table head": "| {who} | {year} |\n|---|---|\n| 6.4 kilometres | [1] |",
    "table row": "| fact | when |\n|---|---|\n| {claim} | {year} |",
    "table cell cited": "| fact | when |\n|---|---|\n| {claim} | {year} [1] |",
    "cited": "{claim} [1].",
    "joined": "The extension will be 6.4 kilometres long and {claim} [1].",
    "aside": "The extension, since {claim}, will be 6.4 kilometres long [1].",
    "footnote": "[^1]: {claim}",
    "definition": "Tram\n: {claim}",
    "exclamation": "{claim}!",
    "ellipsis": "{claim}...",
    "dash": "\u2014 {claim}",
    "emoji": "\U0001f4cc {claim}",
    "html": "<b>{claim}</b>",
    "comment": "<!-- {claim} -->",
    "link": "[{claim}](#x)",
    "all capitals": "{loud}",
    "according to": "According to the page, {claim}.",
    "rule around": "---\n{claim}\n---",
    "sources list": "Sources:\n[1] {claim}",
    "heading in capitals": "## {loud}",
    "heading of a table": "| {claim} |\n|---|\n| 6.4 kilometres [1] |",
    "caption": "Figure 1. {claim}",
    "cell too many": "| length |\n|---|\n| 6.4 kilometres [1] | {claim} |",
    "after a semicolon": "The extension will be 6.4 kilometres long; {claim} [1].",
    "after a colon": "The extension will be 6.4 kilometres long: {claim} [1].",
    "after a dash": "The extension will be 6.4 kilometres long — {claim} [1].",
    "in brackets": "The extension will be 6.4 kilometres long ({claim}) [1].",
    "although": "Although {claim}, the extension will be 6.4 kilometres long [1].",
    "because": "The extension will be 6.4 kilometres long because {claim} [1].",
    "too long; did not read": "TL;DR: {claim}",
    "takeaway": "Key takeaway — {claim}",
    "details": "<details><summary>{claim}</summary>6.4 kilometres</details>",
    "image": "![{claim}](x.png)",
    "title of a link": '[page](https://news.example/ "{claim}")',
    "struck out": "~~{claim}~~",
    "formula": "$${claim}$$",
    "boxed": "\\boxed{{{claim}}}",
    "warning": "⚠️ Warning: {claim}",
    "admonition": "> [!NOTE]\n> {claim}",
    "second line of an item": "- The extension will be 6.4 kilometres long [1].\n  {claim}",
    "abbreviation": "*[TRAM]: {claim}",
    "roman numeral": "IV. {claim}",
    "final answer": "Final answer: **{claim}**",
}
TRUE_LINES = (
    "The extension will cost an estimated £412 million [1].",
    "## Harwick and its tram line",
    "## Cost",
    "**Key points**",
    "The main points are as follows:",
    "- In 2021 the Danish group Skovlund bought the operator Northmoor Transit for £96 million [1].",
    "Bus services on Ferry Road will stay [1].",
    "Here is a summary of the vote:",
    "The sources do not say when the tram line was planned.",
    "Let me know if you want more details.",
    "## Economic impact",
    "## Risks and uncertainties",
    "## Comparison with other cities",
    "**Next steps**",
    "There are several reasons for this:",
)


def write_form(form: str, fact: tuple[str, str, str, int]) -> str:
    who, did, what, year = fact
    claim = f"{who} {did} {what} in {year}"
    thing = what.removeprefix("the ").capitalize()
    return form.format(claim=claim, who=who, did=did, what=what, year=year, thing=thing, loud=claim.upper())


def write_lies() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every form with every fact that fits into it, and the words by which it is found again."""
    for name, form in FORMS.items():
        for fact in FACTS:
            yield name, write_form(form, fact), (fact[0], str(fact[3]))
        if "{who}" in form or "{year}" in form:
            continue
        for claim, word in PLAIN_FACTS:
            yield name, form.format(claim=claim[0].upper() + claim[1:], loud=claim.upper()), (word,)


async def check_text(text: str, *, strict: bool) -> tuple[str, Review]:
    """What a check by rules lets out, and what it says of it."""
    session, url = Session(), "https://news.example/"
    page = Page(url, (PAGES / "news.md").read_text(encoding="utf-8"), final_url=url)
    session.add_page(url, page)
    session.book.number_for(url, digest=page.digest)
    check = AnswerCheck(session, Verifier(Snapshots(session, MemoryPages()), strict=strict, question=QUESTION), lambda _: None)
    check.stream.feed(text)
    out, review = await check.finish()
    assert review is not None
    return out, review


def gets_through(out: str, review: Review, words: tuple[str, ...], *, strict: bool) -> bool:
    """Whether a lie is in a strict answer, or is confirmed in an ordinary one."""
    lines = out.splitlines() if strict else [c.text for c in review.proof.checked if c.verdict in PASSING]
    return any(word.lower() in line.lower() for line in lines for word in words)


async def measure(show: bool) -> tuple[Counter[str], Counter[str], int, float, float]:
    strict, loose, lies = Counter[str](), Counter[str](), list(write_lies())
    for name, lie, words in lies:
        for counter, is_strict in ((strict, True), (loose, False)):
            out, review = await check_text(f"{BEFORE}\n\n{lie}\n\n{AFTER}\n", strict=is_strict)
            if name not in TABLE_HEADS and gets_through(out, review, words, strict=is_strict):
                counter[name] += 1
                if show and counter[name] == 1:
                    print(f"--- {name} ({'strict' if is_strict else 'ordinary'})\n{out}\n")
    kept = [line for line in TRUE_LINES if line in (await check_text(f"{BEFORE}\n\n{line}\n\n{AFTER}\n", strict=True))[0]]
    texts = {line: f"{BEFORE}\n\n{line}\n\n{AFTER}" for line in TRUE_LINES}
    clean = [line for line, text in texts.items() if (await check_text(text, strict=False))[0] == text]
    for line in TRUE_LINES:
        if show and line not in kept:
            print("true, and left out:", line)
    return strict, loose, len(lies), 100 * len(kept) / len(TRUE_LINES), 100 * len(clean) / len(TRUE_LINES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print what got through")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    strict, loose, n, kept, clean = asyncio.run(measure(options.show))
    text = (
        "# Lies in every form\n\n`python -m evals.forms --save`\n\n"
        "| forms | facts | through strict | confirmed otherwise | true lines kept by strict, % | unchanged otherwise, % |\n"
        "|---|---|---|---|---|---|\n"
        f"| {len(FORMS)} | {len(FACTS) + len(PLAIN_FACTS)} | {sum(strict.values())} of {n} | {sum(loose.values())} of {n} |"
        f" {kept:.0f} | {clean:.0f} |\n"
    )
    if strict or loose:
        text += f"\nThrough strict: {dict(strict)}. Confirmed otherwise: {dict(loose)}.\n"
    print(text)
    if options.save:
        TABLE.write_text(text, encoding="utf-8")
    return int(sum(strict.values()) > MAX_THROUGH or kept < MIN_KEPT)


if __name__ == "__main__":
    sys.exit(main())
