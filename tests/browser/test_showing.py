"""Answers that show: tables that sort, charts, formulas, and pictures that only the server fetches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched, web_page
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]

Look = Callable[..., Watched]
DOT = (
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000201a5f645400000000049454e44ae426082"
)
ANSWER = r"""The Moon is 384,400 km from Earth on average [1]. Its pull is $F = G\frac{m_1 m_2}{r^2}$.

| moon | width in km |
|---|---|
| Phobos | 22 |
| Moon | 3,474 |
| Deimos | 12 |

```python
print(384_400)
```
"""
FACTS = web_page(
    "http://moon.test/facts",
    "Moon facts",
    "The Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    head='<meta property="og:image" content="moon.png"><meta property="og:image:alt" content="The full Moon">'
    '<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">',
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    picture = {"url": "http://moon.test/moon.png", "title": "", "html": "", "picture": DOT}
    pages = [FACTS, picture, *PAGES[1:]]
    with stage(tmp_path_factory.mktemp("showing"), pages, Telling({QUESTION: ANSWER})) as there:
        yield there


def test_a_table_sorts_a_chart_is_drawn_a_formula_is_set_and_code_is_copied(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    first = "[...document.querySelectorAll('#answer tbody td:first-child')].map((cell) => cell.textContent.trim())"
    page.wait_for_selector("#answer th .sort")
    page.click("#answer th >> nth=1 >> .sort")
    assert page.evaluate(first) == ["Deimos", "Phobos", "Moon"]
    assert page.get_attribute("#answer th >> nth=1", "aria-sort") == "ascending"
    page.click("#answer th >> nth=1 >> .sort")
    assert page.evaluate(first) == ["Moon", "Phobos", "Deimos"]
    page.click("#answer th >> nth=0 >> .sort")
    assert page.evaluate(first) == ["Deimos", "Moon", "Phobos"]
    assert page.locator("#answer .chart rect").count() == 3
    assert page.locator("#answer math mfrac").count() == 1
    assert page.get_attribute("#answer math", "aria-label") == r"F = G\frac{m_1 m_2}{r^2}"
    assert page.locator("#answer .framed:has(pre) .copy").count() == 1
    assert person.trouble == []


def test_pictures_come_from_the_server_with_source_and_licence_and_fit_a_phone(served: Stage, look: Look, axe: str) -> None:
    person = look(served, viewport=PHONE, is_mobile=True, has_touch=True)
    page = person.open()
    person.ask()
    person.finished()
    page.wait_for_selector("#picture-list img")
    assert page.inner_text("#picture-list figcaption").endswith("· CC BY 4.0")
    assert page.get_attribute("#picture-list img", "alt") == "The full Moon"
    assert page.get_attribute("#picture-list img", "src").startswith("blob:")
    page.evaluate(axe)
    assert [*page.evaluate(SCAN, TAGS), *page.evaluate(STICKING_OUT, PHONE["width"])] == []
    assert person.trouble == []  # nothing was asked of another site
