"""The services that index no papers: the open web, news and archives; what programmers look up; and reference works. Pure."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from nexi.backends.sender import BackendRequest
from nexi.backends.services._form import (
    Caller,
    Row,
    ServiceForm,
    dig,
    join_parts,
    read_day,
    read_line,
    read_lines,
    read_web_url,
    search_by,
)
from nexi.text.languages import name_language
from nexi.types import Hit, Query

__all__ = ["FORMS"]

MARGINALIA_PUBLIC_KEY = "public"  # the key that its documentation gives to everybody
GDELT_SPANS = {"d": "1d", "w": "1w", "m": "1months", "y": "3months"}
OPENLIBRARY_FIELDS = "key,title,author_name,first_publish_year,edition_count,isbn,publisher"
_REPOSITORY = re.compile(r"\b[\w.-]+/[\w.-]+\b")
_SYMBOL = re.compile(r"\b\w+(?:_\w+|\.\w+|::\w+)+\b|\b[a-z]+[A-Z]\w+\b")


def read_marginalia(row: Row) -> Hit:
    return Hit(read_web_url(row, "url"), read_line(row, "title"), read_line(row, "description"), "", "marginalia")


def read_mwmbl(row: Row) -> Hit:
    """Title and extract come in pieces, the words that match apart from the others."""
    return Hit(read_web_url(row, "url"), _join_pieces(row.get("title")), _join_pieces(row.get("extract")), "", "mwmbl")


def _join_pieces(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(piece["value"] for piece in value if isinstance(piece, dict) and isinstance(piece.get("value"), str))
    return read_line({"text": value}, "text")


def read_yacy(row: Row) -> Hit:
    return Hit(read_web_url(row, "link"), read_line(row, "title"), read_line(row, "description"), "", "yacy")


def gdelt_request(query: Query, caller: Caller) -> BackendRequest:
    language = query.language.lower().partition("-")[0]
    words = f"{query.text} sourcelang:{name_language(language).lower()}" if language else query.text
    params = {
        "query": words,
        "mode": "artlist",
        "format": "json",
        "maxrecords": str(min(query.count, 50)),
        "sort": "hybridrel",
        "timespan": GDELT_SPANS.get(query.time_range[:1].lower(), "3months"),
    }
    return caller.build_request("/doc", params)


def read_gdelt(row: Row) -> Hit:
    facts = (read_line(row, "domain"), read_line(row, "language"), read_line(row, "sourcecountry"))
    day = read_day({"day": read_line(row, "seendate")[:8]}, "day")
    return Hit(read_web_url(row, "url"), read_line(row, "title"), join_parts(facts), day, "gdelt")


def archive_request(query: Query, caller: Caller) -> BackendRequest:
    fields = ("identifier", "title", "description", "date", "creator", "mediatype")
    params = (("q", query.text), *(("fl[]", name) for name in fields), ("rows", str(min(query.count, 50))), ("output", "json"))
    return BackendRequest(f"{caller.base}/advancedsearch.php", params=params)


def read_archive(row: Row) -> Hit | None:
    name = read_line(row, "identifier")
    facts = (read_line(row, "mediatype"), read_line(row, "creator"), read_line(row, "description"))
    url = f"https://archive.org/details/{quote(name)}"
    return Hit(url, read_line(row, "title") or name, join_parts(facts), read_day(row, "date"), "archive") if name else None


def wayback_request(query: Query, caller: Caller) -> BackendRequest:
    address, _, day = query.text.partition(" ")
    return caller.build_request("/wayback/available", {"url": address, "timestamp": day if day.isdigit() else ""})


def read_wayback(row: Row) -> Hit | None:
    url = read_web_url(row, "url").replace("http://", "https://", 1)
    day = read_day({"day": read_line(row, "timestamp")[:8]}, "day")
    hit = Hit(url, f"Archived copy of {day}", f"HTTP {read_line(row, 'status')}", day, "wayback")
    return hit if row.get("available") is True else None


def github_request(query: Query, caller: Caller) -> BackendRequest:
    """Repositories; code where a key allows it and the words are those of code."""
    repository, symbol = _REPOSITORY.search(query.text), _SYMBOL.search(query.text)
    path = "search/code" if caller.key and symbol and not repository else "search/repositories"
    words = f"repo:{repository[0]}" if repository else symbol[0] if symbol and path.endswith("code") else query.text
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    headers["Authorization"] = f"Bearer {caller.key}" if caller.key else ""
    # GitHub refuses a query of more than 256 characters.
    return caller.build_request(f"/{path}", {"q": words[:256], "per_page": str(min(query.count, 50))}, headers)


def read_github(row: Row) -> Hit | None:
    """A repository, or a file of code with the repository that holds it."""
    url, name = read_web_url(row, "html_url"), read_line(row, "full_name")
    if not name:
        place = join_parts((read_line(row, "repository.full_name"), read_line(row, "path")))
        return Hit(url, place, read_line(row, "repository.description"), "", "github") if place else None
    stars, licence = read_line(row, "stargazers_count"), read_line(row, "license.spdx_id")
    facts = (read_line(row, "language"), f"{stars} stars" if stars else "", licence, read_line(row, "description"))
    return Hit(url, name, join_parts(facts), read_day(row, "pushed_at", "updated_at"), "github")


def read_pypi(row: Row) -> Hit | None:
    name, version = read_line(row, "name"), read_line(row, "version")
    if not name:
        return None
    python = read_line(row, "requires_python")
    licence = read_line(row, "license_expression", "license")[:60]
    facts = (f"version {version}", f"Python {python}" if python else "", licence, read_line(row, "summary"))
    url = read_web_url(row, "project_url", "package_url") or f"https://pypi.org/project/{name}/"
    return Hit(url, f"{name} {version}", join_parts(facts), "", "pypi")


def read_npm(row: Row) -> Hit | None:
    name, version = read_line(row, "package.name"), read_line(row, "package.version")
    url = read_web_url(row, "package.links.npm") or (f"https://www.npmjs.com/package/{name}" if name else "")
    facts = (f"version {version}", read_line(row, "package.license"), read_line(row, "package.description"))
    return Hit(url, f"{name} {version}", join_parts(facts), read_day(row, "package.date"), "npm") if name else None


def read_crates(row: Row) -> Hit | None:
    """docs.rs has the same facts as crates.io in a page that needs no scripts."""
    name = read_line(row, "name", "id")
    version = read_line(row, "max_stable_version", "max_version", "newest_version")
    facts = (f"version {version}", read_line(row, "description"))
    day = read_day(row, "updated_at")
    return Hit(f"https://docs.rs/crate/{name}/latest", f"{name} {version}", join_parts(facts), day, "crates") if name else None


def read_hackernews(row: Row) -> Hit | None:
    """The thread, which is what the service adds; the page it is about stands in the snippet."""
    number, title = read_line(row, "objectID"), read_line(row, "title", "story_title")
    if not (number.isdigit() and title):
        return None
    counts = f"{read_line(row, 'points') or 0} points, {read_line(row, 'num_comments') or 0} comments"
    facts = (counts, read_web_url(row, "url"), read_line(row, "story_text"))
    url = f"https://news.ycombinator.com/item?id={number}"
    return Hit(url, title, join_parts(facts), read_day(row, "created_at"), "hackernews")


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
    "marginalia": ServiceForm("https://api2.marginalia-search.com",
        lambda query, caller: caller.build_request("/search", {"query": query.text, "count": str(min(query.count, 50))},
            {"API-Key": caller.key or MARGINALIA_PUBLIC_KEY}),
        read_marginalia, "results"),
    "mwmbl": ServiceForm("https://api.mwmbl.org/api/v1", search_by("/search/", "s"), read_mwmbl),
    "yacy": ServiceForm("http://127.0.0.1:8090",
        search_by("/yacysearch.json", "query", "maximumRecords", {"resource": "global", "verify": "false"}), read_yacy,
        "channels.0.items"),
    "gdelt": ServiceForm("https://api.gdeltproject.org/api/v2/doc", gdelt_request, read_gdelt, "articles",
        is_empty=lambda data: data == {}),
    "archive": ServiceForm("https://archive.org", archive_request, read_archive, "response.docs"),
    "wayback": ServiceForm("https://archive.org", wayback_request, read_wayback, "archived_snapshots",
        lambda snapshots: [dig(snapshots, "closest")] if isinstance(snapshots, dict) else None),
    "github": ServiceForm("https://api.github.com", github_request, read_github, "items"),
    "pypi": ServiceForm("https://pypi.org",
        lambda query, caller: caller.build_request(f"/pypi/{quote(query.text.strip().lower(), safe='')}/json"),
        read_pypi, "info", lambda info: [info] if info else None, missing_is_empty=True),
    "npm": ServiceForm("https://registry.npmjs.org", search_by("/-/v1/search", "text", "size"), read_npm, "objects"),
    "crates": ServiceForm("https://crates.io", search_by("/api/v1/crates", "q", "per_page"), read_crates, "crates"),
    "hackernews": ServiceForm("https://hn.algolia.com/api/v1", search_by("/search", "query", "hitsPerPage", {"tags": "story"}),
        read_hackernews, "hits"),
    "wikidata": ServiceForm("https://www.wikidata.org", wikidata_request, read_wikidata, "search"),
    "openlibrary": ServiceForm("https://openlibrary.org",
        search_by("/search.json", "q", "limit", {"fields": OPENLIBRARY_FIELDS}), read_openlibrary, "docs"),
    "nominatim": ServiceForm("https://nominatim.openstreetmap.org",
        lambda query, caller: caller.build_request("/search", {"q": query.text, "format": "jsonv2",
            "limit": str(min(query.count, 40)), "extratags": "1", "addressdetails": "0", "email": caller.contact},
            {"Accept-Language": query.language}),
        read_nominatim),
}  # fmt: skip
