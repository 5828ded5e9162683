"""A document is checked again, against stored pages or fresh ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

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


FERRY = "The ferry crosses the sound four times a day. In summer it is often full, so travellers book a place weeks before."


async def test_a_paraphrase_whose_first_sentence_is_wrong_is_not_supported_by_the_rest_of_it() -> None:
    text = (
        "The ferry crosses the sound six times a day [1]. Travellers book weeks before, since it is often full in summer [1]."
    )
    found = await recheck(build_answer_document(text, (Source(1, A),)), {1: FERRY})
    verdicts = [claim.verdict for claim in found.proof.claims]
    assert (verdicts[0] in (Verdict.NOT_CONFIRMED, Verdict.CONTRADICTED), verdicts[1]) == (True, Verdict.FOUND)
    assert (found.proof.found, [claim.index for claim in found.failed()]) == (1, [0])
    uncited = await recheck(build_answer_document(text.replace(" [1]", "", 1), (Source(1, A),)), {1: FERRY})
    assert [claim.verdict for claim in uncited.proof.claims] == [Verdict.UNCHECKED, Verdict.FOUND]


MILLS = (
    "# Mills\n\nThe mills of the county.\n\n| Mill | Built | Tonnes |\n| --- | --- | --- |\n"
    "| Alder mill | 1784 | 120 |\n| Birch mill | 1812 | 95 |\n| Cedar mill | 1799 | (14) |\n"
)


@pytest.mark.parametrize(
    ("row", "is_found"),
    [
        ("| Cedar mill | 1799 | (14) |", True),
        ("| Mill | Built | Tonnes |\n| --- | --- | --- |\n| Birch mill | 1812 | 95 |", True),
        ("| Birch mill | 1812 | 96 |", False),
    ],
)
async def test_a_row_of_a_table_is_found_as_it_stands_and_not_with_another_figure(row: str, is_found: bool) -> None:
    found = await recheck(build_answer_document(f"{row} [1]", (Source(1, A),)), {1: MILLS})
    assert [claim.verdict is Verdict.FOUND for claim in found.proof.claims] == [is_found]
