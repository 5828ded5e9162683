"""Folders of the user: the names of those that were indexed, which tell nothing of the machine, and the project around one.

Addresses with these names go to stores, logs and models; paths are shown to the user alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from unicodedata import normalize
from urllib.parse import quote, unquote

from nexi.config import Config
from nexi.files import merge_json_object, read_json_object
from nexi.types import content_digest

SCHEME = "file:///"


class Folders:
    """The folders that were indexed, by name, kept in a file of the state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders = _parse_folders(read_json_object(path))  # a lost file is made again by indexing

    def address_of(self, file: Path, root: Path, program: str = "") -> str:
        """The address of a file, under the nearest folder that has a name, else under `root`, which gets one. It names the
        `program` whose vault `root` is, since links to notes are made from their addresses."""
        mark = f"~{program}-" if program else ""
        roots = [(label, folder) for label, folder in self._folders.items() if mark in label and file.is_relative_to(folder)]
        if not roots:
            digest, plain = content_digest(str(root))[:6], re.sub(r"[^\w.-]+", "-", root.name)[:40] or "files"
            label = f"{quote(normalize('NFC', root.name), safe='')}~{program}-{digest}" if program else f"{plain}~{digest}"
            folders = merge_json_object(self._path, {label: str(root)}, "the folder could not be given a name")
            self._folders, roots = _parse_folders(folders), [(label, root)]
        label, folder = max(roots, key=lambda pair: len(pair[1].parts))
        return f"{SCHEME}{label}/{quote(file.relative_to(folder).as_posix())}"

    def path_of(self, url: str) -> Path | None:
        """Where the file of an address lies; None for an address that is not ours."""
        label, _, rest = url.removeprefix(SCHEME).partition("#")[0].partition("/")
        folder = self._folders.get(label) if url.startswith(SCHEME) else None
        parts = PurePosixPath(unquote(rest)).parts
        return None if folder is None or ".." in parts else folder.joinpath(*parts)


def _parse_folders(folders: Mapping[str, object]) -> dict[str, Path]:
    return {label: Path(str(folder)) for label, folder in folders.items()}


def with_project(config: Config, folder: Path | None = None) -> Config:
    """The config with the git work tree around a folder, by default the current one, as the code to search, if it names none.
    Doors at which one person sits in one folder ask for it; a server does not, because its folder is not its users'."""
    if config.grep_root or not config.grep_project:
        return config
    try:
        current, home = (folder or Path.cwd()).resolve(), Path.home().resolve()
        outside = {home, *home.parents}  # which hold more than a project
        root = next((f for f in (current, *current.parents) if f not in outside and (f / ".git").exists()), None)
    except (OSError, RuntimeError):
        return config
    return config.override(grep_root=str(root)) if root else config
