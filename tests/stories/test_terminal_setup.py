"""Stories of `nexi config setup` that fails or is left: the cause and the fix are on the screen, nothing is saved unasked."""

from __future__ import annotations

import socket
import subprocess

import pytest

from rig.terminal import CTRL_C, CTRL_D, ENTER, Terminal
from tests.stories.world import KEY, World

LEFT = (
    "Save anyway? [y/N] (N asks again): Error: setup was not completed: the input ended\n  Fix: run `nexi config setup` again"
)


def answer_setup(screen: Terminal, base_url: str, prompt: str) -> None:
    """Answer every question of the setup; `prompt` is how it asks for a model of this server, which may want a key first."""
    screen.expect("URL of the model API")
    screen.type(base_url + ENTER)
    if prompt == "Model":
        screen.expect("API key (empty")
        screen.type(KEY + ENTER)
    screen.expect(prompt)
    screen.type("scripted" + ENTER)
    screen.expect("SearXNG")
    screen.type(ENTER)
    screen.expect("Save anyway? [y/N] (N asks again): ")


def test_a_key_that_is_refused_in_the_setup_is_told_and_not_saved(world: World) -> None:
    world.use_broken_model("wrong key")
    base_url = world.env.pop("OPENAI_BASE_URL")
    kept = world.settings()
    del world.env["OPENAI_API_KEY"], world.env["NEXI_MODEL"]
    with world.terminal("config", "setup", columns=120, module="rig.closed_ports") as screen:
        answer_setup(screen, base_url, "Model")
        screen.type(CTRL_D)
        done = world.look_at(screen)
    assert done.out.partition("Testing model and search ...\n")[2] == (
        "  failed  model: 127.0.0.1:PORT/v1 refused the API key: Incorrect API key provided: [key]\n"
        "          Fix: set the right key: nexi config setup\n"
        "  ok      search searxng: 0 results for a test query\n" + LEFT
    )
    assert KEY not in screen.raw
    assert (done.code, world.settings()) == (2, kept)


def test_a_search_service_that_is_refused_in_the_setup_is_told_and_not_saved(world: World) -> None:
    world.use_model()
    base_url = world.env.pop("OPENAI_BASE_URL")
    del world.env["NEXI_MODEL"]
    world.web.trouble = "json off"
    kept = world.settings()
    with world.terminal("config", "setup", columns=120, module="rig.closed_ports") as screen:
        answer_setup(screen, base_url, "Model, by number or name")
        screen.type(CTRL_D)
        done = world.look_at(screen)
    assert done.out.partition("(max_context)\n")[2] == (
        "  failed  search searxng: SearXNG refuses to answer in JSON: HTTP 403: the instance has its JSON format "
        "switched off,\n  which is its default\n"
        "          Fix: add `json` to search.formats in its settings.yml and restart it\n" + LEFT
    )
    assert (done.code, world.settings()) == (2, kept)


@pytest.mark.parametrize("prompt", ["URL of the model API", "API key (empty"])
def test_ctrl_c_at_a_question_of_the_setup_ends_it_and_saves_nothing(world: World, prompt: str) -> None:
    kept = world.settings()
    with world.terminal("config", "setup", columns=120, module="rig.closed_ports") as screen:
        if prompt != "URL of the model API":
            screen.expect("URL of the model API")
            screen.type("http://127.0.0.1:9/v1" + ENTER)
        screen.expect(prompt)
        screen.type(CTRL_C)
        try:
            screen.process.wait(20)
        except subprocess.TimeoutExpired:  # readline misses a signal between its prompt and its first look at the keys
            screen.type(CTRL_C)
        done = world.look_at(screen)
    assert (done.code, world.settings(), "Traceback" in done.out) == (130, kept, False)


@pytest.mark.parametrize("silent", ["model", "search"])
def test_ctrl_c_while_a_server_is_silent_ends_the_setup_at_once_and_saves_nothing(world: World, silent: str) -> None:
    world.use_model()
    base_url = world.env.pop("OPENAI_BASE_URL")
    del world.env["NEXI_MODEL"]
    kept = world.settings()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with world.terminal("config", "setup", columns=120, module="rig.closed_ports") as screen:
            screen.expect("URL of the model API")
            screen.type((f"{address}/v1" if silent == "model" else base_url) + ENTER)
            answers = () if silent == "model" else ("scripted", address)
            for prompt, answer in zip(("Model, by number", "SearXNG"), answers, strict=False):
                screen.expect(prompt)
                screen.type(answer + ENTER)
            with server.accept()[0]:  # it is asked now
                screen.type(CTRL_C)
                done = world.look_at(screen)
    assert (done.code, world.settings(), "Traceback" in done.out) == (130, kept, False)
