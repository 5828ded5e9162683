"""Files and folders of this machine as pages: which files are taken, and what each of them says.

A file that is not taken has a reason in words. Links are not followed, so no loop can be walked. A vault is a folder of notes
that Obsidian or Logseq keeps, known by the settings that these programs leave in it.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import FetchError
from nexi.extract import Extracted, Part, page_of
from nexi.files import is_store_file
from nexi.formats import find_blocks, find_format, find_type, is_readable, read_note, refuse_format, to_text
from nexi.research.report import is_report_name
from nexi.text.words import find_words
from nexi.types import Page

MAX_BYTES = 25_000_000
MAX_CHARS = 20_000_000
CODE_CHARS = 1_100
SOURCE_FOLDERS = ("_sources",)
BACKUPS = ("logseq", "bak")  # earlier versions of every page of a Logseq graph
OWN_STORE = "a knowledge base of nexi"
Program = Literal["obsidian", "logseq"]  # whose folder of notes a vault is
SAME_WORDS = 0.85  # of a twin's words; markup brings some of its own


class _Conventions(Struct, frozen=True):
    """Folders that are passed over, the forms of a text with the preferred one first, and languages by file ending."""

    ignored: frozenset[str]
    forms: tuple[str, ...]
    languages: dict[str, str]


_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Conventions)
_TOP_LEVEL = re.compile(r"\n(?=\n*[^\s#/*}\])])")


def files_in(folder: Path, skip: Callable[[Path, str], object] = lambda path, reason: None) -> Iterator[Path]:
    """The regular files below a folder in the order of their names; `skip` is told what is passed over, and why."""
    folders_left = [folder]
    while folders_left:
        here = folders_left.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            skip(here, error.strerror or "it cannot be read")
            continue
        folders: list[Path] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                skip(path, "a link")
            elif entry.is_dir(follow_symlinks=False):
                if entry.name in _NAMES.ignored or (here.name, entry.name) == BACKUPS:
                    skip(path, "an ignored folder")
                else:
                    folders.append(path)
            elif not entry.is_file(follow_symlinks=False):
                skip(path, "no regular file")
            elif is_store_file(path):
                skip(path, OWN_STORE)
            elif is_report_name(entry.name):  # it must not become a source of the next answer
                skip(path, "a report by nexi")
            else:
                yield path
        folders_left += reversed(folders)


def folders_in(folder: Path) -> Iterator[Path]:
    """The folders below a folder that are looked into."""
    for place, names, _ in os.walk(folder):
        names[:] = [name for name in names if name not in _NAMES.ignored]
        yield from (Path(place, name) for name in names)


class TwinFiles:
    """Files of one folder whose names say that they may be one text in several formats, such as PDF and DOCX. The first in the
    preferred form is taken; another one is its twin when nearly all of its words stand there too."""

    def __init__(self, files: Sequence[Path]) -> None:
        keys = {path: _twin_key(path) for path in files}
        counts = Counter(keys.values())
        self._files = files
        self._shared = {path: key for path, key in keys.items() if counts[key] > 1}
        self._words: dict[tuple[str, ...], tuple[Path, frozenset[str]]] = {}

    def in_order(self) -> list[Path]:
        """The files, those in the preferred form of several before the others."""
        ranks = {form: rank for rank, form in enumerate(_NAMES.forms)}
        return sorted(self._files, key=lambda path: path in self._shared and ranks.get(path.suffix.lower(), len(ranks)))

    def find_twin(self, path: Path, text: str) -> Path | None:
        """The file that was read before with the same text."""
        key = self._shared.get(path)
        if key is None:
            return None
        words = frozenset(find_words(text.casefold()))
        first, first_words = self._words.setdefault(key, (path, words))
        return first if first != path and len(words & first_words) >= SAME_WORDS * len(words) else None


def _twin_key(path: Path) -> tuple[str, ...]:
    """A path without the endings of its formats and without folders of sources."""
    *folders, name = path.parts
    while (suffix := Path(name).suffix).lower() in _NAMES.forms:
        name = name.removesuffix(suffix)
    return (*(folder for folder in folders if folder not in SOURCE_FOLDERS), name.casefold())


async def read_documents(path: Path, url: str, ocr_languages: str = "", whose: Hashable = "") -> list[Page]:
    """The page of a file, or of a mailbox a page for each message, addressed by its number. Raises FetchError."""
    page, parts = await _read_parts(path, url, ocr_languages, whose)
    if not parts:
        return [page]
    ends = [*(part.start for part in parts[1:]), len(page.text)]
    return [
        replace(
            page,
            url=f"{url}#{number}",
            text=page.text[part.start : end].strip(),
            title=part.title,
            author=part.author,
            published=part.published,
            headings=(part.title,),
            truncated=page.truncated and number == len(parts),
        )
        for number, (part, end) in enumerate(zip(parts, ends, strict=True), 1)
    ]


async def read_document(path: Path, url: str, ocr_languages: str = "", whose: Hashable = "") -> Page:
    """The page of a file. Raises FetchError. `ocr_languages` are those of its pictures; people take turns by `whose` it is."""
    return (await _read_parts(path, url, ocr_languages, whose))[0]


async def _read_parts(path: Path, url: str, ocr_languages: str, whose: Hashable) -> tuple[Page, tuple[Part, ...]]:
    data, document = await asyncio.to_thread(_read_file, path)
    if isinstance(document, str):
        from nexi.fetchers.apart import read_apart

        document = await read_apart(data, document, MAX_CHARS, origin="file", languages=ocr_languages, whose=whose)
    kind = path.suffix.lstrip(".").lower()
    language = _NAMES.languages.get(kind)
    page = page_of(
        url,
        document,
        max_chars=MAX_CHARS,
        text=_in_fences(document.text, language) if language else document.text,
        title=path.name if language else document.title or path.name,
        content_type="application/pdf" if kind == "pdf" else "",
        links=(),  # the user did not ask to read what a file links to
        fetcher="file",
        downloaded_bytes=len(data),
    )
    return page, tuple(part for part in document.parts if part.start < len(page.text))


def _read_file(path: Path) -> tuple[bytes, Extracted | str]:
    """A file and what it says; of a document, which is read apart, only its media type."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise FetchError("no regular file")
        if is_store_file(path):
            raise FetchError(OWN_STORE)
        if about.st_size > MAX_BYTES:
            raise FetchError(f"larger than {MAX_BYTES // 1_000_000} MB", reason="too_large")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FetchError(error.strerror or "it cannot be read") from error
    if not data.strip():
        raise FetchError("empty")
    kind = find_type(data, path.name)
    if not is_readable(kind):
        raise refuse_format(kind)
    return data, kind if find_format(kind) else to_text(data, name=path.name)


