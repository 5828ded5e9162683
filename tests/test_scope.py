"""Periods, versions, days and the standing of documents, as titles, first lines, file names and dates tell them."""

from __future__ import annotations

import pytest

from nexi.text.scope import (
    DocumentScope,
    Period,
    asks_for_now,
    asks_for_past,
    asks_for_state,
    find_periods,
    is_newer,
    name_day,
    plausible_day,
    read_scope,
)
from nexi.types import Imprint


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("Q1 2026 revenue", Period(2026, "Q1")),
        ("the first quarter of 2024", Period(2024, "Q1")),
        ("2025-Q3 report", Period(2025, "Q3")),
        ("report_2024Q2", Period(2024, "Q2")),
        ("Q4'25", Period(2025, "Q4")),
        ("H1 2025", Period(2025, "H1")),
        ("fiscal 2023", Period(2023)),
        ("FY24 budget", Period(2024)),
        ("as of 5 March 2024", Period(2024, "03")),
        ("notes-2024-03-05", Period(2024, "03")),
        ("in 1998", Period(1998)),
    ],
)
def test_a_period_is_read_however_it_is_written(text: str, period: Period) -> None:
    assert find_periods(text) == (period,)


def test_numbers_that_are_no_years_are_no_periods() -> None:
    assert find_periods("2,450 robots, 19% of 20000, Q5 and part 2101234") == ()


def test_a_year_meets_its_quarters_and_no_quarter_meets_another() -> None:
    assert Period(2026).meets(Period(2026, "Q1"))
    assert not Period(2026, "Q2").meets(Period(2026, "Q1"))
    assert not Period(2025, "Q1").meets(Period(2026, "Q1"))


@pytest.mark.parametrize(
    ("title", "url", "head", "standing"),
    [
        ("Plan", "file:///docs/plan.md", "# SUPERSEDED: Plan", "superseded"),
        ("Plan", "file:///docs/plan.md", "---\nstatus: draft\n---\n# Plan", "draft"),
        ("Plan", "file:///docs/archive/plan.md", "# Plan", "archived"),
        ("plan-draft.md", "file:///docs/plan-draft.md", "Launch in May.", "draft"),
        ("Plan", "file:///docs/plan.md", "# Plan\n\nThis document has been superseded by plan-2026.", "superseded"),
        ("Travel policy (draft)", "https://a.example/policy", "", "draft"),
        ("2006 NFL Draft", "https://a.example/nfl", "The 2006 NFL draft was held in April.", ""),
        ("Internet Archive", "https://archive.example/", "The Internet Archive keeps pages.", ""),
        ("Plan", "file:///docs/plan.md", "# Plan\n\nIt replaced the old plan, which was a draft.", ""),
    ],
)
def test_the_standing_of_a_document_is_what_it_says_of_itself(title: str, url: str, head: str, standing: str) -> None:
    assert read_scope(title, url, head).standing == standing


def test_versions_and_periods_of_one_thing_are_a_family_in_their_order() -> None:
    old, new = (read_scope(f"Price list v{n}", f"file:///a/price-list-v{n}.md", "") for n in (9, 10))
    assert old.is_of_family(new)
    assert is_newer(new, old)
    one, two = (read_scope(f"Results Q{n}", f"file:///a/results-2025-q{n}.md", f"# Results Q{n} 2025") for n in (3, 4))
    assert one.is_of_family(two)
    assert (is_newer(two, one), is_newer(one, two)) == (True, False)
    assert not read_scope("document-1.txt", "file:///a/document-1.txt", "").is_of_family(
        read_scope("document-2.txt", "file:///a/document-2.txt", "")
    )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (("Pump P7, Rev A", "file:///a/p7-rev-a.md", ""), ("Pump P7, Rev C", "file:///a/p7-rev-c.md", "")),
        (
            ("Terms", "", "# Terms\n\nEffective May 25, 2021\n"),
            ("Terms", "https://b.example/", "Valid from 2 November 2024"),
        ),
        (("Limits", "", "Last updated: 2023-06-01"), ("Limits", "file:///b/limits.md", "Last updated: 2025-06-01")),
        (("Travel policy", "file:///a/2023/policy.md", ""), ("Travel policy", "file:///a/2025/policy.md", "")),
        (("Travel policy", "file:///a/v9/policy.md", ""), ("Travel policy", "file:///a/v10/policy.md", "")),
        (("Price list (valid until 31 December 2024)", "", ""), ("Price list (valid from 1 January 2025)", "", "")),
        (("Lease agreement", "", ""), ("Amendment 1 to the lease agreement", "", "")),
        (("Amendment 1 to the lease agreement", "", ""), ("Amendment 2 to the lease agreement", "", "")),
        (("Launch date", "a.eml", "", "2025-02-03"), ("Re: Launch date", "b.eml", "", "2025-03-10")),
    ],
)  # fmt: skip
def test_a_document_that_names_its_time_in_any_of_these_places_replaces_an_older_one(
    older: tuple[str, ...], newer: tuple[str, ...]
) -> None:
    old, new = read_scope(*older), read_scope(*newer)
    assert old.is_of_family(new)
    assert (is_newer(new, old), is_newer(old, new)) == (True, False)


