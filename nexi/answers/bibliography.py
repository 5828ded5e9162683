"""Sources as references that other programs read: RIS, BibTeX and CSL-JSON.

Pure: sources in, text out. What a page does not say of itself is left out, never guessed; names are turned round only where
they look like a person's. Each form escapes in its own way, so nothing a page says can begin a field of its own.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nexi.text.sentences import MONTHS
from nexi.text.words import read_word_sets
from nexi.types import Paper, Source
from nexi.urls import host_of

__all__ = ["FORMS"]

MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(MONTHS, 1)}
MAX_AUTHORS = 50
_WORDS = read_word_sets(__file__)
PARTICLES = _WORDS["particles"]  # of a family name
ORGANISATION = _WORDS["organisation"]  # words that name no person

_ISO = re.compile(r"(?P<year>\d{4})(?:[-/.]?(?P<month>0[1-9]|1[0-2])(?:[-/.]?(?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)")
_DAY_FIRST = re.compile(r"\b(?P<day>\d{1,2})(?:st|nd|rd|th)?\.?\s+(?P<month>[A-Za-z]{3,9})\.?,?\s+(?P<year>\d{4})\b")
_MONTH_FIRST = re.compile(r"\b(?P<month>[A-Za-z]{3,9})\.?\s+(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{4})\b")
_JOINS = re.compile(r"\s*;\s*|\s+(?:and|&|und|et)\s+", re.IGNORECASE)
_SITE_TAIL = re.compile(r"\s+[-–—|·•:]\s+")
_BY = re.compile(r"^(?:by|von|par|por)\s+", re.IGNORECASE)
_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{char: f"\\{char}" for char in "$&#%_"},
    }
)
_URL_IN_TEX = str.maketrans({"{": "%7B", "}": "%7D", "\\": "%5C", " ": "%20"})


class Name(Struct, frozen=True):
    """An author: a family name and the others, or a name that is not turned round."""

    family: str
    given: str = ""


class PublicationDate(Struct, frozen=True):
    """As much of a date as is known."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def parts(self) -> tuple[int, ...]:
        return tuple(part for part in (self.year, self.month, self.day) if part)

    def iso(self) -> str:
        return "-".join(f"{part:02d}" if i else f"{part:04d}" for i, part in enumerate(self.parts))


class _Reference(Struct, frozen=True):
    number: int
    url: str
    title: str
    authors: tuple[Name, ...] = ()
    issued: PublicationDate | None = None
    accessed: PublicationDate | None = None
    site: str = ""
    language: str = ""
    is_document: bool = False
    doi: str = ""
    venue: str = ""
    licence: str = ""
    standing: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""

    @property
    def page_range(self) -> tuple[str, str]:
        """The first page and the last; the last is empty where there is one."""
        first, _, last = re.sub(r"\s*[-–—]+\s*", "-", self.pages).partition("-")
        return first, last


def to_ris(sources: Sequence[Source], accessed: str = "") -> str:
    """RIS: one tag a line, a record ends with ER."""
    records = []
    for reference in (_build_reference(source, accessed) for source in sources):
        lines = [("TY", "JOUR" if reference.venue else "ELEC"), ("ID", str(reference.number)), ("TI", reference.title)]
        lines += [("AU", f"{n.family}, {n.given}" if n.given else n.family) for n in reference.authors]
        if reference.issued:
            lines += [("PY", f"{reference.issued.year:04d}"), ("DA", _slash_date(reference.issued))]
        lines += [("T2", reference.site), ("PB", reference.site), ("LA", reference.language), ("UR", reference.url)]
        lines += [("JO", reference.venue), ("DO", reference.doi), ("C1", reference.licence), ("N1", reference.standing)]
        lines += [("VL", reference.volume), ("IS", reference.issue), *zip(("SP", "EP"), reference.page_range, strict=True)]
        lines += [("Y2", _slash_date(reference.accessed))] if reference.accessed else []
        records.append("".join(f"{tag}  - {value}\n" for tag, value in lines if value) + "ER  - \n\n")
    return "".join(records)


