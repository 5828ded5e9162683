"""A Markdown file of ours neither runs nor loads anything, whatever a model or a page wrote."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexi.answers.safe_markdown import _is_inert, make_inert
from nexi.web.page.export import escape_line

PIECES = (
    "<script>", "</script>", "<img src=//e.example/p>", "<!--", "-->", "<?php", "<![CDATA[", "]]>", "![x](", "![x][a]", "[x](",
    "[a]: ", "javascript:x()", "data:text/html,x", "https://e.example/", "//e.example", ")", "]", "[", "(", "`", "``", "```\n",
    "~~~\n", "\\", "\\\\", "\n", "\n\n", "    ", "- ", "> ", "| a | b |\n|---|---|\n", "|", "<a href=x>", "<javascript:x>",
    "<https://e.example/>", "&lt;", "*", "_", "# ", "1. ", "\t", "<e@e.example>", '"', "'",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=14).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXT)
@example("\\\\<img src=x>")
@example("\\`<img src=x>\\`")
@example("`a\n\n<img src=x>\n\n`")
@example("[a]: javascript:x\n\n[a]")
@example("> [a]: javascript:x\n\n[a]")
@example("[x](<javascript:x>)")
@example("![x]()")
@example("[x](\njavascript:x)")
@example("- ```\n  a\n<img src=x>")
def test_nothing_in_it_is_a_tag_an_image_or_a_foreign_link(text: str) -> None:
    assert _is_inert(make_inert(text))


@given(TEXT)
def test_what_is_tame_stays_so(text: str) -> None:
    once = make_inert(text)
    assert _is_inert(make_inert(once))


@given(TEXT)
def test_an_escaped_line_is_text_alone(text: str) -> None:
    assert _is_inert(f"# {escape_line(text)}\n\n- [1] [{escape_line(text)}](https://a.example/)\n")
