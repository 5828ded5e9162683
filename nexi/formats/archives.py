"""Zip archives to Markdown: the chapters of an EPUB book, and of any other archive each document that can be read.

Above sits `extract`, which also reads the documents inside; below, `containers` unpacks them under caps and `markup` writes
chapters. An archive inside an archive is not opened, and neither are pictures. All has one allowance of bytes and of time.
"""

from __future__ import annotations

import posixpath
import time
from urllib.parse import unquote

from nexi.errors import FetchError
from nexi.extract import charset, markup
from nexi.extract.words import Extracted, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import BoundedArchive, broken_error, encrypted_error
from nexi.formats.ocr import Recognition

MAX_CHAPTERS = 2_000
MAX_TAGS = 300_000  # of all chapters but the last that is read; a long novel has a fifth of that
MAX_DOCUMENTS = 500
MAX_CPU_S = 15.0
MAX_NAMED_CHARS = 2_000
_NOT_OPENED = ("application/zip", "image/", "multipart/related", "application/warc")


def read_epub(data: bytes, max_chars: int) -> Extracted:
    """The chapters of a book in their order. Raises FetchError."""
    archive = BoundedArchive(data)
    container = archive.find_elements("META-INF/container.xml", "rootfile")
    place = next((a["full-path"] for _, a, _ in container if "full-path" in a), "")
    if place not in archive:
        raise broken_error("it does not name its contents")
    folder = posixpath.dirname(place)
    parts = archive.find_elements(place, "title", "creator", "language", "date", "description", "item", "itemref")
    about = {name: one_line(text) for name, _, text in reversed(parts)}  # what comes first
    items = {a.get("id", ""): a for name, a, _ in parts if name == "item"}
    paths: list[str] = []  # of the book's spine, without its own table of contents
    for name, attributes, _ in parts:
        item = items.get(attributes.get("idref", "")) if name == "itemref" else None
        if item and "html" in item.get("media-type", "") and "nav" not in item.get("properties", "").split():
            paths.append(posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "").partition("#")[0]))))
    references = archive.find_elements("META-INF/encryption.xml", "CipherReference")
    if not {unquote(a.get("URI", "")) for _, a, _ in references}.isdisjoint(paths):  # an encrypted font does not matter
        raise encrypted_error()
    tags = 0
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(paths) > MAX_CHAPTERS
        for path in paths[:MAX_CHAPTERS]:
            if tags > MAX_TAGS:
                writer.truncated = True
                break
            html = charset.decode_body(archive.read(path), "")
            tags += html.count("<")
            chapter = markup.read_whole(html)
            writer.truncated = writer.truncated or chapter.truncated
            writer.add_block(chapter.text)
    fields = {
        "title": about.get("title", ""),
        "author": about.get("creator", ""),
        "language": about.get("language", "")[:35],
        "published": about.get("date", ""),
        "description": one_line(markup.read_whole(about.get("description", "")).text),
    }
    return writer.build_extracted(fields)


def read_zip(data: bytes, max_chars: int, recognition: Recognition = Recognition()) -> Extracted:  # noqa: B008 - frozen
    """The documents of an archive, in its order, each under its name; the others are named. Raises FetchError."""
    from nexi.formats import extract, find_type
    from nexi.formats.registry import is_readable

    archive = BoundedArchive(data)
    unread, start_time = list[str](), time.process_time()
    names = [name for name in archive.names if not name.endswith("/") and "__MACOSX/" not in name]
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(names) > MAX_DOCUMENTS
        for name in names[:MAX_DOCUMENTS]:
            if time.process_time() - start_time > MAX_CPU_S:
                writer.truncated = True
                break
            try:
                body = archive.read(name)
                kind = find_type(body, name)
                if kind.startswith(_NOT_OPENED) or not is_readable(kind):
                    unread.append(name)
                    continue
                document = extract(body, kind, "", max_chars=max_chars, recognition=recognition)
            except FetchError:
                unread.append(name)
                continue
            writer.truncated = writer.truncated or document.truncated
            writer.add_heading(1, one_line(name))
            writer.add_block(document.text)
        names_of_unread = ", ".join(map(one_line, unread))
        if len(unread) == len(names):
            cause, fix = f"it holds {names_of_unread[:300] or 'nothing'}", "unpack it and give nexi the files inside"
            message = "the archive holds no document that nexi reads"
            raise FetchError(message, reason="content_type", cause=cause, fix=fix)
        if unread:
            writer.add_paragraph(f"[not read: {names_of_unread[:MAX_NAMED_CHARS]}]")
    return writer.build_extracted({})
