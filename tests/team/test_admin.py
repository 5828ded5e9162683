"""`nexi admin` and `nexi work` at the command line."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nexi.cli import main
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People


@pytest.fixture
def admin(postgres: Any, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run `nexi admin` with these words."""
    monkeypatch.setenv("NEXI_DATABASE_URL", postgres.url)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["admin", *words])

    return run


def test_a_person_is_added_limited_disabled_exported_and_deleted(admin: Any, database: Database) -> None:
    person, name, token = admin("users", "add", "Grace Hopper").stdout.split("  ")
    people = People(database)
    found = people.find_by_token(token.strip())
    assert found is not None
    assert (name, found.person) == ("Grace Hopper", person)
    assert f"{person}  Grace Hopper  user" in admin("users").stdout
    assert admin("quotas", "Grace Hopper", "--runs", "5", "--cost", "0.5").stdout.splitlines() == [
        "runs a day  0 of 5 used",
        "tokens a day  0 used, no limit",
        "dollars a day  0 of 0.5 used",
        "runs at once  0 used, no limit",
        "megabytes  0 used, no limit",
    ]
    exported = json.loads(admin("users", "export", person).stdout)
    assert (exported["schema"], exported["person"][0]["name"], exported["runs"]) == ("nexi-person-1", "Grace Hopper", {})
    assert admin("users", "disable", person).exit_code == 0
    assert people.find_by_token(token.strip()) is None
    assert admin("users", "rm", person, "--yes").exit_code == 0
    assert person not in admin("users").stdout
    assert [row[2] for row in people.read_audit(7)] == [
        "remove_user",
        "disable_user",
        "exported_by",
        "export_user",
        "set_quotas",
        "token_made_by",
        "add_user",
    ]


def test_a_token_is_shown_once_listed_and_revoked(admin: Any, database: Database) -> None:
    person = People(database).add("Alan")
    token = admin("tokens", person, "add", "phone", "--read-only", "--days", "30").stdout.strip()
    principal = People(database).find_by_token(token)
    assert principal is not None
    assert principal.scopes == ("read",)
    listed = admin("tokens", person).stdout
    assert ("phone" in listed, token in listed) == (True, False)
    assert admin("tokens", person, "rm", listed.split("  ")[0]).exit_code == 0
    assert People(database).find_by_token(token) is None


def test_a_link_signs_a_person_in(admin: Any, database: Database) -> None:
    person = People(database).add("Barbara")
    path = admin("users", "link", person).stdout.strip()
    assert People(database).use_link(path.removeprefix("/login/link/")) == person


def test_a_person_who_is_not_there_is_said_so(admin: Any) -> None:
    done = admin("quotas", "Nobody At All")
    assert (done.exit_code, "no one called" in done.stderr) == (1, True)


@pytest.mark.parametrize("words", [["admin", "users"], ["work"]])
def test_without_a_database_the_setting_is_named(words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, "NEXI_DATABASE_URL" in done.stderr) == (2, True)


def test_without_the_library_the_command_that_installs_it_is_named(admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = admin("users")
    assert (done.exit_code, "not installed" in done.stderr, "install" in done.stderr) == (2, True, True)


def test_a_port_that_is_taken_is_said_in_one_sentence(postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_DATABASE_URL", postgres.url)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = CliRunner().invoke(main, ["work", "--port", str(port)])
    assert result.exit_code == 2, result.output
    assert f"nexi cannot listen on 127.0.0.1:{port}: something else listens there" in result.output


def test_what_the_command_does_with_an_account_is_shown_to_its_person(admin: Any, database: Database) -> None:
    person = People(database).add("Katherine")
    assert admin("users", "link", person).exit_code == 0
    assert admin("tokens", person, "add", "phone").exit_code == 0
    assert admin("users", "export", person).exit_code == 0
    access = [(one.action, one.by) for one in People(database).list_access(person)]
    assert access == [("exported_by", "nexi admin"), ("token_made_by", "nexi admin"), ("link_made_by", "nexi admin")]
