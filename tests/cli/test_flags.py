"""The flags of a question, of `find` and of `fetch`."""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pytest

from nexi.answers.citations import unlink_citations
from nexi.app import LAST_RUN, Nexi, RunLimits, RunRequest, SystemClock, open_runs
from nexi.app.conversation import load_last_conversation
from nexi.app.factory import PortFactory
from nexi.backends.searxng import Searxng
from nexi.cli import main
from nexi.cli.flags import AskFlags, OutputFlags, _FilterFlags, parse_flags
from nexi.cli.runner import run_request
from nexi.config import load_config
from nexi.errors import BackendError
from nexi.history import FileHistory, create_entry
from nexi.runs.directory import RunDirectory
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading
from nexi.types import Hit, Message, Query, Source
from tests.cli.command import QUESTION, Command, Terminal, pipe

FOLLOW_UP = "Does it have air?"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The queries that reached the search service's dialect."""
    queries: list[Query] = []
    request = Searxng.request

    def note(self: Searxng, query: Query) -> Any:
        queries.append(query)
        return request(self, query)

    monkeypatch.setattr(Searxng, "request", note)
    return queries


# as typed values


@pytest.mark.parametrize("name", ["ask", "research", "resume"])
def test_every_option_of_a_question_has_a_typed_field_with_its_default(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    options = [p for p in command.params if isinstance(p, click.Option) and p.name not in ("version", "help")]
    assert options
    assert parse_flags({p.name: p.type_cast_value(click.Context(command), None) for p in options}) == AskFlags()


def test_an_option_without_a_field_is_refused() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        parse_flags({"nonsense": 1})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"form": "json"}, OutputFlags(form="json", as_json=True, plain=True)),
        ({"as_json": True}, OutputFlags(as_json=True, plain=True)),
        ({"form": "md"}, OutputFlags(form="md", plain=True)),
        ({"form": "ris"}, OutputFlags(form="ris")),
        ({"form": None, "output": None, "verbose": True}, OutputFlags(verbose=True)),
    ],
)
def test_a_format_for_programs_is_plain(options: dict[str, Any], expected: OutputFlags) -> None:
    assert parse_flags(options) == AskFlags(output=expected)


def test_flags_become_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    flags = parse_flags(
        {
            "effort": "l",
            "max_iterations": 4,
            "time_target": 9.0,
            "max_output_tokens": 50,
            "max_cost": 0.5,
            "max_tokens": 900,
            "num": 3,
        }
        | {"sites": ("moon.test", "-mars.test"), "time_range": "m", "focus": "docs", "model": "m", "local": True}
        | {"system": "In French.", "files": ("a.md",), "go_on": True, "depth": 2, "strict": True, "no_stream": True}
    )
    assert run_request(flags, "why?", "research") == RunRequest(
        "why?",
        mode="research",
        effort="l",
        limits=RunLimits(max_iterations=4, time_target=9.0, max_output_tokens=50, max_cost=0.5, max_tokens=900),
        query=Query("", count=3, sites=("moon.test",), excluded_sites=("mars.test",), time_range="m", focus="docs"),
        model="m",
        scope="local",
        system_prompt="In French.",
        attachments=("a.md",),
        continues=LAST_RUN,
        depth=2,
        strict=True,
        door="cli",
    )
    assert run_request(AskFlags(), "why?") == RunRequest("why?", door="cli")


# -n, -w, -t


NARROW = ["-n", "3", "-w", "https://Moon.test/", "-w", "-mars.test", "-w=-venus.test/a", "-t", "m"]
NARROWED = {"count": 3, "sites": ("moon.test",), "excluded_sites": ("mars.test", "venus.test/a"), "time_range": "m"}


@pytest.mark.parametrize("command", [["find", "moon"], ["--plain", "moon"]], ids=["find", "ask"])
def test_hits_sites_and_time_reach_the_search_service(online: Command, asked: list[Query], command: list[str]) -> None:
    online(*command, *NARROW)
    assert asked[0] == Query("moon", **NARROWED)  # type: ignore[arg-type]


