"""The open web, news and archives: Marginalia, Mwmbl, a YaCy peer, GDELT, Internet Archive, Wayback Machine. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nexi.backends.sender import BackendRequest
from nexi.backends.services._form import Caller, Row, ServiceForm, dig, join_parts, read_day, read_line, read_web_url, search_by
from nexi.text.languages import name_language
from nexi.types import Hit, Query

__all__ = ["FORMS"]

MARGINALIA_PUBLIC_KEY = "public"  # the key that its documentation gives to everybody
GDELT_SPANS = {"d": "1d", "w": "1w", "m": "1months", "y": "3months"}


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
}  # fmt: skip
