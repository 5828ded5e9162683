"""The parts of the page that a team server alone has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nexi.team.web import page
from nexi.web.page.assets import LANGUAGES, static_bytes
from tests.team.world import ServedTeam, serving_team

MAX_COMPRESSED_BYTES = 8_000
FOLDER = Path(page.__file__).parent


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


def test_its_parts_are_small() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.js")) == sorted(page.SCRIPTS)
    scripts = sum(len(static_bytes(name, True, package=page.__name__)) for name in page.SCRIPTS)
    sizes = {language: scripts + len(page.texts_bytes(language, True)) for language in LANGUAGES}
    assert {language: size for language, size in sizes.items() if size >= MAX_COMPRESSED_BYTES} == {}


async def test_scripts_and_texts_are_served_in_the_language_of_the_reader(served: ServedTeam) -> None:
    async with served.client() as anybody:
        scripts = [await anybody.get(f"/static/team/{name}") for name in page.SCRIPTS]
        texts = {code: await anybody.get("/static/team/texts", headers={"accept-language": code}) for code in LANGUAGES}
        unknown = await anybody.get("/static/team/__init__.py")
    assert [(reply.status_code, reply.headers["content-type"]) for reply in scripts] == [
        (200, "text/javascript; charset=utf-8")
    ] * len(scripts)
    assert {code: reply.json() for code, reply in texts.items()} == {
        code: json.loads((FOLDER / "texts" / f"{code}.json").read_text("utf-8")) for code in LANGUAGES
    }
    assert unknown.status_code == 404
    assert all(reply.headers["content-security-policy"].startswith("default-src 'none'") for reply in scripts)
