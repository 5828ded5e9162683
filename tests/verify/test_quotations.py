"""What the built-in model quotes from a file is verified whatever markup stands in it, and what is not there is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.checking.answer import _is_quoted
from nexi.config import Config
from nexi.types import Verdict
from tests.scenarios.world import World

Make = Callable[..., Config]

RST = (
    'It is affectionately known as "the walrus operator" due to its resemblance to\n'
    "`the eyes and tusks of a walrus <https://en.wikipedia.org/wiki/Walrus#/media/File:Pacific_Walrus.jpg>`_.\n"
)


PART = "metres of water in its northern part."


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ('known as "the walrus operator" due to its resemblance to `the eyes and tusks of a walrus `_.', RST),
        (f"The \\emph{{pond}} has seven {PART}", f"The \\emph{{pond}} has\nseven  {PART}"),
        (f"The pond has 1.5 {PART}", f"The **pond** has `1.5` {PART.replace('water', '[water](w.html)')}"),
    ],
)
def test_a_quotation_is_found_through_the_markup(sentence: str, text: str) -> None:
    assert _is_quoted(sentence, text)


def test_digits_are_not_drawn_together() -> None:
    page = "The *pond* has 1.5 metres of <b>water</b> in its northern part."
    assert _is_quoted("The pond has 1.5 metres of water in its northern part.", page)
    assert not _is_quoted("The pond has 15 metres of water in its northern part.", page)


async def test_a_sentence_from_a_source_file_is_verified_and_has_no_file_name_before_it(
    make_config: Make, tmp_path: Path
) -> None:
    file = tmp_path / "3.8.rst.txt"
    code = "\n\n".join(f"Call ``sail_{n}(boat)`` to sail." for n in range(20))
    file.write_text(f"News\n====\n\nThere is a new syntax ``:=`` in the language.\n{RST}\n{code}\n", encoding="utf-8")
    config = make_config(model="extractive")
    async with Nexi(config) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(file))
    world = World(config)
    world.roles = {}
    answer = (await world.ask("Why is it known as the walrus operator?", scope="local")).answer
    assert "the eyes and tusks of a walrus" in answer.text
    assert "rst.txt:" not in answer.text
    assert "[unverified]" not in answer.text


async def test_a_row_that_is_quoted_from_a_table_carries_no_mark(make_config: Make, tmp_path: Path) -> None:
    rows = "| Mill | Built | Tonnes |\n| --- | --- | --- |\n| Alder mill | 1784 | 120 |\n| Cedar mill | 1799 | (14) |\n"
    (tmp_path / "mills.md").write_text(f"# Mills\n\nThe mills of the county.\n\n{rows}", encoding="utf-8")
    config = make_config(model="extractive")
    async with Nexi(config) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(tmp_path / "mills.md"))
    world = World(config)
    world.roles = {}
    answer = (await world.ask("How many tonnes did the Cedar mill grind?", scope="local")).answer
    assert answer.text == "Mill: Cedar mill – Tonnes: (14) [1]"
    assert answer.review is not None
    assert (answer.review.marked, [claim.verdict for claim in answer.review.proof.claims]) == ((), [Verdict.FOUND])
