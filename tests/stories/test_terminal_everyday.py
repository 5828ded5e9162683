"""Stories of the terminal where nothing is broken."""

from __future__ import annotations

from tests.stories.world import QUESTION, Screen, World


def test_a_question_in_a_pipe_leaves_the_answer_alone_on_stdout(world: World) -> None:
    assert world.run(QUESTION) == Screen(
        0,
        "The Moon is 384,400 km from Earth on average. [1]\n\nSources:\n[1] Moon facts - http://WEB/moon.test/facts",
        'Searched "How far is the Moon from Earth on average?": 3 results from searxng\n'
        "Read Moon facts (127.0.0.1)\nRead Orbit of the Moon (127.0.0.1)\nRead Tides (127.0.0.1)",
    )
    assert [entry["query"] for entry in world.history()] == [QUESTION]
