"""What every page store promises: one suite over memory, files and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.ports import PageStore
from nexi.runs.directory import FilePages, MemoryPages
from nexi.team.postgres.runs import _PostgresPages
from nexi.types import content_digest

TEXTS = ["The Moon is far.", "", "a\r\nb\rc\n", "日本語 \U0001f315", "half \ud83c of a pair", "x" * 1_000_000]


@pytest.fixture(params=["memory", "files", "postgres"])
def make(request: pytest.FixtureRequest) -> Callable[[Path], PageStore]:
    """How to make a store of a kind over a folder."""
    if request.param == "memory":
        return lambda _: MemoryPages()
    if request.param == "files":
        return FilePages
    database, owner = request.getfixturevalue("database"), request.getfixturevalue("make_person")()
    return lambda _: _PostgresPages(database, owner)


@pytest.mark.parametrize("text", TEXTS, ids=["words", "empty", "line ends", "unicode", "surrogate", "long"])
async def test_a_text_comes_back_word_for_word_under_its_digest(
    make: Callable[[Path], PageStore], tmp_path: Path, text: str
) -> None:
    store = make(tmp_path / "pages")
    digest = await store.put(text)
    assert (digest, await store.get(digest)) == (content_digest(text), text)


async def test_putting_a_text_twice_keeps_one(make: Callable[[Path], PageStore], tmp_path: Path) -> None:
    store = make(tmp_path / "pages")
    assert len({await store.put("same") for _ in range(3)}) == 1
    assert await store.get(content_digest("same")) == "same"


async def test_texts_put_at_once_are_all_kept(make: Callable[[Path], PageStore], tmp_path: Path) -> None:
    store = make(tmp_path / "pages")
    texts = [f"page {i % 10}" for i in range(40)]
    digests = await asyncio.gather(*map(store.put, texts))
    assert [await store.get(d) for d in digests] == texts


@pytest.mark.parametrize("digest", [content_digest("never put"), "", "../../etc/passwd", "g" * 64, "A" * 64])
async def test_what_was_never_put_is_none(make: Callable[[Path], PageStore], tmp_path: Path, digest: str) -> None:
    assert await make(tmp_path / "pages").get(digest) is None
