"""The README and the handbook say what the code does: examples run, options exist, every setting is there with its default."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

from nexi import cli, config, errors, prompts
from nexi.app import SystemClock
from nexi.app.run import _describe_end
from nexi.config._values import JUDGE_VARIABLE, PLACE_VARIABLES
from nexi.config.fields import DECLARATIONS
from nexi.runs.directory import RunDirectory
from nexi.types import StopReason
from rig import miniweb
from tests.cli.command import Command as NexiCommand
from tests.cli.command import pipe
from tests.wording import find_old_words

ROOT = Path(__file__).resolve().parent.parent
HANDBOOK = sorted((ROOT / "docs").glob("*.md"))
SKILL = ROOT / "skills" / "nexi" / "SKILL.md"
PAGES = [ROOT / "README.md", SKILL, *HANDBOOK]
SCRIPTING, CONFIGURATION = ROOT / "docs" / "scripting.md", ROOT / "docs" / "configuration.md"
LINKED = [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))]
OPERATORS = ("|", ">", "&&", ";")

MOON, MARS = "http://moon.test/facts", "http://mars.test/facts"
CORPUS = [
    {
        "url": MOON,
        "title": "Moon facts",
        "html": "<html><head><title>Moon facts</title></head><body><main><h1>Moon</h1>"
        "<p>The Moon is 384,400 km from Earth on average.</p></main></body></html>",
    },
    {
        "url": MARS,
        "title": "Mars facts",
        "html": "<html><head><title>Mars facts</title></head><body><main><h1>Mars</h1>"
        "<p>Mars has two small moons that are called Phobos and Deimos.</p></main></body></html>",
    },
]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One `nexi` command of a page, with the variables set in front of it."""

    place: str
    text: str
    variables: tuple[str, ...]
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return self.place


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[Command]:
    """Every `nexi` command in a shell block or in a code span."""
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            yield from _commands_of(str(block), line)
    for span in re.findall(r"`(nexi(?: [^`]*)?)`", prose(page)):
        yield from _commands_of(page.name, span)


def _commands_of(place: str, line: str) -> Iterator[Command]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>&;")
    lexer.whitespace_split = True
    simple: list[list[str]] = [[]]
    for word in lexer:
        if word in OPERATORS:
            simple.append([])
        else:
            simple[-1].append(word)
    for words in simple:
        names = [w.partition("=")[0] for w in words if re.match(r"[A-Za-z_]+=", w)]
        rest = [w for at, w in enumerate(words) if not re.match(r"[A-Za-z_]+=", w) and (at or w != "export")]
        if rest[:1] == ["nexi"]:
            yield Command(f"{place} {line.strip()}", line, tuple(names), tuple(rest[1:]))


def of_all(find: Any) -> list[Any]:
    return [found for page in PAGES for found in find(page)]


PYTHON = [b for b in of_all(blocks) if b.language == "python"]
JSON = [b for b in of_all(blocks) if b.language == "json"]
COMMANDS = of_all(commands)


