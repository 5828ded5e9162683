"""References in RIS, BibTeX and CSL-JSON."""

from __future__ import annotations

import json

import pytest

from nexi.answers.bibliography import Name, PublicationDate, read_date, read_names, to_bibtex, to_csl, to_ris
from nexi.types import Imprint, Source

BRIDGE = Source(
    1,
    "https://example.org/forth?x={1}&y=50%25",
    "50 % of A_B & {C}",
    "",
    Imprint("Jane Q. Doe and John von Smith", "March 5, 2024", "Bridges & Co", "en", "text/html", "2026-11-15T04:00:00+00:00"),
)
BARE = Source(2, "https://example.net/")


def test_a_source_becomes_a_ris_record() -> None:
    assert to_ris([BRIDGE]) == (
        "TY  - ELEC\n"
        "ID  - 1\n"
        "TI  - 50 % of A_B & {C}\n"
        "AU  - Doe, Jane Q.\n"
        "AU  - von Smith, John\n"
        "PY  - 2024\n"
        "DA  - 2024/03/05/\n"
        "T2  - Bridges & Co\n"
        "PB  - Bridges & Co\n"
        "LA  - en\n"
        "UR  - https://example.org/forth?x={1}&y=50%25\n"
        "Y2  - 2026/11/15/\n"
        "ER  - \n\n"
    )


def test_a_source_becomes_a_bibtex_entry() -> None:
    assert to_bibtex([BRIDGE]) == (
        "@online{doe2024,\n"
        "  title = {{50 \\% of A\\_B \\& \\textbraceleft{}C\\textbraceright{}}},\n"
        "  author = {Doe, Jane Q. and von Smith, John},\n"
        "  organization = {Bridges \\& Co},\n"
        "  publisher = {Bridges \\& Co},\n"
        "  date = {2024-03-05},\n"
        "  year = {2024},\n"
        "  url = {https://example.org/forth?x=%7B1%7D&y=50%25},\n"
        "  urldate = {2026-11-15},\n"
        "  language = {en}\n"
        "}\n"
    )


def test_a_source_becomes_a_csl_item() -> None:
    assert json.loads(to_csl([BRIDGE])) == [
        {
            "id": "doe2024",
            "type": "webpage",
            "title": "50 % of A_B & {C}",
            "author": [{"family": "Doe", "given": "Jane Q."}, {"family": "von Smith", "given": "John"}],
            "issued": {"date-parts": [[2024, 3, 5]]},
            "accessed": {"date-parts": [[2026, 11, 15]]},
            "container-title": "Bridges & Co",
            "publisher": "Bridges & Co",
            "language": "en",
            "URL": "https://example.org/forth?x={1}&y=50%25",
        }
    ]


def test_what_a_page_does_not_say_is_left_out_and_the_day_of_reading_may_be_given() -> None:
    assert to_ris([BARE], "2026-01-02") == (
        "TY  - ELEC\nID  - 2\nTI  - https://example.net/\nUR  - https://example.net/\nY2  - 2026/01/02/\nER  - \n\n"
    )
    assert json.loads(to_csl([BARE])) == [
        {"id": "httpsexample", "type": "webpage", "title": "https://example.net/", "URL": "https://example.net/"}
    ]


@pytest.mark.parametrize(
    ("title", "url", "site", "expected"),
    [
        ("Black Death - Encyclo North", "https://encyclo-north.example/death", "", ("Black Death", "Encyclo North")),
        ("Black Death | North", "https://www.north.example/death", "", ("Black Death", "North")),
        (
            "Black Death – The North Review",
            "https://north.example/death",
            "The North Review",
            ("Black Death", "The North Review"),
        ),
        ("Plague: A History", "https://north.example/plague", "", ("Plague: A History", None)),
        ("War - Peace", "https://north.example/war", "The North Review", ("War - Peace", "The North Review")),
        ("- North", "https://north.example/", "", ("- North", None)),
    ],
)
def test_the_name_of_a_site_leaves_the_title_and_is_its_publisher(
    title: str, url: str, site: str, expected: tuple[str, str | None]
) -> None:
    (item,) = json.loads(to_csl([Source(1, url, title, "", Imprint(site=site))]))
    assert (item["title"], item.get("publisher")) == expected


