"""Feeds (RSS, Atom) and other XML as Markdown: the entries with their links, dates and texts.

Above sits `extract`; below the standard library's parser. Documents that declare entities, or have more tags than a feed
has, are read as a web page would be.
"""

from __future__ import annotations

from contextlib import suppress
from xml.etree import ElementTree

from nexi import urls
from nexi.extract import markup
from nexi.extract.words import Extracted, one_line

MAX_ENTRIES = 200
MAX_TAGS = 100_000


def read(text: str, url: str) -> Extracted:
    """A feed's title and entries; any other XML gives its text."""
    root = None
    if not ("<!doctype" in text[:10_000].lower() or "<!ENTITY" in text or text.count("<") > MAX_TAGS):
        with suppress(ElementTree.ParseError, ValueError):
            root = ElementTree.fromstring(text.lstrip())  # noqa: S314 - no DTD, no entities
    if root is None:
        return Extracted(text=markup.read_html(text, url).text)
    entries = [node for node in root.iter() if _name(node) in ("item", "entry")][:MAX_ENTRIES]
    if not entries:
        # Put the name of a field before its value where an element is a record: fields of different names, no text between.
        for record in root.iter():
            names = [_name(field) for field in record]
            is_prose = bool((record.text or "").strip()) or any((field.tail or "").strip() for field in record)
            if len(names) < 2 or len(set(names)) < len(names) or is_prose:
                continue
            for field, name in zip(record, names, strict=True):
                if not len(field) and (field.text or "").strip():
                    field.text = f"{name}: {field.text}"
        return Extracted(text="\n".join(filter(None, map(one_line, root.itertext()))))
    channel = next((node for node in root.iter() if _name(node) in ("channel", "feed")), root)
    title = _text(channel, "title")
    blocks, links = [f"# {title}"] if title else [], list[str]()
    for entry in entries:
        name, link = _text(entry, "title") or "Untitled", _link(entry, url)
        blocks.append(f"## [{name}]({link})" if link else f"## {name}")
        links.append(link)
        if date := _text(entry, "pubDate", "published", "updated", "date"):
            blocks.append(date)
        if body := _raw(entry, "encoded", "content", "description", "summary"):
            blocks.append(markup.read_html(body, url).text if "<" in body else body.strip())
    return Extracted(
        text="\n\n".join(blocks),
        title=title,
        language=_text(channel, "language"),
        description=_text(channel, "description", "subtitle"),
        links=tuple(dict.fromkeys(filter(None, links))),
    )


def _link(node: ElementTree.Element, url: str) -> str:
    for child in node:
        if _name(child) == "link" and child.get("rel", "alternate") == "alternate":
            with suppress(ValueError):
                link = urls.join(url, (child.get("href") or child.text or "").strip())
                return link if urls.is_web_url(link) else ""
            break
    return ""


def _text(node: ElementTree.Element, *names: str) -> str:
    return one_line(_raw(node, *names))


def _raw(node: ElementTree.Element, *names: str) -> str:
    """The text of the first child of one of these names, in the order of the names."""
    for name in names:
        for child in node:
            if _name(child) == name and (text := "".join(child.itertext())).strip():
                return text
    return ""


def _name(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
