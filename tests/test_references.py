"""Questions that leave open which of several things of one name they mean."""

from __future__ import annotations

import pytest

from nexi.text.references import find_namesakes, find_other_things, find_qualified, find_things_of_kind, name_subject

PAGES = [
    ("Michael Jordan (footballer)", "Michael Jordan was born in 1986."),
    ("Michael Jordan", "Michael Jordan was born in 1963."),
    ("Chicago Bulls", "Michael Jordan played for the Chicago Bulls."),
]


def test_pages_about_different_things_of_one_name_are_namesakes() -> None:
    assert find_namesakes("When was Michael Jordan born?", PAGES) == {0: "Michael Jordan (footballer)", 1: "Michael Jordan"}


def test_the_first_words_of_a_text_can_name_its_subject() -> None:
    pages = [("a.txt", "Ryan Davis (golfer) was born in 1980."), ("b.txt", "Ryan Davis (author) was born in 1970.")]
    assert find_namesakes("When was Ryan Davis born?", pages) == {0: "Ryan Davis (golfer)", 1: "Ryan Davis (author)"}


def test_a_question_that_says_which_is_meant_has_no_namesakes() -> None:
    assert find_namesakes("When was the footballer Michael Jordan born?", PAGES) == {}


def test_a_question_with_the_whole_name_of_one_means_that_one() -> None:
    pages = [("Eustace III, Count of Boulogne", ""), ("Eustace I, Count of Boulogne", ""), ("Count of Boulogne", "")]
    assert find_namesakes("Who was the father of Eustace III, Count of Boulogne?", pages) == {}
    assert find_other_things("When did Osgood, Indiana grow?", [("Osgood, Indiana", ""), ("Osgood, Ohio", "")]) == {1}


@pytest.mark.parametrize(
    ("question", "subjects"),
    [
        ("What is the population of Osgood?", ["Osgood, Indiana", "Osgood, Missouri"]),
        ("When was Patrick Regan born?", ["Patrick M. Regan", "Patrick Regan (sailor)"]),
        ("When was Judge Howe born?", ["James Henry Howe", "Harland Bradley Howe"]),
        ("When was the Orsa Satellite launched?", ["Orsa Satellite 2", "Orsa Satellite 3"]),
        ("Who won the Orsa Cup?", ["1998 Orsa Cup", "2018 Orsa Cup"]),
        ("Who made the album Giant Steps?", ["Giant Steps", "Giant Steps (The Orsas album)"]),
        ("Who owned the Short House?", ["George Short House", "William A. Short House"]),
        ("When was Orsa Counts released?", ["Orsa Counts (album)", "Orsa Counts 2012"]),
        ("Who led the Orsa invasion of Velm?", ["Orsa invasion of Velm (1097)", "Orsa invasion of Velm (1110)"]),
        ("When was Mahmud II born?", ["Mahmud II of Orsa", "Mahmud II of Velm"]),
        ("When was Carl Berg born?", ["Carl Berg (sailor)", "Carl Berg Sr."]),
        ("When was the Orsa Mouse TV series made?", ["Orsa Mouse (1981 TV series)", "Orsa Mouse (2015 TV series)"]),
        ("When is the feast of Saint Velm?", ["Velm of Orsa", "Velm the Elder"]),
        ("Who succeeded King Carl?", ["Carl II of Orsa", "Carl III"]),
    ],
)
def test_things_of_one_name_have_many_forms(question: str, subjects: list[str]) -> None:
    assert find_namesakes(question, [(s, f"{s} is an album.") for s in subjects]) == dict(enumerate(subjects))


def test_people_of_one_last_name_are_namesakes_where_no_page_is_about_the_bare_name() -> None:
    people = [
        ("Ipi Morea", "Ipi Morea (born 6 May 1975) is a batsman."),
        ("Vani Morea", "Vani Morea (born 1983) is a batsman."),
    ]
    assert find_namesakes("When did Morea begin to play?", people) == {0: "Ipi Morea", 1: "Vani Morea"}
    assert find_namesakes("When did Morea begin to play?", [*people, ("Morea", "Morea is a province.")]) == {}


def test_commands_of_a_manual_that_share_words_are_no_namesakes() -> None:
    pages = [("git-branch(1)", "git-branch is a command."), ("git-filter-branch(1)", "git-filter-branch is a command.")]
    assert find_namesakes("how to rename a git branch", pages) == {}


