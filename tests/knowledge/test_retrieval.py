"""The best passages come first, whatever part is missing, and nothing is said twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexi.errors import LLMError, StoreError
from nexi.events import KnowledgeSearched, Warned
from nexi.knowledge.indexing import Indexer
from nexi.knowledge.retrieval import Retriever, normalise_scores
from nexi.stores.sqlite import SqliteStore
from nexi.testing import FakeClock, ScriptedLLM
from nexi.types import Embedded, Page, Passage, Scope
from tests.knowledge.support import Said, WordEmbedder, saying
from tests.raising import has_code

PAGES = {
    "http://birds.test/owl": ("Barn owl", "# Barn owl\n\nThe barn owl hunts by night. It was studied by Iris Quill."),
    "http://people.test/quill": ("Iris Quill - People", "# Iris Quill\n\nShe was born in Oslo in 1901."),
    "http://birds.test/fox": ("Fox", "# Fox\n\nThe fox sleeps in a den by night."),
    "http://code.test/feed": ("Feeding", "# Feeding\n\n```python\ndef feed_owl(owl):\n    hunt(owl)\n```"),
}


class Library:
    """Pages in a store, and a retriever over it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.store = SqliteStore(folder / "knowledge.db")
        self.said = Said()
        self.embedder = options.get("embedder")
        self.retriever = Retriever(self.store, emit=self.said, clock=FakeClock(), **options)

    async def fill(self, pages: dict[str, tuple[str, str]], **page: Any) -> None:
        indexer = Indexer(self.store, emit=Said(), clock=FakeClock(), embedder=self.embedder, chunk_size=200)
        for url, (title, text) in pages.items():
            await indexer.index(Page(url, text, title=title, **page), tags=("kept",))

    async def urls(self, query: str, *given: Any, **options: Any) -> list[str]:
        return [p.url for p in await self.retriever.search(query, *given, **options)]


@pytest.mark.parametrize("embedder", [None, WordEmbedder()], ids=["words", "vectors"])
async def test_the_page_that_answers_comes_first_with_scores_between_0_and_1(tmp_path: Path, embedder: Any) -> None:
    library = Library(tmp_path, embedder=embedder)
    await library.fill(PAGES)
    found = await library.retriever.search("When does the barn owl hunt?")
    assert found[0].url == "http://birds.test/owl"
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    assert all(0 <= p.score <= 1 for p in found)
    (fact,) = library.said.of(KnowledgeSearched)
    assert (fact.query, fact.passages, fact.best) == ("When does the barn owl hunt?", len(found), found[0].score)
    await library.store.aclose()


async def test_a_page_that_a_first_passage_names_is_drawn_up(tmp_path: Path) -> None:
    library = Library(tmp_path)
    others = {f"http://o.test/{i}": (f"Night {i}", f"Born by night in barn number {i} at {i}{i} o'clock.") for i in range(6)}
    await library.fill({url: page for url, page in {**PAGES, **others}.items() if "code" not in url})
    assert (await library.urls("Who studied the barn owl, and where was she born?"))[:2] == [
        "http://birds.test/owl",
        "http://people.test/quill",
    ]
    await library.store.aclose()


async def test_filters_hold(tmp_path: Path) -> None:
    library = Library(tmp_path)
    await library.fill(PAGES, language="en", fetched_at="2025-05-05T00:00:00+00:00")
    assert await library.urls("night", Scope(domains=("people.test",))) == []
    assert set(await library.urls("night", Scope(domains=("birds.test",)))) == {
        "http://birds.test/owl",
        "http://birds.test/fox",
    }
    assert await library.urls("night", Scope(urls=("http://birds.test/fox",))) == ["http://birds.test/fox"]
    assert await library.urls("night", Scope(languages=("de",))) == []
    assert await library.urls("night", Scope(tags=("lost",))) == []
    assert await library.urls("night", Scope(since="2026-01-01")) == []
    assert await library.urls("hunt owl", Scope(code=True)) == ["http://code.test/feed"]
    await library.store.aclose()


async def test_a_question_about_code_prefers_code_when_enabled(tmp_path: Path) -> None:
    pages = {
        "http://a.test/prose": ("Prose", "The function feed_owl is a function to feed an owl. feed_owl feeds."),
        "http://a.test/code": ("Code", "Text on it.\n\n```python\nfeed_owl(owl)\n```"),
        **{f"http://o.test/{i}": (f"Other {i}", f"A fox number {i}.") for i in range(8)},
    }
    plain, aware = Library(tmp_path), Library(tmp_path, code_aware=True)
    await plain.fill(pages)
    scores = {
        name: {p.url: p.score for p in await library.retriever.search("example of feed_owl() code")}
        for name, library in (("plain", plain), ("aware", aware))
    }
    code, prose = "http://a.test/code", "http://a.test/prose"
    assert scores["aware"][code] - scores["aware"][prose] > scores["plain"][code] - scores["plain"][prose]
    await plain.store.aclose()
    await aware.store.aclose()


