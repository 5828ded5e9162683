"""Words in pictures are recognised where tesseract is installed; a stand-in shows what the program is given."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from nexi.app.documents import read_document
from nexi.errors import FetchError

# Prints the kind of picture it was given, as `file` would know it, and its arguments.
PROGRAM = """#!/bin/sh
head -c 4 | od -An -c | tr -d ' \\n'
echo " $*"
"""


def picture(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("L", (40, 20), 255).save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text(PROGRAM)
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
