"""E-mail to Markdown: messages, mailboxes, Outlook's messages, and web pages saved as MHTML, which are e-mails of a page.

Above sits `extract`; below, the standard library's e-mail parser, `containers` and `markup`. Attachments are named and not
opened, and nothing that a message links to is fetched.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import cast

from msgspec.structs import replace

from nexi.extract import Extracted, Part, charset, markup, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import CompoundFile, broken_error, read_filetime

NO_SUBJECT = "(no subject)"
MAX_PARTS = 1_000
MAX_DEPTH = 20
MAX_HEADER_CHARS = 4_000  # of one header; the library takes quadratic time for lists of addresses and parameters
MAX_ENCODED_LINES = 8_000  # of one attachment, which are some 600 kB; the rest of it is not looked at

_ENCODED = re.compile(rb"^(?:[A-Za-z0-9+/]{40,}+\r?\n)++", re.MULTILINE)  # from the start of a line, and without a way back
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]{3,200}\n")
_PARSER_FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError, IndexError)
# What Outlook calls its properties.
_SUBJECT, _SENDER, _ADDRESS, _TO, _CC, _BODY, _HTML = "0037", "0C1A", "0C1F", "0E04", "0E03", "1000", "1013"
_LONG_NAME, _SHORT_NAME = "3707", "3704"
_TIMES = (0x00390040, 0x0E060040)  # sent, delivered
_HEAD_BYTES, _ENTRY_BYTES = 32, 16


class _ShortHeaders(EmailPolicy):
    """Cuts a header before it is taken apart."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER_CHARS]


def read_eml(data: bytes, max_chars: int) -> Extracted:
    """One message: who wrote it to whom, its text, and the names of its attachments. Raises FetchError."""
    message = _parse_message(data)
    with MarkdownWriter(max_chars) as writer:
        _write_message(message, writer, 1)
    about = {"title": _header(message, "subject"), "author": _header(message, "from"), "published": _date_of(message)}
    return writer.build_extracted(about)


def read_mbox(data: bytes, max_chars: int) -> Extracted:
    """The messages of a mailbox, one after the other. Raises FetchError."""
    starts, parts = [match.start() for match in _FROM_LINE.finditer(data)], list[Part]()
    if starts[:1] != [0]:
        raise broken_error("it has no messages")
    with MarkdownWriter(max_chars) as writer:
        for start, end in pairwise([*starts, len(data)]):
            message = _parse_message(data[data.find(b"\n", start + 2) + 1 : end])
            subject = _header(message, "subject") or NO_SUBJECT
            parts.append(Part(writer.begin_part(), subject, _header(message, "from"), _date_of(message)))
            _write_message(message, writer, 2)
    page = writer.build_extracted({"published": max((part.published for part in parts), default="")})
    return replace(page, parts=tuple(part for part in parts if part.start < len(page.text)))


def read_mhtml(data: bytes, max_chars: int) -> Extracted:
    """The page that was saved. Raises FetchError."""
    message = _parse_message(data)
    page = next((part for part in _parts_of(message) if part.get_content_type() == "text/html"), None)
    if page is None:
        raise broken_error("there is no page in it")
    url = _header(page, "content-location") or _header(message, "snapshot-content-location")
    return markup.read_html(_text_of(page), url if url.startswith(("http://", "https://")) else "")


def read_msg(data: bytes, max_chars: int) -> Extracted:
    """One message of Outlook. Raises FetchError."""
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
    subject = one_line(_property_text(file, _SUBJECT))
    address = _property_text(file, _ADDRESS)
    sender = one_line(" ".join(filter(None, (_property_text(file, _SENDER), f"<{address}>" if "@" in address else ""))))
    with MarkdownWriter(max_chars) as writer:
        fields = (("From", sender), ("To", _property_text(file, _TO)), ("Cc", _property_text(file, _CC)), ("Date", day))
        _write_head(writer, 1, subject, {name: one_line(value) for name, value in fields if value})
        html = file.read(f"__substg1.0_{_HTML}0102")
        if body := _property_text(file, _BODY):
            writer.add_block(body.replace("\r\n", "\n"))
        elif html:
            writer.add_block(markup.read_whole(charset.decode_body(html, "text/html")).text)
        folders = dict.fromkeys(path.partition("/")[0] for path in file.streams if path.startswith("__attach_"))
        own_names = ([_property_text(file, tag, f"{folder}/") for tag in (_LONG_NAME, _SHORT_NAME)] for folder in folders)
        names = [next(filter(None, own), "without a name") for own in own_names]
        if names:
            writer.add_paragraph(f"[attachments, not read: {', '.join(one_line(name)[:200] for name in names)[:2_000]}]")
    return writer.build_extracted({"title": subject, "author": sender, "published": day})


