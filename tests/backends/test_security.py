"""Vulnerabilities from four sources: how each is asked, how its documented answers read, and how they become one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nexi.backends.security import (
    GITHUB,
    KEV,
    NVD,
    OSV,
    OSV_ECOSYSTEMS,
    Security,
    SecurityQuery,
    SourceResult,
    Vulnerability,
    github_parse,
    github_request,
    kev_matches,
    kev_parse,
    merge_records,
    nvd_parse,
    nvd_request,
    osv_parse,
    osv_request,
    read_query,
)
from nexi.backends.sender import BackendRequest, BackendResponse
from nexi.errors import BackendError
from nexi.types import Failure, Hit, Query

NVD_ANSWER: dict[str, Any] = {
    "resultsPerPage": 1,
    "totalResults": 1,
    "vulnerabilities": [
        {
            "cve": {
                "id": "CVE-2021-44228",
                "vulnStatus": "Analyzed",
                "published": "2021-12-10T10:15:09.143",
                "cisaExploitAdd": "2021-12-10",
                "descriptions": [{"lang": "es", "value": "no"}, {"lang": "en", "value": "Apache Log4j2 JNDI features."}],
                "metrics": {"cvssMetricV31": [{"cvssData": {"baseScore": 10.0, "baseSeverity": "CRITICAL"}}]},
            }
        },
        {"cve": {"id": "CVE-2000-0001", "vulnStatus": "Rejected"}},
    ],
}
KEV_ANSWER: dict[str, Any] = {
    "title": "CISA Catalog of Known Exploited Vulnerabilities",
    "vulnerabilities": [
        {
            "cveID": "CVE-2021-44228",
            "vendorProject": "Apache",
            "product": "Log4j2",
            "vulnerabilityName": "Apache Log4j2 Remote Code Execution Vulnerability",
            "dateAdded": "2021-12-10",
            "shortDescription": "Log4j2 contains a vulnerability.",
        }
    ],
}
GITHUB_ANSWER: list[dict[str, Any]] = [
    {
        "ghsa_id": "GHSA-jfh8-c2jp-5v3q",
        "cve_id": "CVE-2021-44228",
        "html_url": "https://github.com/advisories/GHSA-jfh8-c2jp-5v3q",
        "summary": "Remote code injection in Log4j",
        "severity": "critical",
        "cvss": {"score": 10.0},
        "published_at": "2021-12-10T00:40:56Z",
        "withdrawn_at": None,
    }
]
OSV_ANSWER: dict[str, Any] = {
    "id": "GHSA-jfh8-c2jp-5v3q",
    "aliases": ["CVE-2021-44228"],
    "summary": "Remote code injection in Log4j",
    "published": "2021-12-10T00:40:56Z",
    "database_specific": {"severity": "CRITICAL"},
}
LOG4J = Hit(
    "https://nvd.nist.gov/vuln/detail/CVE-2021-44228",
    "CVE-2021-44228 (CRITICAL 10, exploited, in CISA KEV since 2021-12-10)",
    "Apache Log4j2 JNDI features. Also GHSA-jfh8-c2jp-5v3q.",
    "2021-12-10",
    "security",
)


def answer(value: object, status: int = 200) -> BackendResponse:
    return BackendResponse(status, {}, json.dumps(value).encode())


class Stub:
    """A sender that answers by address."""

    def __init__(self, answers: dict[str, BackendResponse | BackendError]) -> None:
        self.answers = answers
        self.asked: list[BackendRequest] = []

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        self.asked.append(request)
        found = next(value for start, value in self.answers.items() if request.url.startswith(start))
        if isinstance(found, BackendError):
            raise found
        return found


def backend(**changed: BackendResponse | BackendError) -> tuple[Security, Stub]:
    answers: dict[str, BackendResponse | BackendError] = {
        NVD: changed.get("nvd", answer(NVD_ANSWER)),
        KEV: changed.get("kev", answer(KEV_ANSWER)),
        GITHUB: changed.get("github", answer(GITHUB_ANSWER)),
        OSV: changed.get("osv", answer(OSV_ANSWER)),
    }
    stub = Stub(answers)
    return Security(stub), stub  # type: ignore[arg-type]


# requests


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("is cve-2021-44228 bad", {"cve": "CVE-2021-44228"}),
        ("GHSA-JFH8-C2JP-5V3Q", {"ghsa": "GHSA-jfh8-c2jp-5v3q"}),
        ("PYSEC-2019-217", {"other": "PYSEC-2019-217"}),
        ("pkg:pypi/jinja2@2.4.1", {"ecosystem": "pypi", "package": "jinja2", "version": "2.4.1"}),
        ("npm:lodash flaws", {"ecosystem": "npm", "package": "lodash"}),
        ("openssl heartbleed", {}),
    ],
)
def test_a_query_is_read_for_ids_and_packages(text: str, asked: dict[str, str]) -> None:
    assert read_query(text) == SecurityQuery(text, **asked)


def test_words_go_to_nvd_as_they_are_and_to_github_and_osv_as_names_of_packages() -> None:
    asked = read_query("openssl heartbleed remote code execution")
    request = nvd_request(asked, 5.0, "key")
    assert request == BackendRequest(
        NVD,
        params=(("keywordSearch", "openssl heartbleed remote code execution"), ("resultsPerPage", "100")),
        headers={"apiKey": "key"},
        timeout_s=5.0,
    )
    github, osv = github_request(asked, 5.0), osv_request(asked, 5.0)
    assert github
    assert osv
    assert dict(github.params) == {"affects": "openssl,heartbleed,openssl-heartbleed", "per_page": "50"}
    names = ("openssl", "heartbleed", "openssl-heartbleed")
    assert osv.json == {"queries": [{"package": {"name": n, "ecosystem": e}} for n in names for e in OSV_ECOSYSTEMS]}


def test_words_that_only_name_an_attack_are_no_package() -> None:
    asked = read_query("remote code execution")
    assert (github_request(asked, 5.0), osv_request(asked, 5.0)) == (None, None)


def test_an_id_goes_to_every_source_that_knows_such_ids() -> None:
    cve, ghsa = read_query("CVE-2021-44228"), read_query("GHSA-jfh8-c2jp-5v3q")
    assert [r.params for r in (nvd_request(cve, 5.0), github_request(cve, 5.0)) if r] == [
        (("cveId", "CVE-2021-44228"),),
        (("cve_id", "CVE-2021-44228"),),
    ]
    asked = osv_request(ghsa, 5.0)
    assert (nvd_request(ghsa, 5.0), asked and asked.url) == (None, f"{OSV}/vulns/GHSA-jfh8-c2jp-5v3q")


def test_a_package_goes_to_github_and_osv_with_its_version() -> None:
    asked = read_query("pypi:jinja2@2.4.1")
    github, osv = github_request(asked, 5.0), osv_request(asked, 5.0)
    assert github
    assert osv
    assert dict(github.params) == {"affects": "jinja2@2.4.1", "ecosystem": "pip", "per_page": "50"}
    assert (osv.method, osv.url, osv.json) == ("POST", f"{OSV}/query", {"package": {"purl": "pkg:pypi/jinja2@2.4.1"}})


def test_a_single_name_is_looked_up_as_a_package_in_every_ecosystem() -> None:
    asked = read_query("latest vulnerabilities in jinja2")
    nvd, github, osv = nvd_request(asked, 5.0), github_request(asked, 5.0), osv_request(asked, 5.0)
    assert nvd
    assert github
    assert osv
    assert dict(nvd.params)["keywordSearch"] == "jinja2"
    assert dict(github.params) == {"affects": "jinja2", "per_page": "50"}
    assert osv.url == f"{OSV}/querybatch"
    assert osv.json == {"queries": [{"package": {"name": "jinja2", "ecosystem": e}} for e in OSV_ECOSYSTEMS]}
    batch = answer({"results": [{"vulns": [{"id": "PYSEC-2019-217", "modified": "2024"}]}, {}]})
    assert [record.id for record in osv_parse(batch)] == ["PYSEC-2019-217"]


def test_fixed_versions_are_read_from_github_and_osv() -> None:
    github = [{"ghsa_id": "GHSA-1", "vulnerabilities": [{"first_patched_version": "2.10.1"}, {"first_patched_version": None}]}]
    ranges = [
        {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.8.1"}]},
        {"type": "GIT", "events": [{"fixed": "abc"}]},
    ]
    assert [record.fixed for record in github_parse(answer(github))] == [("2.10.1",)]
    assert [r.fixed for r in osv_parse(answer({"vulns": [{"id": "PYSEC-1", "affected": [{"ranges": ranges}]}]}))] == [
        ("2.8.1",)
    ]


async def test_the_newest_page_of_nvd_is_read_where_the_first_has_only_the_oldest() -> None:
    def page(year: int) -> BackendResponse:
        cve = {"id": f"CVE-{year}-0001", "vulnStatus": "Analyzed", "published": f"{year}-01-01T00:00:00"}
        return answer({"totalResults": 300, "vulnerabilities": [{"cve": cve}]})

    security, stub = backend(github=answer([]), osv=answer({"vulns": []}), kev=answer({"vulnerabilities": []}))
    plain = stub.send

    async def send(service: str, request: BackendRequest) -> BackendResponse:
        if request.url != NVD:
            return await plain(service, request)
        stub.asked.append(request)
        return page(2026 if ("startIndex", "200") in request.params else 2008)

    stub.send = send  # type: ignore[method-assign]
    hits = await security.search(Query("openssl"))
    assert [hit.title for hit in hits] == ["CVE-2026-0001", "CVE-2008-0001"]


# answers


def test_documented_answers_become_records() -> None:
    assert nvd_parse(answer(NVD_ANSWER)) == [
        Vulnerability(
            "CVE-2021-44228",
            (),
            "Apache Log4j2 JNDI features.",
            "CRITICAL",
            10.0,
            "2021-12-10",
            "https://nvd.nist.gov/vuln/detail/CVE-2021-44228",
            "2021-12-10",
        )
    ]
    shared = ("Remote code injection in Log4j", "CRITICAL")
    url = "https://github.com/advisories/GHSA-jfh8-c2jp-5v3q"
    assert github_parse(answer(GITHUB_ANSWER)) == [
        Vulnerability("GHSA-jfh8-c2jp-5v3q", ("CVE-2021-44228",), *shared, 10.0, "2021-12-10", url)
    ]
    url = "https://osv.dev/vulnerability/GHSA-jfh8-c2jp-5v3q"
    record = Vulnerability("GHSA-jfh8-c2jp-5v3q", ("CVE-2021-44228",), *shared, 0.0, "2021-12-10", url)
    assert osv_parse(answer(OSV_ANSWER)) == osv_parse(answer({"vulns": [OSV_ANSWER]})) == [record]


def test_an_unknown_id_is_empty_on_purpose() -> None:
    assert (nvd_parse(answer({}, 404)), osv_parse(answer({"code": 5, "message": "Bug not found."}, 404))) == ([], [])


@pytest.mark.parametrize("parse", [nvd_parse, kev_parse, github_parse, osv_parse])
@pytest.mark.parametrize("junk", [b"", b"<html>", b"[1, 2]", b"{", b"\xff", b'{"vulnerabilities": [1, {"cve": 3}]}', b"{}"])
def test_answers_of_any_shape_are_no_records_or_a_failure(parse: Any, junk: bytes) -> None:
    records, code = [], "bad_json"
    try:
        records = parse(BackendResponse(200, {}, junk))
    except BackendError as error:
        code = error.code
    assert (records, code) == ([], "bad_json")


def test_exploited_ones_are_found_by_id_and_by_all_of_the_words() -> None:
    listed = kev_parse(answer(KEV_ANSWER))
    found = [len(kev_matches(read_query(text), listed)) for text in ("CVE-2021-44228", "apache log4j2", "apache struts", "?")]
    assert found == [1, 1, 0, 0]


def test_records_with_a_common_id_become_one_under_its_cve() -> None:
    merged = merge_records(
        [
            Vulnerability("GHSA-1", ("CVE-1",), "s", url="u1"),
            Vulnerability("CVE-2"),
            Vulnerability("CVE-1", (), "t", "HIGH", url="u2"),
        ]
    )
    assert merged == [Vulnerability("CVE-1", ("GHSA-1",), "s", "HIGH", url="u2"), Vulnerability("CVE-2")]


# the backend


async def test_four_sources_make_one_hit() -> None:
    security, _ = backend()
    hits = await security.search(Query("CVE-2021-44228"))
    assert (hits, isinstance(hits, SourceResult) and hits.failures) == ([LOG4J], ())


async def test_a_source_that_fails_is_named_and_the_others_answer() -> None:
    down = BackendError("security did not answer in time", code="timeout", cause="slow", fix="try again")
    security, _ = backend(osv=down, github=answer({"message": "API rate limit exceeded"}, 403))
    hits = await security.search(Query("CVE-2021-44228"))
    assert isinstance(hits, SourceResult)
    assert [hit.title for hit in hits] == [LOG4J.title]
    assert [(f.provider, f.code) for f in hits.failures] == [
        ("security/GitHub Advisories", "rate_limit"),
        ("security/OSV", "timeout"),
    ]
    assert hits.failures[1] == Failure("security/OSV", "timeout", "security did not answer in time: slow", "try again")


async def test_when_every_source_fails_so_does_the_backend() -> None:
    down = BackendError("no network", code="dns", cause="c", fix="check the network")
    security, _ = backend(nvd=down, kev=down, github=down, osv=down)
    with pytest.raises(BackendError) as caught:
        await security.search(Query("CVE-2021-44228"))
    assert (caught.value.code, caught.value.fix) == ("dns", "check the network")
    assert all(name in caught.value.cause for name in ("NVD", "CISA KEV", "GitHub Advisories", "OSV"))


async def test_the_list_of_exploited_ones_is_read_once() -> None:
    security, stub = backend()
    await security.search(Query("log4j2"))
    await security.search(Query("apache"))
    assert [r.url for r in stub.asked].count(KEV) == 1


async def test_nothing_known_is_empty_on_purpose() -> None:
    security, _ = backend(nvd=answer({"vulnerabilities": []}), github=answer([]), osv=answer({"vulns": []}))
    assert await security.search(Query("nothing like this")) == []
