"""An answer as one file that needs nothing else: text, figures, sources, the evidence behind each sentence, and the timeline.

Pure: facts and stored texts come in, HTML goes out. It runs no script, loads nothing and opens from disk with the network off.
A table of numbers gets a small chart, drawn here from its own cells.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nexi.types import Claim, Source
from nexi.web.page.view import Answered, answer_html

STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.55 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.5rem}article{overflow-wrap:anywhere}button{border:0;background:none;font:inherit;color:inherit;padding:0}"
    "table{border-collapse:collapse}td,th{border:1px solid #8888;padding:.2rem .5rem}pre{overflow-x:auto}"
    "blockquote{border-inline-start:3px solid #8888;margin:.3rem 0;padding-inline-start:.8rem;white-space:pre-wrap}"
    "mark{background:#ffe58a;color:#000}.v-supported{color:#17692f}.v-contradicted,.v-not_found{color:#a4260b}"
    ".v-partly,.v-unchecked{color:#7a5200}.soft{color:#777}svg{max-width:100%;height:auto}"
)
LANES = {"model": "#4a7fb5", "search": "#c98a2b", "page": "#5d9a68"}
AROUND = 200
ROW, LEFT, WIDTH = 14, 110, 800
MOST_CHART_ROWS = 30

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_CELL_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>", re.DOTALL)
_ANY_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"[-−]?\d[\d,  ]*(?:\.\d+)?")


def export_html(answered: Answered, timeline: Sequence[Mapping[str, Any]], texts: Mapping[int, str]) -> str:
    """The whole document; `texts` are the stored pages by source number."""
    review = answered.review
    claims = review.proof.claims if review else ()
    title = html.escape(answered.started.query[:300])
    body = with_charts(answer_html(answered.end.answer, claims, answered.end.sources))
    figures = html.escape(review.proof.figures()) if review and review.proof.checked else ""
    parts = [
        f"<h1>{title}</h1>" if not answered.end.answer.lstrip().startswith("# ") else "",
        f"<article>{body}</article>",
        f'<p class="soft">{figures} · {html.escape(answered.started.model)} · run {answered.id}</p>',
        _sources(answered.end.sources),
        _evidence(claims, texts),
        f"<h2>Where the time went</h2>{timeline_svg(timeline)}" if timeline else "",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="content-security-policy" content="{policy}"><title>{title}</title><style>{STYLE}</style>'
    )
    return (
        f'<!doctype html>\n<html dir="auto"><head>{head}</head><body>\n{chr(10).join(p for p in parts if p)}\n</body></html>\n'
    )


def _sources(sources: Sequence[Source]) -> str:
    items = [
        f'<li value="{s.number}"><a rel="noreferrer noopener" href="{html.escape(s.link or s.url, quote=True)}">'
        f'{html.escape(" ".join(s.title.split()) or s.url)}</a> <span class="soft">{html.escape(s.url)}</span></li>'
        for s in sources
        if s.url.startswith(("https://", "http://"))
    ]
    return f"<h2>Sources</h2><ol>{''.join(items)}</ol>" if items else ""


def _evidence(claims: Sequence[Claim], texts: Mapping[int, str]) -> str:
    shown = [_claim(claim, texts) for claim in claims if claim.evidence]
    return f"<h2>Evidence</h2>{''.join(shown)}" if shown else ""


def _claim(claim: Claim, texts: Mapping[int, str]) -> str:
    verdict = claim.verdict.value
    quotes = []
    for one in claim.evidence:
        text = texts.get(one.number, "")
        if not 0 <= one.start < one.end <= len(text):
            continue
        before, after = text[max(0, one.start - AROUND) : one.start], text[one.end : one.end + AROUND]
        span = f"{html.escape(before)}<mark>{html.escape(text[one.start : one.end])}</mark>{html.escape(after)}"
        quotes.append(f'<blockquote>{span}</blockquote><p class="soft">[{one.number}] {html.escape(one.reason)}</p>')
    told = f'<span class="v-{verdict}">{verdict.replace("_", " ")}</span>: {html.escape(claim.text)}'
    return f"<details><summary>{told}</summary>{''.join(quotes)}</details>"


def timeline_svg(bars: Sequence[Mapping[str, Any]]) -> str:
    """One lane for each kind of work of each researcher."""
    lanes = list(dict.fromkeys(f"{b['who']} {b['lane']}".strip() for b in bars))
    end = max([float(b["end"]) for b in bars] + [0.1])
    scale, height = (WIDTH - LEFT - 10) / end, len(lanes) * ROW + 18
    drawn = [f'<text x="0" y="{i * ROW + 11}" font-size="10" fill="#777">{html.escape(n)}</text>' for i, n in enumerate(lanes)]
    for bar in bars:
        row = lanes.index(f"{bar['who']} {bar['lane']}".strip())
        x, width = LEFT + float(bar["start"]) * scale, max(1.5, (float(bar["end"]) - float(bar["start"])) * scale)
        color = "#b5523e" if bar["failed"] else LANES.get(str(bar["lane"]), "#888")
        drawn.append(
            f'<rect x="{x:.1f}" y="{row * ROW + 2}" width="{width:.1f}" height="{ROW - 4}" rx="2" fill="{color}">'
            f"<title>{html.escape(str(bar['label']))}</title></rect>"
        )
    drawn.append(f'<text x="{LEFT}" y="{height - 4}" font-size="10" fill="#777">0 s</text>')
    drawn.append(f'<text x="{WIDTH - 50}" y="{height - 4}" font-size="10" fill="#777">{end:.1f} s</text>')
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Timeline of the run">{"".join(drawn)}</svg>'


def with_charts(made: str) -> str:
    """A bar chart under every table whose second column is numbers."""
    return _TABLE.sub(lambda found: found[0] + (_chart(found[0]) or ""), made)


def _chart(table: str) -> str:
    rows = [[_plain(cell) for cell in _CELL.findall(row)] for row in _CELL_ROW.findall(table)]
    pairs = [(row[0], value) for row in rows[1:] if len(row) > 1 and (value := _value(row[1])) is not None]
    if not 2 <= len(pairs) <= MOST_CHART_ROWS or len(pairs) < len(rows) - 1 or min(v for _, v in pairs) < 0:
        return ""
    most = max(v for _, v in pairs) or 1.0
    drawn = []
    for at, (name, value) in enumerate(pairs):
        width = (WIDTH - 260) * value / most
        drawn.append(
            f'<text x="0" y="{at * 20 + 14}" font-size="12" fill="#777">{html.escape(name[:28])}</text>'
            f'<rect x="200" y="{at * 20 + 3}" width="{width:.1f}" height="14" fill="#4a7fb5"/>'
            f'<text x="{205 + width:.1f}" y="{at * 20 + 14}" font-size="12" fill="#777">{value:g}</text>'
        )
    label = html.escape(f"Chart of {rows[0][1]}" if len(rows[0]) > 1 else "Chart", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {len(pairs) * 20 + 4}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _plain(cell: str) -> str:
    return html.unescape(_ANY_TAG.sub("", cell)).strip()


def _value(cell: str) -> float | None:
    """The number of a cell that is a number, a unit or a citation beside it."""
    text = re.sub(r"\[\d+\]|[✓~✗?·]", "", cell).strip()
    found = _NUMBER.match(text)
    if not found or len(text) - len(found[0]) > 12:
        return None
    try:
        return float(re.sub("[,  ]", "", found[0]).replace("−", "-"))
    except ValueError:
        return None
