"""Renders answers and sources with rich. Imported only if there is a terminal to draw on.

Answers are untrusted: links are shown as text with their URL, images are named and not loaded, HTML is shown as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from markdown_it import MarkdownIt
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from nexi.output.blocks import BlockStream
from nexi.output.proof import site_of
from nexi.text.controls import clean_line, clean_text
from nexi.types import Source
from nexi.urls import is_note_link


class _Heading(markdown.Heading):
    """A left-aligned heading; rich centers it."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")


class _Markdown(markdown.Markdown):
    elements: ClassVar = {**markdown.Markdown.elements, "heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        # rich's own parser drops HTML, and `Vec<T>` with it
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
        self.markup = text
        self.parsed = parser.parse(text)


class _MarkdownDrawing:
    """Markdown as lines without padding, which would wrap in a narrower window and be copied."""

    def __init__(self, text: str) -> None:
        blocks = BlockStream()
        self._blocks = [_Markdown(block) for block in (*blocks.feed(text), blocks.finish()) if block.strip()]

    def lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """Render block by block, as a stream is, with one blank line between blocks."""
        lines: list[list[Segment]] = []
        for block in self._blocks:
            rows = [list(row) for row in console.render_lines(block, options.update(height=None), pad=False)]
            for row in rows:
                while row and not row[-1].text.rstrip():
                    row.pop()
                if row:
                    row[-1] = Segment(row[-1].text.rstrip(), row[-1].style)
            numbers = [number for number, row in enumerate(rows) if row]
            lines += [[], *(rows[numbers[0] : numbers[-1] + 1] if numbers else ())]
        return lines[1:]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines(console, options):
            yield from line
            yield Segment.line()


def render_markdown(text: str) -> _MarkdownDrawing:
    """Prepare an answer, or part of it, for printing."""
    return _MarkdownDrawing(clean_text(text))


def source_lines(sources: Iterable[Source], support: Mapping[int, tuple[int, int]]) -> Iterator[Text]:
    """Yield two lines for each source: number, title, site and support, then the URL."""
    yield Text()
    yield Text("Sources", style="bold")
    for source in sources:
        url, site = clean_line(source.url), clean_line(site_of(source.url))
        title = clean_line(source.title)
        name = title if title and title != url else site
        good, total = support.get(source.number, (0, 0))
        verdict = f"  {good} of {total} sentence{'s' * (total != 1)} found" if total else ""
        place, style = f"  {site}" if name != site else "", "dim" if good == total else "yellow"
        yield Text.assemble((f"[{source.number}] ", "cyan"), name, (place, "green"), (verdict, style))
        address = Text(f"    {url}", style="dim", no_wrap=True, overflow="ignore")  # a URL stays whole
        link = clean_line(source.link)
        if link.startswith(url) or is_note_link(link):
            address.stylize(Style(link=link), 4)  # terminals with link support open it at the evidence
        yield address
