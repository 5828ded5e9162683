"""Zip archives of documents: each that can be read under its name, the others named.

Above sits `extract`, which also reads the documents inside; below, `containers` unpacks them under caps. An archive inside an
archive is not opened, and neither are pictures. All of it has one allowance of bytes and of time.
"""

from __future__ import annotations

import time

from nexi.errors import FetchError
from nexi.extract.words import Extracted, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats.containers import BoundedArchive, build_extracted
from nexi.formats.ocr import Recognition

MAX_DOCUMENTS = 500
MAX_CPU_S = 15.0
MAX_NAMED_CHARS = 2_000
_NOT_OPENED = ("application/zip", "image/", "multipart/related", "application/warc")


def read_zip(data: bytes, max_chars: int, recognition: Recognition = Recognition()) -> Extracted:  # noqa: B008 - frozen
    """The documents of an archive, in its order. Raises FetchError."""
    from nexi.formats import extract, find_type
    from nexi.formats.registry import is_readable

    archive = BoundedArchive(data)
    unread, start_time = list[str](), time.process_time()
    names = [name for name in archive.names() if not name.endswith("/") and "__MACOSX/" not in name]
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
        if len(unread) == len(names):
            raise FetchError(
                "the archive holds no document that nexi reads",
                reason="content_type",
                cause=f"it holds {', '.join(map(one_line, unread))[:300] or 'nothing'}",
                fix="unpack it and give nexi the files inside",
            )
        if unread:
            writer.add_paragraph(f"[not read: {', '.join(map(one_line, unread))[:MAX_NAMED_CHARS]}]")
    return build_extracted(writer, {})
