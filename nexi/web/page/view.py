"""An answer as the page shows it: safe HTML in which citations and sentences lead to their evidence. Pure.

Markdown is rendered with everything escaped; only then are our own two kinds of marks put in, at places named by characters
that no answer can contain. In the page a mark is a button; in a file of its own it is a link within the file.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from nexi.answers.answered import describe_answered
from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.answers.papers import group_works
from nexi.app.mark_figures import describe_marks
from nexi.errors import NexiError
from nexi.events import Fact, RunFinished, RunStarted, SentenceMark, Warned, find_review
from nexi.output.proof import GOOD, SIGNS, VERDICT_WORDS, verdict_words
from nexi.types import STANDINGS, Claim, Conflict, Evidence, Review, Source, Verdict
from nexi.urls import host_of, is_note_link
from nexi.web.page.charts import with_charts
from nexi.web.page.formulas import add_formulas

if TYPE_CHECKING:
    from nexi.app import ReadLog

OPEN, CLOSE = "\ue000", "\ue001"  # around the number of a claim, while Markdown is rendered
WORST = (Verdict.CONTRADICTED, Verdict.NOT_FOUND, Verdict.UNCHECKED, Verdict.NOT_CONFIRMED, Verdict.FOUND, Verdict.SUPPORTED)
MAX_VALUE_CHARS = 60
MAX_QUOTE_CHARS = 400
MARK = " [unverified]"  # what answers before version 2 of the check carry as text
SHOWN_ELSEWHERE = ("unsupported", "cancelled")  # warnings that the marks and the line of a stopped run say

_MARKS = re.compile(f"[{OPEN}{CLOSE}]")
_CLAIM = re.compile(f"{OPEN}([0-9]{{1,6}}){CLOSE}")
_TAG = re.compile(r"(<[^>]*>)")
_ALIGNED = re.compile(r'(<t[dh]) style="text-align:(left|right|center)"')
_CITATION = re.compile(r"\[([1-9][0-9]{0,2})\]")
_LAST_WORD = re.compile(r"(?<!\S)\S{1,24}\Z")


class AnsweredRun(Struct, frozen=True):
    """A run that ended with an answer."""

    id: str
    started: RunStarted
    end: RunFinished
    facts: tuple[Fact, ...]

    @property
    def review(self) -> Review | None:
        return find_review(self.facts)

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.review.proof.claims if self.review else ()

    @property
    def text(self) -> str:
        """The answer as Markdown; the passages of an agentic search, whose answer is JSON, each under its address."""
        if self.started.mode != "agentic":
            return self.end.answer
        response = json.loads(self.end.answer)
        passages = [f"{result['content'].strip()}\n\n<{result['url']}>\n" for result in response["results"]]
        return "\n".join([f"Completeness {response['completeness']}, {response['status']}.\n", *passages])


def answered_of(run_id: str, log: ReadLog) -> AnsweredRun:
    """The answered run of a log. Raises NexiError for a run that has not ended with an answer."""
    facts = log.bare_facts
    if not facts or not isinstance(facts[0], RunStarted) or not isinstance(facts[-1], RunFinished):
        message, cause = f"run {run_id} has no answer yet", "it has not ended with one"
        raise NexiError(message, cause=cause, fix=f"nexi resume {run_id}", code="not_ended")
    return AnsweredRun(run_id, facts[0], facts[-1], facts)


def view_of(answered: AnsweredRun) -> dict[str, Any]:
    """Everything the page shows of an answer."""
    end, review, claims = answered.end, answered.review, answered.claims
    works = group_works(end.sources)
    # What the page said while it followed the run, those of researchers apart; each once.
    warnings = [fact for fact in answered.facts if isinstance(fact, Warned)]
    elsewhere = {fact.message for fact in warnings if fact.code in SHOWN_ELSEWHERE}
    texts = [*(fact.message for fact in warnings if not fact.agent), *end.warnings]
    forms = [form for form in EXPORT_FORMATS.values() if end.sources or not form.lists_sources]
    counts: dict[str, int] = {}  # of the figures, for a page in any language
    if review:
        counts = {"checked": len(review.proof.checked), "supported": review.proof.supported, "found": review.proof.found}
        counts |= {standing: review.proof.count_citing(standing) for standing in STANDINGS}
    return {
        "id": answered.id,
        "question": answered.started.query,
        "mode": answered.started.mode,
        "model": answered.started.model,
        "continues": str(answered.started.settings.get("continues") or ""),
        "text": answered.text,
        "answered": end.answered,
        "answered_note": describe_answered(end.answered),
        "html": with_charts(answer_html(answered.text, claims, end.sources)),
        "figures": review.proof.figures() if review and review.proof.checked else "",
        "proof": counts,
        "judges": [asdict(judge) for judge in review.judges] if review else [],
        "gap": review.gap if review else "",
        "marks": describe_marks(review.judges) if review else {},
        "claims": [claim_to_dict(claim) for claim in claims],
        "dropped": [claim_to_dict(claim) for claim in review.dropped] if review else [],
        "sources": [source_view(source, claims) | {"work": works[source.number]} for source in end.sources],
        "conflicts": [_conflict_to_dict(conflict) for conflict in end.conflicts if not conflict.is_settled],
        "warnings": [text for text in dict.fromkeys(texts) if text not in elsewhere],
        "stop": end.stop.value,
        "seconds": end.seconds,
        "tokens": end.usage.total,
        "cost": end.usage.cost,
        "pages": end.pages,
        "model_calls": end.model_calls,
        "exports": [{"format": form.name, "title": form.title, "suffix": form.suffix} for form in forms],
        "kept": True,
    }


def draft_html(text: str, marks: Sequence[SentenceMark]) -> str:
    """An answer under way, with the marks that are known so far; they lead nowhere yet."""
    claims = [Claim(n, "", m.start, m.end, m.verdict, evidence=(Evidence(0),)) for n, m in enumerate(marks)]
    return answer_html(text, claims, (), leads_to="nothing")


def answer_html(text: str, claims: Sequence[Claim], sources: Sequence[Source], *, leads_to: str = "page") -> str:
    """An answer whose citations and checked sentences lead to their evidence in the page, in a file, or to nothing."""
    clean = _MARKS.sub("\ufffd", text)  # an answer must not bring marks of its own
    checked = [c for c in claims if c.evidence or c.needs_citation]
    for claim in sorted(checked, key=lambda c: c.end, reverse=True):
        # The mark stands at the end of its claim, and inside the last cell of a row of a table.
        body = clean[: claim.end].rstrip()
        is_row = clean[claim.start : claim.end].lstrip().startswith("|") and body.endswith("|")
        end = len(body[:-1].rstrip()) if is_row else len(body)
        clean = f"{clean[:end]}{OPEN}{claim.index}{CLOSE}{clean[end:]}"
    marks = _Marks({c.index: c for c in checked}, frozenset(s.number for s in sources), leads_to)
    rendered_html = html_of(clean).replace("<a href=", '<a rel="noreferrer noopener nofollow" target="_blank" href=')
    rendered_html = re.sub(r"<(pre|table)>", r'<\1 tabindex="0">', rendered_html)  # keys reach what scrolls
    return _link_citations(rendered_html, marks)


def html_of(markdown: str) -> str:
    """Markdown as HTML: raw markup is shown as text, images become their words, links lead to web addresses only."""
    from markdown_it import MarkdownIt

    maker = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    add_formulas(maker)
    maker.validateLink = lambda url: url.lower().startswith(("https://", "http://"))  # type: ignore[method-assign]
    return _ALIGNED.sub(r'\1 class="a-\2"', str(maker.render(markdown)))  # the page's policy allows no style in its text


class _Marks(Struct, frozen=True):
    """What citations and marks lead to."""

    claims: dict[int, Claim]
    numbers: frozenset[int]
    leads_to: str

    def cite(self, number: int, index: int) -> str:
        if number not in self.numbers:
            return f"[{number}]"
        claim = self.claims.get(index)
        is_cited = claim is not None and number in claim.numbers
        if self.leads_to == "file":
            place = f"claim-{index}-{number}" if is_cited else f"source-{number}"
            return f'<a class="cite" href="#{place}" aria-label="Source {number}">[{number}]</a>'
        about = f' data-claim="{index}"' if is_cited else ""
        return f'<button type="button" class="cite" data-n="{number}"{about} aria-label="Source {number}">[{number}]</button>'

    def check(self, index: int) -> str:
        """The sign of a verdict, in words too where it is not a good one. In the page only what is wrong has a mark."""
        claim = self.claims.get(index)
        if claim is None or (claim.verdict in GOOD and self.leads_to != "file" and not claim.standing):
            return ""
        verdict, sign = html.escape(_say_verdict(claim)), "!" if claim.standing else SIGNS[claim.verdict]
        sign_text = sign if claim.verdict in GOOD and not claim.standing else f"{sign}\u00a0{verdict}"
        attributes, shows = f'class="check v-{claim.verdict.value}"', f'aria-label="{verdict}: show the evidence"'
        attributes += f' data-standing="{claim.standing}"' if claim.standing else ""
        if self.leads_to == "nothing":
            return f'<span {attributes} title="{verdict}">{sign_text}</span>'
        if self.leads_to == "file":
            return f'<a {attributes} href="#claim-{index}" {shows}>{sign_text}</a>'
        return f'<button type="button" {attributes} data-claim="{index}" {shows}>{sign_text}</button>'


def _say_verdict(claim: Claim) -> str:
    """The verdict of a sentence in words; a contradicted one names the value of the page beside its own."""
    if claim.standing in STANDINGS:  # of a good one that cites a retracted paper it is that which a reader must know
        cites = f"cites {STANDINGS[claim.standing]}"
        return cites if claim.verdict in GOOD else f"{verdict_words(claim)}, {cites}"
    other = next((e.other for e in claim.evidence if e.verdict is Verdict.CONTRADICTED and e.other), "")
    value = " ".join(other.split())[:MAX_VALUE_CHARS] if claim.verdict is Verdict.CONTRADICTED else ""
    return f"{verdict_words(claim)}: the page has {value}" if value else verdict_words(claim)


def _link_citations(source: str, marks: _Marks) -> str:
    """Citations and marks in the text between tags, outside code; a citation belongs to the claim that ends after it."""
    ahead, depth, out = -1, 0, list[str]()  # read from the end, where the claim of a citation is met before it
    for part in reversed(_TAG.split(source)):
        if part.startswith("<"):
            depth += part.startswith(("</code", "</pre")) - part.startswith(("<code", "<pre"))
            out.append(part)
        elif depth > 0:
            out.append(_CLAIM.sub("", part))
        else:
            out.append(_mark_text(part, ahead, marks))
        if match := _CLAIM.search(part):
            ahead = int(match[1])
    return "".join(reversed(out))


def _mark_text(part: str, ahead: int, marks: _Marks) -> str:
    pieces = _CLAIM.split(part)  # text, index, text, index, … text
    out = []
    for at in range(0, len(pieces), 2):
        owner = int(pieces[at + 1]) if at + 1 < len(pieces) else ahead
        words = pieces[at] if marks.leads_to == "file" or not marks.claims else pieces[at].replace(MARK, "")
        sign = marks.check(owner) if at + 1 < len(pieces) else ""
        last = _LAST_WORD.search(words) if sign else None
        start = last.start() if last else len(words)
        head, end = (
            _CITATION.sub(lambda m, o=owner: marks.cite(int(m[1]), o), text) for text in (words[:start], words[start:])
        )
        # A sign alone on the next line would seem to belong to the sentence after it.
        out.append(f'{head}<span class="end">{end}{sign}</span>' if end else f"{head}{sign}")
    return "".join(out)


def plain_claim(claim: Claim) -> str:
    """A sentence as it is read, without its Markdown; the cells of a row side by side."""
    from nexi.checking.links import list_shown_lines

    return (" · " if claim.text.lstrip().startswith("|") else " ").join(list_shown_lines(claim.text))


def claim_to_dict(claim: Claim) -> dict[str, Any]:
    evidence = []
    for e in claim.evidence:
        verdict = {"n": e.number, "verdict": e.verdict.value, "said": VERDICT_WORDS[e.verdict]}
        place = {"start": e.start, "end": e.end, "page": e.page, "places": [list(place) for place in e.places]}
        why = {"reason": e.reason, "other": e.other, "missing": list(e.missing), "standing": e.standing}
        evidence.append({**verdict, **place, **why, "quote": e.span[:MAX_QUOTE_CHARS]})
    view = {"text": plain_claim(claim), "verdict": claim.verdict.value, "said": verdict_words(claim), "reason": claim.reason}
    is_checked = bool(claim.needs_citation or claim.evidence)
    return {**view, "standing": claim.standing, "judge": claim.judge, "checked": is_checked, "evidence": evidence}


def source_view(source: Source, claims: Sequence[Claim]) -> dict[str, Any]:
    """A source with its site, its date and what it says to the sentences that cite it: the best, and the worst in words."""
    verdicts, said = [e.verdict for c in claims for e in c.evidence if e.number == source.number], ""
    best = next((v for v in reversed(WORST) if v in verdicts), None)
    if verdicts:
        good = Verdict.SUPPORTED if best is Verdict.SUPPORTED else Verdict.FOUND
        worst = next(v for v in WORST if v in verdicts)
        said = f"{verdicts.count(good)} of {len(verdicts)} sentence{'s' * (len(verdicts) != 1)} {VERDICT_WORDS[good]}"
        said += f", {verdicts.count(worst)} {VERDICT_WORDS[worst]}" if worst is not good else ""
    host = host_of(source.url) if is_web(source.url) else "your file"
    return {
        "n": source.number,
        "url": source.url,
        "link": (source.link or source.url) if is_web(source.url) else source.link if is_note_link(source.link) else "",
        "title": " ".join(source.title.split()),
        "host": host,
        "site": "" if source.imprint.site.lower() == host else source.imprint.site,  # a page's own word: never shown alone
        "author": source.imprint.author,
        "published": source.imprint.published[:10],
        "accessed": source.imprint.accessed[:10],
        "verdict": best.value if best else "",
        "said": said,
    }


def is_web(url: str) -> bool:
    return url.startswith(("https://", "http://"))


def _conflict_to_dict(conflict: Conflict) -> dict[str, Any]:
    readings = []
    for r in conflict.readings:
        reading = {"value": r.value, "sources": list(r.numbers), "independent": r.origins, "quote": r.quote}
        readings.append({**reading, "note": ", ".join(filter(None, (r.standing, r.day)))})
    return {"kind": conflict.kind, "subject": conflict.subject, "sentence": conflict.sentence(), "readings": readings}