def _slash_date(date: PublicationDate) -> str:
    """RIS writes a date with three slashes, whatever of it is missing."""
    return f"{date.year:04d}/{date.month:02d}/{date.day:02d}/".replace("/00", "/")


def to_bibtex(sources: Sequence[Source], accessed: str = "") -> str:
    """BibTeX, with the entry type that biblatex, JabRef, Zotero and pandoc have for web pages."""
    references = [_build_reference(source, accessed) for source in sources]
    entries = []
    for key, reference in zip(_reference_keys(references), references, strict=True):
        names = [(name.family.translate(_TEX), name.given.translate(_TEX)) for name in reference.authors]
        authors = [f"{family}, {given}" if given else "{" + family + "}" for family, given in names]
        fields = [
            ("title", "{" + reference.title.translate(_TEX) + "}"),  # twice in braces: styles must not change its capitals
            ("author", " and ".join(authors)),
            ("journal", reference.venue.translate(_TEX)),
            ("volume", reference.volume.translate(_TEX)),
            ("number", reference.issue.translate(_TEX)),
            ("pages", "--".join(part for part in reference.page_range if part).translate(_TEX)),
            ("doi", reference.doi.translate(_URL_IN_TEX)),
            ("note", reference.standing.translate(_TEX)),
            ("organization", reference.site.translate(_TEX)),
            ("publisher", reference.site.translate(_TEX)),
            ("date", reference.issued.iso() if reference.issued else ""),
            ("year", f"{reference.issued.year:04d}" if reference.issued else ""),
            ("url", reference.url.translate(_URL_IN_TEX)),
            ("urldate", reference.accessed.iso() if reference.accessed else ""),
            ("language", reference.language.translate(_TEX)),
        ]
        body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields if value)
        entries.append(f"@{'article' if reference.venue else 'online'}{{{key},\n{body}\n}}\n")
    return "\n".join(entries)


def to_csl(sources: Sequence[Source], accessed: str = "") -> str:
    """CSL-JSON, as pandoc and citation processors read it."""
    references = [_build_reference(source, accessed) for source in sources]
    items = []
    for key, reference in zip(_reference_keys(references), references, strict=True):
        item: dict[str, Any] = {
            "id": key,
            "type": "article-journal" if reference.venue else "document" if reference.is_document else "webpage",
            "title": reference.title,
            "author": [{"family": n.family, "given": n.given} if n.given else {"literal": n.family} for n in reference.authors],
            "issued": _date_parts(reference.issued),
            "accessed": _date_parts(reference.accessed),
            "container-title": reference.venue or reference.site,
            "volume": reference.volume,
            "issue": reference.issue,
            "page": "-".join(part for part in reference.page_range if part),
            "DOI": reference.doi,
            "license": reference.licence,
            "note": reference.standing,
            "publisher": reference.site,
            "language": reference.language,
            "URL": reference.url,
        }
        items.append({name: value for name, value in item.items() if value})
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


FORMS: Mapping[str, Callable[[Sequence[Source], str], str]] = {"ris": to_ris, "bibtex": to_bibtex, "csl": to_csl}


def read_date(text: str) -> PublicationDate | None:
    """The first date of a text in one of the spellings that pages use; None for what is none."""
    text = text.strip()[:100]
    match = _ISO.match(text) or _DAY_FIRST.search(text) or _MONTH_FIRST.search(text)
    if not match or not int(match["year"]):
        return None
    name, day = match["month"] or "0", int(match["day"] or 0)
    month = int(name) if name.isdecimal() else MONTH_NUMBERS.get(name[:3].lower(), 0)
    return PublicationDate(int(match["year"]), month, day if month and 1 <= day <= 31 else 0)


def read_names(text: str) -> tuple[Name, ...]:
    """The authors that a page names in one string."""
    text = _BY.sub("", _one_line(text))
    pieces = [piece for piece in _JOINS.split(text) if piece]
    if len(pieces) == 1 and text.count(",") and all(len(part.split()) > 1 for part in text.split(",")):
        pieces = text.split(",")
    elif len(pieces) == 2 and "," in pieces[0] and ";" not in text and all(len(p.split()) > 1 for p in pieces[0].split(",")):
        pieces = [*pieces[0].split(","), pieces[1]]
    return tuple(_parse_name(piece.strip(" ,")) for piece in pieces[:MAX_AUTHORS] if piece.strip(" ,"))


