"""What programmers look up: GitHub, PyPI, npm, crates.io, and Hacker News for what they say. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

from nexi.backends.sender import BackendRequest
from nexi.backends.services._form import Caller, Row, ServiceForm, join_parts, read_day, read_line, read_web_url, search_by
from nexi.types import Hit, Query

__all__ = ["FORMS"]

_REPOSITORY = re.compile(r"\b[\w.-]+/[\w.-]+\b")
_SYMBOL = re.compile(r"\b\w+(?:_\w+|\.\w+|::\w+)+\b|\b[a-z]+[A-Z]\w+\b")


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


FORMS = {
    "github": ServiceForm("https://api.github.com", github_request, read_github, "items"),
    "pypi": ServiceForm("https://pypi.org",
        lambda query, caller: caller.build_request(f"/pypi/{quote(query.text.strip().lower(), safe='')}/json"),
        read_pypi, "info", lambda info: [info] if info else None, missing_is_empty=True),
    "npm": ServiceForm("https://registry.npmjs.org", search_by("/-/v1/search", "text", "size"), read_npm, "objects"),
    "crates": ServiceForm("https://crates.io", search_by("/api/v1/crates", "q", "per_page"), read_crates, "crates"),
    "hackernews": ServiceForm("https://hn.algolia.com/api/v1", search_by("/search", "query", "hitsPerPage", {"tags": "story"}),
        read_hackernews, "hits"),
}  # fmt: skip
