"""An answer as a Markdown file: front matter, question, text, conflicts, sources and figures. Pure.

Other programs open it, so markup that a page or a model wrote is made text: no tags, no images, no links but web addresses.
"""

from __future__ import annotations

import re

from nexi.answers.answered import describe_answered
from nexi.answers.citations import link_citations, strip_sources_section
from nexi.answers.safe_markdown import make_inert
from nexi.web.page.view import AnsweredRun, source_view

__all__ = ["markdown_of", "tame_document", "title_document"]

_SYNTAX = re.compile(r"([\\`*_\[\]<>#|])")
_FRONT_END = "\n---\n"


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
        _render_sources(answered),
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


def _render_sources(answered: AnsweredRun) -> str:
    lines = []
    for source in answered.end.sources:
        view = source_view(source, answered.claims)
        name = escape_line(view["title"] or source.url)
        link = view["link"].replace("(", "%28").replace(")", "%29")
        facts = [escape_line(view[name]) for name in ("host", "site", "author", "published") if view[name]]
        facts += [f"read {escape_line(view['accessed'])}"] if view["accessed"] else []
        lines.append(" · ".join([f"- [{source.number}] " + (f"[{name}]({link})" if link else name), *facts]))
    return "## Sources\n\n" + "\n".join(lines) if lines else ""
