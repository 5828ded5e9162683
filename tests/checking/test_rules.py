"""The figures and limits of the rules: what is too short, too long, too far off, and which of several passages decides."""

from __future__ import annotations

import pytest

from nexi.checking.pages import Pages, Snapshot, prepare
from nexi.checking.rules import check_claim, find_anywhere
from nexi.types import Claim, Evidence, Verdict

FOUND, CONTRADICTED, UNCHECKED, NOT_FOUND = Verdict.FOUND, Verdict.CONTRADICTED, Verdict.UNCHECKED, Verdict.NOT_FOUND
WORD_FOR_WORD, TOGETHER = "said word for word", "its words stand in this passage"
OFF_TOPIC = "the passage does not speak of what was asked"
NO_PASSAGE = "no passage holds its words"


def check(text: str, page: str | Snapshot, question: str = "") -> tuple[Verdict, str, float, float]:
    """The verdict on a sentence by one page, why, and how much of it the page holds and says."""
    claim = check_claim(text, {1: page if isinstance(page, Snapshot) else prepare(page)}, question)
    (evidence,) = claim.evidence
    return claim.verdict, claim.reason, evidence.presence, evidence.fit


def list_words(count: int) -> str:
    return " ".join(f"{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(count))


def list_numbers(count: int) -> str:
    return " and ".join(str(1200 + 7 * n) for n in range(count))


# how much of a sentence a page must hold

BRIDGE = "The Varn bridge opened in 1937."


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("Bridge opened flags.", "The bridge opened.", (FOUND, TOGETHER, 0.667, 0.667)),
        ("Bridge opened gate flags kings.", "The bridge opened its gate.", (FOUND, TOGETHER, 0.6, 0.6)),
        (
            "Bridge opened proudly with fireworks and flags.",
            "The bridge opened.",
            (NOT_FOUND, "not in this passage: proudly, fireworks, flags", 0.4, 0.4),
        ),
        ("Bridge flags kings.", "The bridge opened.", (NOT_FOUND, NO_PASSAGE, 0.333, 0.0)),
        ("Bridge opened gate flags 7.", "The bridge opened its gate.", (NOT_FOUND, "not in this passage: 7", 0.6, 0.3)),
        (
            "The Varn bridge opened with music, dancing, speeches, banners and balloons in 1937.",
            f"{BRIDGE} Later came music there.",
            (NOT_FOUND, "not in this passage: music, dancing, speeches, banners", 0.444, 0.444),
        ),
        ("The bridge opened in 1937.", BRIDGE, (FOUND, TOGETHER, 1.0, 1.0)),
        ("Varn bridge opened in 1937.", BRIDGE, (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        ("The Varn bridge opened on Sunday, 7 tons heavy.", BRIDGE, (NOT_FOUND, NO_PASSAGE, 0.5, 0.0)),
        (
            "The grey Varn bridge opened with 7 gates.",
            "The grey Varn bridge opened with gates.",
            (NOT_FOUND, "not in this passage: 7", 0.833, 0.417),
        ),
        (
            "北京大学创立于上海市。",
            "北京大学创立于一八九八年。",
            (NOT_FOUND, "not in this passage: 于上, 上海, 海市", 0.667, 0.667),
        ),
    ],
)
def test_a_sentence_is_found_from_a_share_of_its_words_on(
    text: str, page: str, expected: tuple[Verdict, str, float, float]
) -> None:
    assert check(text, page) == expected


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (list_words(400), FOUND),
        (list_words(401), UNCHECKED),
        (list_numbers(60), FOUND),
        (list_numbers(61), UNCHECKED),
    ],
)
def test_a_sentence_of_very_many_words_or_values_is_too_long_to_be_compared(text: str, verdict: Verdict) -> None:
    reason = "too long to be compared as one sentence" if verdict is UNCHECKED else WORD_FOR_WORD
    sentence = f"{text[0].upper()}{text[1:]}."
    assert check(sentence, prepare(sentence))[0::3] == (verdict, 1.0 if verdict is FOUND else 0.0)
    assert check(sentence, prepare(sentence))[1] in (reason, TOGETHER)


def test_a_sentence_is_compared_with_twenty_four_of_its_sources() -> None:
    markers = "".join(f"[{n}]" for n in range(1, 26))
    claim = check_claim(f"{BRIDGE}{markers}", dict.fromkeys(range(1, 26), prepare(BRIDGE)))
    assert [evidence.verdict for evidence in claim.evidence] == [FOUND] * 24 + [UNCHECKED]
    assert claim.evidence[24].reason == "cites more sources than one sentence is compared with"


