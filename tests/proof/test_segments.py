"""What of an answer is a claim, and what it cites."""

from __future__ import annotations

import pytest

from nexi.answers.answered import NOTHING_FOUND
from nexi.answers.citations import SentenceStream
from nexi.checking.sentences import needs_citation, read_answer
from nexi.llm.extractive.composition import NOT_ANSWERED
from nexi.llm.extractive.model import NOTHING_READ

ANSWER = """# Heading [1]

Mary was born in 1950 [1]. She won, e.g. the U.S. prize.[2][3] Another prize followed later.[1, 2]

- item one says something [^4]
- item two says more【5†source】 and goes on
  over a second line.

| Ann | born 1990 [6] |
|---|---|

```
code [7] is not. A claim.
```
Inline `a[1]` stands in code here [[8]](http://x.test/).

Sources:
[1] http://a.test/
"""


def test_every_sentence_has_the_numbers_it_cites() -> None:
    assert [(s.text, s.numbers) for s in read_answer(ANSWER)] == [
        ("# Heading [1]", (1,)),
        ("Mary was born in 1950 [1].", (1,)),
        ("She won, e.g. the U.S. prize.[2][3]", (2, 3)),
        ("Another prize followed later.[1, 2]", (1, 2)),
        ("- item one says something [^4]", (4,)),
        ("- item two says more【5†source】 and goes on\n  over a second line.", (5,)),
        ("| Ann | born 1990 [6] |", (6,)),
        ("Inline `a[1]` stands in code here [[8]](http://x.test/).", (8,)),
    ]


def test_offsets_are_into_the_text_as_given() -> None:
    assert all(ANSWER[s.start : s.end] == s.text for s in read_answer(ANSWER))


def test_sentences_end_in_other_scripts_too() -> None:
    text = "北京是中国的首都[1]。上海很大。Он родился в 1950 году [2]. Это Москва. هل هذا صحيح؟ نعم هذا كتاب [3]."
    assert [s.numbers for s in read_answer(text)] == [(1,), (), (2,), (), (), (3,)]


@pytest.mark.parametrize(
    "text",
    [
        "What does this mean?",
        "I could not find a source for the second date.",
        "The sources do not say when it was built.",
        "There is no information about the price.",
        "The steps are as follows:",
        "Let me explain.",
        "Yes.",
        NOTHING_FOUND,
        NOTHING_READ,
        NOT_ANSWERED,
    ],
)
def test_a_sentence_about_the_answer_needs_no_source(text: str) -> None:
    assert needs_citation(text)[0] is False


@pytest.mark.parametrize(
    "text",
    [
        "Oslo is the capital of Norway.",
        "It opened in 1990.",
        "The tower is 300 m tall.",
        "水在零度结冰。",
        "Nothing on the pages answers this, but Napoleon built it.",
        "No page could be read, and the tower fell in 1990.",
    ],
)
def test_a_sentence_about_the_world_needs_one(text: str) -> None:
    assert needs_citation(text) == (True, "")


def test_the_day_of_a_german_date_ends_no_sentence() -> None:
    text = "Die Brücke wurde am 3. Mai 1907 eröffnet [1]. Sie ist 42. Danach kam der Krieg [2]."
    assert [sentence.text for sentence in read_answer(text)] == [
        "Die Brücke wurde am 3. Mai 1907 eröffnet [1].",
        "Sie ist 42.",
        "Danach kam der Krieg [2].",
    ]
    stream = SentenceStream()
    assert [*stream.feed(text), stream.finish()] == [
        "Die Brücke wurde am 3. Mai 1907 eröffnet [1]. ",
        "Sie ist 42. ",
        "Danach kam der Krieg [2].",
    ]
