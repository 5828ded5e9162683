"""A conversation of runs that share messages, citation numbers and pages.

The loop reads and writes it, follow-ups inherit it. It also holds the one policy set of the house: the URLs that may be
fetched because they came verbatim from the user, a search hit or a link on a fetched page.
"""

from __future__ import annotations

from collections.abc import Iterable

from nexi.answers.citations import CitationBook
from nexi.types import Message, Page
from nexi.urls import find_urls, hit_key, is_web_url, parse

MAX_KNOWN_URLS = 20_000


class Session:
    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = list(messages)
        self.book = CitationBook(key=hit_key)
        self.pages: dict[str, Page] = {}
        self.last_run = ""  # the run that answered last, which the next one continues
        self._instructions: Message | None = None
        self._known: set[str] = set()
        self.stored: set[str] = set()  # pages that the knowledge store brought up
        for message in self.messages:
            if message.role == "user":
                self.allow(find_urls(message.content))

    @property
    def has_evidence(self) -> bool:
        """Whether any page was ever handed to the model."""
        return bool(self.book.sources)

    def instruct(self, prompt: str) -> None:
        """Open with what this run tells the model; what an earlier run told gives way, a caller's own message stays."""
        told, before = Message("system", prompt), self._instructions
        if before in self.messages:
            self.messages[self.messages.index(before)] = told
        elif not any(m.role == "system" for m in self.messages):
            self.messages.insert(0, told)
        self._instructions = told

    @property
    def said(self) -> tuple[Message, ...]:
        """The conversation without what runs told the model about themselves."""
        return tuple(m for m in self.messages if m is not self._instructions)

    def ask(self, question: str) -> None:
        self.messages.append(Message("user", question))
        self.allow(find_urls(question))

    def allow(self, urls: Iterable[str]) -> None:
        """Let these URLs be fetched later; a run that meets more than it can hold keeps the first ones."""
        for url in urls:
            if len(self._known) >= MAX_KNOWN_URLS:
                return
            if key := _verbatim(url):
                self._known.add(key)

    def allow_stored(self, urls: Iterable[str]) -> None:
        """Let pages of the knowledge store be read; only these may have addresses of this machine."""
        for url in urls:
            if key := _verbatim(url) or _of_this_machine(url):
                self._known.add(key)
                self.stored.add(url)

    def may_fetch(self, url: str) -> bool:
        return (_verbatim(url) or _of_this_machine(url)) in self._known

    def page(self, url: str) -> Page | None:
        return self.pages.get(hit_key(url))

    def keep(self, url: str, page: Page) -> None:
        """Remember a page under the URL that was asked for and the one that answered, and let its links be followed."""
        self.pages[hit_key(url)] = page
        if page.final_url:
            self.pages.setdefault(hit_key(page.final_url), page)
        self.allow(page.links)


def _of_this_machine(url: str) -> str:
    return url if url.startswith("file:///") else ""


def _verbatim(url: str) -> str:
    """The URL as a browser would spell it, without its fragment; "" for what is no web address.

    Nothing else is dropped: a parameter added to an allowed URL could carry data out.
    """
    return parse(url).href.partition("#")[0] if is_web_url(url) else ""
