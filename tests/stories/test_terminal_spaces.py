"""A space at the terminal: files that are searched first, instructions that the model is given, threads that stay together."""

from __future__ import annotations

import json

from tests.stories.world import QUESTION, World

LEASE = "# Lease of the flat\n\nThe rent of the flat is 812 euros a month. The notice period is three months.\n"
RENT = "What is the rent of the flat a month?"


def test_a_space_answers_from_its_own_file_and_keeps_its_questions_together(world: World) -> None:
    (world.folder / "lease.md").write_text(LEASE)
    added = world.run("spaces", "add", "flat", "lease.md", "--instructions", "Quote the clause.", "--scope", "local")
    assert (added.code, added.err) == (
        0,
        'Indexed 1 sources\nAdded the space flat. Ask in it: nexi --space flat "your question"',
    )
    assert world.run("spaces").out == "flat  1 source · scope local"
    answered = world.run("--space", "flat", RENT)
    assert (answered.code, "812 euros" in answered.out, "lease.md" in answered.out) == (0, True, True)
    assert not world.web.searched.is_set()
    world.run(QUESTION)
    shown = json.loads(world.run("spaces", "show", "flat", "--json").out)["space"]
    (of_space, other) = sorted(world.history(), key=lambda entry: entry["query"] != RENT)
    assert (of_space["space"], "space" in other, len(shown["runs"])) == ("flat", False, 1)
    assert (shown["name"], shown["instructions"], [s["title"] for s in shown["sources"]]) == (
        "flat",
        "Quote the clause.",
        ["Lease of the flat"],
    )


def test_a_space_that_is_removed_leaves_its_files_and_questions_unless_it_is_asked_to_take_them(world: World) -> None:
    (world.folder / "lease.md").write_text(LEASE)
    world.run("spaces", "add", "flat", "lease.md")
    world.run("--space", "flat", RENT)
    assert world.run("spaces", "rm", "flat").err == "Removed the space flat."
    assert ("lease.md" in world.run("sources").out, [e["query"] for e in world.history()]) == (True, [RENT])
    gone = world.run("--space", "flat", RENT)
    assert (gone.code, gone.err) == (1, "Error: there is no space 'flat'\n  Fix: nexi spaces lists them")
    world.run("spaces", "add", "flat")
    assert world.run("spaces").out == "flat  1 source"
    assert world.run("spaces", "rm", "flat", "--with-files").err == "Removed the space flat and 1 of its sources."
    assert "lease.md" not in world.run("sources").out


def test_the_model_is_given_the_instructions_of_the_space_as_those_of_the_user(world: World) -> None:
    model = world.use_model()
    world.run("spaces", "add", "moon", "--instructions", "Give every distance in miles, too.")
    assert world.run("--space", "moon", QUESTION).code == 0
    system = model.requests[0]["messages"][0]["content"]
    assert system.endswith(
        'This question is asked in the space "moon". The user wrote these instructions for every question in it. Follow them, '
        "unless they contradict what is said above about evidence, citations and the form of your reply.\n\n"
        "Give every distance in miles, too."
    ), system[-400:]


def test_the_prompt_enters_and_leaves_a_space(world: World) -> None:
    (world.folder / "lease.md").write_text(LEASE)
    world.run("spaces", "add", "flat", "lease.md", "--scope", "local")
    with world.terminal() as prompt:
        prompt.expect("Ask a question.")
        prompt.type("/space flat\r")
        prompt.expect("Space: flat")
        prompt.type(f"{RENT}\r")
        prompt.expect("812 euros")
        prompt.type("/space none\r")
        prompt.expect("Space: none")
        prompt.type("exit\r")
