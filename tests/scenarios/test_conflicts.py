"""Sources that disagree, from the pages to the screen."""

from __future__ import annotations

from collections.abc import Callable

from nexi.config import Config
from nexi.events import ConflictsFound, RunFinished, TextDelta
from nexi.runs.directory import RunDirectory
from nexi.testing import FakeWeb, answering, reading, searching
from nexi.types import Conflict, ConflictValue
from tests.scenarios.world import World

Make = Callable[..., Config]
ONE = "https://one.example/forth"
TWO = "https://two.example/bridges"
PAGES = {
    ONE: "Forth Bridge\n\nThe Forth Bridge is 2,467 metres long. It carries trains.",
    TWO: "Forth Bridge guide\n\nThe Forth Bridge is 2,529 metres long. Bring a coat.",
}
ANSWER = "The Forth Bridge is 2,467 metres long [1]."
SAID = "Sources disagree on “The Forth Bridge is … long”: 2,467 metres [1] and 2,529 metres [2]."
CONFLICT = Conflict(
    "number",
    "“The Forth Bridge is … long”",
    (
        ConflictValue("2,467 metres", (1,), 1, "The Forth Bridge is 2,467 metres long"),
        ConflictValue("2,529 metres", (2,), 1, "The Forth Bridge is 2,529 metres long"),
    ),
)


def asked(config: Config, pages: dict[str, str] = PAGES) -> World:
    return World(config, searching("forth bridge"), reading(ONE, TWO), answering(ANSWER), web=FakeWeb(pages))


async def test_a_disagreement_is_shown_under_the_answer_with_both_sources(make_config: Make) -> None:
    world = asked(make_config())
    result = await world.ask("How long is the Forth Bridge?")
    assert result.answer.text == f"{ANSWER}\n\n{SAID}"
    assert [s.url for s in result.answer.sources] == [ONE, TWO]
    assert result.answer.conflicts == (CONFLICT,)


async def test_the_streamed_text_is_the_stored_one_and_the_fact_is_in_the_log(make_config: Make) -> None:
    world = asked(make_config())
    result = await world.ask("How long is the Forth Bridge?")
    assert "".join(e.text for e in world.events if isinstance(e, TextDelta)).strip() == result.answer.text
    log = RunDirectory(world.config.runs_dir, world.config.pages_dir, clock=world.clock).open_log(result.id)
    facts = [fact for _, fact in log.facts]
    assert [f for f in facts if isinstance(f, ConflictsFound)] == [ConflictsFound((CONFLICT,))]
    assert [f.conflicts for f in facts if isinstance(f, RunFinished)] == [(CONFLICT,)]


async def test_pages_that_agree_add_nothing(make_config: Make) -> None:
    world = asked(make_config(), {ONE: PAGES[ONE], TWO: PAGES[TWO].replace("2,529 metres", "2.467 km")})
    result = await world.ask("How long is the Forth Bridge?")
    assert (result.answer.text, result.answer.conflicts) == (ANSWER, ())
    assert not [e for e in world.events if isinstance(e, ConflictsFound)]
