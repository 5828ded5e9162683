"""Offline archives: few words instead of a question, the archive's date at each page, and faults said plainly.

The answers have the form of kiwix-serve 3.3.0 of Debian 12, recorded on 17 November 2026.
"""

from __future__ import annotations

import pytest

from nexi.backends import Settings, require_backend
from nexi.backends.kiwix import KiwixBackend, parse_dates, parse_search
from nexi.backends.sender import BackendRequest, BackendResponse
from nexi.errors import BackendError, ConfigError
from nexi.types import Hit, Query

BASE = "http://127.0.0.1:8080"
CATALOGUE = b"""<feed><title>All Entries</title><updated>2026-11-17T16:48:20Z</updated>
  <entry><title>Mini</title><updated>2026-11-17T00:00:00Z</updated><name>mini</name>
    <dc:issued>2025-01-02T00:00:00Z</dc:issued></entry></feed>"""
PAGES = {
    "tides.html": ("Elmhaven tides", "The tide at Elmhaven lags by 40 minutes behind the breakwater."),
    "moon.html": ("The Moon", "The tide follows the Moon."),
    "clocks.html": ("Clocks", "An hour has 60 minutes."),
}


def render_results(words: list[str]) -> bytes:
    """Pages with every word, as the index of an archive finds them."""
    found = [(path, *page) for path, page in PAGES.items() if all(word in " ".join(page).lower() for word in words)]
    items = "".join(
        f"<item><title>{title}</title><link>/mini/{path}</link><description>{text.replace('tide', '<b>tide</b>')}</description>"
        "<book><title>Mini</title></book><wordCount>13</wordCount></item>"
        for path, title, text in found
    )
    return f"<rss><channel><opensearch:totalResults>{len(found)}</opensearch:totalResults>{items}</channel></rss>".encode()


class FakeKiwix:
    """A sender whose other end has an archive of three pages."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        if request.url.endswith("/catalog/v2/entries"):
            return BackendResponse(200, {}, CATALOGUE)
        pattern = dict(request.params)["pattern"]
        self.asked.append(pattern)
        return BackendResponse(200, {"content-type": "application/rss+xml"}, render_results(pattern.split()))


TIDES = Hit(
    f"{BASE}/raw/mini/content/tides.html",
    "Elmhaven tides",
    "The tide at Elmhaven lags by 40 minutes behind the breakwater. (archive of 2025-01-02)",
    "2025-01-02",
    "kiwix",
)


async def test_a_question_is_asked_in_its_rare_words_first_and_then_in_fewer() -> None:
    kiwix = FakeKiwix()
    hits = await KiwixBackend(BASE, kiwix).search(  # type: ignore[arg-type]
        Query("By how many minutes does the tide at Elmhaven lag?", count=2)
    )
    assert hits[0] == TIDES
    patterns = [pattern for pattern in kiwix.asked if " " in pattern]
    assert patterns[:3] == ["elmhaven lag minutes tide", "elmhaven lag minutes", "elmhaven lag"]
    assert patterns[3:] == ["lag minutes tide", "elmhaven minutes tide", "elmhaven lag tide"]


async def test_the_right_page_may_have_another_word_for_a_rare_word_of_the_question() -> None:
    hits = await KiwixBackend(BASE, FakeKiwix()).search(  # type: ignore[arg-type]
        Query("How many minutes does the tide at the breakwater of Elmhaven lag after an hour?", count=2)
    )
    assert hits[0] == TIDES


async def test_words_that_no_page_has_find_nothing_and_no_error() -> None:
    assert await KiwixBackend(BASE, FakeKiwix()).search(Query("zorbium quux", count=3)) == []  # type: ignore[arg-type]


def test_the_date_of_an_archive_is_that_of_its_catalogue() -> None:
    assert parse_dates(CATALOGUE) == {"Mini": "2025-01-02"}


def test_addresses_of_newer_versions_lead_to_the_bare_page_too() -> None:
    body = render_results(["elmhaven"]).replace(b"/mini/tides", b"/root/content/mini/A/tides")
    assert parse_search(BASE, 200, {}, body, {}).hits[0].url == f"{BASE}/root/raw/mini/content/A/tides.html"


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (404, b"<html>Not Found</html>", "search_failed", "it leaves out a truncated one"),
        (200, b"<html><body>Sign in</body></html>", "bad_schema", "another program"),
        (200, b"", "bad_schema", "another program"),
    ],
)
def test_an_archive_that_cannot_be_searched_is_said_plainly(status: int, body: bytes, code: str, words: str) -> None:
    with pytest.raises(BackendError) as refusal:
        parse_search(BASE, status, {}, body, {})
    assert (refusal.value.code, words in refusal.value.cause) == (code, True)


def test_without_an_address_the_command_that_names_one_is_said() -> None:
    with pytest.raises(ConfigError) as refusal:
        require_backend("kiwix", Settings())
    assert refusal.value.fix == "nexi config set service_urls.kiwix http://127.0.0.1:8080"
