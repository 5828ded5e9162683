"""A library of references as a source: its items with notes and files, from Zotero's database or from an export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app.zotero import find_library, read_running_library
from nexi.checking.links import link_to
from nexi.config import Config
from nexi.errors import NexiError
from nexi.formats.libraries import LibraryItem, parse_bibtex, parse_csl, render_item
from tests.app.test_vaults import find_titles, stored_sources, take
from tests.app.zotero_library import write_library
from tests.stub import serving

Make = Callable[..., Config]

TIDES = {
    "key": "ABCD2345",
    "title": "Tides in small harbours",
    "date": "2019-03-00 March 2019",
    "publicationTitle": "Journal of Ports",
    "DOI": "10.1000/tides",
    "abstractNote": "The tide lags by 40 minutes behind the breakwater.",
    "authors": [("Ada", "Ros"), ("Bo", "Lind")],
    "tags": ["tides"],
    "note": "<p>Check the gauge of <b>Elmhaven</b>.</p>",
    "file": ("FILE2345", "storage:tides.txt"),
}


def make_library(root: Path) -> Path:
    folder = root / "Zotero"
    (folder / "storage" / "FILE2345").mkdir(parents=True)
    (folder / "storage" / "FILE2345" / "tides.txt").write_text("The full text speaks of a resonance of nine hours.")
    write_library(folder / "zotero.sqlite", [TIDES, {"key": "GONE2345", "title": "Thrown away", "deleted": True}])
    return folder


async def test_items_notes_and_files_of_a_library_are_found(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    taken = await take(config, make_library(tmp_path))
    assert dict(taken.outcomes) == {"stored": 2}
    asked = ("gauge Elmhaven", "resonance nine hours", "Ada Ros", "thrown away")
    assert [await find_titles(config, text) for text in asked] == [
        ["Tides in small harbours"],
        ["Tides in small harbours"],
        ["Tides in small harbours"],
        [],
    ]


async def test_evidence_opens_in_zotero(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    await take(config, make_library(tmp_path))
    (source,) = (await stored_sources(config)).values()
    folder = source.url.partition("/items")[0].partition("/storage")[0]
    assert [
        link_to(f"{folder}/{path}", "[page 3]\n\ntext", 10, 14) for path in ("items/ABCD2345", "storage/FILE2345/a.pdf")
    ] == [
        "zotero://select/library/items/ABCD2345",
        "zotero://open-pdf/library/items/FILE2345?page=3",
    ]


async def test_an_item_that_was_deleted_is_forgotten(make_config: Make, tmp_path: Path) -> None:
    config, export = make_config(), tmp_path / "library.json"
    entries = [{"id": name, "type": "book", "title": f"Book {name}"} for name in ("a", "b")]
    export.write_text(json.dumps(entries))
    await take(config, export)
    export.write_text(json.dumps(entries[:1]))
    taken = await take(config, export)
    assert (dict(taken.outcomes), list(await stored_sources(config))) == ({"unchanged": 1, "removed": 1}, ["Book a"])


def test_a_library_that_zotero_holds_open_is_read_from_a_copy(tmp_path: Path) -> None:
    folder = make_library(tmp_path)
    zotero = sqlite3.connect(folder / "zotero.sqlite")
    zotero.executescript("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;")
    library = find_library(folder)
    zotero.close()
    assert library is not None
    assert library.items == (
        LibraryItem(
            key="ABCD2345",
            title="Tides in small harbours",
            authors=("Ada Ros", "Bo Lind"),
            venue="Journal of Ports",
            date="2019-03",
            doi="10.1000/tides",
            abstract="The tide lags by 40 minutes behind the breakwater.",
            tags=("tides",),
            notes=("Check the gauge of **Elmhaven**.",),
            files=(str(folder / "storage" / "FILE2345" / "tides.txt"),),
        ),
    )


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\0" * 200])
def test_a_damaged_library_is_said_plainly(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "zotero.sqlite").write_bytes(content)
    with pytest.raises(NexiError, match="cannot be read as a Zotero library") as refusal:
        find_library(tmp_path)
    assert "close Zotero" in refusal.value.fix


def test_a_library_that_may_not_be_copied_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_library(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "The process cannot access the file because it is being used by another process")

    monkeypatch.setattr("shutil.copyfile", refuse)
    with pytest.raises(NexiError, match="cannot be copied: The process cannot access"):
        find_library(folder)


def test_an_export_in_csl_json_has_everything_known_and_leaves_out_what_it_cannot_read() -> None:
    entries = [
        {
            "id": "http://zotero.org/users/1/items/ABCD2345",
            "type": "article-journal",
            "title": "Tides",
            "author": [{"family": "Ros", "given": "Ada"}, {"literal": "Port Office"}],
            "issued": {"date-parts": [["2019", 3]]},
            "container-title": "Journal of Ports",
            "DOI": "10.1000/tides",
            "keyword": "tides, ports",
            "note": "read twice",
        },
        {"id": "x", "type": "book", "title": 7},
        "nonsense",
    ]
    assert parse_csl(json.dumps(entries)) == [
        LibraryItem(
            "ABCD2345",
            "Tides",
            ("Ada Ros", "Port Office"),
            "Journal of Ports",
            "2019-03",
            "10.1000/tides",
            tags=("tides", "ports"),
            notes=("read twice",),
        )
    ]
    assert [parse_csl(text) for text in ("{", "[1, 2]", '{"a": 1}', "[" * 100_000)] == [[], [], [], []]


def test_an_export_in_bibtex_has_names_accents_and_files_and_an_entry_without_an_end_ends() -> None:
    source = r"""@comment{not this}
