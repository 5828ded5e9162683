"""An answer as a file of HTML or Markdown: text, conflicts, sources and figures. Pure: facts and stored texts come in.

HTML needs nothing else and has the evidence behind each sentence and the timeline too. It runs no script, loads nothing and
opens from disk with the network off. Everything that a page, a model or a user wrote is escaped, and its direction is its own.
Markdown has front matter; other programs open it, so markup that a page or a model wrote is made text: no tags, no images, no
links but web addresses.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nexi.answers.answered import describe_answered
from nexi.answers.citations import link_citations, strip_sources_section
from nexi.answers.safe_markdown import make_inert
from nexi.app.mark_figures import describe_mark
from nexi.events import AnswerChecked, RunFinished, RunStarted
from nexi.output.proof import SIGNS, VERDICT_WORDS, describe_evidence, verdict_words, verification_lines
from nexi.text.plain import strip_heading_marks
from nexi.types import STANDINGS, Claim, Conflict, Evidence, Review, Source, StopReason, Usage
from nexi.web.page.charts import with_charts
from nexi.web.page.timeline import timeline_svg, totals_of
from nexi.web.page.view import AnsweredRun, answer_html, is_web, plain_claim, source_view

if TYPE_CHECKING:
    from nexi.checking.recheck import Verification

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
AROUND = 200
MAX_SPAN_CHARS = 4000
MAX_TITLE_CHARS = 300

_SYNTAX = re.compile(r"([\\`*_\[\]<>#|])")
_FRONT_END = "\n---\n"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Exported(Struct, frozen=True):
    """What a file is made of. `texts` are the stored pages by source number; `opened` shows what a reader would unfold."""

    answered: AnsweredRun
    created: str = ""
    timeline: Sequence[Mapping[str, Any]] = ()
    texts: Mapping[int, str] | None = None
    opened: bool = False


def export_html(exported: Exported) -> str:
    """The whole document."""
    answered, end, bars = exported.answered, exported.answered.end, exported.timeline
    note = describe_answered(end.answered)
    dropped = "".join(
        f"<li><bdi>{_escape_text(plain_claim(claim))}</bdi> "
        f'<span class="v-{claim.verdict.value}">{verdict_words(claim)}</span></li>'
        for claim in (answered.review.dropped if answered.review else ())
    )
    left_out = f"<p>These sentences were not found in their sources.</p><ul>{dropped}</ul>"
    timeline = f'<div class="timeline">{timeline_svg(bars)}</div><p class="soft">{_escape_text(totals_of(bars))}</p>'
    facts = [f"nexi run {answered.id}", exported.created[:10], answered.started.model, f"{end.seconds:.1f} s"]
    facts += [f"{end.usage.total:,} tokens", f"${end.usage.cost:.4f}" if end.usage.cost else ""]
    facts += [f"{end.pages} pages read", f"ended: {end.stop.value.replace('_', ' ')}"]
    warnings = "".join(f"<p>{_escape_text(warning)}</p>" for warning in end.warnings)
    parts = [
        _render_head(exported),
        f'<article dir="auto">{_render_body(answered)}</article>',
        f"<p><em>{_escape_text(note)}</em></p>" if note else "",
        _render_conflicts([c for c in end.conflicts if not c.is_settled], end.sources),
        _render_sources(end.sources, answered.claims),
        _render_evidence(exported),
        f"<section><h2>Left out</h2>{left_out}</section>" if dropped else "",
        f"<section><h2>Where the time went</h2>{timeline}</section>" if bars else "",
        f'<footer class="soft">{warnings}<p>{_escape_text(" · ".join(f for f in facts if f))}</p></footer>',
    ]
    return _render_document(answered.started.query, parts)


def export_check(verification: Verification, target: str, *, strict: bool) -> str:
    """A text that was checked outside a run, as a document: its figures, the text with marks, its sources and the evidence."""
    title = f"{'Audit' if verification.citations else 'Verification'} of {target}"
    sources = tuple(state.source for state in verification.sources)
    end = RunFinished(verification.document.text, sources, StopReason.FINAL_ANSWER, 0, Usage(), 0.0, 0, 0)
    review = Review(verification.proof, judges=verification.judges, gap=verification.gap)
    answered = AnsweredRun("", RunStarted(title, "", ""), end, (AnswerChecked(review),))
    notes = {state.source.number: f"{state.state}: {state.reason}" for state in verification.sources if state.reason}
    unread = "".join(f"<li>[{number}] {_isolate_name(note)}</li>" for number, note in notes.items())
    texts = {number: text for number, text in verification.texts.items() if text}
    parts = [
        f'<h1 dir="auto">{_escape_text(title[:MAX_TITLE_CHARS])}</h1>',
        *(f"<p>{_escape_text(line)}</p>" for line in verification_lines(verification, strict=strict)),
        f'<article dir="auto">{_render_body(answered)}</article>',
        _render_sources(sources, answered.claims),
        f"<section><h2>Links</h2><ul>{unread}</ul></section>" if unread else "",
        _render_evidence(Exported(answered, texts=texts)),
    ]
    return _render_document(title, parts)


def _render_document(title: str, parts: Sequence[str]) -> str:
    style = (resources.files(__package__) / "export.css").read_text("utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="content-security-policy" content="{POLICY}"><meta name="referrer" content="no-referrer">'
        f'<meta name="generator" content="nexi"><title>{_escape_text(title[:MAX_TITLE_CHARS])}</title><style>{style}</style>'
    )
    body = "\n".join(part for part in parts if part)
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n'


def _escape_text(text: str) -> str:
    """Text as text: no markup, no control characters, and no half of a character, which no file can hold."""
    return html.escape(_CONTROL.sub("\ufffd", text).encode("utf-8", "replace").decode())


def _isolate_name(text: str) -> str:
    """A name that others gave, in a direction of its own."""
    return f"<bdi>{_escape_text(' '.join(text.split()))}</bdi>"


def _render_head(exported: Exported) -> str:
    """The question, then date and model; above the heading of a report the question stands only where it says more."""
    started = exported.answered.started
    first_line = exported.answered.text.lstrip().partition("\n")[0]
    heading = first_line[2:].strip() if first_line.startswith("# ") else ""
    tag = 'p class="asked"' if heading else "h1"
    letters = ["".join(c for c in text.casefold() if c.isalnum()) for text in (heading, started.query)]
    question = "" if letters[0] == letters[1] else f'<{tag} dir="auto">{_escape_text(started.query)}</{tag[:2].strip()}>'
    about = " · ".join(_isolate_name(fact) for fact in (exported.created[:10], started.model) if fact)
    return question + (f'<p class="soft about">{about}</p>' if about else "")


def _render_body(answered: AnsweredRun) -> str:
    text = strip_sources_section(answered.text) if answered.end.sources else answered.text
    inside = [claim for claim in answered.claims if claim.end <= len(text)]
    return with_charts(answer_html(text, inside, answered.end.sources, leads_to="file"))


def _render_conflicts(conflicts: Sequence[Conflict], sources: Sequence[Source]) -> str:
    names = {source.number: _isolate_name(source.title or source.url) for source in sources}
    parts = []
    for conflict in conflicts:
        about = _isolate_name(conflict.subject) if conflict.subject else "One says what another denies"
        parts.append(f'<h3>{about}</h3><ul class="sides">')
        for reading in conflict.readings:  # side by side
            value, quote = _escape_text(reading.value), _escape_text(reading.quote)
            independent = f"{reading.origins} independent" if reading.origins > 1 else ""
            more = "".join(f" · {note}" for note in (independent, reading.standing, reading.day) if note)
            links = [f'<a href="#source-{n}">[{n}] {names[n]}</a>' if n in names else f"[{n}]" for n in reading.numbers]
            parts.append(f'<li><p class="value" dir="auto">{value}</p>')
            parts.append(f'<blockquote class="passage" dir="auto">{quote}</blockquote>' if quote else "")
            parts.append(f'<p class="soft">{", ".join(links)}{more}</p></li>')
        parts.append("</ul>")
    return f"<section><h2>Where sources disagree</h2>{''.join(parts)}</section>" if parts else ""


def _render_sources(sources: Sequence[Source], claims: Sequence[Claim]) -> str:
    items = []
    for source in sources:
        view, number = source_view(source, claims), source.number
        title = _isolate_name(view["title"] or source.url)
        link = f'<a rel="noreferrer noopener" href="{_escape_text(view["link"])}">{title}</a>' if view["link"] else title
        read = f"read {view['accessed']}" if view["accessed"] else ""
        facts = (view["host"], view["site"], view["author"], view["published"], read)
        about = " · ".join(_isolate_name(fact) for fact in facts if fact)
        verdict = f' · <span class="v-{view["verdict"]}">{_escape_text(view["said"])}</span>' if view["said"] else ""
        items.append(
            f'<li id="source-{number}" value="{number}"><span class="n">[{number}]</span> {link}<br><span class="soft">{about}'
            f'</span>{verdict}<br><span class="soft"><bdi>{_escape_text(source.url)}</bdi></span></li>'
        )
    return f'<section><h2>Sources</h2><ol class="sources">{"".join(items)}</ol></section>' if items else ""


def _render_evidence(exported: Exported) -> str:
    claims = [claim for claim in exported.answered.claims if claim.evidence or claim.needs_citation]
    if not claims:
        return ""
    review, items = exported.answered.review, ""
    figures = f"<p>{_escape_text(review.proof.figures())}.</p>" if review else ""
    by_number = {source.number: source for source in exported.answered.end.sources}
    for claim in claims:
        badge = f'<span class="v-{claim.verdict.value}">{SIGNS[claim.verdict]} {verdict_words(claim)}</span>'
        badge += f' <span class="v-contradicted">! cites {STANDINGS[claim.standing]}</span>' if claim.standing else ""
        quotes = "".join(_render_quote(claim, one, by_number, exported.texts or {}) for one in claim.evidence)
        why = f'<p class="soft">{_escape_text(claim.reason)}</p>' if claim.reason and not claim.evidence else ""
        head = f'{badge} <span dir="auto"><bdi>{_escape_text(plain_claim(claim))}</bdi></span>'
        items += _fold(head, f'<div id="claim-{claim.index}">{quotes}{why}</div>', exported.opened)
    # what the marks in this file mean and how often they are right, and why sentences were not judged
    verdicts = [verdict for verdict in SIGNS if any(claim.verdict is verdict for claim in claims)]
    judges = review.judges if review else ()
    lines = [f"<li>{SIGNS[v]} {VERDICT_WORDS[v]}: {_escape_text(describe_mark(v, judges))}</li>" for v in verdicts]
    gap = f"<p>{_escape_text(review.gap)}</p>" if review and review.gap else ""
    legend = _fold("What the marks mean", f'<div class="soft"><ul>{"".join(lines)}</ul>{gap}</div>', exported.opened)
    return f'<section class="evidence"><h2>Evidence</h2>{figures}{items}{legend}</section>'


def _fold(head: str, inside: str, is_opened: bool) -> str:
    """What a reader unfolds; on paper, which has no folds, a head that stays with what follows it."""
    if is_opened:
        return f'<div class="unfolded"><p class="head">{head}</p>{inside}</div>'
    return f"<details><summary>{head}</summary>{inside}</details>"


def _render_quote(claim: Claim, one: Evidence, by_number: Mapping[int, Source], texts: Mapping[int, str]) -> str:
    """What one source says to one sentence, in the text that was read."""
    from nexi.checking.links import link_to

    source, text = by_number.get(one.number), texts.get(one.number, "")
    name = _isolate_name(source.title or source.url) if source else ""
    badge = f'<span class="v-{one.verdict.value}">{SIGNS[one.verdict]} {VERDICT_WORDS[one.verdict]}</span>'
    facts = [badge, _escape_text(describe_evidence(one))]
    head = f'<p id="claim-{claim.index}-{one.number}"><a href="#source-{one.number}">[{one.number}]</a> {name}</p>'
    below = f'<p class="soft">{" · ".join(t for t in facts if t)}</p>'
    quote, link = f"<mark>{_escape_text(one.span)}</mark>" if one.span else "", ""
    if 0 <= one.start < one.end <= len(text):  # with what stands around it
        start, end = one.start, min(one.end, one.start + MAX_SPAN_CHARS)
        before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
        lead, tail = "…" if start > AROUND else "", "…" if end + AROUND < len(text) else ""
        parts = [_escape_text(strip_heading_marks(part)) for part in (before, text[start:end], after)]
        quote = f"{lead}{parts[0]}<mark>{parts[1]}</mark>{parts[2]}{tail}"
        if source and is_web(source.url):  # the page as it is now, at the passage
            url = _escape_text(link_to(source.url, text, one.start, one.end, source.imprint.content_type))
            link = f'<p class="soft"><a rel="noreferrer noopener" href="{url}">Open the page there</a></p>'
    passage = f'<blockquote class="passage" dir="auto">{quote}</blockquote>' if quote else ""
    return f'<div class="quote">{head}{passage}{link}{below}</div>'


def markdown_of(answered: AnsweredRun, front: str = "") -> str:
    """The whole file, after its front matter."""
    body = strip_sources_section(answered.text) if answered.end.sources else answered.text
    heading = "" if body.lstrip().startswith("# ") else f"# {escape_line(answered.started.query)}"
    note = describe_answered(answered.end.answered)
    conflicts = [conflict for conflict in answered.end.conflicts if not conflict.is_settled]  # the text has the others
    disagreements = ["## Where sources disagree\n", *(f"- {make_inert(conflict.sentence())}" for conflict in conflicts)]
    review, figures = answered.review, ""
    if review and review.proof.checked:
        left_out = f", {len(review.dropped)} left out" if review.dropped else ""
        gap = f" {escape_line(review.gap).rstrip('.')}." if review.gap else ""
        figures = f"*Checked: {review.proof.figures()}{left_out}.{gap}*"
    parts = [
        front.strip(),
        heading,
        make_inert(link_citations(body, answered.end.sources)).strip(),
        f"*{note}*" if note else "",
        "\n".join(disagreements) if conflicts else "",
        _list_sources(answered),
        figures,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def tame_document(text: str) -> str:
    """The same for a document whose front matter is data."""
    head, end, body = text.partition(_FRONT_END) if text.startswith("---\n") else ("", "", text)
    return f"{head}{end}{make_inert(body)}"


def title_document(text: str, answered: AnsweredRun, today: str) -> str:
    """The same for a reader who sees no front matter: the question, then date and model."""
    body = (text.partition(_FRONT_END)[2] if text.startswith("---\n") else text).strip()
    title, _, rest = body.partition("\n") if body.startswith("# ") else ("", "", body)
    facts = (today, answered.started.model, f"nexi run {answered.id}")
    question = escape_line(answered.started.query)
    about = [title or f"# {question}", "" if title in ("", f"# {question}") else f"*{question}*"]
    line = f"*{' · '.join(escape_line(fact) for fact in facts if fact)}*"
    return "\n\n".join(part for part in (*about, line, rest.strip()) if part) + "\n"


def escape_line(text: str) -> str:
    """One line in which nothing is markup."""
    return _SYNTAX.sub(r"\\\1", " ".join("".join(c if c.isprintable() else " " for c in text).split()))


def _list_sources(answered: AnsweredRun) -> str:
    lines = []
    for source in answered.end.sources:
        view = source_view(source, answered.claims)
        name = escape_line(view["title"] or source.url)
        link = view["link"].replace("(", "%28").replace(")", "%29")
        facts = [escape_line(view[name]) for name in ("host", "site", "author", "published") if view[name]]
        facts += [f"read {escape_line(view['accessed'])}"] if view["accessed"] else []
        lines.append(" · ".join([f"- [{source.number}] " + (f"[{name}]({link})" if link else name), *facts]))
    return "## Sources\n\n" + "\n".join(lines) if lines else ""
