"""Answers in the form that was asked for, with the failures that readers of earlier versions reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nexi.app import factory
from nexi.llm.extractive._comparison import confirm_statement
from nexi.llm.extractive._evidence import Compare
from nexi.llm.extractive._quotation import join_quotations
from nexi.llm.extractive.composition import ExtractiveAnswer, compose_answer
from nexi.llm.extractive.passages import read_sentences
from nexi.llm.extractive.questions import read_question
from nexi.stores.embedders import E5Encoder
from nexi.types import PageView

PRIME = PageView(
    "https://n.example/prime",
    1,
    "Prime number",
    "# Prime number\n\nA prime number (or a prime) is a natural number greater than 1 that has no divisors but 1 and itself. "
    "A natural number greater than 1 that is not a prime number is called a composite number. As of January 2016, the largest "
    "known prime number has 22,338,618 decimal digits.\n\n## Primality of one\n\nIn the nineteenth century some considered the "
    "number 1 a prime. 1 is not a prime number by the definition in use today.",
)
RHINE = PageView(
    "https://r.example/rhine",
    1,
    "Rhine",
    '# Rhine\n\nThe length of the Rhine is measured in "Rhine-kilometers", a scale of 1939 which runs from a bridge at '
    'Constance (0 km) to the coast of Holland (1036.20 km). The "total length of the Rhine", with the lake and the young river '
    "before it, is more difficult to measure; it was cited as 1,232 kilometres (766 miles) by a ministry in 2010.",
)
PLAGUE = PageView(
    "https://p.example/death",
    1,
    "Black Death",
    "# Black Death\n\nThe Black Death came along the Silk Road, reaching Crimea by 1343. It went on to France and Spain, then "
    "turned north, reaching England in the spring of 1349. In England, it was not until 1823 that the last grave was found.",
)
FORCES = PageView(
    "https://f.example/force",
    1,
    "Force",
    "# Force\n\nAll of the forces in the universe are based on four fundamental interactions. The four fundamental forces of "
    "nature are the strong force, the weak force, the electromagnetic force and gravity. A force has a direction.",
)
TRUTHS = PageView(
    "https://b.example/buddhism",
    1,
    "Buddhism",
    "# Buddhism\n\nThe Four Noble Truths of the Buddha are these:\n\n1. Life is suffering.\n2. Suffering has a cause.\n"
    "3. Suffering can end.\n4. There is a path to its end.\n\nThe Four Noble Truths were taught at Benares.",
)
LEVELS = PageView(
    "https://d.example/isolation",
    1,
    "Transaction Isolation",
    "# Transaction Isolation\n\nYou can request any of the four isolation levels of the standard, but internally only three "
    "distinct isolation levels are implemented, i.e., Read Committed, Repeatable Read and Serializable. Set the level "
    "with `SET TRANSACTION`, as `set_config()` does.",
)
IMMUNITY = PageView(
    "https://i.example/immunity",
    1,
    "Immune system",
    "# Immune system\n\nBoth innate and adaptive immunity depend on telling self from non-self. Innate immunity is a "
    "non-specific response that is there from birth. Adaptive immunity is a response that remembers each pathogen. It learns.",
)
ACCOUNTS = PageView(
    "https://a.example/zorb",
    1,
    "Zorb plc annual report",
    "# Results\n\nSG&A expenses of Zorb plc as a percentage of net sales were (8.5)% in 2023 and (8.8)% in 2022.",
)
DOSE = (
    "The recommended dose of zorbine for adults who have been treated before, as set out in the national guideline of the "
    "Zorbian health council of 2019 and in the leaflet that comes with every pack of the medicine sold in the country, is one "
    "tablet each morning (never together with alcohol, and not during pregnancy)."
)


def prefers(*wanted: str) -> Compare:
    """A reading model that finds a text near to any question where it says one of these."""

    def compare(asked: str, texts: Sequence[str]) -> list[float]:
        return [0.95 if any(words in text for words in wanted) else 0.75 for text in texts]

    return compare


def draft(question: str, *pages: PageView, compare: Compare | None = None) -> ExtractiveAnswer:
    return compose_answer(read_question(question), pages, compare)


def answer(question: str, *pages: PageView, compare: Compare | None = None) -> str:
    found = draft(question, *pages, compare=compare)
    return f"{found.short} {join_quotations(found.lines)}".strip()


CAR = PageView(
    "https://c.example/zorba",
    1,
    "Zorba 500",
    "# Zorba 500\n\nThe Zorba 500 is a car of 2007 with 4 seats. It tips the scales at 865 kg. It reaches 160 km/h. From "
    "bumper to bumper there are 3.5 metres. It has 2 doors and goes for $9,000.",
)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("weight of the Zorba 500", "865 kg"),
        ("How fast is the Zorba 500?", "160 km/h"),
        ("length of the Zorba 500", "3.5 metres"),
        ("price of the Zorba 500", "$9,000"),
    ],
)
def test_a_measure_is_said_by_a_number_with_its_unit(question: str, value: str) -> None:
    found = draft(question, CAR, compare=lambda asked, texts: [0.84 + 0.05 * (value in text) for text in texts])
    assert (value in found.lines[0][0], found.answered != "no") == (True, True)


@pytest.mark.parametrize("question", ["population of Orsa", "How many inhabitants does Orsa have?"])
def test_people_who_are_counted_are_a_population(question: str) -> None:
    text = "# Orsa\n\nOrsa is a town of 9 parts. At the census of 2000 there were 2,104 people and 787 homes in it."
    nearness = {True: 0.89, False: 0.84}
    page = PageView("https://o.example", 1, "Orsa", text)
    found = draft(question, page, compare=lambda asked, texts: [nearness["census" in text] for text in texts])
    assert found.lines[0][0] == "At the census of 2000 there were 2,104 people and 787 homes in it."
    assert found.answered != "no"


def test_bytes_that_are_no_text_are_not_read_and_a_lost_letter_stays() -> None:
    lost = "% n\ufffd 4\ufffd\ufffd\ufffd\ufffdOQ\ufffdf\ufffd `x_y()` \ufffd\ufffd] in \ufffd\ufffdBorv\ufffd/\ufffdC !"
    text = "The Fu\ufffdball club of Orsa was founded in 1904."
    assert [sentence.text for sentence in read_sentences(f"{lost}\n\n{text}")] == [text]


@pytest.mark.parametrize("question", ["What is a prime number?", "what is a prime number", "prime number"])
def test_a_definition_is_the_sentence_that_says_what_it_is(question: str) -> None:
    assert answer(question, PRIME).startswith("A prime number (or a prime) is a natural number greater than 1 that has no")


@pytest.mark.parametrize("question", ["How long is the Rhine?", "how long is the rhine", "length of the rhine"])
def test_a_length_is_not_cut_off(question: str) -> None:
    assert "1,232 kilometres (766 miles)" in answer(question, RHINE, compare=prefers("1,232"))
    assert "…" not in answer(question, RHINE)


def test_a_date_is_that_of_the_event_that_was_asked_about() -> None:
    found = answer("When did the Black Death reach England?", PLAGUE, compare=prefers("spring of 1349"))
    assert found.startswith("It went on to France and Spain, then turned north, reaching England in the spring of 1349. [1]")


@pytest.mark.parametrize("question", ["four fundamental forces", "What are the four fundamental forces?"])
def test_a_list_in_a_sentence_is_quoted_with_all_it_names(question: str) -> None:
    assert "the strong force, the weak force, the electromagnetic force and gravity." in answer(question, FORCES)


@pytest.mark.parametrize("question", ["What are the Four Noble Truths?", "four noble truths"])
def test_a_list_after_a_colon_is_quoted_whole(question: str) -> None:
    items = ["Life is suffering.", "Suffering has a cause.", "Suffering can end.", "There is a path to its end."]
    said = [line for line, _ in draft(question, TRUTHS).lines]
    assert said[:5] == ["The Four Noble Truths of the Buddha are these:", *(f"- {item}" for item in items)]


def test_an_enumeration_after_i_e_is_not_cut_off() -> None:
    asked = "Which isolation levels does PostgreSQL support?"
    assert "i.e., Read Committed, Repeatable Read and Serializable." in answer(asked, LEVELS)


@pytest.mark.parametrize("question", ["innate vs adaptive immunity", "difference between innate and adaptive immunity"])
def test_a_comparison_has_a_line_for_each_side(question: str) -> None:
    found = answer(question, IMMUNITY, compare=prefers("Both innate", "from birth", "remembers"))
    assert found == (
        "Both innate and adaptive immunity depend on telling self from non-self. [1]\n"
        "- Innate immunity is a non-specific response that is there from birth. [1]\n"
        "- Adaptive immunity is a response that remembers each pathogen. [1]"
    )


def test_a_comparison_with_one_side_alone_has_the_sentences_that_answer_most_likely() -> None:
    page = PageView("https://i.example/i", 1, "Immunity", "# Immunity\n\nInnate immunity is there from birth, as is known.")
    found = answer("innate vs adaptive immunity", page, compare=prefers("from birth"))
    assert "Innate immunity is there from birth, as is known. [1]" in found


@pytest.mark.parametrize("question", ["Is 1 a prime number?", "is 1 a prime number"])
def test_a_question_for_yes_or_no_is_settled_by_the_sentence_that_says_just_that(question: str) -> None:
    assert answer(question, PRIME).startswith("No. 1 is not a prime number by the definition in use today. [1]")


@pytest.mark.parametrize(
    ("question", "text", "short"),
    [
        ("do chloroplasts have dna", "Chloroplasts have their own DNA, often abbreviated as ctDNA.", "Yes."),
        ("are python strings immutable", "Strings are immutable sequences of code points.", "Yes."),
        ("can penguins fly", "Penguins cannot fly.", "No."),
        ("did the mill burn down", "The mill did burn down in 1902.", "Yes."),
        ("are swans white", "Most swans are white.", ""),
        ("are swans white", "Not all swans are white.", ""),
        ("is oxygen a metal", "Oxygen is a poor metal.", ""),
        ("is the mill open", "The mill was open in 1902.", ""),
        ("is the mill open", "Whether the mill is open is not known.", ""),
        ("is the mill open", "It is open.", ""),
        ("is 1 prime", "A man was the last to call 1 prime.", ""),
        ("are cats not dogs", "Cats are not never dogs.", ""),
        ("is", "It is.", ""),
    ],
)
def test_yes_and_no_are_said_only_where_a_sentence_says_just_what_was_asked(question: str, text: str, short: str) -> None:
    assert confirm_statement(read_question(question), text, "Python") == short


def test_where_two_sentences_say_opposite_things_neither_yes_nor_no_is_said() -> None:
    page = PageView("https://m.example", 1, "Mills", "# Mills\n\nThe mill is open. The mill is not open.")
    assert draft("is the mill open", page).short == ""


def test_numbers_in_brackets_stay_in_a_quotation() -> None:
    asked = "What were the SG&A expenses of Zorb plc as a percentage of net sales in 2023?"
    assert draft(asked, ACCOUNTS).lines[0][0] == ACCOUNTS.text.split("\n\n")[1]


def test_the_dose_is_not_cut_off() -> None:
    page = PageView("https://z.example", 1, "Zorbine", f"# Zorbine\n\n{DOSE} Zorbine is white.")
    assert "is one tablet each morning" in answer("What is the recommended dose of zorbine for adults?", page)


def test_the_product_that_was_asked_about_comes_first() -> None:
    text = "# Prices\n\nThe list price of the VLX-500 is $52,000. The list price of the VLX-400 is $41,000."
    found = draft("list price of the VLX-400", PageView("https://v.example", 1, "Prices", text))
    assert found.lines[0] == ("The list price of the VLX-400 is $41,000.", 1)


def test_an_answer_that_is_not_there_is_withheld() -> None:
    """The page is about the subject, but says nothing of what was asked."""
    film = PageView("https://f.example", 1, "Bon Cop", "# Bon Cop\n\nBon Cop, Bad Cop is a 2006 Canadian dark comedy film.")
    assert draft("What is the French name of the Canadian Armed Forces?", film).answered == "no"


@pytest.mark.parametrize(
    "text",
    [
        "After Democratic Gov. Roy Cooper agreed, the law was passed.",
        "The song reached No. 37 in the United States.",
        "What Price Hollywood? is a 1932 film.",
    ],
)
def test_a_citation_does_not_stand_inside_a_name(text: str) -> None:
    page = PageView("https://s.example", 1, "Songs", f"# Songs\n\n{text}")
    assert [line for line, _ in draft(text.rstrip("."), page).lines] == [text]


@pytest.mark.parametrize(
    "question",
    [
        "Wie lang ist der Rhein von der Quelle bis zur Mündung?",
        "rhine",
        "rhine length kilometres",
        "Tell me how long the Rhine is, " + "and the lake and the bridge and the coast " * 32,
        "?",
        "1,232",
    ],
    ids=["another language", "one word", "no verb", "300 words", "a mark", "a number"],
)
@pytest.mark.parametrize("compare", [None, prefers("1,232"), lambda asked, texts: None], ids=["words", "read", "broken"])
def test_odd_questions_are_answered_with_sentences_of_the_page_or_not_at_all(question: str, compare: Compare | None) -> None:
    found = draft(question, RHINE, compare=compare)
    assert all(text.removeprefix("- ").rstrip(" …") in RHINE.text for text, _ in found.lines)


def test_a_page_that_is_one_sentence_of_200_000_bytes_is_quoted_in_part() -> None:
    page = PageView(
        "https://l.example", 1, "Lamp", "# Lamp\n\nThe lamp of Ulm was lit in 1902 " + "and went on shining " * 10_000
    )
    found = draft("when was the lamp of ulm lit", page, compare=prefers("1902"))
    assert found.lines[0][0].startswith("The lamp of Ulm was lit in 1902 and went on shining")
    assert sum(len(text) for text, _ in found.lines) < 2_000


def test_a_table_without_a_head_is_quoted_by_its_row() -> None:
    page = PageView("https://t.example", 1, "Rivers", "# Rivers\n\n| Rhine | 1,232 km |\n| --- | --- |\n| Elbe | 1,094 km |\n")
    assert "1,094 km" in answer("length of the elbe", page)


def test_with_a_model_file_that_is_cut_off_words_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "e5-small-int8.onnx").write_bytes(b"of another version")
    monkeypatch.setattr(factory, "_reading_model", lambda: E5Encoder(tmp_path))
    question = "how long is the rhine"
    assert draft(question, RHINE, compare=factory.compare_texts) == draft(question, RHINE)


SATELLITE = (
    "Orsa 3 was a satellite that looked for sources of light in the northern sky. It functioned from {} to April 1979. "
    "It covered the whole range of light with four experiments on board. Orsa 3 was launched in 1975 from the sea."
)


@pytest.mark.parametrize(("nearness", "shown"), [(0.92, True), (0.8, False)])
def test_a_sentence_in_which_copies_of_a_text_differ_comes_first_where_it_is_about_as_near(
    nearness: float, shown: bool
) -> None:
    pages = [
        PageView("https://one.example/", 1, "Orsa 3", SATELLITE.format("May 7, 1975")),
        PageView("https://two.example/", 2, "Orsa 3", SATELLITE.format("January 1, 1970")),
    ]
    text = answer(
        "When was Orsa 3 launched?",
        *pages,
        compare=lambda asked, texts: [0.94 if "launched" in text else nearness for text in texts],
    )
    expected = "Sources disagree: It functioned from May 7, 1975 to April 1979. [1] It functioned from January 1, 1970"
    assert text.startswith(expected) is shown
    assert text.startswith("Orsa 3 was launched in 1975 from the sea. [1]") is not shown
