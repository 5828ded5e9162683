"""What a source says to a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nexi.proof import check_answer, check_claim, lowered, prepare
from nexi.types import Claim, Evidence, Verdict

PAGE = """# Mary Mazzio

Mary Mazzio is an American filmmaker, attorney, and a rower for the United States in the 1992 Olympics. She founded the film
company 50 Eggs in Boston on 5 May 1990. It has 1,200 members and earned $3 million in 2001. She did not finish law school.
Ann Hill beat Jane Roe in the final. The tower "was never meant to last" according to its builder.

| City | People | Founded |
|---|---|---|
| Oslo | 709,037 | 1040 |
| Bergen | 285,601 | 1070 |

Use `os.path.join()` with `--strict` to build a path.
"""


def verdict(text: str) -> Verdict:
    return check_claim(text, {1: prepare(PAGE)}).verdict


@pytest.mark.parametrize(
    "text",
    [
        "She founded the film company 50 Eggs in Boston on 5 May 1990.",
        "On May 5, 1990, Mary Mazzio established the film company 50 Eggs in Boston.",
        "Mazzio was a rower in the 1992 Olympics and is an attorney.",
        "It has 1.2 thousand members.",
        "The company earned $3,000,000 in 2001.",
        "According to the page, it has 1200 members.",
        "Jane Roe was beaten by Ann Hill in the final.",
        "She didn't finish law school.",
        'Its builder said the tower "was never meant to last".',
        "Oslo has 709,037 people.",
        "Use `os.path.join()` to build a path.",
    ],
)
def test_what_the_page_says_is_supported_however_it_is_worded(text: str) -> None:
    assert verdict(text) is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("She founded the film company 50 Eggs in Boston on 6 May 1990.", "5 May 1990"),
        ("She founded the film company 50 Eggs in Boston on 5 May 1991.", "5 May 1990"),
        ("It has 1,300 members and earned $3 million in 2001.", "1,200"),
        ("It has 1,200 members and earned $3 billion in 2001.", "$3 million"),
        ("It has 1,200 members and earned €3 million in 2001.", "$3 million"),
        ("She finished law school.", "not finish"),
        ("Jane Roe beat Ann Hill in the final.", "Ann Hill beat Jane Roe"),
        ("Mary Mazzio is not an American filmmaker.", "is an American"),
    ],
)
def test_another_value_is_shown_where_the_page_contradicts(text: str, other: str) -> None:
    found = check_claim(text, {1: prepare(PAGE)})
    assert (found.verdict, found.evidence[0].other) == (Verdict.CONTRADICTED, other)


@pytest.mark.parametrize(
    "text",
    [
        "John Smith founded the film company 50 Eggs.",
        "Bergen has 709,037 people.",
        'The tower "was the pride of the whole town" according to its builder.',
        "Use `os.path.split()` to build a path.",
        "The capital of France is Paris.",
        "She founded the film company 50 Eggs in Chicago.",
    ],
)
def test_what_the_page_does_not_say_is_not_supported(text: str) -> None:
    assert verdict(text) is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Contract was directed by Robert Parrish.", Verdict.SUPPORTED),
        ("The Contract was directed by Roy Budd.", Verdict.CONTRADICTED),
        ("In the United States it was released as The Destructors.", Verdict.SUPPORTED),
        ("James Robinson died on October 27, 1857.", Verdict.SUPPORTED),
        ("James Robinson was born on October 27, 1857.", Verdict.CONTRADICTED),
    ],
)
def test_another_doer_and_the_other_end_of_a_life_are_seen(text: str, expected: Verdict) -> None:
    page = """The Contract is a film directed by Robert Parrish and scored by Roy Budd.
It was released in the USA as "The Destructors".

