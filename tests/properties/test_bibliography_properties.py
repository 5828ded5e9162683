"""References for pages that say anything of themselves."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.bibliography import to_bibtex, to_csl, to_ris
from nexi.types import Imprint, Source

words = st.text(max_size=60)
imprints = st.builds(Imprint, words, words, words, words, words, words)
sources = st.lists(st.builds(Source, st.integers(1, 99), words, words, st.just(""), imprints), max_size=5)


@given(sources)
def test_ris_has_one_record_for_each_source_and_nothing_but_tagged_lines(found: list[Source]) -> None:
    lines = [line for line in to_ris(found).split("\n") if line]
    assert all(re.match(r"[A-Z][A-Z0-9]  - ", line) for line in lines)
    assert [line for line in lines if line.startswith("ER  - ")] == ["ER  - "] * len(found)


@given(sources)
def test_bibtex_is_balanced_with_one_entry_for_each_source(found: list[Source]) -> None:
    text = to_bibtex(found)
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"^@online\{[a-z0-9]+,$", text, re.MULTILINE)) == len(found)


@given(sources)
def test_csl_is_json_with_keys_of_their_own(found: list[Source]) -> None:
    items = json.loads(to_csl(found))
    assert len({item["id"] for item in items}) == len(items) == len(found)