def rows(page: Path, first: str) -> dict[str, list[str]]:
    """The rows of the table whose head begins with that cell, by their first cell without its code marks."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    table: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        table[cells[0].strip("`")] = cells[1:]
    return table


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# Commands


def subcommand(name: str) -> click.Command:
    found = cli.main.get_command(click.Context(cli.main), name)
    assert found is not None
    return found


def test_there_are_commands_and_examples_to_check() -> None:
    assert (len(COMMANDS) > 40, len(PYTHON) > 5, len(JSON) > 5) == (True, True, True)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_documented_command_is_one(command: Command) -> None:
    first = command.arguments[0] if command.arguments else ""
    quoted = f'"{first}"' in command.text
    assert not first or first.startswith("-") or first in cli.COMMANDS or quoted, "no subcommand, no option, no quotes"
    context = click.Context(cli.main, info_name="nexi")
    name = first if first in cli.COMMANDS else "ask"
    arguments = list(command.arguments[name != "ask" :])
    with suppress(click.exceptions.Exit):  # --help and --version end the parsing
        found = subcommand(name).make_context(name, arguments, parent=context)
        left = [*found._protected_args, *found.args]  # what a group leaves for the command inside it
        if isinstance(found.command, click.Group) and left:
            inner_name, inner, rest = found.command.resolve_command(found, left)
            assert inner is not None
            inner.make_context(inner_name, rest, parent=found)


def test_every_variable_set_in_an_example_is_read() -> None:
    assigned = {
        name for block in of_all(blocks) if block.language == "sh" for name in re.findall(r"\b([A-Z][A-Z_]+)=", block.text)
    }
    assert assigned - variables_read() == set()


def test_the_table_of_options_is_the_commands_own() -> None:
    documented = {name for row in (SCRIPTING.read_text(encoding="utf-8").splitlines()) for name in _options_in(row)}
    declared = {n for p in subcommand("ask").params for n in (*p.opts, *p.secondary_opts) if n.startswith("-")}
    assert documented | {"--max-timeout"} == declared | {"-h", "--help"}


def _options_in(row: str) -> list[str]:
    return [s for s in spans(row.split("|")[1]) if s.startswith("-")] if row.startswith("| `-") else []


@pytest.mark.parametrize(
    ("arguments", "code", "stdout", "stderr"),
    [
        (["--version"], 0, "nexi, version", ""),
        (["--help"], 0, "Usage:", ""),
        (["--config"], 0, "config.json", ""),
        (["--last", "3"], 1, "", "the history is empty"),
        (["--prev"], 1, "", "the history is empty"),
        (["--clear-history"], 0, "", "Deleted the history. Runs and pages are still in"),
        (["demo", "--plain", "What does exit code 5 mean?"], 0, "Exit code 5 means", "the demo uses a temporary folder"),
        (["demo", "--plain", "How do I use a local model?"], 0, "set `base_url`", "the demo uses a temporary folder"),
        (["demo", "--plain", "Where does nexi keep its history?"], 0, "`history.jsonl`", "the demo uses a temporary folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands_that_need_no_network_do_what_is_said(
    tmp_path: Path, arguments: list[str], code: int, stdout: str, stderr: str
) -> None:
    done = run_nexi(arguments, NEXI_HOME=str(tmp_path))
    assert done.returncode == code
    assert stdout in done.stdout
    assert stderr in done.stderr


ASKS_A_PERSON = (
    (),
    ("config", "setup"),
    ("proof", "install", "nli-deberta-v3-xsmall"),
)  # off a terminal they say so, with exit code 2
PAGE = {
    "url": "http://moon.test/facts",
    "title": "Moon facts",
    "html": "<html><body><main><p>The moon is 384,400 km from earth on average, postgresql or not.</p></main></body></html>",
}


@pytest.fixture(scope="module")
def offline_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A loopback web, and one home in which the documented commands run one after the other."""
    home = tmp_path_factory.mktemp("documented")
    (home / "templates").mkdir()
    (home / "templates" / "short.md").write_text("Answer in one sentence.", encoding="utf-8")
    with miniweb.serve(miniweb.Corpus([PAGE])) as base:
        yield (
            f"{base}/moon.test/facts",
            {
                "NEXI_HOME": str(home),
                "SEARXNG_URL": base,
                "NEXI_MODEL": "extractive",
                "NEXI_ALLOW_PRIVATE": base.removeprefix("http://"),
                "EDITOR": "/bin/true",
                "PATH": "/nonexistent",
            },
        )


# doctor asks the machine's own name service, so it runs over stubs in test_doctor.py; serve ends only with a signal, and
# tests/web runs it; so does `mcp http`, which tests/mcp runs.
ELSEWHERE = ("doctor", "serve")
NEED_A_DATABASE = ("admin", "work")  # with one they run in tests/team


