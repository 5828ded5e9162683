"""Every format at every door that takes a document: over HTTP, a local file, a file with the question, an upload."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.app.documents import read_document
from nexi.errors import FetchError
from nexi.formats import find_format, type_of_name
from nexi.types import FetchLimits
from tests.fetchers.site import response
from tests.fetchers.test_http import failure, fetching
from tests.formats.samples import SAMPLES

MAGIC = tuple(name for name in SAMPLES if not getattr(find_format(type_of_name(name)), "is_text", False))


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_document_is_fetched_by_its_media_type(name: str) -> None:
    make, piece = SAMPLES[name]
    async with fetching({"/get": response(make(), content_type=type_of_name(name))}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/get"), FetchLimits(timeout_s=300.0))
    assert (piece in got.text, got.content_type) == (True, type_of_name(name))


# One in three is tried at once, each format once.
OF_NO_USE = [
    pytest.param(name, said, marks=() if (number + place) % 3 == 0 else pytest.mark.long)
    for number, name in enumerate(SAMPLES)
    for place, said in enumerate(["application/octet-stream", "", "text/plain"])
]


@pytest.mark.parametrize(("name", "said"), OF_NO_USE)
async def test_a_document_of_no_useful_type_is_known_by_its_name_or_bytes(name: str, said: str) -> None:
    make, piece = SAMPLES[name]
    async with fetching({f"/a.{name}": response(make(), content_type=said)}) as (fetcher, site):
        got = await fetcher.fetch(site.url(f"/a.{name}"), FetchLimits(timeout_s=300.0))
    assert (piece in got.text, got.content_type) == (True, type_of_name(name))


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_document_on_the_disk_is_read(name: str, tmp_path: Path) -> None:
    make, piece = SAMPLES[name]
    (tmp_path / f"a.{name.upper()}").write_bytes(make())
    page = await read_document(tmp_path / f"a.{name.upper()}", "file:///a")
    assert (piece in page.text, page.truncated) == (True, False)


@pytest.mark.parametrize("name", MAGIC)
async def test_a_document_on_the_disk_is_known_by_its_bytes(name: str, tmp_path: Path) -> None:
    make, piece = SAMPLES[name]
    (tmp_path / "upload.tmp").write_bytes(make())
    assert piece in (await read_document(tmp_path / "upload.tmp", "file:///a")).text


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
REFUSED = {
    "a.ppt": (OLE + "PowerPoint Document".encode("utf-16-le"), "a PowerPoint 97 presentation", "save it as .pptx"),
    "a.docx": (OLE + "EncryptedPackage".encode("utf-16-le"), "an encrypted Office document", "save it without a password"),
    "a.rar": (b"Rar!\x1a\x07\x01\x00" + bytes(50), "a RAR archive", "unpack it and give nexi the files inside"),
    "a.heic": (b"\0\0\0\x18ftypheic" + bytes(50), "a HEIC picture", "save it as JPEG or PNG"),
    "a.mp3": (b"ID3\x04\0\0", "a sound recording", "give nexi a transcript of it, such as an SRT file"),
    "a.db": (b"SQLite format 3\0", "a SQLite database", "export its tables as CSV"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_file_is_named_by_its_format_and_says_what_to_do(name: str, tmp_path: Path) -> None:
    data, called, advice = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FetchError) as caught:
        await read_document(tmp_path / name, "file:///a")
    error = caught.value
    assert (str(error), error.reason, error.fix) == (f"{called}, which nexi does not read", "content_type", advice)
    error = await failure({f"/{name}": response(data, content_type="application/octet-stream")}, f"/{name}")
    assert (f" is {called}, which nexi does not read" in error.message, error.fix) == (True, advice)


@pytest.mark.parametrize("name", ["server.key", "notes.db", "readme.pages", "plain"])
async def test_text_is_read_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("Just a few words.\n")
    assert (await read_document(tmp_path / name, "file:///a")).text == "Just a few words."


@pytest.mark.parametrize(
    "words", ["Tea is warm.\nAnd wet.\n", "Чай тёплый, и\nмокрый. 茶は温かい。", "茶是热的，\n也是湿的。" * 9]
)
@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
async def test_utf_16_without_a_byte_order_mark_is_text(words: str, order: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(words.encode(order))
    assert (await read_document(tmp_path / "a.txt", "file:///a")).text == words.strip()
