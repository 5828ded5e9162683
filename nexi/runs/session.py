"""A conversation of runs that share messages, citation numbers and pages.

The agent loop reads and writes it, follow-ups inherit it. It also holds the fetch policy: the URLs that may be fetched because
they came verbatim from the user, a search hit or a link on a fetched page; and the private texts that no query may repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec.structs import replace

from nexi.answers.citations import MARKER_NUMBER, CitationBook, renumber_markers
from nexi.text.chunking import LongText
from nexi.text.words import STOP, find_words, has_unspaced
from nexi.types import Hit, Message, Page, PageView, Paper, content_digest
from nexi.urls import find_urls, hit_key, is_web_url, parse

MAX_ALLOWED_URLS = 20_000
MAX_PAGES_PER_HOST = 4  # once private text is in the conversation: which pages are read can spell it
WORDS_IN_A_ROW = 3
LETTERS_IN_A_ROW = 6  # of a script without spaces
MIN_CODE_CHARS = 5

_TOKEN = re.compile(r"(?:[^\s,;()\[\]{}<>\"'`|]|(?<=\d),(?=\d))+")
_CODE = re.compile(r"(?=.*\d).{5,}|(?=.*[A-Z]{2})(?=.+[-_./:+=]).{8,}|.+@.+|.{20,}", re.DOTALL)
_PAGE_HEAD = re.compile(rf"\[({MARKER_NUMBER})\](?= (?:https?|file)://)")  # of a page in the result of a tool

UNKNOWN_URL = "refused: this URL came from no search result, no page that was read, and not from the user"
PRIVATE_LINK = "refused: a private file was read, so links on pages are not followed; read a page that a search returned"
PRIVATE_HOST = f"refused: a private file was read, and {MAX_PAGES_PER_HOST} pages of this host have been read since"


class PrivateTexts:
    """What a conversation has read in files of this machine, and whether a query repeats it; researchers of a run share it.

    A page on the web can tell a model to search for what it has read in a private note, and a search service is a stranger.
    What is recognised is a quotation: words in a row, and codes, numbers and addresses. A paraphrase is not.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._words = " "
        self._codes: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._seen)

    def add(self, text: str) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        self._words += f"{_normalise_words(text)} "
        codes = filter(_CODE.fullmatch, (match.strip(".:!?*_") for match in _TOKEN.findall(text)))
        for words in (find_words(code.casefold()) for code in codes):
            self._codes.update(word for word in words if len(word) >= MIN_CODE_CHARS)
            if len(words) > 1:  # 12,500 can be written as two words or as one; three in a row are recognised anyway
                self._codes.update((" ".join(words), "".join(words)))

    def find_quotation(self, query: str, is_public: Callable[[str], bool]) -> str:
        """The first words of a query that quote these texts; "" for none. `is_public` knows what others have said."""
        words = find_words(query.casefold())
        return next((quotation for quotation in self._quotations(words) if not is_public(quotation)), "")

    def _quotations(self, words: list[str]) -> Iterator[str]:
        yield from (word for word in words if word in self._codes)
        yield from (pair for pair in map(" ".join, pairwise(words)) if pair in self._codes)
        for start in range(len(words) - WORDS_IN_A_ROW + 1):
            row = words[start : start + WORDS_IN_A_ROW]
            if f" {' '.join(row)} " in self._words and not all(word in STOP for word in row):
                yield " ".join(row)
        for word in filter(has_unspaced, words):
            rows = (word[start : start + LETTERS_IN_A_ROW] for start in range(len(word) - LETTERS_IN_A_ROW + 1))
            yield from (row for row in rows if row in self._words)


