"""Intake: files, folders, pages and sitemaps into the knowledge store, some at a time, and what became of each.

A document that cannot be taken is counted with its reason and never stops the rest; a store that fails does. Changes in a
folder come from inotify on Linux, and from a look every two seconds elsewhere, or where the kernel gives no watch (a limit
reached, a network drive of another machine).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.app.assembly import Nexi
from nexi.app.documents import TwinFiles, Vault, files_in, find_vault, folders_in, read_document, read_documents
from nexi.app.emit import QuietEmit
from nexi.app.factory import PortFactory
from nexi.app.folders import SCHEME, Folders
from nexi.app.knowledge import Knowledge, open_temporary_knowledge
from nexi.app.zotero import TARGET, Library, find_library, read_running_library
from nexi.errors import FetchError, NexiError, StoreError
from nexi.files import is_existing_path
from nexi.formats import render_item
from nexi.knowledge.indexing import IndexReport
from nexi.ports import Clock
from nexi.text.dates import normalise_date
from nexi.types import Page
from nexi.urls import find_urls, hit_key, is_web_url, join

MAX_PAGES = 500
SITEMAP_DEPTH = 2
MAX_NAMED = 1_000
SAME_TEXT = "the same text as a file beside it"
LONG = 100_000  # characters; a shorter note is read before a thread could begin
LOOK_S = 2.0
LOOK_ANYWAY_S = 60.0  # with a watch: a network drive does not tell what other machines write
SETTLE_S = 0.2  # a program saves a file in several steps
# Written and closed, moved in or out, made, deleted, attributes: of the files of a folder.
INOTIFY_MASK = 0x00000008 | 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000004
MAX_BATCH_FILES, MAX_BATCH_CHARS = 100, 500_000  # of files in one transaction: a kill loses no more than these


class Step(Struct, frozen=True):
    """One document done: what became of it, how many are done and, where that is known, of how many."""

    name: str
    outcome: str
    done: int
    total: int = 0


@dataclass
class Intake:
    """What became of what was given."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    chunks: int = 0
    warnings: list[str] = field(default_factory=list)

    def skip(self, name: str, reason: str) -> None:
        self.reasons[reason] += 1
        if len(self.skipped) < MAX_NAMED:
            self.skipped.append((name, reason))

    def as_json(self) -> dict[str, Any]:
        counts = {name: self.outcomes[name] for name in ("stored", "unchanged", "linked", "removed")}
        skips = [{"name": name, "reason": reason} for name, reason in self.skipped]
        return {**counts, "chunks": self.chunks, "skipped": dict(self.reasons), "files": skips, "warnings": self.warnings}


