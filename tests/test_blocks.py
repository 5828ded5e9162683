"""Stored Markdown becomes typed blocks that know their place and what stands above them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.text.blocks import Block, list_cells, parse_blocks, read_block


def shown(text: str) -> list[tuple[str, str]]:
    return [(block.kind, read_block(text, block)) for block in parse_blocks(text)]


def test_every_kind_of_block_is_told_by_its_form() -> None:
    text = """# Owls

Owls hunt by night.
They hear well.

- a barn owl
  is white
2. a wood owl

> Quoted words
> go on.

```python
feed(owl)

rest()
```

$E = mc^2$

[^1]: A note.

[page 3]
***
"""
    assert shown(text) == [
        ("heading", "Owls"),
        ("prose", "Owls hunt by night.\nThey hear well."),
        ("item", "a barn owl\nis white"),
        ("item", "a wood owl"),
        ("prose", "Quoted words\ngo on."),
        ("code", "feed(owl)\n\nrest()"),
        ("formula", "$E = mc^2$"),
        ("note", "[^1]: A note."),
        ("mark", "[page 3]"),
        ("rule", "***"),
    ]


def test_a_block_knows_the_headings_above_it() -> None:
    text = "# One\n\n## Two #\n\nwords\n\n## In C#\n\nSetext\n======\nmore"
    assert [(block.label, block.trail) for block in parse_blocks(text)] == [
        ("One", ()),
        ("Two", ("One",)),
        ("", ("One", "Two")),
        ("In C#", ("One",)),
        ("Setext", ()),
        ("", ("Setext",)),
    ]


def test_a_row_knows_the_heads_of_its_columns_and_keeps_its_empty_cells() -> None:
    text = "| Name | Q1 | Q2 |\n|-|-|-|\n| Ann |  | 3 |\n\nName | Size\n--- | ---\nBob | 4\n"
    blocks = [(block.kind, block.heads, text[block.start : block.end]) for block in parse_blocks(text)]
    assert blocks == [
        ("head", ("Name", "Q1", "Q2"), "| Name | Q1 | Q2 |"),
        ("rule", (), "|-|-|-|"),
        ("row", ("Name", "Q1", "Q2"), "| Ann |  | 3 |"),
        ("head", ("Name", "Size"), "Name | Size"),
        ("rule", (), "--- | ---"),
        ("row", ("Name", "Size"), "Bob | 4"),
    ]
    assert [list_cells(row) for row in (r"| a\|b ||", "|||", "a | b")] == [("a|b", ""), ("", ""), ("a", "b")]


def test_emphasis_alone_before_a_table_is_its_caption() -> None:
    table = "| Year | Sales |\n| --- | --- |\n| 2023 | 5 |"
    kinds = {
        text: next(parse_blocks(text)).kind
        for text in (
            f"*Table 3: Net sales (in millions)*\n\n{table}",
            f"_Net sales_\n{table}",
            f"*Net* sales of *2023*, in millions\n\n{table}",
            f"**Net sales**\n\n{table}",
            "*Table 3: Net sales*\n\nThey rose.",
        )
    }
    assert list(kinds.values()) == ["caption", "caption", "prose", "prose", "prose"]


def test_rows_without_a_head_have_no_names_of_columns() -> None:
    text = "| 1 | 2 |\n| 3 | 4 |\n"
    assert list(parse_blocks(text)) == [Block("row", 0, 9), Block("row", 10, 19)]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    text = "````\n# Heading\n\n```sh\nls\n```\n\nWords."
    assert shown(text) == [("rule", "````"), ("heading", "Heading"), ("code", "ls"), ("prose", "Words.")]


def test_no_fence_reaches_from_one_part_of_an_excerpt_into_the_next() -> None:
    text = "[part 1 of 9: Annals]\n\n```\ncode\n\n[part 5 of 9: Annals > Painters]\n\nAda painted.\n\n```\nmore\n```"
    blocks = list(parse_blocks(text))
    assert [(block.kind, block.trail) for block in blocks] == [
        ("mark", ("Annals",)),
        ("rule", ("Annals",)),
        ("prose", ("Annals",)),
        ("mark", ("Annals", "Painters")),
        ("prose", ("Annals", "Painters")),
        ("code", ("Annals", "Painters")),
    ]


LINES = st.one_of(
    st.text("ab é字.|-#>`$ \t", max_size=16),
    st.sampled_from(
        ["", "# One", "- item", "| a | b |", "|---|---|", "a | b", "--- | ---", "===", "```", "~~~sh", "[page 2]", "$x$"]
    ),
)


@given(st.lists(LINES, max_size=20).map("\n".join))
@settings(max_examples=300)
def test_blocks_stand_in_order_and_leave_out_only_blanks(text: str) -> None:
    at, between = 0, ""
    for block in parse_blocks(text):
        assert at <= block.start < block.end
        between += text[at : block.start]
        at = block.end
    assert not (between + text[at:]).strip()


def test_hostile_texts_are_read_in_one_pass() -> None:
    """A pass that is not linear would hang here."""
    size = 30_000
    shapes = ("-", "- ", "# ", "#", ">", "|", "|-", "$", "`", "```\n", "````\n```x\n", "1. ", "=", "[page 1]", "word. ", "| a ")
    for shape in shapes:
        for text in (shape * size, f"# a{shape * size}x", f"--{' ' * size}{shape}x"):
            assert sum(len(read_block(text, block)) for block in parse_blocks(text)) <= len(text)


def test_a_first_row_of_figures_names_no_columns() -> None:
    text = "| Ann | 31 |\n| --- | --- |\n| Bob | 45 |\n\n| Town | 2023 |\n| --- | --- |\n| Bonn | 45 |"
    blocks = [(block.kind, block.heads) for block in parse_blocks(text) if block.kind != "rule"]
    assert blocks == [("row", ()), ("row", ()), ("head", ("Town", "2023")), ("row", ("Town", "2023"))]
