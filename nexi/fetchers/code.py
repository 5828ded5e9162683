"""Reads the files that a search of local code has found, so that they can be cited like pages.

Addresses are those of `backends.ripgrep`, relative to one folder; which of them may be read is the session's rule. Nothing
outside the folder is read, neither by `..` nor through a link, and only text.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import unquote

from nexi.errors import FetchError
from nexi.files import is_store_file
from nexi.ports import Clock
from nexi.types import FetchLimits, Page

NAME = "code"
SCHEME = "file:///"
MAX_BYTES = 1_000_000
MAX_LINES = 400  # of a longer file, around the line that its address names


class CodeFetcher:
    """The ContentFetcher port over one folder."""

    name = NAME

    def __init__(self, root: str, clock: Clock) -> None:
        self._root, self._clock = Path(root).expanduser(), clock

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        if not url.startswith(SCHEME):
            raise FetchError("the page is no file of the project", cause="its address is one of the web")
        name, _, line = url.removeprefix(SCHEME).partition("#")
        relative = unquote(name)
        data = await asyncio.to_thread(self._read_file, relative)
        text = data.decode("utf-8", "replace")
        lines, number = text.splitlines(keepends=True), re.fullmatch(r"L(\d{1,9})", line)
        if number and len(lines) > MAX_LINES:  # of a long file, what is around the line that `L12` names
            start = max(0, min(int(number[1]) - MAX_LINES // 2, len(lines) - MAX_LINES))
            text = "".join(lines[start : start + MAX_LINES])
        return Page(
            url,
            text[: limits.max_chars],
            title=relative,
            final_url=url,
            content_type="text/plain",
            downloaded_bytes=len(data),
            truncated=len(text) > limits.max_chars,
            fetched_at=self._clock.now().isoformat(),
            fetcher=NAME,
        )

    def _read_file(self, relative: str) -> bytes:
        try:
            path = (self._root / relative).resolve(strict=True)
            if not path.is_relative_to(self._root.resolve()) or not path.is_file() or is_store_file(path):
                raise _refusal(relative, "it is no file of the project")
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise _refusal(relative, error.strerror or type(error).__name__) from error  # its text would tell the path
        except ValueError as error:
            raise _refusal(relative, str(error)) from error
        if len(data) > MAX_BYTES or b"\0" in data:
            raise _refusal(relative, f"it is no text of at most {MAX_BYTES:,} bytes")
        return data


def _refusal(relative: str, cause: str) -> FetchError:
    """A failure that stands: no other fetcher can read a file of the project."""
    return FetchError(f"{relative[:200]} is not read", reason="blocked", cause=cause)
