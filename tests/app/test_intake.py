"""Files, folders, pages and sitemaps are taken in whole, and what is left out has a reason."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from evals.encodings import PAGES
from nexi.app import Nexi
from nexi.app.documents import MAX_BYTES, _in_fences
from nexi.app.folders import Folders
from nexi.app.intake import DocumentIndexing, Intake, Step, attach_files
from nexi.config import Config
from nexi.errors import NexiError
from nexi.testing import FakeClock, FakeWeb
from nexi.types import StoredSource
from nexi.urls import find_urls
from tests.denial import deny_access
from tests.raising import has_code

Make = Callable[..., Config]


async def take(config: Config, *targets: object, web: FakeWeb | None = None, tags: tuple[str, ...] = ()) -> Intake:
    given = {"fetchers": [web], "backends": [web]} if web else {}
    async with Nexi(config, **given) as nexi:
        taking = DocumentIndexing(nexi, nexi.knowledge(), tags=tags, embeds=False)
        for target in targets:
            await taking.take(str(target))
        return taking.taken


async def known(config: Config) -> list[StoredSource]:
    async with Nexi(config) as nexi:
        return [source async for source in nexi.knowledge().sources()]


UNREAD = "not a format nexi reads; give it as text, HTML, PDF or an Office document"


def a_folder(root: Path) -> Path:
    notes = root / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / ".git").mkdir()
    (notes / ".git" / "config").write_text("[core]")
    (notes / "garden.md").write_text("# Garden\n\nThe shed key hangs behind the blue door.")
    (notes / "page.html").write_text(
        "<html><body><main><h1>Ponds</h1><p>The pond has seven fish in it.</p></main></body></html>"
    )
    (notes / "sub" / "boat.py").write_text("def sail(knots):\n    return knots * 1.852\n")
    (notes / "latin.txt").write_bytes("Das Café hat geöffnet.".encode("latin-1"))
    (notes / "empty.txt").write_bytes(b" \n")
    (notes / "blob.bin").write_bytes(bytes(range(256)) * 20)
    (notes / "sub" / "nexi-research-shed-keys-a3.md").write_text("# Shed keys\n\nWritten by nexi itself.")
    (notes / "loop").symlink_to("..")
    return notes


async def test_a_folder_is_taken_whole_and_every_file_left_out_is_counted_with_its_reason(
    make_config: Make, tmp_path: Path
) -> None:
    config = make_config()
    taken = await take(config, a_folder(tmp_path), tags=("home",))
    assert dict(taken.outcomes) == {"stored": 4}
    assert dict(taken.reasons) == {
        "a link": 1,
        "a report by nexi": 1,
        "an ignored folder": 1,
        "empty": 1,
        UNREAD: 1,
    }
    titles = {source.title: source.tags for source in await known(config)}
    assert titles == dict.fromkeys(("Garden", "Ponds", "boat.py", "latin.txt"), ("home",))


async def test_files_in_old_charsets_are_stored_as_they_read(make_config: Make, tmp_path: Path) -> None:
    for number, page in enumerate(PAGES):
        (tmp_path / f"{number}.txt").write_bytes(page.sentence.encode(page.codec))
    config = make_config()
    await take(config, tmp_path)
    async with Nexi(config) as nexi:
        knowledge = nexi.knowledge()
        pages = [await knowledge.page(source.url) async for source in knowledge.sources()]
    assert sorted(page.text.strip() for page in pages if page) == sorted(page.sentence for page in PAGES)


async def test_a_second_time_nothing_is_stored_and_tags_stay(make_config: Make, tmp_path: Path) -> None:
    config, notes = make_config(), a_folder(tmp_path)
    await take(config, notes, tags=("home",))
    again = await take(config, notes)
    assert (dict(again.outcomes), again.chunks) == ({"unchanged": 4}, 0)
    assert {source.tags for source in await known(config)} == {("home",)}


async def test_a_changed_file_is_stored_again_and_one_that_is_gone_is_forgotten(make_config: Make, tmp_path: Path) -> None:
    config, notes = make_config(), a_folder(tmp_path)
    await take(config, notes)
    (notes / "garden.md").write_text("# Garden\n\nThe shed key is lost.")
    (notes / "latin.txt").unlink()
    again = await take(config, notes)
    assert dict(again.outcomes) == {"stored": 1, "unchanged": 2, "removed": 1}


async def test_a_file_that_cannot_be_reached_is_not_forgotten(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, notes = make_config(), tmp_path / "notes"
    closed = notes / "closed"
    closed.mkdir(parents=True)
    (notes / "garden.md").write_text("# Garden\n\nThe shed key is under the pot.")
    (closed / "pond.md").write_text("# Pond\n\nThe pond is two metres deep.")
    await take(config, notes)
    deny_access(closed, monkeypatch)
    again = await take(config, notes)
    assert (dict(again.outcomes), dict(again.reasons)) == ({"unchanged": 1}, {"Permission denied": 1})
    assert {source.title for source in await known(config)} == {"Garden", "Pond"}


async def test_the_address_of_a_file_tells_no_path_and_stays_whatever_way_it_is_taken(
    make_config: Make, tmp_path: Path
) -> None:
    config, notes = make_config(), a_folder(tmp_path)
    await take(config, notes / "sub" / "boat.py")
    await take(config, notes)
    await take(config, notes / "sub")
    urls = [source.url for source in await known(config)]
    assert len(urls) == len(set(urls)) == 4
    assert not [url for url in urls if str(tmp_path) in url or tmp_path.name in url]
    folders = Folders(config.state_dir / "folders.json")
    assert {folders.path_of(url) for url in urls} == {
        notes / "garden.md", notes / "page.html", notes / "sub" / "boat.py", notes / "latin.txt",
    }  # fmt: skip


def test_an_address_that_climbs_out_of_its_folder_has_no_path(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "folders.json")
    url = folders.address_of(tmp_path / "notes" / "a b.md", tmp_path / "notes")
    label = url.split("/")[3]
    assert url.endswith("/a%20b.md")
    assert folders.path_of(url) == tmp_path / "notes" / "a b.md"
    assert folders.path_of(f"file:///{label}/../../etc/passwd") is None
    assert folders.path_of(f"file:///{label}/%2e%2e/secret") is None
    assert folders.path_of("file:///unknown~123456/a.md") is None
    assert folders.path_of("https://example.com/a.md") is None


def test_two_who_index_at_once_both_keep_the_names_of_their_folders(tmp_path: Path) -> None:
    first, second = Folders(tmp_path / "folders.json"), Folders(tmp_path / "folders.json")
    files = [tmp_path / side / "a.md" for side in ("left", "right")]
    urls = [folders.address_of(file, file.parent) for folders, file in zip((first, second), files, strict=True)]
    later = Folders(tmp_path / "folders.json")
    assert [later.path_of(url) for url in urls] == files


async def test_a_file_of_fifty_megabytes_and_one_behind_a_password_are_left_out(make_config: Make, tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(2 * MAX_BYTES)
    locked = tmp_path / "locked.docx"
    with zipfile.ZipFile(locked, "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    data = bytearray(locked.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    locked.write_bytes(bytes(data))
    taken = await take(make_config(), huge, locked)
    assert dict(taken.outcomes) == {}
    assert taken.reasons["larger than 25 MB"] == 1
    assert len(taken.skipped) == 2
    assert taken.skipped[1][0] == "locked.docx"


async def test_a_pipe_and_a_file_that_may_not_be_read_stop_nothing(make_config: Make, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "fine.md").write_text("A fine file with some words in it.")
    taken = await take(make_config(), folder)
    assert (dict(taken.outcomes), dict(taken.reasons)) == ({"stored": 1}, {"no regular file": 1})


async def test_a_folder_with_very_many_files_is_taken_file_by_file(make_config: Make, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.txt").write_text(f"Note {number} is about subject {number}.")
    config, steps = make_config(), list[Step]()
    async with Nexi(config) as nexi:
        taking = DocumentIndexing(nexi, nexi.knowledge(), embeds=False, on_step=steps.append)
        await taking.take(str(folder))
    assert dict(taking.taken.outcomes) == {"stored": 300}
    assert (steps[0].done, steps[-1].done, steps[-1].total) == (1, 300, 300)


async def test_what_is_neither_a_path_nor_an_address_says_so(make_config: Make, tmp_path: Path) -> None:
    for target in (str(tmp_path / "nothing"), "a\0b", "ftp://example.com/x"):
        with pytest.raises(NexiError, check=has_code("not_found")):
            await take(make_config(), target)


async def test_a_page_and_the_pages_of_a_sitemap_are_taken(make_config: Make) -> None:
    class Site(FakeWeb):
        async def fetch(self, url: str, limits: object) -> object:  # type: ignore[override]
            page = await super().fetch(url, limits)  # type: ignore[arg-type]
            return replace(page, content_type="application/xml") if url.endswith(".xml") else page

    web = Site(
        {
            "https://docs.example/sitemap.xml": "https://docs.example/a\n\nhttps://docs.example/b\n\nhttps://docs.example/gone",
            "https://docs.example/a": "The guide to apples says how they are grown.",
            "https://docs.example/b": "The guide to bread says how it is baked.",
        }
    )
    config = make_config()
    taken = await take(config, "https://docs.example/sitemap.xml", web=web)
    assert dict(taken.outcomes) == {"stored": 2}
    assert taken.skipped == [("https://docs.example/gone", "the page does not exist")]
    assert sorted(source.url for source in await known(config)) == ["https://docs.example/a", "https://docs.example/b"]


class Blog(FakeWeb):
    """A site whose XML has the type and the links that the fetcher gives it."""

    async def fetch(self, url: str, limits: object) -> object:  # type: ignore[override]
        page = await super().fetch(url, limits)  # type: ignore[arg-type]
        if not url.endswith(".xml"):
            return page
        links = () if "sitemap" in url else tuple(find_urls(page.text))
        return replace(page, content_type="application/rss+xml; charset=utf-8", links=links)


BLOG = {
    "https://blog.example/feed.xml": "# Blog\n\nhttps://blog.example/a\n\nhttps://blog.example/b",
    "https://blog.example/a": "The post about apples says how they are grown.",
    "https://blog.example/b": "The post about bread says how it is baked.",
}


async def test_the_pages_of_a_feed_are_taken(make_config: Make) -> None:
    config = make_config()
    taken = await take(config, "https://blog.example/feed.xml", web=Blog(BLOG))
    assert dict(taken.outcomes) == {"stored": 2}
    assert sorted(source.url for source in await known(config)) == ["https://blog.example/a", "https://blog.example/b"]
    again = await take(config, "https://blog.example/feed.xml", web=Blog(BLOG))
    assert dict(again.outcomes) == {"unchanged": 2}


async def test_a_feed_whose_pages_cannot_be_read_is_taken_itself(make_config: Make) -> None:
    config = make_config()
    feed = {url: text for url, text in BLOG.items() if url.endswith(".xml")}
    taken = await take(config, "https://blog.example/feed.xml", web=Blog(feed))
    assert (dict(taken.outcomes), len(taken.skipped)) == ({"stored": 1}, 2)
    assert [source.url for source in await known(config)] == ["https://blog.example/feed.xml"]


async def test_a_feed_that_lists_itself_ends(make_config: Make) -> None:
    loop = {"https://blog.example/feed.xml": "# Loop\n\nhttps://blog.example/feed.xml"}
    taken = await take(make_config(), "https://blog.example/feed.xml", web=Blog(loop))
    assert dict(taken.outcomes) == {"stored": 1}


@pytest.mark.parametrize(
    "pages",
    [
        {"https://blog.example/sitemap.xml": "https://blog.example/a"},
        {
            "https://blog.example/robots.txt": "User-agent: *\nSitemap: https://blog.example/maps/sitemap-1.xml\n",
            "https://blog.example/maps/sitemap-1.xml": "https://blog.example/a",
        },
    ],
    ids=["usual place", "robots.txt"],
)
async def test_the_sitemap_of_a_site_is_found(make_config: Make, pages: dict[str, str]) -> None:
    config, web = make_config(), Blog(BLOG | pages)
    async with Nexi(config, fetchers=[web], backends=[web]) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take_sitemap("https://blog.example/about")
    assert [source.url for source in await known(config)] == ["https://blog.example/a"]


async def test_a_watched_folder_follows_what_happens_in_it(make_config: Make, tmp_path: Path) -> None:
    notes = a_folder(tmp_path)
    async with Nexi(make_config(), clock=FakeClock()) as nexi:
        watching = DocumentIndexing(nexi, nexi.knowledge(), embeds=False).watch(str(notes))
        first = dict((await anext(watching)).outcomes)
        (notes / "new.md").write_text("# New\n\nA new file with words.")
        (notes / "latin.txt").unlink()
        second = dict((await anext(watching)).outcomes)
        await watching.aclose()
    assert (first, second) == ({"stored": 4}, {"stored": 1, "removed": 1})


async def test_files_for_one_question_are_in_no_store_afterwards(make_config: Make, tmp_path: Path) -> None:
    config, notes = make_config(), a_folder(tmp_path)
    async with Nexi(config) as nexi, attach_files(nexi, nexi.ports, [str(notes)]) as shelf:
        assert await shelf.holds_something()
    assert not config.knowledge_path.exists()


async def test_files_with_nothing_to_read_are_refused_with_the_reasons(make_config: Make, tmp_path: Path) -> None:
    (tmp_path / "blob.bin").write_bytes(b"\0\1" * 500)
    async with Nexi(make_config()) as nexi:
        with pytest.raises(NexiError, check=has_code("error", "blob.bin")):
            async with attach_files(nexi, nexi.ports, [str(tmp_path / "blob.bin")]):
                pass


def test_code_is_cut_where_something_new_begins_and_keeps_every_line() -> None:
    code = "\n\n\n".join(f"def f{n}():\n    # step {n}\n\n    return {n}" + " + 1" * 120 for n in range(6))
    text = _in_fences(code, "python")
    assert text.count("```python\n") > 2
    assert [line for line in text.splitlines() if line.strip() and "```" not in line] == [
        x for x in code.splitlines() if x.strip()
    ]
    assert _in_fences("a = '''```'''", "python").startswith("````python\n")


async def test_two_processes_take_files_in_at_once_and_none_is_lost(make_config: Make, tmp_path: Path) -> None:
    for side in ("left", "right"):
        (tmp_path / side).mkdir()
        for number in range(20):
            (tmp_path / side / f"{number}.txt").write_text(f"{side} note {number} about things.")
    config = make_config()
    env = {**os.environ, "NEXI_HOME": str(config.root)}
    command = [sys.executable, "-m", "nexi", "index", "--json"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    running = [subprocess.Popen([*command, str(tmp_path / side)], env=env, **pipes) for side in ("left", "right")]
    said = [(await asyncio.to_thread(process.communicate))[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert len(await known(config)) == 40


async def test_indexing_that_is_killed_leaves_whole_pages_and_goes_on(make_config: Make, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(150):
        (folder / f"{number}.txt").write_text(f"Note {number}. " + f"It is about subject {number}. " * 300)
    config = make_config()
    env = {**os.environ, "NEXI_HOME": str(config.root)}
    process = subprocess.Popen(
        [sys.executable, "-m", "nexi", "index", str(folder)], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stderr is not None
    acknowledged = [await asyncio.to_thread(process.stderr.readline) for _ in range(5)]
    process.kill()
    process.wait()
    process.stderr.close()
    async with Nexi(config) as nexi:
        store = await nexi.knowledge().open_store()
        stored = [source async for source in nexi.knowledge().sources()]
        for source in stored:
            assert len(await store.passages(source.url)) == source.chunk_count
    assert len(stored) >= len(acknowledged)
    again = await take(config, folder)
    assert again.outcomes["stored"] + again.outcomes["unchanged"] == 150
    assert again.outcomes["unchanged"] >= len(acknowledged)


def test_the_reasons_are_in_the_json() -> None:
    taken = Intake()
    taken.skip("a.bin", "no text")
    taken.outcomes["stored"] = 2
    taken.chunks = 5
    assert taken.as_json() == {
        "stored": 2, "unchanged": 0, "linked": 0, "removed": 0, "chunks": 5, "skipped": {"no text": 1},
        "files": [{"name": "a.bin", "reason": "no text"}], "warnings": [],
    }  # fmt: skip


async def test_a_page_and_its_source_are_one_text(make_config: Make, tmp_path: Path) -> None:
    manual = tmp_path / "manual"
    (manual / "_sources").mkdir(parents=True)
    (manual / "_sources" / "2.6.rst.txt").write_text(
        "Ponds\n=====\n\nThe :func:`pond` has *seven* fish, and ``three`` of them are red.\n"
    )
    body = "<h1>Ponds</h1><p>The <code>pond</code> has <em>seven</em> fish, and <code>three</code> of them are red.</p>"
    (manual / "2.6.html").write_text(f"<html><body><main>{body}</main></body></html>")
    (manual / "2.6.txt").write_text("Quite another text about boats and their sails in the harbour of Kiel.")
    config = make_config()
    taken = await take(config, manual)
    assert (taken.outcomes["stored"], taken.skipped) == (2, [("_sources/2.6.rst.txt", "the same text as a file beside it")])
    assert sorted(source.url.rpartition("/")[2] for source in await known(config)) == ["2.6.html", "2.6.txt"]


async def test_a_source_that_was_stored_alone_is_forgotten_when_its_page_comes(make_config: Make, tmp_path: Path) -> None:
    manual, fish = tmp_path / "manual", "The pond has seven fish, and three of them are red."
    manual.mkdir()
    (manual / "ponds.md").write_text(f"# Ponds\n\n{fish}")
    config = make_config()
    await take(config, manual)
    (manual / "ponds.html").write_text(f"<html><body><h1>Ponds</h1><p>{fish}</p></body></html>")
    await take(config, manual)
    assert [source.url.rpartition("/")[2] for source in await known(config)] == ["ponds.html"]
