"""Published cross-encoders that nexi knows by name, and how their files are fetched.

Addresses, revisions, sizes, hashes and licences are in `published.json`. A file that is not byte for byte the pinned one is
refused, wherever it came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from nexi.errors import ConfigError, NexiError, StoreError
from nexi.files import make_private_directory, store_error
from nexi.net.trust import MACHINE, Trust

__all__ = ["PublishedModel", "download_model", "find_published", "published_models"]

CONNECT_S = 15.0
IDLE_S = 60.0
MAX_REDIRECTS = 5
CHUNK_BYTES = 1 << 18


class PublishedFile(msgspec.Struct, frozen=True):
    name: str
    path: str
    bytes: int
    sha256: str


class PublishedModel(msgspec.Struct, frozen=True):
    """One row of the table. `url` has places for repository, revision and path."""

    name: str
    url: str
    repository: str
    revision: str
    licence: str
    languages: tuple[str, ...]
    files: tuple[PublishedFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def url_of(self, file: PublishedFile, mirror: str = "") -> str:
        """Where a file is fetched; a mirror has the same paths below an address of its own."""
        if mirror:
            return f"{mirror.rstrip('/')}/{quote(file.path)}"
        return self.url.format(repository=self.repository, revision=self.revision, path=quote(file.path))

    def to_dict(self) -> dict[str, Any]:
        source = self.url.format(repository=self.repository, revision=self.revision, path="").rstrip("/")
        about = {"name": self.name, "source": source, "revision": self.revision, "licence": self.licence}
        return {**about, "languages": list(self.languages)}


@lru_cache(maxsize=1)
def published_models() -> Mapping[str, PublishedModel]:
    """The table by name."""
    data = Path(__file__).with_name("published.json").read_bytes()
    return {model.name: model for model in msgspec.json.decode(data, type=tuple[PublishedModel, ...])}


def find_published(name: str) -> PublishedModel:
    """Raises ConfigError naming those there are."""
    models = published_models()
    if name not in models:
        names = ", ".join(sorted(models))
        fix = f"the known ones are {names}; or give a folder with model.onnx, tokenizer.json and config.json"
        raise ConfigError(f"there is no folder and no known model called {name[:100]!r}", fix=fix)
    return models[name]


async def download_model(
    model: PublishedModel,
    folder: Path,
    *,
    mirror: str = "",
    proxy: str | None = None,
    trust: Trust = MACHINE,
    on_bytes: Callable[[int], None] = lambda done: None,
) -> dict[str, Path]:
    """Fetch the files of a model into a folder; `on_bytes` gets how many came so far. Raises NexiError, leaving no file."""
    import httpx2

    total, paths = 0, {file.name: folder / file.name for file in model.files}
    timeout = httpx2.Timeout(IDLE_S, connect=CONNECT_S)
    try:
        make_private_directory(folder)
        async with httpx2.AsyncClient(
            timeout=timeout,
            trust_env=False,
            proxy=proxy or None,
            verify=trust.context() or True,
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
        ) as client:
            for file in model.files:
                await _fetch_file(client, model.url_of(file, mirror), file, paths[file.name], on_bytes, total)
                total += file.bytes
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, NexiError) as error:
        for path in paths.values():
            path.unlink(missing_ok=True)
        if isinstance(error, NexiError):
            raise
        if isinstance(error, OSError):
            raise store_error(f"{model.name} could not be downloaded", folder, error) from error
        cause = " ".join(str(error).split())[:300] or type(error).__name__
        fix = "check the network, or fetch the files elsewhere and give their folder: nexi proof install FOLDER"
        raise NexiError(f"{model.name} could not be downloaded", cause=cause, fix=fix, code="download") from error
    return paths


async def _fetch_file(
    client: Any, url: str, file: PublishedFile, path: Path, on_bytes: Callable[[int], None], before: int
) -> None:
    """One file, counted and hashed as it comes: no more is written than it is known to have."""
    digest, count = hashlib.sha256(), 0
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        with path.open("wb") as target:
            async for chunk in response.aiter_bytes(CHUNK_BYTES):
                count += len(chunk)
                if count > file.bytes:
                    break
                digest.update(chunk)
                target.write(chunk)
                on_bytes(before + count)
    if count != file.bytes or digest.hexdigest() != file.sha256:
        size = f"{count:,} bytes came of {file.bytes:,}" if count != file.bytes else "its SHA-256 is another one"
        fix = "try again; if it stays so, the host serves another file: do not use it"
        raise StoreError(f"{file.path} is not the file that was pinned", cause=size, fix=fix, code="changed")
