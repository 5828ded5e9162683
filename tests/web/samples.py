"""Finished runs to read, keep and export: a report with tables, an answer from right to left, a hostile one, a bare one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nexi.events import (
    AgendaSet,
    AnswerChecked,
    Fact,
    ModelFailed,
    ModelReplied,
    PageFailed,
    PageFetched,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    RunFinished,
    RunStarted,
    SearchFinished,
)
from nexi.runs.directory import RunDirectory
from nexi.types import (
    Claim,
    Conflict,
    ConflictValue,
    Evidence,
    Hit,
    Imprint,
    JudgeFigure,
    Proof,
    Review,
    Source,
    StopReason,
    Usage,
    Verdict,
    content_digest,
)

INJECTIONS = (
    "<script>window.hurt=1</script>",
    "<img src=https://evil.example/pixel.png onerror=window.hurt=1>",
    '"><svg onload=window.hurt=1>',
    "![x](https://evil.example/p.png)",
    "[x](javascript:window.hurt=1)",
    "</title></style><script>window.hurt=1</script>",
    "<iframe srcdoc='<script>parent.hurt=1</script>'></iframe>",
    "<style>@import url(https://evil.example/x.css)</style><link rel=stylesheet href=https://evil.example/y.css>",
    "\u202eforward\u202c \x00 \x1b[31m",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<a href=javascript:window.hurt=1>here</a><base href=https://evil.example/>",
)

JUDGE = JudgeFigure("a-judge", 0.91, 60)
PLANETS = """# How large the planets are

## Sizes

The four outer planets are far larger than the four inner ones [1]. Jupiter has a diameter of 139,820 km [1].
Pluto was a planet until 2016 [2].

| Planet | Diameter | Moons | Found in |
|:-------|---------:|------:|---------:|
| Mercury | 4,879 km [1] | 0 | 1631 |
| Earth | 12,742 km [1] | 1 | 1543 |
| Jupiter | 139,820 km [1] | 97 | 1610 |
| Saturn | 116,460 km [2] | 274 | 1659 |

## Temperature

| Planet | Mean temperature |
|---|---|
| Mercury | 167 °C |
| Venus | 464 °C |
| Mars | −65 °C |
| Neptune | −200 °C |

Some of this is `code with [1]`:

```python
diameter = {"earth": 12_742}
```
"""
PLANET_PAGE = """# Planetary facts

The outer planets are far larger than the inner planets. Jupiter has a mean diameter of 139,820 km and Saturn of 116,460 km.

Mercury is the smallest planet, 4,879 km across, and Earth measures 12,742 km."""
PARTS = (
    "Jupiter has a mean diameter of 139,820 km and Saturn of 116,460 km.",
    "Mercury is the smallest planet, 4,879 km across, and Earth measures 12,742 km.",
)
PLUTO_PAGE = "# Pluto\n\nPluto counted as a planet until 2006, when the term was defined. Saturn has 274 moons."


def sources(*pages: tuple[str, str, str]) -> tuple[Source, ...]:
    """Sources over URL, title and text."""
    about = Imprint("Ada Moon", "2031-04-05", "The Almanac", "en", "text/html", "2031-05-06T12:00:00+00:00")
    return tuple(Source(n, url, title, content_digest(text), about) for n, (url, title, text) in enumerate(pages, 1))


def claim(index: int, text: str, answer: str, verdict: Verdict, *found: tuple[Source, str, str]) -> Claim:
    """A sentence of the answer and the quotations found for it, each with its source and the source's text."""
    start = answer.index(text)
    evidence = tuple(
        Evidence(
            s.number,
            s.url,
            s.digest,
            verdict,
            0.9,
            0.9,
            page.index(quote),
            page.index(quote) + len(quote),
            quote,
            "its words stand there",
        )
        for s, page, quote in found
    )
    reason, judge = "" if found else "it names no source", JUDGE.name if verdict is Verdict.SUPPORTED else ""
    return Claim(index, text, start, start + len(text), verdict, True, reason, evidence, judge)


def planets() -> list[Fact]:
    """A report with tables of numbers, a contradicted sentence and a conflict."""
    cited = sources(
        ("https://planets.example/facts", "Planetary facts", PLANET_PAGE), ("https://pluto.example/", "Pluto", PLUTO_PAGE)
    )
    big, pluto = cited
    claims = (
        claim(0, "The four outer planets are far larger than the four inner ones [1].", PLANETS, Verdict.SUPPORTED,
              (big, PLANET_PAGE, "The outer planets are far larger than the inner planets.")),
        claim(1, "Jupiter has a diameter of 139,820 km [1].", PLANETS, Verdict.FOUND,
              (big, PLANET_PAGE, "Jupiter has a mean diameter of 139,820 km and Saturn of 116,460 km.")),
        claim(2, "Pluto was a planet until 2016 [2].", PLANETS, Verdict.CONTRADICTED,
              (pluto, PLUTO_PAGE, "Pluto counted as a planet until 2006, when the term was defined.")),
        claim(3, "| Mercury | 4,879 km [1] | 0 | 1631 |", PLANETS, Verdict.NOT_FOUND,
              (big, PLANET_PAGE, "Mercury is the smallest planet, 4,879 km across, and Earth measures 12,742 km.")),
    )  # fmt: skip
    dropped = Claim(9, "Saturn would sink in water.", 0, 0, Verdict.NOT_FOUND, True, "no page says so")
    conflict = Conflict(
        "number",
        "the moons of Saturn",
        (
            ConflictValue("274", (2,), 2, "Saturn has 274 moons."),
            ConflictValue("146", (1,), 1, "Saturn, with 146 moons, leads."),
        ),
    )
    return finished(
        "How large are the planets?", PLANETS, cited, claims, dropped=(dropped,), conflicts=(conflict,), mode="research"
    )


