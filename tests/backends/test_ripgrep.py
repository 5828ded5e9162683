"""Local code search: arguments that cannot be more than words, hits that tell no path, and limits."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from nexi.backends.ripgrep import (
    Match,
    Ripgrep,
    git_command,
    grep_command,
    grep_matches,
    is_pattern,
    rg_command,
    rg_matches,
    to_hits,
)
from nexi.errors import BackendError
from nexi.types import Hit, Query

PROGRAMS = [
    pytest.param(
        shutil.which(name) or "", marks=pytest.mark.skipif(not shutil.which(name), reason=f"{name} is not installed"), id=name
    )
    for name in ("rg", "git", "grep")
]
with_each_program = pytest.mark.parametrize("program", PROGRAMS)


def script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a b.py").write_text("import os\n\ndef needle():\n    return needle\n")
    (root / "other.txt").write_text("a needle (.*) here\n")
    (root / "binary.bin").write_bytes(b"needle\0\1\2")
    (root / ".hidden").write_text("needle\n")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "objects").mkdir()
    (root / ".git" / "refs").mkdir()
    return root


@pytest.mark.parametrize("text", ["--pre=evil", "-f/etc/passwd", "$(id)", "a; rm -rf /", "-e"])
def test_whatever_the_query_is_it_is_one_argument_behind_its_flag(text: str) -> None:
    for command in (rg_command("rg", [text]), grep_command("grep", [text])):
        assert command[-3:] == [f"--regexp={text}", "--", "."]
    assert git_command("git", [text])[-6:-2] == ["-e", text, "--", "."]
    assert {"--fixed-strings", "--no-follow", "--no-config"} < set(rg_command("rg", [text]))


def test_the_json_of_ripgrep_is_read() -> None:
    match = {"path": {"text": "./src/a.py"}, "lines": {"text": "  needle\n"}, "line_number": 3}
    lines = [
        {"type": "begin", "data": {"path": {"text": "./src/a.py"}}},
        {"type": "match", "data": match},
        {"type": "match", "data": {**match, "path": {"bytes": "/w=="}}},
        {"type": "summary", "data": {}},
    ]
    output = b"\n".join(json.dumps(line).encode() for line in lines) + b'\n{"type": "mat'
    assert rg_matches(output) == [Match("src/a.py", 3, "needle")]


def test_the_lines_of_grep_are_read() -> None:
    assert grep_matches(b"./a:1.py\x003:x: y\nno zero\n./b\0x:y\n") == [Match("a:1.py", 3, "x: y")]
    assert grep_matches(b"a:1.py\x003\0x: y\n") == [Match("a:1.py", 3, "x: y")]


def test_each_file_is_one_hit_and_the_fullest_comes_first() -> None:
    matches = [Match("one.py", 1, "x"), Match("a b/two.py", 2, "y"), Match("a b/two.py", 5, "z")]
    assert to_hits(matches, 10) == [
        Hit("file:///a%20b/two.py#L2", "a b/two.py", "2: y\n5: z", "", "ripgrep"),
        Hit("file:///one.py#L1", "one.py", "1: x", "", "ripgrep"),
    ]
    assert len(to_hits(matches, 1)) == 1


@with_each_program
async def test_a_folder_is_searched_for_literal_words_and_its_place_is_not_told(code: Path, program: str) -> None:
    backend = Ripgrep(str(code), program=program)
    hits = await backend.search(Query("NEEDLE"))
    assert hits == [
        Hit("file:///src/a%20b.py#L3", "src/a b.py", "3: def needle():\n4: return needle", "", "ripgrep"),
        Hit("file:///other.txt#L1", "other.txt", "1: a needle (.*) here", "", "ripgrep"),
    ]
    assert [hit.title for hit in await backend.search(Query("needle (.*"))] == ["other.txt"]
    assert await backend.search(Query("absent words")) == []
    assert [hit.title for hit in await backend.search(Query("import of return"))] == ["src/a b.py"]
    assert str(code) not in repr(hits)


@with_each_program
@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"def \w+\(", ["3: def needle():"]),
        (r"^import\b", ["1: import os"]),
        (r"return|import", ["1: import os\n4: return needle"]),
        (r"x\d+ = [0-9]{2,}?$", ["5: x12 = 345"]),
        (r"\(\.\*\)", ["1: a needle (.*) here"]),
    ],
)
async def test_a_pattern_is_a_pattern(code: Path, program: str, pattern: str, lines: list[str]) -> None:
    with (code / "src" / "a b.py").open("a") as file:
        file.write("x12 = 345\n")
    assert [hit.snippet for hit in await Ripgrep(str(code), program=program).search(Query(pattern))] == lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [("needle", False), ("a needle", False), ("def (", False), ("[a", False), (r"\w+", True), ("a|b", True)],
)
def test_a_text_is_a_pattern_where_it_is_a_valid_one(text: str, expected: bool) -> None:
    assert is_pattern(text) is expected


@pytest.mark.parametrize("program", PROGRAMS[:2])
async def test_what_git_ignores_is_left_out(code: Path, program: str) -> None:
    (code / ".gitignore").write_text("built/\n*.log\n")
    (code / "built").mkdir()
    (code / "built" / "out.txt").write_text("needle\n")
    (code / "run.log").write_text("needle\n")
    hits = await Ripgrep(str(code), program=program).search(Query("needle"))
    assert sorted(hit.title for hit in hits) == ["other.txt", "src/a b.py"]


async def test_git_searches_a_work_tree_where_ripgrep_is_not_installed(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "rg" else f"/usr/bin/{name}")
    assert Ripgrep(str(code / "src"))._choose_program() == "/usr/bin/git"
    assert Ripgrep("/nowhere")._choose_program() == "/usr/bin/grep"


@with_each_program
@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
async def test_links_out_of_the_folder_are_not_followed(code: Path, tmp_path: Path, program: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("password needle2\n")
    (code / "way_out").symlink_to(tmp_path / "secret")
    (code / "key.txt").symlink_to(tmp_path / "secret" / "key.txt")
    assert await Ripgrep(str(code), program=program).search(Query("needle2")) == []


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
async def test_a_search_that_takes_too_long_is_ended(code: Path, tmp_path: Path) -> None:
    slow = script(tmp_path, "grep", "exec sleep 30")
    with pytest.raises(BackendError) as caught:
        await Ripgrep(str(code), timeout_s=0.05, program=slow).search(Query("x"))
    assert (caught.value.code, bool(caught.value.fix)) == ("timeout", True)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
async def test_endless_output_is_cut(code: Path, tmp_path: Path) -> None:
    loud = script(tmp_path, "grep", r"while :; do printf './a\0001:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n'; done")
    hits = await Ripgrep(str(code), program=loud).search(Query("x"))
    assert [hit.url for hit in hits] == ["file:///a#L1"]


async def test_a_folder_that_is_gone_and_a_program_that_fails_are_told(code: Path, tmp_path: Path) -> None:
    for backend in (
        Ripgrep(str(tmp_path / "gone"), program="grep"),
        Ripgrep(str(code), program=script(tmp_path, "grep", "exit 2")),
    ):
        with pytest.raises(BackendError) as caught:
            await backend.search(Query("x"))
        assert caught.value.cause
        assert caught.value.fix
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("text", ["", "   ", "a\0b"])
async def test_no_words_find_nothing(code: Path, text: str) -> None:
    assert await Ripgrep(str(code), program="grep").search(Query(text)) == []
