"""The verdict on each sentence of an answer.

Above `sentences`, `spans` and `parts`, below whoever has the stored texts. A sentence is supported when its sources together
say all of it; each source has its own verdict beside that. What cannot be compared is a stated gap, never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from nexi.proof.disputes import given_by, readings_of
from nexi.proof.facts import read
from nexi.proof.parts import Part, segments, splits
from nexi.proof.sentences import MARKERS, Sentence, needs_citation, numbers_of, read_answer, without_markers
from nexi.proof.snapshots import Snapshot
from nexi.proof.spans import CLOSE, READ, READ_OF_MANY, Finding, Similarity, find
from nexi.proof.terms import WORD
from nexi.types import Claim, Evidence, Proof, Verdict

Judge = Callable[[Claim, Evidence], Verdict]
MAX_CITED = 24  # sources of one sentence that are compared; a sentence with more says nothing by them
MANY = 6  # sources of one sentence from which on each is read less closely
_TELLING = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.PARTLY, Verdict.UNCHECKED, Verdict.NOT_FOUND)
_ORDER = (Verdict.SUPPORTED, Verdict.PARTLY, Verdict.UNCHECKED, Verdict.NOT_FOUND, Verdict.CONTRADICTED)


def check_answer(
    text: str,
    snapshots: Mapping[int, Snapshot | None],
    similarity: Similarity | None = None,
    judge: Judge | None = None,
) -> Proof:
    """Every sentence of an answer, in order; `start` and `end` of a claim are offsets into `text`."""
    claims = []
    for index, sentence in enumerate(read_answer(text)):
        cited = {number: snapshots.get(number) for number in sentence.numbers}
        claim = _check(sentence, cited, similarity, index)
        claims.append(_judged(claim, judge) if judge else claim)
    return Proof(tuple(claims))


def check_claim(
    text: str,
    cited: Mapping[int, Snapshot | None],
    similarity: Similarity | None = None,
    *,
    index: int = 0,
    start: int = 0,
) -> Claim:
    """One sentence against the sources it cites; a source that is None has no stored text, which is said."""
    claims, reason = needs_citation(text)
    sentence = Sentence(text, start, start + len(text), without_markers(text), numbers_of(text), claims, reason)
    return _check(sentence, cited, similarity, index)


def _check(sentence: Sentence, cited: Mapping[int, Snapshot | None], similarity: Similarity | None, index: int) -> Claim:
    claim = Claim(index, sentence.text, sentence.start, sentence.end, Verdict.NOT_FOUND, sentence.claims, sentence.reason)
    if not cited or not WORD.search(sentence.plain):
        return replace(claim, reason=sentence.reason or "needs a source and cites none")
    pages = dict(list(cited.items())[:MAX_CITED])
    if told := _told(sentence, pages):
        return replace(claim, verdict=Verdict.SUPPORTED, reason="each source gives the reading it is cited for", evidence=told)
    if placed := _placed(sentence, pages, similarity):
        blank = tuple(_evidence(n, page, Finding(Verdict.NOT_FOUND, "nothing here rests on it")) for n, page in cited.items())
        return replace(claim, verdict=placed[0], reason=placed[1], evidence=_with_parts(blank, pages, placed[2]))
    findings = _found(sentence.plain, pages, similarity)
    evidence = tuple(_evidence(number, page, findings.get(number)) for number, page in cited.items())
    best = min(evidence, key=lambda e: (_TELLING.index(e.verdict), -e.fit, -e.presence))
    if best.verdict is not Verdict.SUPPORTED and len(sentence.plain) > 0:
        joint = _jointly(sentence, pages, findings, similarity)
        if joint is not None:
            return replace(claim, verdict=joint[0], reason=joint[1], evidence=_with_parts(evidence, pages, joint[2]))
    return replace(claim, verdict=best.verdict, reason=best.reason, evidence=evidence)


def _found(text: str, pages: Mapping[int, Snapshot | None], similarity: Similarity | None) -> dict[int, Finding]:
    reading = read(text)
    most = READ if len(pages) <= MANY else READ_OF_MANY
    return {number: find(reading, page, similarity, most) for number, page in pages.items() if page is not None}


def _evidence(number: int, page: Snapshot | None, finding: Finding | None) -> Evidence:
    if page is None:
        return Evidence(number, reason="no stored text of this source")
    if finding is None:
        return Evidence(number, page.url, page.digest, reason="cites more sources than one sentence is compared with")
    if not page.text.strip():
        return Evidence(number, page.url, page.digest, reason="the stored text of this source is empty")
    made = Evidence(
        number, page.url, page.digest, finding.verdict, round(finding.presence, 3), round(finding.fit, 3),
        reason=finding.reason, missing=finding.missing, other=finding.other,
    )  # fmt: skip
    if finding.first < 0 or finding.verdict is Verdict.NOT_FOUND:
        return made
    start, end = page.stored_between(finding.first, finding.last)
    return replace(made, start=start, end=end, span=page.text[start:end], page=page.page_at(start))


def _told(sentence: Sentence, pages: Mapping[int, Snapshot | None]) -> tuple[Evidence, ...]:
    """What the sources say in a sentence about their disagreement; nothing where one of them does not."""
    subject, parts = readings_of(sentence.text)
    found: dict[int, Finding] = {}
    for part in parts:
        found |= (given := given_by(subject, part, pages))
        if len(given) < len(part.numbers):
            return ()
    shown = (_evidence(number, pages[number], finding) for number, finding in found.items())
    return tuple(replace(e, verdict=Verdict.SUPPORTED, fit=1.0, reason="gives this reading", missing=()) for e in shown)


Joint = tuple[Verdict, str, dict[int, list[tuple[Part, Finding]]]]


def _placed(sentence: Sentence, pages: Mapping[int, Snapshot | None], similarity: Similarity | None) -> Joint | None:
    """A sentence with citations inside it: each clause is said by the sources that stand behind it."""
    parts = segments(sentence.text, MARKERS)
    said: dict[int, list[tuple[Part, Finding]]] = {}
    if len({part.numbers for part in parts if part.numbers}) < 2:
        return None
    if not all(_say(part, pages, similarity, said) for part in parts):
        return None
    return Verdict.SUPPORTED, f"said part by part by {' and '.join(f'[{n}]' for n in said)}", said


def _jointly(
    sentence: Sentence, pages: Mapping[int, Snapshot | None], findings: Mapping[int, Finding], similarity: Similarity | None
) -> Joint | None:
    """The sentence part by part: supported when each part is, by a source that it cites."""
    if not any(f.presence > 0 for f in findings.values()) or any(_is_said_otherwise(f) for f in findings.values()):
        return None
    placed = segments(sentence.text, MARKERS)
    for parts in (placed, *splits(sentence.plain)):
        said: dict[int, list[tuple[Part, Finding]]] = {}
        if len(parts) < 2 or not all(_say(part, pages, similarity, said) for part in parts):
            continue
        if parts is not placed and len({p.numbers for p in placed}) > 1:
            return Verdict.PARTLY, "a source is cited at a part of the sentence that another one says", said
        names = " and ".join(f"[{n}]" for n in said)
        return (
            Verdict.SUPPORTED,
            f"said part by part by {names}" if len(said) > 1 else "said in several places of the source",
            said,
        )
    return None


def _is_said_otherwise(finding: Finding) -> bool:
    """One sentence of a source is nearly this one, and clashes with it: its parts are not looked for elsewhere."""
    return finding.verdict is Verdict.CONTRADICTED and finding.follows >= CLOSE


def _say(
    part: Part, pages: Mapping[int, Snapshot | None], similarity: Similarity | None, said: dict[int, list[tuple[Part, Finding]]]
) -> bool:
    reading = read(part.text)
    for number in part.numbers or pages:
        page = pages.get(number)
        finding = find(reading, page, similarity) if page is not None else None
        if finding is not None and finding.verdict is Verdict.SUPPORTED:
            said.setdefault(number, []).append((part, finding))
            return True
    return False


def _with_parts(
    evidence: tuple[Evidence, ...], pages: Mapping[int, Snapshot | None], said: dict[int, list[tuple[Part, Finding]]]
) -> tuple[Evidence, ...]:
    """A source that says parts of the sentence shows where it says the longest of them."""
    out = []
    for e in evidence:
        page = pages.get(e.number)
        if e.number in said and page is not None:
            part, finding = max(said[e.number], key=lambda pair: len(pair[0].text))
            whole = len(said) == 1
            made = _evidence(e.number, page, finding)
            verdict = Verdict.SUPPORTED if whole else Verdict.PARTLY
            e = replace(made, verdict=verdict, reason=made.reason if whole else f"says its part: {part.text}")
        out.append(e)
    return tuple(out)


def lowered(claim: Claim, number: int, verdict: Verdict, reason: str = "") -> Claim:
    """The claim after a judge has spoken on one of its sources; a higher verdict than before changes nothing."""
    evidence = tuple(
        replace(e, verdict=verdict, fit=0.0, reason=reason or "a judge does not find it said there")
        if e.number == number and _ORDER.index(verdict) > _ORDER.index(e.verdict)
        else e
        for e in claim.evidence
    )
    if evidence == claim.evidence:
        return claim
    best = min((e.verdict for e in evidence), key=_ORDER.index)
    lower = max(claim.verdict, best, key=_ORDER.index)
    return replace(claim, evidence=evidence, verdict=lower, reason=reason or claim.reason)


def _judged(claim: Claim, judge: Judge) -> Claim:
    for evidence in claim.evidence:
        claim = lowered(claim, evidence.number, judge(claim, evidence))
    return claim
