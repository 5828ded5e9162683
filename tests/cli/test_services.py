"""`nexi find --explain` and `nexi doctor --services`, over stand-ins of the open services."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from nexi.types import Hit
from rig.services import serve_services
from tests.cli.command import Command

HIT = Hit("http://moon.test/facts", "Moon facts", "The Moon is 384,400 km from Earth; also an encyclopedia.")


@pytest.fixture
def served(nexi: Command) -> Iterator[Command]:
    """The command without a key and a SearXNG, and three services that can be asked."""
    with serve_services(lambda words: [HIT]) as urls:
        nexi.home.mkdir(parents=True)
        services = ["crossref", "wikipedia", "nominatim"]
        config = nexi.home / "config.json"
        config.write_text(json.dumps({"services": services, "service_urls": {name: urls[name] for name in services}}))
        config.chmod(0o600)
        yield nexi


def test_find_tells_who_was_asked_and_why(served: Command) -> None:
    done = served("find", "--explain", "where is the Moon?")
    assert done.code == 0
    assert done.out.startswith("[1] Moon facts\n    http://moon.test/facts\n")
    assert "nominatim (places: 'where is'): 1 hit\n" in done.err
    assert "1 hit from nominatim. © OpenStreetMap contributors, ODbL.\n" in done.err


def test_find_tells_the_same_in_json(served: Command) -> None:
    data = json.loads(served("find", "--json", "where is the Moon?").out)
    assert data["asked"][0] == {"service": "nominatim", "reason": "places: 'where is'", "hits": 1, "code": "", "message": ""}
    assert data["credits"] == ["© OpenStreetMap contributors, ODbL"]


def test_doctor_calls_each_service_once(served: Command) -> None:
    done = served("doctor", "--services")
    assert (done.code, done.out) == (
        0,
        "ok       service crossref   1 result for a test query\n"
        "ok       service wikipedia  1 result for a test query\n"
        "ok       service nominatim  1 result for a test query\n"
        "\n3 of 3 open services answer.\n",
    )
    report = json.loads(served("doctor", "--services", "--json").out)
    assert [check["ok"] for check in report["checks"]] == [True] * 3
