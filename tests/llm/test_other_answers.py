"""What several pages answer with different values, where nothing says that they are about different things."""

from __future__ import annotations

import pytest

from nexi.llm.extractive._comparison import tells_of_life
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.passages import is_about_code, read_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView
from tests.llm.test_answer_forms import answer, draft, prefers

QUESTION = "When was the Orsa Savings Bank founded?"
DIFFER = "Other pages differ, or speak of other things:"
FIRST = "Founded on 1 January 1877 as the Orsa Savings Bank, it served the poor of the harbour."
SECOND = "The Orsa Savings Bank was formed in 1904 by the post office."


def cut(number: int, text: str) -> PageView:
    """A text without a title, as one that was cut out of a page."""
    return PageView(f"file:///files/{number}.txt", number, f"{number}.txt", text)


def test_pages_that_answer_with_different_dates_are_quoted_side_by_side() -> None:
    text = answer(QUESTION, cut(1, FIRST), cut(2, SECOND), compare=prefers("Founded on", "formed in"))
    assert text == f"{DIFFER} {FIRST} [1] {SECOND} [2]"


@pytest.mark.parametrize(
    "other",
    [
        "The Orsa Savings Bank was formed in January 1877 by the post office.",
        "The Orsa Savings Bank was formed by the post office.",
        "The Orsa Savings Bank moved in 1904 to Lind.",
    ],
    ids=["the same date", "no date", "a sentence that is far from the question"],
)
def test_a_page_that_gives_no_other_answer_is_no_other_side(other: str) -> None:
    assert DIFFER not in answer(QUESTION, cut(1, FIRST), cut(2, other), compare=prefers("Founded on", "formed in", "formed by"))


def test_the_nearest_passages_of_an_answer_that_is_withheld_have_each_of_the_values() -> None:
    texts = "The median age was 41.9 years.", "There it was 40 years.", "The age in the middle was 38 years."
    found = draft("What is the median age in Orsa?", *map(cut, (1, 2, 3), texts), compare=prefers("years"))
    assert (found.answered, sorted(found.lines, key=lambda line: line[1])) == ("no", list(zip(texts, (1, 2, 3), strict=True)))


def test_without_a_reading_model_no_other_answers_are_looked_for() -> None:
    assert DIFFER not in answer(QUESTION, cut(1, FIRST), cut(2, SECOND))


def test_a_decade_is_another_date_than_a_year_far_from_it() -> None:
    decade = "The Orsa Savings Bank was formed in the early 1970s by the post office."
    text = answer(QUESTION, cut(1, FIRST), cut(2, decade), compare=prefers("Founded on", "formed in"))
    assert text == f"{DIFFER} {FIRST} [1] {decade} [2]"
    near = decade.replace("1970s", "1870s")
    assert DIFFER not in answer(QUESTION, cut(1, FIRST), cut(2, near), compare=prefers("Founded on", "formed in"))


def test_numbers_are_other_answers_whatever_year_they_are_of() -> None:
    pages = cut(1, "Orsa had 1,243 people in 2010."), cut(2, "In 2010 some 924 people lived in Orsa.")
    text = answer("How many people live in Orsa?", *pages, compare=prefers("people"))
    assert text == f"{DIFFER} In 2010 some 924 people lived in Orsa. [2] Orsa had 1,243 people in 2010. [1]"
    again = cut(2, "In 2015 some 1243 people lived in Orsa.")
    assert DIFFER not in answer("How many people live in Orsa?", pages[0], again, compare=prefers("people"))


def test_a_name_that_stands_on_the_quoted_page_is_no_other_answer() -> None:
    first = cut(1, "The Orsa Album is a record by Ane Falk. Carl Brenner plays the piano on it.")
    pages = first, cut(2, "The Orsa Album was sung by Carl Brenner."), cut(3, "The Orsa Album was sung by Ida Lund.")
    text = answer("Who is the singer of the Orsa Album?", *pages, compare=prefers("record by", "sung by"))
    assert DIFFER in text
    assert "[3]" in text
    assert not ("[1]" in text and "[2]" in text)


def test_of_a_long_line_the_words_around_the_answer_are_quoted() -> None:
    filler = "menu tools edit view history print export item "
    long = f"{filler * 6}Orsa Savings Bank founded 1904 {filler * 6}".strip()
    text = answer(QUESTION, cut(1, FIRST), cut(2, long), compare=prefers("Founded on", "founded 1904"))
    quote = text.partition(f"{DIFFER} ")[2].partition(" [2] ")[0]
    assert (quote[:2], quote[-2:]) == ("… ", " …")
    assert " item Orsa Savings Bank founded 1904 menu " in quote
    assert len(quote.split()) == 32


def test_a_page_without_a_name_stands_below_the_things_of_one_name() -> None:
    pages = (
        cut(1, "Orsa Fort (Utah) Orsa Fort is a fort in Utah. Orsa Fort was built in 1867 by Ada Holt."),
        cut(2, "Orsa Fort (Cork) Orsa Fort is a fort in Cork. Orsa Fort was built in 1743 by the crown."),
        cut(3, "Visitors hear that masons of the valley finished Orsa Fort in 1855."),
    )
    lines = answer("When was Orsa Fort built?", *pages, compare=prefers("was built", "finished")).splitlines()
    assert [line.partition(":")[0] for line in lines if line] == [
        "- Orsa Fort (Utah)",
        "- Orsa Fort (Cork)",
        "Other pages differ, or speak of other things",
    ]


