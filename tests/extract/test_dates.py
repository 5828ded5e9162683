"""The dates of a page come from what says them most surely, as ISO 8601, and cost no page its text."""

from __future__ import annotations

import pytest

from nexi.extract import Extracted
from nexi.formats import extract
from nexi.text.dates import find_dates, normalise_date

PARAGRAPH = "<p>The ferry crosses the sound four times a day, and it is often full in the summer months.</p>"


def read_page(head: str = "", body: str = "", url: str = "https://news.example/ferry", language: str = "en") -> Extracted:
    article = f"<article>{body}{PARAGRAPH * 3}</article>"
    html = f'<html lang="{language}"><head><title>Ferry</title>{head}</head><body>{article}</body></html>'
    return extract(html, "text/html", url)


def dates_of(page: Extracted) -> tuple[str, str]:
    return page.published[:10], page.updated[:10]


@pytest.mark.parametrize(
    ("head", "body", "url", "dates"),
    [
        ('<meta property="article:published_time" content="2024-05-06T10:00:00Z">', "", "", ("2024-05-06", "")),
        ('<meta name="published" content="July 17, 2025">', "", "", ("2025-07-17", "")),
        # The address says the day of the site, the head a moment in Greenwich.
        ('<meta name="date" content="2024-05-07T02:41:41Z">', "", "https://a.example/2024/05/06/ferry", ("2024-05-06", "")),
        ('<meta name="date" content="2024-05-09T02:41:41Z">', "", "https://a.example/2024/05/06/ferry", ("2024-05-09", "")),
        (
            '<meta name="datePublished" content="2024-05-06"><meta property="og:updated_time" content="2025-01-02T03:04:05Z">',
            "",
            "",
            ("2024-05-06", "2025-01-02"),
        ),
        (
            '<script type="application/ld+json">{"@type": "Product", "datePublished": "2017-03-03"}</script>'
            '<script type="application/ld+json">{"@type": "NewsArticle", "datePublished": "2024-02-21",'
            ' "dateModified": "2024-03-01"}</script>',
            "",
            "",
            ("2024-02-21", "2024-03-01"),
        ),
        ("", "", "https://news.example/2025/6/9/ferry", ("2025-06-09", "")),
        ("", "", "https://news.example/2023/october/03/ferry", ("2023-10-03", "")),
        ("", '<h1>Ferry</h1><time datetime="2023-04-05T06:07">5 April</time>', "", ("2023-04-05", "")),
        (
            "",
            '<time itemprop="dateModified" datetime="2025-01-01"></time><time datetime="2023-04-05"></time>',
            "",
            ("2023-04-05", "2025-01-01"),
        ),
        ("", "<h1>Ferry</h1><div>By A. Lee</div><div>March 17, 2025</div>", "", ("2025-03-17", "")),
        ("", "<h1>Ferry</h1><p>Updated Nov 12, 2025</p>", "", ("2025-11-12", "2025-11-12")),
        ("", "<h1>Ferry</h1><p>Published: 3 Oct 2024 | Last updated: 4 Nov 2024</p>", "", ("2024-10-03", "2024-11-04")),
        ("", '<h1>Ferry</h1><aside class="related"><time datetime="2020-01-01">x</time></aside>', "", ("", "")),
        (
            "",
            "<h1>Ferry</h1><p>The old ferry sank in the great storm that came up the sound on 3 October 1994, off Ewell.</p>",
            "",
            ("", ""),
        ),
        # The day of a version, which a link parts from its sentence.
        (
            "",
            "<h1>Ferry</h1><p>From <a>version 3</a> (2010-07-21) on.</p><p><i>Last modified on <a>2018-11-26</a></i></p>",
            "",
            ("2018-11-26", "2018-11-26"),
        ),
    ],
)  # fmt: skip
def test_a_page_is_dated_by_what_says_it_most_surely(head: str, body: str, url: str, dates: tuple[str, str]) -> None:
    assert dates_of(read_page(head, body, url or "https://news.example/ferry")) == dates


@pytest.mark.parametrize(
    ("text", "language", "day"),
    [
        ("3. März 2024", "de", "2024-03-03"),
        ("le 5 août 2023", "fr", "2023-08-05"),
        ("5 de mayo de 2021", "es", "2021-05-05"),
        ("2 января 2022", "ru", "2022-01-02"),
        ("2024年5月6日", "ja", "2024-05-06"),
        ("2024년 5월 6일", "ko", "2024-05-06"),
        ("03/04/2024", "en-US", "2024-03-04"),
        ("03/04/2024", "en-GB", "2024-04-03"),
        ("25/04/2024", "en-US", "2024-04-25"),
        ("03.04.2024", "de", "2024-04-03"),
        ("Sept. 9th, 2024", "en", "2024-09-09"),
        ("31 February 2024", "en", ""),
    ],
)
def test_a_day_is_read_as_its_readers_write_it(text: str, language: str, day: str) -> None:
    assert [mention.day for mention in find_dates(text, language)] == ([day] if day else [])


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("20240506", "2024-05-06"),
        ("2024-05", "2024-05"),
        ("1975/03", "1975-03"),
        ("2023 Jan 7", "2023-01-07"),
        ("Mon, 06 May 2024 10:00:00 GMT", "2024-05-06"),
        ("2024-05-06 10:00:00", "2024-05-06T10:00:00"),
        ("yesterday", ""),
    ],
)
def test_what_a_machine_wrote_becomes_iso_8601(said: str, day: str) -> None:
    assert normalise_date(said) == day


def test_an_empty_index_costs_no_page_its_text() -> None:
    page = read_page(body="<div><sub></sub><p>The harbour of Ewell is deep enough for the ferry at every tide.</p></div>")
    assert "harbour of Ewell" in page.text


def test_a_time_outside_of_the_body_costs_no_page_its_text() -> None:
    assert "ferry" in extract(f"<time>2024</time><html><body>{PARAGRAPH}</body></html><time>soon</time>", "text/html", "").text


def test_a_date_after_a_word_for_it_is_found_anywhere_in_a_long_text_and_no_other_date_is() -> None:
    filler = "<p>The battle of 3 May 1998 is told again and again, as of 2001-02-03 and 4/5/2006.</p>" * 200
    page = f"<h1>Annals</h1><p>{'A long beginning without days. ' * 100}</p>{filler}<p>Last updated: 12 March 2021</p>{filler}"
    found = extract(page, "text/html", "")
    assert (found.published, found.updated) == ("2021-03-12", "2021-03-12")


def test_a_sentence_about_a_release_does_not_date_its_page() -> None:
    film = "The ferry in the film is a real one, and the film was theatrically released in North America on April 30, 2010."
    assert dates_of(read_page(body=f"<p>{film} Few saw it.</p>")) == ("", "")
    assert dates_of(read_page(body=f"{PARAGRAPH * 30}<p>Version 2.1, released April 30, 2010</p>")) == ("2010-04-30", "")
    said = "This article on the ferries of the sound and of the lakes was published on April 30, 2010."
    assert dates_of(read_page(body=f"{PARAGRAPH * 30}<p>{said}</p>")) == ("2010-04-30", "")
