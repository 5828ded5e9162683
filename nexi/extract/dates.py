"""When a page was published and when it was last changed, by its head, its linked data, its markup, its address and its words.

Above sits `markup`; below, a tree of resiliparse. Dates leave as ISO 8601: what a machine wrote keeps its time, what people
wrote is a day. No clock is known here, so a date in the future is not noticed.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from nexi.extract.layout import Node, Tree

MIN_YEAR, MAX_YEAR = 1990, 2099  # of dates in prose, which speaks of other times too
MAX_NODES = 60
MAX_STAMP_CHARS = 120  # a longer text that holds a date is prose
MAX_DATE_CHARS = 48  # between the year and the other end of a date with the name of a month
MAX_LINKED_DATA_CHARS = 400_000
NEAR_MARKUP_CHARS = 40_000
NEAR_TITLE_CHARS = 1_500  # of text
FIRST_MARKUP_CHARS = (6_000, 16_000)  # in which there may be so much text
MAX_MARKUP_CHARS = 600_000
MAX_LINE_CHARS = 70
MAX_GAP_CHARS = 24  # between a word such as "updated" and its date

# Names of fields of a head, of months, and words beside a date, in the order in which they are tried.
_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, tuple[str, ...]])
_PUBLISHED_META = _NAMES["published_meta"]
_UPDATED_META = _NAMES["updated_meta"]
_LINKED = {
    key: re.compile(rf'"{key}"\s{{0,20}}:\s{{0,20}}(?:\[\s{{0,20}})?"([^"]{{4,40}})"')
    for key in ("datePublished", "dateModified", "uploadDate", "dateCreated")
}
_OWN_TYPE = re.compile(
    r'"@type"\s{0,20}:\s{0,20}(?:\[\s{0,20})?"(?:[A-Za-z]{0,30}Article|BlogPosting|DiscussionForumPosting|QAPage)"'
)
_UPDATED_NAME = re.compile(r"updat|modif|revis|edited", re.IGNORECASE)
_FOREIGN = re.compile(
    r"related|sidebar|comment|footer|recommend|teaser|promo|widget|upcoming|event|carousel|card|list-item", re.IGNORECASE
)
_STAMPS = (
    '[class*="date" i], [class*="publish" i], [class*="posted" i], [class*="byline" i], [class*="meta" i], [class*="time" i],'
    ' [id*="date" i], [itemprop*="date" i]'
)
# Patterns that are searched for begin with one character, and look back at the one before it: a search for a first character
# takes a tenth of one that tries the pattern everywhere.
_ISO = re.compile(
    r"(\d\d\d\d)-(\d{1,2})-(\d{1,2})(?:[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)?"
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T?\d{4,6})?Z?$")
_IN_ADDRESS = re.compile(
    r"[/_.-]((?:19|20)\d\d)[/_-](\d{1,2})[/_-](\d{1,2})(?=[/_.-]|$)|/((?:19|20)\d\d)(\d\d)(\d\d)(?=[/_-]|$)"
)
_MONTHS = {name: number for number, names in enumerate(_NAMES["months"], 1) for name in names.split()}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_NAMED_MONTH = re.compile(rf"/({_MONTH})/", re.IGNORECASE)
_DAY_MONTH = re.compile(
    rf"(\d(?<!\w.)\d?)(?:st|nd|rd|th|er|\.|º)?[ \u00a0-]{{0,2}}(?:de |of )?({_MONTH})\b\.?,?[ \u00a0-]{{0,2}}"
    r"(?:de |del )?((?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\b\.?[ \u00a0]{{0,2}}(\d{{1,2}})(?:st|nd|rd|th)?\b,?[ \u00a0]{{0,2}}((?:19|20)\d\d)\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_YEAR_MONTH = re.compile(rf"([12](?<!\w.)(?:(?<=1)9|(?<=2)0)\d\d) ({_MONTH})\.? (\d{{1,2}})\b", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d(?<![\d./-].)\d?)([./-])(\d{1,2})\2((?:19|20)\d\d|\d\d)(?![\d./-])")
_YEAR_FIRST = re.compile(r"([12](?<![\d./-].)(?:(?<=1)9|(?<=2)0)\d\d)([./])(\d{1,2})\2(\d{1,2})(?![\d/-])")
_ASIAN = re.compile(r"([12](?:(?<=1)9|(?<=2)0)\d\d)\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]")
_WITH_NAMES = ((_DAY_MONTH, (3, 2, 1)), (_MONTH_DAY, (3, 1, 2)), (_YEAR_MONTH, (1, 2, 3)))  # the groups of year, month, day
_WITH_NUMBERS = ((_ISO, (1, 2, 3)), (_ASIAN, (1, 2, 3)), (_YEAR_FIRST, (1, 3, 4)))
_UPDATED_WORDS = _NAMES["updated_words"]
_PUBLISHED_WORDS = _NAMES["published_words"]
_SAYS_UPDATED = re.compile(rf"(?:{'|'.join(_UPDATED_WORDS)})[^\d]{{0,{MAX_GAP_CHARS}}}?$", re.IGNORECASE)
_SAYS_PUBLISHED = re.compile(rf"(?:{'|'.join(_PUBLISHED_WORDS)})[^\d]{{0,{MAX_GAP_CHARS}}}?$", re.IGNORECASE)
_TITLE = re.compile(r"<h1[\s>]", re.IGNORECASE)
_TAGS = re.compile(r"<[^<>]{0,5000}+>\s*+(?:<[^<>]{0,5000}+>\s*+)*+")
_INVISIBLE = r"(?=[stn!])(?:(?P<{0}>script|style|template|noscript|svg)\b.*?(?:</(?P={0})\s*>|\Z)|!--.*?(?:-->|\Z))"
_PART = rf"<(?:{_INVISIBLE}|[^<>]{{{{0,5000}}}}+>)\s*+"
_MARKUP = re.compile(f"{_PART.format('first')}(?:{_PART.format('other')})*+", re.IGNORECASE | re.DOTALL)
_MONTH_FIRST = re.compile(r"en-(?:us|ph)|en$|^$", re.IGNORECASE)


class _PageDates(NamedTuple):
    """The day a page was published, and the day it was last changed; "" where it does not say."""

    published: str = ""
    updated: str = ""


class _Mention(NamedTuple):
    """A date in a text, where it stands."""

    start: int
    day: str


def read_page_dates(
    tree: Tree, html: str, meta: Mapping[str, str], linked_data: str, url: str, language: str = ""
) -> _PageDates:
    """The dates of a page, from what says them most surely to what only may."""
    head_data = linked_data[:MAX_LINKED_DATA_CHARS]
    updated = _first(meta.get(name, "") for name in _UPDATED_META) or _first(_linked(head_data, "dateModified"))
    published = (
        _first(meta.get(name, "") for name in _PUBLISHED_META)
        or _first(_linked(head_data, "datePublished"))
        or _first(_linked(head_data, "uploadDate"))
    )
    address = _NAMED_MONTH.sub(lambda match: f"/{_MONTHS[match[1].lower()]}/", url[:2_000])
    match = _IN_ADDRESS.search(address)
    day = _day(*(match.group(1, 2, 3) if match[1] else match.group(4, 5, 6))) if match else ""
    if day and not published:
        published = day
    elif day:
        with suppress(ValueError):
            if abs(date.fromisoformat(day) - date.fromisoformat(published[:10])).days == 1:
                published = day  # the head counts in another time zone
    readers: tuple[Callable[[Tree, str, str], _PageDates], ...] = (
        _read_elements,
        _read_near_title,
        _read_stamps,
        _read_anywhere,
    )
    for read in readers if not published else () if updated else (_read_near_title,):
        dates = read(tree, html, language)
        published, updated = published or dates.published, updated or dates.updated
        if published or dates.updated:
            break
    return _PageDates(published or _first(_linked(head_data, "dateCreated")) or updated, updated)


def normalise_date(text: str, language: str = "") -> str:
    """A date as ISO 8601, with its time where it has one; "" for what is none."""
    text = " ".join(text[:MAX_STAMP_CHARS].split())
    if iso := _ISO.match(text):
        return (
            iso[0].replace(" ", "T", 1)
            if _is_day(iso[1], iso[2], iso[3], 1000) and len(iso[2]) == 2
            else _day(*iso.group(1, 2, 3))
        )
    if compact := _COMPACT.match(text):
        return _day(*compact.group(1, 2, 3))
    if re.fullmatch(r"\d{4}(?:-\d\d)?", text):
        return text
    if match := re.fullmatch(r"(\d{4})/(\d\d?)(?:/(\d\d?))?", text):
        return _day(match[1], match[2], match[3]) if match[3] else f"{match[1]}-{int(match[2]):02}"
    return next((mention.day for mention in find_dates(text, language)), "")


def find_dates(text: str, language: str = "") -> list[_Mention]:
    """The days that a text names, in order."""
    return _find_within(text, 0, len(text), language)


def _find_within(text: str, first: int, last: int, language: str) -> list[_Mention]:
    # Looking for a hundred names of months in all of a text would take long.
    spans = [(span, _WITH_NAMES) for span in _spans_around_years(text, first, last)] + [((first, last), _WITH_NUMBERS)]
    mentions = [
        _Mention(match.start(), _day(*match.group(*groups)))
        for (start, end), patterns in spans
        for pattern, groups in patterns
        for match in pattern.finditer(text, start, end)
    ]
    for match in _NUMBERS.finditer(text, first, last):
        # 3/4/2025: the month first in the United States, else the day, unless only one of them can be the month.
        month, day = int(match[1]), int(match[3])
        year = match[4] if len(match[4]) == 4 else f"20{match[4]}"
        if month > 12 or not (day > 12 or (match[2] == "/" and _MONTH_FIRST.match(language) is not None)):
            month, day = day, month
        mentions.append(_Mention(match.start(), _day(year, month, day)))
    return sorted(mention for mention in mentions if mention.day)


def _spans_around_years(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Where the names of months may belong to a date."""
    start = end = 0
    for year in _YEAR.finditer(text, first, last):
        if not end or year.start() - MAX_DATE_CHARS > end:
            if end:
                yield start, end
            start = max(first, year.start() - MAX_DATE_CHARS)
        end = min(last, year.end() + MAX_DATE_CHARS)
    if end:
        yield start, end