REST = "Visitors reach it by the ferry from Lind in the north of Velm, and the keeper of the house, Ane Falk, shows the wells."
MASONS = "Orsa Fort in Velm was finished by masons of the Holt family in {}."
CROWN = "The walls of Orsa Fort were finished in 1743 by the crown."


@pytest.mark.parametrize(
    ("years", "text"),
    [
        ((1867, 1867, 1902), f"{DIFFER} {MASONS.format(1867)} [1] {CROWN} [4]"),  # most pages have the first value
        (
            (1867, 1902),
            f"Sources disagree: {MASONS.format(1867)} [1] {MASONS.format(1902)} [2]\n\n{DIFFER} {CROWN} [4]",
        ),
    ],
)
def test_another_value_in_a_copy_is_a_disagreement_and_no_answer_of_another_page(years: tuple[int, ...], text: str) -> None:
    pages = [cut(number, f"{MASONS.format(year)} {REST}") for number, year in enumerate(years, 1)]
    compare = prefers("was finished by", "were finished")
    assert answer("When was Orsa Fort finished?", *pages, cut(4, CROWN), compare=compare) == text


def test_a_sentence_that_was_copied_into_another_text_with_another_name_is_a_disagreement() -> None:
    owner = "The house's first owner, {}, was a wealthy merchant who traded in tobacco and salt."
    pages = (
        cut(1, f"Carl Lind House The Carl Lind House is a historic house in Orsa. {owner.format('Carl Gustaf Lind')}"),
        cut(2, f"Rain is rare on this coast, and gardens are watered from wells. {owner.format('Ida Maria Holt')}"),
        cut(3, "Ane Lind House The Ane Lind House is a historic house in Velm. It was built for Ane Lind, its first owner."),
    )
    text = answer("Who was the first owner of the Lind House?", *pages, compare=prefers("first owner"))
    quoted = [f"{owner.format(name)} [{number}]" for number, name in ((1, "Carl Gustaf Lind"), (2, "Ida Maria Holt"))]
    assert f"- Carl Lind House: Sources disagree: {' '.join(quoted)}" in text


def test_a_person_is_born_on_the_day_in_the_brackets_and_the_son_of_the_parents() -> None:
    holt = cut(
        1, "Carl Holt (senator) Carl Holt MP (26 December 1844 – 26 July 1926) sat for Orsa. In 1872 three of his sons died."
    )
    lund = cut(2, "Carl Holt (singer) Carl Holt (4 May 1901 – 8 June 1960) sang. He was the son of Ida Lund of Velm.")
    born = answer("When was Carl Holt born?", holt, lund, compare=prefers("died", "was the son"))
    assert [("1844" in line, "1901" in line) for line in born.splitlines()] == [(True, False), (False, True)]
    mother = answer("Who was Carl Holt's mother?", lund, holt, compare=prefers("sang", "died", "MP"))
    assert "He was the son of Ida Lund of Velm. [2]" in mother


def test_pages_that_say_the_same_are_no_less_an_answer_than_one() -> None:
    pages = [
        cut(number, f"The walk to it has {number} gates. The Orsa Bridge was designed by Ida Lund.") for number in range(1, 6)
    ]
    question, compare = read_question("Who designed the Orsa Bridge?"), prefers("was designed by")
    ratings = {compose_answer(question, pages[:count], compare).answered for count in (1, 3, 5)}
    assert ratings == {"yes"}


def test_the_name_that_most_pages_give_is_quoted() -> None:
    designers = ("Carl Berg", "Ida Lund", "Ida Lund", "Ane Falk")
    pages = [
        cut(n, f"The walk to it has {n} gates. The Orsa Bridge was designed by {name}.") for n, name in enumerate(designers, 1)
    ]
    text = answer("Who designed the Orsa Bridge?", *pages, compare=prefers("was designed by"))
    assert text == "The Orsa Bridge was designed by Ida Lund. [2]"


def test_the_quotation_marks_of_tex_are_no_code() -> None:
    prose, code = "The album ``Orsa'' and the song `` Velm '' are old.", "Call ``orsa`` with `velm` first."
    assert [is_about_code(read_sentences(text)) for text in (prose, code)] == [False, True]


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("The club was owned by Ida Lund (1914–2006) and Carl Holt (1911–1963).", True),
        ("Carl Holt (senator) Carl Holt MP (26 December 1844 – 26 July 1926) sat for Orsa.", True),
        ("Holt was born on 26 December 1844.", True),
        ("Holt was the heir of Ida Lund, Countess of Velm (died 22 August 1865).", False),
        ("In 1872 three of his sons died of diphtheria.", False),
    ],
)
def test_a_day_of_birth_stands_behind_the_name_or_the_word(text: str, tells: bool) -> None:
    assert tells_of_life(read_question("When was Carl Holt born?"), text) is tells