class DocumentIndexing:
    """One call of `nexi index`: takes targets into a store, and tells of each step."""

    def __init__(
        self,
        nexi: Nexi,
        knowledge: Knowledge,
        *,
        tags: Sequence[str] = (),
        embeds: bool = True,
        on_step: Callable[[Step], None] = lambda _: None,
        on_status: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_status` is told what takes longer than a step: the vectors of a long document."""
        self._nexi, self._knowledge, self._embeds, self._on_step = nexi, knowledge, embeds, on_step
        self._tags, self._emit = tuple(sorted(set(tags))), QuietEmit(show=on_status)
        self.folders = Folders(nexi.config.personal_dir / "state" / "folders.json")
        self.taken = Intake()
        self._done = 0
        self._waiting: list[tuple[Page, str, int]] = []  # to be stored together, each with its name and of how many it is one
        self._twins = TwinFiles(())
        self._vault: Vault | None = None

    async def take(self, target: str) -> None:
        """Take one target. Raises NexiError: where the store fails, and for what is neither a path nor a web address."""
        if is_web_url(target):
            return await self._take_site(target)
        if target == TARGET:
            base = self._nexi.config.service_urls.get("zotero", "")
            return await self._take_library(await asyncio.to_thread(read_running_library, base))
        path, is_folder = await asyncio.to_thread(place_of, target)
        if library := await asyncio.to_thread(find_library, path):
            return await self._take_library(library)
        return await (self._take_folder(path) if is_folder else self._take_files([path], path.parent))

    # files

    async def _take_folder(self, folder: Path) -> None:
        def skip(path: Path, reason: str) -> None:
            self.taken.skip(str(path.relative_to(folder)), reason)

        self._twins = TwinFiles(await asyncio.to_thread(lambda: list(files_in(folder, skip))))
        await self._take_files(self._twins.in_order(), folder)
        await self._forget_what_is_gone(folder)

    async def _take_files(self, files: Sequence[Path], root: Path) -> None:
        self._vault = await asyncio.to_thread(find_vault, root)
        for file in files:
            await self._take_file(file, root, len(files))
        await self._store_queued()

    async def _take_file(self, file: Path, root: Path, total: int) -> None:
        url, name = self._address_of(file, root), str(file.relative_to(root))
        try:
            config = self._nexi.config
            page, *others = pages = await read_documents(file, url, config.ocr_languages, config.personal_dir)
            if self._vault:
                read = self._vault.read_page
                page = await asyncio.to_thread(read, page, file) if len(page.text) > LONG else read(page, file)
        except FetchError as error:
            return self._report_refusal(name, error, total)
        if twin := self._twins.find_twin(file, page.text):
            store = await self._knowledge.open_store()
            if await store.source(url):  # it was stored before the file with the better form was there
                await store.remove([url])
            self.taken.skip(name, SAME_TEXT)
            return self._report_step(name, f"skipped: {SAME_TEXT}, {twin.name}", total)
        if page.url != url:  # a mailbox, once stored as one text: messages that are no longer in it are forgotten
            current = {message.url for message in pages}
            addresses = [source.url async for source in self._knowledge.sources() if source.url.partition("#")[0] == url]
            await self._forget([address for address in addresses if address not in current])
        for one in (page, *others):
            self._waiting.append((one, name if one.url == url else f"{name}: {one.title}", total))
            if len(self._waiting) >= MAX_BATCH_FILES or sum(len(each.text) for each, *_ in self._waiting) >= MAX_BATCH_CHARS:
                await self._store_queued()
        return None

    async def _forget(self, urls: Sequence[str]) -> None:
        if urls:
            self.taken.outcomes["removed"] += await (await self._knowledge.open_store()).remove(urls)

    def _address_of(self, file: Path, root: Path) -> str:
        vault = self._vault
        return self.folders.address_of(file, vault.folder, vault.program) if vault else self.folders.address_of(file, root)

    async def _forget_what_is_gone(self, folder: Path) -> None:
        """What was indexed from this folder and is no longer there, or has another address since it became a vault."""
        obsolete = []
        async for source in self._knowledge.sources():
            path = self.folders.path_of(source.url) if source.url.startswith(SCHEME) else None
            if not path or not path.is_relative_to(folder):
                continue
            try:
                is_gone = not is_existing_path(path)
            except OSError:
                is_gone = False  # one that cannot be reached, as in a folder without permission, stays indexed
            if is_gone or self._address_of(path, folder) != source.url.partition("#")[0]:
                obsolete.append(source.url)
        await self._forget(obsolete)

    async def watch(self, target: str) -> AsyncIterator[Intake]:
        """Take a folder, and again whatever changes in it, until the caller has enough. Raises NexiError."""
        folder, is_folder = await asyncio.to_thread(place_of, target)
        if not is_folder:
            raise NexiError(f"{target[:200]} cannot be watched", cause="it is no folder", fix="watch the folder it is in")
        with _FolderEvents(self._nexi.clock) as events:
            stamps: dict[Path, tuple[int, int]] = {}
            is_first = True
            while True:
                events.watch(await asyncio.to_thread(lambda: [folder, *folders_in(folder)]))
                now = await asyncio.to_thread(_file_stamps, folder)
                changes = [file for file, stamp in now.items() if stamps.get(file) != stamp]
                if is_first or changes or now.keys() != stamps.keys():
                    removals, stamps, self.taken, self._done = stamps.keys() - now.keys(), now, Intake(), 0
                    await (self._take_folder(folder) if is_first else self._take_files(changes, folder))
                    if removals:
                        await self._forget_what_is_gone(folder)
                    yield self.taken
                is_first = False
                await events.wait()

    # libraries

    async def _take_library(self, library: Library) -> None:
        """Take every item with its notes, and the files that belong to it; forget items that are no longer there."""
        urls = set()
        for item in library.items:
            place = library.folder / library.base / item.key.replace("/", "-")
            url = self.folders.address_of(place, library.folder, library.program)
            urls.add(url)
            authors, day, tags = ", ".join(item.authors), normalise_date(item.date), tuple(f"#{tag}" for tag in item.tags)
            page = Page(url, render_item(item), item.title, author=authors, published=day, fetcher="file", tags=tags)
            self._waiting.append((page, item.title, len(library.items)))
            if len(self._waiting) >= MAX_BATCH_FILES:
                await self._store_queued()
            for file in map(Path, item.files):
                is_inside = file.is_relative_to(library.folder)
                root, program = (library.folder, library.program) if is_inside else (file.parent, "")
                url = self.folders.address_of(file, root, program)
                urls.add(url)
                try:
                    page = await read_document(file, url, self._nexi.config.ocr_languages, self._nexi.config.personal_dir)
                except FetchError as error:
                    self._report_refusal(file.name, error)
                else:
                    self._waiting.append((replace(page, title=item.title), file.name, len(library.items)))
        await self._store_queued()
        prefix = self.folders.address_of(library.folder / library.base, library.folder, library.program)
        stored_urls = [s.url async for s in self._knowledge.sources() if s.url.startswith(f"{prefix}/")]
        await self._forget([url for url in stored_urls if url not in urls])

    # pages

    async def _take_site(self, url: str, depth: int = 0) -> None:
        try:
            page = await self._nexi.fetch(url)
        except FetchError as error:
            return self._report_refusal(url, error, 1)
        kind = page.content_type.partition(";")[0].strip().lower()
        is_xml = kind.endswith(("/xml", "+xml"))
        # only the entries of a feed give links
        is_feed = is_xml and "xhtml" not in kind and page.links and depth < SITEMAP_DEPTH
        if is_feed:
            before = self.taken.outcomes.total()
            for entry in page.links[:MAX_PAGES]:
                await self._take_site(entry, depth + SITEMAP_DEPTH)
            if self.taken.outcomes.total() > before:
                return None
        if is_feed or not (is_xml and "sitemap" in url.rpartition("/")[2].lower()):
            # a page, or the own text of a feed none of whose entries can be read
            self._waiting.append((replace(page, url=page.final_url or url), url, 1))
            return await self._store_queued()
        urls = [u for u in find_urls(page.text) if hit_key(u) != hit_key(url)]
        if len(urls) > MAX_PAGES:
            self.taken.warnings.append(f"{url} lists {len(urls)} pages; the first {MAX_PAGES} were taken")
        for address in urls[:MAX_PAGES]:
            if depth < SITEMAP_DEPTH or "sitemap" not in address:
                await self._take_site(address, depth + 1)
        return None

    async def take_sitemap(self, url: str) -> None:
        """The pages of a site by its sitemaps: those that its robots.txt names, or /sitemap.xml. Raises NexiError."""
        if not is_web_url(url):
            raise NexiError(f"{url[:200]} has no sitemap", cause="it is no web address", fix="write it in full, like https://…")
        sitemaps: list[str] = []
        with suppress(FetchError):
            robots = await self._nexi.fetch(join(url, "/robots.txt"))
            lines = (line for line in robots.text.splitlines() if line.lower().startswith("sitemap:"))
            sitemaps = [address for line in lines for address in find_urls(line)]
        for sitemap in sitemaps or [join(url, "/sitemap.xml")]:
            await self._take_site(sitemap)

    # both

    async def _store_queued(self) -> None:
        """Store what was read, in one transaction, and tell of each. Raises StoreError."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        await self._knowledge.require_room()
        intake, reports = self.taken, await self._index_pages([page for page, *_ in waiting])
        for (page, name, total), report in zip(waiting, reports, strict=True):
            intake.warnings += [f for f in report.failures if f not in intake.warnings]
            if report.outcome == "empty":
                intake.skip(name, "no text in it")
            else:
                if page.truncated:
                    intake.warnings.append(f"{name} is too long: only its first {len(page.text):,} characters were indexed")
                if page.unread:
                    intake.warnings.append(f"{name}: {page.unread}")
                intake.outcomes[report.outcome] += 1
                intake.chunks += report.chunks if report.outcome == "stored" else 0
            self._report_step(name, report.outcome, total)

    async def _index_pages(self, pages: Sequence[Page]) -> list[IndexReport]:
        """Without vectors from now on where the store has those of another embedder."""
        try:
            indexer = await self._knowledge.indexer(self._nexi.gate(), emit=self._emit, embeds=self._embeds)
            return await indexer.index_all(pages, self._tags or None)
        except StoreError as error:
            if error.code != "store_embedder":
                raise
            self.taken.warnings.append(f"{error}. {error.fix}".strip())
            self._embeds = False
            return await self._index_pages(pages)

    def _report_refusal(self, name: str, error: FetchError, total: int = 0) -> None:
        """Why a document is not taken; for a format that is not read, also what to do. Without a `total` it was no step."""
        reason = str(error).rstrip(".")
        reason = f"{reason}; {error.fix}" if error.reason == "content_type" and error.fix else reason
        self.taken.skip(name, reason)
        if total:
            self._report_step(name, f"skipped: {reason}", total)

    def _report_step(self, name: str, outcome: str, total: int) -> None:
        self._done += 1
        self._on_step(Step(name, outcome, self._done, max(total, self._done)))


async def keep_vault_indexed(nexi: Nexi, on_failure: Callable[[NexiError], None]) -> None:
    """Index the vault that the settings name, and what changes in it, until this is cancelled."""
    if not nexi.config.vault or not nexi.config.knowledge:
        return
    try:
        async for _ in DocumentIndexing(nexi, nexi.knowledge()).watch(nexi.config.vault):
            pass
    except NexiError as error:
        on_failure(error)


def place_of(target: str) -> tuple[Path, bool]:
    """Where a path leads, and whether to a folder. Raises NexiError where it leads nowhere."""
    cause = "" if target else "the name is empty"  # which would be the current folder
    try:
        path = Path(target).expanduser().resolve(strict=True)
    except RuntimeError:
        cause = "it is a link that leads back to itself"
    except (OSError, ValueError) as error:
        cause = cause or getattr(error, "strerror", None) or "it is no path and no web address"
    if cause:
        fix = "give a file, a folder, or a URL with http:// or https://"
        raise NexiError(f"{target[:200]!r} cannot be read", cause=cause, fix=fix, code="not_found")
    return path, path.is_dir()


@asynccontextmanager
async def attach_files(nexi: Nexi, ports: PortFactory, targets: Sequence[str]) -> AsyncIterator[Knowledge]:
    """A store for one question with these files in it, gone with the block. Raises NexiError when none can be read."""
    names = ", ".join(target.rstrip("/").rpartition("/")[2] for target in targets)[:300]
    about = f"Search the files the user gave with this question: {names}. Ask here first."
    async with open_temporary_knowledge(ports, about) as knowledge:
        taking = DocumentIndexing(nexi, knowledge, embeds=False)
        for target in targets:
            await taking.take(target)
        if not sum(taking.taken.outcomes.values()):
            why = "; ".join(f"{name}: {reason}" for name, reason in taking.taken.skipped[:5]) or "the folder is empty"
            raise NexiError(f"there is nothing to read in {names}", cause=why, fix="give files with text in them")
        yield knowledge


class _FolderEvents:
    """A block in which changes below a folder can be waited for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = asyncio.Event()
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._descriptor = -1

    def __enter__(self) -> _FolderEvents:
        if self._libc:
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor >= 0:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read_events)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def watch(self, folders: Iterable[Path]) -> None:
        """Watch these folders as well; one that is watched already stays so."""
        for folder in folders:
            if self._descriptor < 0 or self._libc is None:
                return
            if self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), INOTIFY_MASK) < 0 and folder.is_dir():
                self._close()

    async def wait(self) -> None:
        """Wait until something may have changed."""
        if self._descriptor < 0:
            await self._clock.sleep(LOOK_S)
            return
        tasks = [asyncio.ensure_future(work) for work in (self._changed.wait(), self._clock.sleep(LOOK_ANYWAY_S))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._changed.is_set():
            await self._clock.sleep(SETTLE_S)
            self._changed.clear()

    def _read_events(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._descriptor, 65_536):
                self._changed.set()

    def _close(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1


def _file_stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    stamps = {}
    for file in files_in(folder):
        with suppress(OSError):
            about = file.stat()
            stamps[file] = (about.st_mtime_ns, about.st_size)
    return stamps
