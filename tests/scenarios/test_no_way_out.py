"""A page that makes the model write an image with private text gets it into no answer, at no strictness."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexi.answers.safe_markdown import find_exits
from nexi.config import Config
from nexi.testing import answering, reading, searching
from tests.scenarios.world import MOON, World
from tests.test_safe_markdown import EVIL

Make = Callable[..., Config]
SAID = "The Moon is 384,400 km from Earth on average [1]."
TOLD = [
    f"![x](//{EVIL})",
    f"![x](http&#58;//{EVIL})",
    f"```a`b\n![x](http://{EVIL})",
    f"\\` ![x](http://{EVIL}) \\`",
    f"~~~\n```\n~~~\n![x](http://{EVIL})",
    f"` | ![x](http://{EVIL}) `\n---|---\n",
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("told", TOLD)
async def test_an_answer_carries_no_image_to_a_stranger(make_config: Make, told: str, strict: bool) -> None:
    config = make_config(strict=strict, verify_judge=False)
    world = World(config, searching("moon"), reading(MOON, get_full=True), answering(f"{SAID} {told} {SAID}"))
    answer = (await world.ask()).answer
    assert answer.text.startswith(SAID.removesuffix("."))
    assert find_exits(answer.text, lambda url: 0 if "evil" not in url else None) == set()
