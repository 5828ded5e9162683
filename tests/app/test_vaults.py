"""A vault as a source: its notes are found by title, alias and tag, and open in the program that keeps them."""

from __future__ import annotations

import asyncio
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing, Intake
from nexi.checking.links import link_to
from nexi.config import Config
from nexi.testing import FakeClock
from nexi.types import Query, StoredSource
from nexi.web import create_app

Make = Callable[..., Config]


def make_vault(root: Path, notes: dict[str, str], program: str = "obsidian") -> Path:
    vault = root / "My Vault"
    if program == "obsidian":
        (vault / ".obsidian").mkdir(parents=True)
        (vault / ".obsidian" / "app.json").write_text("{}")
    else:
        (vault / "logseq" / "bak").mkdir(parents=True)
        (vault / "logseq" / "config.edn").write_text("{}")
        (vault / "logseq" / "bak" / "old.md").write_text("- an earlier version")
    for name, text in notes.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_text(text)
    return vault


async def take(config: Config, target: Path) -> Intake:
    async with Nexi(config) as nexi:
        taking = DocumentIndexing(nexi, nexi.knowledge(), embeds=False)
        await taking.take(str(target))
        return taking.taken


async def stored_sources(config: Config) -> dict[str, StoredSource]:
    async with Nexi(config) as nexi:
        return {source.title: source async for source in nexi.knowledge().sources()}


async def find_titles(config: Config, text: str) -> list[str]:
    async with Nexi(config) as nexi:
        return [hit.title for hit in (await nexi.find_known(Query(text, count=3))).hits]


NOTES = {
    "Plans/Shed.md": "---\naliases: [Tool house]\ntags: [garden]\n---\n# Keys\n\nThe key hangs behind the blue door.",
    "Boat.md": "# Hull\n\nThe hull of the [[Shed|boat]] was painted red. #harbour",
    "Soup.md": "Cook the beans for two hours.",
}


async def test_notes_are_found_by_alias_and_by_tag(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    taken = await take(config, make_vault(tmp_path, NOTES))
    assert (dict(taken.outcomes), dict(taken.reasons)) == ({"stored": 3}, {"an ignored folder": 1})
    assert [(await find_titles(config, text))[0] for text in ("tool house", "harbour", "beans")] == ["Shed", "Boat", "Soup"]
    assert {title: source.tags for title, source in (await stored_sources(config)).items()} == {
        "Shed": ("#garden",),
        "Boat": ("#harbour",),
        "Soup": (),
    }


async def test_a_tag_that_a_note_loses_is_gone_and_one_that_was_given_stays(make_config: Make, tmp_path: Path) -> None:
    config, vault = make_config(), make_vault(tmp_path, {"Boat.md": "Red. #harbour"})
    async with Nexi(config) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), tags=["home"], embeds=False).take(str(vault))
    (vault / "Boat.md").write_text("Green. #winter")
    await take(config, vault)
    assert (await stored_sources(config))["Boat"].tags == ("#winter", "home")