def test_a_longer_title_that_its_text_does_not_explain_is_no_namesake() -> None:
    pages = [("Visit Orsa Bay", "Plan your trip to Orsa Bay."), ("Cruises to Orsa Bay", "Book a cruise to Orsa Bay now.")]
    assert find_namesakes("Where is Orsa Bay?", pages) == {}


def test_a_bracket_after_a_name_says_that_there_are_others_of_it() -> None:
    pages = [("Belgian Open (tennis)", "The Belgian Open was a tennis event."), ("Golf news", "The Belgian Open is back.")]
    assert find_qualified("When was the Belgian Open held?", pages) == {0: "Belgian Open (tennis)"}
    assert find_qualified("When was the Belgian Open of tennis held?", pages) == {}


@pytest.mark.parametrize(
    ("question", "subjects"),
    [
        ("How many books does this library lend?", {0: "Ewell library", 1: "Orsa"}),
        ("How many books does the Ewell library lend?", {}),
        ("Who won this battle?", {}),
    ],
)
def test_pages_are_about_things_of_a_kind_by_their_name_or_their_first_words(question: str, subjects: dict[int, str]) -> None:
    pages = [
        ("Ewell library", "It lends 12 books."),
        ("Orsa", "The Orsa is a public library."),
        ("Library", "A library lends books."),
        ("Battle of Velm", "The Battle of Velm was fought in 1110."),
    ]
    assert find_things_of_kind(question, pages) == subjects


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Osgood, Indiana Osgood is a town.", "Osgood, Indiana"),
        ("Rick Leach (baseball) Richard Max Leach played.", "Rick Leach (baseball)"),
        ("Ada Lund (born 3 May 1970) is a judge.", "Ada Lund"),
        ("Carl Holt The Honourable Carl Holt (5 May 1831) was a historian.", "Carl Holt"),
        ("Let Orsa Do It! Let Orsa Do It is a film.", "Let Orsa Do It!"),
        ("The Orsa Patient The Orsa Patient is a novel.", "The Orsa Patient"),
        ("The average family has two cars. The median age is 40.", ""),
        ("Mouse is a series. For the new one, see Orsa Mouse (2015) and others.", ""),
        ("there were 5,000 people in the town (2010) and more.", ""),
    ],
)
def test_a_text_without_a_title_is_about_what_it_begins_with(text: str, subject: str) -> None:
    assert name_subject("a.txt", text) == subject


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("Which came first, The Staten Island Catapult or Frida?", ("Staten Island", "St. George, Staten Island")),
        ("Which park at Coney Island lasted longest?", ("Luna Park, Coney Island (1903)", "Luna Park, Coney Island (2010)")),
        ("Who was Alfonso II of Aragon's father?", ("Alfonso II, Duke of Gandia", "Alfonso II, Count of Provence")),
    ],
)
def test_a_name_within_a_longer_one_and_the_place_of_a_thing_are_not_its_name(question: str, titles: tuple[str, ...]) -> None:
    assert find_namesakes(question, [(title, f"{title} is known.") for title in titles]) == {}


def test_a_title_is_a_name_of_the_person_who_bears_it() -> None:
    pages = [("Alfonso II, Duke of Gandia", ""), ("Alfonso the Elder, Duke of Gandia", "")]
    assert len(find_namesakes("Who was the Duke of Gandia?", pages)) == 2


def test_a_page_that_only_lists_things_of_one_name_is_none_of_them() -> None:
    pages = [
        ("Father Damien - Wikipedia", "Father Damien was a priest."),
        ("Father Damien (disambiguation)", "It may refer to:"),
    ]
    assert find_namesakes("What did Father Damien do?", pages) == {}


@pytest.mark.parametrize(
    ("question", "others"),
    [
        ("What is the tourist tax in Bergen?", {0}),
        ("What is the tourist tax in Norway?", set()),
        ("Is the tourist tax higher in Bergen or at the coast?", set()),
        ("How do the taxes of Oslo and Bergen differ?", set()),
    ],
)
def test_a_guide_to_another_city_than_the_one_that_is_asked_about_is_about_another_thing(
    question: str, others: set[int]
) -> None:
    pages = [("City guide: Oslo", "The tourist tax is 3 percent."), ("City guide: Bergen", "The tourist tax is 5 percent.")]
    assert find_other_things(question, pages) == others


def test_of_two_people_who_share_a_surname_one_may_answer_for_the_other() -> None:
    pages = [("Ada Lund", "Ada Lund is the daughter of Nils Lund."), ("Nils Lund", "Nils Lund was a judge in Ewell.")]
    assert find_other_things("Who was the father of Ada Lund?", pages) == set()