async def test_near_copies_are_left_out(tmp_path: Path) -> None:
    library = Library(tmp_path)
    text = "The barn owl hunts voles and mice by night over open fields and hedges of the valley"
    await library.fill({f"http://m{i}.test/": ("Owl", f"{text}{' still' * i}.") for i in range(4)})
    assert len(await library.urls("barn owl voles")) == 1


async def test_a_passage_with_another_number_is_no_copy(tmp_path: Path) -> None:
    library = Library(tmp_path)
    text = "The barn owl hunts voles and mice by night over open fields and takes"
    await library.fill({f"http://m{i}.test/": ("Owl", f"{text} {i + 4} of them.") for i in range(2)})
    assert sorted(await library.urls("barn owl voles")) == ["http://m0.test/", "http://m1.test/"]
    await library.store.aclose()


async def test_an_embedder_that_fails_or_is_another_leaves_words(tmp_path: Path) -> None:
    class Away(WordEmbedder):
        async def embed(self, texts: Any, *, query: bool = False) -> Embedded:
            raise LLMError("the embedder is away", fix="start it")

    library = Library(tmp_path, embedder=WordEmbedder())
    await library.fill(PAGES)
    for embedder in (Away(), WordEmbedder("other")):
        other = Library(tmp_path, embedder=embedder)
        assert (await other.urls("barn owl"))[0] == (await other.urls("barn owl"))[0] == "http://birds.test/owl"
        assert [w.code for w in other.said.of(Warned)] == ["vectors_unused"]
        await other.store.aclose()
    await library.store.aclose()


async def test_what_words_and_vectors_both_find_comes_first_and_vectors_add_what_words_miss(tmp_path: Path) -> None:
    class Synonyms(WordEmbedder):
        """An embedder for which a vixen is a fox."""

        async def embed(self, texts: Any, *, query: bool = False) -> Embedded:
            return await super().embed([text.replace("vixen", "fox") for text in texts], query=query)

    pages = {"http://birds.test/vixen": ("Vixen", "# Vixen\n\nA vixen sleeps."), **PAGES}
    library = Library(tmp_path, embedder=Synonyms())
    await library.fill(pages)
    by_words = Library(tmp_path, embedder=None)
    assert "http://birds.test/vixen" not in await by_words.urls("fox")
    assert (await library.urls("fox"))[:2] == ["http://birds.test/fox", "http://birds.test/vixen"]
    await by_words.store.aclose()
    await library.store.aclose()


async def test_a_damaged_store_is_not_hidden(tmp_path: Path) -> None:
    library = Library(tmp_path, embedder=WordEmbedder())
    await library.fill(PAGES)

    async def damaged(*_: object, **__: object) -> Any:
        raise StoreError("damaged", code="store_damaged")

    library.store.dense = damaged  # type: ignore[method-assign]
    with pytest.raises(StoreError, check=has_code("store_damaged")):
        await library.urls("barn owl")
    await library.store.aclose()


async def test_a_model_reorders_the_passages_and_a_bad_reply_changes_nothing(tmp_path: Path) -> None:
    plain = Library(tmp_path)
    await plain.fill(PAGES)
    order = await plain.urls("night barn owl fox")
    for reply, expected in (
        (saying({"pick": [1]}), [order[1], order[0], *order[2:]]),
        (saying("the second"), order),
        (LLMError("down"), order),
    ):
        library = Library(tmp_path, reranker=ScriptedLLM(reply))
        assert await library.urls("night barn owl fox") == expected
        await library.store.aclose()
    await plain.store.aclose()


async def test_an_empty_store_and_an_empty_question_find_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path, embedder=WordEmbedder())
    assert await library.urls("owl") == []
    await library.fill(PAGES)
    assert await library.urls("  ") == []
    await library.store.aclose()


def passage(number: int, score: float) -> Passage:
    return Passage(str(number), "http://a.test", number, f"text {number}", score)


def test_scores_of_one_search_are_made_comparable() -> None:
    assert normalise_scores([]) == {}
    assert normalise_scores([passage(1, 3.0)]) == {"1": 0.5}
    found = normalise_scores([passage(1, 3.0), passage(2, 1.0)])
    assert found == pytest.approx({"1": 0.5 + 1 / 6, "2": 0.5 - 1 / 6})
