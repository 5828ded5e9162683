"""The report without a model: a section for each part, whole passages of pages about the subject, nothing twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nexi.llm.extractive import report
from nexi.llm.extractive._part_questions import read_part
from nexi.llm.extractive._stretches import read_stretches
from nexi.llm.extractive.passages import ContentWords
from nexi.llm.extractive.report import NOT_ANSWERED, TOO_BROAD
from nexi.research.titles import make_heading, make_title
from nexi.types import PageView


def write_report(question: str, parts: Sequence[str], pages: Sequence[PageView], words: int = 0) -> str:
    headings = {part: make_heading(part) for part in parts}
    return report.write_report(question, headings, pages, title=make_title(question), words=words)


def write_read_report(
    question: str, parts: Sequence[str], pages: Sequence[PageView], nearest: Sequence[str], words: int = 0
) -> str:
    """A report whose reading model finds texts with one of these words near, and all others far."""

    def compare(_: str, texts: Sequence[str]) -> list[float]:
        return [0.93 if any(word in text for word in nearest) else 0.7 for text in texts]

    headings = {part: make_heading(part) for part in parts}
    return report.write_report(question, headings, pages, compare, title=make_title(question), words=words)


TIDES = PageView(
    "https://sea.example/tides",
    3,
    "Ocean tide - The Sea",
    "# Ocean tide\n\nAn ocean tide is the rise and fall of the sea.\n\n"
    "The main cause of the tides is the Moon. Its gravity pulls at the water. The Sun is a weaker cause.\n\n"
    "The effects on harbours are large. Ships wait for high water. A strong current has an effect on the ground too.\n\n"
    "The festival of the sea has music every summer.",
)
SHOP = PageView("https://shop.example/", 4, "Effects for guitars", "The causes and effects of noise are explained in our shop.")
PARTS = ["What are the causes of the ocean tide?", "What are the effects of the ocean tide?"]
QUESTION = "What are the causes and effects of the ocean tide?"


def test_every_part_has_a_section_of_passages_about_the_subject() -> None:
    assert write_report(QUESTION, PARTS, [TIDES, SHOP]) == (
        "# Causes and effects of the ocean tide\n\n"
        f"## {PARTS[0]}\n\n"
        "The main cause of the tides is the Moon. [3] Its gravity pulls at the water. [3] The Sun is a weaker cause. [3]\n\n"
        f"## {PARTS[1]}\n\n"
        "The effects on harbours are large. [3] Ships wait for high water. [3] "
        "A strong current has an effect on the ground too. [3]"
    )


def test_what_the_pages_do_not_say_is_named() -> None:
    text = write_report(QUESTION, [*PARTS, "Who painted the ocean tide?"], [TIDES])
    assert text.endswith("\n\n## Not found\n\n- Who painted the ocean tide?")


def test_the_same_passage_of_two_pages_is_quoted_once() -> None:
    copy = PageView("https://copy.example/", 5, "Ocean tide", TIDES.text)
    text = write_report(QUESTION, PARTS, [TIDES, copy])
    assert text.count("Its gravity pulls at the water.") == 1


def test_a_passage_that_begins_with_it_names_its_subject() -> None:
    page = PageView("https://sea.example/", 1, "Ocean tide", "It is caused by the Moon. The Moon causes it.\n\nBoats sail. [x]")
    assert "Ocean tide is caused by the Moon. [1]" in write_report(QUESTION, PARTS, [page])


def test_commands_and_bracketed_subjects_do_not_stand_in_headings() -> None:
    page = PageView(
        "https://l.example/", 2, "Lisbon", "The climate of Lisbon is mild in summer.\n\nThe new city council governs Lisbon."
    )
    parts = ["Describe the climate of Lisbon.", "How is the city governed (Lisbon)?"]
    text = write_report("Describe the climate of Lisbon. How is the city governed?", parts, [page])
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        "## The climate of Lisbon",
        "## How is the city governed?",
    ]


def test_a_question_that_no_page_answers_gets_an_outline_of_the_pages_near_it() -> None:
    parts = ["Who painted the tide?", "Who sang of the tide?"]
    assert write_report("Who painted the tide, and who sang of the tide?", parts, [TIDES]) == (
        f"# The tide\n\n{TOO_BROAD}\n\n- Ocean tide: An ocean tide is the rise and fall of the sea. [3]"
    )


def test_pages_about_something_else_are_not_even_listed() -> None:
    text = write_report("What are the ideas and forms of Italian opera?", ["Italian ideas?", "Italian forms?"], [TIDES, SHOP])
    assert text == f"# Ideas and forms of Italian opera\n\n{NOT_ANSWERED}"


def test_without_a_page_or_with_one_fact_asked_for_there_is_no_report() -> None:
    assert write_report(QUESTION, PARTS, []) == ""
    assert write_report("Who painted the ocean tide?", ["Who painted the ocean tide?"], [TIDES]) == ""


QUAKE = PageView(
    "https://quakes.example/valley",
    1,
    "Valley earthquake",
    "The Valley earthquake caused 412 deaths and left many people without a roof over their heads.\n\n"
    "It was felt where one plate of the crust moves under another, so that strain had built up for centuries along the fault.",
)


def test_causes_are_read_and_not_taken_from_a_sentence_with_the_word_caused() -> None:
    parts = ["What were the causes of the Valley earthquake?", "Who led the Valley earthquake's relief?"]
    text = write_read_report(
        "What were the causes of the Valley earthquake, and who led the relief?", parts, [QUAKE], ["plate"]
    )
    assert text == (
        "# The Valley earthquake\n\n## What were the causes of the Valley earthquake?\n\n"
        "Valley earthquake was felt where one plate of the crust moves under another, so that strain had built up "
        "for centuries along the fault. [1]\n\n## Not found\n\n- Who led the Valley earthquake's relief?"
    )


def test_how_something_works_is_not_its_side_effects() -> None:
    page = PageView(
        "https://pills.example/",
        2,
        "Salve",
        "The salve works against you when the skin turns red, which is its most common side effect in adults.\n\n"
        "The salve closes the pores of the wall that surrounds each germ, so that the germ can no longer take up water.",
    )
    text = write_read_report("How does the salve work?", ["How does the salve work?"], [page], ["pores"])
    assert text == (
        "# How the salve works\n\n"
        "The salve closes the pores of the wall that surrounds each germ, so that the germ can no longer take up water. [2]"
    )


def test_pages_of_an_earlier_question_are_neither_quoted_nor_listed() -> None:
    other = PageView("https://db.example/", 1, "Isolation levels", "Isolation levels say what a transaction sees of others.")
    text = write_read_report(QUESTION, PARTS, [other, TIDES], ["Ocean tide"])
    assert "[1]" not in text
    assert "[3]" in text


def test_a_list_is_quoted_whole_with_what_introduces_it() -> None:
    page = PageView(
        "https://log.example/",
        1,
        "Log mode",
        "# Log mode\n\nThere is much to say. Advantages of the log mode include:\n\n1. Readers do not wait.\n2. Writes are "
        "[fast](x).\n\nBut there are also disadvantages of the log mode:\n\n- One host only.\n- ~~No small pages.~~ Two files "
        "more.[update]\n\n~~Gone.~~",
    )
    parts = ["What are the advantages of the log mode?", "What are the disadvantages of the log mode?"]
    text = write_report("What are the advantages and disadvantages of the log mode?", parts, [page])
    assert text == (
        "# Advantages and disadvantages of the log mode\n\n## What are the advantages of the log mode?\n\n"
        "Advantages of the log mode include: [1]\n\n1. Readers do not wait. [1]\n2. Writes are "
        "fast. [1]\n\n"
        "## What are the disadvantages of the log mode?\n\nBut there are also disadvantages of the log mode: [1]\n\n"
        "- One host only. [1]\n- Two files more. [1]"
    )


@pytest.mark.parametrize(("lead", "is_introduction"), [("The kinds in use are", True), ("There are many kinds.", False)])
def test_a_sentence_without_a_stop_introduces_the_list_below_it(lead: str, is_introduction: bool) -> None:
    page = f"# Latches\n\nA latch keeps a door closed. {lead}\n\n- Bolts\n- Bars\n"
    lists = [stretch.text for stretch in read_stretches(page) if "Bolts" in stretch.text]
    assert [text.startswith(lead) for text in lists] == [is_introduction]


def test_a_step_keeps_its_code_and_a_table_its_head() -> None:
    page = PageView(
        "https://dump.example/",
        4,
        "Dumps",
        "# Restore a dump\n\nTo restore the dump of a database, run:\n\n```sh\nload  <dump\n```\n\n"
        "# Sizes of dumps\n\nThe sizes of the dumps of a database are:\n\n| kind | size |\n|---|---|\n"
        "| text | 3 |\n| packed | 1 |\n",
    )
    parts = ["How do you restore the dump of a database?", "What are the sizes of dumps?"]
    assert write_report("How do you restore the dump of a database, and what are the sizes of dumps?", parts, [page]) == (
        "# How to restore the dump of a database\n\n## How do you restore the dump of a database?\n\n"
        "To restore the dump of a database, run: [4]\n\n```sh\nload  <dump\n```\n\n## What are the sizes of dumps?\n\n"
        "The sizes of the dumps of a database are: [4]\n\n| kind | size |\n|---|---|\n| text | 3 [4] |\n| packed | 1 [4] |"
    )


def test_the_length_that_was_asked_for_bounds_each_section() -> None:
    def flood(number: int) -> str:
        places = " and ".join(f"{kind}{number}" for kind in ("harbour", "market", "mill", "bridge", "cellar"))
        return f"The tide floods {places}."

    page = PageView("https://sea.example/", 1, "Tide", "\n\n".join(map(flood, range(14))))
    question = "Describe the floods of the tide."
    lengths = [len(write_report(question, [question], [page], words).split()) for words in (40, 120)]
    assert 20 <= lengths[0] <= 60
    assert 80 <= lengths[1] <= 140


def test_what_a_page_says_of_itself_is_never_quoted() -> None:
    own = (
        "© Copyright 2001-2026, Tide Foundation. This page is licensed under the Tide License. The causes of the ocean tide.",
        "The Tide Foundation, which explains the causes of the ocean tide, is a non-profit corporation. [Please donate.](https://sea.example/give)",
        "Copyright by those who explain the causes and effects of the ocean tide. All rights reserved.",
        "Subscribe to our letter about the causes of the ocean tide and its effects on harbours.",
        "This page was last modified on a day when the effects of the ocean tide were large.",
    )
    page = PageView(TIDES.url, 3, TIDES.title, "\n\n".join((TIDES.text, *own)))
    assert write_report(QUESTION, PARTS, [page], words=2000) == write_report(QUESTION, PARTS, [TIDES], words=2000)


def test_a_sentence_that_refers_back_stands_after_all_it_refers_to_or_after_nothing() -> None:
    page = PageView(
        "https://salt.example/",
        1,
        "Salt works",
        "# Salt works\n\nBrine stands in flat basins by the shore for most of the long and dry summer of that coast. "
        "This lets the sun take the water away, and the wind that blows there all day helps it a good deal. "
        "However, the yield of the salt works depends on rain, which can undo within an hour the work of many weeks.",
    )
    text = write_read_report("Describe the yield of the salt works.", ["The yield of the salt works"], [page], ["yield"])
    assert text.split("\n\n")[1].startswith("Brine stands in flat basins")


def test_no_section_begins_with_a_paragraph_that_answers_the_one_before_it_on_its_page() -> None:
    paragraphs = (
        "Brine stands in flat basins by the shore for most of the long and dry summer of that coast.",
        "However, the yield of the salt works is not what it was when the works were founded.",
        "What the salt works give in a year depends on rain, which can undo within an hour the work of many weeks.",
    )
    page = PageView("https://salt.example/", 1, "Salt works", "# Salt works\n\n" + "\n\n".join(paragraphs))
    text = write_read_report("Describe the yield of the salt works.", ["The yield of the salt works"], [page], ["salt works"])
    assert [line for line in text.splitlines() if "salt works" in line][-1] == f"{paragraphs[2]} [1]"
    assert "However" not in text


def test_the_system_of_one_country_is_not_a_sentence_with_the_word_system_about_another() -> None:
    east = PageView(
        "https://east.example/",
        1,
        "Eastland",
        "Eastland has a system of schools and universities that is paid for by the provinces and their towns.\n\n"
        "Eastland is a republic whose president is elected for seven years and names the government.",
    )
    west = PageView(
        "https://west.example/",
        2,
        "Westland",
        "Westland stayed neutral in the war, and its political parties were forbidden until the peace.\n\n"
        "Westland is a monarchy in which a parliament of two houses makes the laws.",
    )
    parts = ["Describe the political system of Eastland.", "Describe the political system of Westland."]
    text = write_read_report(
        "Compare the political systems of Eastland and Westland.", parts, [east, west], ["republic", "monarchy"]
    )
    assert text == (
        "# The political systems of Eastland and Westland\n\n## The political system of Eastland\n\n"
        "Eastland is a republic whose president is elected for seven years and names the government. [1]\n\n"
        "## The political system of Westland\n\n"
        "Westland is a monarchy in which a parliament of two houses makes the laws. [2]"
    )


MILL = PageView(
    "https://mill.example/",
    1,
    "Old mill",
    "The old mill burned because a lamp fell into dry straw, as the watchman said in court a week later.\n\n"
    "A pump of the old mill was frozen that night, so that the fire reached the roof before anybody could stop it.\n\n"
    "After the fire of the old mill, the town bought its flour from abroad, and bread cost twice as much for years.",
)
MILL_PARTS = ["Why did the old mill burn?", "What were the consequences of the fire of the old mill?"]
MILL_QUESTION = "Why did the old mill burn, and what were the consequences of the fire?"


def write_mill_report(nearness: dict[str, tuple[float, float]], pages: Sequence[PageView] = (MILL,)) -> str:
    """A report on the mill by a reading model that finds the two parts this near to the texts with each word."""

    def compare(question: str, texts: Sequence[str]) -> list[float]:
        if question not in MILL_PARTS:
            return [0.85] * len(texts)
        part = MILL_PARTS.index(question)
        return [next((near[part] for word, near in nearness.items() if word in text), 0.85) for text in texts]

    headings = {part: make_heading(part) for part in MILL_PARTS}
    return report.write_report(MILL_QUESTION, headings, pages, compare, title="The old mill")


def test_a_passage_is_quoted_under_the_part_it_is_nearest_to_and_not_under_one_it_is_only_near() -> None:
    assert write_mill_report({"lamp": (0.93, 0.91), "pump": (0.928, 0.91), "bread": (0.86, 0.9)}) == (
        "# The old mill\n\n## Why did the old mill burn?\n\n"
        "The old mill burned because a lamp fell into dry straw, as the watchman said in court a week later. [1]\n\n"
        "## What were the consequences of the fire of the old mill?\n\n"
        "After the fire of the old mill, the town bought its flour from abroad, and bread cost twice as much for years. [1]"
    )


def test_a_part_whose_best_passage_answers_another_part_is_named_at_the_end_and_not_filled() -> None:
    only_cause = PageView(MILL.url, 1, MILL.title, MILL.text.split("\n\n")[0])
    assert write_mill_report({"lamp": (0.93, 0.87)}, [only_cause]) == (
        "# The old mill\n\n## Why did the old mill burn?\n\n"
        "The old mill burned because a lamp fell into dry straw, as the watchman said in court a week later. [1]\n\n"
        "## Not found\n\n- What were the consequences of the fire of the old mill?"
    )


def test_sentences_of_a_paragraph_speak_for_each_other() -> None:
    """One near sentence among far ones gives way to a paragraph that is near throughout."""
    words = (
        "burned in a fire by the river below the hill where people of the town like to walk on Sundays and look at the water"
    )
    alone = f"Lamp: the old mill {words}. Straw of the old mill {words}. Beams of the old mill {words}."
    together = f"Smoke: the old mill {words} too. Sparks of the old mill {words} too. Embers of the old mill {words} too."
    page = PageView("https://mill.example/", 1, "Old mill", f"{alone}\n\n{together}")
    text = write_mill_report(
        {"Lamp": (0.96, 0.85), "Smoke": (0.95, 0.85), "Sparks": (0.95, 0.85), "Embers": (0.95, 0.85)}, [page]
    )
    assert text.split("\n\n")[2].startswith("Smoke: the old mill")


def test_the_longer_a_report_may_be_the_more_is_read_for_it() -> None:
    def flood(number: int) -> str:
        return f"The tide floods the market and the mill of town{number} in every single year."

    page = PageView("https://sea.example/", 1, "Tide", "\n\n".join(map(flood, range(200))))
    question = "The floods of the tide"

    def count_compared(words: int) -> int:
        compared: set[str] = set()

        def compare(_: str, texts: Sequence[str]) -> list[float]:
            compared.update(texts)
            return [0.9] * len(texts)

        report.write_report(question, {question: question}, [page], compare, words=words)
        return len(compared)

    assert [count_compared(words) for words in (300, 1000, 3000)] == [61, 181, 201]


def test_what_a_manual_says_of_a_setting_begins_with_the_name_of_the_setting() -> None:
    page = PageView(
        "https://tool.example/gc",
        1,
        "tool-gc",
        "# tool-gc\n\n## Configuration\n\n### gc.auto\n\nWhen there are more files of the store than this, they are packed. "
        "The packing of the store is turned off by the value 0 here.\n\n"
        "### gc.limit\n\nThe packing of the store makes files of at most this size, which is in megabytes.",
    )
    text = write_read_report("Describe the packing of the store.", ["The packing of the store"], [page], ["pack"])
    assert text.split("\n\n")[1:] == [
        "gc.auto: When there are more files of the store than this, they are packed. [1] "
        "The packing of the store is turned off by the value 0 here. [1]",
        "gc.limit: The packing of the store makes files of at most this size, which is in megabytes. [1]",
    ]


def test_a_long_report_quotes_the_whole_section_in_which_it_finds_something() -> None:
    page = PageView(
        "https://lock.example/",
        1,
        "Locks",
        "# Locks\n\n## Shared locks\n\nA shared lock of the store lets many readers into the file at the same time.\n\n"
        "Nobody may write into the file for as long as a lock is held by anyone.\n\n"
        "## History\n\nThe first version of the store had been written by two people on a ship.",
    )
    text = {
        words: write_read_report("Describe the shared locks.", ["The shared locks of the store"], [page], ["readers"], words)
        for words in (300, 3000)
    }
    assert {words: ("Nobody may write" in report, "on a ship" in report) for words, report in text.items()} == {
        300: (False, False),
        3000: (True, False),
    }


def write_near_report(question: str, parts: Sequence[str], *texts: str) -> str:
    """A report over one page of each text, all of which is equally near to every part."""
    pages = [PageView(f"https://zorb.example/{n}", n, "The Zorb manual", text) for n, text in enumerate(texts, 1)]
    headings = {part: make_heading(part) for part in parts}
    return report.write_report(
        question, headings, pages, lambda _, compared: [0.93] * len(compared), title=make_title(question)
    )


LATCHES = "What is a latch in Zorb, and how do you open one in Zorb?"
LATCH_PARTS = ["What is a latch in Zorb?", "How do you open a latch in Zorb?"]
LATCH_PAGE = (
    "# Compatibility\n\nThe standard of Zorb asks for a latch that is closed at night. A latch of `zorb_2` is none.\n\n"
    "Latches in Zorb are described in Section 14.2 of this long manual.\n\n"
    "# Overview\n\nA latch is a bar of `oak` that keeps a door closed against the wind.\n\n"
    "# Opening\n\nTo open a latch is a thing that every owner of a door should do once in a year.\n\n"
    "This opens the latch of the door:\n\n```\nzorb --open door\n```"
)


def test_a_thing_is_explained_by_a_sentence_that_begins_with_it_and_not_by_one_with_the_name_of_the_manual() -> None:
    assert "## What is a latch in Zorb?\n\nA latch is a bar of" in write_near_report(LATCHES, LATCH_PARTS, LATCH_PAGE)


def test_how_something_is_done_is_told_with_its_code() -> None:
    section = write_near_report(LATCHES, LATCH_PARTS, LATCH_PAGE).partition("## How do you open a latch in Zorb?\n\n")[2]
    assert section.startswith("This opens the latch of the door: [1]\n\n```\nzorb --open door\n```")


def test_a_sentence_that_only_says_where_something_is_told_is_not_quoted() -> None:
    assert "Section 14.2" not in write_near_report(LATCHES, LATCH_PARTS, LATCH_PAGE)


def test_the_first_section_does_not_repeat_the_title() -> None:
    text = write_near_report(
        "Write a brief on latches. Cover how you open a latch.", ["Latches", "How you open a latch"], LATCH_PAGE
    )
    assert text.startswith("# Latches\n\nA latch is a bar of")


def test_where_to_read_on_is_left_out_of_a_passage() -> None:
    page = "A latch is a bar of `oak` that keeps a door closed. See also Section 11.5 for other bars. It is sold by weight."
    assert "closed. [1] It is sold by weight. [1]" in write_near_report(LATCHES, LATCH_PARTS, page)


@pytest.mark.parametrize(
    "lost",
    [
        "The latch above is the best of them.",
        "Notice how the latch in the picture hangs.",
        "As shown below, a latch has two ends.",
        "Is there a latch without a bar?",
    ],
)
def test_what_can_only_be_read_beside_something_else_is_left_out_of_a_passage(lost: str) -> None:
    page = f"A latch is a bar of `oak` that keeps a door closed. It is sold by weight. {lost}"
    text = write_near_report(LATCHES, LATCH_PARTS, page.replace("The latch above", "The command above"))
    assert text.partition("\n\n## ")[2].partition("\n\n")[2].partition("\n\n")[0] == (
        "A latch is a bar of `oak` that keeps a door closed. [1] It is sold by weight. [1]"
    )


@pytest.mark.parametrize(
    ("part", "compared"),
    [
        ("How do I close a latch in a Zorb program?", "How do I close a latch?"),
        ("Which door does it close (Zorb iron latches)?", "Which door does it close?"),
        ("How do I close one (Zorb latches)?", "How do I close one (Zorb latches)?"),
    ],
)
def test_a_part_is_compared_without_what_goes_without_saying_in_a_manual(part: str, compared: str) -> None:
    assert read_part(part, ContentWords()).text == compared


def test_a_later_paragraph_on_this_option_begins_with_the_name_of_the_option() -> None:
    page = (
        "# Options\n\n### zorb.latch\n\nThe hour at which a door is closed for the night.\n\n"
        "Even where this option is off, the latch of a door in Zorb is closed whenever there is a storm outside."
    )
    text = write_read_report(
        "Describe the latch of a door.",
        ["The latch of a door"],
        [PageView("https://zorb.example/", 1, "Settings", page)],
        ["storm"],
    )
    assert "zorb.latch: Even where this option is off, the latch" in text


def test_a_passage_does_not_end_with_what_introduces_a_list_that_is_not_quoted() -> None:
    page = "A latch is a bar of oak that keeps a door closed. The kinds of latches in use are\n\n*Bolt*\n\nA bar in a ring."
    text = write_near_report(LATCHES, LATCH_PARTS, page)
    assert ("keeps a door closed. [1]" in text, "in use are" in text) == (True, False)


def test_what_a_command_does_stands_in_the_line_with_the_name_of_its_page() -> None:
    page = "## NAME\n\nzorb-latch - Close a door against the wind\n\n## OPTIONS\n\nThe zorb latch waits for the wind here."
    text = write_near_report("What does zorb latch do, and who made it?", ["What does zorb latch do?", "Who made it?"], page)
    assert "## What does zorb latch do?\n\nzorb-latch - Close a door against the wind [1]" in text


def test_a_paragraph_below_a_table_of_contents_does_not_stand_under_its_last_line() -> None:
    page = "# Latches\n\n[Bolts and bars](https://zorb.example/#bolts)\n\nA latch keeps a door closed.\n\n# Bolts\n\nText."
    assert [stretch.trail for stretch in read_stretches(page)] == ["Latches", "Bolts"]


def test_a_sentence_that_two_passages_of_a_page_share_is_quoted_once() -> None:
    shared = "The tide of Zorb floods the old market in every single year."
    page = (
        f"# Causes\n\nThe cause of the tide in Zorb is the nearest moon. {shared}\n\n"
        f"# Effects\n\nThe effects of the tide in Zorb are wet shoes and lost boats, say nine sailors out of ten. {shared} "
        "The effects on trees of the northern shore are unknown to science."
    )
    parts = ["What is the cause of the tide in Zorb?", "What are the effects of the tide in Zorb?"]
    text = write_near_report("What are the cause and the effects of the tide in Zorb?", parts, page)
    assert (text.count(shared), text.count("unknown to science")) == (1, 1)


def test_a_part_about_the_whole_topic_leaves_to_others_what_answers_them() -> None:
    page = (
        "# Latches\n\nA latch of Zorb is a bar of oak that keeps a door closed against every wind.\n\n"
        "# Mornings\n\nA latch of Zorb opens at dawn, when the `keeper` lifts the bar with a hook of iron.\n\n"
        "# Smiths\n\nA latch of Zorb costs nine coins, which is the price that the smiths of `north_town` ask."
    )
    parts = ["Latch of Zorb", "When does a latch of Zorb open?", "Which price does a latch of Zorb have?"]

    def compare(part: str, texts: Sequence[str]) -> list[float]:
        return [0.99 if part == parts[0] else 0.93] * len(texts)

    text = report.write_report(
        "Write a brief on the latch of Zorb. Cover when it opens and its price.",
        {part: make_heading(part) for part in parts},
        [PageView("https://zorb.example/", 1, "The Zorb manual", page)],
        compare,
        title="The latch of Zorb",
    )
    assert [block for block in text.split("\n\n") if not block.startswith("# ")] == [
        "## Latch of Zorb",
        "A latch of Zorb is a bar of oak that keeps a door closed against every wind. [1]",
        "## When does a latch of Zorb open?",
        "A latch of Zorb opens at dawn, when the `keeper` lifts the bar with a hook of iron. [1]",
        "## Which price does a latch of Zorb have?",
        "A latch of Zorb costs nine coins, which is the price that the smiths of `north_town` ask. [1]",
    ]
