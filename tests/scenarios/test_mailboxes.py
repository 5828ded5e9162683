"""A mailbox is as many sources as it has messages, each cited with its own subject, sender and date."""

from __future__ import annotations

import mailbox
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.config import Config
from tests.scenarios.world import World

Make = Callable[..., Config]

MESSAGES = (
    ("Roof", 3, "The roof was mended by Hansen for 4,200 crowns.\n"),
    ("Boiler", 9, "The boiler was serviced by Lindqvist for 1,850 crowns.\n"),
    ("Windows", 17, "The windows were painted by Okafor for 9,300 crowns.\n"),
)


def write_mailbox(path: Path, count: int) -> None:
    path.unlink(missing_ok=True)
    box = mailbox.mbox(path)
    for subject, day, text in MESSAGES[:count]:
        message = EmailMessage()
        message["Subject"], message["From"] = subject, f"{subject} <{subject.lower()}@tea.test>"
        message["Date"] = datetime(2026, 5, day, 7, 30, tzinfo=UTC)
        message.set_content(text)
        box.add(message)
    box.close()


async def list_stored(config: Config, folder: Path) -> dict[str, tuple[str, str]]:
    """Index a folder and list what is stored of it: the number of a message, its subject and its day."""
    async with Nexi(config) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(folder))
        sources = [source async for source in nexi.knowledge().sources()]
    return {source.url.rpartition("/")[2]: (source.title, source.published[:10]) for source in sources}


async def test_a_later_message_is_found_and_cited_with_its_own_subject_and_date(make_config: Make, tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    folder.mkdir()
    write_mailbox(folder / "house.mbox", 3)
    config = make_config(model="extractive")
    await list_stored(config, folder)
    world = World(config)
    world.roles = {}
    answer = (await world.ask("Who serviced the boiler?", scope="local")).answer
    assert answer.text == "The boiler was serviced by Lindqvist for 1,850 crowns. [1]"
    [source] = answer.sources
    assert (source.title, source.imprint.published[:10]) == ("Boiler", "2026-05-09")
    assert source.url.endswith("/house.mbox#2")


async def test_messages_that_are_gone_are_forgotten_and_the_others_stay(make_config: Make, tmp_path: Path) -> None:
    folder, config = tmp_path / "mail", make_config()
    folder.mkdir()
    write_mailbox(folder / "house.mbox", 3)
    first, second = {"house.mbox#1": ("Roof", "2026-05-03")}, {"house.mbox#2": ("Boiler", "2026-05-09")}
    assert await list_stored(config, folder) == first | second | {"house.mbox#3": ("Windows", "2026-05-17")}
    write_mailbox(folder / "house.mbox", 2)
    assert await list_stored(config, folder) == first | second
    (folder / "house.mbox").unlink()
    assert await list_stored(config, folder) == {}
