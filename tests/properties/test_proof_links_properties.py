"""Links and disagreements for pages that hold anything."""

from __future__ import annotations

from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.checking.conflicts import find_conflicts
from nexi.checking.links import _text_directive, link_to
from nexi.checking.origins import _registrable_domain, group_origins
from nexi.checking.pages import prepare
from nexi.types import Claim, Evidence, Verdict

marked = st.text(st.sampled_from("ab Z1.,-&#|*_`[]()\n\\~>!\u00ad\u200b中，。“é\u0301"), max_size=200)


@given(marked, st.integers(0, 200), st.integers(0, 200))
def test_a_link_to_any_place_is_the_url_with_nothing_but_escaped_text_behind_it(text: str, start: int, end: int) -> None:
    link = link_to("https://example.org/a", text, start, end, "text/html")
    assert link == "https://example.org/a" or link.startswith("https://example.org/a#:~:text=")
    directive = link.partition(":~:text=")[2]
    assert directive.isascii()
    assert "&" not in directive
    assert directive.count(",") <= 2


@given(st.text("abc ", min_size=1, max_size=80).filter(lambda t: t.strip()))
def test_a_short_quote_of_plain_words_is_named_word_for_word(text: str) -> None:
    directive = _text_directive(text, 0, len(text))
    assert unquote(directive) == " ".join(text.split())


@given(st.text(max_size=60))
def test_a_domain_is_the_end_of_its_host(host: str) -> None:
    assert host.strip("[]").rstrip(".").lower().endswith(_registrable_domain(host))


@given(st.lists(st.tuples(st.sampled_from(["a.org", "b.org", "x.a.org", ""]), marked), max_size=6))
def test_an_origin_is_named_by_its_first_page(pages: list[tuple[str, str]]) -> None:
    found = group_origins(dict(enumerate(pages, 1)))
    assert all(found[origin] == origin <= number for number, origin in found.items())


words = st.lists(
    st.sampled_from(
        ["The", "Forth", "Bridge", "is", "not", "2,467", "metres", "long", "in", "1890", "and", "about", "it", "中文", "."]
    ),
    max_size=30,
).map(" ".join)


@settings(max_examples=60)
@given(words, st.lists(words, min_size=1, max_size=4))
def test_a_disagreement_has_two_readings_of_pages_that_were_read(sentence: str, others: list[str]) -> None:
    claim = Claim(0, sentence, 0, len(sentence), Verdict.FOUND, True, "", (Evidence(1, verdict=Verdict.FOUND),))
    pages = {number: prepare(text) for number, text in enumerate([sentence, *others], 1)}
    for conflict in find_conflicts("", [claim], pages):
        numbers = [n for reading in conflict.readings for n in reading.numbers]
        assert len(conflict.readings) > 1
        assert set(numbers) <= set(pages)
        assert len(numbers) == len(set(numbers))
        assert all(1 <= reading.origins <= len(reading.numbers) for reading in conflict.readings)
