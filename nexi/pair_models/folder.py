"""A cross-encoder as a folder: an ONNX file, its tokenizer and its config, and a manifest that pins them.

A folder is the user's own, or is fetched as it was published: addresses, revisions, sizes, hashes and licences are in
`published.json`, and a file that is not byte for byte the pinned one is refused, wherever it came from. Which output means
"supported" and how long a text may be is read from the model's own config, never guessed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta, Struct

from nexi.errors import ConfigError, NexiError, StoreError
from nexi.files import make_private_directory, store_error, translate_os_errors
from nexi.net.trust import MACHINE, Trust

MANIFEST = "manifest.json"
MODEL, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
REQUIRED = (MODEL, TOKENIZER, CONFIG)
OPTIONAL = ("tokenizer_config.json",)
# Where published folders keep the model, the smaller one first.
MODEL_PLACES = (MODEL, "onnx/model_quantized.onnx", "onnx/model_quint8_avx2.onnx", "onnx/model_int8.onnx", "onnx/model.onnx")
MAX_MODEL_BYTES = 2_000_000_000
MAX_TEXT_BYTES = 60_000_000
DEFAULT_MAX_TOKENS = 512
MAX_MAX_TOKENS = 2_048
VERSION = 1
CONNECT_S = 15.0
IDLE_S = 60.0
MAX_REDIRECTS = 5
CHUNK_BYTES = 1 << 18

_SUPPORTED = re.compile(r"entail(ment|ed|s)?|support(ed|s)?|consistent|faithful|factual|grounded")
_CONTRADICTED = re.compile(r"contradict(ion|ed|s|ory)?|refut(ed|es|ation)|conflict(ing|s)?")
REINSTALL = "install it again: nexi proof install"


class Labels(Struct, frozen=True):
    """Which outputs of a model mean what; a single output is a probability of support."""

    count: int
    supported: int
    contradicted: int | None = None


class ModelFolder(Struct, frozen=True):
    """What the manifest says: `files` are names with the SHA-256 they had when they were installed."""

    path: Path
    name: str
    files: Mapping[str, str] = {}
    source: str = ""
    revision: str = ""
    licence: str = ""
    languages: tuple[str, ...] = ()
    temperature: Annotated[float, Meta(ge=0.01, le=100)] = 1.0

    @property
    def digest(self) -> str:
        """Names these very files: another model, or another version of it, has another one."""
        return hashlib.sha256(json.dumps(sorted(self.files.items())).encode()).hexdigest()[:16]

    def check_files(self) -> None:
        """Compare every file with its pinned hash. Raises StoreError."""
        for name, digest in self.files.items():
            if _file_digest(self.path / name) != digest:
                cause = f"{name} has changed since it was installed ({self.path})"
                raise StoreError(f"{self.name} is not used", cause=cause, fix=REINSTALL)

    def labels(self) -> Labels:
        """The meaning of the model's outputs by its config. Raises NexiError where the names do not say it."""
        config = _read_json(self.path / CONFIG)
        id2label = config["id2label"] if isinstance(config.get("id2label"), Mapping) else {}
        names = {str(key): str(name).strip().casefold() for key, name in id2label.items()}
        count = len(names) or config.get("num_labels")
        if count == 1:
            return Labels(1, 0)
        if set(names) == {str(n) for n in range(len(names))}:
            supported = [int(n) for n, name in names.items() if _SUPPORTED.fullmatch(name)]
            contradicted = [int(n) for n, name in names.items() if _CONTRADICTED.fullmatch(name)]
            if len(supported) == 1 and len(contradicted) <= 1:
                return Labels(len(names), supported[0], contradicted[0] if contradicted else None)
        label_list = ", ".join(names.values())[:200] or "none"
        cause = f"id2label in config.json has: {label_list}"
        fix = 'name them there, like {"0": "contradiction", "1": "entailment", "2": "neutral"}'
        raise NexiError("the model's labels do not say which one means supported", cause=cause, fix=fix)

    def max_tokens(self) -> int:
        """How many tokens a pair may have: the smallest number that the model's files give."""
        config, path = _read_json(self.path / CONFIG), self.path / OPTIONAL[0]
        tokenizer = _read_json(path) if path.exists() else {}
        limits = (config.get("max_position_embeddings"), tokenizer.get("model_max_length"))
        numbers = [size for size in limits if isinstance(size, int | float) and not isinstance(size, bool)]
        sizes = [int(size) for size in numbers if 16 <= size < 1e6]
        if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
            most = config.get("max_position_embeddings")
            sizes = [size - 2 if size == most else size for size in sizes]  # two positions are taken
        return min(*sizes, MAX_MAX_TOKENS) if sizes else DEFAULT_MAX_TOKENS


