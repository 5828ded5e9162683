"""The first day of a person with no key, no container and no model: ten questions of different kinds, over the open services.

The services are stand-ins on loopback; DuckDuckGo, whose library has no other address, is left out.
"""

from __future__ import annotations

from pathlib import Path

from rig import miniweb
from rig.services import search_corpus, serve_services
from tests.keyless import PAGES, QUESTIONS
from tests.stories.world import make_world


def test_ten_questions_of_different_kinds_are_answered_without_a_key(tmp_path: Path) -> None:
    with make_world(tmp_path, PAGES) as world:
        del world.env["SEARXNG_URL"], world.env["NEXI_MODEL"]
        find_pages = search_corpus(
            miniweb.Corpus(PAGES), lambda url: f"http://{world.web.address}/{url.removeprefix('http://')}"
        )
        with serve_services(find_pages) as urls:
            world.set(services=["-duckduckgo"], service_urls=urls)
            screens = {kind: world.run(question) for kind, (question, _) in QUESTIONS.items()}
    asked = [entry["query"] for entry in world.history()]
    found = {kind: (screen.code, QUESTIONS[kind][1] in screen.out, "[1] " in screen.out) for kind, screen in screens.items()}
    assert found == dict.fromkeys(QUESTIONS, (0, True, True)), screens
    assert asked == [question for question, _ in QUESTIONS.values()]
