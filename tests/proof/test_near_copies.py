"""Sentences that repeat a source nearly word by word and change what it says; and such that change nothing."""

from __future__ import annotations

import pytest

from nexi.checking.pages import prepare
from nexi.checking.rules import check_claim
from nexi.types import Claim, Verdict

PAGE = """# Tenancy deposits

A landlord must pay the deposit into an approved scheme within 30 days of receiving it. A tenant may refer a dispute to the
scheme free of charge. The decision of the scheme is binding on the landlord only if both parties have agreed to it.

Blue light in the evening may delay sleep in adolescents. Amber glasses were associated with earlier sleep in the trial.
The council voted to extend the tram line from Moor Lane to the Royal Infirmary, ending a dispute of many years. In 2021
Brightwater acquired the pump maker Delmont from Castell Group. Ferry Road is closed to trams. The shelf stores objects when
they are assigned. Brazil is the second largest producer of soybeans, after the United States. Without any parameter
the plain form cannot be executed inside a transaction block.
"""


def check(text: str) -> Claim:
    return check_claim(text, {1: prepare(PAGE)})


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Blue light in the evening delays sleep in adolescents.", "a statement without “may”"),
        ("The decision of the scheme is binding on the landlord.", "a statement without “if”"),
        ("A tenant must pay the deposit into an approved scheme within 30 days.", "tenant"),
        ("The council voted to extend the tram line from Moor Lane to Ferry Road.", "Ferry"),
        ("Amber glasses caused earlier sleep in the trial.", "caused"),
        ("The shelf always stores objects when they are assigned.", "always"),
        ("Brazil is the largest producer of soybeans.", "largest"),
        ("Without any parameter the plain form can be executed inside a transaction block.", "a statement without “cannot”"),
    ],
)
def test_a_near_copy_that_says_more_than_the_source_names_what_it_changed(text: str, missing: str) -> None:
    claim = check(text)
    assert (claim.verdict, claim.evidence[0].missing[:1]) == (Verdict.NOT_FOUND, (missing,))


@pytest.mark.parametrize(
    "text",
    [
        "In the evening, blue light could delay sleep in adolescents.",
        "The landlord is bound by the decision of the scheme if both parties have agreed to it.",
        "Within 30 days a landlord must pay the deposit into an approved scheme.",
        "The council voted to extend the tram line to the Royal Infirmary.",
        "In the trial amber glasses were linked to earlier sleep.",
        "Brazil is the second largest producer of soybeans.",
        "Brightwater acquired Delmont, a pump maker, from Castell Group in 2021.",
        "Delmont was acquired by Brightwater in 2021.",
    ],
)
def test_a_copy_in_another_order_or_voice_changes_nothing(text: str) -> None:
    assert check(text).verdict is Verdict.FOUND


def test_not_only_negates_a_page_that_says_only() -> None:
    page = prepare("The new values will only affect sessions that are started later.")
    found = check_claim("The new values will not only affect sessions that are started later.", {1: page})
    assert (found.verdict, found.evidence[0].missing) == (Verdict.NOT_FOUND, ("not",))


def test_a_number_in_words_is_no_noun_in_another_place() -> None:
    page = prepare("One table has rows. A new column is added to the output, which starts from 1 and grows by 1 for each row.")
    found = check_claim("A new column is added to the output, which starts from one and grows by 1 for each row.", {1: page})
    assert (found.verdict, found.evidence[0].missing) == (Verdict.FOUND, ())
