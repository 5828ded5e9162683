"""Which sources are one origin."""

from __future__ import annotations

import pytest

from nexi.checking.origins import _is_copy, _registrable_domain, find_exchanges, group_origins, shingles

STORY = (
    "The Forth Bridge is a cantilever railway bridge across the Firth of Forth in the east of Scotland, nine miles west of "
    "central Edinburgh. Completed in 1890, it is considered a symbol of Scotland and is a World Heritage Site. It was designed "
    "by English engineers Sir John Fowler and Sir Benjamin Baker."
)
OTHER = (
    "Trains have crossed the estuary on this structure for more than a century. Painters work on its steel all year, and the "
    "saying about a task without end goes back to them. Two men drew its plans after an earlier bridge fell down in a storm."
)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("news.bbc.co.uk.", "bbc.co.uk"),
        ("EN.Wikipedia.org", "wikipedia.org"),
        ("a.b.example.com", "example.com"),
        ("example.com", "example.com"),
        ("someone.github.io", "someone.github.io"),
        ("docs.someone.github.io", "someone.github.io"),
        ("one.blogspot.com", "one.blogspot.com"),
        ("www.one.blogspot.co.uk", "one.blogspot.co.uk"),
        ("one.wordpress.com", "one.wordpress.com"),
        ("www.u-tokyo.ac.jp", "u-tokyo.ac.jp"),
        ("t.co", "t.co"),
        ("www.t.co", "t.co"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("", ""),
    ],
)
def test_the_registrable_domain_is_what_somebody_registered(host: str, domain: str) -> None:
    assert _registrable_domain(host) == domain


def test_pages_of_one_owner_are_one_origin() -> None:
    pages = {1: ("www.example.co.uk", STORY), 2: ("blog.example.co.uk", OTHER), 3: ("other.co.uk", "Short.")}
    assert group_origins(pages) == {1: 1, 2: 1, 3: 3}


def test_pages_of_two_people_on_one_host_are_two_origins() -> None:
    assert group_origins({1: ("ann.github.io", STORY), 2: ("bob.github.io", OTHER)}) == {1: 1, 2: 2}


def test_a_copy_on_another_host_is_the_same_origin() -> None:
    copied = f"Mirror of the day. {STORY} Read more on our front page, and follow us."
    assert group_origins({4: ("example.com", STORY), 7: ("mirror.net", copied)}) == {4: 4, 7: 4}


def test_origins_are_joined_through_a_third_page() -> None:
    pages = {1: ("example.com", STORY), 2: ("b.net", OTHER), 3: ("www.b.net", STORY)}
    assert group_origins(pages) == {1: 1, 2: 1, 3: 1}


def test_two_tellings_of_one_story_are_no_copies() -> None:
    assert not _is_copy(shingles(STORY), shingles(OTHER))


def test_a_few_words_in_common_are_no_copy() -> None:
    assert not _is_copy(shingles("The bridge was opened in 1890."), shingles("The bridge was opened in 1890."))


def exchanged_words(one: str, other: str) -> list[tuple[str, str]]:
    return [(one[slice(*ours)], other[slice(*theirs)]) for ours, theirs in find_exchanges(one, other)]


def test_the_values_of_an_altered_copy_are_laid_beside_those_of_the_text() -> None:
    text = f"{STORY} {OTHER}"
    altered = text.replace("1890", "1901").replace("Sir John Fowler", "Dame Ada Holt").replace("cantilever", "wooden")
    assert exchanged_words(text, altered) == [
        ("cantilever", "wooden"),
        ("1890", "1901"),
        ("Sir John Fowler", "Dame Ada Holt"),
    ]


def test_of_a_text_that_was_copied_in_part_only_numbers_are_values() -> None:
    altered = STORY.replace("1890", "1901").replace("symbol of Scotland", "symbol of Wales")
    guide = (
        "Boats leave from the pier on every day of the summer, and tickets are sold in the shop beside the old station. " * 3
    )
    assert exchanged_words(f"{OTHER} {STORY}", f"{altered} {guide}") == [("1890", "1901")]


def test_texts_about_two_towns_in_the_same_words_have_no_altered_values() -> None:
    text = (
        "{} is a township in Zorbia County. As of the census of 2000, there were {} people, {} households and {} families "
        "in the township. The population density was {} people per square mile. There were {} housing units at an average "
        "density of {}. The median income for a household in the township was ${}, and for a family ${}."
    )
    one = text.format("Aetna", 909, 335, 268, 25.6, 352, 9.9, "44,286", "52,784")
    other = text.format("Bijou", "1,636", 610, 477, 45.3, 670, 18.5, "38,110", "41,000")
    assert exchanged_words(one, other) == []


def test_a_text_and_its_exact_copy_have_no_altered_values() -> None:
    assert exchanged_words(STORY, STORY) == exchanged_words(STORY, OTHER) == []
