"""Stories of the terminal whose model is broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rig.scripted_llm import Script
from tests.stories.world import KEY, QUESTION, Screen, World, free_port

CAUSES = {
    "wrong key": (
        "127.0.0.1:PORT/v1 refused the API key: Incorrect API key provided: [key]",
        "set the right key: nexi config setup",
    ),
    "no credit": (
        "127.0.0.1:PORT/v1 requires payment: Insufficient credits",
        "top up the account, or choose another model: -m MODEL",
    ),
    "wrong name": (
        "127.0.0.1:PORT/v1 does not have the model scripted: The model `scripted` does not exist",
        "choose another: `nexi models` lists them; with Ollama, `ollama pull scripted` downloads it",
    ),
}


def list_files(world: World) -> str:
    """All that is kept, as one text."""
    return "\n".join(path.read_text(errors="replace") for path in world.home.rglob("*") if path.is_file())


@pytest.mark.parametrize("trouble", CAUSES)
def test_a_model_that_refuses_is_told_with_its_fix_and_the_key_is_kept_nowhere(world: World, trouble: str) -> None:
    world.use_broken_model(trouble)
    cause, fix = CAUSES[trouble]
    assert world.run(QUESTION) == Screen(1, "", f"Error: {cause}\n  Fix: {fix}")
    assert KEY not in list_files(world)


def test_a_model_server_that_is_down_names_its_address(world: World) -> None:
    world.env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1", "NEXI_MODEL": "scripted"}
    assert world.run(QUESTION) == Screen(
        1,
        "",
        "Error: 127.0.0.1:PORT/v1 cannot be reached: nothing answers at that address\n"
        "  Fix: start the model server, or correct its address: nexi config setup",
    )


class SearchingModel(Script):
    """A model that searches the web whatever it was given, and answers from the files that it was given at first."""

    def reply(self, req: dict[str, Any]) -> tuple[str | None, list[tuple[str, dict[str, Any]]]]:
        results = [message["content"] for message in req["messages"] if message["role"] == "tool"]
        if len(results) < 2:
            return None, [("web_search", {"queries": [QUESTION]})]
        passage = json.loads(results[0])["pages"][0]["content"].partition("---\n")[2]
        return None, [("final_answer", {"answer": f"{passage} [1]"})]


def test_a_file_is_read_for_a_model_whose_search_service_is_down(world: World) -> None:
    (world.folder / "moon.txt").write_text("The Moon is 384,400 km from Earth on average, as the notes of the class say.\n")
    world.use_model(SearchingModel(2))
    done = world.run("-f", "moon.txt", QUESTION, SEARXNG_URL=f"http://127.0.0.1:{free_port()}")
    answer, _, sources = done.out.partition("\n\nSources:\n")
    assert (done.code, answer) == (0, "The Moon is 384,400 km from Earth on average, as the notes of the class say. [1]")
    assert sources.startswith("[1] moon.txt - file:///")
    assert f'Could not search "{QUESTION}"' in done.err