def parted() -> list[Fact]:
    """A sentence whose two halves stand in two places of one source."""
    text = "Mercury is the smallest planet, and Jupiter has a diameter of 139,820 km [1]."
    cited = sources(("https://planets.example/facts", "Planetary facts", PLANET_PAGE))
    found = claim(0, text, text, Verdict.FOUND, (cited[0], PLANET_PAGE, PARTS[0]))
    start = PLANET_PAGE.index(PARTS[1])
    both = replace(found.evidence[0], places=((start, start + len(PARTS[1])),))
    return finished("Which planets?", text, cited, (replace(found, evidence=(both,)),))


def right_to_left() -> list[Fact]:
    """An answer in Arabic with a Hebrew and a Latin title."""
    text = "القمر يبعد عن الأرض 384,400 كم في المتوسط [1]. يدور حولها في 27.3 يومًا [2].\n\n"
    text += "| الكوكب | الأقمار |\n|---|---|\n| الأرض | ١ |\n| المريخ | ٢ |\n"
    page = "متوسط بعد القمر عن الأرض 384,400 كم."
    cited = sources(
        ("https://moon.example/ar", "القمر: حقائق وأرقام", page), ("https://moon.example/he", "הירח (Moon) 2031", "Moon")
    )
    first = claim(0, "القمر يبعد عن الأرض 384,400 كم في المتوسط [1].", text, Verdict.FOUND, (cited[0], page, page))
    return finished("كم يبعد القمر عن الأرض؟", text, cited, (first,))


def hostile() -> list[Fact]:
    """Every string that a page, a model or a user may write tries to run or load something."""
    text = (
        "\n\n".join(f"{bad} [1]." for bad in INJECTIONS)
        + "\n\n| a | b |\n|---|---|\n"
        + "".join(f"| {bad} | {n} |\n" for n, bad in enumerate(INJECTIONS[:3], 1))
    )
    page = "\n\n".join(INJECTIONS)
    cited = tuple(
        replace(source, imprint=replace(source.imprint, author=bad, site=bad, published=bad))
        for source, bad in zip(
            sources(*((f"https://bad.example/{n}?q=%22%3E%3Cscript", bad, page) for n, bad in enumerate(INJECTIONS))),
            INJECTIONS,
            strict=True,
        )
    )
    cited = (*cited[:-1], replace(cited[-1], url="javascript:window.hurt=1", link="javascript:window.hurt=1"))
    claims = tuple(
        claim(n, f"{bad} [1].", text, Verdict.NOT_FOUND, (cited[0], page, bad)) for n, bad in enumerate(INJECTIONS[:4])
    )
    conflict = Conflict("polarity", INJECTIONS[0], tuple(ConflictValue(bad, (1,), 1, bad) for bad in INJECTIONS[:2]))
    return finished(INJECTIONS[5] + INJECTIONS[0], text, cited, claims, conflicts=(conflict,), warnings=(INJECTIONS[1],))


def bare() -> list[Fact]:
    """An answer with no source, no claim and no page."""
    return [
        RunStarted("What is known?", "m", "extractive"),
        RunFinished("Nothing is known.", (), StopReason.TIME_TARGET, 1, Usage(), 1.0, 0, 0),
    ]


def finished(
    question: str,
    text: str,
    cited: Sequence[Source],
    claims: Sequence[Claim],
    *,
    dropped: tuple[Claim, ...] = (),
    conflicts: tuple[Conflict, ...] = (),
    warnings: tuple[str, ...] = (),
    mode: str = "search",
) -> list[Fact]:
    judges = (JUDGE,) if any(claim.judge for claim in claims) else ()
    usage = Usage(12_345, 678, cost=0.0123)
    who = "1.1" if mode == "research" else ""
    begun: list[Fact] = [AgendaSet((question,), 1), ResearcherStarted(who, 1, question)] if who else []
    ended: list[Fact] = [ResearcherReported(who, text), RoundEvaluated(1, "synthesise", (), text)] if who else []
    return [
        RunStarted(question, "m", "moon-1", mode),
        *begun,
        ModelReplied(1, "", (), usage, "tool_calls", 0.2, who),
        SearchFinished(question, "searxng", tuple(Hit(s.url, s.title) for s in cited), (), 0.1, who),
        *(PageFetched(s.url, s.url, s.title, s.digest, 100, 100, 0.05, agent=who, imprint=s.imprint) for s in cited),
        PageFailed("https://gone.example/x", "timeout", f"too slow: {cited[0].title}", 0.3, agent=who),
        ModelFailed(2, "timeout", "no reply", "ask again", 0.2, who),
        ModelReplied(3, text, (), usage, "stop", 0.4, who),
        *ended,
        AnswerChecked(Review(Proof(tuple(claims)), dropped=dropped, judges=judges)),
        RunFinished(text, tuple(cited), StopReason.FINAL_ANSWER, 2, usage, 12.5, len(cited), 3, warnings, conflicts),
    ]


PAGES = (PLANET_PAGE, PLUTO_PAGE, "متوسط بعد القمر عن الأرض 384,400 كم.", "Moon", "\n\n".join(INJECTIONS))
SAMPLES = {"planets": planets, "rtl": right_to_left, "hostile": hostile, "bare": bare}


async def keep(runs: RunDirectory, facts: Sequence[Fact]) -> str:
    """Write a run into a home, with the texts of its pages, and give its id."""
    for text in PAGES:
        await runs.pages.put(text)
    log = runs.create()
    for fact in facts:
        await log.append(fact)
    await log.close()
    return log.run_id
