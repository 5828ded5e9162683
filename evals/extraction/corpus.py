"""The pages that extraction is measured on: annotated ones, documentation, and the pages that answer the mini-webs' questions.

They stay in the archives beside the repository; `zstd` unpacks two of them. Nothing here knows an extractor.
"""

from __future__ import annotations

import io
import json
import random
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

DATA = Path(__file__).resolve().parent.parent.parent.parent / "shared" / "data"
ANNOTATED = Path("extraction") / "pages-600.tar.zst"
PROBES = Path("extraction") / "doc-probes-10.tar.zst"
WEBS = ("dev", "multi", "docs")
SEED = 20

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page:
    """A page and what people say its content is."""

    html: str
    url: str
    kind: str
    text: str
    published: str = ""


@dataclass(frozen=True)
class Question:
    """A question of a mini-web, its answers, and the pages that hold one."""

    answers: tuple[str, ...]
    urls: tuple[str, ...]


def annotated(data: Path) -> list[Page]:
    files = _unpacked(data / ANNOTATED)
    truths = sorted(name for name in files if name.parent.name == "ground-truth")
    return [_page(json.loads(files[name]), files[name.parent.parent / "html" / f"{name.stem}.html"]) for name in truths]


def _page(record: dict[str, Any], html: str) -> Page:
    kind = record["_internal"]["page_type"]["primary"]
    truth = record["ground_truth"]
    return Page(html, record["url"], kind, truth["main_content"], (truth["publish_date"] or "")[:10])


def probes(data: Path) -> dict[str, str]:
    """Documentation pages by name."""
    return {name.stem: text for name, text in sorted(_unpacked(data / PROBES).items()) if name.suffix == ".html"}


def web(data: Path, name: str) -> tuple[list[Question], dict[str, str]]:
    """The questions of a mini-web, and the HTML of the pages that answer them."""
    with tarfile.open(data / "miniweb" / f"{name}.tar.gz") as archive:
        asked = list(_lines(archive, f"{name}/questions.jsonl"))
        questions = [Question(tuple(q["answers"]), tuple(q["gold_urls"])) for q in asked]
        wanted = {url for question in questions for url in question.urls}
        pages = {page["url"]: page["html"] for page in _lines(archive, f"{name}/pages.jsonl") if page["url"] in wanted}
    return questions, pages


def sample(items: Sequence[Item], size: int) -> list[Item]:
    """A seeded sample; all of them for no size."""
    return random.Random(SEED).sample(items, size) if 0 < size < len(items) else list(items)


def missing(data: Path) -> list[str]:
    wanted = [ANNOTATED, PROBES, *(Path("miniweb") / f"{name}.tar.gz" for name in WEBS)]
    return [str(path) for path in wanted if not (data / path).exists()]


def _unpacked(path: Path) -> dict[Path, str]:
    packed = subprocess.run(["zstd", "-dc", "--long=27", str(path)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {Path(m.name): archive.extractfile(m).read().decode("utf-8", "replace") for m in archive if m.isfile()}  # type: ignore[union-attr]


def _lines(archive: tarfile.TarFile, name: str) -> Iterator[dict[str, Any]]:
    file = archive.extractfile(name)
    assert file is not None
    yield from map(json.loads, file)
