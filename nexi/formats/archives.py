"""EPUB to Markdown: an archive of HTML pages.

Above sits `extract`; below, `containers` reads the archive under caps and `markup` writes the Markdown of each page.
"""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from nexi.extract import charset, markup
from nexi.extract.words import Extracted, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats.containers import BoundedArchive, broken_error, build_extracted, encrypted_error

MAX_CHAPTERS = 2_000
MAX_TAGS = 300_000  # of all chapters but the last that is read; a long novel has a fifth of that


def read_epub(data: bytes, max_chars: int) -> Extracted:
    """The chapters of a book in their order. Raises FetchError."""
    archive = BoundedArchive(data)
    container = archive.find_elements("META-INF/container.xml", "rootfile")
    place = next((a["full-path"] for _, a, _ in container if "full-path" in a), "")
    if place not in archive:
        raise broken_error("it does not name its contents")
    folder = posixpath.dirname(place)
    parts = archive.find_elements(place, "title", "creator", "language", "date", "description", "item", "itemref")
    about: dict[str, str] = {}
    for name, _, text in parts:
        about.setdefault(name, one_line(text))
    items = {a.get("id", ""): a for name, a, _ in parts if name == "item"}
    paths: list[str] = []  # of the book's spine, without its own table of contents
    for name, attributes, _ in parts:
        item = items.get(attributes.get("idref", "")) if name == "itemref" else None
        if item and "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split():
            paths.append(posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "").partition("#")[0]))))
    references = archive.find_elements("META-INF/encryption.xml", "CipherReference")
    if not {unquote(a.get("URI", "")) for _, a, _ in references}.isdisjoint(paths):  # an encrypted font does not matter
        raise encrypted_error()
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(paths) > MAX_CHAPTERS
        tags = 0
        for path in paths[:MAX_CHAPTERS]:
            if tags > MAX_TAGS:
                writer.truncated = True
                break
            html = charset.decode_body(archive.read(path), "")
            tags += html.count("<")
            writer.truncated = writer.truncated or markup.is_cut(html)
            writer.add_block(markup.whole_text(html, ""))
    fields = {
        "title": about.get("title", ""),
        "author": about.get("creator", ""),
        "language": about.get("language", "")[:35],
        "published": about.get("date", ""),
        "description": one_line(markup.whole_text(about.get("description", ""), "")),
    }
    return build_extracted(writer, fields)
