"""What `nexi admin` says to the person who types it, whole; and the audit log has words for whatever is recorded."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nexi import team
from nexi.cli import main
from nexi.team.cli.admin import ACTIONS, describe_action
from nexi.team.postgres.database import Database
from nexi.team.web import administration
from tests.golden_files import compare_golden

SESSION = (
    "--help",
    "users --help",
    "users link --help",
    "users",
    "audit",
    "schedules",
    "runs",
    "knowledge",
    "users add Ada --administrator",
    "users add Ada",
    "users add 'Grace Hopper'",
    "users",
    "tokens Ada",
    "tokens Ada add laptop --days 30 --read-only",
    "tokens Ada",
    "tokens Ada rm 00000000-0000-0000-0000-000000000000",
    "quotas Ada --runs 40 --cost 0.5 --models small,large",
    "quotas Ada --clear",
    "users link Ada",
    "users link Alan",
    "schedules add Ada 'What is new in Postgres?' --every week --at '2026-12-31 07:00'",
    "schedules",
    "schedules rm 1",
    "schedules rm 1",
    "knowledge rm https://moon.example/",
    "users disable 'Grace Hopper'",
    "users disable 'Grace Hopper' --undo",
    "users rm 'Grace Hopper' --yes",
    "audit",
)
MASKS = (
    (r"nexi_[\w-]{43}", "TOKEN"),
    (r"/login/link/[\w-]+", "/login/link/SECRET"),
    (r"(?!0{8}-)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"(?!2026-12-31)\d{4}-\d\d-\d\d \d\d:\d\d", "TIME"),
)


@pytest.fixture
def own_database(postgres: Any, database: Database) -> str:
    """A database of the test's own, since the commands list everyone."""
    database.fetch("drop database if exists administered")
    database.fetch("create database administered")
    return str(postgres.url_of("administered"))


def test_a_session_of_an_administrator_reads_as_recorded(
    own_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEXI_DATABASE_URL", own_database)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    parts = []
    for line in SESSION:
        done = CliRunner().invoke(main, ["admin", *shlex.split(line)], prog_name="nexi")
        output = done.output
        for pattern, mask in MASKS:
            output = re.sub(pattern, mask, output)
        parts.append(f"$ nexi admin {line}\n{output}{f'(exit code {done.exit_code})' if done.exit_code else ''}".rstrip())
    compare_golden("admin.txt", "\n\n".join(parts) + "\n")


def test_the_audit_log_has_words_for_whatever_is_recorded() -> None:
    sources = "".join(path.read_text("utf-8") for path in Path(team.__file__).parent.rglob("*.py"))
    recorded = set(re.findall(r'record\([\w.]+, "(\w+)"', sources)) | set(re.findall(r' else "(\w+_\w+)", \w+\)', sources))
    forms = set(re.findall(r'"(\w+)": self\._\w+,', Path(administration.__file__).read_text("utf-8")))
    sign_ins = set(re.findall(r'_open_session\(request, person, "(\w+)"', sources))
    assert recorded | forms | sign_ins == set(ACTIONS)


def test_people_are_named_and_one_who_was_deleted_has_only_an_id() -> None:
    ada, gone = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
    assert describe_action("add_link", ada, {ada: "Ada"}) == "created a sign-in link for Ada"
    assert describe_action("remove_user", gone, {ada: "Ada"}) == f"deleted {gone}"
    assert describe_action("of_a_newer_version", "x", {}) == "of_a_newer_version x"
