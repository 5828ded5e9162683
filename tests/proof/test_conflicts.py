"""Where pages disagree with an answer, and where they only seem to."""

from __future__ import annotations

import pytest

from nexi.checking.conflicts import find_conflicts
from nexi.checking.pages import Snapshot, prepare
from nexi.text.scope import DocumentScope
from nexi.types import Claim, Conflict, ConflictValue, Evidence, Verdict

OTHER_WORDS = (
    "Trains have crossed the estuary on this structure for more than a century. Painters work on its steel all year long. "
    "The saying about a task that never ends goes back to them."
)


def claim(text: str, *numbers: int) -> Claim:
    evidence = tuple(Evidence(number, verdict=Verdict.FOUND) for number in numbers or (1,))
    return Claim(0, text, 0, len(text), Verdict.FOUND, True, "", evidence)


def page(text: str, host: str, title: str = "Forth Bridge") -> Snapshot:
    return prepare(f"# {title}\n\n{text}", f"https://{host}/forth")


def found(sentence: str, *others: str, title: str = "Forth Bridge") -> list[str]:
    pages: dict[int, Snapshot | None] = {1: page(sentence, "one.org")}
    pages |= {n: page(text, f"host{n}.org", title) for n, text in enumerate(others, 2)}
    titles = {1: "Forth Bridge - One", **dict.fromkeys(range(2, len(others) + 2), f"{title} | Host")}
    return [conflict.sentence() for conflict in find_conflicts("", [claim(f"{sentence} [1]")], pages, titles)]


def test_another_number_for_the_same_thing_is_shown_with_its_sources() -> None:
    pages: dict[int, Snapshot | None] = {
        1: page("The Forth Bridge is 2,467 metres long.", "one.org"),
        2: page(f"{OTHER_WORDS} The Forth Bridge is 2,529 metres long.", "two.org"),
        3: page("Guides say that the Forth Bridge is 2467 metres long.", "three.org"),
    }
    assert find_conflicts("How long is the Forth Bridge?", [claim("The Forth Bridge is 2,467 metres long [1].")], pages) == (
        Conflict(
            "number",
            "“The Forth Bridge is … long”",
            (
                ConflictValue("2,467 metres", (1, 3), 2, "The Forth Bridge is 2,467 metres long"),
                ConflictValue("2,529 metres", (2,), 1, "The Forth Bridge is 2,529 metres long"),
            ),
        ),
    )


def test_the_sentence_names_values_sources_and_independent_origins() -> None:
    conflict = Conflict(
        "number",
        "“it is … long”",
        (ConflictValue("1,200 m", (1, 3), 2), ConflictValue("1,300 m", (2,), 1), ConflictValue("9 m", (4,), 1)),
    )
    assert conflict.sentence() == (
        "Sources disagree on “it is … long”: 1,200 m [1][3] (2 independent), 1,300 m [2] and 9 m [4]."
    )


def test_copies_and_pages_of_one_owner_count_once() -> None:
    copied = f"The Forth Bridge is 2,529 metres long. {OTHER_WORDS}"
    pages: dict[int, Snapshot | None] = {
        1: page("The Forth Bridge is 2,467 metres long.", "one.org"),
        2: page(copied, "two.org"),
        3: page(f"A mirror. {copied}", "mirror.net"),
        4: page("We measured: the Forth Bridge is 2,529 metres long.", "www.two.org"),
    }
    (conflict,) = find_conflicts("", [claim("The Forth Bridge is 2,467 metres long [1].")], pages)
    assert [(r.value, r.numbers, r.origins) for r in conflict.readings] == [
        ("2,467 metres", (1,), 1),
        ("2,529 metres", (2, 3, 4), 1),
    ]


def test_the_better_supported_value_comes_first_whatever_the_answer_says() -> None:
    sentence = "The Forth Bridge is 2,467 metres long."
    other = "The Forth Bridge is 2,529 metres long."
    assert found(sentence, other, f"Guides know it: {other}") == [
        "Sources disagree on “The Forth Bridge is … long”: 2,529 metres [2][3] (2 independent) and 2,467 metres [1]."
    ]