def installed_model(root: Path) -> ModelFolder | None:
    """The model that is installed under `root`, by its manifest. Raises StoreError where that cannot be used."""
    return read_manifest(root / "model") if (root / "model").is_dir() else None


def read_manifest(path: Path) -> ModelFolder:
    """A folder by its manifest. Raises StoreError where that cannot be used."""
    value = _read_json(path / MANIFEST)
    try:
        folder = msgspec.convert({**value, "path": path}, ModelFolder, strict=False)
    except msgspec.ValidationError:
        folder = None
    is_safe = folder and set(REQUIRED) <= set(folder.files) and all(re.fullmatch(r"[\w.-]+", file) for file in folder.files)
    if folder is None or not is_safe or value.get("version") != VERSION:
        raise StoreError("The installed model cannot be used", cause=f"{path / MANIFEST} is damaged", fix=REINSTALL)
    return folder


class PublishedFile(Struct, frozen=True):
    name: str
    path: str
    bytes: int
    sha256: str


class PublishedModel(Struct, frozen=True):
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


def gather_files(folder: Path) -> dict[str, Path]:
    """The files of a model in a folder of the user's, by the name they get. Raises StoreError naming what is missing."""
    others = sorted(folder.glob("*.onnx"))
    only = others if len(others) == 1 else []
    model = next((path for path in (*map(folder.joinpath, MODEL_PLACES), *only) if path.is_file()), None)
    files = {MODEL: model} if model else {}
    files |= {name: folder / name for name in (TOKENIZER, CONFIG, *OPTIONAL) if (folder / name).is_file()}
    if lacking := [name for name in REQUIRED if name not in files]:
        fix = "export it to ONNX beside its tokenizer.json and config.json, or name a published model"
        raise StoreError(f"{folder} holds no model that can be used", cause=f"{', '.join(lacking)} is missing", fix=fix)
    return files


def describe_folder(folder: Path) -> dict[str, Any]:
    """What the maker of a folder says of it, from a manifest of its own."""
    path = folder / MANIFEST
    value = _read_json(path) if path.is_file() else {}
    return {key: value[key] for key in ("name", "licence", "languages", "temperature") if key in value}


def stage_files(root: Path, files: Mapping[str, Path], described: Mapping[str, Any]) -> Path:
    """Copy files beside the place they are for, with a manifest that pins them; `put_in_place` comes when they were tried."""
    with translate_os_errors("The model could not be installed", root):
        make_private_directory(root)
        staged = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        for name, path in files.items():
            if path.stat().st_size > (MAX_MODEL_BYTES if name == MODEL else MAX_TEXT_BYTES):
                raise StoreError(f"{path} is too large", cause=f"{path.stat().st_size:,} bytes", fix="use a smaller model")
            shutil.copyfile(path, staged / name)
        manifest = {"version": VERSION, "files": {name: _file_digest(staged / name) for name in files}, **described}
        (staged / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return staged


def put_in_place(staged: Path, root: Path) -> None:
    """Make a staged folder the installed one; the model before it goes only then. Raises StoreError."""
    old, place = Path(f"{staged}.old"), root / "model"
    with translate_os_errors("The model could not be installed", root):
        if place.exists():
            place.rename(old)
        staged.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def remove_model(root: Path) -> bool:
    """Remove the installed model and what a broken installation left; whether there was one. Raises StoreError."""
    there = (root / "model").exists()
    with translate_os_errors("The model could not be removed", root):
        if root.exists():
            shutil.rmtree(root)
    return there


def _file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises StoreError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError("The model cannot be read", cause=f"{error.strerror or error} ({path})", fix=REINSTALL) from error


def _read_json(path: Path) -> dict[str, Any]:
    """A small JSON object. Raises StoreError."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(1_000_000))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError("The model cannot be used", cause=f"{path.name} cannot be read: {error}", fix=REINSTALL) from error
    if not isinstance(value, dict):
        raise StoreError("The model cannot be used", cause=f"{path.name} is no JSON object", fix=REINSTALL)
    return value
