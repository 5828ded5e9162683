"""A page becomes chunks in the store once, with context and vectors where there are any, and never in the way of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from nexi.errors import LLMError, StoreError
from nexi.events import PageIndexed, StatusDelta, Warned
from nexi.knowledge.indexing import Indexer, IndexQueue, IndexReport, cut_text
from nexi.stores.sqlite import SqliteStore
from nexi.testing import FakeClock
from nexi.types import Embedded, Page, Passage, Reply
from tests.knowledge.support import Said, WordEmbedder

URL = "http://birds.test/owl"
LONG = "# Owl\n\n" + "\n\n".join(f"Paragraph {i} about owls and voles. " * 8 for i in range(60))


class Kept:
    """A store on disk with an indexer over it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.store = SqliteStore(folder / "knowledge.db")
        self.said = Said()
        self.indexer = Indexer(self.store, emit=self.said, clock=FakeClock(), **options)

    async def passages(self, url: str = URL) -> list[Passage]:
        return await self.store.passages(url)


async def test_a_page_is_stored_with_its_headings_code_and_source(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    text = "# Owl\n\n## Feeding\n\n```python\nfeed(owl)\n```\n"
    report = await kept.indexer.index(Page(URL, text, title="Owl", language="en"), tags=("birds",))
    assert report == IndexReport(URL, "stored", 1)
    (passage,) = await kept.passages()
    assert (passage.heading, passage.code, passage.tags) == ("Owl > Feeding", "python", ("birds",))
    source = await kept.store.source(URL)
    assert source is not None
    assert (source.title, source.domain, source.language, source.chunk_count) == ("Owl", "birds.test", "en", 1)
    assert source.fetched_at == "2026-01-02T03:04:05+00:00"
    await kept.store.aclose()


async def test_a_page_is_stored_once_and_replaced_when_it_changed(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    outcomes = [
        (await kept.indexer.index(Page(url, text))).outcome
        for url, text in (
            (URL, "Owls hunt."),
            (URL, "Owls hunt."),
            (URL, "Owls sleep."),
            (URL + "2", "Owls sleep."),
            (URL, " \n"),
        )
    ]
    assert outcomes == ["stored", "unchanged", "stored", "linked", "empty"]
    assert [p.text for p in await kept.passages()] == ["Owls sleep."]
    assert [fact.outcome for fact in kept.said.of(PageIndexed)] == outcomes
    await kept.store.aclose()


async def test_vectors_are_made_in_batches_of_twenty_with_progress(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    kept = Kept(tmp_path, embedder=embedder, chunk_size=300)
    report = await kept.indexer.index(Page(URL, LONG, title="Owl"))
    assert report.embedded == report.chunks == sum(embedder.batches)
    assert embedder.batches[:-1] == [20] * (len(embedder.batches) - 1)
    last = kept.said.deltas[-1]
    assert last == StatusDelta(f"Embedding Owl: {report.chunks} of {report.chunks}")
    await kept.store.aclose()


async def test_a_page_whose_vectors_fail_is_still_found_by_words(tmp_path: Path) -> None:
    class Broken(WordEmbedder):
        async def embed(self, texts: Any, *, query: bool = False) -> Embedded:
            raise LLMError("the embedder is away")

    kept = Kept(tmp_path, embedder=Broken())
    report = await kept.indexer.index(Page(URL, "Owls hunt."))
    assert report.failures == ("the vectors of a page were not made: the embedder is away",)
    assert [p.text for p in await kept.store.lexical("owls")] == ["Owls hunt."]
    assert kept.said.of(Warned) == [Warned("index_incomplete", report.failures[0])]
    await kept.store.aclose()


class ContextLLM:
    name = "context"

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def complete(self, messages: Any, tools: Any = (), **options: Any) -> Reply:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if "Paragraph 7 " in messages[1].content.split("---")[1]:
            raise LLMError("down")
        return Reply("About\nowls.")


async def test_context_lines_are_written_in_parallel_and_a_chunk_without_one_is_stored_as_it_is(tmp_path: Path) -> None:
    llm = ContextLLM()
    kept = Kept(tmp_path, context_llm=llm, embedder=WordEmbedder(), chunk_size=300)
    report = await kept.indexer.index(Page(URL, LONG, title="Owl"))
    contexts = [p.context for p in await kept.passages()]
    assert contexts.count("About owls.") == report.chunks - 1
    assert [failure.startswith(f"1 of {report.chunks} chunks") for failure in report.failures] == [True]
    assert report.embedded == report.chunks
    assert 1 < llm.most <= 8
    await kept.store.aclose()


async def test_a_later_chunk_says_what_its_page_begins_with(tmp_path: Path) -> None:
    kept = Kept(tmp_path, chunk_size=80)
    lead = "Git reset moves the current branch to a given state."
    await kept.indexer.index(Page(URL, f"# git-reset\n\n{lead}\n\n## Options\n\nThe option --soft keeps what is staged."))
    assert [(p.context, p.heading) for p in await kept.passages()] == [("", "git-reset"), (lead, "git-reset > Options")]
    await kept.store.aclose()


def test_a_huge_page_gets_larger_chunks_instead_of_too_many() -> None:
    text = "owls hunt voles. " * 400
    assert (len(cut_text(text, 20)), len(cut_text(text, 20, max_chunks=10))) == (400, 10)


async def test_the_queue_keeps_what_a_run_reads_without_making_it_wait(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    async with asyncio.TaskGroup() as tasks:
        queue = IndexQueue(kept.indexer.index, tasks=tasks, emit=kept.said)
        assert [queue.offer(Page(f"{URL}{i}", f"Owl number {i}.")) for i in range(3)] == [True] * 3
        assert kept.said.facts == []
        await queue.drain(10.0)
    assert sorted(s.url for s in await kept.store.sources()) == [f"{URL}{i}" for i in range(3)]
    assert kept.said.of(Warned) == []
    await kept.store.aclose()


async def test_what_does_not_fit_or_comes_too_late_is_said(tmp_path: Path) -> None:
    kept = Kept(tmp_path)

    async def never(page: Page, tags: Any = ()) -> IndexReport:
        await asyncio.Event().wait()
        raise AssertionError

    kept.indexer.index = never  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as tasks:
        queue = IndexQueue(kept.indexer.index, tasks=tasks, emit=kept.said, size=1)
        assert [queue.offer(Page(URL, "Owl.")), queue.offer(Page(URL, "Owl."))] == [True, False]
        await queue.drain(0.0)
    assert kept.said.of(Warned) == [Warned("not_indexed", "2 of the pages that were read are not in the knowledge store")]
    await kept.store.aclose()


async def test_a_page_the_store_refuses_does_not_stop_the_queue(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    index = kept.indexer.index

    async def full(page: Page, tags: Any = ()) -> IndexReport:
        if page.url == URL:
            raise StoreError("the disk is full", fix="free some space")
        return await index(page)

    kept.indexer.index = full  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as tasks:
        queue = IndexQueue(kept.indexer.index, tasks=tasks, emit=kept.said)
        for url in (URL, URL + "2"):
            queue.offer(Page(url, "Owl."))
        await queue.drain(10.0)
    assert [s.url for s in await kept.store.sources()] == [URL + "2"]
    assert [w.message for w in kept.said.of(Warned)] == [
        f"{URL} was not stored: the disk is full. free some space",
        "1 of the pages that were read are not in the knowledge store",
    ]
    await kept.store.aclose()


async def test_several_pages_are_stored_at_once_and_copies_among_them_are_linked(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    kept = Kept(tmp_path, embedder=embedder)
    await kept.indexer.index(Page(URL, "Owls hunt."))
    await kept.indexer.index(Page(URL + "5", "Owls walk."), tags=("way",))
    texts = {"": "Owls hunt.", "2": "Owls sleep.", "3": "Owls sleep.", "4": "", "5": "Owls fly."}
    pages = [Page(URL + number, text) for number, text in texts.items()]
    puts: list[int] = []
    put = kept.store.put

    async def counted(pages: Any, *, embedder: str = "") -> None:
        puts.append(len(pages))
        await put(pages, embedder=embedder)

    kept.store.put = counted  # type: ignore[method-assign]
    reports = await kept.indexer.index_all(pages)
    assert [(r.url[len(URL) :], r.outcome, r.embedded) for r in reports] == [
        ("", "unchanged", 0), ("2", "stored", 1), ("3", "linked", 0), ("4", "empty", 0), ("5", "stored", 1),
    ]  # fmt: skip
    assert (puts, embedder.batches) == ([2], [1, 1, 2])
    assert [(p.url[len(URL) :], p.text, p.tags) for n in "235" for p in await kept.passages(URL + n)] == [
        ("2", "Owls sleep.", ()), ("3", "Owls sleep.", ()), ("5", "Owls fly.", ("way",)),
    ]  # fmt: skip
    await kept.store.aclose()
