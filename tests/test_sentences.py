"""Sentences end where readers see them end, in every script, and their places are exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.citations import SentenceStream
from nexi.text.sentences import sentence_bounds

ENDS = """
J.R.R. Tolkien wrote it. | He taught at Oxford.
H.M.S. Beagle sailed in 1831. | Darwin was aboard.
Adm. Nelson won. | He died there.
Art. 5 of the treaty applies. | It was invoked once.
It ended at 5 p.m. | Everyone went home.
The shop closes at 9 p.m. Friday. | It opens at noon.
He works for Acme Corp. | She works for the state.
She moved to the U.S. | Her brother stayed.
The U.S. Senate voted. | The bill passed.
We need a plan B. | Everyone agreed.
He said no. | She is No. 2.
The cat sat. | Dogs barked.
He bought apples, pears, etc. | Then he left.
Use it. | `print` shows it.
The tower is high.[3] | It was built in 1900.
Is it 5 p.m.? | Yes.
(a) Sign it. | (b) Date it.
Er wohnt in der Hauptstr. 5 in Bonn. | Dort ist es ruhig.
Er sagte: „Ich gehe.“ | Dann ging er.
Das war im 2. Weltkrieg. | Danach war Frieden.
Um 300 v. Chr. entstand die Stadt. | Sie wuchs.
Das gilt gem. Abs. 2 nicht, z. B. Eine Klage. | Es ist alt.
M. Le Brun est venu. | Il est parti.
¿Quién es? | Es mi hermano.
А. С. Пушкин родился в Москве. | Он поэт.
Это было в 1941 г. | Он погиб.
Η Αθήνα είναι μεγάλη. | Έχει πολλούς κατοίκους.
Hà Nội là thủ đô. | Ở đó có nhiều hồ.
Астана үлкен. | Әр жыл сайын өседі.
თბილისი დიდია. | ის ძველია.
Երևանը մեծ է։ | Այն հին է։
አዲስ አበባ ትልቅ ናት። | ዋና ከተማ ናት።
ရန်ကုန်သည် ကြီးသည်။ | လူများသည်။
ភ្នំពេញធំ។ | វាចាស់។
서울은 크다. | 부산도 크다. | 정말?
दिल्ली बड़ी है। | यह पुरानी है।
کیا حال ہے؟ | میں ٹھیک ہوں۔
1. Introduction
A. The first answer
Chapter 3. The river
"""
UNSPACED = """
天気はいい｡|出かけよう｡
你好吗?|我很好!|谢谢。
「行こう。」と彼は言った。|雨だ。
"""


@pytest.mark.parametrize("line", ENDS.strip().splitlines())
def test_a_sentence_ends_where_it_ends(line: str) -> None:
    text = line.replace(" | ", " ")
    assert " | ".join(text[start:end] for start, end in sentence_bounds(text, 500)) == line


@pytest.mark.parametrize("line", UNSPACED.strip().splitlines())
def test_sentences_without_blanks_end_too(line: str) -> None:
    text = line.replace("|", "")
    assert "|".join(text[start:end] for start, end in sentence_bounds(text, 500)) == line


@pytest.mark.parametrize("line", ENDS.strip().splitlines())
def test_a_sentence_that_arrives_letter_by_letter_ends_there_as_well(line: str) -> None:
    text = f"So. {line.replace(' | ', ' ')}"
    stream = SentenceStream()
    arriving = [stretch for char in text for stretch in stream.feed(char)]
    whole = SentenceStream()
    assert [*arriving, stream.finish()] == [*whole.feed(text), whole.finish()]


@given(st.text(alphabet="aB.!?… \n\t“”\"'()[]1。」とГა-JeUS", max_size=80), st.integers(5, 60))
def test_sentences_stand_in_the_text_in_order_and_leave_out_only_blanks(text: str, longest: int) -> None:
    bounds = list(sentence_bounds(text, longest))
    places = [place for bound in bounds for place in bound]
    assert places == sorted(places)
    assert "".join("".join(text[start:end] for start, end in bounds).split()) == "".join(text.split())
    assert all(0 < end - start <= longest for start, end in bounds)


@pytest.mark.parametrize(
    "second",
    ["`git repack` moves it [3].", "\\` ![x](https://e.example/x.png) \\`", "eBay and others follow.", "→ so it goes on."],
)
def test_a_full_stop_after_a_citation_ends_the_sentence_whatever_follows(second: str) -> None:
    first = "A pack has an index beside it [3]."
    text = f"{first} {second}"
    assert [text[start:end] for start, end in sentence_bounds(text, 700)] == [first, second]
