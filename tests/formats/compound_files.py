"""Writes compound files as Word 97 and Outlook do: one table of sectors, one list of entries, streams of whole sectors."""

from __future__ import annotations

import struct

_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_SECTOR = 512


def write_compound_file(streams: dict[str, bytes]) -> bytes:
    """Streams by path; each is filled up to 4,096 bytes, below which another table would be needed."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in streams if "/" in path)
    names = ["", *folders, *streams]
    bodies = [data.ljust(4_096, b"\0") for data in streams.values()]
    sizes = [-(-len(body) // _SECTOR) for body in bodies]
    folder_sectors = -(-len(names) // 4)
    table = [_FAT, *range(2, folder_sectors + 1), _END]
    starts = []
    for size in sizes:
        starts.append(len(table))
        table += [*range(len(table) + 1, len(table) + size), _END]
    assert len(table) <= 128
    entries = [_entry(names, number, list(folders), starts, bodies) for number in range(len(names))]
    directory = b"".join(entries).ljust(folder_sectors * _SECTOR, b"\0")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4_096, _END, 0, _END, 0) + struct.pack("<109I", 0, *[_FREE] * 108)
    body = b"".join(body.ljust(size * _SECTOR, b"\0") for body, size in zip(bodies, sizes, strict=True))
    return head + struct.pack("<128I", *table, *[_FREE] * (128 - len(table))) + directory + body


def _entry(names: list[str], number: int, folders: list[str], starts: list[int], bodies: list[bytes]) -> bytes:
    name = names[number]
    siblings = [n for n, other in enumerate(names) if n and other.rpartition("/")[0] == name.rpartition("/")[0]]
    after = [n for n in siblings if n > number]
    children = [n for n, other in enumerate(names) if n and other.rpartition("/")[0] == name and "/" in other] if number else [
        n for n, other in enumerate(names) if n and "/" not in other
    ]  # fmt: skip
    kind = 5 if not number else 1 if name in folders else 2
    stream = number - 1 - len(folders)
    start, size = (starts[stream], len(bodies[stream])) if kind == 2 else (_END, 0)
    written = (name.rpartition("/")[2] or "Root Entry").encode("utf-16-le")
    tree = struct.pack("<III", _FREE, after[0] if number and after else _FREE, children[0] if children else _FREE)
    head = written.ljust(64, b"\0") + struct.pack("<HBB", len(written) + 2, kind, 1) + tree
    return (head + bytes(36) + struct.pack("<IQ", start, size)).ljust(128, b"\0")


def a_word_97_document(text: str, notes: str = "") -> bytes:
    wide, place = (text + notes).encode("utf-16-le"), 1_024
    head = bytearray(place)
    struct.pack_into("<H", head, 0, 0xA5EC)
    struct.pack_into("<II", head, 76, len(text), len(notes))
    pieces = struct.pack("<II", 0, len(text + notes)) + struct.pack("<HIH", 0, place, 0)
    table = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", head, 418, 0, len(table))
    return write_compound_file({"WordDocument": bytes(head) + wide, "0Table": table})


def an_outlook_message(subject: str, body: str, attached: str) -> bytes:
    sent = struct.pack("<IIQ", 0x00390040, 0, 135_000_000_000_000_000)
    texts = {"0037": subject, "0C1A": "A. Leaf", "0C1F": "leaf@garden.example", "0E04": "B. Root", "1000": body}
    streams = {f"__substg1.0_{tag}001F": text.encode("utf-16-le") for tag, text in texts.items()}
    return write_compound_file({
        "__properties_version1.0": bytes(32) + sent, **streams,
        "__attach_version1.0_#00000000/__substg1.0_3707001F": attached.encode("utf-16-le"),
    })  # fmt: skip