James Robinson (1800 – October 27, 1857) was a politician in Texas."""
    assert check_claim(text, {1: prepare(page)}).verdict is expected


def test_what_is_missing_is_named() -> None:
    found = check_claim("She founded the film company 50 Eggs with Ruth Levy.", {1: prepare(PAGE)})
    assert (found.verdict, found.evidence[0].missing) == (Verdict.PARTLY, ("Ruth Levy",))


def test_the_span_is_where_the_offsets_say() -> None:
    page = prepare("Intro &amp; [link](http://x.test/).\n\nThe co\u00adop has **1,200** members.\n")
    evidence = check_claim("The coop has 1,200 members.", {1: page}).evidence[0]
    assert page.text[evidence.start : evidence.end] == evidence.span == "The co\u00adop has **1,200** members."


def test_the_page_of_a_pdf_is_given() -> None:
    page = prepare("[page 1]\n\nAn introduction.\n\n[page 2]\n\nThe engine delivers 300 kW.\n")
    assert check_claim("The engine delivers 300 kW.", {4: page}).evidence[0].page == 2


def test_presence_and_fit_are_two_figures() -> None:
    evidence = check_claim("It has 1,300 members and earned $3 million in 2001.", {1: prepare(PAGE)}).evidence[0]
    assert evidence.presence > 0.5
    assert evidence.fit == 0.0


def test_a_sentence_of_two_sources_is_supported_by_both_together() -> None:
    pages = {1: prepare("Oslo was founded in 1040 by King Harald."), 2: prepare("Bergen was founded in 1070 by Olav Kyrre.")}
    found = check_claim("Oslo was founded in 1040 and Bergen was founded in 1070 [1][2].", pages)
    assert (found.verdict, [e.verdict for e in found.evidence]) == (Verdict.SUPPORTED, [Verdict.PARTLY, Verdict.PARTLY])


def test_sources_cited_at_each_others_part_are_not_a_pass() -> None:
    pages = {1: prepare("Oslo was founded in 1040 by King Harald."), 2: prepare("Bergen was founded in 1070 by Olav Kyrre.")}
    assert check_claim("Oslo was founded in 1040 [2] and Bergen was founded in 1070 [1].", pages).verdict is Verdict.PARTLY


def test_a_page_that_is_not_stored_is_a_stated_gap() -> None:
    found = check_claim("Oslo was founded in 1040 [3].", {3: None})
    assert (found.verdict, found.reason) == (Verdict.UNCHECKED, "no stored text of this source")


def test_a_sentence_without_a_source_says_whether_it_needs_one() -> None:
    proof = check_answer("Oslo was founded in 1040. What else is known?", {})
    assert [(c.verdict, c.needs_citation) for c in proof.claims] == [(Verdict.NOT_FOUND, True), (Verdict.NOT_FOUND, False)]
    assert proof.figures() == "0 of 1 sentence supported"


def test_a_judge_only_lowers() -> None:
    def judge(claim: Claim, evidence: Evidence) -> Verdict:
        return Verdict.NOT_FOUND if "rower" in claim.text else Verdict.SUPPORTED

    text = "Mazzio was a rower in the 1992 Olympics [1]. It has 1,300 members and earned $3 million in 2001 [1]."
    proof = check_answer(text, {1: prepare(PAGE)}, judge=judge)
    assert [c.verdict for c in proof.claims] == [Verdict.NOT_FOUND, Verdict.CONTRADICTED]


def test_raising_a_verdict_changes_nothing() -> None:
    claim = check_claim("It has 1,300 members and earned $3 million in 2001 [1].", {1: prepare(PAGE)})
    assert lowered(claim, 1, Verdict.SUPPORTED) == claim


def test_likeness_lets_a_rewording_pass_but_no_wrong_fact() -> None:
    def alike(claim: str, spans: Sequence[str]) -> Sequence[float]:
        return [0.95] * len(spans)

    page = {1: prepare("The parliament enacted a statute on fishing quotas in 1984.")}
    loose, wrong = "Lawmakers passed rules on fishing quotas in 1984.", "Lawmakers passed a statute on fishing quotas in 1985."
    assert [check_claim(loose, page, like).verdict for like in (None, alike)] == [Verdict.PARTLY, Verdict.SUPPORTED]
    assert check_claim(wrong, page, alike).verdict is Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("page", "true", "false"),
    [
        ("北京大学创立于1898年，是中国第一所国立大学。", "北京大学创立于1898年[1]。", "北京大学创立于1908年[1]。"),
        ("Толстой родился в 1828 году. Он не получил премию.", "Толстой родился в 1828 году [1].", "Он получил премию [1]."),
        (
            "ولد نجيب محفوظ في القاهرة عام 1911.",
            "ولد نجيب محفوظ في القاهرة عام ١٩١١ [1].",
            "ولد نجيب محفوظ في القاهرة عام 1921 [1].",
        ),
    ],
)
def test_other_scripts_are_compared_too(page: str, true: str, false: str) -> None:
    found = [check_answer(text, {1: prepare(page)}).claims[0].verdict for text in (true, false)]
    assert found == [Verdict.SUPPORTED, Verdict.CONTRADICTED]
