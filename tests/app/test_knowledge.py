"""The store of a config: which one, with which vectors, and what happens when they do not fit."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.app.factory import PortFactory
from nexi.app.gate import open_gate
from nexi.app.intake import DocumentIndexing
from nexi.app.knowledge import LocalBackend, LocalFetcher, _join_passages
from nexi.config import Config
from nexi.errors import BackendError, FetchError, StoreError
from nexi.events import Delta, Fact, Warned
from nexi.install import install_command
from nexi.knowledge.indexing import cut_text
from nexi.types import Embedded, FetchLimits, Page, Passage, Query
from tests.raising import has_code

Make = Callable[..., Config]
MOON = Page(
    "https://moon.example/facts", "# Moon\n\nThe Moon is 384,400 km from Earth.", "Moon", fetched_at="2026-01-01T00:00:00+00:00"
)
NOTE = Page(
    "file:///notes~abc123/a.md", "# Shed\n\nThe key hangs behind the door.", "Shed", fetched_at="2026-01-02T00:00:00+00:00"
)


class Letters:
    """Vectors of letters: enough to have some."""

    dims = 4

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        self.texts += texts
        return Embedded(tuple(array("f", [0.5, 0.5, 0.5, 0.5]) for _ in texts))


class Heard:
    def __init__(self) -> None:
        self.facts: list[Fact] = []

    async def __call__(self, fact: Fact) -> None:
        self.facts.append(fact)

    def delta(self, delta: Delta) -> None:
        return None


def with_embedder(monkeypatch: pytest.MonkeyPatch, embedder: Letters | None) -> None:
    monkeypatch.setattr(PortFactory, "_make_embedder", lambda _: embedder)


async def store(config: Config, *pages: Page, embeds: bool = True) -> None:
    async with Nexi(config) as nexi:
        indexer = await nexi.knowledge().indexer(nexi.gate(), embeds=embeds)
        for page in pages:
            await indexer.index(page)


async def test_nothing_is_opened_before_it_is_asked(make_config: Make) -> None:
    config = make_config()
    async with Nexi(config) as nexi:
        assert nexi.knowledge().may_hold_something() is False
        assert await nexi.knowledge().holds_something() is False
    assert not config.knowledge_path.exists()


async def test_no_embedder_is_loaded_for_a_store_without_vectors(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    config, letters = make_config(), Letters()
    with_embedder(monkeypatch, letters)
    await store(config, MOON, embeds=False)
    async with Nexi(config) as nexi:
        outcome = await nexi.find_known("moon")
        behind = await nexi.knowledge().embeds_behind_a_run()
    assert ([hit.url for hit in outcome.hits], letters.texts, behind) == ([MOON.url], [], False)


async def test_the_hybrid_switch_leaves_vectors_alone(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    config, letters = make_config(), Letters()
    with_embedder(monkeypatch, letters)
    await store(config, MOON, NOTE)
    embedded_count = len(letters.texts)
    async with Nexi(replace(config, use_hybrid_search=False)) as nexi:
        outcome = await nexi.find_known("moon")
    assert (outcome.hits[0].url, embedded_count, len(letters.texts)) == (MOON.url, 2, 2)


async def test_what_runs_kept_gets_its_vectors_later(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    config, letters = make_config(), Letters()
    with_embedder(monkeypatch, letters)
    await store(config, MOON, NOTE, embeds=False)
    async with Nexi(config) as nexi:
        made = [count async for count in nexi.knowledge().embed_the_rest(nexi.gate())]
        stats = await (await nexi.knowledge().open_store()).stats()
        behind = await nexi.knowledge().embeds_behind_a_run()
    assert (made, stats.embedder, stats.unembedded, behind) == ([2], "letters", 0, True)


async def test_vectors_of_another_embedder_are_said_and_words_still_find(
    make_config: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = make_config()
    with_embedder(monkeypatch, Letters("old"))
    await store(config, MOON)
    with_embedder(monkeypatch, Letters("new"))
    (tmp_path / "b.md").write_text("# Mars\n\nMars has two moons.")
    heard = Heard()
    async with Nexi(config) as nexi:
        hits = await LocalBackend(nexi.knowledge(), open_gate(nexi.ports, emit=heard)).search(Query("how far is the moon"))
        taking = DocumentIndexing(nexi, nexi.knowledge())
        await taking.take(str(tmp_path / "b.md"))
    assert [hit.url for hit in hits] == [MOON.url]
    assert [fact.code for fact in heard.facts if isinstance(fact, Warned)] == ["vectors_unused"]
    assert dict(taking.taken.outcomes) == {"stored": 1}
    assert "nexi index --reembed" in taking.taken.warnings[0]


async def test_all_vectors_are_made_again_for_a_new_embedder(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config()
    with_embedder(monkeypatch, Letters("old"))
    await store(config, MOON, NOTE)
    with_embedder(monkeypatch, Letters("new"))
    async with Nexi(config) as nexi:
        made = sum([count async for count in nexi.knowledge().embed_the_rest(nexi.gate(), afresh=True)])
        stats = await (await nexi.knowledge().open_store()).stats()
    assert (made, stats.embedder, stats.unembedded) == (2, "new", 0)


async def test_a_query_is_narrowed_by_site_and_by_time(make_config: Make) -> None:
    config = make_config()
    await store(config, MOON, NOTE, embeds=False)
    async with Nexi(config) as nexi:
        backend = LocalBackend(nexi.knowledge(), nexi.gate())
        sited = await backend.search(Query("moon key door", sites=("moon.example",)))
        without = await backend.search(Query("moon key door", excluded_sites=("moon.example",)))
        recent = await backend.search(Query("moon key door", time_range="d"))
    assert ([h.url for h in sited], [h.url for h in without], recent) == ([MOON.url], [NOTE.url], [])


async def test_a_page_comes_back_as_it_was_from_its_passages() -> None:
    text = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} says something of its own. " * 30 for n in range(12)).strip()
    chunks = cut_text(text)
    passages = [Passage(str(n), "u", n, chunk.text, start=chunk.start) for n, chunk in enumerate(chunks)]
    assert len(passages) > 3
    assert _join_passages(passages).split() == text.split()


async def test_the_fetcher_answers_only_for_what_a_search_brought_up(make_config: Make) -> None:
    config = make_config()
    await store(config, MOON, embeds=False)
    async with Nexi(config) as nexi:
        page = await LocalFetcher(nexi.knowledge(), {MOON.url}).fetch(MOON.url, FetchLimits())
        with pytest.raises(FetchError, check=has_code("error")):
            await LocalFetcher(nexi.knowledge(), ()).fetch(MOON.url, FetchLimits())
        with pytest.raises(FetchError, check=has_code("error")):
            await LocalFetcher(nexi.knowledge()).fetch("https://other.example/", FetchLimits())
    assert (page.text, page.title, page.fetcher) == (MOON.text, MOON.title, "local")


async def test_a_store_that_fails_is_a_failing_backend(make_config: Make) -> None:
    config = make_config()
    config.knowledge_path.parent.mkdir(parents=True)
    config.knowledge_path.write_bytes(b"no database" * 1000)
    async with Nexi(config) as nexi:
        with pytest.raises(BackendError) as failed:
            await LocalBackend(nexi.knowledge(), nexi.gate()).search(Query("moon"))
        outcome = await nexi.find_known("moon")
    assert failed.value.code == "store_damaged"
    assert [failure.code for failure in outcome.failures] == ["store_damaged"]


async def test_qdrant_without_its_library_says_what_to_install(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "nexi.stores.qdrant", None)
    async with Nexi(make_config(qdrant_url="http://127.0.0.1:6333")) as nexi:
        with pytest.raises(StoreError, check=has_code("store", "nexi.stores.qdrant")) as failed:
            await nexi.knowledge().open_store()
    assert install_command("qdrant") in failed.value.fix


async def test_the_bound_of_the_store_is_kept(make_config: Make, tmp_path: Path) -> None:
    config = make_config(knowledge_max_mb=1)
    await store(config, MOON, embeds=False)
    await store(
        config, *(Page(f"https://a.example/{n}", f"Page {n}. " + f"word{n} " * 20_000, "A") for n in range(8)), embeds=False
    )
    (tmp_path / "a.md").write_text("Some words.")
    async with Nexi(config) as nexi:
        assert await nexi.knowledge().is_full()
        with pytest.raises(StoreError, check=has_code("store", "knowledge_max_mb")):
            await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(tmp_path / "a.md"))
        assert await nexi.find_known("moon")