def test_a_title_with_line_breaks_cannot_begin_a_field_of_its_own() -> None:
    hostile = Source(1, "https://example.org/", "A\nER  - \nTY  - BOOK\u2028TI  - B", "", Imprint("X},\n evil = {y"))
    assert [line[:6] for line in to_ris([hostile]).splitlines() if line] == [
        "TY  - ",
        "ID  - ",
        "TI  - ",
        "AU  - ",
        "UR  - ",
        "ER  - ",
    ]
    assert [line.split(" = ")[0].strip() for line in to_bibtex([hostile]).splitlines()][1:-1] == ["title", "author", "url"]


def test_a_brace_without_its_partner_leaves_the_entry_balanced() -> None:
    entry = to_bibtex([Source(1, "https://example.org/}", "one { and \\ more", "", Imprint("{", "2020", "}}"))])
    assert entry.count("{") == entry.count("}")


def test_two_references_never_share_a_key() -> None:
    sources = [Source(n, f"https://example.org/{n}", "Same", "", Imprint("Ann Lee", "2020")) for n in range(1, 80)]
    keys = [item["id"] for item in json.loads(to_csl(sources))]
    assert keys[:3] == ["lee2020", "lee2020b", "lee2020c"]
    assert len(set(keys)) == len(keys)


def test_a_title_in_another_script_gets_a_key_of_its_number() -> None:
    assert json.loads(to_csl([Source(7, "https://example.org/", "日本")]))[0]["id"] == "source7"


def test_a_pdf_is_a_document() -> None:
    source = Source(1, "https://example.org/a.pdf", "A", "", Imprint(content_type="application/pdf"))
    assert json.loads(to_csl([source]))[0]["type"] == "document"


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-03-05T10:11:12Z", PublicationDate(2024, 3, 5)),
        ("2024/03/05", PublicationDate(2024, 3, 5)),
        ("20240305", PublicationDate(2024, 3, 5)),
        ("2024-03", PublicationDate(2024, 3)),
        ("2024", PublicationDate(2024)),
        ("5 March 2024", PublicationDate(2024, 3, 5)),
        ("Tue, 05 Mar 2024 10:00:00 GMT", PublicationDate(2024, 3, 5)),
        ("March 5th, 2024", PublicationDate(2024, 3, 5)),
        ("Sept. 2019", PublicationDate(2019, 9)),
        ("yesterday", None),
        ("", None),
        ("123456789012", None),
    ],
)
def test_dates_are_read_as_pages_write_them(text: str, date: PublicationDate | None) -> None:
    assert read_date(text) == date


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Jane Doe", [Name("Doe", "Jane")]),
        ("By Jane Doe, John Smith and Ann Lee", [Name("Doe", "Jane"), Name("Smith", "John"), Name("Lee", "Ann")]),
        ("Doe, Jane; Smith, John", [Name("Doe", "Jane"), Name("Smith", "John")]),
        ("Ludwig van Beethoven", [Name("van Beethoven", "Ludwig")]),
        ("Python Software Foundation", [Name("Python Software Foundation")]),
        ("BBC News", [Name("BBC News")]),
        ("admin", [Name("admin")]),
        ("山田太郎", [Name("山田太郎")]),
        ("", []),
        (" , ", []),
    ],
)
def test_names_are_turned_round_only_where_they_are_a_person_s(text: str, names: list[Name]) -> None:
    assert list(read_names(text)) == names


def test_an_author_who_is_the_site_is_not_turned_round() -> None:
    source = Source(1, "https://example.org/", "T", "", Imprint("Open Atlas", site="Open Atlas"))
    assert json.loads(to_csl([source]))[0]["author"] == [{"literal": "Open Atlas"}]
