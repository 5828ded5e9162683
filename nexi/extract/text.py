"""Text of the web to Markdown and metadata: HTML pages by way of `markup`, feeds and other XML, JSON, and plain text.

Above sits `nexi.formats`; below, `markup` and the standard library's parsers, which are imported by what needs them.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from nexi import urls
from nexi.extract import Extracted, clean_extracted, one_line

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_LINKS = 500
MAX_JSON_PARTS = 200_000
MAX_ENTRIES = 200  # of a feed
MAX_TAGS = 100_000  # more than a feed has

# Of Markdown (YAML or TOML), reStructuredText and Org, before the text begins.
_FRONT_DATE = re.compile(
    r"(?:(?:---|\+\+\+)\n(?:[^\n]*\n){0,40}?|(?:[^\n]*\n){0,9}?(?::|#\+))(?:date|published):?\s*[:=]?\s*([^\n]{4,60})\n",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,2}\s+(\S.{0,300})$", re.MULTILINE)


def to_markdown(html: str, url: str) -> str:
    """The main content of an HTML page as Markdown."""
    return clean_extracted(read_text(html, "text/html", url)).text


def read_text(text: str, kind: str, url: str, *, cites_notes: bool = False) -> Extracted:
    """The text and metadata of what is text, of the media type `kind`; `url` is the base of its links."""
    match kind:
        case "text/html" | "application/xhtml+xml" | "":
            from nexi.extract import markup

            return markup.read_html(text, url, cites_notes)
        case _ if kind.endswith(("/xml", "+xml")):
            return _read_xml(text, url)
        case _ if kind.endswith(("/json", "+json")):
            if sum(map(text.count, ",[{")) <= MAX_JSON_PARTS:  # more would take a hundred times its size as Python values
                with suppress(ValueError, RecursionError):
                    text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
            return Extracted(text=text)
        case _:
            heading, date_line, published = _HEADING.search(text[:5_000]), _FRONT_DATE.match(text[:5_000]), ""
            if date_line:
                from nexi.text.dates import normalise_date

                published = normalise_date(date_line[1].strip(" \"'<["))
            links = tuple(urls.find_urls(text)[:MAX_LINKS])
            return Extracted(text=text, title=one_line(heading[1]) if heading else "", published=published, links=links)


def _read_xml(text: str, url: str) -> Extracted:
    """A feed's title and entries (RSS, Atom); any other XML gives its text, and one with entities what a page would."""
    from xml.etree import ElementTree

    from nexi.extract import markup

    root = None
    if not ("<!doctype" in text[:10_000].lower() or "<!ENTITY" in text or text.count("<") > MAX_TAGS):
        with suppress(ElementTree.ParseError, ValueError):
            root = ElementTree.fromstring(text.lstrip())  # noqa: S314 - no DTD, no entities
    if root is None:
        return Extracted(text=markup.read_html(text, url).text)
    entries = [node for node in root.iter() if _tag_name(node) in ("item", "entry")][:MAX_ENTRIES]
    if not entries:
        # Put the name of a field before its value where an element is a record: fields of different names, no text between.
        for record in root.iter():
            names = [_tag_name(field) for field in record]
            is_prose = bool((record.text or "").strip()) or any((field.tail or "").strip() for field in record)
            if len(names) < 2 or len(set(names)) < len(names) or is_prose:
                continue
            for field, name in zip(record, names, strict=True):
                if not len(field) and (field.text or "").strip():
                    field.text = f"{name}: {field.text}"
        return Extracted(text="\n".join(filter(None, map(one_line, root.itertext()))))
    channel = next((node for node in root.iter() if _tag_name(node) in ("channel", "feed")), root)
    title = _field_text(channel, "title")
    blocks, links = [f"# {title}"] if title else [], list[str]()
    for entry in entries:
        name, link = _field_text(entry, "title") or "Untitled", _find_link(entry, url)
        blocks.append(f"## [{name}]({link})" if link else f"## {name}")
        links.append(link)
        if date := _field_text(entry, "pubDate", "published", "updated", "date"):
            blocks.append(date)
        if body := _raw_field(entry, "encoded", "content", "description", "summary"):
            blocks.append(markup.read_html(body, url).text if "<" in body else body.strip())
    return Extracted(
        text="\n\n".join(blocks),
        title=title,
        language=_field_text(channel, "language"),
        description=_field_text(channel, "description", "subtitle"),
        links=tuple(dict.fromkeys(filter(None, links))),
    )


def _find_link(node: Element, url: str) -> str:
    for child in node:
        if _tag_name(child) == "link" and child.get("rel", "alternate") == "alternate":
            with suppress(ValueError):
                link = urls.join(url, (child.get("href") or child.text or "").strip())
                return link if urls.is_web_url(link) else ""
            break
    return ""


def _field_text(node: Element, *names: str) -> str:
    return one_line(_raw_field(node, *names))


def _raw_field(node: Element, *names: str) -> str:
    """The text of the first child of one of these names, in the order of the names."""
    for name in names:
        for child in node:
            if _tag_name(child) == name and (text := "".join(child.itertext())).strip():
                return text
    return ""


def _tag_name(node: Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
