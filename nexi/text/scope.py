"""What a document and a question are about in time: the period, the version, the day, and the standing of a document.

Above are the built-in model and the check, which compare values only where their scopes agree; below, the days that a text
names. Pure: it reads titles, first lines, file names and dates, and knows no clock. The day on which a page is read is handed
in: it bounds the dates of the page, and tells what does not hold yet. The words are data, in `scope.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cmp_to_key, lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from nexi.text.dates import MAX_DATE_CHARS, find_dates
from nexi.text.sentences import MONTHS
from nexi.types import Imprint

Standing = Literal["", "draft", "superseded", "archived"]
# Whether what a document says holds on the day it is read, by its period, or only later; "announced" where it says from when.
Validity = Literal["", "now", "later", "announced"]

MIN_YEAR = 1900  # an earlier one is of another calendar, or the year of a scanned original
MAX_HEAD_LINES, MAX_HEAD_CHARS = 12, 1_000  # where a document says what it is
MAX_GAP_CHARS = 12  # between "valid from" and its day
_WORDS = {
    name: "|".join(words)
    for name, words in msgspec.json.decode(
        Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, tuple[str, ...]]
    ).items()
}
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
    rf"\b(?:{_WORDS['holds_from']}|{_WORDS['changed']})(?: (?:{_WORDS['from']}|{_WORDS['until']}))?\b", re.IGNORECASE
)
_UNTIL = re.compile(rf"\b(?:{_WORDS['until']})\b(?:(?!{_YEAR}).){{0,30}}{_YEAR}", re.IGNORECASE)
_DATED_LINE = re.compile(
    rf"(?:^|[.(]\s?)\W*(?:this (?:document|page|version|policy|guide|tariff|price list) (?:is )?)?"
    rf"(?:(?P<holds>{_WORDS['holds_from']})(?: (?:(?P<until>{_WORDS['until']})|{_WORDS['from']}))?"
    rf"|(?:{_WORDS['changed']})(?: (?:{_WORDS['from']}))?)\b",
    re.IGNORECASE,
)
# What is counted for a period: the newest figure does not replace the one before.
_PERIODIC = re.compile(rf"\b(?:{_WORDS['periodic']})\b", re.IGNORECASE)
_NO_AMOUNT = re.compile(
    r"\W*(?:who|where|when|why|can|may|must|do|does|how (?:do|does|can|is|are)|explain|describe|outline|summari[sz]e|write)\b",
    re.IGNORECASE,
)
_PAST_TENSE = re.compile(r"\b(?:was|were|did|had|war|waren|hatte|était|étaient|fue|era)\b", re.IGNORECASE)
_STANDINGS: dict[Standing, str] = {name: _WORDS[name] for name in ("superseded", "archived", "draft")}
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
_NOW, _PAST, _FUTURE = (re.compile(rf"\b(?:{_WORDS[name]})\b", re.IGNORECASE) for name in ("now", "past", "future"))
_WORD = re.compile(r"[^\W\d_]+|\d+")


class Period(Struct, frozen=True, order=True):
    """A year or a part of it: a quarter "Q1", a half "H2", a month "03", or "" for all of it."""

    year: int
    part: str = ""

    def meets(self, other: Period) -> bool:
        """Whether a value of one of them may be meant where the other is named."""
        return self.year == other.year and (self.part == other.part or not self.part or not other.part)

    @property
    def months(self) -> tuple[int, int]:
        """Its first and its last month."""
        if not self.part:
            return 1, 12
        if self.part.isdigit():
            return int(self.part), int(self.part)
        length = {"Q": 3, "H": 6}[self.part[0]]
        return length * (int(self.part[1:]) - 1) + 1, length * int(self.part[1:])

    @property
    def end(self) -> tuple[int, int]:
        """The year and the month in which it ends."""
        return self.year, self.months[1]

    def begins_after(self, day: str) -> bool:
        """Whether it lies in the future of a day."""
        return (self.year, self.months[0]) > (int(day[:4]), int(day[5:7]))

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
    validity: Validity = ""

    def is_of_family(self, other: DocumentScope) -> bool:
        """Whether two documents are versions of one thing, by their names."""
        return bool(self.names & other.names)


@lru_cache(maxsize=256)
def read_scope(title: str, url: str, head: str, day: str = "", read_on: str = "") -> DocumentScope:
    """The scope of a document by its title, address, first lines and day; without a day of reading, nothing is too late."""
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
    line_day, is_announced = ("", False) if day else _find_dated_line(lines, read_on)
    validity: Validity = "announced" if is_announced else ""
    ends_then = any(map(_UNTIL.search, own_names))  # "valid until 2027" does not begin in that year
    if periods and read_on and not is_announced and not ends_then:
        month = (int(read_on[:4]), int(read_on[5:7]))
        if all(period.begins_after(read_on) for period in periods):
            validity = "later"
        elif any((p.year, p.months[0]) <= month <= p.end for p in periods):
            validity = "now"
    return DocumentScope(frozenset(names - {""}), periods, version, amendment, day or line_day, standing, validity)


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


def _find_dated_line(lines: Iterable[str], read_on: str) -> tuple[str, bool]:
    """The day from which a document says that it holds, or on which it was changed, and whether it only holds from then on."""
    for line in lines:
        for match in _DATED_LINE.finditer(line):
            mentions = find_dates(line, "", match.end(), match.end() + MAX_DATE_CHARS, first_year=MIN_YEAR)
            if not mentions or mentions[0].start - match.end() > MAX_GAP_CHARS or mentions[0].day in _EPOCHS:
                continue
            day = mentions[0].day
            # It is none of the future where it is read; elsewhere it may already be tomorrow.
            is_later = bool(read_on) and date.fromisoformat(day) > date.fromisoformat(read_on) + timedelta(days=1)
            if not is_later or (match["holds"] and not match["until"]):
                return day, is_later
    return "", False


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


def find_words_for_now(question: str) -> list[str]:
    """The words with which a question asks for what holds now; none where it names another time."""
    return [] if find_periods(question) else _NOW.findall(question)


def asks_for_now(question: str) -> bool:
    return bool(find_words_for_now(question))


def asks_for_future(question: str) -> bool:
    """Whether a question asks for what will hold, so that what is announced is no worse than what holds now."""
    return _FUTURE.search(question) is not None


def asks_for_past(question: str) -> bool:
    """Whether a question asks for former values as well, so that old documents are no worse than new ones."""
    return _PAST.search(question) is not None


def asks_for_state(question: str) -> bool:
    """Whether a question asks what holds, without a time: a price or a limit, and no figure that is counted for a period."""
    is_about_time = asks_for_past(question) or bool(find_periods(question)) or _PAST_TENSE.search(question)
    return not is_about_time and not (_PERIODIC.search(question) and not _NO_AMOUNT.match(question))


def is_newer(one: DocumentScope, other: DocumentScope) -> bool:
    """Whether a document is newer than another that holds, by the first of period, version, day and amendment that differs."""
    if is_not_yet(one, other) or is_not_yet(other, one):
        return is_not_yet(other, one)
    if one.periods and other.periods and (ends := [max(p.end for p in s.periods) for s in (one, other)])[0] != ends[1]:
        return ends[0] > ends[1]
    if one.version and other.version and one.version != other.version:
        return one.version > other.version
    if one.day and other.day and one.day != other.day:
        return one.day > other.day
    return one.amendment > other.amendment


def is_not_yet(one: DocumentScope, other: DocumentScope) -> bool:
    """Whether a document holds only later, and the other now: "Strategy 2030" replaces "Strategy 2020" before that year."""
    if one.validity == "announced":
        return other.validity in ("", "now")
    return one.validity == "later" and other.validity == "now"


def find_others_of_family(scopes: Sequence[DocumentScope], parties: Sequence[Sequence[str]]) -> set[int]:
    """The documents of a family that lack a name of the question which another of them has: contracts with somebody else."""
    return {
        n
        for n, one in enumerate(scopes)
        for m, other in enumerate(scopes)
        if set(parties[n]) < set(parties[m]) and one.is_of_family(other)
    }


def order_versions(question: str, documents: Sequence[DocumentScope]) -> list[int]:
    """The documents in their order, of versions the one of the time asked for first, then one that holds, then the newest."""
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
    """The day of a page's text, "" where it does not say, or says what cannot be: another calendar, no day, the future."""
    # A page published before that was changed on the day it was read may say so every day, and tells nothing by it.
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
