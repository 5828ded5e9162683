"""When a page was published and when it was last changed, by its head, its linked data, its markup, its address and its words.

Above sits `markup`; below, a tree of resiliparse. Dates leave as ISO 8601: what a machine wrote keeps its time, what people
wrote is a day. No clock is known here, so a date in the future is not noticed.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import chain, islice
from pathlib import Path

import msgspec

from nexi.extract.layout import Node, Tree
from nexi.text.dates import MAX_DATE_CHARS, MAX_STAMP_CHARS, MONTH_NUMBERS, MONTH_PATTERN, find_dates, normalise_date, parse_day

MAX_NODES = 60
MAX_LINKED_DATA_CHARS = 400_000
NEAR_MARKUP_CHARS = 40_000
NEAR_TITLE_CHARS = 1_500  # of text
FIRST_MARKUP_CHARS = (6_000, 16_000)  # in which there may be so much text
MAX_MARKUP_CHARS = 600_000
MAX_LINE_CHARS = 70
MAX_GAP_CHARS = 24  # between a word such as "updated" and its date

# Names of fields of a head, and words beside a date, in the order in which they are tried.
_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, tuple[str, ...]])
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
_IN_ADDRESS = re.compile(
    r"[/_.-]((?:19|20)\d\d)[/_-](\d{1,2})[/_-](\d{1,2})(?=[/_.-]|$)|/((?:19|20)\d\d)(\d\d)(\d\d)(?=[/_-]|$)"
)
_NAMED_MONTH = re.compile(rf"/({MONTH_PATTERN})/", re.IGNORECASE)
_UPDATED_WORDS = _NAMES["updated_words"]
_PUBLISHED_WORDS = (*_NAMES["published_words"], *_NAMES["made_words"])
_SAYS_UPDATED = re.compile(rf"(?:{'|'.join(_UPDATED_WORDS)})[^\d]{{0,{MAX_GAP_CHARS}}}?$", re.IGNORECASE)
_SAYS_PUBLISHED = re.compile(rf"({'|'.join(_PUBLISHED_WORDS)})[^\d]{{0,{MAX_GAP_CHARS}}}?$", re.IGNORECASE)
_TITLE = re.compile(r"<h1[\s>]", re.IGNORECASE)
_TAGS = re.compile(r"<[^<>]{0,5000}+>\s*+(?:<[^<>]{0,5000}+>\s*+)*+")
_INVISIBLE = r"(?=[stn!])(?:(?P<{0}>script|style|template|noscript|svg)\b.*?(?:</(?P={0})\s*>|\Z)|!--.*?(?:-->|\Z))"
_PART = rf"<(?:{_INVISIBLE}|[^<>]{{{{0,5000}}}}+>)\s*+"
_MARKUP = re.compile(f"{_PART.format('first')}(?:{_PART.format('other')})*+", re.IGNORECASE | re.DOTALL)

_PageDates = tuple[str, str]  # the day it was published, and the day it was last changed; "" where it does not say


def read_page_dates(tree: Tree, html: str, meta: Mapping[str, str], linked_data: str, url: str, language: str) -> _PageDates:
    """The dates of a page, from what says them most surely to what only may."""
    head_data = linked_data[:MAX_LINKED_DATA_CHARS]
    updated = _first(meta.get(name, "") for name in _NAMES["updated_meta"]) or _first(_linked(head_data, "dateModified"))
    linked_days = chain(_linked(head_data, "datePublished"), _linked(head_data, "uploadDate"))
    published = _first(meta.get(name, "") for name in _NAMES["published_meta"]) or _first(linked_days)
    match = _IN_ADDRESS.search(_NAMED_MONTH.sub(lambda name: f"/{MONTH_NUMBERS[name[1].lower()]}/", url[:2_000]))
    day = parse_day(match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)) if match else ""
    if day and published:
        with suppress(ValueError):
            if abs(date.fromisoformat(day) - date.fromisoformat(published[:10])).days == 1:
                published = day  # the head counts in another time zone
    published = published or day
    readers = (_read_elements, _read_near_title, _read_stamps, _read_anywhere)
    for read in readers if not published else () if updated else (_read_near_title,):
        day, day_of_change = read(tree, html, language)
        published, updated = published or day, updated or day_of_change
        if published or day_of_change:
            break
    return published or _first(_linked(head_data, "dateCreated")) or updated, updated


def _first(values: Iterable[str]) -> str:
    return next(filter(None, map(normalise_date, filter(None, values))), "")


def _linked(linked_data: str, key: str) -> Iterator[str]:
    """The values of a key, that of an article or a thread first: linked data describes other things too."""
    own = _OWN_TYPE.search(linked_data)
    places = (own.start(), 0) if own else (0,)
    return (match[1] for place in places for match in islice(_LINKED[key].finditer(linked_data, place), 3))


def _pick_first(days: Iterable[tuple[str, bool]]) -> _PageDates:
    """The first of these days that is one of publication, and the first that is said to be one of a change."""
    first: dict[bool, str] = {}
    for day, is_update in days:
        first.setdefault(is_update, day)
    return first.get(False, ""), first.get(True, "")


def _read_elements(tree: Tree, _html: str, language: str) -> _PageDates:
    nodes = tree.document.query_selector_all('time, [itemprop="datePublished"], [itemprop="dateModified"]')
    own = [node for node in islice(nodes, MAX_NODES) if not _is_foreign(node)]
    days = ((normalise_date(n.getattr("datetime") or n.getattr("content") or n.text or "", language), n) for n in own)
    return _pick_first((day, _says_updated(node)) for day, node in days if day)


def _read_stamps(tree: Tree, _html: str, language: str) -> _PageDates:
    days: list[tuple[str, bool]] = []
    for node in islice(tree.body.query_selector_all(_STAMPS), MAX_NODES):
        text = " ".join((node.text or "")[: 4 * MAX_STAMP_CHARS].split())
        if text and len(text) <= MAX_STAMP_CHARS and not _is_foreign(node):
            mentions = find_dates(text, language)
            days += ((day, _says_updated(node) or bool(_SAYS_UPDATED.search(text[:start]))) for start, day in mentions)
    return _pick_first(days)


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
    if dates[0]:
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
    mentions, start, last = list[tuple[int, str]](), 0, 0
    for end in [*sorted(ends), len(text) + 1]:  # the last one ends the last stretch
        if end > last:
            mentions += find_dates(text, language, start, last)
            start = end
        last = min(len(text), end + MAX_GAP_CHARS + 2 * MAX_DATE_CHARS)
    return _read_mentions(text, sorted(mentions), is_near=False)


def _shown_text(html: str) -> str:
    """The words of some markup; tags that it shows, as examples of code do, are none."""
    text = entities.unescape(_MARKUP.sub("\n", html))
    return _TAGS.sub("\n", text) if "<" in text else text


def _read_mentions(text: str, mentions: Iterable[tuple[int, str]], *, is_near: bool) -> _PageDates:
    days: list[tuple[str, bool]] = []
    for start, day in mentions:
        line_end = text.find("\n", start)
        line = text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)].strip()
        before = text[max(0, start - 40) : start]
        is_update = _SAYS_UPDATED.search(before) is not None
        is_alone = is_near and len(line) <= MAX_LINE_CHARS and not before.endswith("(")
        says_published = _SAYS_PUBLISHED.search(before)
        # a sentence tells when a film was released or a letter was written, and not when its page was
        is_of_thing = says_published and len(line) > MAX_LINE_CHARS and says_published[1].lower() in _NAMES["made_words"]
        if is_update or is_alone or (says_published and not is_of_thing):
            days.append((day, is_update))
    return _pick_first(days)


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
