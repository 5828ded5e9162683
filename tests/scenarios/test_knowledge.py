"""What was read once is known: later questions look there first, and nothing about the store can spoil an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.app.knowledge import Knowledge
from nexi.config import Config
from nexi.errors import BackendError, NexiError, StoreError
from nexi.events import KnowledgeSearched, PageFetched, Warned
from nexi.llm.extractive.model import Extractive
from nexi.testing import FakeWeb, answering, calling, reading, searching
from nexi.types import Page, Verdict
from tests.raising import has_code
from tests.scenarios.world import MARS, MOON, PAGES, World

Make = Callable[..., Config]


class CountingWeb(FakeWeb):
    """A web that remembers what it was asked for."""

    def __init__(self, pages: dict[str, str] = PAGES) -> None:
        super().__init__(pages)
        self.asked: list[str] = []

    async def search(self, query: Any) -> Any:
        self.asked.append(f"search {query.text}")
        return await super().search(query)

    async def fetch(self, url: str, limits: Any) -> Page:
        self.asked.append(url)
        return await super().fetch(url, limits)


def extractive(config: Config, web: CountingWeb) -> World:
    world = World(config, web=web)
    world.roles = {"answer": Extractive(), "extract": Extractive()}
    return world


async def test_the_same_question_asked_twice_fetches_no_page_the_second_time(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    first = await extractive(config, web).ask()
    asked = list(web.asked)
    world = extractive(config, web)
    second = await world.ask("  how far is the moon from earth")
    assert asked
    assert web.asked == asked
    assert second.answer.text == first.answer.text
    assert [s.url for s in second.answer.sources] == [s.url for s in first.answer.sources]
    assert second.answer.review.proof.found == len(second.answer.review.proof.checked) > 0
    assert all(fact.downloaded_bytes == 0 for fact in world.facts if isinstance(fact, PageFetched))


async def test_a_stored_page_that_grew_old_is_not_enough_for_the_same_question(make_config: Make) -> None:
    config, web = make_config(model="extractive", page_cache_ttl_s=60), CountingWeb()
    await extractive(config, web).ask()
    asked = len(web.asked)
    later = extractive(config, web)
    later.clock.advance(3600)
    await later.ask()
    assert len(web.asked) > asked


async def test_another_question_goes_on_to_the_web_for_what_is_missing(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    await extractive(config, CountingWeb({MOON: PAGES[MOON]})).ask()
    result = await extractive(config, web).ask("Which moons does Mars have?")
    assert any(asked.startswith("search") for asked in web.asked)
    assert "Phobos" in result.answer.text


async def test_a_question_about_what_changes_always_goes_on_to_the_web(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    await extractive(config, CountingWeb()).ask()
    await extractive(config, web).ask("Does the Moon currently have air?")
    assert any(asked.startswith("search") for asked in web.asked)


async def test_another_question_about_what_is_known_still_asks_the_web(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    await extractive(config, CountingWeb()).ask()
    result = await extractive(config, web).ask("Does the Moon have air?")
    assert web.asked[:1] == ["search Does the Moon have air?"]
    assert "It has no air." in result.answer.text


async def test_a_page_that_was_read_for_another_question_is_named_as_such(make_config: Make) -> None:
    config, said = make_config(), "The Moon is 384,400 km from Earth on average. [1]"
    await World(config, searching("moon"), reading(MOON, get_full=True), answering(said)).ask()
    looked_up = World(config, calling("local_search", queries=["moon distance"]), answering(said))
    recalled = await looked_up.ask("How far away is the Moon?")
    live = await World(config, searching("moon"), reading(MOON, get_full=True), answering(said)).ask("Is the Moon far?")
    told = [[w for w in result.answer.warnings if "knowledge base" in w] for result in (recalled, live)]
    accessed = recalled.answer.sources[0].imprint.accessed[:10]
    assert told == [[f"from the knowledge base, not read again for this question: [1] of {accessed}"], []]
    assert accessed


async def test_a_model_is_offered_the_store_only_when_something_is_in_it(make_config: Make) -> None:
    config = make_config()
    first = World(
        config, searching("moon"), reading(MOON, get_full=True), answering("The Moon is 384,400 km from Earth on average. [1]")
    )
    await first.ask()
    second = World(
        config,
        calling("local_search", queries=["moon distance"]),
        answering("The Moon is 384,400 km from Earth on average. [1]"),
    )
    second.web = CountingWeb()
    result = await second.ask("How far away is the Moon?")
    assert [names[0] for names in first.llm.offered] == ["web_search"] * 3
    assert [names[0] for names in second.llm.offered] == ["local_search"] * 2
    assert second.web.asked == []
    assert [(s.number, s.url) for s in result.answer.sources] == [(1, MOON)]
    assert [c.verdict for c in result.answer.review.proof.checked] == [Verdict.FOUND]
    assert any(isinstance(fact, KnowledgeSearched) and fact.urls == (MOON,) for fact in second.facts)


async def test_what_local_search_tells_a_model(make_config: Make) -> None:
    config = make_config()
    await World(config, searching("moon"), reading(MOON, get_full=True), answering("It has no air. [1]")).ask()
    world = World(config, calling("local_search", queries=["moon distance"]), answering("It has no air. [1]"))
    await world.ask("How far away is the Moon?")
    told = world.llm.requests[-1][-1].content
    assert '"url": "https://moon.example/facts"' in told
    assert "[1] https://moon.example/facts\\n---\\n" in told
    assert '"completeness": ' in told
    assert "Search the web for what these pages leave open." in told


async def test_a_stored_page_whose_text_is_no_longer_kept_is_put_together_from_its_passages(make_config: Make) -> None:
    import shutil

    config, web = make_config(model="extractive"), CountingWeb()
    first = await extractive(config, web).ask()
    shutil.rmtree(config.pages_dir)
    asked = list(web.asked)
    second = await extractive(config, web).ask()
    assert web.asked == asked
    assert second.answer.text == first.answer.text


async def test_with_knowledge_off_nothing_is_kept_and_nothing_is_looked_up(make_config: Make) -> None:
    config, web = make_config(model="extractive", knowledge=False), CountingWeb()
    await extractive(config, web).ask()
    asked = len(web.asked)
    await extractive(config, web).ask()
    assert len(web.asked) == 2 * asked
    assert not config.knowledge_path.exists()


async def test_a_run_that_keeps_no_log_keeps_no_pages(make_config: Make) -> None:
    config = make_config(model="extractive")
    await extractive(config, CountingWeb()).ask(keeps_log=False)
    assert not config.knowledge_path.exists()


async def test_a_store_that_cannot_be_written_is_one_warning_and_never_a_failed_answer(
    make_config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexi.stores.sqlite import SqliteStore

    async def full(*_: object, **__: object) -> None:
        raise StoreError("The page was not stored", cause="No space left on device", fix="Free some disk space.")

    monkeypatch.setattr(SqliteStore, "put", full)
    world = extractive(make_config(model="extractive"), CountingWeb())
    result = await world.ask("What is known of the Moon, Mars and Venus?")
    warned = [fact.message for fact in world.facts if isinstance(fact, Warned) and fact.code == "not_indexed"]
    assert result.answer.text
    assert warned == [
        "what this run reads is not kept in the knowledge store: "
        "The page was not stored: No space left on device. Free some disk space."
    ]


async def test_a_damaged_store_is_a_warning_and_the_web_answers(make_config: Make) -> None:
    config = make_config(model="extractive")
    config.knowledge_path.parent.mkdir(parents=True)
    config.knowledge_path.write_bytes(b"this is no database at all, and never was one" * 200)
    world = extractive(config, CountingWeb())
    result = await world.ask()
    assert "384,400 km" in result.answer.text
    assert [fact.code for fact in world.facts if isinstance(fact, Warned)].count("store") == 1
    assert "not_indexed" not in {fact.code for fact in world.facts if isinstance(fact, Warned)}  # the cause is said already


async def test_a_full_store_takes_nothing_more_and_says_so(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(_: Knowledge) -> bool:
        return True

    monkeypatch.setattr(Knowledge, "is_full", full)
    world = extractive(make_config(model="extractive"), CountingWeb())
    await world.ask()
    (told,) = [fact.message for fact in world.facts if isinstance(fact, Warned) and fact.code == "not_indexed"]
    assert "the knowledge store is full: it has reached knowledge_max_mb, which is 2048" in told


async def test_only_what_is_known_is_asked_when_only_that_is_wanted(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    await extractive(config, web).ask()
    asked = list(web.asked)
    result = await extractive(config, web).ask("Does the Moon have air?", scope="local")
    assert web.asked == asked
    assert "It has no air." in result.answer.text


async def test_with_nothing_known_only_local_has_no_answer_and_says_why(make_config: Make) -> None:
    with pytest.raises(NexiError, check=has_code("no_evidence")) as failed:
        await extractive(make_config(model="extractive"), CountingWeb()).ask(scope="local")
    assert (failed.value.exit_code, "nexi index PATH" in failed.value.fix) == (5, True)


async def test_a_run_with_local_search_is_replayed_without_the_store(make_config: Make) -> None:
    config = make_config()
    await World(config, searching("moon"), reading(MOON, get_full=True), answering("It has no air. [1]")).ask()
    world = World(config, calling("local_search", queries=["moon"]), answering("It has no air. [1]"))
    result = await world.ask("Does the Moon have air?")
    Path(config.knowledge_path).unlink()
    async with world.nexi() as nexi:
        replay = await nexi.replay(result.id)
    assert replay.is_same


async def test_a_model_is_asked_with_passages_of_the_files_that_came_with_the_question(
    make_config: Make, tmp_path: Path
) -> None:
    (tmp_path / "boat.md").write_text("# Boat\n\nThe boat lies in the harbour of Stralsund.")
    world = World(make_config(), answering("It lies in Stralsund. [1]"))
    result = await world.ask("Where does the boat lie?", attachments=(str(tmp_path / "boat.md"),))
    question, call, passages = world.llm.requests[0][1:]
    assert (question.content, [c.name for c in call.tool_calls]) == ("Where does the boat lie?", ["local_search"])
    assert "The boat lies in the harbour of Stralsund." in passages.content
    (tmp_path / "boat.md").unlink()
    async with world.nexi() as nexi:
        replay = await nexi.replay(result.id)
    assert (result.answer.text, replay.is_same) == ("It lies in Stralsund. [1]", True)


class DeadWeb(CountingWeb):
    """A web whose search service is down."""

    async def search(self, query: Any) -> Any:
        raise BackendError("the service is down", code="refused", fix="start it")


async def test_a_file_is_answered_from_by_a_model_whose_search_service_is_down(make_config: Make, tmp_path: Path) -> None:
    (tmp_path / "boat.md").write_text("# Boat\n\nThe boat lies in the harbour of Stralsund.")
    world = World(make_config(), searching("boat"), answering("It lies in Stralsund. [1]"), web=DeadWeb())
    result = await world.ask("Where does the boat lie?", attachments=(str(tmp_path / "boat.md"),))
    assert (result.answer.text, len(result.answer.sources)) == ("It lies in Stralsund. [1]", 1)


HARBOUR = """# Harbour