def _in_fences(code: str, language: str) -> str:
    """Code as Markdown: blocks of its own, cut where something new begins, so that each can be found alone."""
    blocks: list[str] = []
    for part in _TOP_LEVEL.split(code):
        if blocks and len(blocks[-1]) + len(part) < CODE_CHARS:
            blocks[-1] += f"\n{part}"
        else:
            blocks.append(part)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", code)), default=0))
    return "\n\n".join(f"{fence}{language}\n{block.strip(chr(10))}\n{fence}" for block in blocks if block.strip())


class Vault:
    """One vault, with the blocks that its notes refer to; these are looked up when the first reference is met."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder, self.program = folder, program

    def read_page(self, page: Page, file: Path) -> Page:
        """The page of a note, from that of its file; other files of the vault are as they are."""
        if not _is_note(file):
            return page
        note = read_note(page.text, file.name, lambda mark: self._blocks.get(mark, ""))
        tags = tuple(f"#{tag}" for tag in note.tags)
        return replace(page, text=note.text, title=note.title, published=note.published, updated=note.updated, tags=tags)

    @cached_property
    def _blocks(self) -> dict[str, str]:
        blocks: dict[str, str] = {}
        for file in filter(_is_note, files_in(self.folder)):
            with suppress(OSError):
                blocks.update(find_blocks(file.read_text("utf-8", "replace"), file.name))
        return blocks


def _is_note(file: Path) -> bool:
    return file.suffix.lower() == ".md"


def find_vault(folder: Path) -> Vault | None:
    """The vault that a folder is, or lies in."""
    for place in (folder, *folder.parents):
        if (place / ".obsidian").is_dir():
            return Vault(place, "obsidian")
        if (place / "logseq" / "config.edn").is_file():
            return Vault(place, "logseq")
    return None
