"""A small world for the Search API: scripted backends and fetchers behind their ports, and a service over them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi import __version__
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import BackendError, FetchError
from nexi.ports import LLM
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Hit, Page, Query

GOLDEN = Path(__file__).resolve().parent / "golden"
HITS = (
    Hit(
        "https://en.wikipedia.org/wiki/Okapi_BM25",
        "Okapi BM25 - Wikipedia",
        "Okapi BM25 is a ranking function used by search engines...",
    ),
    Hit("https://nlp.example/ir/bm25.html", "Okapi BM25: a non-binary model", "The BM25 weighting scheme, often called Okapi."),
    Hit("https://docs.example/similarity", "Similarity settings", "The default algorithm is BM25.", "2025-11-02"),
    Hit("https://shop.example/bm25", "Buy BM25 today", "Best prices."),
)
PAGES = {
    HITS[0].url: "# Okapi BM25\n\nIn information retrieval, Okapi BM25 is a ranking function.\n\n"
    "It is based on the probabilistic retrieval framework developed in the 1970s and 1980s.",
    HITS[1].url: "# Okapi BM25\n\nThe weighting scheme was developed as a way of building a probabilistic model.",
    HITS[2].url: "# Similarity\n\nThe algorithm is set per field.",
    HITS[3].url: "# Shop\n\nBuy.",
}


class Backend:
    """Hits, or errors that come before them. Records what it was asked."""

    def __init__(self, name: str = "searxng", hits: Sequence[Hit] = HITS, errors: Sequence[Exception] = ()) -> None:
        self.name = name
        self.hits = hits
        self.errors = list(errors)
        self.asked: list[Query] = []

    async def search(self, query: Query) -> list[Hit]:
        self.asked.append(query)
        if self.errors:
            raise self.errors.pop(0)
        return list(self.hits[: query.count])


class Stuck(Backend):
    """A backend that never answers."""

    async def search(self, query: Query) -> list[Hit]:
        self.asked.append(query)
        await asyncio.Event().wait()
        return []


class Fetcher:
    """Pages by URL; an error instead of a page is raised, None is never answered. Records what it was asked."""

    name = "http"

    def __init__(self, pages: Mapping[str, str | FetchError | None] = PAGES) -> None:
        self.pages = pages
        self.asked: list[tuple[str, FetchLimits]] = []

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        self.asked.append((url, limits))
        text = self.pages.get(url, FetchError("the page does not exist", status=404))
        if text is None:
            await asyncio.Event().wait()
        if isinstance(text, FetchError):
            raise text
        assert isinstance(text, str)
        cut = text[: limits.max_chars]
        return Page(
            url,
            cut,
            title=text.partition("\n")[0].lstrip("# "),
            final_url=url,
            content_type="text/html",
            downloaded_bytes=len(text) * 3,
            truncated=len(cut) < len(text),
            fetcher=self.name,
        )


def config(tmp_path: Path, **values: Any) -> Config:
    return Config(**{"base_url": "http://127.0.0.1:9/v1", "model": "scripted", "home": tmp_path / "nexi", **values})


def nexi(
    tmp_path: Path,
    *backends: Any,
    fetcher: Any = None,
    llm: LLM | None = None,
    clock: FakeClock | None = None,
    **values: Any,
) -> Nexi:
    """A Nexi over scripted ports; without a model it has the built-in one only."""
    return Nexi(
        config(tmp_path, **{} if llm else {"model": "extractive"}, **values),
        clock=clock or FakeClock(),
        backends=backends or (Backend(),),
        fetchers=(fetcher or Fetcher(),),
        llms={"judge": llm} if llm else None,
    )


def down(name: str, **more: Any) -> BackendError:
    return BackendError(f"{name} is down", code="unreachable", fix=f"start {name}", **more)


def compare(name: str, text: str) -> None:
    """With the golden file; one that is not there is written, and the test fails until it was read."""
    path = GOLDEN / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was not there and has been written: read it")
    assert text == path.read_text(encoding="utf-8")


def compare_pack(name: str, pack: dict[str, Any]) -> None:
    """A whole response; the version of nexi is the one thing that may change."""
    producer = {**pack["producer"], "version": "x"} if pack["producer"]["version"] == __version__ else pack["producer"]
    compare(name, json.dumps({**pack, "producer": producer}, indent=2, ensure_ascii=False) + "\n")