@article{ros2019,
  title = {Tides in {Small} Harbours}, author = "Ros, Ada and M{\"u}ller, Jo",
  journal = {Journal of Ports}, year = 2019, file = {PDF:/home/a/tides.pdf:application/pdf}
}
@book{lost, title = {Never closed"""
    assert parse_bibtex(source) == [
        LibraryItem(
            "ros2019",
            "Tides in Small Harbours",
            ("Ada Ros", "Jo Müller"),
            "Journal of Ports",
            "2019",
            files=("/home/a/tides.pdf",),
        )
    ]


def test_an_item_reads_as_a_reference_with_its_abstract_and_notes() -> None:
    item = LibraryItem("k", "Tides", ("Ada Ros",), date="2019", abstract="They lag.", notes=("Look again.",))
    assert (
        render_item(item) == "# Tides\n\nAuthors: Ada Ros  \nDate: 2019\n\n## Abstract\n\nThey lag.\n\n## Notes\n\nLook again."
    )


@pytest.mark.parametrize("name", ["library.json", "library.bib", "zotero.sqlite"])
async def test_a_truncated_library_loses_nothing_that_was_stored(name: str, make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    folder = make_library(tmp_path)
    await take(config, folder)
    whole = {
        "library.json": json.dumps([{"id": "a", "type": "book", "title": "Tides"}] * 20).encode(),
        "library.bib": b"@book{a, title = {Tides}}\n" * 20,
        "zotero.sqlite": (folder / "zotero.sqlite").read_bytes(),
    }[name]
    (tmp_path / "cut").mkdir()
    cut = tmp_path / "cut" / name
    cut.write_bytes(whole[: len(whole) // 2])
    if name == "zotero.sqlite":
        with pytest.raises(NexiError, match="cannot be read as a Zotero library"):
            await take(config, cut)
    else:
        await take(config, cut)
    assert "Tides in small harbours" in await stored_sources(config)


# the local API of a running Zotero, in the form that its documentation gives


def api_rows(folder: Path) -> list[dict[str, object]]:
    item = {
        "key": "ABCD2345",
        "itemType": "journalArticle",
        "title": "Tides in small harbours",
        "creators": [
            {"creatorType": "author", "firstName": "Ada", "lastName": "Ros"},
            {"creatorType": "author", "name": "Lind"},
        ],
        "date": "2019-03",
        "publicationTitle": "Journal of Ports",
        "DOI": "10.1000/tides",
        "abstractNote": "The tide lags by 40 minutes behind the breakwater.",
        "tags": [{"tag": "tides"}],
    }
    note = {"key": "NOTE2345", "itemType": "note", "parentItem": "ABCD2345", "note": "<p>Check the <b>Elmhaven</b> gauge.</p>"}
    file = {"key": "FILE2345", "itemType": "attachment", "parentItem": "ABCD2345", "linkMode": "imported_file"}
    place = (folder / "storage" / "FILE2345" / "tides.txt").as_uri()
    return [
        {"key": "ABCD2345", "version": 7, "library": {"type": "user", "id": 1}, "data": item},
        {"key": "NOTE2345", "version": 7, "data": note},
        {"key": "FILE2345", "version": 7, "data": file, "links": {"enclosure": {"href": place, "type": "text/plain"}}},
        {"key": "ODD", "data": "of another schema"},
    ]


ITEMS = "GET /api/users/0/items?format=json&limit=100&start="


async def test_the_library_of_a_running_zotero_reads_like_its_database(make_config: Make, tmp_path: Path) -> None:
    folder = make_library(tmp_path)
    with serving({f"{ITEMS}0": api_rows(folder)}) as port:
        library = read_running_library(f"http://127.0.0.1:{port}")
        config = make_config(service_urls={"zotero": f"http://127.0.0.1:{port}"})
        taken = await take(config, "zotero:")
    assert library.folder == folder
    assert library.items == (
        LibraryItem(
            "ABCD2345",
            "Tides in small harbours",
            ("Ada Ros", "Lind"),
            "Journal of Ports",
            "2019-03",
            "10.1000/tides",
            abstract="The tide lags by 40 minutes behind the breakwater.",
            tags=("tides",),
            notes=("Check the **Elmhaven** gauge.",),
            files=(str(folder / "storage" / "FILE2345" / "tides.txt"),),
        ),
    )
    assert dict(taken.outcomes) == {"stored": 2}
    assert await find_titles(config, "resonance nine hours") == ["Tides in small harbours"]


def test_a_long_library_is_read_page_by_page() -> None:
    rows = [{"key": f"K{n}", "data": {"itemType": "book", "title": f"Book {n}"}} for n in range(130)]
    with serving({f"{ITEMS}0": rows[:100], f"{ITEMS}100": rows[100:]}) as port:
        library = read_running_library(f"http://127.0.0.1:{port}")
    assert [item.title for item in library.items] == [f"Book {n}" for n in range(130)]


@pytest.mark.parametrize(
    ("route", "code"),
    [
        (lambda _: (403, b"Forbidden"), "zotero_refused"),
        (lambda _: (302, b""), "zotero_refused"),
        (b"<html><body>Sign in</body></html>", "bad_schema"),
        ({"error": "another schema"}, "bad_schema"),
        (b"[" * 100_000, "bad_schema"),
    ],
    ids=["switched off", "a redirect", "a web page", "another schema", "no JSON"],
)
def test_what_is_no_answer_of_zotero_is_said(route: object, code: str) -> None:
    with serving({f"{ITEMS}0": route}) as port, pytest.raises(NexiError) as said:
        read_running_library(f"http://127.0.0.1:{port}")
    assert (said.value.code, bool(said.value.fix)) == (code, True)


def test_a_zotero_that_does_not_run_and_one_elsewhere_are_said() -> None:
    with serving({}) as port:
        pass
    for base, code in ((f"http://127.0.0.1:{port}", "zotero_closed"), ("http://192.168.1.7:23119", "bad_request")):
        with pytest.raises(NexiError) as said:
            read_running_library(base)
        assert said.value.code == code
