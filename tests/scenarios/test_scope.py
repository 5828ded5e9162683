"""Files of several periods, versions and standings: one value for the time that is asked for, and the others in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from evals.own_documents import ask_documents
from nexi.answers.answered import NOTHING_FOUND, list_readings
from nexi.llm.extractive._outdated import list_current_pages
from nexi.llm.extractive.questions import read_question
from nexi.types import Answer, PageView

RESULTS = {2024: ("14.2", "1,180"), 2025: ("27.5", "1,960"), 2026: ("46.9", "3,120")}
QUARTERS = {
    f"finance/q1-{year}.md": f"# Veltrix Q1 {year} results\n\n"
    f"Veltrix reported revenue of ${revenue}M for the first quarter.\n\n"
    f"At the end of the quarter {robots} robots were deployed.\n"
    for year, (revenue, robots) in RESULTS.items()
}
PLANS = {
    "archive/launch-plan.md": "# SUPERSEDED: VLX-500 launch plan\n\nTarget launch: Q2 2026 at list price $52,000.\n",
    "plans/vlx-500.md": "# VLX-500 launch plan\n\nThe VLX-500 will launch in Q4 2026 at a list price of $58,500.\n",
}
TAXES = (
    "# Taxes in Zorbia\n\nSmall firms in Zorbia pay a tax rate of 12 percent.\n",
    "# Zorbia guide\n\nThe tax rate for small firms in Zorbia is 15 percent.\n",
)


def ask(files: dict[str, str], question: str) -> Answer:
    answer = ask_documents(files, question)
    assert isinstance(answer, Answer), answer
    return answer


def test_a_question_about_a_quarter_gets_the_value_of_that_quarter_and_no_disagreement() -> None:
    answer = ask(QUARTERS, "What was the Q1 2025 revenue of Veltrix?")
    assert answer.text == "Veltrix reported revenue of $27.5M for the first quarter. [1]"
    assert answer.conflicts == ()


def test_a_document_that_says_it_is_superseded_is_not_the_answer() -> None:
    answer = ask(PLANS, "What is the list price of the VLX-500?")
    assert "$58,500" in answer.text
    assert "$52,000" not in answer.text.partition("Older sources")[0]


def test_a_superseded_document_is_quoted_where_it_is_asked_for() -> None:
    assert "$52,000" in ask(PLANS, "What list price did the superseded plan for the VLX-500 have?").text


def test_two_files_that_contradict_each_other_in_other_words_are_shown_as_a_disagreement() -> None:
    answer = ask({"a.md": TAXES[0], "b.md": TAXES[1]}, "What is the tax rate for small firms in Zorbia?")
    assert [[(r.value, r.numbers) for r in c.readings] for c in answer.conflicts] == [
        [("15 percent", (1,)), ("12 percent", (2,))]  # the sentence in the words of the question is cited first
    ]
    assert (
        "Sources disagree on “The tax rate for small firms in Zorbia is …”: 15 percent [1] and 12 percent [2]." in answer.text
    )


def test_a_price_list_for_next_year_is_named_below_the_one_that_holds_now() -> None:
    year = datetime.now(UTC).year
    prices = {year - 1: 200, year: 210, year + 1: 230}
    files = {f"prices-{y}.md": f"# Orsa Ferry prices {y}\n\nA season ticket costs {p} crowns.\n" for y, p in prices.items()}
    answer = ask(files, "What does a season ticket cost?")
    assert answer.text == (
        "A season ticket costs 210 crowns. [1]\n\n"
        "Sources for other times differ on “A season ticket costs … crowns”: 200 [3] and 230 [2] (upcoming)."
    )
    later = ask(files, f"What will a season ticket cost in {year + 1}?")
    assert later.text == "A season ticket costs 230 crowns. [1]"


POLICY = (
    "# Orsa travel policy {0}\n\n## Hotels\n\nEmployees of Orsa may spend up to {1} euros a night on a hotel. "
    "Hotels have to be booked through the travel portal at least {2} days before the journey.\n\n"
    "## Trains\n\nJourneys of less than {1} kilometres are made by train in second class, and {2} euros a day are refunded.\n"
)
MINUTES = "# Orsa works council, {0}\n\n## {1}\n\nThe council of Orsa decided that {2}. It will look at the matter again.\n"


def list_current(question: str, texts: Iterable[str]) -> list[int]:
    """The numbers of the pages that a report on the question is written from."""
    today = datetime.now(UTC).date().isoformat()
    pages = [
        PageView(f"file:///{n}.md", n, text.partition("\n")[0].lstrip("# "), text, read_on=today)
        for n, text in enumerate(texts, 1)
    ]
    return [page.number for page in list_current_pages(read_question(question), pages)]


def test_a_report_is_written_from_the_version_that_holds_at_the_time_asked_for() -> None:
    year = datetime.now(UTC).year
    versions = [POLICY.format(year + n, 140 + 20 * n, 10 + n) for n in (-3, -1, 0, 1)]
    versions += ["# Draft: Orsa travel policy\n\nEmployees of Orsa may spend up to 900 euros a night on a hotel.\n"]
    assert list_current("Explain the travel policy of Orsa: hotels and trains.", versions) == [3]
    assert list_current(f"Explain the travel policy of Orsa in {year - 1}: hotels and trains.", versions) == [2]
    assert list_current(f"What will the travel policy of Orsa be in {year + 1}?", versions) == [4]
    assert list_current("How has the travel policy of Orsa changed?", versions) == [1, 2, 3, 4, 5]


def test_a_report_keeps_the_minutes_of_an_earlier_meeting() -> None:
    texts = [
        MINUTES.format("3 March 2025", "Bicycles", "every bicycle that is used to come to work is repaired at its cost"),
        MINUTES.format("7 May 2025", "Canteen", "the canteen opens at seven and has a meal without meat each day"),
    ]
    assert list_current("Explain what the works council of Orsa decided.", texts) == [1, 2]


AGREEMENT = (
    "# Service agreement\n\nDate: {0}\n\nThis agreement is made between Orsa Ltd and {1}.\n\n"
    "## Notice\n\nEither party may end the agreement with a notice of {2} days.\n\n"
    "## Fee\n\nOrsa pays a monthly fee of {3} euros.\n"
)
AGREEMENTS = {
    "a/agreement.md": AGREEMENT.format("2023-04-01", "Alda Cleaning", 30, 900),
    "b/agreement.md": AGREEMENT.format("2025-04-01", "Berg Catering", 90, 1400),
}


def test_contracts_of_one_title_with_two_parties_are_no_versions_of_each_other() -> None:
    for party, fee in (("Alda Cleaning", "900"), ("Berg Catering", "1400")):
        answer = ask(AGREEMENTS, f"What is the monthly fee of {party}?")
        assert re.findall(r"fee of (\d+) euros", answer.text) == [fee]
        assert (answer.answered, answer.conflicts) == ("yes", ())
        pages = [PageView(f"file:///{n}.md", n, "Service agreement", text) for n, text in enumerate(AGREEMENTS.values())]
        current = list_current_pages(read_question(f"Explain what Orsa agreed with {party}."), pages)
        assert [party in page.text for page in current] == [True]


def test_a_number_with_its_unit_is_one_disagreement_and_not_two() -> None:
    answer = ask(AGREEMENTS, "What is the notice of either party of the service agreement?")
    assert answer.text.count("Older sources differ") == 1


def test_a_line_that_is_dated_in_the_future_does_not_make_a_document_the_newest() -> None:
    ferry = "# Orsa Ferry prices\n\n{}\n\nA season ticket costs {} crowns.\n"
    announced = {"a.md": ferry.format("Effective 1 May 2024", 210), "b.md": ferry.format("Effective 1 May 2099", 230)}
    assert ask(announced, "What does a season ticket cost?").text == (
        "A season ticket costs 210 crowns. [1]\n\n"
        "Sources for a later time differ on “A season ticket costs … crowns”: 230 [2] (upcoming, 2099-05-01)."
    )
    wrong = {"a.md": ferry.format("Last updated 1 May 2024", 210), "b.md": ferry.format("Last updated 1 May 2099", 230)}
    assert [c.is_settled for c in ask(wrong, "What does a season ticket cost?").conflicts] == [False]


def test_the_current_row_of_a_table_is_not_one_of_a_later_year() -> None:
    year = datetime.now(UTC).year
    rows = "".join(f"| {y} | {200 + y - year} crowns |\n" for y in range(year - 2, year + 3))
    table = f"# Orsa Ferry prices\n\n| Year | Season ticket |\n|---|---|\n{rows}"
    assert f"{year} – 200 crowns [1]" in ask({"t.md": table}, "What is the current price of a season ticket?").text


def test_of_two_dated_files_the_newer_holds_and_the_older_is_named_as_older() -> None:
    files = {"a.md": f"---\ndate: 2022-03-01\n---\n{TAXES[0]}", "b.md": f"---\ndate: 2025-02-01\n---\n{TAXES[1]}"}
    answer = ask(files, "What is the tax rate for small firms in Zorbia?")
    assert answer.text.startswith("The tax rate for small firms in Zorbia is 15 percent.")
    assert "Older sources differ on “The tax rate for small firms in Zorbia is …”: 12 percent [2] (2022-03-01)." in answer.text
    assert [conflict.is_settled for conflict in answer.conflicts] == [True]


def test_what_only_the_older_version_says_can_still_be_quoted() -> None:
    files = {
        "handbook-v1.md": "# Handbook v1\n\nThe Ewell office opens at 8 am. Parking permits are issued by Ada Lund.\n",
        "handbook-v2.md": "# Handbook v2\n\nThe Ewell office opens at 9 am.\n",
    }
    assert "Ada Lund" in ask(files, "Who issues parking permits at the Ewell office?").text
    assert "9 am" in (text := ask(files, "When does the Ewell office open?").text)
    assert "8 am" not in text.partition("Older sources")[0]


def test_a_question_without_a_period_is_answered_for_each_period_in_a_line() -> None:
    answer = ask(QUARTERS, "What is the revenue of Veltrix?")
    assert answer.text.splitlines() == [
        "- Q1 2026: Veltrix reported revenue of $46.9M for the first quarter. [1]",
        "- Q1 2025: Veltrix reported revenue of $27.5M for the first quarter. [2]",
        "- Q1 2024: Veltrix reported revenue of $14.2M for the first quarter. [3]",
    ]
    assert (answer.answered, answer.conflicts) == ("depends", ())
    assert list_readings(answer.text, answer.answered) == ["Q1 2026", "Q1 2025", "Q1 2024"]


def test_two_people_of_one_name_are_kept_apart() -> None:
    files = {
        "a.md": "# Michael Jordan (basketball)\n\nMichael Jordan was born on 17 February 1963 in Brooklyn.\n",
        "b.md": "# Michael Jordan (footballer)\n\nMichael Jordan was born on 7 April 1986 in Cheshunt.\n",
    }
    answer = ask(files, "When was Michael Jordan born?")
    assert sorted(line[: line.index(":")] for line in answer.text.splitlines()) == [
        "- Michael Jordan (basketball)",
        "- Michael Jordan (footballer)",
    ]
    assert (answer.answered, answer.conflicts) == ("depends", ())


def test_a_word_of_the_question_that_tells_namesakes_apart_leaves_the_others_out() -> None:
    files = {
        "a.md": "# Michael Jordan (basketball)\n\nMichael Jordan was born on 17 February 1963 in Brooklyn.\n",
        "b.md": "# Michael Jordan (footballer)\n\nMichael Jordan was born on 7 April 1986 in Cheshunt.\n",
    }
    answer = ask(files, "When was the footballer Michael Jordan born?")
    assert answer.text == "Michael Jordan was born on 7 April 1986 in Cheshunt. [1]"


def test_texts_that_begin_with_their_title_are_told_apart_by_it_and_quoted_without_it() -> None:
    files = {
        "a.txt": "Orsgood, Indiana Orsgood is a town in Indiana. The population was 1,624 at the 2010 census.",
        "b.txt": "Orsgood, Missouri Orsgood is a village in Missouri. The population was 48 at the 2010 census.",
    }
    answer = ask(files, "What is the population of Orsgood?")
    assert sorted(line[:-4] for line in answer.text.splitlines()) == [
        "- Orsgood, Indiana: The population was 1,624 at the 2010 census.",
        "- Orsgood, Missouri: The population was 48 at the 2010 census.",
    ]


def test_of_values_that_pages_give_for_one_thing_the_majority_is_quoted_and_the_other_shown() -> None:
    files = {
        "a.md": "# Beacon Mill\n\nBeacon Mill in Benenden was last worked for trade in 1955.\n",
        "b.md": "# Mills of Kent\n\nBeacon Mill in Benenden was last worked for trade in 1921.\n",
        "c.md": "# Benenden\n\nThe mill on the hill stands still since 1921 and is called Beacon Mill.\n",
    }
    answer = ask(files, "When was Beacon Mill last worked?")
    own, _, dispute = answer.text.partition("Sources disagree on")
    assert "last worked for trade in 1921" in own
    assert "1955" not in own
    assert "1955" in dispute


def test_where_as_many_pages_give_one_value_as_another_the_answer_says_that_they_disagree() -> None:
    files = {
        "a.md": "# Beacon Mill\n\nBeacon Mill in Benenden was last worked for trade in 1955.\n",
        "b.md": "# Mills of Kent\n\nBeacon Mill in Benenden was last worked for trade in 1921.\n",
    }
    answer = ask(files, "When was Beacon Mill last worked?")
    assert answer.text.startswith("Sources disagree: ")
    assert [sorted(r.value for r in conflict.readings) for conflict in answer.conflicts] == [["1921", "1955"]]
    assert all("Sources disagree" not in conflict.subject for conflict in answer.conflicts)


TALK_SHOW = (
    "Talk Show ({0} album) Talk Show is the first and only album by R&B singer {0}, released in January 1999 through Uptown "
    "Records. Though it was met with good reviews, the album was a commercial failure and left the charts after one week."
)


def test_a_copy_of_a_page_with_another_name_in_it_is_a_disagreement_and_no_other_thing_of_the_name() -> None:
    files = {
        "a.txt": TALK_SHOW.format("Shae Jones"),
        "b.txt": TALK_SHOW.format("Beyoncé"),
        "c.txt": "Talk Show (The Go-Go's album) Talk Show is the third album by the American rock band the Go-Go's.",
    }
    answer = ask(files, 'Who is the artist of the album "Talk Show"?')
    own = [line for line in answer.text.splitlines() if line.startswith("- ")]
    assert sorted(line.partition(": ")[0] for line in own) == ["- Talk Show", "- Talk Show (The Go-Go's album)"]
    assert [sorted(r.value for r in conflict.readings) for conflict in answer.conflicts] == [["Beyoncé", "Shae Jones"]]


def test_copies_of_a_page_with_another_number_are_a_disagreement_also_where_the_sentence_names_nothing() -> None:
    text = (
        "Sandusk Township lies in the west of Zorbia county. As of the 2010 census the population was {}. It has two schools."
    )
    answer = ask({"a.txt": text.format("459"), "b.txt": text.format("1,234")}, "What is the population of Sandusk Township?")
    assert "Sources disagree on “As of the 2010 census the population was …”: " in answer.text
    assert [sorted(r.value for r in conflict.readings) for conflict in answer.conflicts] == [["1,234", "459"]]


def test_of_dated_copies_of_a_page_the_newest_holds_and_the_others_are_named_as_older() -> None:
    text = "---\ndate: {}-03-01\n---\n# Orsa ferry: fares\n\nOn the Orsa ferry the fare of a grown-up person is {} crowns.\n"
    files = {f"{name}.md": text.format(year, fare) for name, year, fare in (("a", 2021, 41), ("b", 2025, 46), ("c", 2023, 44))}
    answer = ask(files, "What is the fare of a grown-up on the Orsa ferry?")
    assert answer.text.startswith(
        "On the Orsa ferry the fare of a grown-up person is 46 crowns. [1]\n\nOlder sources differ on"
    )
    assert [conflict.is_settled for conflict in answer.conflicts] == [True]


def test_in_another_version_of_a_document_another_name_is_an_older_one() -> None:
    text = "---\ndate: {}-05-01\n---\n# Orsa leadership\n\nThe chief executive of Orsa is {}.\n"
    answer = ask(
        {"a.md": text.format(2022, "Petra Novak"), "b.md": text.format(2025, "Tom Hale")}, "Who is the chief executive of Orsa?"
    )
    assert answer.text == (
        "The chief executive of Orsa is Tom Hale. [1]\n\n"
        "Older sources differ on “The chief executive of Orsa is …”: Petra Novak [2] (2022-05-01)."
    )


def test_a_price_of_several_years_is_the_newest_one_and_the_others_are_named_as_older() -> None:
    files = {f"prices-{n}.md": f"# Orsa prices {n}\n\nA season ticket costs {n - 1800} crowns.\n" for n in (2022, 2024, 2025)}
    answer = ask(files, "What does a season ticket cost?")
    assert answer.text.startswith(
        "A season ticket costs 225 crowns. [1]\n\nOlder sources differ on “A season ticket costs … crowns”:"
    )
    assert ask(files, "What did a season ticket cost in 2024?").text.startswith("A season ticket costs 224 crowns. [1]")


def test_a_row_of_the_period_that_was_asked_for_is_quoted_alone() -> None:
    files = {"q.md": "# Orsa figures\n\n| quarter | revenue |\n|---|---|\n| Q1 2024 | $14.2M |\n| Q1 2025 | $27.5M |\n"}
    assert ask(files, "What was the revenue of Orsa in Q1 2025?").text == "quarter: Q1 2025 – revenue: $27.5M [1]"


def test_guides_to_two_cities_do_not_disagree() -> None:
    text = "# City guide: {}\n\nThe tourist tax is {} percent.\n"
    answer = ask({"a.md": text.format("Oslo", 3), "b.md": text.format("Bergen", 5)}, "What is the tourist tax in Bergen?")
    assert (answer.text, answer.conflicts) == ("The tourist tax is 5 percent. [1]", ())


def test_a_question_about_now_says_the_date_of_its_newest_source() -> None:
    answer = ask({"b.md": f"---\ndate: 2025-02-01\n---\n{TAXES[1]}"}, "What is the current tax rate for small firms in Zorbia?")
    assert "\n\n**As of 1 February 2025, " in answer.text


def test_a_thing_that_was_never_named_is_asked_back() -> None:
    files = {"a.md": "# Ewell library\n\nThe library in Ewell lends 12 books.\n"}
    answer = ask(files, "How many books does this library lend?")
    assert answer.answered == "depends"
    assert "The question does not say which library is meant; this answer is about Ewell library [1]." in answer.text


def test_things_of_the_kind_that_was_not_named_are_answered_one_by_one() -> None:
    files = {
        "a.md": "# Ewell library\n\nThe library lends 12 books at a time.\n",
        "b.md": "# Ash library\n\nThe library lends 9 books at a time.\n",
    }
    answer = ask(files, "How many books does this library lend?")
    assert answer.text.splitlines() == [
        "- Ewell library: The library lends 12 books at a time. [1]",
        "- Ash library: The library lends 9 books at a time. [2]",
    ]
    assert (answer.answered, answer.conflicts) == ("depends", ())


def test_what_a_cited_page_is_about_is_read_from_its_text_where_it_has_no_title() -> None:
    answer = ask(
        {"a.md": "Ewell library (Surrey) is old. The library lends 12 books.\n"}, "How many books does this library lend?"
    )
    assert answer.text.endswith("this answer is about Ewell library (Surrey) [1].")
    untitled = ask(
        {"a.md": "there is a library in Ewell, and the library lends 12 books.\n"}, "How many books does this library lend?"
    )
    assert untitled.text.endswith("The question does not say which library is meant.")


def test_a_short_question_to_which_nothing_on_the_pages_is_near_is_not_answered() -> None:
    answer = ask({"a.md": "# Note\n\nThis folder was opened on a Tuesday.\n"}, "Any example?")
    assert (answer.text, answer.answered) == (NOTHING_FOUND, "no")


def test_of_many_versions_the_newest_is_read_and_quoted() -> None:
    files = {f"price-v{n}.md": f"# Orsa price list v{n}\n\nThe Orsa ticket costs {n + 100} crowns.\n" for n in range(1, 13)}
    answer = ask(files, "What does the Orsa ticket cost?")
    assert answer.text.startswith("The Orsa ticket costs 112 crowns.")
    assert all(conflict.is_settled for conflict in answer.conflicts)


def test_of_two_thousand_versions_in_a_folder_the_newest_is_read_and_quoted() -> None:
    files = {f"price-v{n}.md": f"# Orsa price list v{n}\n\nThe Orsa ticket costs {n + 50000} crowns.\n" for n in range(1, 2001)}
    answer = ask(files, "What does the Orsa ticket cost?")
    assert answer.text.startswith("The Orsa ticket costs 52000 crowns.")
    assert all(conflict.is_settled for conflict in answer.conflicts)


def test_many_files_of_one_name_that_nothing_dates_are_no_versions() -> None:
    files = {f"part{n}/README.md": f"# README\n\nThe Orsa pump number {n} is made of steel.\n" for n in range(1, 41)}
    assert "number 7 is" in ask(files, "What is the Orsa pump number 7 made of?").text


def test_of_two_messages_of_a_mailbox_the_later_one_that_corrects_the_first_is_the_answer() -> None:
    mails = (
        ("Mon, 1 Jun 2026 09:00:00 +0000", "the pump arrives on 9 June"),
        ("Wed, 3 Jun 2026 09:00:00 +0000", "the pump arrives on 12 June"),
    )
    mailbox = "".join(
        f"From ann@x.example {day}\nFrom: Ann <ann@x.example>\nSubject: Delivery of the pump\nDate: {day}\n\n"
        f"A note: {text}.\n\n"
        for day, text in mails
    )
    first, _, dispute = ask({"mail.mbox": mailbox}, "When does the pump arrive?").text.partition("\n\n")
    assert first == "A note: the pump arrives on 12 June. [1]"
    assert "12 June [1] (2026-06-03) and 9 June [2] (2026-06-01)" in dispute