@pytest.mark.parametrize(
    ("sentence", "other", "values"),
    [
        ("The Forth Bridge opened in 1890.", "The Forth Bridge opened in 1889.", "1890 [1] and 1889 [2]"),
        (
            "The Forth Bridge opened on 4 March 1890.",
            "The Forth Bridge opened on 8 March 1890.",
            "4 March 1890 [1] and 8 March 1890 [2]",
        ),
        (
            "The Forth Bridge, which two engineers designed, opened in 1890 and carries trains between Dalmeny and Fife.",
            "The Forth Bridge opened in 1889.",
            "1890 [1] and 1889 [2]",
        ),
        (
            "The Forth Bridge cost 3.2 million pounds to build.",
            "The Forth Bridge cost 5.7 million pounds to build.",
            "3.2 million pounds [1] and 5.7 million pounds [2]",
        ),
        (
            "The Forth Crossing is a 1942 Scottish film directed by Ada Lund, who wrote it with her sister and a friend.",
            "The Forth Crossing is a 1951 Scottish film.",
            "1942 [1] and 1951 [2]",
        ),
        (
            "It opened in 1890 for the trains of the North British Railway.",
            "It opened in 1882 for the trains of the North British Railway.",
            "1890 [1] and 1882 [2]",
        ),
    ],
)
def test_dates_and_amounts_are_compared(sentence: str, other: str, values: str) -> None:
    shown = found(sentence, other)
    assert [line.partition("”: ")[2] for line in shown] == ([f"{values}."] if values else [])


def test_a_denial_is_a_disagreement() -> None:
    assert found("The Forth Bridge is open to road traffic today.", "The Forth Bridge is not open to road traffic today.") == [
        "Sources disagree: “The Forth Bridge is open to road traffic today” [1]"
        " and “The Forth Bridge is not open to road traffic today” [2]."
    ]


@pytest.mark.parametrize(
    ("sentence", "other"),
    [
        ("The Forth Bridge is 2,467 metres long.", "The Forth Bridge is 2.467 km long."),
        ("The Forth Bridge is 2,467 metres long.", "The Forth Bridge is about 2,500 metres long."),
        ("The Forth Bridge is 2,467 metres long.", "The Forth Bridge is more than 2,400 metres long."),
        ("The Forth Bridge is 2,467 metres long.", "The Forth Bridge is 110 metres high."),
        ("The Forth Bridge is 2,467 metres long.", "The Tay Bridge is 3,264 metres long."),
        ("The Forth Bridge is 2,467 metres long.", "Is the Forth Bridge 2,529 metres long?"),
        ("The Forth Bridge opened in 1890.", "The Forth Bridge opened on 4 March 1890."),
        ("The Forth Bridge opened in 1890.", "The Forth Bridge was painted in 2011."),
        ("The Forth Bridge has been open since 1890.", "The Forth Bridge was open until 1995."),
        ("In 1900 the Forth Bridge carried 90 trains a day.", "In 2000 the Forth Bridge carried 200 trains a day."),
        ("The Forth Bridge carried 90 trains a day.", "In 2000 the Forth Bridge carried 200 trains a day."),
        ("The Forth Bridge is open to trains.", "The Forth Bridge is not open to walkers."),
        (
            "The 51st Golden Globe Awards, honoring the best in film for 1993, were held on January 22, 1994.",
            "The 61st Golden Globe Awards, honoring the best in film for 2003, were held on January 25, 2004.",
        ),
        ("The 1978 Orsa Cup had teams of four northern towns.", "The 1979 Orsa Cup had teams of four northern towns."),
    ],
)
def test_what_only_seems_to_disagree_is_not_shown(sentence: str, other: str) -> None:
    assert found(sentence, other) == []


def test_a_pronoun_is_not_taken_for_the_subject_of_another_page() -> None:
    sentence = "He competed in the tournament at the 1956 Summer Olympics."
    assert found(sentence, "He competed in the tournament at the 1992 Summer Olympics.", title="Somebody Else") == []


def test_a_page_that_says_both_is_not_held_against_the_answer() -> None:
    sentence = "The Forth Bridge is 2,467 metres long."
    assert found(sentence, f"The Forth Bridge is 2,529 metres long. {sentence}") == []


@pytest.mark.parametrize(
    "snapshots", [{}, {1: None}, {1: None, 2: None}, {1: prepare("One page."), 2: None}, {1: prepare(""), 2: prepare("")}]
)
def test_missing_pages_are_no_disagreement(snapshots: dict[int, Snapshot | None]) -> None:
    assert find_conflicts("q", [claim("The Forth Bridge is 2,467 metres long [1].")], snapshots) == ()


