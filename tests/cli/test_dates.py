"""The dates of a page reach every source in JSON: from the web, from the store, and from files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import docx
import openpyxl
import pytest

from rig import miniweb
from tests.cli.command import Command

QUESTION = "How deep is the harbour of Ewell?"
SENTENCE = "The harbour of Ewell is 12 metres deep at low tide."
HTML = (
    '<html lang="en"><head><title>Ewell</title><meta property="article:published_time" content="2031-04-05T06:07:08Z">'
    '<script type="application/ld+json">{"@type": "NewsArticle", "dateModified": "2031-06-07"}</script></head>'
    f"<body><main><h1>Ewell</h1><p>{SENTENCE}</p></main></body></html>"
)


@pytest.fixture
def dated(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    pages = [{"url": "http://ewell.test/harbour", "title": "Ewell", "html": HTML}]
    with miniweb.serve(miniweb.Corpus(pages)) as base:
        monkeypatch.setenv("SEARXNG_URL", base)
        monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(base).netloc)
        yield nexi


def word_file() -> bytes:
    document = docx.Document()
    document.add_paragraph(SENTENCE)
    document.core_properties.created = datetime(2013, 12, 23, tzinfo=UTC)  # of the template
    document.core_properties.modified = datetime(2031, 4, 5, tzinfo=UTC)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def sheet_file() -> bytes:
    book = openpyxl.Workbook()
    book.active.append(["Harbour", "Depth"])
    book.active.append([SENTENCE, 12])
    book.properties.created = datetime(2011, 1, 12)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def dates_in(answer: str) -> tuple[str, str]:
    source = json.loads(answer)["sources"][0]
    return source["published"][:10], source["modified"][:10]


def test_a_page_keeps_its_dates_from_the_web_to_the_second_question(dated: Command) -> None:
    assert dates_in(dated("--json", QUESTION).out) == ("2031-04-05", "2031-06-07")
    assert dates_in(dated("--local", "--json", QUESTION).out) == ("2031-04-05", "2031-06-07")
    [hit] = json.loads(dated("find", "--local", "--json", QUESTION).out)["hits"]
    assert hit["published"][:10] == "2031-04-05"
    [source] = json.loads(dated("sources", "--json").out)["sources"]
    assert (source["published"][:10], source["modified"][:10]) == ("2031-04-05", "2031-06-07")


@pytest.mark.parametrize(
    ("name", "make", "published"),
    [
        ("ewell.html", HTML.encode, "2031-04-05"),
        ("ewell.docx", word_file, "2031-04-05"),
        ("ewell.xlsx", sheet_file, ""),
        ("ewell.md", f"---\ntitle: Ewell\ndate: 2031-04-05\n---\n\n{SENTENCE}\n".encode, "2031-04-05"),
    ],
)
def test_a_file_has_the_date_it_was_last_changed(
    online: Command, tmp_path: Path, name: str, make: Callable[[], bytes], published: str
) -> None:
    path = tmp_path / name
    path.write_bytes(make())
    said, _ = dates_in(online("-f", str(path), "--json", QUESTION).out)
    assert said == published or (not published and said[:4] not in ("", "2011"))
    assert online("index", str(path)).code == 0
    assert dates_in(online("--local", "--json", QUESTION).out)[0] == said
