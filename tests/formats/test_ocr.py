"""Words in pictures are recognised where tesseract is installed; a stand-in shows what the program is given."""

from __future__ import annotations

import ctypes
import io
from pathlib import Path

import pytest
from PIL import Image

from nexi.app.documents import read_document
from nexi.errors import FetchError
from nexi.formats import ocr, pdf
from tests.formats import documents

# Prints the kind of picture it was given, as `file` would know it, and its arguments.
PROGRAM = """
head -c 4 | od -An -c | tr -d ' \\n'
echo " $*"
"""


def picture(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("L", (40, 20), 255).save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str = "") -> None:
    """Put a stand-in for tesseract into the path; `first` is what it does before."""
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{first}{PROGRAM}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


async def test_a_picture_is_given_to_the_program_on_its_standard_input(installed: None, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    assert (await read_document(tmp_path / "a.png", "file:///a")).text == "211PNG stdin stdout --psm 3"


async def test_a_scanned_pdf_is_drawn_page_by_page(installed: None, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(picture("PDF"))
    page = await read_document(tmp_path / "a.pdf", "file:///a")
    assert (page.text, page.truncated) == ("[page 1]\n\nP51 stdin stdout --psm 3", False)


async def test_without_the_program_a_picture_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    with pytest.raises(FetchError) as caught:
        await read_document(tmp_path / "a.png", "file:///a")
    assert (str(caught.value), caught.value.fix) == (
        "a PNG picture, which nexi does not read",
        "install tesseract, and nexi reads the words in pictures",
    )


def mixed_pdf() -> bytes:
    """A page with words, a scanned one, and an empty one."""
    import pypdfium2

    whole = pypdfium2.PdfDocument(documents.pdf(["The cover of the report.", ""]))
    scan = pypdfium2.PdfDocument(picture("PDF"))
    whole.import_pages(scan, index=1)
    result = io.BytesIO()
    whole.save(result)
    return result.getvalue()


async def test_a_scanned_page_among_pages_with_words_is_recognised(installed: None, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(mixed_pdf())
    page = await read_document(tmp_path / "a.pdf", "file:///a")
    assert page.text == "[page 1]\n\nThe cover of the report.\n\n[page 2]\n\nP51 stdin stdout --psm 3"
    assert (page.truncated, page.unread) == (False, "")


async def test_a_page_that_is_not_recognised_is_named_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.pdf").write_bytes(mixed_pdf())
    page = await read_document(tmp_path / "a.pdf", "file:///a")
    assert page.text.endswith("[page 2 is a picture, and its words were not recognised]")
    assert page.unread == ("page 2: a picture whose words were not recognised; install tesseract, and nexi reads scanned pages")


async def test_advice_to_install_the_program_is_given_only_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(picture("PDF"))
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(FetchError) as installed:
        await read_document(tmp_path / "a.pdf", "file:///a")
    assert (installed.value.cause, "install" in installed.value.fix) == ("no words were recognised on its 1 page", False)


async def test_the_languages_that_the_user_named_are_recognised(installed: None, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    page = await read_document(tmp_path / "a.png", "file:///a", "deu+eng")
    assert page.text == "211PNG stdin stdout --psm 3 -l deu+eng"


@pytest.mark.parametrize(("language", "arguments"), [("de-AT", " -l deu"), ("fi", ""), ("zh-TW", " -l chi_tra"), ("", "")])
async def test_a_scanned_pdf_is_recognised_in_the_language_it_names_if_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, arguments: str
) -> None:
    install(tmp_path, monkeypatch, "[ \"$1\" = --list-langs ] && echo 'List: deu eng chi_tra' && exit\n")
    import pypdfium2

    scan = pypdfium2.PdfDocument(picture("PDF"))
    if language:
        wide = ctypes.create_string_buffer(language.encode("utf-16-le") + b"\0\0")
        pypdfium2.raw.FPDFCatalog_SetLanguage(scan, ctypes.cast(wide, ctypes.POINTER(pypdfium2.raw.FPDF_WCHAR)))
    stream = io.BytesIO()
    scan.save(stream)
    (tmp_path / "a.pdf").write_bytes(stream.getvalue())
    assert (await read_document(tmp_path / "a.pdf", "file:///a")).text == f"[page 1]\n\nP51 stdin stdout --psm 3{arguments}"


@pytest.mark.parametrize(("origin", "pages"), [("web", 1), ("file", 3)])
def test_a_page_has_15_seconds_a_document_of_the_web_too_and_an_own_file_15_minutes(
    monkeypatch: pytest.MonkeyPatch, origin: str, pages: int
) -> None:
    times = [0.0]

    def recognise_slowly(picture: bytes, deadline: float, languages: str) -> str:
        assert deadline - times[0] == ocr.MAX_PAGE_S
        times[0] = deadline
        return "Tea"

    monkeypatch.setattr(pdf, "can_recognise", lambda: True)
    monkeypatch.setattr(pdf, "recognise_text", recognise_slowly)
    monkeypatch.setattr(pdf.time, "monotonic", lambda: times[0])
    stream = io.BytesIO()
    scans = [Image.new("L", (40, 20), 255) for _ in range(3)]
    scans[0].save(stream, "PDF", save_all=True, append_images=scans[1:])
    recognition = ocr.Recognition("eng", ocr.MAX_DOCUMENT_S[origin])
    assert pdf.read_pdf(stream.getvalue(), 10_000, recognition).text.count("Tea") == pages
