"""The story of a person who wants the answer as a Word file, with the pandoc that is installed."""

from __future__ import annotations

import shutil
import zipfile

import pytest

from tests.stories.visit import Visit, browser, visit
from tests.stories.world import QUESTION, World

__all__ = ["browser", "visit"]


def test_an_answer_is_saved_as_a_word_file(world: World, visit: Visit) -> None:
    if shutil.which("pandoc") is None:
        pytest.skip("needs pandoc: apt-get install pandoc")
    person = visit()
    person.ask(QUESTION)
    person.finished()
    with person.page.expect_download() as download:
        person.page.click("#exports >> text='Word'")
    assert b"The Moon is 384,400 km" in zipfile.ZipFile(download.value.path()).read("word/document.xml")
    assert (person.text("#notes"), person.trouble) == ("", [])