@pytest.mark.parametrize(
    "arguments",
    sorted(
        {
            c.arguments
            for c in COMMANDS
            if (not c.arguments or c.arguments[0] not in ELSEWHERE) and c.arguments[:2] != ("mcp", "http")
        }
    ),
    ids=lambda a: " ".join(a) or "nexi",
)
def test_every_documented_command_runs_without_a_traceback(
    offline_world: tuple[str, dict[str, str]],
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, env = offline_world
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(env["NEXI_HOME"])  # what a command writes beside itself stays there
    nexi = NexiCommand(Path(env["NEXI_HOME"]), monkeypatch, capsys)
    with pipe(b"how far is the moon from earth" if arguments == ("--plain",) else b"") as stdin:
        done = nexi(*(page if word.startswith("https://") else word for word in arguments), stdin=stdin)
    assert "Traceback" not in done.err
    saves_to_no_vault = "--save" in arguments
    is_refused = arguments in ASKS_A_PERSON or saves_to_no_vault or (arguments and arguments[0] in NEED_A_DATABASE)
    assert done.code in ((2,) if is_refused else (0, 1, 5, 6)), done.err
    assert done.code in (0, 6) or "Error" in done.err or "error" in done.out


def run_nexi(arguments: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nexi", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
        cwd=env.get("NEXI_HOME"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# Python and JSON


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A SearXNG on loopback, named in the environment as the pages tell the reader to."""
    with miniweb.serve(miniweb.Corpus(CORPUS)) as base:
        monkeypatch.setenv("SEARXNG_URL", base)
        monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(base).netloc)
        monkeypatch.setenv("NEXI_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        yield base


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_every_python_example_runs(block: Block, web: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})  # noqa: S102 - our own documents
    shown = capsys.readouterr().out
    assert shown.strip()
    assert "384,400 km" in shown or "Moon" not in block.text


def test_the_documented_json_is_what_the_command_prints(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question, nexi = "How far is the Moon from Earth on average?", NexiCommand(tmp_path, monkeypatch, capsys)
    answer = json.loads(nexi("--json", question).out)
    failure = json.loads(nexi("--json", "--time-target", "0.000001", question).out)
    hits = json.loads(nexi("find", "--json", "moon").out)
    page = json.loads(nexi("fetch", "--json", hits["hits"][0]["url"]).out)
    history = json.loads(nexi("history", "--json").out)
    log = RunDirectory(tmp_path / "runs", tmp_path / "pages", SystemClock()).open_log(answer["id"])
    notice = _describe_end(answer["id"], "search", [fact for _, fact in log.facts])
    forms = {shape(json.loads(block.text)) for block in JSON if '"schema"' in block.text or '"error"' in block.text}
    assert forms == {shape(value) for value in (answer, failure, hits, page, history, notice)}


def shape(value: object) -> str:
    """The keys and kinds of a JSON value."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shape(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(sorted({shape(v) for v in value})) + "]" if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("block", [b for b in JSON if '"schema"' not in b.text and '"error"' not in b.text], ids=str)
def test_every_example_of_a_config_file_is_valid_and_known(block: Block) -> None:
    assert config.Config.from_dict(json.loads(block.text)).notes == ()


def test_every_field_of_the_json_object_that_is_explained_exists() -> None:
    documented = next(json.loads(b.text) for b in blocks(SCRIPTING) if '"schema"' in b.text)
    assert set(rows(SCRIPTING, "field")) <= set(documented)
    assert spans(rows(SCRIPTING, "field")["stop"][0]) == [reason.value for reason in StopReason]


@pytest.mark.parametrize(
    ("page", "head"),
    [(SCRIPTING, "code"), (SKILL, "exit code")],
    ids=["scripting", "skill"],
)
def test_the_exit_codes_are_those_of_the_code(page: Path, head: str) -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.NexiError)]
    own = {0, cli.EXIT_FAILURE, cli.EXIT_USAGE, cli.EXIT_NOT_ANSWERED, cli.EXIT_CONTRADICTED}
    own |= {cli.EXIT_CANCELLED, cli.EXIT_TERMINATED}
    assert {int(code) for code in rows(page, head)} == own | {kind.exit_code for kind in kinds}


