"""A session that has read a few pages, and what its checker lets out."""

from __future__ import annotations

from typing import Any

from nexi.answers.streaming import AnswerStream
from nexi.runs.pages import MemoryPages
from nexi.runs.session import Session
from nexi.types import Page, Review
from nexi.verify import Checker, Snapshots

TOWER = "The Eiffel Tower is 330 metres tall. It was completed in 1889. It does not stand in Lyon."
BRIDGE = "The Tacoma bridge collapsed in November 1940. Nobody was killed in the collapse."
RIVER = "The river Loire is 1,006 kilometres long. The Loire flows into the Atlantic Ocean."
PAGES = {"https://tower.example/": TOWER, "https://bridge.example/": BRIDGE, "https://river.example/": RIVER}


def session_of(pages: dict[str, str]) -> Session:
    session = Session()
    for url, text in pages.items():
        page = Page(url, text, final_url=url)
        session.add_page(url, page)
        session.book.number_for(url, digest=page.digest)
    return session


class Desk:
    """One answer fed to a checker in pieces."""

    def __init__(self, pages: dict[str, str] | None = None, **how: Any) -> None:
        self.session = session_of(PAGES if pages is None else pages)
        self.released: list[str] = []
        self.checker = Checker(Snapshots(self.session, MemoryPages()), self.released.append, **how)

    async def write(self, text: str, size: int = 9) -> None:
        """Write all of a text, draining as a loop would."""
        numbers = {source.number for source in self.session.book.sources}
        stream = AnswerStream(numbers, self.checker.add_stretch)
        for start in range(0, len(text), size):
            stream.feed(text[start : start + size])
            await self.checker.drain()
        stream.finish()

    async def review(self, text: str, rewrite: Any = None) -> Review:
        await self.write(text)
        return await self.checker.finish(rewrite)

    @property
    def text(self) -> str:
        return self.checker.text
