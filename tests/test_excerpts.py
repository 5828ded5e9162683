"""Of a long text the passages that speak to a question are read, with their headings and places, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.config import Config
from nexi.events import ContextCompacted, KnowledgeSearched, ToolFinished
from nexi.llm.extractive.passages import read_sentences
from nexi.testing import FakeWeb, ScriptedLLM, reading, searching
from nexi.text.chunking import LongText, excerpt_text
from nexi.types import Message, Reply, StopReason, ToolCall
from tests.scenarios.world import World

Make = Callable[..., Config]

PAGE = "https://annals.example/all"
FACT = "The Quibberton lighthouse was painted turquoise by Ada Lund in 1931."
QUESTION = "Who painted the Quibberton lighthouse turquoise?"


def annals(paragraphs: int, *facts: tuple[float, str]) -> str:
    """A long text of headings and paragraphs in which each fact stands at its share of the whole."""
    blocks = []
    for number in range(paragraphs):
        blocks += [f"## Year {1000 + number}"] if number % 4 == 0 else []
        blocks.append(
            f"The council of ward {number} met and painted a lighthouse door. It spent {number} coins on oil and rope. " * 4
        )
    for share, fact in sorted(facts, reverse=True):
        blocks.insert(int(share * len(blocks)), fact)
    return "# Annals\n\n" + "\n\n".join(blocks)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_passage_is_found_wherever_it_stands(share: float) -> None:
    text = annals(1_000, (share, FACT))
    found = excerpt_text(text, QUESTION, 20_000)
    assert FACT in found
    assert 15_000 < len(found.encode()) <= 20_000


def test_a_list_is_read_with_the_part_that_announces_it() -> None:
    items = "\n".join(f"- It cannot row boat {number}, which the wind took to the far side of the bay." for number in range(30))
    text = annals(40, (0.5, f"{'The Quibberton lighthouse has faults. ' * 12}\n\nThese are its faults:\n\n{items}"))
    found = excerpt_text(text, "What are the faults of the Quibberton lighthouse?", 6_000)
    assert "\n- It cannot row boat 20," in found


def test_a_text_that_fits_is_returned_as_it_is() -> None:
    text = annals(10)
    assert excerpt_text(text, QUESTION, len(text)) is text


def test_passages_stand_in_order_under_the_numbers_of_their_parts_and_their_heading() -> None:
    text = annals(400, (0.2, "Zinnober is quarried at Ulm."), (0.8, "Zinnober is ground at Rav."))
    found = LongText(text).excerpt("Zinnober", 6_000)
    marks = [line for line in found.splitlines() if line.startswith(("[part ", "[parts "))]
    assert found.index("at Ulm") < found.index("at Rav")
    assert all(" of " in mark and "Annals > Year 1" in mark for mark in marks[1:])
    numbers = [int(mark.split()[1]) for mark in marks]
    assert numbers == sorted(numbers)


def test_what_a_search_has_found_is_read_whatever_the_words_of_the_question() -> None:
    long_text = LongText(annals(600, (0.7, "Seven herons nested on the roof.")))
    chunk = next(chunk for chunk in long_text.chunks if "herons" in chunk.text)
    assert "herons" not in long_text.excerpt(QUESTION, 5_000)
    assert "herons" in long_text.excerpt(QUESTION, 5_000, f"Birds\n{chunk.text}\n\n[…]\n\nmore")


def test_reading_on_by_number_goes_through_the_whole_text() -> None:
    text = annals(80)
    long_text, at, read = LongText(text), 1, ""
    while at:
        part = long_text.read_on(at, 8_000)
        lines = part.splitlines()
        following = lines[-1] if lines[-1].endswith("is next]") else ""
        read += "\n".join(line for line in lines if not line.startswith(("[part ", "[parts ")))
        at = int(following.split()[1]) if following else 0
    assert "".join(read.split()) == "".join(text.split())


def test_the_built_in_model_reads_no_mark_as_a_sentence_and_takes_its_heading() -> None:
    found = read_sentences("[parts 3 to 4 of 9: Annals > Painters]\n\nAda Lund painted it.\n\n[part 7 of 9]\n\nIt was blue.")
    assert [(s.text, s.label) for s in found] == [("Ada Lund painted it.", "Painters"), ("It was blue.", "")]


async def test_the_extract_model_sees_the_passage_that_the_question_and_the_instructions_ask_for(make_config: Make) -> None:
    web = FakeWeb({PAGE: annals(1_500, (0.6, FACT), (0.9, "Seven herons nested on the roof."))})
    llm = ScriptedLLM(Reply("a summary"), Reply('{"pick": [1]}'))
    async with Nexi(make_config(), llms={"answer": llm, "extract": llm}, backends=[web], fetchers=[web]) as nexi:
        for more in ({}, {"use_chunks": True}):
            arguments = {"urls": [PAGE], "instructions": "what nested there?", **more}
            await nexi.run_tool(ToolCall("1", "web_get", json.dumps(arguments)), question=QUESTION)
    requests = [request[-1].content for request in llm.requests]
    assert len(requests) == 2
    for text in requests:
        assert FACT in text
        assert "Seven herons nested" in text
        assert len(text.encode()) <= 60_000


async def test_get_full_shows_the_best_passages_and_reads_on_by_part(make_config: Make) -> None:
    web = FakeWeb({PAGE: annals(3_000, (0.9, FACT))})
    async with Nexi(
        make_config(), llms={"answer": ScriptedLLM(), "extract": ScriptedLLM()}, backends=[web], fetchers=[web]
    ) as nexi:

        async def read(**more: object) -> str:
            arguments = {"urls": [PAGE], "get_full": True, **more}
            result = await nexi.run_tool(ToolCall("1", "web_get", json.dumps(arguments)), question=QUESTION)
            return str(json.loads(result.text)["pages"][0]["content"])

        best, middle = await read(), await read(part=500)
    assert FACT in best
    assert best.endswith("[part 1 and all others can be read: call again with get_full and part]")
    assert middle.splitlines()[2].startswith("[parts 500 to ")
    assert FACT not in middle
    assert middle.endswith("is next]")


@pytest.mark.parametrize("share", [0.1, 0.95])
async def test_a_fact_anywhere_in_a_stored_document_is_found_with_one_search_and_one_read(
    make_config: Make, tmp_path: Path, share: float
) -> None:
    file = tmp_path / "annals.md"
    file.write_text(annals(2_500, (share, FACT)), encoding="utf-8")
    config = make_config(model="extractive")
    async with Nexi(config) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(file))
    world = World(config)
    world.roles = {}
    result = await world.ask(QUESTION, scope="local")
    assert result.answer.text == f"{FACT} [1]"
    kinds = [type(fact) for fact in world.facts]
    assert [kinds.count(kind) for kind in (KnowledgeSearched, ToolFinished, ContextCompacted)] == [1, 2, 0]


async def test_a_model_that_reads_the_same_page_after_each_compaction_is_ended(make_config: Make) -> None:
    def go_on(messages: Sequence[Message]) -> Reply:
        if len(messages) == 1:
            return Reply("the findings")
        turns.append(len(turns))
        return reading((PAGE, other)[turns[-1] % 2])

    turns: list[int] = []
    other = "https://annals.example/more"
    web = FakeWeb({PAGE: annals(300, (0.9, FACT)), other: annals(300)})
    world = World(make_config(max_context=9_000), searching("lighthouse"), *[go_on] * 60, web=web)
    result = await world.ask(QUESTION, max_iterations=30)
    read = [fact for fact in world.facts if isinstance(fact, ToolFinished) and fact.name == "web_get" and fact.ok]
    assert (len(read), result.answer.stop) == (4, StopReason.REPEATED)
    assert sum(isinstance(fact, ContextCompacted) for fact in world.facts) > 1


def test_a_part_from_the_middle_of_a_table_has_the_head_of_its_columns() -> None:
    rows = "\n".join(f"| Halt {n} | {1850 + n} | {1_000 + 37 * n} |" for n in range(400))
    text = LongText(f"# Stations\n\n| Station | Opened | Riders |\n| --- | --- | --- |\n{rows}\n")
    excerpt = text.excerpt("How many riders did Halt 333 have?", 3_000)
    (row,) = [sentence for sentence in read_sentences(excerpt) if sentence.text.startswith("Halt 333 ")]
    assert (row.heads, row.cells) == (("Station", "Opened", "Riders"), ("Halt 333", "2183", "13321"))