def test_a_sentence_that_no_page_supports_is_not_compared() -> None:
    text = "The Forth Bridge is 2,467 metres long."
    unsupported = Claim(0, text, 0, len(text), Verdict.NOT_FOUND, True, "", (Evidence(1, verdict=Verdict.NOT_FOUND),))
    pages: dict[int, Snapshot | None] = {
        1: page("Nothing.", "one.org"),
        2: page("The Forth Bridge is 2,529 metres long.", "two.org"),
    }
    assert find_conflicts("", [unsupported], pages) == ()


def test_at_most_three_disagreements_are_shown() -> None:
    sentences = [f"The Forth Bridge has {n},467 blue rivets in section {word}." for n, word in enumerate("abcdef", 2)]
    others = [s.replace(",467", ",999") for s in sentences]
    pages: dict[int, Snapshot | None] = {1: page(" ".join(sentences), "one.org"), 2: page(" ".join(others), "two.org")}
    assert len(find_conflicts("", [claim(s) for s in sentences], pages)) <= 3


@pytest.mark.parametrize(
    ("sentence", "other", "values"),
    [
        (
            "The Forth Bridge is a 1890 railway bridge in Scotland designed by John Fowler and Benjamin Baker.",
            "The Forth Bridge is a 1899 railway bridge in Scotland.",
            "1890 [1] and 1899 [2]",
        ),
        (
            "The Forth Bridge carried 190 trains a day in 2013 and got its third coat of paint in 2011.",
            "The Forth Bridge carried 240 trains a day in 2013.",
            "190 [1] and 240 [2]",
        ),
        (
            "The Forth Bridge was painted red around 1924.",
            "The Forth Bridge was painted red around 1941.",
            "1924 [1] and 1941 [2]",
        ),
    ],
)
def test_a_shorter_sentence_about_the_same_thing_disagrees_by_its_value(sentence: str, other: str, values: str) -> None:
    assert [shown.endswith(f": {values}.") for shown in found(sentence, other)] == [True]


def test_another_name_in_the_same_place_is_a_disagreement() -> None:
    (conflict,) = find_conflicts(
        "",
        [claim("Varn Airways was an airline based in Miami, Florida [1].")],
        {
            1: prepare("Varn Airways was an airline based in Miami, Florida.", "https://one.example/"),
            2: prepare("Varn Airways was an airline based in Anchorage, Alaska.", "https://two.example/"),
        },
    )
    assert (conflict.kind, [reading.value for reading in conflict.readings]) == (
        "name",
        ["Miami, Florida", "Anchorage, Alaska"],
    )
    assert conflict.subject == "“Varn Airways was an airline based in …”"


def test_another_subject_is_another_thing() -> None:
    pages = {
        1: prepare("Ada Lund won the cup of the northern towns in Ewell.", "https://one.example/"),
        2: prepare("Ida Holm won the cup of the northern towns in Ewell.", "https://two.example/"),
    }
    assert find_conflicts("", [claim("Ada Lund won the cup of the northern towns in Ewell [1].")], pages) == ()


def test_two_things_of_one_name_do_not_disagree() -> None:
    pages = {
        1: prepare("Orsa School (Virginia) is a public school located in Orsa, Virginia.", "https://one.example/"),
        2: prepare("Orsa School (Illinois) is a public school located in Orsa, Illinois.", "https://two.example/"),
    }
    said = claim("Orsa School (Virginia) is a public school located in Orsa, Virginia [1].")
    assert find_conflicts("Where is Orsa School?", [said], pages) == ()


def test_stubs_about_two_places_in_the_same_words_do_not_disagree() -> None:
    text = "{} is a village in Zorbia county. The population was {} at the year 2000 census. It lies on the river Orsa."
    pages: dict[int, Snapshot | None] = {
        1: prepare(text.format("Aetna", 146), "https://one.org/aetna"),
        2: prepare(text.format("Bijou", 464), "https://one.org/bijou"),
        3: prepare(text.format("Aetna", 150), "https://two.org/aetna"),
    }
    titles = {1: "Aetna, Zorbia", 2: "Bijou, Zorbia", 3: "Aetna, Zorbia"}
    conflicts = find_conflicts("", [claim("The population was 146 at the year 2000 census. [1]")], pages, titles)
    assert [[r.value for r in conflict.readings] for conflict in conflicts] == [["146", "150"]]


SATELLITE = (
    "Orsa 3 was a satellite that looked for sources of light in the northern sky. It functioned from {} to April 1979. "
    "It covered the whole range of light with four experiments on board. It was launched from a platform in the sea."
)


