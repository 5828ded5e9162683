"""Sources are numbered in the order in which an answer cites them, in every form of it and in what follows it."""

from __future__ import annotations

import json
from collections.abc import Callable

from nexi.answers.citations import CitationBook, NumbersByUse
from nexi.app.conversation import load_last_conversation
from nexi.config import Config
from nexi.events import SourcesRenumbered, TextDelta
from nexi.output import answer_json
from nexi.testing import answering, reading, searching
from nexi.types import Source
from tests.scenarios.world import MARS, MOON, VENUS, World

Make = Callable[..., Config]
WRITTEN = "Venus has no moons at all [3]. Mars has two moons [2], and Venus is hot [3]."
SHOWN = "Venus has no moons at all [1]. Mars has two moons [2], and Venus is hot [1]."


def numbers(sources: tuple[Source, ...]) -> list[tuple[int, str]]:
    return [(source.number, source.url) for source in sources]


async def ask(config: Config) -> World:
    world = World(config, searching("facts"), reading(MOON, MARS, VENUS), answering(WRITTEN))
    await world.ask(session=world.session)
    return world


def test_a_source_takes_the_lowest_number_when_it_is_cited_first_and_keeps_it() -> None:
    book = CitationBook(sources=[Source(n, f"u{n}") for n in (1, 2, 3, 4)])
    by_use = NumbersByUse(book)
    shown = [by_use.translate(text) for text in ("A [4][2].", "B [2] `x[4]`.", "C [1] and [9].")]
    assert shown == ["A [1][2].", "B [2] `x[4]`.", "C [3] and [9]."]
    assert (by_use.moved, [s.url for s in book.sources]) == ({1: 3, 3: 4, 4: 1}, ["u4", "u2", "u1", "u3"])


def test_a_source_that_was_there_before_keeps_its_number() -> None:
    book = CitationBook(sources=[Source(1, "u1"), Source(2, "u2")])
    book.keep_numbers()
    book.number_for("u3")
    book.number_for("u4")
    assert NumbersByUse(book).translate("A [4] [2] [3] [1]") == "A [3] [2] [4] [1]"


async def test_the_text_its_stream_and_its_json_cite_sources_in_the_order_of_first_use(make_config: Make) -> None:
    world = await ask(make_config())
    async with world.nexi() as nexi:
        session = await load_last_conversation(nexi.runs(), nexi.history())
        replay = await nexi.replay(session.last_run)
    streamed = "".join(event.text for event in world.events if isinstance(event, TextDelta))
    result = answer_json(replay.result)
    assert (streamed, replay.result.answer.text, replay.is_same) == (SHOWN, SHOWN, True)
    assert [(source["n"], source["url"]) for source in result["sources"]] == [(1, VENUS), (2, MARS)]
    assert [claim.numbers for claim in replay.result.answer.review.proof.checked] == [(1,), (2, 1)]
    assert [numbers(fact.sources) for fact in world.facts if isinstance(fact, SourcesRenumbered)] == [[(1, VENUS), (3, MOON)]]


async def test_a_follow_up_reads_and_cites_sources_under_the_numbers_of_the_answer_before(make_config: Make) -> None:
    world = await ask(make_config())
    world.llm.steps.extend((answering("It is hot [1]. The Moon has no air [3]."),))
    result = await world.ask("And is it hot?", session=world.session)
    pages = [json.loads(m.content)["pages"] for m in world.llm.requests[-1] if m.role == "tool" and '"pages"' in m.content]
    assert [page["content"].partition("\n")[0] for page in pages[0]] == [f"[3] {MOON}", f"[2] {MARS}", f"[1] {VENUS}"]
    assert (result.answer.text, numbers(result.answer.sources)) == (
        "It is hot [1]. The Moon has no air [3].",
        [(1, VENUS), (3, MOON)],
    )


async def test_another_process_goes_on_with_the_numbers_of_the_answer(make_config: Make) -> None:
    world = await ask(make_config())
    async with world.nexi() as nexi:
        session = await load_last_conversation(nexi.runs(), nexi.history())
    assert numbers(session.book.sources) == [(1, VENUS), (2, MARS), (3, MOON)]
    assert session.messages[-1].content.startswith(SHOWN)
