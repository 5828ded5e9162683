"""Vaults: the folders of notes that Obsidian and Logseq keep, known by the settings that these programs leave in them."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from nexi.app.documents import files_in
from nexi.formats import find_blocks, read_note
from nexi.types import Page

__all__ = ["Vault", "find_vault"]

Program = Literal["obsidian", "logseq"]


class Vault:
    """One vault, with the blocks that its notes refer to; these are looked up when the first reference is met."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder, self.program = folder, program

    def read_page(self, page: Page, name: str) -> Page:
        """The page of a note, from that of its file."""
        note = read_note(page.text, name, lambda mark: self._blocks.get(mark, ""))
        tags = tuple(f"#{tag}" for tag in note.tags)
        return replace(page, text=note.text, title=note.title, published=note.published, updated=note.updated, tags=tags)

    @cached_property
    def _blocks(self) -> dict[str, str]:
        blocks: dict[str, str] = {}
        for file in files_in(self.folder):
            if isinstance(file, Path) and is_note(file):
                with suppress(OSError):
                    blocks.update(find_blocks(file.read_text("utf-8", "replace"), file.name))
        return blocks


def is_note(file: Path) -> bool:
    return file.suffix.lower() == ".md"


def find_vault(folder: Path) -> Vault | None:
    """The vault that a folder is, or lies in."""
    for place in (folder, *folder.parents):
        if (place / ".obsidian").is_dir():
            return Vault(place, "obsidian")
        if (place / "logseq" / "config.edn").is_file():
            return Vault(place, "logseq")
    return None
