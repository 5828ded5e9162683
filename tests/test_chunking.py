"""Chunks begin where a reader would begin, and carry the headings they stand under."""

from __future__ import annotations

import pytest

from nexi.text.chunking import TextChunk, chunk_markdown, count_code_blocks, headings_of

GUIDE = """# Guide

Owls hunt by night. They hear well.

## Feeding

```python
feed(owl,
     "vole")
```

Feed them at dusk.

Setext
------

The end.
"""


def shown(pieces: list[TextChunk]) -> list[tuple[str, tuple[str, ...]]]:
    return [(p.text, p.headings) for p in pieces]


def test_sections_become_chunks_with_their_heading_path() -> None:
    assert shown(chunk_markdown(GUIDE, 80)) == [
        ("# Guide\n\nOwls hunt by night. They hear well.", ("Guide",)),
        ('## Feeding\n\n```python\nfeed(owl,\n     "vole")\n```\n\nFeed them at dusk.', ("Guide", "Feeding")),
        ("Setext\n------\n\nThe end.", ("Guide", "Setext")),
    ]


def test_small_sections_share_a_chunk() -> None:
    assert shown(chunk_markdown("# A\n\none\n\n# B\n\ntwo", 200)) == [("# A\n\none\n\n# B\n\ntwo", ("A",))]


def test_a_chunk_of_code_names_its_languages() -> None:
    pieces = chunk_markdown(GUIDE, 80)
    assert [(p.has_code, p.languages) for p in pieces] == [(False, ()), (True, ("python",)), (False, ())]
    assert (headings_of(GUIDE), list(count_code_blocks(GUIDE))) == (["Guide", "Feeding", "Setext"], ["python"])


def test_a_fence_longer_than_the_size_is_a_chunk_of_its_own() -> None:
    fence = "```\n" + "x = 1\n" * 40 + "```"
    assert [p.text for p in chunk_markdown(f"Before.\n\n{fence}\n\nAfter.", 60)] == ["Before.", fence, "After."]


def test_a_heading_goes_with_what_it_announces() -> None:
    text = f"{'Owl. ' * 8}\n\n# Next\n\n{'Vole. ' * 8}"
    assert [p.text for p in chunk_markdown(text, 60)] == [("Owl. " * 8).strip(), f"# Next\n\n{('Vole. ' * 8).strip()}"]


def test_the_line_that_announces_a_list_goes_with_the_list() -> None:
    text = f"## Owls\n\n{'word ' * 12}\n\nThey are not good at:\n\n- smelling voles\n- swimming in the river"
    last = chunk_markdown(text, 100)[-1]
    assert (last.text, last.headings) == ("They are not good at:\n\n- smelling voles\n- swimming in the river", ("Owls",))


@pytest.mark.parametrize("sentences", [9, 30])
def test_a_heading_is_not_left_alone_above_a_paragraph_that_fills_a_chunk(sentences: int) -> None:
    first, *others = chunk_markdown(f"# Next\n\n{'Vole. ' * sentences}", 60)
    assert first.text == f"# Next\n\n{('Vole. ' * 8).strip()}"
    assert all(piece.text.startswith("Vole.") for piece in others)


def test_the_caption_of_a_table_goes_with_the_table() -> None:
    text = f"## Trade\n\n{'word ' * 12}\n\n*Sales in millions*\n\n| Year | Sales |\n| --- | --- |\n| 2023 | 512 |"
    last = chunk_markdown(text, 100)[-1]
    assert (last.text.partition("\n")[0], last.headings) == ("*Sales in millions*", ("Trade",))


def test_a_long_paragraph_is_cut_between_sentences_and_a_long_sentence_between_words() -> None:
    assert [p.text for p in chunk_markdown("One two three. Four five six. Seven eight nine ten.", 16)] == [
        "One two three.",
        "Four five six.",
        "Seven eight nine",
        "ten.",
    ]


def test_a_fence_nobody_closes_is_plain_text() -> None:
    text = "````\nopen\n\n```sh\nls\n```\n\n" + "Words and words. " * 10
    pieces = chunk_markdown(text, 40)
    assert [p.languages for p in pieces if p.has_code] == [("sh",)]
    assert max(len(p.text) for p in pieces) <= 40


def test_a_fence_as_long_as_a_file_is_cut_between_its_lines() -> None:
    pieces = chunk_markdown("```\n" + "line of code\n" * 20 + "```", 50, max_fence=100)
    assert [p.has_code for p in pieces] == [True] * len(pieces)
    assert max(len(p.text) for p in pieces) <= 50


def test_a_size_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a chunk size of 0 cannot hold anything"):
        chunk_markdown("text", 0)


def test_an_empty_text_has_no_chunks() -> None:
    assert [chunk_markdown(text) for text in ("", "\n\n \t\n")] == [[], []]
