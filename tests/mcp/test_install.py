"""The entry for nexi in a client's config: merged in, and nothing else touched."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexi.errors import StoreError
from nexi.mcp._entries import entry_text, install_entry, place_of
from tests.cli.command import Command

COMMAND = {"command": sys.executable, "args": ["-m", "nexi.mcp_server_cli"]}


@pytest.fixture
def nexi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "nexi", monkeypatch, capsys)


@pytest.mark.parametrize("client", ["claude", "cursor"])
def test_the_entry_is_printed_as_json_and_nothing_is_written(nexi: Command, client: str) -> None:
    done = nexi("mcp", "install", client, "--print")
    assert (done.code, json.loads(done.out)) == (0, {"mcpServers": {"nexi": COMMAND}})
    assert f"run: nexi mcp install {client}" in done.err
    assert not place_of(client).exists()


def test_the_entry_for_codex_is_toml(nexi: Command) -> None:
    done = nexi("mcp", "install", "codex", "--print")
    assert tomllib.loads(done.out) == {"mcp_servers": {"nexi": {**COMMAND, "tool_timeout_sec": 120}}}


@pytest.mark.parametrize("client", ["claude", "cursor", "codex"])
def test_a_file_is_made_where_there_is_none_and_the_second_time_left_alone(nexi: Command, client: str) -> None:
    first, second = nexi("mcp", "install", client), nexi("mcp", "install", client, "--write")
    assert (first.code, second.code) == (0, 0)
    assert "has the entry now" in first.err
    assert entry_text(client).split()[1] in first.err  # what was added is shown
    assert "has the entry already" in second.err
    assert place_of(client).read_text() == entry_text(client)


def test_a_home_of_ones_own_goes_into_the_entry_and_no_key_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    assert json.loads(entry_text("claude"))["mcpServers"]["nexi"]["env"] == {"NEXI_HOME": str(tmp_path)}


def test_what_else_is_in_a_json_file_stays_with_its_order_permissions_and_a_copy(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    other = {"z": 1, "mcpServers": {"other": {"command": "x"}, "nexi": {"env": {"A": "b"}, "args": ["old"]}}, "a": "ü"}
    file.write_text(json.dumps(other), encoding="utf-8")
    file.chmod(0o640)
    done = install_entry("claude", file)
    merged = {"z": 1, "mcpServers": {"other": {"command": "x"}, "nexi": {"env": {"A": "b"}, **COMMAND}}, "a": "ü"}
    assert json.loads(file.read_text(encoding="utf-8")) == merged
    assert list(json.loads(file.read_text(encoding="utf-8"))) == ["z", "mcpServers", "a"]
    assert file.stat().st_mode & 0o777 == 0o640
    assert done.backup is not None
    assert json.loads(done.backup.read_text(encoding="utf-8")) == other


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "mcp.json"
    real.write_text("{}")
    link.symlink_to(real)
    install_entry("cursor", link)
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"mcpServers": {"nexi": COMMAND}}


TOML = """\
# my settings
model = "o4"   # keep

[mcp_servers.other]
command = "x"

[mcp_servers.nexi]
command = "old"
startup_timeout_sec = 20
[mcp_servers.nexi.env]
A = "b"

[profiles.fast]
model = "mini"
"""


def test_what_else_is_in_a_toml_file_stays_letter_for_letter(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TOML)
    install_entry("codex", file)
    text = file.read_text()
    assert text.startswith('# my settings\nmodel = "o4"   # keep\n\n[mcp_servers.other]\ncommand = "x"\n')
    assert '[profiles.fast]\nmodel = "mini"\n' in text
    more = {"startup_timeout_sec": 20, "tool_timeout_sec": 120, "env": {"A": "b"}}
    assert tomllib.loads(text)["mcp_servers"]["nexi"] == {**COMMAND, **more}


def test_the_timeout_that_a_user_gave_a_tool_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[mcp_servers.nexi]\ntool_timeout_sec = 300\n")
    install_entry("codex", file)
    assert tomllib.loads(file.read_text())["mcp_servers"]["nexi"]["tool_timeout_sec"] == 300


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude", "{ // comment\n}"),
        ("claude", "[]"),
        ("claude", '{"mcpServers": []}'),
        ("claude", '{"mcpServers": {"nexi": 1}}'),
        ("claude", '{"a": 1, "a": 2}'),
        ("claude", "{" * 100_000),
        ("codex", "= x"),
        ("codex", "mcp_servers = 1"),
        ("codex", 'mcp_servers = {nexi = {command = "x"}}'),
        ("codex", '[mcp_servers]\nnexi = {command = "x"}'),
        ("codex", '[mcp_servers]\nnexi.command = "x"'),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_as_it_is(tmp_path: Path, client: str, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(StoreError) as refused:
        install_entry(client, file)
    assert "put the entry in by hand" in refused.value.fix
    assert file.read_text() == text
    assert [p.name for p in tmp_path.iterdir()] == ["config"]


def test_a_file_that_is_no_text_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b"\xff\xfe{}")
    with pytest.raises(StoreError):
        install_entry("claude", file)
    assert file.read_bytes() == b"\xff\xfe{}"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(whole=st.dictionaries(NAMES, VALUES, max_size=4), servers=st.dictionaries(NAMES, st.just({"command": "x"}), max_size=3))
def test_installing_into_any_json_file_adds_one_entry_and_loses_nothing(
    tmp_path: Path, whole: dict[str, Any], servers: dict[str, Any]
) -> None:
    before = {**whole, "mcpServers": servers}
    file = tmp_path / "any.json"
    file.write_text(json.dumps(before), encoding="utf-8")
    install_entry("cursor", file)
    after = json.loads(file.read_text(encoding="utf-8"))
    assert after == {**before, "mcpServers": {**servers, "nexi": {**servers.get("nexi", {}), **COMMAND}}}
