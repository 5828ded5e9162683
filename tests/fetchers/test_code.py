"""Files of a project are read as pages: nothing outside of its folder, and only text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexi.errors import FetchError
from nexi.fetchers.code import CodeFetcher
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Page
from tests.raising import has_code


@pytest.fixture
def fetcher(tmp_path: Path) -> CodeFetcher:
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a b.py").write_text("x = 1\n")
    (root / "long.py").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    (root / "binary").write_bytes(b"a\0b")
    (root / "huge").write_bytes(b"x" * 1_000_001)
    return CodeFetcher(str(root), FakeClock())


async def test_a_file_is_a_page_under_its_relative_address(fetcher: CodeFetcher) -> None:
    assert await fetcher.fetch("file:///src/a%20b.py#L1", FetchLimits()) == Page(
        "file:///src/a%20b.py#L1",
        "x = 1\n",
        title="src/a b.py",
        final_url="file:///src/a%20b.py#L1",
        content_type="text/plain",
        downloaded_bytes=6,
        fetched_at="2026-01-02T03:04:05+00:00",
        fetcher="code",
    )


@pytest.mark.parametrize(("line", "first", "last"), [("L500", 301, 700), ("L1", 1, 400), ("L999", 601, 1000), ("", 1, 1000)])
async def test_of_a_long_file_the_lines_around_the_named_one_are_read(
    fetcher: CodeFetcher, line: str, first: int, last: int
) -> None:
    lines = (await fetcher.fetch(f"file:///long.py#{line}", FetchLimits())).text.splitlines()
    assert (lines[0], lines[-1]) == (f"line {first}", f"line {last}")


@pytest.mark.parametrize(
    "name", ["../secret.txt", "%2e%2e/secret.txt", "/etc/passwd", "src", "gone.py", "binary", "huge", "a%00b"]
)
async def test_what_is_no_text_file_of_the_project_is_refused(fetcher: CodeFetcher, name: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, check=has_code("blocked")) as caught:
        await fetcher.fetch(f"file:///{name}", FetchLimits())
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
async def test_a_link_out_of_the_project_is_refused(fetcher: CodeFetcher, tmp_path: Path) -> None:
    (tmp_path / "project" / "link.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(FetchError, check=has_code("blocked")):
        await fetcher.fetch("file:///link.txt", FetchLimits())


async def test_a_page_of_the_web_is_left_to_others(fetcher: CodeFetcher) -> None:
    with pytest.raises(FetchError, check=has_code("error")):
        await fetcher.fetch("https://moon.example/", FetchLimits())