def test_of_copies_of_one_text_a_sentence_of_few_words_is_compared_too() -> None:
    pages: dict[int, Snapshot | None] = {
        1: prepare(SATELLITE.format("May 7, 1975"), "https://one.example/"),
        2: prepare(SATELLITE.format("January 1, 1970"), "https://two.example/"),
        3: prepare("Orsa 4 is another satellite. It functioned from June 2, 1990 to April 1999.", "https://three.example/"),
    }
    conflicts = find_conflicts("", [claim("It functioned from May 7, 1975 to April 1979. [1]")], pages)
    assert [[r.value for r in conflict.readings] for conflict in conflicts] == [["May 7, 1975", "January 1, 1970"]]


BRIDGE = (
    "The Orsa Bridge is a stone bridge across the river Orsa in the north of Zorbia, nine miles west of Velm. The engineers "
    "Ada Holt and Carl Brenner drew it, and local masons of the Falk family built it in {} from blocks of red granite. Its {} "
    "arches carried the railway to Lind until the flood of May 1951."
)
BUILT = "Orsa Bridge was finished in 1867, says the board of the museum."


def conflicts_of_copies(copy: str, *, title: str = "Orsa Bridge", days: tuple[str, str] = ("", "")) -> list[list[str]]:
    """The values shown for an answer from another page, beside a page with 1867 and nine arches and a copy of it."""
    pages: dict[int, Snapshot | None] = {
        1: page(BUILT, "one.org", "Orsa"),
        2: page(BRIDGE.format(1867, "nine"), "two.org", "Orsa Bridge"),
        3: page(copy, "three.org", title),
    }
    scopes = {2: DocumentScope(day=days[0]), 3: DocumentScope(day=days[1])}
    titles = {1: "Museum", 2: "Orsa Bridge", 3: title}
    conflicts = find_conflicts("When was Orsa Bridge built?", [claim(f"{BUILT} [1]")], pages, titles, scopes)
    return [[f"{r.value} {[*r.numbers]}" for r in conflict.readings] for conflict in conflicts]


def test_a_copy_of_any_page_with_another_value_than_the_answer_is_a_disagreement() -> None:
    assert conflicts_of_copies(BRIDGE.format(1855, "nine")) == [["1867 [2]", "1855 [3]"]]


def test_a_copy_that_differs_in_what_the_answer_does_not_say_is_left_aside() -> None:
    assert conflicts_of_copies(BRIDGE.format(1867, "five")) == []


def test_a_copy_under_the_name_of_another_thing_does_not_disagree() -> None:
    assert conflicts_of_copies(BRIDGE.format(1855, "nine"), title="Lindholm Viaduct") == []


def test_an_older_version_of_a_page_is_no_altered_copy_of_it() -> None:
    assert conflicts_of_copies(BRIDGE.format(1855, "nine"), days=("2024-01-01", "2020-01-01")) == []


def test_a_later_edition_with_another_year_and_another_number_does_not_disagree() -> None:
    text = (
        "Orsa Township lies in Zorbia County, on the river Orsa between Velm and Lind, and has a school and a mill. As of the "
        "{} census, its population was {} and it held most of the farms of Zorbia County. Ada Holt wrote its history in 1951."
    )
    pages: dict[int, Snapshot | None] = {
        1: page("Orsa Township had 4,008 inhabitants when they were counted.", "one.org", "Orsa Township"),
        2: page(text.format(2010, "4,008"), "two.org", "Orsa Township"),
        3: page(text.format(2020, "3,849"), "three.org", "Orsa Township"),
    }
    said = claim("Orsa Township had 4,008 inhabitants when they were counted. [1]")
    assert find_conflicts("How many people live in Orsa Township?", [said], pages) == ()


def test_a_year_in_an_aside_is_not_the_time_of_a_number() -> None:
    sentence = (
        "As of the 2020 census, Orsa Township had 3,849 people (down from 4,008 in 2010) and contained 1,684 housing units."
    )
    other = "As of the 2010 census, Orsa Township had 4,008 people and contained 1,729 housing units."
    assert found(sentence, other, title="Orsa Township") == []


def test_a_time_of_day_is_one_value() -> None:
    assert found("The Forth Bridge closes at 22:30 in winter.", "The Forth Bridge closes at 21:00 in winter.") == [
        "Sources disagree on “The Forth Bridge closes at … in winter”: 22:30 [1] and 21:00 [2]."
    ]
