"""The unit and the container files say what `nexi serve` takes, and open nothing that should stay closed."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from nexi import cli
from nexi.config.names import FIELD_VARIABLES, KEY_VARIABLES

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"


def takes(arguments: list[str]) -> dict[str, Any]:
    command = cli.main.get_command(click.Context(cli.main), arguments[0])
    assert command
    return dict(command.make_context(arguments[0], arguments[1:]).params)


def test_the_unit_starts_a_server_on_this_machine() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(DEPLOY / "nexi.service", encoding="utf-8")
    words = shlex.split(unit["Service"]["ExecStart"])
    given = takes(words[1:])
    assert given["host"] == "127.0.0.1"
    assert float(given["drain"]) < float(unit["Service"]["TimeoutStopSec"])
    assert unit["Service"]["SuccessExitStatus"] == "143"


def test_the_container_serves_beyond_itself_as_nobody_special() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    command = json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[-1])
    given = takes(command[1:])
    assert (given["host"], given["port"], given["token"]) == ("0.0.0.0", 8000, None)
    assert re.search(r"^USER nexi$", text, re.MULTILINE)
    assert "NEXI_TOKEN=" not in text


def test_compose_opens_one_port_of_this_machine_and_names_variables_that_are_read() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    ports = {name: service.get("ports", []) for name, service in compose["services"].items()}
    assert ports == {"nexi": ["127.0.0.1:8000:8000"], "searxng": [], "qdrant": []}
    known = {name for names in FIELD_VARIABLES.values() for name in names} | set(KEY_VARIABLES.values())
    assert set(compose["services"]["nexi"]["environment"]) <= known
    settings = yaml.safe_load((DEPLOY / "searxng.yml").read_text(encoding="utf-8"))
    assert "json" in settings["search"]["formats"]