def _day(year: str, month: str | int, day: str | int) -> str:
    """A day as ISO 8601, with the month by its number or name; "" for none."""
    month = _MONTHS.get(str(month).lower(), month)
    return f"{int(year):04}-{int(month):02}-{int(day):02}" if _is_day(year, month, day) else ""


def _is_day(year: str, month: str | int, day: str | int, first_year: int = MIN_YEAR) -> bool:
    try:
        return first_year <= date(int(year), int(month), int(day)).year <= MAX_YEAR
    except ValueError:
        return False


def _first(values: Iterable[str]) -> str:
    return next(filter(None, map(normalise_date, filter(None, values))), "")


def _linked(linked_data: str, key: str) -> Iterator[str]:
    """The values of a key, that of an article or a thread first: linked data describes other things too."""
    own = _OWN_TYPE.search(linked_data)
    places = (own.start(), 0) if own else (0,)
    return (match[1] for place in places for match in islice(_LINKED[key].finditer(linked_data, place), 3))


def _read_elements(tree: Tree, _html: str, language: str) -> _PageDates:
    """From elements that are made for a date."""
    published = updated = ""
    for node in islice(
        tree.document.query_selector_all('time, [itemprop="datePublished"], [itemprop="dateModified"]'), MAX_NODES
    ):
        value = node.getattr("datetime") or node.getattr("content") or node.text
        if _is_foreign(node) or not (day := normalise_date(value or "", language)):
            continue
        if _says_updated(node):
            updated = updated or day
        else:
            published = published or day
    return _PageDates(published, updated)


