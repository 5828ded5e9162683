"""What a source says to a sentence, as far as rules can know."""

from __future__ import annotations

import pytest

from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer, check_claim
from nexi.types import Verdict

PAGE = """# Mary Mazzio

Mary Mazzio is an American filmmaker, attorney, and a rower for the United States in the 1992 Olympics. She founded the film
company 50 Eggs in Boston on 5 May 1990. It has 1,200 members and earned $3 million in 2001. She did not finish law school.
Ann Hill beat Jane Roe in the final. The tower "was never meant to last" according to its builder. About a third of the members
live 250 kilometres (160 mi) from Boston.

| City | People | Founded |
|---|---|---|
| Oslo | 709,037 | 1040 |
| Bergen | 285,601 | 1070 |

Use `os.path.join()` with `--strict` to build a path. The shuttle OV-102 was named Columbia.
"""


def verdict(text: str, question: str = "") -> Verdict:
    return check_claim(text, {1: prepare(PAGE)}, question).verdict


@pytest.mark.parametrize(
    "text",
    [
        "She founded the film company 50 Eggs in Boston on 5 May 1990.",
        "On May 5, 1990, Mary Mazzio founded the film company 50 Eggs in Boston.",
        "Mazzio was a rower in the 1992 Olympics and is an attorney.",
        "It has 1.2 thousand members.",
        "It has about 1,190 members.",
        "The company earned $3,000,000 in 2001.",
        "According to the page, it has 1200 members.",
        "Jane Roe was beaten by Ann Hill in the final.",
        "She didn't finish law school.",
        'Its builder said the tower "was never meant to last".',
        "One third of the members live about 160 miles from Boston.",
        "33 % of the members live 250 km from Boston.",
        "Oslo has 709,037 people.",
        "Use `os.path.join()` to build a path.",
        "The shuttle OV-102 was named Columbia.",
    ],
)
def test_a_sentence_is_found_when_its_words_and_every_hard_fact_stand_there(text: str) -> None:
    assert verdict(text) is Verdict.FOUND


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("She founded the film company 50 Eggs in Boston on 6 May 1990.", "5 May 1990"),
        ("She founded the film company 50 Eggs in Boston on 5 May 1991.", "5 May 1990"),
        ("It has 1,300 members and earned $3 million in 2001.", "1,200"),
        ("It has 1,200 members and earned $3 billion in 2001.", "$3 million"),
        ("Bergen has 709,037 people.", "285,601"),
    ],
)
def test_another_value_in_the_same_slot_contradicts_and_is_shown(text: str, other: str) -> None:
    found = check_claim(text, {1: prepare(PAGE)})
    assert (found.verdict, found.evidence[0].other) == (Verdict.CONTRADICTED, other)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("She founded the film company 50 Eggs with Ruth Levy.", ("Ruth Levy",)),
        ("She founded the film company 50 Eggs in Chicago.", ("Chicago",)),
        ("John Smith founded the film company 50 Eggs in Boston.", ("John Smith",)),
        ("Mary Mazzio is an American filmmaker and a rower of 1996.", ("1996",)),
        ("It has 1,200 members and earned €3 million in 2001.", ("€3 million",)),
        ('The tower "was the pride of the whole town" according to its builder.', ('"was the pride of the whole town"',)),
        ("Use `os.path.split()` with `--strict` to build a path.", ("os.path.split",)),
        ("The shuttle OV-205 was named Columbia.", ("OV-205",)),
        ("She finished law school.", ("a statement without “not”",)),
        ("Mary Mazzio is not an American filmmaker.", ("not",)),
        ("Ann Hill lost to Jane Roe, but did not beat Jane Roe in the final.", ("not",)),
    ],
)
def test_a_hard_fact_that_is_not_there_is_named_and_never_outweighed(text: str, missing: tuple[str, ...]) -> None:
    found = check_claim(text, {1: prepare(PAGE)})
    assert found.verdict is Verdict.NOT_FOUND
    assert found.evidence[0].missing == missing


def test_the_capital_of_france_is_not_on_a_page_about_mary_mazzio() -> None:
    assert verdict("The capital of France is Paris.") is Verdict.NOT_FOUND


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("The bridge opened to trains in 1890.", "The bridge opened to walkers in 1889."),
        ("The line carried 3.1 million in 2019 and 4.8 million in 2022.", "The line carried 4.8 million in 2019."),
        ("Oslo has 709,037 people.", "Oslo has 12 tram lines."),
        ("The tower is 300 m tall.", "The tower weighs 7,300 tonnes."),
        ("The road is 250 km (160 mi) long.", "The road is about 155 miles long."),
        ("The hall seats more than 2,400 people.", "The hall seats 2,500 people."),
    ],
)
def test_a_value_of_another_slot_unit_or_rounding_does_not_contradict(page: str, text: str) -> None:
    assert check_claim(text, {1: prepare(page)}).verdict is not Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("The largest city is Oslo.", "The smallest city is Oslo."),
        ("The club was opened by Guy and Lambert in Tuscany.", "The club was opened by Hugh and Lambert in Tuscany."),
        ("Models of this series must not be put under water.", "Models of this series must be put under water."),
        ("The station lies between Zone 5 and Zone 6.", "The station lies between Zone 5 and Zone 5."),
    ],
)
def test_an_edit_of_a_near_copy_is_not_found(page: str, text: str) -> None:
    claim = check_claim(text, {1: prepare(page)})
    assert (claim.verdict is Verdict.FOUND, claim.evidence[0].span) == (False, page)  # the passage is shown all the same


