"""Outlook messages to Markdown: who wrote to whom, the text, and the names of what is attached.

Above sits `extract`; below, `compound` and `markup`. Attachments are named and not opened.
"""

from __future__ import annotations

import struct

from nexi.extract import charset, markup
from nexi.extract.words import Extracted, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats.compound import CompoundFile, read_filetime
from nexi.formats.containers import broken_error, build_extracted

_SUBJECT, _SENDER, _ADDRESS, _TO, _CC, _BODY, _HTML = "0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013"
_LONG_NAME, _SHORT_NAME = "3707", "3704"
_TIMES = (0x00390040, 0x0E060040)  # sent, delivered
_HEAD_BYTES, _ENTRY_BYTES = 32, 16


def read_msg(data: bytes, max_chars: int) -> Extracted:
    """One message. Raises FetchError."""
    file = CompoundFile(data)
    if "__properties_version1.0" not in file:
        raise broken_error("it is no message")
    entries = file.read("__properties_version1.0")
    times: dict[int, str] = {}
    for at in range(_HEAD_BYTES, len(entries) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        (tag,) = struct.unpack_from("<I", entries, at)
        if tag in _TIMES:
            times[tag] = read_filetime(entries, at + 8)
    day = next((times[tag] for tag in _TIMES if times.get(tag)), "")
    subject = one_line(_text(file, _SUBJECT))
    address = _text(file, _ADDRESS)
    sender = one_line(" ".join(filter(None, (_text(file, _SENDER), f"<{address}>" if "@" in address else ""))))
    lines = (("From", sender), ("To", _text(file, _TO)), ("Cc", _text(file, _CC)), ("Date", day))
    with MarkdownWriter(max_chars) as writer:
        writer.add_heading(1, subject or "(no subject)")
        writer.add_block("  \n".join(f"{name}: {one_line(value)}" for name, value in lines if value))
        html = file.read(f"__substg1.0_{_HTML}0102")
        if body := _text(file, _BODY):
            writer.add_block(body.replace("\r\n", "\n"))
        elif html:
            writer.add_block(markup.whole_text(charset.decode_body(html, "text/html"), ""))
        folders = dict.fromkeys(path.partition("/")[0] for path in file.streams if path.startswith("__attach_"))
        names = [_text(file, _LONG_NAME, f"{f}/") or _text(file, _SHORT_NAME, f"{f}/") or "without a name" for f in folders]
        if names:
            writer.add_paragraph(f"[attachments, not read: {', '.join(one_line(name)[:200] for name in names)[:2_000]}]")
    return build_extracted(writer, {"title": subject, "author": sender, "published": day})


def _text(file: CompoundFile, tag: str, folder: str = "") -> str:
    if wide := file.read(f"{folder}__substg1.0_{tag}001F"):
        return wide.decode("utf-16-le", "replace").replace("\0", "")
    return file.read(f"{folder}__substg1.0_{tag}001E").decode("cp1252", "replace").replace("\0", "")