async def test_evidence_opens_in_obsidian_under_its_heading(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    await take(config, make_vault(tmp_path, NOTES))
    async with Nexi(config) as nexi:
        source = (await stored_sources(config))["Shed"]
        page = await nexi.knowledge().page(source.url)
    assert page is not None
    start = page.text.index("The key")
    link = link_to(page.url, page.text, start, start + 20)
    assert link == "obsidian://open?vault=My%20Vault&file=Plans%2FShed%23Keys"


async def test_evidence_of_a_logseq_graph_opens_its_page_and_backups_are_left_out(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    taken = await take(config, make_vault(tmp_path, {"pages/Harbour___Quay.md": "- Cranes lift 3 tons"}, "logseq"))
    source = (await stored_sources(config))["Harbour/Quay"]
    assert link_to(source.url, "Cranes lift", 0, 5) == "logseq://graph/My%20Vault?page=Harbour%2FQuay"
    assert taken.reasons["an ignored folder"] == 1


async def test_a_folder_that_became_a_vault_has_each_note_once(make_config: Make, tmp_path: Path) -> None:
    config, folder = make_config(), tmp_path / "My Vault"
    folder.mkdir()
    (folder / "Soup.md").write_text(NOTES["Soup.md"])
    await take(config, folder)
    (folder / ".obsidian").mkdir()
    await take(config, folder)
    async with Nexi(config) as nexi:
        urls = [source.url async for source in nexi.knowledge().sources()]
    assert [re.sub("[0-9a-f]{6}", "…", url) for url in urls] == ["file:///My%20Vault~obsidian-…/Soup.md"]


async def test_a_note_whose_name_is_in_decomposed_letters_is_found_and_opened(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    name = unicodedata.normalize("NFD", "Gärten.md")
    await take(config, make_vault(tmp_path, {name: "Zehn Beete liegen am Zaun."}))
    source = (await stored_sources(config))["Gärten"]
    assert await find_titles(config, "Gärten Beete") == ["Gärten"]
    assert link_to(source.url, "Zehn Beete", 0, 4) == "obsidian://open?vault=My%20Vault&file=G%C3%A4rten"


@pytest.mark.parametrize("program", ["obsidian", "logseq"])
async def test_links_that_run_in_a_circle_change_nothing(make_config: Make, tmp_path: Path, program: str) -> None:
    config = make_config()
    vault = make_vault(tmp_path, {"pages/A.md": "![[B]] [[A]] apples", "pages/B.md": "![[A]] bees"}, program)
    (vault / "pages" / "loop").symlink_to("..")
    taken = await take(config, vault)
    assert (sum(source.startswith(("A", "B")) for source in await stored_sources(config)), taken.reasons["a link"]) == (2, 1)


@pytest.mark.long
async def test_a_note_of_20_megabytes_is_indexed_as_far_as_the_limit_and_said(make_config: Make, tmp_path: Path) -> None:
    long_note = "# Log\n\nThe beacon was lit in 1904.\n\n" + "The tide was above the mark.\n\n" * 700_000
    assert len(long_note) > 20_000_000
    config = make_config()
    taken = await take(config, make_vault(tmp_path, {"Log.md": long_note, "Soup.md": "Cook the beans for two hours."}))
    assert dict(taken.outcomes) == {"stored": 2}
    assert taken.warnings == ["Log.md is too long: only its first 19,999,984 characters were indexed"]
    assert [await find_titles(config, text) for text in ("beans", "beacon lit")] == [["Soup"], ["Log"]]


class _PatientClock(FakeClock):
    """Short waits end at once; long ones never do."""

    async def sleep(self, seconds: float) -> None:
        if seconds > 1:
            await asyncio.Event().wait()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the folder is looked at")
async def test_the_system_tells_of_a_change_and_nothing_has_to_be_looked_for(make_config: Make, tmp_path: Path) -> None:
    vault = make_vault(tmp_path, {"Plans/Shed.md": "The key hangs behind the door."})
    async with Nexi(make_config(), clock=_PatientClock()) as nexi, asyncio.timeout(20):
        watching = DocumentIndexing(nexi, nexi.knowledge(), embeds=False).watch(str(vault))
        first = dict((await anext(watching)).outcomes)
        (vault / "Plans" / "Shed.md").write_text("The key hangs in the kitchen now.")
        second = dict((await anext(watching)).outcomes)
        (vault / "New").mkdir()
        (vault / "New" / "Boat.md").write_text("Red hull.")
        third = dict((await anext(watching)).outcomes)
        await watching.aclose()
    assert (first, second, third) == ({"stored": 1}, {"stored": 1}, {"stored": 1})


async def test_a_server_indexes_the_vault_of_its_settings(make_config: Make, tmp_path: Path) -> None:
    config = make_config(vault=str(make_vault(tmp_path, {"Boat.md": "Red hull."})))
    app = create_app(config)
    async with app.router.lifespan_context(app), asyncio.timeout(20):
        while "Boat" not in await stored_sources(config):
            await asyncio.sleep(0)


async def test_a_server_whose_vault_is_gone_says_so_and_serves(
    make_config: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(make_config(vault=str(tmp_path / "gone")))
    async with app.router.lifespan_context(app), asyncio.timeout(20):
        while not caplog.messages:
            await asyncio.sleep(0)
    assert "the vault is not watched" in caplog.messages[0]
