"""What a document and a question are about in time: the period, the version, the day, and the standing of a document.

Above are the built-in model and the check, which compare values only where their scopes agree; below, names of months. Pure: it
reads titles, first lines, file names and dates, and knows no clock. The day on which a page was read bounds its dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cmp_to_key, lru_cache
from itertools import islice
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from nexi.text.sentences import MONTHS
from nexi.types import Imprint

__all__ = [
    "DocumentScope",
    "Period",
    "Standing",
    "asks_for_now",
    "asks_for_past",
    "asks_for_state",
    "find_periods",
    "is_newer",
    "name_day",
    "order_versions",
    "plausible_day",
    "read_scope",
]

Standing = Literal["", "draft", "superseded", "archived"]

MIN_YEAR = 1900  # an earlier one is of another calendar, or the year of a scanned original
MAX_HEAD_LINES, MAX_HEAD_CHARS = 12, 1_000  # where a document says what it is
_EPOCHS = frozenset(("1970-01-01", "1980-01-01", "1900-01-01", "1601-01-01", "1904-01-01"))  # what programs write for no date
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else name for name in MONTHS)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_YEAR = r"(?:19|20|21)\d\d(?!\d)"
_GAP = r"[\s,_./-]{0,3}"
_PERIODS = re.compile(
    rf"(?<![a-z\d])(?:"
    rf"(?:q(?P<q>[1-4])|(?P<nth>{'|'.join(_ORDINALS)}) quarter)(?:{_GAP}of)?(?:{_GAP}(?:fiscal|fy)(?: year)?)?{_GAP}"
    rf"(?:(?P<qy>{_YEAR})|['’]?(?P<qs>\d\d)(?![\d%]))"
    rf"|(?P<yq>{_YEAR}){_GAP}q(?P<q2>[1-4])(?!\d)"
    rf"|h(?P<h>[12]){_GAP}(?P<hy>{_YEAR})|(?P<yh>{_YEAR}){_GAP}h(?P<h2>[12])(?!\d)"
    rf"|(?:fiscal(?: year)?|fy){_GAP}(?:(?P<fy>{_YEAR})|['’]?(?P<fs>\d\d)(?![\d%]))"
    rf"|(?:(?:3[01]|[12]\d|0?[1-9])\.? )?(?P<mon>{_MONTH})\.?(?: (?:3[01]|[12]\d|0?[1-9]),)?(?: of)?{_GAP}(?P<my>{_YEAR})"
    rf"|(?P<dy>{_YEAR})[-_./]?(?P<dm>0[1-9]|1[0-2])(?:[-_./]?(?:0[1-9]|[12]\d|3[01]))?(?!\d)"
    rf"|(?P<y>{_YEAR}))",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?<![a-z\d])(?:v|ver|version|rev|revision|edition)[\s._-]{0,2}(\d+(?:\.\d+){0,3})(?![\d%])", re.IGNORECASE
)
_REVISION = re.compile(r"(?<![a-z\d])(?:rev|revision|issue|version)[\s._-]{1,2}([a-z])(?![a-z\d])", re.IGNORECASE)  # "Rev B"
_AMENDMENT = re.compile(
    r"\b(?:amendment|addendum|erratum|corrigendum|correction|supplement)s?(?: (?:no\.? ?)?(\d+))? (?:to|of|for) (?:the )?",
    re.IGNORECASE,
)
_REPLY = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg)\s*:)+", re.IGNORECASE)
_VALIDITY = re.compile(
    r"\b(?:valid|effective|in force|applicable|dated?|as of|(?:last )?(?:updated|revised))"
    r"(?: (?:as of|from|until|till|to|on|since))?\b",
    re.IGNORECASE,
)
_DATED_LINE = re.compile(
    rf"(?:^|[.(]\s?)\W*(?:this (?:document|page|version|policy|guide) is )?(?:{_VALIDITY.pattern}|version of|stand|gültig ab)"
    rf"\W{{1,4}}(?:(?P<d>3[01]|[12]\d|0?[1-9])(?:\.|st|nd|rd|th)? (?P<mon>{_MONTH})\.?,? (?P<y>{_YEAR})"
    rf"|(?P<mon2>{_MONTH})\.? (?P<d2>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?,? (?P<y2>{_YEAR})"
    rf"|(?P<y3>{_YEAR})-(?P<m3>0[1-9]|1[0-2])-(?P<d3>0[1-9]|[12]\d|3[01]))",
    re.IGNORECASE | re.MULTILINE,
)
# What is counted for a period: the newest figure does not replace the one before.
_PERIODIC = re.compile(
    r"\b(?:revenues?|sales|turnover|profits?|loss(?:es)?|income|earnings|ebitda?|margins?|growth|spending|expenses|expenditures?|"
    r"emissions|production|output|shipments|deliveries|visitors|orders|results?|cash flow|dividends?|"
    r"umsatz|gewinn|absatz|chiffre d['’]affaires|bénéfices?|ventes|ingresos|ventas|beneficios?)\b",
    re.IGNORECASE,
)
_NO_AMOUNT = re.compile(r"\W*(?:who|where|when|why|can|may|must|do|does|how (?:do|does|can|is|are))\b", re.IGNORECASE)
_PAST_TENSE = re.compile(r"\b(?:was|were|did|had|war|waren|hatte|était|étaient|fue|era)\b", re.IGNORECASE)
_STANDINGS: dict[Standing, str] = {
    "superseded": r"superseded|obsolete|outdated|withdrawn|deprecated|replaced|veraltet|ersetzt|obsolète|remplacé|obsoleto",
    "archived": r"archived?|archiv|archiviert|archivé|archivado",
    "draft": r"draft|entwurf|brouillon|borrador|preliminary|proposal|wip",
}
_STANDING_WORD = re.compile(
    "|".join(rf"(?P<{name}>(?<![a-z])(?:{words})(?![a-z]))" for name, words in _STANDINGS.items()), re.IGNORECASE
)
# In a title or a line of prose the word alone is not enough: "NFL Draft" and "the Internet Archive" are names.
_MARKED = re.compile(
    r"[\[(]\s*(?P<a>{0})\b[^\])]{{0,40}}[\])]|^\W*(?P<b>{0})\b\s*(?:[:–—|-]|$|by\b|on\b|version\b|copy\b)"
    r"|[:–—|-]\s*(?P<c>{0})\s*$|\b(?:status|state|standing)\W{{1,4}}(?P<d>{0})\b"
    r"|\bthis (?:document|page|version|file|policy|guide|text|note|report|plan|price list)\b[^.\n]{{0,40}}"
    r"\b(?:is|was|has been|is now)\b (?:an? )?(?P<e>{0})\b".format("|".join(_STANDINGS.values())),
    re.IGNORECASE | re.MULTILINE,
)
_SHOUTED = re.compile(r"\b(?:SUPERSEDED|OBSOLETE|DEPRECATED|WITHDRAWN|ARCHIVED|DRAFT|OUTDATED)\b")
_FOLDERS = re.compile(r"(?:^|[\s_./(-])(?:old|archiv\w*|superseded|obsolete|deprecated|drafts?)(?:$|[\s_./)-])", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:currently|latest|newest|most recent|nowadays|today(?:['’]s)?|at present|at the moment|right now|up[- ]to[- ]date|"
    r"these days|as of now|in force|present[- ]day|now(?! (?:known|called|named|that))|"
    r"current(?= [a-z\d])(?! (?:in|of|is|through|flows?|and|to|from|at)\b)|"
    r"aktuell\w*|derzeit|heute|jetzt|neueste\w*|actuel\w*|aujourd['’]hui|maintenant|actual(?:es|mente)?|ahora|hoy)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:previous(?:ly)?|former(?:ly)?|earlier|older?|original(?:ly)?|histor\w+|used to|over time|trend|chang\w+|differ\w*|"
    r"compar\w+|evolv\w+|grow\w*\b(?!-)|grew|since|between|superseded|obsolete|archived?|drafts?|proposal|deprecated|replaced|versus|vs)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+|\d+")


class Period(Struct, frozen=True, order=True):
    """A year or a part of it: a quarter "Q1", a half "H2", a month "03", or "" for all of it."""

    year: int
    part: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.part

    def meets(self, other: Period) -> bool:
        """Whether a value of one of them may be meant where the other is named."""
        return self.year == other.year and (self.part == other.part or self.is_whole or other.is_whole)

    @property
    def end(self) -> tuple[int, int]:
        """The year and the month in which it ends."""
        months = {"Q": 3, "H": 6}
        head, tail = self.part[:1], self.part[1:]
        return self.year, 12 if not self.part else months[head] * int(tail) if head in months else int(self.part)

    def __str__(self) -> str:
        if self.part.isdigit():
            return f"{MONTHS[int(self.part) - 1].capitalize()} {self.year}"
        return f"{self.part} {self.year}".strip()


class DocumentScope(Struct, frozen=True):
    """What a document says of itself. `names` are its title, first heading and file name without time, version and standing."""

    names: frozenset[str] = frozenset()
    periods: tuple[Period, ...] = ()
    version: tuple[int, ...] = ()
    amendment: int = 0  # of another document: "Amendment 2 to the lease"
    day: str = ""
    standing: Standing = ""

    def is_of_family(self, other: DocumentScope) -> bool:
        """Whether two documents are versions of one thing, by their names."""
        return bool(self.names & other.names)


@lru_cache(maxsize=256)
def read_scope(title: str, url: str, head: str, day: str = "") -> DocumentScope:
    """The scope of a document by its title, address, first lines and day."""
    path = unquote(url).removeprefix("file://") if url.startswith("file:") else ""
    file = path.rpartition("/")[2]
    lines = [line.strip() for line in islice(head[:MAX_HEAD_CHARS].splitlines(), MAX_HEAD_LINES) if line.strip()]
    heading = next((line.lstrip("# ") for line in lines if line.startswith("#")), "")
    own_names = [name for name in (title if title != file else "", heading, file.partition(".")[0]) if name]
    periods = next((name_periods for name in own_names if (name_periods := find_periods(name))), ())
    version = next((number for name in own_names if (number := _find_version(name))), ())
    if not (periods or version):  # "2023/policy.md" and "v2/policy.md"
        folder = next((f for f in path.split("/")[-2:-1] if not re.sub(r"[\W_]", "", _strip_times(f))), "")
        periods, version = find_periods(folder), _find_version(folder)
    amendment = next((int(m[1] or 1) for name in own_names if (m := _AMENDMENT.search(name))), 0)
    names = set[str]()
    for text in own_names:
        bare = _STANDING_WORD.sub(" ", _strip_times(_AMENDMENT.sub(" ", _REPLY.sub("", text.lower()))))
        words = _WORD.findall(re.sub(r"\.[a-z]{2,5}$", "", bare))
        names.add(" ".join(word for word in words if word not in ("final", "copy", "old", "new", "the")))
    standing = _find_standing(path, (title, *lines))
    return DocumentScope(frozenset(names - {""}), periods, version, amendment, day or _find_dated_line(lines), standing)


def _find_version(name: str) -> tuple[int, ...]:
    """The version in a name; a letter counts as its place in the alphabet."""
    if match := _VERSION.search(name):
        return tuple(map(int, match[1].split(".")))
    return (ord(match[1].lower()) - ord("a") + 1,) if (match := _REVISION.search(name)) else ()


def _strip_times(name: str) -> str:
    """A name without version, period and the words around them."""
    for pattern in (_VERSION, _REVISION, _PERIODS, _VALIDITY):
        name = pattern.sub(" ", name)
    return name


def _find_dated_line(lines: Iterable[str]) -> str:
    """The day from which a document says that it holds, or on which it says that it was changed; "" where it says none."""
    for match in filter(None, map(_DATED_LINE.search, lines)):
        group = match.groupdict()
        name = group["mon"] or group["mon2"]
        month = [month[:3] for month in MONTHS].index(name[:3].lower()) + 1 if name else int(group["m3"])
        day = date(int(group["y"] or group["y2"] or group["y3"]), month, 1) + timedelta(
            days=int(group["d"] or group["d2"] or group["d3"]) - 1
        )
        return day.isoformat()
    return ""


def find_periods(text: str) -> tuple[Period, ...]:
    """The periods that a text names, in order, each once."""
    periods: dict[Period, None] = {}
    for match in _PERIODS.finditer(text):
        group = match.groupdict()
        year = next((int(group[key]) for key in ("qy", "yq", "hy", "yh", "fy", "my", "dy", "y") if group[key]), 0)
        year = year or 2000 + int(group["qs"] or group["fs"] or 0)
        if quarter := group["q"] or group["q2"] or (group["nth"] and _ORDINALS[group["nth"].lower()]):
            part = f"Q{quarter}"
        elif half := group["h"] or group["h2"]:
            part = f"H{half}"
        elif group["mon"]:
            part = f"{[name[:3] for name in MONTHS].index(group['mon'][:3].lower()) + 1:02}"
        else:
            part = group["dm"] or ""
        periods[Period(year, part)] = None
    return tuple(periods)


def _find_standing(path: str, lines: Iterable[str]) -> Standing:
    """What the first lines of a document say of it, else its file name, else its folder."""
    marks: list[str] = []
    for line in lines:
        label = _MARKED.search(line)
        marks += [next(word for word in label.groups() if word)] if label else []
        marks += _SHOUTED.findall(line)
    folders, _, file = path.rpartition("/")
    name = file.partition(".")[0]
    in_name = (_STANDING_WORD.search(name), _FOLDERS.search(name), *map(_FOLDERS.fullmatch, folders.split("/")[-2:]))
    marks += [match[0] for match in in_name if match]
    for mark in marks:
        if match := _STANDING_WORD.search(mark):
            return next(name for name in _STANDINGS if match[name])
        return "archived"
    return ""


def asks_for_now(question: str) -> bool:
    """Whether a question asks for what holds now, and names no other time."""
    return _NOW.search(question) is not None and not find_periods(question)


def asks_for_past(question: str) -> bool:
    """Whether a question asks for former values as well, so that old documents are no worse than new ones."""
    return _PAST.search(question) is not None


def asks_for_state(question: str) -> bool:
    """Whether a question asks what holds, without a time: a price or a limit, and no figure that is counted for a period."""
    is_about_time = asks_for_past(question) or bool(find_periods(question)) or _PAST_TENSE.search(question)
    return not is_about_time and not (_PERIODIC.search(question) and not _NO_AMOUNT.match(question))


def is_newer(one: DocumentScope, other: DocumentScope) -> bool:
    """Whether a document is newer than another, by what first tells them apart: period, version, day, amendment."""
    if one.periods and other.periods and (ends := [max(p.end for p in s.periods) for s in (one, other)])[0] != ends[1]:
        return ends[0] > ends[1]
    if one.version and other.version and one.version != other.version:
        return one.version > other.version
    if one.day and other.day and one.day != other.day:
        return one.day > other.day
    return one.amendment > other.amendment


def order_versions(question: str, documents: Sequence[DocumentScope]) -> list[int]:
    """The documents in their order, but of several versions of one thing the one to read first in the first one's place.

    That is one of the period asked for, then one that still holds, then the newest.
    """
    order = list(range(len(documents)))
    if asks_for_past(question):
        return order
    periods = find_periods(question)

    def compare(one: int, other: int) -> int:
        a, b = documents[one], documents[other]
        ranks = [(not any(one.meets(other) for one in d.periods for other in periods), bool(d.standing)) for d in (a, b)]
        if ranks[0] != ranks[1]:
            return -1 if ranks[0] < ranks[1] else 1
        return -1 if is_newer(a, b) else int(is_newer(b, a))

    numbers: set[int] = set()
    for first in range(len(documents)):
        family = [n for n in range(first, len(documents)) if n not in numbers and documents[n].is_of_family(documents[first])]
        if first not in numbers and len(family) > 1:
            for place, number in zip(family, sorted(family, key=cmp_to_key(compare)), strict=True):
                order[place] = number
            numbers.update(family)
    return order


def plausible_day(imprint: Imprint) -> str:
    """The day of a page's text, "" where it does not say, or says what cannot be: another calendar, no day, the future.

    A page that was changed on the day it was read, but published before, may say so every day, and tells nothing by it.
    """
    accessed, published, updated = (_read_day(moment) for moment in (imprint.accessed, imprint.published, imprint.updated))
    limit = accessed + timedelta(days=1) if accessed else None
    if published and updated == accessed != published:
        updated = None
    days = [day for day in (published, updated) if day and day.year >= MIN_YEAR and (limit is None or day <= limit)]
    best = max(days).isoformat() if days else ""
    return "" if best in _EPOCHS else best


def _read_day(moment: str) -> date | None:
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None


def name_day(day: str) -> str:
    """A day as people write it: 5 March 2024."""
    moment = date.fromisoformat(day)
    return f"{moment.day} {MONTHS[moment.month - 1].capitalize()} {moment.year}"