## Traffic

Container traffic rose by 4 percent in 2025. Ferries carried 1.2 million passengers.

## Works

The north quay is closed until May. Dredging costs 3.1 million euros.
"""


@pytest.mark.parametrize("question", ["Summarise this", "What does it say?", "Résume ce document", "要約してください"])
async def test_a_question_about_a_file_as_a_whole_is_answered_by_what_its_sections_say_and_not_by_the_web(
    make_config: Make, tmp_path: Path, question: str
) -> None:
    (tmp_path / "harbour.md").write_text(HARBOUR)
    web = CountingWeb()
    result = await extractive(make_config(model="extractive"), web).ask(question, attachments=(str(tmp_path / "harbour.md"),))
    assert result.answer.text == (
        "Container traffic rose by 4 percent in 2025. [1] Ferries carried 1.2 million passengers. [1] "
        "The north quay is closed until May. [1] Dredging costs 3.1 million euros. [1]"
    )
    assert (result.answer.answered, web.asked) == ("yes", [])


async def test_a_long_file_is_summarised_by_the_first_sentences_of_all_its_sections(make_config: Make, tmp_path: Path) -> None:
    chapters = [
        f"## Chapter {n}\n\nChapter {n} begins with this sentence. {'It goes on with quite a few more words. ' * 30}"
        for n in range(1, 5)
    ]
    (tmp_path / "book.md").write_text("\n\n".join(("# Book", *chapters)))
    result = await extractive(make_config(model="extractive"), CountingWeb()).ask(
        "key points", attachments=(str(tmp_path / "book.md"),)
    )
    assert all(f"Chapter {n} begins with this sentence. [1]" in result.answer.text for n in range(1, 5))
    assert len(result.answer.text.split()) < 250


async def test_a_model_is_given_the_beginning_of_a_file_where_the_question_shares_no_word_with_it(
    make_config: Make, tmp_path: Path
) -> None:
    (tmp_path / "harbour.md").write_text(HARBOUR)
    world = World(make_config(), answering("The north quay is closed until May. [1]"))
    await world.ask("Sum it up", attachments=(str(tmp_path / "harbour.md"),))
    assert "Container traffic rose by 4 percent in 2025." in world.llm.requests[0][-1].content


async def test_a_question_that_was_asked_before_is_replayed_as_it_was(make_config: Make) -> None:
    config, web = make_config(model="extractive"), CountingWeb()
    results = [await extractive(config, web).ask() for _ in range(3)]
    async with extractive(config, CountingWeb({})).nexi() as nexi:
        replays = [await nexi.replay(result.id) for result in results]
    assert [replay.is_same for replay in replays] == [True, True, True]


async def test_an_address_of_this_machine_that_no_search_gave_is_refused(make_config: Make) -> None:
    config = make_config()
    await World(config, searching("moon"), reading(MOON, get_full=True), answering("It has no air. [1]")).ask()
    world = World(
        config,
        calling("web_get", urls=["file:///etc/passwd", "file:///notes~123456/secret.md", MARS]),
        searching("moon"),
        reading(MOON),
        answering("It has no air. [1]"),
    )
    await world.ask()
    told = world.llm.requests[1][-1].content
    assert told.count("refused: this URL came from no search result") == 3
