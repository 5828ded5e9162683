"""Page texts by content hash, on disk or in memory. `app` hands these out as the port PageStore."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from nexi import files
from nexi.types import content_digest

_DIGEST = re.compile(r"[0-9a-f]{64}")


class FilePages:
    """Texts by content hash: `pages/ab/abcdef….txt`."""

    def __init__(self, pages_dir: Path) -> None:
        self.root = pages_dir

    async def put(self, text: str) -> str:
        """Keep a text; it is on the disk when this returns, so that a fact may name it. Raises StoreError."""
        return await asyncio.to_thread(self._put, text)

    async def get(self, digest: str) -> str | None:
        """The text, or None when it is absent or no longer what its name says."""
        return await asyncio.to_thread(self.read_text, digest)

    def path_of(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}.txt"

    def _put(self, text: str) -> str:
        data, digest = text.encode("utf-8", "surrogatepass"), content_digest(text)
        path = self.path_of(digest)
        with files.translate_os_errors("Could not keep the text of a page", self.root):
            if self.read_text(digest) is not None:
                os.utime(path)
                files.sync_directory(path.parent)  # another process may have renamed it a moment ago
            else:
                if not path.parent.is_dir():
                    files.make_private_directory(path.parent)
                    files.sync_directory(self.root)
                    files.sync_directory(self.root.parent)
                files.replace_file(path, data, is_durable=True)
        return digest

    def read_text(self, digest: str) -> str | None:
        """What `get` returns, for code that is already in a thread."""
        if not _DIGEST.fullmatch(digest):
            return None
        try:
            text = self.path_of(digest).read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            return None
        return text if content_digest(text) == digest else None


class MemoryPages:
    """Page texts that last as long as the process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def put(self, text: str) -> str:
        digest = content_digest(text)
        self._texts[digest] = text
        return digest

    async def get(self, digest: str) -> str | None:
        return self._texts.get(digest)


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
