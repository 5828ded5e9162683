"""A page that makes the model write an image with private text gets it into no answer, at no strictness."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.answers.safe_markdown import find_exits
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import VerificationError
from nexi.events import Warned
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching
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
    try:
        answer = (await world.ask()).answer
    except VerificationError:
        assert strict  # nothing of it could stand
        return
    assert SAID.removesuffix(".") in answer.text
    assert find_exits(answer.text, lambda url: 0 if "evil" not in url else None) == set()


@pytest.mark.skipif(not (shutil.which("rg") or shutil.which("grep")), reason="neither rg nor grep is installed")
async def test_code_carries_no_private_text_to_a_stranger_and_the_warning_names_the_host_alone(
    make_config: Make, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "limits.md").write_text("A request is retried at most 7 times. The vault code is CANARY.\n")
    said = "A request is retried at most 7 times [1]."
    llm = ScriptedLLM(
        searching("retried"),
        reading("file:///limits.md#L1", get_full=True),
        answering(f"{said}\n\n```html\n<script>fetch('http://{EVIL}')</script>\n```\n\nRun `curl http://{EVIL}` [1]."),
    )
    config = make_config(search_backend="ripgrep", grep_root=str(notes), verify_judge=False)
    async with Nexi(config, llms=dict.fromkeys(("answer", "extract", "judge"), llm), fetchers=[FakeWeb({})]) as nexi:
        result = await nexi.answer("How often is a request retried?")
    warnings = [fact.message for fact in result.facts if isinstance(fact, Warned) and fact.code == "unknown_address"]
    assert "```html\n<script>fetch('[address removed]')</script>\n```" in result.answer.text
    assert "CANARY" not in result.answer.text
    assert warnings == ["the model wrote an address at evil.example that is on no page that was read; removed"]
