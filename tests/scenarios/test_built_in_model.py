"""The built-in model in a whole run."""

from __future__ import annotations

from collections.abc import Callable

from nexi.app import Nexi
from nexi.config import Config
from nexi.llm.extractive._evidence import rank_sentences
from nexi.testing import FakeClock, FakeWeb
from tests.scenarios.world import MARS, MOON, PAGES, QUESTION

LONG = "\n\n".join(f"Crater {n} of the Moon is round and old, and nobody has walked in it." for n in range(8_000))


async def test_pages_are_indexed_once_for_the_answer_and_its_rating(make_config: Callable[..., Config]) -> None:
    """Also a page that is too long to be read whole: the rating looks at what the answer was taken from."""
    rank_sentences.cache_clear()
    web = FakeWeb({MOON: f"{PAGES[MOON]}\n\n{LONG}", MARS: PAGES[MARS]})
    async with Nexi(make_config(model="extractive"), clock=FakeClock(), backends=[web], fetchers=[web]) as nexi:
        result = await nexi.answer(QUESTION)
    assert result.answer.text.startswith("The Moon is 384,400 km from Earth on average. [1]")
    assert result.answer.answered == "yes"
    assert rank_sentences.cache_info().misses == 1