class Session:
    """One conversation. `stored_urls` are pages that the knowledge store returned."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = list(messages)
        self.user_texts = [message.content for message in self.messages if message.role == "user"]
        self.book = CitationBook(key=hit_key)
        self.pages: dict[str, Page] = {}
        self.last_run = ""  # the run that answered last, which the next one continues
        self._instructions: Message | None = None
        self._allowed_urls: set[str] = set()
        self._linked_urls: set[str] = set()  # those of them that only a page names
        self.private = PrivateTexts()
        self._read_since: dict[str, set[str]] = {}
        self.stored_urls: set[str] = set()
        self._found: dict[str, str] = {}  # by page, the passages that a search of the knowledge store returned
        self._indexed: dict[str, LongText] = {}
        self._papers: dict[str, Paper] = {}  # records of papers by the address that a search returned
        self.recalled_urls: set[str] = set()  # those of them that a run which searches the web has looked up
        for text in self.user_texts:
            self.allow_urls(find_urls(text))

    @property
    def has_evidence(self) -> bool:
        """Whether any page was handed to the model."""
        return bool(self.book.sources)

    def set_instructions(self, prompt: str) -> None:
        """Set the system message of this run. It replaces that of an earlier run, but not one of the caller's own."""
        new, old = Message("system", prompt), self._instructions
        if old in self.messages:
            self.messages[self.messages.index(old)] = new
        elif not any(m.role == "system" for m in self.messages):
            self.messages.insert(0, new)
        self._instructions = new

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages without the system message that a run has set."""
        return tuple(m for m in self.messages if m is not self._instructions)

    def add_question(self, question: str) -> None:
        self.messages.append(Message("user", question))
        self.user_texts.append(question)
        self.allow_urls(find_urls(question))

    def renumber_sources(self, new_numbers: Mapping[int, int]) -> None:
        """Write the numbers that sources have now into the conversation: a follow-up cites them as readers know them."""
        for place, message in enumerate(self.messages):
            if message.role == "assistant":
                self.messages[place] = replace(message, content=renumber_markers(message.content, new_numbers))
            elif message.role == "tool":
                content = _PAGE_HEAD.sub(lambda m: f"[{new_numbers.get(int(m[1]), int(m[1]))}]", message.content)
                result = message.result
                if result is not None and isinstance(result.value, tuple):
                    views = list(result.value)
                    for at, view in enumerate(views):
                        if isinstance(view, PageView):
                            views[at] = replace(view, number=new_numbers.get(view.number, view.number))
                    result = replace(result, value=tuple(views))
                self.messages[place] = replace(message, content=content, result=result)

    def allow_urls(self, urls: Iterable[str], *, linked: bool = False) -> None:
        """Allow these URLs to be fetched, which may be `linked` on a page; beyond MAX_ALLOWED_URLS further ones are ignored."""
        for url in urls:
            if len(self._allowed_urls) >= MAX_ALLOWED_URLS:
                return
            if key := _normalise_url(url):
                if not linked:
                    self._linked_urls.discard(key)
                elif key not in self._allowed_urls:
                    self._linked_urls.add(key)
                self._allowed_urls.add(key)

    def allow_stored_urls(self, urls: Iterable[str]) -> None:
        for url in urls:
            if key := _normalise_url(url) or _file_url(url):
                self._allowed_urls.add(key)
                self.stored_urls.add(url)

    def add_found_passages(self, hits: Iterable[Hit]) -> None:
        """Note what a search of the knowledge store found on each page: that is read first."""
        for hit in hits:
            if hit.snippet:
                key = hit_key(hit.url)
                self._found[key] = f"{self._found[key]}\n\n{hit.snippet}" if key in self._found else hit.snippet

    def found_passages(self, page: Page) -> str:
        return self._found.get(hit_key(page.url), "")

    def excerpt(self, text: str, query: str, room: int, passages: str = "") -> str:
        """A text whole where it has at most `room` bytes, else what was found in it and what of it speaks to a query."""
        if len(text.encode("utf-8", "replace")) <= room:
            return text
        return self.index_text(text).excerpt(query, room, passages)

    def index_text(self, text: str) -> LongText:
        """A long text cut and indexed, once for the conversation."""
        digest = content_digest(text)
        if digest not in self._indexed:
            self._indexed[digest] = LongText(text)
        return self._indexed[digest]

    def allow_file_urls(self, urls: Iterable[str]) -> None:
        """Allow files to be read that a search of this machine has found."""
        self._allowed_urls.update(filter(None, map(_file_url, urls)))

    def can_fetch(self, url: str) -> bool:
        return (_normalise_url(url) or _file_url(url)) in self._allowed_urls

    def refuse_fetch(self, url: str) -> str:
        """Why a model may not read this URL, "" where it may. With private text in the conversation, few URLs are left."""
        if not self.can_fetch(url):
            return UNKNOWN_URL
        key = _normalise_url(url)
        if not self.private or not key or self.find_page(url):
            return ""
        if key in self._linked_urls:
            return PRIVATE_LINK
        read = self._read_since.setdefault(parse(url).host, set())
        if key not in read and len(read) >= MAX_PAGES_PER_HOST:
            return PRIVATE_HOST
        read.add(key)
        return ""

    def find_quotation(self, query: str, question: str) -> str:
        """The words of a query that quote a private file and stand neither in the question nor on a page of the web."""
        if not self.private:
            return ""
        public = [page.text for page in self.pages.values() if is_web_url(page.url)]

        def is_public(words: str) -> bool:
            return any(f" {words} " in f" {_normalise_words(text)} " or words in text for text in (question, *public))

        return self.private.find_quotation(query, is_public)

    def add_papers(self, hits: Iterable[Hit]) -> None:
        """Remember the records of papers, and allow their open copies to be fetched."""
        papers = {hit_key(hit.url): hit.paper for hit in hits if hit.paper}
        self._papers |= papers
        self.allow_urls(paper.open_url for paper in papers.values() if paper.open_url)

    def find_paper(self, url: str) -> Paper | None:
        return self._papers.get(hit_key(url))

    def find_page(self, url: str) -> Page | None:
        return self.pages.get(hit_key(url))

    def add_page(self, url: str, page: Page) -> None:
        """Add a page under its requested and its final URL, and allow its links to be fetched; a file's text is private."""
        self.pages[hit_key(url)] = page
        if page.final_url:
            self.pages.setdefault(hit_key(page.final_url), page)
        self.allow_urls(page.links, linked=True)
        if _file_url(url):
            self.private.add(page.text)


def _file_url(url: str) -> str:
    return url if url.startswith("file:///") else ""


def _normalise_url(url: str) -> str:
    """Normalise a web URL as a browser does, without its fragment; "" for other URLs."""
    # nothing else is dropped: a parameter added to an allowed URL could leak data
    return parse(url).href.partition("#")[0] if is_web_url(url) else ""


def _normalise_words(text: str) -> str:
    """The words of a text in lower case, one blank between two."""
    return " ".join(find_words(text.casefold()))
