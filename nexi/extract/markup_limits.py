"""Markup that a parser should not be given: parts that no reader sees, and small pages that cost it minutes or gigabytes.

Above sits `markup`; below only regular expressions that are linear in the page. Measured of the parsers in use: they
compare each attribute of a tag with all before it, they walk all open elements for each new one, they build all open
formatting elements anew in every paragraph, they keep up to a kilobyte for a tag of three letters, and they write as many
cells as a cell says it spans.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

MAX_ATTRIBUTES = 2_000
MAX_OPENINGS = 400_000
LONG = 8_000  # characters
MAX_DEPTH = 10_000
MAX_REOPENED = 100_000
SQUARE = 600  # tags; half of them open at each of the other half are fewer than that
MAX_WEIGHT = 72_000  # of tags, at two each, and attributes; of 600 real pages the two largest lose their end
CHARS_PER_WEIGHT = 40  # of a page so long that it may weigh more
FEW_CELLS = 5_000  # so many may span what they like
SMALL = 150_000  # characters; the tags of such a page can be afforded whatever they are
LARGE = 400_000  # characters; in less there is no room for too many attributes without a value

# Half of an ordinary page, and everything after it costs half. What has no end stays, for the parser.
_INVISIBLE_START = re.compile(r"<(?=[!st])(?:!--|(s(?:cript|tyle|vg)|t(?:itle|extarea))(?=[\s/>])([^>]*+)>)", re.IGNORECASE)
_SHOWN_TEXT = frozenset({"title", "textarea"})  # these stay; a tag inside them is none
_WHOLE_TAG = re.compile(r"<[/a-z][^>]*+", re.IGNORECASE)
# Faster, and finds no less: searched for first.
_MAYBE_WIDE_CELL = re.compile(r"=(?<=[nN\s]=)(?<=(?i:span)=|...\s=)\s*+[\"']?+\s*+\d{3}")
_WIDE_CELL = re.compile(r"\b((?:col|row)span)\s*=\s*([\"']?)\s*\d{3,}", re.IGNORECASE)
_LONG_NAMES = r"b(?:ig)?+|i|u|s(?:mall|tr(?:ike|ong))?+|em|code|font|nobr|tt"  # all but `a`, of which one is open at most
# Not those that are closed before another tag begins: they are never open at one.
_FORMATTING = re.compile(rf"<(?=[bceifnstu])({_LONG_NAMES})(?=[\s/>])([^>]{{0,300}}+)(?![^<]*+</\1[\s>])", re.IGNORECASE)
# With its end where no other tag is between the two.
_FORMATTING_TAG = re.compile(
    rf"<(/)?(a|{_LONG_NAMES})(?=[\s/>])([^>]{{0,300}}+)(?(1)|(>[^<]*+</\2(?=[\s/>]))?+)", re.IGNORECASE
)
_NAME = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
_NEVER_DEEP = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p", "li",
    "td", "th", "tr", "dt", "dd", "option", "tbody", "thead", "tfoot", "colgroup", "body", "html", "head",
))  # fmt: skip

# A tag's attributes as the standard's tokenizer reads them: a quote counts only where a value begins.
_ATTRIBUTE = r"[\s/]*+=?[^\s/>=]++(?:\s*+=\s*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^\s>]*+))?+"
_ATTRIBUTES = rf"(?:{_ATTRIBUTE})*+"
_TOKEN = re.compile(
    rf"<!--[^-]*+(?:-(?!->)[^-]*+)*+"
    rf"|<(script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\s/>])({_ATTRIBUTES})[^<]*+(?:<(?!/\1)[^<]*+)*+"
    rf"|<[a-z][^\s/>]*+({_ATTRIBUTES})",
    re.IGNORECASE,
)
_QUOTED_END = re.compile(r"=\s*+[\"'][^\"'>]*+>")
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)


def remove_invisible(html: str) -> str:
    """The page with its invisible parts cut out; data that describes the page stays."""
    parts, next_ends = list[str](), dict[str, int]()
    start = place = 0
    while (match := _INVISIBLE_START.search(html, place)) is not None:
        name, attributes = (match[1] or "").lower(), match[2] or ""
        if name == "svg" and attributes.endswith("/"):
            place = match.end()
            continue
        end = _find_end(html, name, match.end(), next_ends)
        if end < 0:
            break
        if name not in _SHOWN_TEXT and not (name == "script" and "ld+json" in attributes):
            parts.append(html[start : match.start()])
            start = end
        place = end
    parts.append(html[start:])
    return "".join(parts) if len(parts) > 1 else html


def _find_end(html: str, name: str, start: int, next_ends: dict[str, int]) -> int:
    """Where a part of this name ends, or a comment without one; below zero where it has no end."""
    if not name:
        if html.startswith((">", "->"), start):  # `<!-->` and `<!--->` are whole comments
            return html.index(">", start) + 1
        end = html.find("-->", start)
        return end + 3 if end >= 0 else -1
    # Ends are written in small letters or in capitals. Each is searched for once, however many parts the page has.
    end = next_ends.get(name, -1)
    if end < start:
        end = html.find(f"</{name}", start)
        next_ends[name] = end = end if end >= 0 else len(html)
    if (capitals := html.find(f"</{name.upper()}", start, end)) >= 0:
        end = capitals
    return html.find(">", end) + 1 or -1


def is_hostile(html: str) -> bool:
    """Whether this markup would cost a parser far more than its size."""
    tags = html.count("<")
    if tags > MAX_OPENINGS or _is_too_wide(html):
        return True
    if tags > MAX_DEPTH and tags - html.count("</") > MAX_DEPTH:
        depth = 0
        for closing, name in _NAME.findall(html):
            if name.lower() not in _NEVER_DEEP:
                depth = max(0, depth - 1) if closing else depth + 1
                if depth > MAX_DEPTH:  # no page that was written to be read nests so deep
                    return True
    return tags > SQUARE and _can_multiply(html, tags)


def _is_too_wide(html: str) -> bool:
    """Whether some tag has so many attributes that comparing them is the attack."""
    # Only a long stretch without an end of tag, or ends of tags inside quotes, can be such a tag.
    start = 0
    while start + LONG < len(html) and (end := html.rfind(">", start, start + LONG)) >= 0:
        start = end + 1
    if start + LONG >= len(html) and (html.count("=") <= MAX_ATTRIBUTES or len(_QUOTED_END.findall(html)) < 5):
        return False
    attributes = (token[2] or token[3] or "" for token in _TOKEN.finditer(html))
    return any(len(own) > 2 * MAX_ATTRIBUTES and len(_ONE_ATTRIBUTE.findall(own)) > MAX_ATTRIBUTES for own in attributes)


def _can_multiply(html: str, tags: int) -> bool:
    """Whether open formatting elements could be rebuilt at so many tags that memory is the attack."""
    # At most three equal ones stay open at once, so only different ones count.
    if 3 * len(set(_FORMATTING.findall(html))) * tags <= MAX_REOPENED:
        return False
    # A parser could build those that are open anew at each tag that is no formatting itself.
    total = open_now = last = 0
    stacks: defaultdict[str, list[str]] = defaultdict(list)
    equal: Counter[str] = Counter()
    for tag in _FORMATTING_TAG.finditer(html):
        closing, name, rest, end = tag.groups()
        if open_now:
            total += open_now * html.count("<", last, tag.start())
        last = tag.end()
        mark = f"{name.lower()} {rest}"
        if not closing and equal[mark] < 3:
            if not end:  # else it is closed again before another tag begins
                equal[mark] += 1
                stacks[name.lower()].append(mark)
                open_now += 1
        elif (closing or end) and (stack := stacks[name.lower()]):
            equal[stack.pop()] -= 1
            open_now -= 1
    return total + open_now * html.count("<", last) > MAX_REOPENED


def bound_markup(html: str) -> str:
    """The page up to its last affordable tag, with cells that span what a table can have."""
    tags = html.count("<")
    if tags > FEW_CELLS and _MAYBE_WIDE_CELL.search(html):
        html = _WIDE_CELL.sub(r"\1=\g<2>1", html)
    max_weight = max(MAX_WEIGHT, len(html) // CHARS_PER_WEIGHT)
    if len(html) <= SMALL or 2 * tags + (_count_attributes(html) if len(html) > LARGE else html.count("=")) <= max_weight:
        return html
    whole_tags = _WHOLE_TAG.findall(html)
    if 2 * len(whole_tags) + _count_attributes("".join(whole_tags)) <= max_weight:
        return html
    weight = 0
    for tag in _WHOLE_TAG.finditer(html):
        weight += 2 + _count_attributes(tag[0])
        if weight > max_weight:
            return html[: tag.start()]
    return html


def _count_attributes(tags: str) -> int:
    """About how many attributes are in this markup: those with a value, or what could be names without one."""
    return max(tags.count("="), sum(map(tags.count, " \n\t/\f")) // 3)
