"""Answers and sources as rich draws them. Imported only where there is a terminal to draw on.

Nothing in an answer is obeyed: links are shown as text with their address, images are named and not loaded, HTML is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from rich import markdown
from rich.text import Text

from nexi.output.controls import clean, clean_line
from nexi.output.sites import site_of
from nexi.types import Source


class _Heading(markdown.Heading):
    """A heading at the left: an answer is no title page."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")


class AnswerMarkdown(markdown.Markdown):
    elements: ClassVar = {**markdown.Markdown.elements, "heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        # rich's own parser reads HTML and then leaves it out, and `Vec<T>` with it
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.markup = text
        self.parsed = parser.parse(text)


def rendered(text: str) -> AnswerMarkdown:
    """An answer or a part of it, ready to print."""
    return AnswerMarkdown(clean(text))


def source_list(sources: Iterable[Source]) -> Iterator[Text]:
    """The lines of the list of sources: number, title and site, and the address under them."""
    yield Text()
    yield Text("Sources", style="bold")
    for source in sources:
        url, site = clean_line(source.url), clean_line(site_of(source.url))
        title = clean_line(source.title)
        named = title if title and title != url else site
        yield Text.assemble((f"[{source.number}] ", "cyan"), named, (f"  {site}" if named != site else "", "green"))
        yield Text(f"    {url}", style="dim")