def _parse_message(data: bytes) -> EmailMessage:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    try:
        parser = BytesParser(EmailMessage, policy=_ShortHeaders())
        data = _ENCODED.sub(lambda match: b"".join(match[0].splitlines(keepends=True)[:MAX_ENCODED_LINES]), data)
        message = cast(EmailMessage, parser.parsebytes(data))
    except _PARSER_FAULTS as error:
        raise broken_error(str(error)[:200]) from error
    if not message.keys():
        raise broken_error("it has no header")
    return message


def _write_head(writer: MarkdownWriter, level: int, subject: str, fields: Mapping[str, str]) -> None:
    writer.add_heading(level, subject or NO_SUBJECT)
    writer.add_block("  \n".join(f"{name}: {value}" for name, value in fields.items()))


def _property_text(file: CompoundFile, tag: str, folder: str = "") -> str:
    if wide := file.read(f"{folder}__substg1.0_{tag}001F"):
        return wide.decode("utf-16-le", "replace").replace("\0", "")
    return file.read(f"{folder}__substg1.0_{tag}001E").decode("cp1252", "replace").replace("\0", "")


def _write_message(message: EmailMessage, writer: MarkdownWriter, level: int) -> None:
    fields = {name.title(): value for name in ("from", "to", "cc", "date") if (value := _header(message, name))}
    _write_head(writer, level, _header(message, "subject"), fields)
    attachments: list[str] = []
    parts = list(_parts_of(message))
    has_plain = any(_is_text(part, "text/plain") and _text_of(part).strip() for part in parts)
    for part in parts:
        if _is_text(part, "text/plain"):
            writer.add_block(_text_of(part).replace("\r\n", "\n"))
        elif _is_text(part, "text/html"):
            if not has_plain:
                writer.add_block(markup.read_whole(_text_of(part)).text)
        elif not part.is_multipart():
            name = ""
            with suppress(*_PARSER_FAULTS):
                name = one_line(part.get_filename() or "")[:200]
            attachments.append(f"{name or 'without a name'} ({part.get_content_type()})")
    if attachments:
        writer.add_paragraph(f"[attachments, not read: {', '.join(attachments)[:2_000]}]")


def _parts_of(message: EmailMessage, depth: int = 0) -> Iterator[EmailMessage]:
    """The parts that hold something, at most `MAX_PARTS`."""
    if depth > MAX_DEPTH:
        return
    payload = message.get_payload() if message.is_multipart() else None
    if not isinstance(payload, list):
        yield message
        return
    for part in payload[:MAX_PARTS]:
        if isinstance(part, EmailMessage):
            yield from _parts_of(part, depth + 1)


def _is_text(part: EmailMessage, kind: str) -> bool:
    return part.get_content_type() == kind and part.get_content_disposition() != "attachment"


def _text_of(part: EmailMessage) -> str:
    content_type = part.get("content-type", "")
    del part["content-type"]  # the library would decode with any codec of Python, and some take quadratic time
    payload = part.get_payload(decode=True)
    if content_type:
        part["content-type"] = content_type
    return charset.decode_body(payload, content_type) if isinstance(payload, bytes) else ""


def _header(message: EmailMessage, name: str) -> str:
    """A header on one line; one that makes the parser fail is as good as none."""
    with suppress(*_PARSER_FAULTS):
        return one_line(str(message.get(name, "")))
    return ""


def _date_of(message: EmailMessage) -> str:
    with suppress(*_PARSER_FAULTS):
        return parsedate_to_datetime(_header(message, "date")).isoformat()
    return ""
