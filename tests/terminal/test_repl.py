"""The prompt, driven as a person would: keys go into a terminal, and what it shows is read."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexi.cli.exits import EXIT_TERMINATED
from nexi.cli.repl import MAX_HISTORY_LINES, _read_inputs, _save_input
from rig.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, TAB, UP, Terminal, terminal
from tests.faults.command import QUESTION, answering, endpoint, reading, searching
from tests.llm.server import Canned

pytestmark = pytest.mark.long

PROMPT = "nexi>"
HANGS = Canned(200, (), "text/event-stream", then="hang")
PASTED = "\x1b[200~{}\x1b[201~"


@contextmanager
def talking(env: dict[str, str], *arguments: str, **size: int) -> Iterator[Terminal]:
    with terminal(arguments, env, **size) as screen:
        screen.expect(PROMPT)
        yield screen


def test_a_conversation_with_a_follow_up_that_ctrl_c_stops(env: dict[str, str], web: str) -> None:
    script = [searching(), reading(web), answering(), searching(), HANGS]
    with endpoint(script) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with talking({**env, **models}, "-v") as screen:
            screen.type(QUESTION + ENTER)
            screen.expect("The Moon is 384,400 km away on average [1].")
            screen.expect("[1] Moon facts")
            screen.expect(PROMPT)
            screen.type("And how many craters does the Moon have?" + ENTER)
            screen.expect("(answer), call 2,")
            screen.type(CTRL_C)
            screen.expect("the search was stopped; this answer uses what was read until then")
            screen.expect("craters")
            screen.expect("Sources")
            screen.expect(PROMPT)
            screen.type("/sources" + ENTER)
            screen.expect("[1] Moon facts")
            screen.expect(PROMPT)
            screen.type(CTRL_D)
            assert screen.ending() == 0
        asked = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "user"]
    assert asked == [QUESTION, "And how many craters does the Moon have?"]


def test_a_second_ctrl_c_gives_the_search_up_and_returns_to_the_prompt(env: dict[str, str], web: str) -> None:
    with endpoint([HANGS]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with talking({**env, **models}, "-v") as screen:
            screen.type(QUESTION + ENTER)
            screen.expect("(answer), call 1,")
            screen.type(CTRL_C)
            screen.expect("Stopped before any page was read")
            screen.expect(PROMPT)
            screen.type("exit" + ENTER)
            assert screen.ending() == 0


def test_ctrl_c_at_the_prompt_clears_the_line_and_never_leaves(env: dict[str, str]) -> None:
    with talking(env) as screen:
        screen.type("/sources and more")
        screen.expect("and more")
        screen.type(CTRL_C + CTRL_C + "/model" + ENTER)
        screen.expect("Model: extractive")
        screen.expect(PROMPT)
        screen.type(CTRL_D)
        assert screen.ending() == 0
        assert screen.echoes()


def test_the_first_prompt_says_how_to_add_a_model(env: dict[str, str]) -> None:
    with terminal([], env) as screen:
        assert "nexi config setup\n" in screen.expect(PROMPT)
        screen.type("quit" + ENTER)
        assert screen.ending() == 0


def test_slash_words(env: dict[str, str], tmp_path: Path) -> None:
    saved = tmp_path / "moon.md"
    with talking(env) as screen:
        for typed, shown in (
            ("/sources", "Error: "),
            ("/retry", "Error: "),
            ("/effort xl", "'xl'"),
            ("/effort s", "Effort: s"),
            ("/model some/model", "no API key is configured, so extractive answers"),
            ("/modle", "/model?"),
            ("help", "/save [FILE]"),
            (QUESTION, "Sources"),
            ("/retry", "Sources"),
            (f"/save {saved}", "Saved the answer to"),
            (f"/save {saved}", "cannot write"),
        ):
            screen.type(typed + ENTER)
            screen.expect(shown)
            screen.expect(PROMPT)
        screen.type("q" + ENTER)
        assert screen.ending() == 0
    text = saved.read_text(encoding="utf-8")
    assert saved.stat().st_mode & 0o777 == 0o600
    assert text.startswith(f"# {QUESTION}\n\n")
    assert "384,400 km" in text
    assert "Sources:\n[1] Moon facts - http" in text


def test_keys_complete_recall_and_break_lines(env: dict[str, str]) -> None:
    with talking(env) as screen:
        screen.type("/eff" + TAB + " m" + ENTER)
        screen.expect("Effort: m (balanced)")
        screen.expect(PROMPT)
        screen.type(UP + ENTER)
        screen.expect("Effort: m (balanced)")
        screen.expect(PROMPT)
        screen.type("How far is the Moon" + ALT_ENTER + PASTED.format("from Earth\non average") + ENTER)
        screen.expect("Sources")
        screen.expect(PROMPT)
        screen.type(CTRL_D)
        assert screen.ending() == 0
    history = Path(env["NEXI_HOME"]) / "repl_history"
    assert [json.loads(line) for line in history.read_text().splitlines()] == [
        "/effort m",
        "How far is the Moon\nfrom Earth\non average",
    ]
    assert history.stat().st_mode & 0o777 == 0o600


def test_a_dumb_terminal_has_the_same_words_and_no_escape_codes(env: dict[str, str]) -> None:
    with terminal([], {**env, "TERM": "dumb"}) as screen:
        screen.expect(PROMPT)
        screen.type(CTRL_C)
        screen.expect(PROMPT)
        screen.type("/effort l\n")
        screen.expect("Effort: l")
        screen.expect(PROMPT)
        screen.type(QUESTION + "\n")
        screen.expect("The Moon is 384,400 km from Earth on average.")
        screen.expect("Sources:\n[1] Moon facts - http")
        screen.expect(PROMPT)
        screen.type(CTRL_D)
        assert screen.ending() == 0
        assert "\x1b" not in screen.raw


def test_sigterm_at_the_prompt_puts_the_terminal_back(env: dict[str, str]) -> None:
    with talking(env) as screen:
        assert not screen.echoes()
        screen.signal(signal.SIGTERM)
        assert screen.ending() == EXIT_TERMINATED
        assert screen.echoes()


def test_a_prompt_that_cannot_keep_its_history_still_answers(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "repl_history").mkdir()
    with talking(env) as screen:
        screen.type("/model" + ENTER)
        screen.expect("Model: extractive")
        screen.expect(PROMPT)
        screen.type(CTRL_D)
        assert screen.ending() == 0


def test_the_kept_input_is_private_bounded_and_skips_what_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "new" / "repl_history"
    _save_input(path, "first\nsecond")
    path.write_bytes(b'{"no": "string"}\n\xff\xfe garbage\n' + path.read_bytes())
    assert list(_read_inputs(path)) == ["first\nsecond"]
    path.write_text("".join(f'"{n}"\n' for n in range(MAX_HISTORY_LINES + 5)))
    _save_input(path, "last")
    kept = list(_read_inputs(path))
    assert (len(kept), kept[0], kept[-1]) == (MAX_HISTORY_LINES, "last", str(6))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_setup_can_be_done_from_the_prompt(env: dict[str, str], tmp_path: Path) -> None:
    with terminal([], env, module="rig.closed_ports") as screen:
        screen.expect("Type /setup to choose a model.")
        screen.expect(PROMPT)
        screen.type("/setup" + ENTER)
        screen.expect("Looking for Ollama")
        for asked in ("URL of the model", "API key", "Model", "SearXNG"):
            screen.expect(asked)
            screen.expect("]: ")
            screen.type(ENTER)
        screen.expect("ok      search searxng: ")
        screen.expect("Model: ")
        assert (tmp_path / "nexi" / "config.json").exists()


def test_a_question_that_may_mean_several_things_is_asked_back_once(env: dict[str, str], tmp_path: Path) -> None:
    for kind, told in (("basketball", "17 February 1963 in Brooklyn"), ("footballer", "7 April 1986 in Cheshunt")):
        text = f"# Michael Jordan ({kind})\n\nMichael Jordan was born on {told}.\n"
        (tmp_path / f"{kind}.md").write_text(text, encoding="utf-8")
    with talking(env, "--local", columns=160) as screen:
        for name in ("basketball", "footballer"):
            screen.type(f"/file {tmp_path / name}.md" + ENTER)
            screen.expect(PROMPT)
        screen.type("When was Michael Jordan born?" + ENTER)
        screen.expect("Which one do you mean? Type its number: 1 Michael Jordan (")
        screen.expect(PROMPT)
        screen.type("2" + ENTER)
        screen.expect("Michael Jordan was born on")
        screen.expect(PROMPT)
        assert screen.text.count("Which one do you mean?") == 1
        screen.type(CTRL_D)
        assert screen.ending() == 0
