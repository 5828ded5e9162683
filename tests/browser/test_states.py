"""Every state of the page that `make screenshots` draws: the scanner finds nothing, and nothing sticks out of the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rig.held_model import HeldModel
from rig.page_pictures import SCREENS, Told, serving, states
from tests.browser.scene import Watched
from tests.browser.test_looks import SCAN, STICKING_OUT, TAGS, axe  # noqa: F401  # axe is a fixture

Look = Callable[..., Watched]


@pytest.mark.parametrize("width", [width for width, _ in SCREENS])
def test_the_scanner_finds_nothing_in_any_state_on_any_screen(look: Look, axe: str, width: int) -> None:  # noqa: F811
    found: dict[str, Any] = {}
    model = HeldModel(Told(), latency_s=0.05)
    with serving(model) as base:
        person = look(base, viewport={"width": width, "height": 900})
        page = person.page
        for state in states(page, base, model):
            page.evaluate(axe)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found[f"{state}, {scheme}"] = page.evaluate(
                    SCAN.replace('["serious", "critical"].includes(v.impact)', "true"), TAGS
                )
            found[f"{state}, sticking out"] = page.evaluate(STICKING_OUT, width)
    assert {state: findings for state, findings in found.items() if findings} == {}
    assert len(found) == 3 * 26
    assert [error for error in person.trouble if "404" not in error] == []