def _read_stamps(tree: Tree, _html: str, language: str) -> _PageDates:
    """From short texts in elements that are named for a date."""
    published = updated = ""
    for node in islice(tree.body.query_selector_all(_STAMPS), MAX_NODES):
        text = " ".join((node.text or "")[: 4 * MAX_STAMP_CHARS].split())
        if not text or len(text) > MAX_STAMP_CHARS or _is_foreign(node):
            continue
        for start, day in find_dates(text, language):
            if _says_updated(node) or _SAYS_UPDATED.search(text[:start]):
                updated = updated or day
            else:
                published = published or day
    return _PageDates(published, updated)


def _read_near_title(_tree: Tree, html: str, language: str) -> _PageDates:
    """From the short texts beside the first heading, those below it first."""
    heading = _TITLE.search(html)
    at = heading.start() if heading else 0
    after = html[at : at + NEAR_MARKUP_CHARS]
    # Of as little markup as has the text; what comes later changes it only where a tag in it has no end yet.
    for size in (*FIRST_MARKUP_CHARS, len(after)):
        below = _shown_text(after[:size])
        if size >= len(after) or (len(below) > 2 * NEAR_TITLE_CHARS and "<" not in below[:NEAR_TITLE_CHARS]):
            break
    below = below[:NEAR_TITLE_CHARS]
    dates = _read_mentions(below, find_dates(below, language), is_near=True)
    if dates.published:
        return dates
    above = _shown_text(html[max(0, at - NEAR_MARKUP_CHARS // 8) : at])[-NEAR_TITLE_CHARS // 4 :]
    text = f"{above}\n{below}"
    return _read_mentions(text, find_dates(text, language), is_near=True) if above else dates


def _read_anywhere(_tree: Tree, html: str, language: str) -> _PageDates:
    """From any text that says that it was published or updated then; no other part of the text is searched."""
    text = _shown_text(html[:MAX_MARKUP_CHARS])
    lower = text.lower()
    if len(lower) != len(text):  # a letter became two
        return _read_mentions(text, find_dates(text, language), is_near=False)
    ends = set[int]()
    for word in (*_UPDATED_WORDS, *_PUBLISHED_WORDS):
        place = lower.find(word)
        while place >= 0:
            ends.add(end := place + len(word))
            place = lower.find(word, end)
    mentions: list[_Mention] = []
    start = last = 0
    for end in [*sorted(ends), len(text) + 1]:  # the last one ends the last stretch
        if end > last:
            mentions += _find_within(text, start, last, language)
            start = end
        last = min(len(text), end + MAX_GAP_CHARS + 2 * MAX_DATE_CHARS)
    return _read_mentions(text, sorted(mentions), is_near=False)


def _shown_text(html: str) -> str:
    """The words of some markup; tags that it shows, as examples of code do, are none."""
    text = entities.unescape(_MARKUP.sub("\n", html))
    return _TAGS.sub("\n", text) if "<" in text else text


def _read_mentions(text: str, mentions: Iterable[_Mention], *, is_near: bool) -> _PageDates:
    published = updated = ""
    for start, day in mentions:
        line_end = text.find("\n", start)
        line = text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)].strip()
        before = text[max(0, start - 40) : start]
        if _SAYS_UPDATED.search(before):
            updated = updated or day
        elif _SAYS_PUBLISHED.search(before) or (is_near and len(line) <= MAX_LINE_CHARS and not before.endswith("(")):
            published = published or day
    return _PageDates(published, updated)


def _says_updated(node: Node) -> bool:
    names = f"{node.getattr('itemprop') or ''} {node.getattr('class') or ''}"
    before = (node.parent.text or "")[:60] if node.parent is not None and len(node.parent.text or "") < MAX_STAMP_CHARS else ""
    return bool(_UPDATED_NAME.search(names) or _SAYS_UPDATED.search(before.partition((node.text or "").strip() or "\0")[0]))


def _is_foreign(node: Node) -> bool:
    """Whether an element belongs to another page's teaser, a comment or the footer."""
    for _ in range(6):
        if node is None or node.tag in ("body", "main", "article", "html", "#document"):
            return False
        if node.tag in ("footer", "aside") or _FOREIGN.search(f"{node.getattr('class') or ''} {node.getattr('id') or ''}"):
            return True
        node = node.parent
    return False