def test_without_options_the_query_is_plain() -> None:
    assert _FilterFlags().query("moon") == Query("moon")


@pytest.mark.parametrize("site", ["", "-", "two words", "a b.test", "..", "-site:x y", "http://"])
@pytest.mark.parametrize("command", [["find", "moon"], ["moon facts"]], ids=["find", "ask"])
def test_what_is_no_site_is_a_usage_error(nexi: Command, command: list[str], site: str) -> None:
    done = nexi(*command, "-w", site)
    assert (done.code, done.out) == (2, "")
    assert "write it like example.com" in done.err


@pytest.mark.parametrize(
    "flags", [["-n", "0"], ["-n", "101"], ["-t", "h"], ["--format", "pdf"], ["--last", "0"], ["--last", "x"]]
)
def test_values_out_of_range_are_usage_errors(nexi: Command, flags: list[str]) -> None:
    done = nexi("moon facts", *flags)
    assert (done.code, done.out) == (2, "")
    assert "Invalid value for" in done.err


def test_a_service_that_is_down_is_named_with_its_fix(online: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:9")
    done = online("find", "moon")
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith("Error: no results: searxng: ")
    assert "  Fix: " in done.err


@pytest.fixture
def half_down(online: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Of two search services the first is down."""

    class Down:
        name = "down"

        async def search(self, query: Query) -> list[Hit]:
            raise BackendError("it is closed", code="connect", cause="nobody listens", fix="start it")

    web = FakeWeb({"https://moon.test/": "Moon\x1b[31m facts\n\nfar away"}, name="up")
    monkeypatch.setattr(PortFactory, "backends", lambda self: (Down(), web))
    return online


def test_a_service_that_failed_before_another_answered_is_named(half_down: Command) -> None:
    done = half_down("find", "moon")
    assert done.out == "[1] Moon facts\n    https://moon.test/\n    Moon facts far away\n"
    assert done.err == "Warning: down failed (connect): it is closed: nobody listens. Fix: start it\n1 hit from up\n"


def test_a_service_that_failed_is_in_the_json(half_down: Command) -> None:
    failures = json.loads(half_down("find", "--json", "moon").out)["failures"]
    assert failures == [{"provider": "down", "code": "connect", "message": "it is closed: nobody listens", "fix": "start it"}]


async def test_find_and_fetch_are_there_in_python_too(online: Command, web: str) -> None:
    async with Nexi(load_config()) as nexi:
        found = await nexi.find("moon")
        page = await nexi.fetch(found.hits[0].url)
    assert (found.backend, found.hits[0].title, page.title) == ("searxng", "Moon facts", "Moon facts")
    assert not (online.home / "pages").exists()


# -o, --format, -u, --copy


def test_an_answer_is_written_to_a_new_file(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "answer.md"
    done = online("-o", str(file), QUESTION)
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith(f"Saved the answer to {file}.\n")
    head, _, text = file.read_text(encoding="utf-8").partition("\n---\n")
    assert head.startswith(f'---\nquestion: "{QUESTION}"\nmodel: "extractive"\n')
    answer = online("--plain", QUESTION).out.partition("\n\nSources:\n")[0]
    assert unlink_citations(text).partition("\n\n## Sources\n")[0] == f"\n# {QUESTION}\n\n{answer}"
    assert text.endswith("\n\n*Checked: 1 of 1 sentence found in the cited pages.*\n")
    assert file.stat().st_mode & 0o777 == 0o600


def test_json_is_written_to_a_new_file(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    online("--format", "json", "-o", str(file), QUESTION)
    assert json.loads(file.read_text(encoding="utf-8"))["schema"] == "nexi-answer-1"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "nowhere"])
def test_a_file_that_cannot_be_made_is_refused_before_the_search(
    online: Command, tmp_path: Path, asked: list[Query], kind: str
) -> None:
    file = tmp_path / "answer.md"
    if kind == "file":
        file.write_text("mine", encoding="utf-8")
    elif kind == "folder":
        file.mkdir()
    elif kind == "link":
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file = tmp_path / "no" / "answer.md"
    done = online("-o", str(file), QUESTION)
    assert (done.code, done.out, asked) == (2, "", [])
    assert "  Fix: " in done.err
    assert not (tmp_path / "elsewhere").exists()
    assert kind != "file" or file.read_text(encoding="utf-8") == "mine"


def test_an_answer_is_saved_as_a_report_where_reports_go(
    online: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work" / "research").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    done = online("--plain", "--save", QUESTION)
    (file,) = (tmp_path / "work" / "research").iterdir()
    assert (done.code, "384,400 km" in done.out) == (0, True)
    assert f"Saved the report to {file}.\n" in done.err
    text = file.read_text(encoding="utf-8")
    assert (QUESTION in text, "384,400 km" in text, "## Sources" in text) == (True, True, True)
    form = json.loads(online("--json", "--save", QUESTION).out)
    assert Path(form["report"]).parent == file.parent


def test_an_answer_is_saved_as_a_note_of_the_vault_and_its_source_opens_in_obsidian(online: Command, tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Pond.md").write_text("# Depth\n\nThe pond behind the mill is 7 metres deep.")
    online("index", str(vault))
    online("config", "set", "vault", str(vault))
    done = online("--local", "--plain", "--save", "vault", "how deep is the pond behind the mill")
    (note,) = vault.glob("nexi-research-*.md")
    text = note.read_text(encoding="utf-8")
    link = "obsidian://open?vault=Vault&file=Pond%23Depth"
    assert (done.code, f"Saved the report to {note}.\n" in done.err) == (0, True)
    assert (f"[\\[1\\]]({link})" in text, f"[1] Pond  \n    <{link}>" in text, 'tags: "nexi"' in text) == (True, True, True)
    assert online("index", str(vault)).out.startswith("1 unchanged, 2 skipped (1 an ignored folder, 1 a report by nexi)")
    assert online("open", "1", "--print").out == f"{link}\n"


def test_a_vault_that_is_not_named_is_said_before_anything_is_asked(online: Command, asked: list[str]) -> None:
    done = online("--save", "vault", QUESTION)
    assert (done.code, asked) == (2, [])
    assert "there is no vault to save to" in done.err
    assert "nexi config set vault ~/Vault" in done.err


def test_a_dash_is_stdout(online: Command) -> None:
    assert online("-o", "-", "--plain", QUESTION).out == online("--plain", QUESTION).out


def test_usage_is_said_off_a_terminal_when_asked_for(online: Command) -> None:
    assert "iterations" in online("--plain", "-u", QUESTION).err
    assert "iterations" not in online("--plain", QUESTION).err


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty PATH to put programs on."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(path: Path, script: str) -> None:
    path.write_text(f"#!{sys.executable}\n{script}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts here")
def test_copy_uses_the_program_the_system_has(online: Command, programs: Path, tmp_path: Path) -> None:
    install(programs / "wl-copy", "raise SystemExit(1)")
    install(programs / "xclip", f"import sys; open({str(tmp_path / 'clip')!r}, 'wb').write(sys.stdin.buffer.read())")
    done = online("--plain", "--copy", QUESTION)
    assert (done.code, (tmp_path / "clip").read_text(encoding="utf-8")) == (0, done.out)
    assert "not copied" not in done.err


def test_copy_without_any_means_warns_and_the_answer_stands(online: Command, programs: Path) -> None:
    done = online("--plain", "--copy", QUESTION)
    assert (done.code, "384,400 km" in done.out) == (0, True)
    assert "Warning: the answer was not copied" in done.err


def test_copy_on_a_terminal_is_an_escape_sequence(programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from nexi.cli.delivery import _copy_text

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert _copy_text("Mañana 🌙")
    encoded = base64.b64encode("Mañana 🌙".encode()).decode()
    assert capsys.readouterr().out == f"\x1b]52;c;{encoded}\x07"
    assert not _copy_text("x" * 80_000)
    monkeypatch.setenv("TERM", "dumb")
    assert (_copy_text("text"), capsys.readouterr().out) == (False, "")


# the question: argument, -q, stdin, prompt


def query_in_history(nexi: Command) -> str:
    (entry,) = json.loads(nexi("history", "1", "--json").out)["entries"]
    return str(entry["query"])


def test_config_comes_before_history_before_a_question(online: Command, asked: list[Query]) -> None:
    assert online("--config", "--prev", QUESTION).out == f"{online.home / 'config.json'}\n"
    assert online("--prev", QUESTION, "-q", "another question").code == 1
    assert asked == []


def test_the_argument_comes_before_the_option_before_stdin(online: Command) -> None:
    with pipe(b"") as stdin:
        online("--plain", QUESTION, "-q", "mars moons", stdin=stdin)
    assert query_in_history(online) == QUESTION
    with pipe(b"") as stdin:
        online("--plain", "-q", QUESTION, stdin=stdin)
    assert query_in_history(online) == QUESTION
    with pipe(b"mars moons") as stdin:
        online("--plain", stdin=stdin)
    assert query_in_history(online) == "mars moons"


def test_with_nothing_given_a_terminal_gets_the_prompt(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[bool] = []
    monkeypatch.setattr("nexi.cli.repl._interactive_mode", lambda options: began.append(True))
    assert (nexi(stdin=Terminal()).code, began) == (0, [True])
    assert (nexi("", stdin=Terminal()).code, began) == (2, [True])


def test_words_without_quotes_are_one_question(online: Command) -> None:
    online("--plain", *QUESTION.split())
    assert query_in_history(online) == QUESTION


def test_piped_text_is_appended_to_the_question(online: Command) -> None:
    with pipe("Notes on the Moon 🌙\n".encode()) as stdin:
        done = online("--plain", QUESTION, stdin=stdin)
    assert done.code == 0
    assert done.err.startswith("Added 19 characters from stdin to the question\n")
    assert query_in_history(online) == f"{QUESTION}\n\nNotes on the Moon 🌙"


def test_a_long_text_piped_in_is_cut_with_a_note(online: Command) -> None:
    with pipe(b"moon " * 200_000) as stdin:
        done = online("--plain", QUESTION, stdin=stdin)
    assert done.code == 0
    assert done.err.startswith("Added the first 50,000 of 999,999 characters from stdin to the question\n")


def test_a_pipe_that_somebody_else_holds_open_is_not_waited_for(online: Command) -> None:
    with pipe(b"", left_open=True) as stdin:
        done = online("--plain", QUESTION, stdin=stdin)
    assert (done.code, query_in_history(online)) == (0, QUESTION)


def test_a_file_on_stdin_is_left_to_whoever_reads_it(online: Command, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("mars moons\n", encoding="utf-8")
    with (tmp_path / "questions.txt").open(encoding="utf-8") as stdin:
        online("--plain", QUESTION, stdin=stdin)
        assert stdin.read() == "mars moons\n"
    assert query_in_history(online) == QUESTION


# -c


def scripted(monkeypatch: pytest.MonkeyPatch, *steps: Any) -> ScriptedLLM:
    """A model that follows a script, whatever the config says."""
    llm = ScriptedLLM(*steps)
    monkeypatch.setattr(PortFactory, "llm", lambda self, role: llm)
    return llm


def test_a_follow_up_sees_the_last_question_and_answer_and_keeps_the_numbers(
    online: Command, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moon, mars = f"{web}/moon.test/facts", f"{web}/mars.test/facts"
    scripted(monkeypatch, reading(moon), answering("The Moon is 384,400 km away on average [1]."))
    online("--plain", f"{QUESTION} {moon} {mars}")
    llm = scripted(monkeypatch, reading(moon, mars), answering("It has almost no air [1]. Mars has two small moons [2]."))
    done = online("--plain", "-c", FOLLOW_UP)
    said = "It has almost no air [1]. Mars has two small moons [2]."
    assert done.out == f"{said}\n\nSources:\n[1] Moon facts - {moon}\n[2] Mars facts - {mars}\n"
    assert llm.requests[0][1:] == (
        Message("user", f"{QUESTION} {moon} {mars}"),
        Message("assistant", f"The Moon is 384,400 km away on average [1].\n\nSources:\n[1] Moon facts - {moon}"),
        Message("user", FOLLOW_UP),
    )
    llm = scripted(monkeypatch, answering("Mars has two small moons [2]."))
    assert online("--plain", "-c", "Sure?").out == f"Mars has two small moons [2].\n\nSources:\n[2] Mars facts - {mars}\n"
    assert [m.content.partition("\n")[0] for m in llm.requests[0][1:]] == [
        f"{QUESTION} {moon} {mars}",
        "The Moon is 384,400 km away on average [1].",
        FOLLOW_UP,
        "It has almost no air [1]. Mars has two small moons [2].",
        "Sure?",
    ]


def test_a_page_that_was_read_is_not_fetched_again(online: Command, web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moon = f"{web}/moon.test/facts"
    scripted(monkeypatch, reading(moon), answering("The Moon is 384,400 km away on average [1]."))
    online("--plain", f"{QUESTION} {moon}")
    monkeypatch.setenv("NEXI_ALLOW_PRIVATE", "")
    scripted(monkeypatch, reading(moon), answering("Almost none [1]."))
    done = json.loads(online("--json", "-c", FOLLOW_UP).out)
    assert (done["sources"][0]["n"], done["pages"], done["read"]) == (1, 0, [])
    scripted(monkeypatch, answering("Almost none [1]."))
    assert ", 0 pages read, " in online("--plain", "-u", "-c", "Sure?").err


async def test_when_the_run_is_gone_the_history_is_enough(online: Command, web: str) -> None:
    entry = create_entry("old question", "old answer [2]", ["https://a.test/", "https://b.test/"], "m", 2, 1.0, 5, id="0000aa")
    online.keep(json.dumps(entry.to_dict()).encode())
    session = await load_last_conversation(open_runs(load_config()), FileHistory(load_config().history_path))
    assert session.book.sources == (Source(1, "https://a.test/"), Source(2, "https://b.test/"))
    assert session.messages == [
        Message("user", "old question"),
        Message("assistant", "old answer [2]\n\nSources:\n[1] https://a.test/\n[2] https://b.test/"),
    ]
    assert session.can_fetch("https://b.test/")


def test_a_damaged_run_log_leaves_the_history(online: Command, web: str) -> None:
    online("--plain", QUESTION)
    (folder,) = (online.home / "runs").iterdir()
    (folder / "log.jsonl").write_bytes(b"\x00garbage\n{}\n")
    assert online("--plain", "-c", "What are the moons of Mars called?").code == 0


def test_the_log_of_a_follow_up_names_the_run_and_the_sources_it_goes_on_from(online: Command) -> None:
    first = json.loads(online("--json", QUESTION).out)["id"]
    second = json.loads(online("--json", "-c", FOLLOW_UP).out)["id"]
    facts = [f for _, f in RunDirectory(online.home / "runs", online.home / "pages", SystemClock()).open_log(second).facts]
    assert facts[0].settings["continues"] == first  # type: ignore[union-attr]
    assert [f.kind for f in facts[1:3]] == ["source_numbered", "source_numbered"]


def test_there_must_be_something_to_go_on_from(online: Command) -> None:
    done = online("--plain", "-c", FOLLOW_UP)
    assert (done.code, done.out, done.err.count("Error: ")) == (1, "", 1)


def test_the_search_service_sees_sites_and_time(web: str) -> None:
    request = Searxng(web).request(Query("moon", **NARROWED))  # type: ignore[arg-type]
    assert dict(request.params)["q"] == "moon site:moon.test -site:mars.test -site:venus.test/a"
    assert (dict(request.params)["time_range"], parse_qs(urlsplit(request.url).query)) == ("month", {})