def test_every_word_of_the_prompt_is_documented() -> None:
    from nexi.cli.repl import SLASH_COMMANDS

    documented = [word.split()[0] for word in rows(ROOT / "docs" / "terminal.md", "command")]
    assert documented == list(SLASH_COMMANDS)


# Settings


def test_every_setting_is_documented_with_its_default_and_no_other_is() -> None:
    documented = {name: json.loads(cells[0].strip("`")) for name, cells in rows(CONFIGURATION, "setting").items()}
    assert documented == config.DEFAULT_CONFIG


def test_every_setting_is_documented_with_its_meaning() -> None:
    meanings = {name: cells[1] for name, cells in rows(CONFIGURATION, "setting").items()}
    assert [name for name in DECLARATIONS if not re.match(r"\S.*\S.*\.$", meanings.get(name, ""))] == []


def test_every_setting_is_documented_with_its_variables() -> None:
    documented = {name: set(spans(cells[2])) for name, cells in rows(CONFIGURATION, "setting").items() if spans(cells[2])}
    keys = set(config.KEY_VARIABLES.values())
    main_keys, jina = {"OPENROUTER_API_KEY", "OPENAI_API_KEY"}, {"JINA_API_KEY"}
    assert documented == {
        **{name: set(variables) for name, variables in config.FIELD_VARIABLES.items()},
        "api_key": main_keys,
        "jina_key": jina,
        "api_keys": keys - main_keys - jina,
        "roles": {JUDGE_VARIABLE},
        "color": {"NO_COLOR", "TERM"},
    }


def test_every_variable_that_is_read_is_documented() -> None:
    documented = set(re.findall(r"\b[A-Z][A-Z_]+\b|\bhttps?_proxy\b|\bno_proxy\b", CONFIGURATION.read_text(encoding="utf-8")))
    assert variables_read() - documented == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_variable_that_is_named_is_read(page: Path) -> None:
    named = {span for span in spans(prose(page)) if re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", span)}
    assert named - variables_read() == set()


def variables_read() -> set[str]:
    """What the config asks the environment for: its tables, and the names it gives to `env.get`."""
    sources = sorted(Path(config.__file__).parent.glob("*.py"))
    asked = {
        str(call.args[0].value)
        for path in sources
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) in ("env.get", "os.environ.get")
        and isinstance(call.args[0], ast.Constant)
    }
    tabled = {name for names in config.FIELD_VARIABLES.values() for name in names}
    return {*asked, *tabled, *config.KEY_VARIABLES.values(), *PLACE_VARIABLES, JUDGE_VARIABLE}


def test_the_effort_levels_are_those_of_the_code() -> None:
    documented = {effort.removeprefix("-e "): int(cells[0]) for effort, cells in rows(CONFIGURATION, "effort").items()}
    assert documented == {effort: level["max_iter"] for effort, level in config.EFFORT_LEVELS.items()}


def test_every_prompt_is_documented_with_its_values() -> None:
    documented = {name: set(spans(cells[1])) for name, cells in rows(ROOT / "docs" / "prompts.md", "name").items()}
    assert documented == {name: set(prompts.placeholders(prompts.read_packaged_prompt(name))) for name in prompts.NAMES}


def test_every_quoted_symptom_is_a_message_of_the_code() -> None:
    page = ROOT / "docs" / "troubleshooting.md"
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "nexi").rglob("*.py")))
    symptoms = re.findall(r'^\| ([^|]*"[^|]*) \|', page.read_text(encoding="utf-8"), re.MULTILINE)
    parts = [part.strip() for quote in re.findall(r'"([^"]+)"', "\n".join(symptoms)) for part in _fixed_parts(quote)]
    assert len(parts) > 8
    assert [part for part in parts if part not in source] == []


def _fixed_parts(message: str) -> list[str]:
    """A message without the values filled into it."""
    return [part for part in re.split(r"'[^']*'|\d+(?:\.\d+)*|application/pdf", message) if len(part.strip()) > 3]


