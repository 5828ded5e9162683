"""Gives code that chat programs run the name `text`, in answers that stream in any pieces.

Above are the doors that pass as OpenAI. Some chat programs open a fence named html, svg or mermaid by themselves and run it,
so that an answer could load or send anything. Programs find their fences in different ways, some in the middle of a line: what
looks like the start of one is renamed wherever it stands. What is in the fence is not looked at here.
"""

from __future__ import annotations

import re
from html import unescape

MAX_NAME_CHARS = 1_000  # of the line behind a fence; of a longer one no more is looked at, and nothing is shown
_RUN_NAMES = """
html html5 htm xhtml shtml dhtml svg svgz xml xsl xslt mathml hta vue svelte astro angular handlebars hbs ejs
php javascript js mjs cjs ecmascript jsx tsx react reactjs typescript ts preact solid css scss sass less
markdown md mdx mkd artifact artifacts canvas iframe embed webpage web preview p5 p5js threejs d3 d3js mermaid
mmd plantuml puml uml dot graphviz gv d2 kroki c4 ditaa nomnoml wavedrom bpmn excalidraw drawio tikz flowchart
flow sequence gantt mindmap markmap abc abcjs smiles vega vega-lite vegalite echarts chart chartjs chart-js
plotly highcharts apexcharts geojson topojson stl map
"""
RUN_BY_PROGRAMS = frozenset(_RUN_NAMES.split())
_FENCE = re.compile(r"(`{3,})([^`\r\n]*)(?=[\r\n])|(~{3,})([^\r\n]*)")
_MAY_BE_FENCE = re.compile(r"(?<!`)`{3,}[^`\r\n]*\Z|~{3,}[^\r\n]*\Z|(?<!`)``?\Z|~~?\Z|(?<!:):+[ \t]{0,9}\w{0,8}\Z")
_ARTIFACT = re.compile(r":{3,}[ \t]{0,9}artifact\b", re.IGNORECASE)  # how LibreChat marks what it opens
_NAME_WORD = re.compile(r"[a-z0-9_-]+")


class FenceRenamer:
    """The text of one answer: what `feed` and `finish` return, joined, is the answer with its fences renamed."""

    def __init__(self) -> None:
        self._held = ""  # what may still become a fence
        self._skips_line = False  # the rest of a line whose beginning was renamed

    def feed(self, text: str) -> str:
        """Take more text; return what can be shown, which ends before anything that may still become a fence."""
        self._held += text
        if self._skips_line:
            end = re.search(r"[\r\n]", self._held)
            self._skips_line, self._held = end is None, self._held[end.start() :] if end else ""
        line = max(self._held.rfind("\n"), self._held.rfind("\r")) + 1
        hold = _MAY_BE_FENCE.search(self._held, line)
        if hold is None:
            return self._show(len(self._held))
        if len(self._held) - hold.start() <= MAX_NAME_CHARS:
            return self._show(hold.start())
        text_without_fences = rename_fences(self._held)
        self._skips_line, self._held = text_without_fences[hold.start() :] != self._held[hold.start() :], ""
        return text_without_fences

    def finish(self) -> str:
        return rename_fences(self._held)

    def _show(self, size: int) -> str:
        part, self._held = self._held[:size], self._held[size:]
        return _rename_lines(part)


def rename_fences(text: str) -> str:
    """A whole answer with its fences renamed."""
    return _rename_lines(f"{text}\n")[:-1]


def _rename_lines(text: str) -> str:
    return _ARTIFACT.sub(lambda match: f"\\{match[0]}", _FENCE.sub(_rename_fence, text))


def _rename_fence(match: re.Match[str]) -> str:
    # Entities and backslashes are read in the name of a fence as elsewhere in Markdown.
    mark, name = match[1] or match[3], unescape(match[2] or match[4] or "").replace("\\", "").lower()
    return f"{mark}text" if RUN_BY_PROGRAMS.intersection(_NAME_WORD.findall(name)) else match[0]
