"""A document is checked again, against stored pages or fresh ones."""

from __future__ import annotations

from collections.abc import Mapping

from nexi.answers.document import build_answer_document, read_markdown
from nexi.checking.recheck import Change, Verification, recheck
from nexi.errors import FetchError
from nexi.types import Page, Source, Verdict

A, B = "https://a.example/", "https://b.example/"
TEXT = "The Loire flows into the Atlantic Ocean [1]. The Eiffel Tower is 330 metres tall [2]."
LOIRE, TOWER = "The Loire flows into the Atlantic Ocean.", "The Eiffel Tower is 330 metres tall."


def shelf(texts: Mapping[str, str | None]) -> dict[int, str | None]:
    """The stored texts of both pages, by number."""
    return {1: texts.get(A), 2: texts.get(B)}


def web(pages: Mapping[str, str]) -> dict[int, Page | FetchError]:
    """What fetching both pages gave, by number."""
    dead = FetchError("the page does not exist", reason="error", status=404)
    return {n: Page(url, pages[url]) if url in pages else dead for n, url in ((1, A), (2, B))}


def states(found: Verification) -> dict[str, str]:
    return {state.source.url: state.state for state in found.sources}


DOCUMENT = build_answer_document(TEXT, (Source(1, A), Source(2, B)))


async def test_stored_pages_support_what_they_say() -> None:
    found = await recheck(DOCUMENT, shelf({A: LOIRE, B: TOWER}))
    assert (found.proof.figures(), states(found)) == ("2 of 2 sentences found in the cited pages", {A: "stored", B: "stored"})
    assert found.failed() == found.failed(strict=True) == ()


async def test_a_missing_text_is_a_gap_and_never_support() -> None:
    found = await recheck(DOCUMENT, shelf({A: LOIRE, B: None}))
    assert [claim.verdict for claim in found.proof.claims] == [Verdict.FOUND, Verdict.UNCHECKED]
    assert states(found) == {A: "stored", B: "missing"}
    assert [claim.index for claim in found.failed()] == [1]


async def test_fresh_pages_tell_what_died_and_what_changed() -> None:
    stored = shelf({A: LOIRE, B: TOWER})
    found = await recheck(DOCUMENT, stored, web({A: LOIRE + " Slowly."}))
    assert states(found) == {A: "changed", B: "dead"}
    assert found.changes == (Change(1, Verdict.FOUND, Verdict.UNCHECKED),)
    assert "dead" in found.proof.claims[1].evidence[0].reason
    same = await recheck(DOCUMENT, stored, web({A: LOIRE, B: TOWER}))
    assert (states(same), same.changes) == ({A: "same", B: "same"}, ())


async def test_a_page_that_was_never_stored_is_fresh() -> None:
    found = await recheck(DOCUMENT, shelf({}), web({A: LOIRE, B: TOWER}))
    assert (states(found), found.changes, found.proof.found) == ({A: "fresh", B: "fresh"}, (), 2)


async def test_a_number_that_is_not_listed_is_said_to_be() -> None:
    found = await recheck(read_markdown("The Loire flows into the Atlantic Ocean [5]."), shelf({}))
    assert [e.reason for e in found.proof.claims[0].evidence] == ["no source with this number is listed"]
    assert len(found.failed()) == 1


async def test_what_cites_nothing_fails_only_when_it_is_strict() -> None:
    text = f"The Loire flows into the Atlantic Ocean. {TOWER.removesuffix('.')} [2]."
    found = await recheck(build_answer_document(text, (Source(2, B),)), shelf({B: TOWER}))
    assert (found.failed(), len(found.failed(strict=True))) == ((), 1)


async def test_a_sentence_knows_its_line() -> None:
    found = await recheck(read_markdown(f"# T\n\n[{LOIRE[:-1]}]({A}).\n"), shelf({A: LOIRE}))
    lines = {claim.text: found.line_of(claim) for claim in found.proof.checked if claim.evidence}
    assert list(lines.values()) == [3]