def test_a_sentence_has_its_place_in_the_answer() -> None:
    page = {1: prepare(BRIDGE)}
    places = [(c.index, c.start, c.end) for c in (check_claim(BRIDGE, page), check_claim(BRIDGE, page, index=2, start=50))]
    assert places == [(0, 0, 31), (2, 50, 81)]


# what has nothing to be compared with


def test_a_source_without_text_or_one_that_was_read_in_part_is_a_stated_gap() -> None:
    pages = {1: None, 2: prepare("", "http://empty.test/"), 3: prepare("fog " * 300, "http://long.test/", max_chars=1000)}
    evidence = check_claim(BRIDGE, pages).evidence
    assert evidence == (
        Evidence(1, reason="no stored text of this source"),
        Evidence(2, "http://empty.test/", evidence[1].digest, reason="the stored text of this source is empty"),
        Evidence(
            3,
            "http://long.test/",
            evidence[2].digest,
            reason="not in the first 1,000 characters; the rest of the page was not read",
        ),
    )


@pytest.mark.parametrize(
    ("text", "pages", "reason"),
    [
        (BRIDGE, {}, "needs a source and cites none"),
        ("... [1]", {1: prepare(BRIDGE)}, "says too little to be a claim"),
        ("Who built the Varn bridge?", {}, "a question"),
    ],
)
def test_what_cannot_be_compared_at_all_has_no_evidence(text: str, pages: Pages, reason: str) -> None:
    claim = check_claim(text, pages)
    assert (claim.verdict, claim.reason, claim.evidence) == (NOT_FOUND, reason, ())


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("No, 1 is not a prime number.", "The number 1 is not a prime number.", (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        ("Yes, 7 is a prime number.", "The number 7 is a prime number.", (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        ("YES: 7 is a prime number.", "The number 7 is a prime number.", (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        (
            "No, 7 is a prime number.",
            "The number 7 is a prime number.",
            (NOT_FOUND, "not in this passage: No", 0.75, 0.375),
        ),
        ("Yes, 1 is not a prime number.", "The number 1 is not a prime number.", (FOUND, TOGETHER, 0.8, 0.8)),
    ],
)
def test_a_reply_before_a_sentence_is_left_out_where_the_rest_says_the_same(
    text: str, page: str, expected: tuple[Verdict, str, float, float]
) -> None:
    assert check(text, page) == expected


# a few words, which depend on what was asked

SHUTTLE = "The steel Columbia shuttle engine tank cost $3 in 1937."
ANOTHER = "What is the longest river of Asia?"
TOWNS = """# Towns

| City | People | Founded |
|---|---|---|
| Oslo | 709,037 | 1040 |
| Bergen | 285,601 | 1070 |
"""


@pytest.mark.parametrize(
    ("text", "page", "question", "expected"),
    [
        ("1937", SHUTTLE, "", (UNCHECKED, "too short to be compared without its question", 0.0, 0.0)),
        ("Columbia", SHUTTLE, "", (UNCHECKED, "too short to be compared without its question", 0.0, 0.0)),
        ("Columbia 1937.", SHUTTLE, "", (FOUND, TOGETHER, 1.0, 1.0)),
        ("Columbia shuttle.", SHUTTLE, "", (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        ("Columbia 1937.", SHUTTLE, ANOTHER, (NOT_FOUND, OFF_TOPIC, 1.0, 1.0)),
        ("steel Columbia shuttle engine.", SHUTTLE, ANOTHER, (NOT_FOUND, OFF_TOPIC, 1.0, 1.0)),
        ("steel Columbia shuttle engine tank.", SHUTTLE, ANOTHER, (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
        ("The shuttle was Columbia.", SHUTTLE, ANOTHER, (FOUND, TOGETHER, 1.0, 1.0)),
        ("Oslo: 1040", TOWNS, ANOTHER, (FOUND, TOGETHER, 1.0, 1.0)),
        ("Oslo | 1040", TOWNS, ANOTHER, (FOUND, TOGETHER, 1.0, 1.0)),
        ("1040", TOWNS, ANOTHER, (NOT_FOUND, OFF_TOPIC, 1.0, 1.0)),
        ("1040", TOWNS, "What is Oslo?", (FOUND, WORD_FOR_WORD, 1.0, 1.0)),
    ],
)
def test_a_few_words_count_where_the_passage_or_the_row_says_what_they_are_about(
    text: str, page: str, question: str, expected: tuple[Verdict, str, float, float]
) -> None:
    assert check(text, page, question) == expected


BUILT = "Ann Hill built it with care."


@pytest.mark.parametrize(
    ("page", "question", "verdict"),
    [
        (prepare(f"# Varn bridge\n\nIt opened in 1937. {BUILT}"), "Who built the Varn bridge?", FOUND),
        (prepare(f"# Varn bridge\n\nIt opened in 1937. {BUILT}"), "Who built the Varn bridge of iron and glass?", FOUND),
        (prepare(f"# Varn bridge\n\nIt opened in 1937. {BUILT}"), "Who built the Varn tower of Oslo?", NOT_FOUND),
        (prepare(BUILT), "Who built the bridge?", NOT_FOUND),  # a half is not most
        (prepare(BUILT), "Who built?", FOUND),
        (prepare(BUILT), "Who?", FOUND),
        (prepare(BUILT, title="Varn bridge"), "Who built the Varn bridge of iron?", FOUND),
        (prepare(f"Varn bridge news. It is grey. {BUILT}"), "Who built the Varn bridge of iron?", FOUND),
        (prepare(f"News. Varn bridge is grey. {BUILT}"), "Who built the Varn bridge of iron?", NOT_FOUND),
        (prepare(f"News. All grey.\n\n## Varn bridge\n\nIt rained. {BUILT}"), "Who built the Varn bridge of iron?", FOUND),
        (prepare(f"{BUILT} Varn bridge is iron."), "Who built the Varn bridge of iron?", NOT_FOUND),
    ],
)
def test_a_passage_answers_where_it_its_heading_or_the_first_words_of_its_page_say_most_of_the_question(
    page: Snapshot, question: str, verdict: Verdict
) -> None:
    assert check("Ann Hill.", page, question)[0] is verdict


# a sentence that cites no page

SAYS = prepare("The Varn bridge opened in May 1937 with drums.")
DENIES = prepare("The Varn bridge opened in May 1936 with drums and fireworks.")
SCATTERED = prepare("Varn sleeps. A bridge fell. They opened tins. May is cold. In 1937 it snowed. Fireworks hiss. Drums beat.")
OTHER = prepare("Nothing of this is said.")
SENTENCE = "The Varn bridge opened in May 1937 with drums and fireworks."


def find_number(pages: Pages, text: str = SENTENCE) -> tuple[Verdict, tuple[int, ...]]:
    claim = Claim(3, text, 10, 10 + len(text), NOT_FOUND)
    match = find_anywhere(claim, pages, "")
    assert (match.index, match.start, match.end) == (3, 10, 10 + len(text))
    return match.verdict, match.numbers


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ({1: SAYS}, (FOUND, (1,))),
        ({1: OTHER, 2: DENIES, 3: SAYS}, (FOUND, (3,))),
        ({1: OTHER, 2: DENIES}, (CONTRADICTED, (2,))),
        ({1: OTHER, 2: SCATTERED}, (NOT_FOUND, (2,))),
        ({1: OTHER, 2: None}, (NOT_FOUND, (1,))),
        ({1: None}, (NOT_FOUND, ())),
        ({}, (NOT_FOUND, ())),
        ({1: SCATTERED, 2: SCATTERED, 3: SCATTERED, 4: SAYS}, (FOUND, (4,))),
        ({1: SCATTERED, 2: SCATTERED, 3: SCATTERED, 4: SCATTERED, 5: SAYS}, (NOT_FOUND, (1,))),
    ],
)
def test_a_sentence_without_a_source_is_looked_for_in_the_four_pages_with_most_of_its_words(
    pages: Pages, expected: tuple[Verdict, tuple[int, ...]]
) -> None:
    assert find_number(pages) == expected


def test_what_has_evidence_or_needs_none_or_is_very_long_is_not_looked_for() -> None:
    cited = check_claim(SENTENCE, {7: OTHER})
    idle = Claim(0, SENTENCE, 0, len(SENTENCE), NOT_FOUND, needs_citation=False)
    assert [find_anywhere(claim, {1: SAYS}, "") for claim in (cited, idle)] == [cited, idle]
    longest = f"{SENTENCE} {'x' * (2000 - len(SENTENCE) - 1)}"
    assert [find_number({1: SAYS}, text)[1] for text in (longest, f"{longest}x")] == [(1,), ()]


# which of several passages decides


@pytest.mark.parametrize(
    ("text", "page", "verdict", "span"),
    [
        (BRIDGE, "The Varn bridge opened in 1936. The Varn bridge opened in 1937.", FOUND, BRIDGE),
        (BRIDGE, f"{BRIDGE} The Varn bridge was not opened in 1937.", NOT_FOUND, "The Varn bridge was not opened in 1937."),
        (
            "Varn bridge is long.",
            "The bridge at Varn is very long. Varn bridge is not long.",
            NOT_FOUND,
            "Varn bridge is not long.",
        ),
        (
            "The Varn bridge opened in May 1937 with drums.",
            "The Varn bridge opened in May 1936 with drums. In May 1937, with drums, opened the bridge at Varn.",
            FOUND,
            "In May 1937, with drums, opened the bridge at Varn.",
        ),
        (
            "Oslo has 12 gates with iron bars.",
            "Rain fell. Oslo has 13 gates with iron bars. Bars of iron close 12 gates.",
            CONTRADICTED,
            "Oslo has 13 gates with iron bars.",
        ),
        (
            "Oslo has 12 gates with iron bars.",
            "Rain fell. Oslo has 13 gates with iron bars. Oslo opened 12 gates of iron.",
            CONTRADICTED,
            "Oslo has 13 gates with iron bars.",
        ),
        (
            "Oslo has 12 old gates with iron bars.",
            "Rain fell. Oslo has 13 gates with iron bars. Old iron bars and gates of Oslo castle cost 9 crowns.",
            CONTRADICTED,
            "Oslo has 13 gates with iron bars.",
        ),
        (
            "The grey Varn bridge opened in 1937 with drums and kings.",
            "The grey Varn bridge opened in 1937. The Varn bridge with drums and kings opened in 1937.",
            FOUND,
            "The grey Varn bridge opened in 1937.",
        ),
    ],
)
def test_a_near_copy_decides_before_a_passage_that_only_has_its_words(
    text: str, page: str, verdict: Verdict, span: str
) -> None:
    claim = check_claim(text, {1: prepare(page)})
    assert (claim.verdict, claim.evidence[0].span) == (verdict, span)


@pytest.mark.parametrize(
    ("text", "page", "verdict"),
    [
        ("Oslo has 12 gates.", "Oslo has 13 gates.", CONTRADICTED),
        ("Oslo has 12 iron gates with bars.", "Oslo has 13 gates.", NOT_FOUND),  # too little else is said
        ("Oslo has 12 iron gates.", "Oslo has 13 gates.", CONTRADICTED),
        ("Oslo has 12 gates.", "Oslo has 13 or 14 gates.", NOT_FOUND),
        ("Oslo has 12 gates with 7 keys.", "Oslo has 13 gates with 8 keys.", CONTRADICTED),
    ],
)
def test_another_value_contradicts_where_half_of_the_sentence_is_said_and_the_value_is_clear(
    text: str, page: str, verdict: Verdict
) -> None:
    claim = check_claim(text, {1: prepare(page)})
    other = "13" if verdict is CONTRADICTED else ""
    assert (claim.verdict, claim.evidence[0].other) == (verdict, other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bergen was founded in 1070.", (FOUND, TOGETHER, 0.867, 0.867)),
        ("Founded in 1070, Bergen has 285,601 people.", (FOUND, TOGETHER, 0.84, 0.84)),
        ("City Oslo, people 709,037.", (FOUND, WORD_FOR_WORD, 0.8, 0.8)),
        ("All of Bergen has 285,601 people.", (NOT_FOUND, "not in this passage: All", 0.65, 0.325)),
        ("1070 was when Bergen was founded.", (FOUND, TOGETHER, 0.65, 0.65)),
        (
            "Bergen was founded in 1071.",
            (CONTRADICTED, "the source says '1070' where the sentence says '1071'", 0.533, 0.0),
        ),
    ],
)
def test_the_cells_of_a_row_are_read_with_their_heads(text: str, expected: tuple[Verdict, str, float, float]) -> None:
    assert check(text, TOWNS) == expected


@pytest.mark.parametrize(
    ("text", "page", "span"),
    [
        (
            "The Varn bridge of 1937 has 3 gates.",
            "# Varn bridge of 1937\n\nBoats pass.\n\nThere are 3 gates.",
            "There are 3 gates.",
        ),
        (
            "The old bridge of 1937 has 3 gates.",
            prepare("There are 3 gates.", title="Old bridge of 1937"),
            "There are 3 gates.",
        ),
        (
            "Ruth Levy of Molde painted boats in 1937.",
            "Ruth Levy lived in Molde. She went out in 1937. She painted boats.",
            "Ruth Levy lived in Molde. She went out in 1937. She painted boats.",
        ),
        (
            "Ruth Levy painted boats in Molde.",
            "Boats sank. She went out. Ruth Levy lived in Molde. She painted boats.",
            "Ruth Levy lived in Molde. She painted boats.",
        ),
    ],
)
def test_headings_titles_and_the_sentences_before_lend_their_words_and_values(
    text: str, page: str | Snapshot, span: str
) -> None:
    claim = check_claim(text, {1: page if isinstance(page, Snapshot) else prepare(page)})
    assert (claim.verdict, claim.evidence[0].span) == (FOUND, span)


# a sentence that several sources, or several places of one, say together

OSLO = "Oslo was founded in 1040 by King Harald of Norway."
BERGEN = "Bergen was founded in 1070 by Olav Kyrre."
MOLDE = "Molde was founded in 1742."
BOTH = "Oslo was founded in 1040 and Bergen was founded in 1070"
ALL = "Oslo was founded in 1040; Bergen was founded in 1070; Molde was founded in 1742"
ALL_PLACES = f"{OSLO}\n\nRain.\n\n{MOLDE}\n\nFish.\n\n{BERGEN}"
IN_PLACES = "said in several places of the source"
BY_PARTS = "said part by part by [1] and [2]"
OSLO_PART = (FOUND, OSLO, "says its part: Oslo was founded in 1040", ())


@pytest.mark.parametrize(
    ("text", "pages", "reason", "evidence"),
    [
        (
            f"{BOTH} [1][2][3][4].",
            {1: OSLO, 2: BERGEN, 3: "Fish swim. Bergen has rain.", 4: ""},
            BY_PARTS,
            [
                OSLO_PART,
                (FOUND, BERGEN, "says its part: Bergen was founded in 1070.", ()),
                (NOT_FOUND, "", "nothing here rests on it", ()),
                (UNCHECKED, "", "the stored text of this source is empty", ()),
            ],
        ),
        (
            "Oslo was founded in 1040 [1] and Bergen was founded by Olav [2], and fish swim.",
            {1: OSLO, 2: f"{BERGEN} Fish swim."},
            BY_PARTS,
            [OSLO_PART, (FOUND, BERGEN, "says its part: Bergen was founded by Olav", ((42, 52),))],
        ),
        (
            "Oslo was founded in 1040 [1] and Bergen was founded by Olav [2], and Kyrre founded Bergen.",
            {1: OSLO, 2: BERGEN},
            BY_PARTS,
            [OSLO_PART, (FOUND, BERGEN, "says its part: Bergen was founded by Olav", ())],
        ),
        (
            f"{ALL} [1].",
            {1: ALL_PLACES},
            IN_PLACES,
            [(FOUND, BERGEN, WORD_FOR_WORD, ((0, 50), (59, 85)))],
        ),
        (
            f"{ALL} [1][2].",
            {1: ALL_PLACES, 2: ""},
            IN_PLACES,
            [
                (FOUND, BERGEN, WORD_FOR_WORD, ((0, 50), (59, 85))),
                (UNCHECKED, "", "the stored text of this source is empty", ()),
            ],
        ),
        (
            "Oslo was founded in 1040 [1] and Bergen was founded in 1071 [2].",
            {1: OSLO, 2: BERGEN},
            "the source says '1070' where the sentence says '1071'",
            [(NOT_FOUND, OSLO, "not in this passage: 1071, Bergen", ()), (NOT_FOUND, "", NO_PASSAGE, ())],
        ),
        (
            "Oslo was founded in 1040 [1] and Bergen was founded in 1071 [2].",
            {1: OSLO, 2: ""},
            "not in this passage: 1071, Bergen",
            [
                (NOT_FOUND, OSLO, "not in this passage: 1071, Bergen", ()),
                (UNCHECKED, "", "the stored text of this source is empty", ()),
            ],
        ),
    ],
)
def test_each_source_shows_the_part_that_it_says(
    text: str, pages: dict[int, str], reason: str, evidence: list[tuple[Verdict, str, str, tuple[tuple[int, int], ...]]]
) -> None:
    claim = check_claim(text, {n: prepare(page) for n, page in pages.items()})
    assert (claim.reason, [(e.verdict, e.span, e.reason, e.places) for e in claim.evidence]) == (reason, evidence)


def test_evidence_is_the_whole_record_of_a_passage() -> None:
    page = prepare("[page 1]\n\nIntro.\n\n[page 2]\n\nThe Varn bridge opened with kings.", "http://varn.test/", "d1")
    claim = check_claim("The Varn bridge opened with kings, drums and 3 balloons.", {4: page})
    assert claim.evidence == (Evidence(4, "http://varn.test/", "d1", NOT_FOUND, 0.571, 0.0, reason=NO_PASSAGE, missing=("3",)),)