def test_a_pronoun_binds_a_sentence_to_the_one_before() -> None:
    bound = prepare("Ruth Levy lived in Molde before the war. She painted large pictures of boats there.")
    loose = prepare("Ruth Levy lived in Molde before the war. Ann Hill painted large pictures of boats.")
    text = "Ruth Levy of Molde painted large pictures of boats."
    assert check_claim(text, {1: bound}).evidence[0].presence > check_claim(text, {1: loose}).evidence[0].presence
    assert check_claim(text, {1: bound}).verdict is Verdict.FOUND


def test_a_heading_lends_its_words() -> None:
    page = prepare("# Intro\n\nSomething else.\n\n## Varn bridge\n\nThe main span measures 186 metres.\n")
    assert check_claim("The main span of the Varn bridge measures 186 metres.", {1: page}).verdict is Verdict.FOUND


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("Columbia [1].", "What was the shuttle OV-102 named?", Verdict.FOUND),
        ("Columbia [1].", "What is the longest river of Asia?", Verdict.NOT_FOUND),
        ("Columbia [1].", "", Verdict.UNCHECKED),
        ("5 May 1990 [1].", "When was the company 50 Eggs founded?", Verdict.FOUND),
        ("Ann Hill [1].", "Who beat Jane Roe in the final?", Verdict.FOUND),
        ("Ann Hill [1].", "Who discovered penicillin at the hospital?", Verdict.NOT_FOUND),
    ],
)
def test_a_fragment_is_read_together_with_the_question(text: str, question: str, expected: Verdict) -> None:
    assert verdict(text, question) is expected


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


def test_a_sentence_of_two_sources_is_found_in_both_together() -> None:
    pages = {1: prepare("Oslo was founded in 1040 by King Harald."), 2: prepare("Bergen was founded in 1070 by Olav Kyrre.")}
    found = check_claim("Oslo was founded in 1040 and Bergen was founded in 1070 [1][2].", pages)
    assert (found.verdict, [e.verdict for e in found.evidence]) == (Verdict.FOUND, [Verdict.FOUND, Verdict.FOUND])


def test_sources_cited_at_each_others_part_are_not_a_pass() -> None:
    pages = {1: prepare("Oslo was founded in 1040 by King Harald."), 2: prepare("Bergen was founded in 1070 by Olav Kyrre.")}
    found = check_claim("Oslo was founded in 1040 [2] and Bergen was founded in 1070 [1].", pages)
    assert found.verdict is not Verdict.FOUND


def test_a_page_that_is_not_stored_is_a_stated_gap() -> None:
    found = check_claim("Oslo was founded in 1040 [3].", {3: None})
    assert (found.verdict, found.reason) == (Verdict.UNCHECKED, "no stored text of this source")


def test_a_sentence_without_a_source_says_whether_it_needs_one() -> None:
    proof = check_answer("Oslo was founded in 1040. What else is known?", {})
    assert [(c.verdict, c.needs_citation) for c in proof.claims] == [(Verdict.NOT_FOUND, True), (Verdict.NOT_FOUND, False)]
    assert proof.figures() == "1 sentence not confirmed: only rules have read the answer, and they see words"


@pytest.mark.parametrize(
    ("page", "true", "false"),
    [
        ("北京大学创立于1898年，是中国第一所国立大学。", "北京大学创立于1898年[1]。", "北京大学创立于1908年[1]。"),
        ("Толстой родился в 1828 году в Ясной Поляне.", "Толстой родился в 1828 году [1].", "Толстой родился в 1838 году [1]."),
        ("Толстой прожил долго. Он не получил премию.", "Он не получил премию [1].", "Он получил премию [1]."),
        (
            "ولد نجيب محفوظ في القاهرة عام 1911.",
            "ولد نجيب محفوظ في القاهرة عام ١٩١١ [1].",
            "ولد نجيب محفوظ في القاهرة عام 1921 [1].",
        ),
        (
            "Die Brücke wurde am 4. März 1890 eröffnet.",
            "Am 4. März 1890 wurde die Brücke eröffnet [1].",
            "Die Brücke wurde 1891 eröffnet [1].",
        ),
        ("Le pont mesure 186 m de long.", "Le pont mesure 186 m de long [1].", "Le pont mesure 196 m de long [1]."),
    ],
)
def test_other_languages_are_compared_too(page: str, true: str, false: str) -> None:
    found = [check_answer(text, {1: prepare(page)}).claims[0].verdict for text in (true, false)]
    assert found[0] is Verdict.FOUND
    assert found[1] is not Verdict.FOUND


def test_a_row_about_another_subject_than_the_question_is_found_where_its_page_says_it() -> None:
    page = prepare("The Brooklyn Bridge has a main span of 486 metres. It was opened in 1883, before the Forth Bridge.")
    rows = "| Brooklyn Bridge [1] | 486 | 1883 |\n| Brooklyn Bridge [1] | 486 | 1884 |"
    proof = check_answer(rows, {1: page}, "How long is the Forth Bridge, and how many people died building it?")
    assert [claim.verdict for claim in proof.claims] == [Verdict.FOUND, Verdict.NOT_FOUND]
