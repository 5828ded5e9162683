"""Known vulnerabilities from NVD, CISA KEV, GitHub Advisories and OSV, merged by their ids. No key is needed.

A source that fails is named, and the others still answer. NVD takes words and CVE ids and lists the oldest first, so its last
page is read too; GitHub and OSV take ids and packages, written as `pkg:pypi/jinja2@2.4.1`, `pypi:jinja2@2.4.1` or by name
alone, which OSV looks up in every ecosystem; KEV is one list, read once. Built from documentation; not verified live.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends._replies import check_status, json_object, read_answer, read_rows
from nexi.backends.sender import BackendRequest, BackendResponse, Sender
from nexi.backends.services._form import Row, dig, dig_rows, read_day, read_line, read_lines
from nexi.errors import BackendError
from nexi.text.words import STOP, read_word_sets
from nexi.types import Failure, Hit, Query

__all__ = ["Security"]

NAME = "security"
NVD = "https://services.nvd.nist.gov/rest/json/cves/2.0"
KEV = "https://www.cisa.gov/sites/default/files/feeds/known_exploited_vulnerabilities.json"
GITHUB = "https://api.github.com/advisories"
OSV = "https://api.osv.dev/v1"
SUMMARY_CHARS = 500
NVD_ROWS = 100
MAX_FIXED = 5
MAX_NAMES = 6  # of packages that a query may mean
OSV_ECOSYSTEMS = ("PyPI", "npm", "crates.io", "Go", "Maven", "NuGet", "RubyGems", "Packagist")

_CVE = re.compile(r"\bCVE-\d{4}-\d{4,10}\b", re.IGNORECASE)
_GHSA = re.compile(r"\bGHSA(?:-[23456789cfghjmpqrvwx]{4}){3}\b", re.IGNORECASE)
_OTHER = re.compile(r"\b(?:PYSEC|RUSTSEC|GO|OSV|MAL|DSA|USN)-\d{4}-\d{1,6}(?:-\d)?\b", re.IGNORECASE)
_PACKAGE = re.compile(r"\b(?:pkg:)?(pypi|npm|cargo|golang|maven|nuget|gem|composer)[:/]([^\s@]+)(?:@([^\s@]+))?", re.IGNORECASE)
_GITHUB_ECOSYSTEMS = {"pypi": "pip", "cargo": "rust", "golang": "go", "gem": "rubygems"}
_NAME = re.compile(r"[A-Za-z][\w.@/-]{1,100}")
_WORDS = read_word_sets(__file__)
_NOISE = _WORDS["noise"]  # words of a request that stand in no record: NVD wants every word of a query
_ATTACKS = _WORDS["attacks"]
_SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW")
_NVD_METRICS = ("cvssMetricV40", "cvssMetricV31", "cvssMetricV30", "cvssMetricV2")  # the newest first


class SecurityQuery(Struct, frozen=True):
    """What a query is about: ids, a package, or words."""

    text: str
    cve: str = ""
    ghsa: str = ""
    other: str = ""
    ecosystem: str = ""
    package: str = ""
    version: str = ""

    @property
    def id(self) -> str:
        return self.cve or self.ghsa or self.other

    @property
    def words(self) -> tuple[str, ...]:
        """The words to search for, without those that only ask."""
        words = re.findall(r"[\w.-]+", self.package or self.text)
        return tuple([word for word in words if word.lower() not in _NOISE | STOP] or words)[:10]

    @property
    def package_names(self) -> tuple[str, ...]:
        """What may be the name of a package without its ecosystem: words that name no kind of attack, and pairs of them."""
        if self.id or self.package:
            return ()
        names = [word for word in self.words if _NAME.fullmatch(word) and word.lower() not in _ATTACKS]
        return tuple(dict.fromkeys((*names, *map("-".join, pairwise(names)))))[:MAX_NAMES]


class Vulnerability(Struct, frozen=True):
    id: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    severity: str = ""
    score: float = 0.0
    published: str = ""
    url: str = ""
    exploited_since: str = ""
    fixed: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((self.id, *self.aliases))


class SourceResult(list[Hit]):
    """Hits, and the sources that did not answer."""

    failures: tuple[Failure, ...] = ()


def read_query(text: str) -> SecurityQuery:
    cve, ghsa, other = (match[0] if (match := pattern.search(text)) else "" for pattern in (_CVE, _GHSA, _OTHER))
    package = _PACKAGE.search(text)
    ecosystem, name, version = package.groups(default="") if package else ("", "", "")
    ghsa = ghsa and "GHSA" + ghsa[4:].lower()
    return SecurityQuery(text.strip(), cve.upper(), ghsa, other.upper(), ecosystem.lower(), name, version)


def nvd_request(query: SecurityQuery, timeout_s: float, api_key: str = "") -> BackendRequest | None:
    if query.id and not query.cve:
        return None
    params = {"cveId": query.cve} if query.cve else {"keywordSearch": " ".join(query.words), "resultsPerPage": str(NVD_ROWS)}
    headers = {"apiKey": api_key} if api_key else {}
    return BackendRequest(NVD, params=tuple(params.items()), headers=headers, timeout_s=timeout_s)


def nvd_parse(response: BackendResponse) -> list[Vulnerability]:
    if response.status == 404:  # how NVD answers an id it does not know
        return []
    data = read_answer("NVD", response.status, response.headers, response.body)
    records = []
    for cve in read_rows([row.get("cve") for row in dig_rows(data, "vulnerabilities")], "id"):
        if cve.get("vulnStatus") == "Rejected":
            continue
        texts = (read_line(d, "value") for d in dig_rows(cve, "descriptions") if d.get("lang") == "en")
        metric = next((metric for name in _NVD_METRICS for metric in dig_rows(cve, f"metrics.{name}")), {})
        records.append(
            Vulnerability(
                cve["id"],
                summary=next(texts, ""),
                severity=read_line(metric, "cvssData.baseSeverity", "baseSeverity").upper(),
                score=_read_score(dig(metric, "cvssData.baseScore")),
                published=read_day(cve, "published"),
                url=f"https://nvd.nist.gov/vuln/detail/{cve['id']}",
                exploited_since=read_day(cve, "cisaExploitAdd"),
            )
        )
    return records


def kev_parse(response: BackendResponse) -> list[Vulnerability]:
    data = read_answer("CISA KEV", response.status, response.headers, response.body)
    records = []
    for row in read_rows(data.get("vulnerabilities"), "cveID"):
        names = ("vendorProject", "product", "vulnerabilityName", "shortDescription")
        vendor, product, name, description = (read_line(row, field) for field in names)
        summary, day = f"{vendor} {product}: {name}. {description}", read_day(row, "dateAdded") or "an unknown day"
        url = f"https://nvd.nist.gov/vuln/detail/{row['cveID']}"
        records.append(Vulnerability(row["cveID"], summary=summary, url=url, exploited_since=day))
    return records


def kev_matches(query: SecurityQuery, records: Sequence[Vulnerability]) -> list[Vulnerability]:
    if query.id:
        return [record for record in records if record.id == query.cve]
    words = [word.lower() for word in query.words]
    matches = [r for r in records if words and all(word in r.summary.lower() for word in words)]
    return sorted(matches, key=lambda r: r.exploited_since, reverse=True)[:NVD_ROWS]


def github_request(query: SecurityQuery, timeout_s: float) -> BackendRequest | None:
    if query.cve or query.ghsa:
        params = {"cve_id": query.cve} if query.cve else {"ghsa_id": query.ghsa}
    elif query.package:
        package = f"{query.package}@{query.version}" if query.version else query.package
        params = {"affects": package, "ecosystem": _GITHUB_ECOSYSTEMS.get(query.ecosystem, query.ecosystem), "per_page": "50"}
    elif names := query.package_names:
        params = {"affects": ",".join(names), "per_page": "50"}
    else:
        return None
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return BackendRequest(GITHUB, params=tuple(params.items()), headers=headers, timeout_s=timeout_s)


def github_parse(response: BackendResponse) -> list[Vulnerability]:
    is_limit = response.status == 403 and b"rate limit" in response.body  # GitHub's form of 429 for those without a token
    check_status("GitHub", 429 if is_limit else response.status, response.headers, response.body)
    records = []
    for row in read_rows(json_object("GitHub", b'{"rows": ' + response.body + b"}").get("rows"), "ghsa_id"):
        if row.get("withdrawn_at"):
            continue
        cve = read_line(row, "cve_id")
        records.append(
            Vulnerability(
                row["ghsa_id"],
                (cve,) if cve else (),
                read_line(row, "summary"),
                _read_severity(row, "severity"),
                _read_score(dig(row, "cvss.score")),
                read_day(row, "published_at"),
                f"https://github.com/advisories/{row['ghsa_id']}",
                fixed=_list_versions(v.get("first_patched_version") for v in dig_rows(row, "vulnerabilities")),
            )
        )
    return records


def osv_request(query: SecurityQuery, timeout_s: float) -> BackendRequest | None:
    if query.id:
        return BackendRequest(f"{OSV}/vulns/{query.id}", timeout_s=timeout_s)
    if names := query.package_names:
        queries = [{"package": {"name": name, "ecosystem": e}} for name in names for e in OSV_ECOSYSTEMS]
        return BackendRequest(f"{OSV}/querybatch", "POST", json={"queries": queries}, timeout_s=timeout_s)
    if not query.package:
        return None
    purl = f"pkg:{query.ecosystem}/{query.package}" + (f"@{query.version}" if query.version else "")
    return BackendRequest(f"{OSV}/query", "POST", json={"package": {"purl": purl}}, timeout_s=timeout_s)


def osv_parse(response: BackendResponse) -> list[Vulnerability]:
    if response.status == 404:
        return []
    data = read_answer("OSV", response.status, response.headers, response.body)
    if "results" in data:  # of a batch, which has the ids alone
        rows = [row for result in dig_rows(data, "results") for row in dig_rows(result, "vulns")]
    else:
        rows = data.get("vulns", [data])
    records = []
    for row in read_rows(rows, "id"):
        if row.get("withdrawn"):
            continue
        ranges = [spread for package in dig_rows(row, "affected") for spread in dig_rows(package, "ranges")]
        events = [event for spread in ranges if spread.get("type") != "GIT" for event in dig_rows(spread, "events")]
        records.append(
            Vulnerability(
                row["id"],
                tuple(read_lines(row, "aliases")),
                read_line(row, "summary", "details"),
                _read_severity(row, "database_specific.severity"),
                published=read_day(row, "published"),
                url=f"https://osv.dev/vulnerability/{row['id']}",
                fixed=_list_versions(event.get("fixed") for event in events),
            )
        )
    return records


def merge_records(records: Sequence[Vulnerability]) -> list[Vulnerability]:
    """One record for each vulnerability: what the first source leaves open, the next one fills."""
    merged: list[Vulnerability] = []
    for record in records:
        place = next((index for index, earlier in enumerate(merged) if earlier.ids & record.ids), None)
        if place is None:
            merged.append(record)
            continue
        earlier = merged[place]
        main = min((earlier, record), key=lambda r: not r.id.startswith("CVE-"))
        names = ("summary", "severity", "score", "published", "exploited_since", "fixed")
        fields = {name: getattr(earlier, name) or getattr(record, name) for name in names}
        aliases = tuple(sorted((earlier.ids | record.ids) - {main.id}))
        merged[place] = Vulnerability(main.id, aliases, url=main.url or earlier.url, **fields)
    return merged


def _to_hit(record: Vulnerability) -> Hit:
    score = f"{record.severity} {record.score:g}" if record.score else record.severity
    exploits = f"exploited, in CISA KEV since {record.exploited_since}" if record.exploited_since else ""
    fixes = f"fixed in {', '.join(record.fixed)}" if record.fixed else ""
    facts = ", ".join(part for part in (score.strip(), exploits, fixes) if part)
    also = f" Also {', '.join(record.aliases[:5])}." if record.aliases else ""
    title = f"{record.id} ({facts})" if facts else record.id
    return Hit(record.url, title, record.summary[:SUMMARY_CHARS] + also, record.published, NAME)


def _list_versions(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v[:40] for v in values if isinstance(v, str) and v))[:MAX_FIXED]


def _read_severity(row: Row, path: str) -> str:
    word = read_line(row, path).upper().replace("MODERATE", "MEDIUM")
    return word if word in _SEVERITIES else ""


def _read_score(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10 else 0.0


class Security:
    """The SearchBackend port over the four sources."""

    name = NAME
    filters = frozenset[str]()

    def __init__(self, sender: Sender, *, timeout_s: float = 10.0, api_key: str = "") -> None:
        self._sender, self._timeout_s, self._api_key = sender, timeout_s, api_key
        self._kev: list[Vulnerability] | None = None
        self._kev_lock = asyncio.Lock()

    async def search(self, query: Query) -> list[Hit]:
        subject, timeout_s = read_query(query.text), self._timeout_s
        questions = {
            "NVD": self._ask_nvd(nvd_request(subject, timeout_s, self._api_key)),
            "GitHub Advisories": self._ask_source(github_request(subject, timeout_s), github_parse),
            "OSV": self._ask_source(osv_request(subject, timeout_s), osv_parse),
            "CISA KEV": self._ask_exploited(subject),
        }
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(question) for name, question in questions.items()}
        answers = {name: task.result() for name, task in tasks.items()}
        errors = {name: error for name, error in answers.items() if isinstance(error, BackendError)}
        if len(errors) == sum(answer is not None for answer in answers.values()):
            first = next(iter(errors.values()))
            raise BackendError(
                "no source of vulnerabilities answered",
                code=first.code if len({error.code for error in errors.values()}) == 1 else "sources_failed",
                cause="; ".join(f"{name}: {error}" for name, error in errors.items())[:500],
                fix=first.fix,
                retryable=any(error.retryable for error in errors.values()),
            )
        records = merge_records([r for answer in answers.values() if isinstance(answer, list) for r in answer])
        # What was asked for by id, then what is exploited, then the newest.
        records.sort(key=lambda r: r.published, reverse=True)
        records.sort(key=lambda r: (subject.id not in r.ids, not r.exploited_since))
        hits = SourceResult(map(_to_hit, records[: query.count]))
        hits.failures = tuple(Failure(f"{NAME}/{name}", e.code, str(e), e.fix) for name, e in errors.items())
        return hits

    async def _ask_nvd(self, request: BackendRequest | None) -> list[Vulnerability] | BackendError | None:
        """The records of the last page, where the newest stand, and of the first."""
        last: BackendRequest | None = None

        def parse(response: BackendResponse) -> list[Vulnerability]:
            nonlocal last
            with suppress(BackendError):
                total = json_object("NVD", response.body).get("totalResults")
                if request and isinstance(total, int) and total > NVD_ROWS:
                    last = replace(request, params=(*request.params, ("startIndex", str(total - NVD_ROWS))))
            return nvd_parse(response)

        first = await self._ask_source(request, parse)
        newest = await self._ask_source(last, nvd_parse) if isinstance(first, list) else None
        return [*newest, *first] if isinstance(newest, list) and isinstance(first, list) else first

    async def _ask_source(
        self, request: BackendRequest | None, parse: Callable[[BackendResponse], list[Vulnerability]]
    ) -> list[Vulnerability] | BackendError | None:
        """A source's records, its error, or None where it has nothing to say of such a query."""
        if request is None:
            return None
        try:
            return parse(await self._sender.send(NAME, request))
        except BackendError as error:
            return error

    async def _ask_exploited(self, query: SecurityQuery) -> list[Vulnerability] | BackendError:
        async with self._kev_lock:
            if self._kev is None:
                answer = await self._ask_source(BackendRequest(KEV, timeout_s=self._timeout_s), kev_parse)
                if not isinstance(answer, list):
                    return answer or BackendError("CISA KEV was not asked")
                self._kev = answer
        return kev_matches(query, self._kev)
