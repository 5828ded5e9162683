"""Research and runs on the command line: what is refused, where the report goes, and how a run is taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from nexi.errors import StoreError
from nexi.events import RunFinished
from nexi.runs.log_format import seal_record, unseal_line
from nexi.types import StopReason
from rig import miniweb
from tests import namesakes
from tests.cli.command import Command, Terminal, pipe

DEEP = "how far is the moon from earth on average"
ANSWER = "# How far is the moon from earth on average\n\nThe Moon is 384,400 km from Earth on average. [1]"


def researched(nexi: Command) -> dict[str, Any]:
    form: dict[str, Any] = json.loads(nexi("research", "--json", DEEP).out)
    return form


def log_of(nexi: Command, run_id: str) -> Path:
    return nexi.home / "runs" / run_id / "log.jsonl"


def cut(log: Path, facts: int) -> None:
    """As a kill after this many facts would have left it."""
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: facts + 1]) + lines[facts + 1][:10])


def end_by_limit(log: Path) -> None:
    """As if the budget had been spent at the end."""
    *lines, last = log.read_bytes().splitlines(keepends=True)
    record = unseal_line(last.rstrip(b"\n"))
    record.pop("sum")
    record["fact"]["stop"] = StopReason.BUDGET_SPENT.value
    log.write_bytes(b"".join([*lines, seal_record(record)]))
    assert RunFinished.kind == record["fact"]["kind"]


def test_at_a_terminal_without_a_question_nothing_is_asked_and_the_way_is_shown(online: Command) -> None:
    done = online("research", stdin=Terminal())
    assert done.code == 2
    assert 'Missing question: nexi research "your question"' in done.err


def test_a_question_may_come_by_a_pipe(online: Command) -> None:
    with pipe(DEEP.encode()) as stdin:
        done = online("research", "--plain", stdin=stdin)
    assert (done.code, done.out.startswith(ANSWER)) == (0, True)


@pytest.mark.parametrize("flags", [["--depth", "0"], ["--depth", "4"], ["--max-cost", "0"], ["--time-target", "-1"]])
def test_numbers_out_of_their_range_are_refused_before_anything_is_asked(online: Command, flags: list[str]) -> None:
    assert online("research", *flags, DEEP).code == 2
    assert not (online.home / "runs").exists()


def test_the_report_is_saved_where_the_user_stands_and_never_over_another(online: Command) -> None:
    Path("reports").mkdir()
    first, second = researched(online)["report"], researched(online)["report"]
    assert {Path(p).parent for p in (first, second)} == {Path("reports").resolve()}
    assert len({first, second}) == 2
    text = Path(first).read_text(encoding="utf-8")
    assert text.startswith('---\nquestion: "how far is the moon from earth on average"\n')
    assert 'written_by: "passages"' in text


def test_a_file_may_be_named_and_an_existing_one_is_not_touched(online: Command) -> None:
    done = online("research", "--plain", "-o", "moon.md", DEEP)
    assert (done.code, "Saved the report to moon.md." in done.err) == (0, True)
    before = Path("moon.md").read_bytes()
    again = online("research", "--plain", "-o", "moon.md", DEEP)
    assert (again.code, Path("moon.md").read_bytes() == before) == (2, True)


def test_with_a_dash_no_file_is_written(online: Command) -> None:
    done = online("research", "--plain", "-o", "-", DEEP)
    assert (done.code, list(Path.cwd().iterdir())) == (0, [])


def test_a_folder_that_cannot_be_written_costs_a_warning_and_the_run_keeps_the_report(
    online: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("Could not save the report", cause="No space left on device", fix="Free some space.")

    monkeypatch.setattr("nexi.app.report.save_report", full)
    done = online("research", "--plain", DEEP)
    assert (done.code, done.out.startswith(ANSWER)) == (0, True)
    (run,) = (online.home / "runs").iterdir()
    assert f"No space left on device. Free some space. To see the report: nexi --show {run.name}" in done.err
    assert ANSWER.splitlines()[2] in online("--show", run.name).out


@pytest.mark.parametrize("flags", [["--depth", "1"], ["--plan"], ["--deep"], ["--deep", "--depth", "2", "--yes"]])
def test_options_of_an_ordinary_question_make_it_a_deep_one(online: Command, flags: list[str]) -> None:
    done = online("--plain", "-o", "-", *flags, DEEP)
    assert (done.code, "Planned 1 task" in done.err) == (0, True)


def test_a_follow_up_knows_the_report_and_may_cite_its_sources(online: Command) -> None:
    researched(online)
    done = json.loads(online("-c", "--json", "how many craters does it have?").out)
    assert [s["url"].rsplit("/", 2)[1] for s in done["sources"]][:1] == ["moon.test"]
    assert done["sources"][0]["n"] == 1


def test_research_within_a_conversation_knows_what_it_is_about(online: Command) -> None:
    online("--json", "How far is the Moon from Earth?")
    done = online("research", "--plain", "-c", "-o", "-", "how far is it on average?")
    assert "How far is Moon on average?" in done.err


def test_a_run_that_was_cut_off_goes_on_under_its_id_and_saves_the_report(online: Command) -> None:
    form = researched(online)
    cut(log_of(online, form["id"]), 9)
    done = online("resume", "--plain", form["id"])
    assert (done.code, done.out.startswith(ANSWER)) == (0, True)
    assert "Resuming after 9 facts" in done.err
    assert "Saved the report to " in done.err
    again = online("replay", form["id"])
    assert (again.code, f"Run {form['id']}: same answer, byte for byte." in again.err) == (0, True)


def test_a_run_that_a_limit_ended_is_taken_over_by_a_run_with_another_id(online: Command) -> None:
    form = researched(online)
    end_by_limit(log_of(online, form["id"]))
    done = online("resume", "--json", form["id"])
    new = json.loads(done.out)["id"]
    assert new != form["id"]
    assert f"Run {form['id']} had ended. Run {new} continues it." in done.err
    told = [line.split()[0] for line in online("runs").out.splitlines()]
    assert told == [new, form["id"]]


def test_an_ordinary_question_that_was_cut_off_goes_on_too(online: Command) -> None:
    whole = json.loads(online("--json", "How far is the Moon from Earth on average?").out)
    cut(log_of(online, whole["id"]), 6)
    done = json.loads(online("resume", "--json", whole["id"]).out)
    assert (done["id"], done["answer"], done["sources"]) == (whole["id"], whole["answer"], whole["sources"])


def test_a_damaged_log_is_refused_with_what_can_still_be_read(online: Command) -> None:
    form = researched(online)
    log = log_of(online, form["id"])
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:4], b"garbage\n", *lines[5:]]))
    for command in ("resume", "replay"):
        done = online(command, form["id"])
        assert (done.code, "Traceback" in done.err) == (1, False)
        assert "damaged" in done.err


def test_a_run_that_failed_cannot_be_replayed_and_says_what_can_be_done(nexi: Command) -> None:
    nexi("research", "--plain", DEEP)
    (run,) = (nexi.home / "runs").iterdir()
    done = nexi("replay", run.name)
    stopped = nexi("stop", run.name)
    assert (done.code, stopped.code) == (1, 0)
    assert [text.count(f"nexi resume {run.name}") for text in (done.err, stopped.err)] == [1, 1]


def test_a_bundle_is_exported_once_and_played_again(online: Command) -> None:
    form = researched(online)
    assert online("export", form["id"], "--bundle").code == 0
    path = Path(f"nexi-run-{form['id']}.tar.gz")
    again = online("export", form["id"], "--bundle")
    assert (again.code, path.name in again.err) == (1, True)
    online("runs", "rm", form["id"])
    done = json.loads(online("replay", "--json", str(path)).out)
    assert done == {"schema": "nexi-replay-1", "run": form["id"], "same": True, "answer": ANSWER}
    usage = online("export", form["id"])
    assert (usage.code, "--format or --bundle" in usage.err) == (2, True)


def test_what_is_no_bundle_is_refused_for_people_and_for_programs(online: Command) -> None:
    Path("report.md").write_text("# A report\n", encoding="utf-8")
    done = online("replay", "--json", "report.md")
    form = json.loads(done.out)
    assert (done.code, form["code"], "--bundle" in form["fix"]) == (1, "store", True)


def test_several_runs_are_removed_and_a_missing_one_is_named(online: Command) -> None:
    ids = [researched(online)["id"] for _ in range(2)]
    assert online("runs", "rm", *ids).code == 0
    assert online("runs").err == "No runs.\n"
    done = online("runs", "rm", ids[0])
    assert (done.code, ids[0] in done.err) == (1, True)


def test_the_list_shows_the_newest_first_and_only_as_many_as_asked_for(online: Command) -> None:
    ids = [researched(online)["id"] for _ in range(2)]
    rows = json.loads(online("runs", "--json", "-n", "1").out)["runs"]
    assert [(row["id"], row["mode"], row["state"]) for row in rows] == [(ids[1], "research", "finished")]


def test_history_shows_a_report_without_its_title_twice(online: Command) -> None:
    form = researched(online)
    listed = online("history").out
    assert "(m, research, " in listed
    assert "    The Moon is 384,400 km from Earth on average. [1]" in listed.splitlines()
    shown = online("--show", form["id"]).out
    assert " · effort m · research, " in shown
    assert ANSWER in shown


def test_in_a_pipe_a_thing_that_was_never_named_is_not_asked_for(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with miniweb.serve(miniweb.Corpus(namesakes.PAGES)) as base:
        monkeypatch.setenv("SEARXNG_URL", base)
        monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(base).netloc)
        done = nexi("research", "--json", "What is the legacy of the footballer and of this club?")
    assert (json.loads(done.out)["answered"], "Which club" in done.err) == ("depends", False)


@pytest.mark.parametrize("form", ["--plain", "--json"])
def test_in_a_pipe_nothing_is_asked_back_and_the_report_has_a_section_for_each_reading(
    nexi: Command, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    with miniweb.serve(miniweb.Corpus(namesakes.PAGES)) as base:
        monkeypatch.setenv("SEARXNG_URL", base)
        monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(base).netloc)
        done = nexi("research", form, namesakes.QUESTION)
    text = json.loads(done.out)["answer"] if form == "--json" else done.out
    assert (done.code, "Which one" in done.err) == (0, False)
    assert [f"\n## {reading}\n" in text for reading in namesakes.READINGS] == [True, True]