@pytest.mark.parametrize(
    ("announced", "current"),
    [
        (("Prices", "a.md", "# Prices\n\nEffective 1 May 2099"), ("Prices", "b.md", "# Prices\n\nEffective 1 May 2024")),
        (("Prices", "a.md", "Gültig ab dem 1. Mai 2099"), ("Prices", "b.md", "")),
        (("Prices", "a.md", "This price list applies from 2027-01-01."), ("Prices", "b.md", "", "2026-03-01")),
        (("Prices 2027", "a.md", ""), ("Prices 2026", "b.md", "")),
        (("Prices Q1 2027", "a.md", ""), ("Prices Q4 2026", "b.md", "")),
    ],
)  # fmt: skip
def test_a_document_that_holds_only_later_does_not_replace_one_that_holds_now(
    announced: tuple[str, ...], current: tuple[str, ...]
) -> None:
    later, now = (read_scope(*document, read_on="2026-11-19") for document in (announced, current))
    assert later.is_of_family(now)
    assert (is_newer(now, later), is_newer(later, now)) == (True, False)
    later_asked_for = read_scope(*announced)  # without a day, as a question about the future reads it
    assert not is_newer(now, later_asked_for)


def test_a_strategy_that_is_named_after_a_later_year_replaces_the_one_before() -> None:
    one, two = (read_scope(f"Strategy {year}", f"{year}.md", "", read_on="2026-11-19") for year in (2020, 2030))
    assert is_newer(two, one)


@pytest.mark.parametrize(
    ("line", "day", "validity"),
    [
        ("Last updated: 1 May 2099", "", ""),  # a mistake of a program or a person, and no announcement
        ("Last updated: 1 January 1970", "", ""),  # no date, as programs write it
        ("Last updated: 1 April 2567 BE", "", ""),
        ("Last updated: 12 Ramadan 1445", "", ""),
        ("Last updated: 令和6年4月1日", "", ""),
        ("Last updated: 1 May 2024", "2024-05-01", ""),
        ("Valid until 31 December 2099", "", ""),
        ("Valid until 31 December 2025", "2025-12-31", ""),
        ("Effective Friday, 20 November 2026", "2026-11-20", ""),  # elsewhere it may be that day already
        ("Effective date: 21 November 2026", "2026-11-21", "announced"),
        ("En vigueur à partir du 1 janvier 2025", "2025-01-01", ""),
        ("Effective measures were taken in the spring of the year, and again on 1 May 2025", "", ""),
    ],
)
def test_the_day_of_a_line_is_believed_as_far_as_it_can_be_true(line: str, day: str, validity: str) -> None:
    scope = read_scope("Terms", "terms.md", f"# Terms\n\n{line}\n", read_on="2026-11-19")
    assert (scope.day, scope.validity) == (day, validity)


def test_a_title_that_says_until_when_a_document_holds_does_not_say_that_it_begins_then() -> None:
    scope = read_scope("Prices (valid until 31 December 2027)", "", "", read_on="2026-11-19")
    assert scope.validity == ""


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What does a season ticket cost?", True),
        ("Where are the sales handled?", True),
        ("Explain the rules for hotels, flights and expenses.", True),
        ("What are the sales of Orsa?", False),
        ("What was the price of a season ticket?", False),
        ("What does a season ticket cost in 2024?", False),
        ("How has the price changed?", False),
    ],
)
def test_a_question_asks_what_holds_unless_it_names_a_time_or_a_figure_of_a_period(question: str, asks: bool) -> None:
    assert asks_for_state(question) is asks


def test_without_a_day_nothing_is_newer() -> None:
    assert not is_newer(DocumentScope(day="2024-01-01"), DocumentScope())
    assert not is_newer(DocumentScope(), DocumentScope(day="2024-01-01"))


@pytest.mark.parametrize(
    ("published", "updated", "day"),
    [
        ("2023-04-05", "2024-02-03T10:00:00Z", "2024-02-03"),
        ("2023-04-05", "", "2023-04-05"),
        ("2024-04-05", "2021-01-01", "2024-04-05"),  # changed before it was published: one of them is wrong
        ("2031-01-01", "", ""),  # the future
        ("1970-01-01T00:00:00Z", "", ""),  # no date, as programs write it
        ("1445-03-02", "", ""),  # the Islamic calendar
        ("2569-03-02", "", ""),  # the Buddhist calendar
        ("1405-01-09", "2023-04-05", "2023-04-05"),  # the Persian calendar, and one that can be read
        ("2023-04-05", "2026-11-17", "2023-04-05"),  # says "updated today" on the day it is read
        ("2026-11-17", "2026-11-17", "2026-11-17"),
        ("yesterday", "13/13/2024", ""),
    ],
)
def test_a_day_that_cannot_be_is_no_day(published: str, updated: str, day: str) -> None:
    assert plausible_day(Imprint(published=published, updated=updated, accessed="2026-11-17T09:00:00Z")) == day


def test_questions_about_now_and_about_the_past() -> None:
    assert all(
        map(asks_for_now, ("What is the current price?", "latest release", "Who leads it now?", "Wie hoch ist er heute?"))
    )
    assert not any(map(asks_for_now, ("What is the current in a wire?", "the price in 2023", "the town now known as Ewell")))
    assert not asks_for_now("What was the latest price in 2023?")
    assert asks_for_past("How did the price change?")
    assert not asks_for_past("What is the price?")


def test_a_day_is_named_as_people_write_it() -> None:
    assert name_day("2024-03-05") == "5 March 2024"
