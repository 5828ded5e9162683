"""What the shells complete, what help and the manual page show, and what a command that starts at once does not import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from nexi.cli import MODULES, main, manual
from nexi.cli.flags import COMMANDS
from nexi.history import add_history_entry, create_entry
from tests.cli.command import Command

ROOT = Path(__file__).resolve().parent.parent.parent


def complete(*args: str) -> list[str]:
    """What is offered for the last word."""
    *before, last = args
    return [item.value for item in ShellComplete(main, {}, "nexi", "_NEXI_COMPLETE").get_completions(list(before), last)]


def test_the_first_word_may_be_a_subcommand_and_no_later_one() -> None:
    assert complete("") == sorted(COMMANDS)
    assert complete("do") == ["doctor"]
    assert complete("why", "do") == []


def test_options_and_their_values_are_completed() -> None:
    assert complete("--eff") == ["--effort"]
    assert complete("-e", "") == ["s", "m", "l"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("doctor", "--j") == ["--judge", "--json"]
    assert complete("config", "set") == ["set", "setup"]


def test_history_ids_and_templates_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    assert complete("--show", "") == complete("--template", "") == []
    for entry_id in ("abc123", "abd456"):
        add_history_entry(create_entry("Why?", "So.", [], "m", 1, 1.0, 1, id=entry_id))
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "short.md").write_text("Be brief.")
    assert complete("--show", "ab") == ["abd456", "abc123"]
    assert complete("--show", "abc") == ["abc123"]
    assert complete("--template", "s") == ["short"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_nexi(nexi: Command, shell: str) -> None:
    done = nexi("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_NEXI_COMPLETE={shell}_complete" in done.out


def test_an_unknown_shell_is_a_usage_error(nexi: Command) -> None:
    assert nexi("completion", "tcsh").code == 2


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_takes_the_script_and_the_command_answers_it(nexi: Command, tmp_path: Path) -> None:
    script = tmp_path / "nexi.bash"
    script.write_text(nexi("completion", "bash").out)
    env = {"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)}
    assert subprocess.run(["bash", "-n", script], env=env, check=False).returncode == 0
    asked = {**env, "_NEXI_COMPLETE": "bash_complete", "COMP_WORDS": "nexi doc", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "nexi"], env=asked, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,doctor\n"


# help and the manual page


def test_help_fits_80_columns_and_has_every_option_and_subcommand_under_a_heading(nexi: Command) -> None:
    text = nexi("--help").out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Search:", "Research:", "Output:", "History:", "Configuration:", "Commands (nexi COMMAND --help for details):",
    ]  # fmt: skip
    ask = main.commands["ask"]
    assert [o for p in ask.params if isinstance(p, click.Option) and not p.hidden for o in p.opts if o not in text] == []
    assert nexi("-h").out == text


def test_every_line_of_a_subcommand_is_its_own_first_sentence() -> None:
    context = click.Context(main)
    own = {name: main.get_command(context, name) for name in COMMANDS}
    first = {name: " ".join(((command and command.help) or "").split("\n\n")[0].split()) for name, command in own.items()}
    shorter = {"demo", "index", "table", "verify"}  # their first sentence is too long for the list
    assert {name for name in COMMANDS if first[name] != COMMANDS[name]} == shorter
    assert all(first.values())


def test_every_grouped_option_exists() -> None:
    names = {p.name for p in main.commands["ask"].params} | {"help"}
    assert {name for group in manual.HEADINGS.values() for name in group} - names == set()


def test_the_manual_page_is_up_to_date() -> None:
    kept = (ROOT / "man" / "nexi.1").read_text(encoding="utf-8")
    assert kept == manual._render_manual(), "run: python -m nexi.cli.manual > man/nexi.1"


def test_text_that_roff_would_obey_is_shown_as_it_is() -> None:
    assert manual._escape_roff(".TH x-y \\fB `code`") == "\\&.TH x\\-y \\efB code"


# mistakes


@pytest.mark.parametrize("words", [["doctor", "who", "is", "he"], ["config", "of", "nginx"], ["models", "of", "cars"]])
def test_stray_words_after_a_subcommand_suggest_quotes(nexi: Command, words: list[str]) -> None:
    done = nexi(*words)
    assert (done.code, done.out) == (2, "")
    assert f'quote it: nexi "{words[0]} ..."' in done.err


def test_a_wrong_option_of_a_subcommand_is_told_without_that(nexi: Command) -> None:
    done = nexi("doctor", "--jsn")
    assert (done.code, "--json" in done.err, "quotes" in done.err) == (2, True, False)


def test_a_wrong_option_names_the_command_as_it_is_typed(nexi: Command) -> None:
    assert "Try 'nexi --help' for help." in nexi("--efort", "s").err


# starting at once

HEAVY = (
    "httpx2",
    "asyncio",
    "rich",
    "prompt_toolkit",
    "nexi.app.assembly",
    "nexi.app.factory",
    "nexi.app.run",
    "nexi.agent",
    "nexi.doctor",
    "nexi.llm",
    "nexi.fetchers",
)
PROBE = """
import json, sys
from nexi.__main__ import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["--last", "3"], ["--prev"], ["--config"], ["config", "path"]])
def test_a_command_that_starts_at_once_imports_nothing_heavy(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "history.jsonl").write_text(json.dumps(create_entry("q", "a", [], "m", 1, 1.0, 1).to_dict()) + "\n")
    env = {"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROBE, *args], env=env, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert [m for m in loaded if any(m == heavy or m.startswith(f"{heavy}.") for heavy in HEAVY)] == []


def test_help_imports_no_subcommand(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROBE, "--help"], env=env, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    modules = {MODULES.get(name, f"nexi.cli.{name}") for name in COMMANDS}
    assert modules & set(loaded) == set()