def _build_reference(source: Source, accessed: str) -> _Reference:
    """What is known of a source; `accessed` is for one that does not say when it was read."""
    about = source.imprint
    paper = about.paper or Paper()
    names = tuple(_parse_name(_one_line(name)) for name in paper.authors[:MAX_AUTHORS]) or read_names(about.author)
    title, site = _split_title(_one_line(source.title), _one_line(about.site), source.url)
    return _Reference(
        number=source.number,
        url=_one_line(source.url),
        title=title or _one_line(source.url),
        authors=tuple(Name(site) if f"{n.given} {n.family}" == site else n for n in names),
        issued=read_date(about.published) or read_date(paper.year),
        accessed=read_date(about.accessed or accessed),
        site=site,
        language=_one_line(about.language),
        is_document=about.content_type == "application/pdf",
        standing=" ".join(part for part in (paper.mark.capitalize(), _one_line(paper.notice)) if part),
        **{name: _one_line(getattr(paper, name)) for name in ("doi", "venue", "licence", "volume", "issue", "pages")},
    )


def _split_title(title: str, site: str, url: str) -> tuple[str, str]:
    """The title without the name of its site, and that name: what the page says it is, or what its host says too."""
    head, _, tail = (part.strip() for part in _SITE_TAIL.sub("\0", title).rpartition("\0"))
    host = host_of(url).removeprefix("www.") if url.startswith(("https://", "http://")) else ""
    if not head or not _letters_of(tail):
        return title, site
    if site and _letters_of(tail) == _letters_of(site):
        return head, site
    names = {_letters_of(host), _letters_of(host.rpartition(".")[0]), *map(_letters_of, host.split(".")[:-1])}
    return (head, site or tail) if _letters_of(tail) in names else (title, site)


def _letters_of(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _parse_name(text: str) -> Name:
    if text.count(",") == 1:
        family, first_names = (part.strip() for part in text.split(","))
        return Name(family, first_names) if family and first_names else Name(text.strip(" ,"))
    words = text.split()
    if not 2 <= len(words) <= 5 or not all(map(_is_of_a_person, words)):
        return Name(text)
    at = next((i for i, word in enumerate(words[1:], 1) if word.lower() in PARTICLES), len(words) - 1)
    return Name(" ".join(words[at:]), " ".join(words[:at]))


def _is_of_a_person(word: str) -> bool:
    if word.lower() in PARTICLES:
        return True
    letters = word.strip(".'’-")
    is_acronym = len(letters) > 2 and letters.isupper()
    return word[0].isupper() and not is_acronym and letters.lower() not in ORGANISATION and not any(map(str.isdigit, word))


def _one_line(text: str) -> str:
    """One line without control characters, in composed letters."""
    printable = "".join(c if c.isprintable() else " " for c in unicodedata.normalize("NFC", text))
    return " ".join(printable.split())


def _reference_keys(references: Sequence[_Reference]) -> list[str]:
    """A key for each reference: name, year, and a letter where two would be the same."""
    keys: list[str] = []
    for reference in references:
        name = reference.authors[0].family if reference.authors else reference.site or reference.title
        words = re.findall(r"[A-Za-z0-9]+", unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode())
        year = str(reference.issued.year) if reference.issued else ""
        base = ("".join(words[:2]).lower()[:30] or f"source{reference.number}") + year
        # b, c, … z, then zb, zc, …: a key stays short and none is used twice
        places = (divmod(number, 25) for number in range(len(references) + 2))
        suffixes = ("z" * rounds + (chr(ord("a") + letter) if letter else "") for rounds, letter in places)
        keys.append(next(base + suffix for suffix in suffixes if base + suffix not in keys))
    return keys


def _date_parts(date: PublicationDate | None) -> dict[str, Any]:
    return {"date-parts": [list(date.parts)]} if date else {}
