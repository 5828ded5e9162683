"""Reference works: Wikidata, Open Library, and Nominatim for places. Pure."""

from __future__ import annotations

from urllib.parse import quote

from nexi.backends.sender import BackendRequest
from nexi.backends.services._form import Caller, Row, ServiceForm, join_parts, read_line, read_lines, read_web_url, search_by
from nexi.types import Hit, Query

__all__ = ["FORMS"]

OPENLIBRARY_FIELDS = "key,title,author_name,first_publish_year,edition_count,isbn,publisher"


def wikidata_request(query: Query, caller: Caller) -> BackendRequest:
    language = query.language.lower().partition("-")[0] or "en"
    params = {
        "action": "wbsearchentities",
        "search": query.text[:250],  # no label is longer
        "language": language,
        "uselang": language,
        "type": "item",
        "limit": str(min(query.count, 50)),
        "format": "json",
    }
    return caller.build_request("/w/api.php", params)


def read_wikidata(row: Row) -> Hit | None:
    number, label = read_line(row, "id"), read_line(row, "label", "display.label.value")
    about = read_line(row, "description", "display.description.value")
    url = f"https://www.wikidata.org/wiki/{number}"
    return Hit(url, label, join_parts((about, number)), "", "wikidata") if number and label else None


def read_openlibrary(row: Row) -> Hit | None:
    key, year = read_line(row, "key"), read_line(row, "first_publish_year")
    authors = ", ".join(read_lines(row, "author_name")[:5])
    isbn, publisher = read_line(row, "isbn"), read_line(row, "publisher")
    facts = (authors, f"first published {year}" if year else "", publisher, f"ISBN {isbn}" if isbn else "")
    url, title = f"https://openlibrary.org{key}", read_line(row, "title")
    return Hit(url, title, join_parts(facts), year, "openlibrary") if key.startswith("/") and title else None


def read_nominatim(row: Row) -> Hit | None:
    """A place: its article where the map names one, since the map's own page needs scripts to be read."""
    kind, number = read_line(row, "osm_type"), read_line(row, "osm_id")
    full = read_line(row, "display_name")
    language, _, title = read_line(row, "extratags.wikipedia").partition(":")
    article = f"https://{language}.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}" if title and language.isalpha() else ""
    url = article or read_web_url(row, "extratags.website") or f"https://www.openstreetmap.org/{kind}/{number}"
    position = join_parts((read_line(row, "lat"), read_line(row, "lon")), ", ")
    facts = (full, read_line(row, "type"), f"coordinates {position}" if position else "")
    name = read_line(row, "name") or full.partition(",")[0]
    return Hit(url, name, join_parts(facts), "", "nominatim") if full and number else None


FORMS = {
    "wikidata": ServiceForm("https://www.wikidata.org", wikidata_request, read_wikidata, "search"),
    "openlibrary": ServiceForm("https://openlibrary.org",
        search_by("/search.json", "q", "limit", {"fields": OPENLIBRARY_FIELDS}), read_openlibrary, "docs"),
    "nominatim": ServiceForm("https://nominatim.openstreetmap.org",
        lambda query, caller: caller.build_request("/search", {"q": query.text, "format": "jsonv2",
            "limit": str(min(query.count, 40)), "extratags": "1", "addressdetails": "0", "email": caller.contact},
            {"Accept-Language": query.language}),
        read_nominatim),
}  # fmt: skip
