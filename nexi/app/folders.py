"""Addresses of the user's own files: a folder has a name that tells nothing of the machine, and only here is it a path.

Addresses go to stores, logs and models; paths are shown to the user alone. Above, `intake` and the doors; below, one small
file. What is in a folder is not known here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from nexi.files import write_json_object
from nexi.types import content_digest

SCHEME = "file:///"


class Folders:
    """The folders that were indexed, by name, kept in a file of the state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders = _read_file(path)

    def address_of(self, file: Path, root: Path) -> str:
        """The address of a file, under the nearest folder that has a name, else under `root`, which gets one."""
        named = [(label, folder) for label, folder in self._folders.items() if file.is_relative_to(folder)]
        if not named:
            named = [(self._name_root(root), root)]
        label, folder = max(named, key=lambda pair: len(pair[1].parts))
        return f"{SCHEME}{label}/{quote(file.relative_to(folder).as_posix())}"

    def path_of(self, url: str) -> Path | None:
        """Where the file of an address lies; None for an address that is not ours."""
        label, _, rest = url.removeprefix(SCHEME).partition("#")[0].partition("/")
        folder = self._folders.get(label) if url.startswith(SCHEME) else None
        parts = PurePosixPath(unquote(rest)).parts
        return None if folder is None or ".." in parts else folder.joinpath(*parts)

    def _name_root(self, root: Path) -> str:
        plain = re.sub(r"[^\w.-]+", "-", root.name)[:40] or "files"
        label = f"{plain}~{content_digest(str(root))[:6]}"
        self._folders[label] = root
        paths = {label: str(folder) for label, folder in self._folders.items()}
        write_json_object(self._path, paths, "the folder could not be given a name")
        return label


def _read_file(path: Path) -> dict[str, Path]:
    try:
        known = json.loads(path.read_bytes())
        return {str(label): Path(str(folder)) for label, folder in known.items()}
    except (OSError, ValueError, AttributeError):
        return {}  # none yet, or one that can be made again by indexing