# Pages


def test_the_skill_has_the_front_matter_an_agent_looks_for() -> None:
    _, front, _ = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert (list(fields), fields["name"]) == (["name", "description"], "nexi")
    assert 100 < len(fields["description"]) <= 1024


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_links_between_documents_resolve(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    inner = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in inner if not (page.parent / link).exists()] == []


def test_the_readme_links_every_page_of_the_handbook() -> None:
    linked = set(re.findall(r"\]\((docs/[^)\s]+\.md)\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert linked == {f"docs/{page.name}" for page in HANDBOOK}


@pytest.mark.parametrize("page", HANDBOOK, ids=lambda page: page.stem)
def test_a_page_of_the_handbook_has_one_title(page: Path) -> None:
    text = prose(page)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md"])
def test_every_file_that_a_newcomer_is_sent_to_exists(name: str) -> None:
    named = {span for span in spans(prose(ROOT / name)) if re.match(r"(?:nexi|tests|rig|docs)/[\w*./-]*$", span)}
    assert [path for path in sorted(named) if not list(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda page: page.stem)
def test_every_test_that_a_decision_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    paths = set(re.findall(r"\b(?:tests|evals|bench|rig)/[\w*./-]*\w", text))
    assert [path for path in sorted(paths) if not list(ROOT.glob(path)) and not list(ROOT.glob(f"{path}*"))] == []
    assert [name for name in sorted(set(re.findall(r"`(test_\w+)", text))) if f"def {name}(" not in _all_tests()] == []


@lru_cache
def _all_tests() -> str:
    return "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def test_the_architecture_answers_the_questions_of_a_newcomer() -> None:
    assert list(rows(ROOT / "ARCHITECTURE.md", "file")) == [
        "nexi/app/request.py",
        "nexi/app/resolve.py",
        "nexi/app/run.py",
        "nexi/agent/loop.py",
        "nexi/tools/toolbox.py",
        "nexi/checking/answer.py",
        "nexi/research/state.py",
        "nexi/events.py",
    ]
    anchors = re.findall(r"CONTRIBUTING\.md#([\w-]+)", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    heads = re.findall(r"^## (.*)$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(anchors) == 3
    assert set(anchors) <= {head.lower().replace(" ", "-") for head in heads}


def test_the_architecture_lists_every_folder_with_its_size() -> None:
    page, package = ROOT / "ARCHITECTURE.md", ROOT / "nexi"
    listed = {name: cells[0] for first in ("core", "adapters", "products") for name, cells in rows(page, first).items()}
    sizes = {
        f"{folder.name}/": sum(len(file.read_text("utf-8").splitlines()) for file in folder.rglob("*.py"))
        for folder in package.iterdir()
        if (folder / "__init__.py").exists()
    }
    assert sorted(listed) == sorted(sizes)
    stated = {name: int(lines.replace(",", "")) for name, lines in listed.items()}
    assert [name for name in stated if abs(stated[name] - sizes[name]) > max(100, sizes[name] // 5)] == []


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_no_page_names_a_folder_of_a_developer(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"(?:/home/|/root\b|/Users/|/wor[k]/|/tmp/|/opt/|[A-Z]:\\Users)\S*", text) == []
    assert str(Path.home()) not in text


# Words


GLOSSARY = re.compile(r"^\| write \| not \|\n(?:\|.*\n)*|^\| never \|.*$", re.MULTILINE)
READ_BY_USERS = [*LINKED, ROOT / "man" / "nexi.1", *sorted((ROOT / ".github").rglob("*.md"))]


@pytest.mark.parametrize("page", READ_BY_USERS, ids=lambda page: page.stem)
def test_a_document_uses_none_of_the_words_that_stop_a_reader(page: Path) -> None:
    text = prose(page) if page.suffix == ".md" else page.read_text(encoding="utf-8")
    assert find_old_words(GLOSSARY.sub("", text)) == []
