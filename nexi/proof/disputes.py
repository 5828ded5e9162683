"""The sentence that shows where sources disagree, reading by reading.

Below `verdicts`, above `spans`. Nexi writes such a sentence itself (`Conflict.sentence`), and a reader may check it again: no
single source can say all of it, so each one is asked only for the reading it is cited for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nexi.proof.facts import read
from nexi.proof.parts import Part
from nexi.proof.sentences import MARKERS, numbers_of
from nexi.proof.snapshots import Snapshot
from nexi.proof.spans import Finding, find, is_quoted
from nexi.types import Verdict

_DISPUTE = re.compile(r"\W*Sources (?:disagree|differ)(?: on (?P<subject>[^:]+))?: (?P<told>.+)", re.S)
_COUNT = re.compile(r"\(\d+ independent\)")
_GROUP = re.compile(rf"(?:(?:{MARKERS.pattern})[ \t]*)+")


def readings_of(text: str) -> tuple[str, list[Part]]:
    """What is disagreed on, and each value with its sources; nothing for any other sentence."""
    dispute = _DISPUTE.match(text)
    if not dispute:
        return "", []
    told = _COUNT.sub("", dispute["told"])
    parts: list[Part] = []
    start = 0
    for group in _GROUP.finditer(told):
        value = re.sub(r"^(?:and|,)\s+", "", told[start : group.start()].strip(" ,;.")).strip()
        parts += [Part(value, numbers_of(group[0]))] if value else []
        start = group.end()
    subject = " ".join((dispute["subject"] or "").strip('“”" ').replace("…", " ").split())
    return subject, parts if len(parts) > 1 else []


def given_by(subject: str, part: Part, pages: Mapping[int, Snapshot | None]) -> dict[int, Finding]:
    """The sources of a reading that do give it."""
    found: dict[int, Finding] = {}
    for number in part.numbers:
        page = pages.get(number)
        finding = _said(subject, part.text, page) if page is not None else None
        if finding is not None:
            found[number] = finding
    return found


def _said(subject: str, value: str, page: Snapshot) -> Finding | None:
    bare = value.strip('“”" ').removesuffix("…")
    finding = find(read(f"{subject} {bare}"), page)
    if not subject:
        return finding if finding.first >= 0 and is_quoted(bare, page) else None
    if finding.verdict not in (Verdict.SUPPORTED, Verdict.PARTLY) or any(lack in bare for lack in finding.missing):
        return None
    return finding if is_quoted(bare, page) or finding.verdict is Verdict.SUPPORTED else None
