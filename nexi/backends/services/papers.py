"""Indexes of papers, data sets and trials: OpenAlex, Crossref, Europe PMC, PubMed, Semantic Scholar, DOAJ, Zenodo,
ClinicalTrials.gov. Pure.

Each row becomes a hit with the record of the paper, so that duplicates can be merged by DOI and a retraction is seen. Where a
row has what most services name in one place or another is in `papers.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from nexi.answers.papers import read_title_standing
from nexi.backends.sender import BackendRequest
from nexi.backends.services._form import (
    Caller,
    Row,
    ServiceForm,
    dig,
    dig_rows,
    join_parts,
    read_day,
    read_doi,
    read_line,
    read_lines,
    read_web_url,
    search_by,
)
from nexi.types import Hit, Paper, Query

__all__ = ["FORMS"]

MAX_AUTHORS = 50
MAX_ABSTRACT_WORDS = 200
CONCERN = "expression of concern"
# By service and field, the paths of which the first that leads to something counts; authors are a list and a field of its rows.
_PATHS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, dict[str, tuple[str, ...]]])


def _read_paper(name: str, row: Row) -> Paper:
    paths = _PATHS[name]
    line = {field: read_line(row, *places) for field, places in paths.items()}
    first, last = line.get("pages", ""), line.get("last_page", "")
    cited_by = dig(row, paths["cited_by"][0]) if "cited_by" in paths else 0
    return Paper(
        read_doi(line.get("doi", "")),
        tuple(read_lines(row, *paths["authors"])[:MAX_AUTHORS]) if "authors" in paths else (),
        line.get("venue", ""),
        line.get("year", ""),
        line.get("licence", ""),
        read_web_url(row, *paths.get("open_url", ())),
        volume=line.get("volume", ""),
        issue=line.get("issue", ""),
        pages=f"{first}-{last}" if first and last and first != last else first,
        cited_by=max(0, cited_by) if isinstance(cited_by, int) else 0,
    )


def _build_hit(
    name: str, row: Row, url: str, paper: Paper, *, about: str = "", published: str = "", extra: Iterable[str] = ()
) -> Hit | None:
    """A hit whose snippet begins with what kind of paper it is; without a title there is none."""
    paths = _PATHS[name]
    title = read_line(row, *paths.get("title", ("title",)))
    about = about or read_line(row, *paths.get("about", ()))
    published = published or read_day(row, *paths.get("day", ()))
    if not title:
        return None
    if not paper.standing and (standing := read_title_standing(title)):
        paper = replace(paper, standing=standing)
    head = ", ".join(paper.authors[:3]) + (" et al." if len(paper.authors) > 3 else "")
    citations = f"cited by {paper.cited_by:,}" if paper.cited_by else ""
    snippet = join_parts((paper.mark, head, paper.venue, paper.year, citations, *extra, about))
    return Hit(url, title, snippet, published, name, paper)


def _doi_url(doi: str) -> str:
    return f"https://doi.org/{quote(doi, safe='/:.;()-_')}" if doi else ""


def unfold_works(name: str, mark: str) -> Callable[[Any], Any]:
    """Reads the rows of a search under this name, or the one work that was asked for by its DOI, which has the mark."""
    return lambda data: data.get(name, [data] if mark in data else None) if isinstance(data, dict) else None


def openalex_request(query: Query, caller: Caller) -> BackendRequest:
    own = {"mailto": caller.contact, "api_key": caller.key}
    if doi := read_doi(query.text):
        return caller.build_request(f"/works/doi:{quote(doi, safe='/')}", own)
    return caller.build_request("/works", {"search": query.text, "per-page": str(min(query.count, 50)), **own})


def read_openalex(row: Row) -> Hit | None:
    paper = replace(
        _read_paper("openalex", row),
        standing="retracted" if row.get("is_retracted") is True else "",
        versions=_find_versions(read_line(location, "landing_page_url") for location in dig_rows(row, "locations")),
    )
    index = row.get("abstract_inverted_index")  # each word with its places, in the place of the text
    words = index.items() if isinstance(index, dict) else ()
    places = [(place, word) for word, where in words for place in (where if isinstance(where, list) else ())]
    in_order = sorted((place, word) for place, word in places if isinstance(place, int))
    url = _doi_url(paper.doi) or read_web_url(row, "primary_location.landing_page_url", "id")
    return _build_hit("openalex", row, url, paper, about=" ".join(word for _, word in in_order[:MAX_ABSTRACT_WORDS]))


def _find_versions(addresses: Iterable[str]) -> tuple[str, ...]:
    """DOIs and arXiv numbers among addresses: what the same work is called elsewhere."""
    dois = []
    for address in addresses:
        number = address.partition("arxiv.org/abs/")[2]
        if doi := read_doi(address) or (f"10.48550/arxiv.{number.partition('v')[0]}" if number[:1].isdigit() else ""):
            dois.append(doi)
    return tuple(dict.fromkeys(dois))


def crossref_request(query: Query, caller: Caller) -> BackendRequest:
    contact = {"mailto": caller.contact}
    if doi := read_doi(query.text):
        return caller.build_request(f"/works/{quote(doi, safe='')}", contact)
    return caller.build_request("/works", {"query.bibliographic": query.text, "rows": str(min(query.count, 50)), **contact})


def read_crossref(row: Row) -> Hit | None:
    standing, notice = read_crossref_updates(row)
    relations = dig(row, "relation")
    related_rows = [item for kind in relations for item in dig_rows(relations, kind)] if isinstance(relations, dict) else []
    paper = replace(
        _read_paper("crossref", row),
        authors=_join_names(row, "author"),
        standing=standing,
        notice=notice,
        versions=_find_versions(read_line(item, "id") for item in related_rows if item.get("id-type") == "doi"),
    )
    day = "-".join(f"{part:02d}" for part in _read_numbers(row, "issued.date-parts.0"))
    return _build_hit("crossref", row, _doi_url(paper.doi) or read_web_url(row, "URL"), paper, published=day)


def _read_numbers(row: Row, path: str) -> list[int]:
    parts = dig(row, path)
    return [part for part in parts if isinstance(part, int)] if isinstance(parts, list) else []


def read_crossref_updates(row: Row) -> tuple[str, str]:
    """The standing that notices give a paper, and the address of the gravest one; Retraction Watch's are among them."""
    # Some publishers retract a paper in its own record, which then updates itself. A paper that was reinstated is sound again.
    doi = read_doi(read_line(row, "DOI"))
    own = [update for update in dig_rows(row, "update-to") if read_doi(read_line(update, "DOI")) == doi]
    standing, notice = "", ""
    updates = [*dig_rows(row, "updated-by"), *own]
    for update in sorted(updates, key=lambda update: _read_numbers(update, "updated.date-parts.0")):
        kind = read_line(update, "type", "label").replace("_", " ").replace("-", " ").lower()
        grave = "retracted" if kind in ("retraction", "withdrawal", "removal", "partial retraction") else ""
        grave = grave or ("concern" if CONCERN in kind else "")
        if kind == "reinstatement":
            standing, notice = "", ""
        elif grave and (standing != "retracted" or (grave == "retracted" and not notice)):
            notice_doi = read_doi(read_line(update, "DOI"))
            standing, notice = grave, "" if notice_doi == doi else _doi_url(notice_doi)
    return standing, notice


def _join_names(row: Row, path: str) -> tuple[str, ...]:
    """Authors whose given and family names stand apart."""
    authors = dig_rows(row, path)[:MAX_AUTHORS]
    return tuple(join_parts((read_line(a, "given"), read_line(a, "family")), " ") or read_line(a, "name") for a in authors)


def europepmc_request(query: Query, caller: Caller) -> BackendRequest:
    doi = read_doi(query.text)
    words = f'DOI:"{doi}"' if doi else query.text
    params = {"query": words, "format": "json", "resultType": "core", "pageSize": str(min(query.count, 50))}
    return caller.build_request("/search", {**params, "email": caller.contact})


def read_europepmc(row: Row) -> Hit | None:
    source, number, pmc = (read_line(row, name) for name in ("source", "id", "pmcid"))
    links = dig_rows(row, "commentCorrectionList.commentCorrection")
    notices = ((read_line(link, "type"), read_line(link, "id")) for link in links)
    standing, notice = _choose_standing(notices, read_lines(row, "pubTypeList.pubType"))
    texts = dig_rows(row, "fullTextUrlList.fullTextUrl")
    open_links = [read_web_url(link, "url") for link in texts if read_line(link, "availabilityCode") in ("OA", "F")]
    names = (name.strip(" .") for name in read_line(row, "authorString").split(","))
    paper = replace(
        _read_paper("europepmc", row),
        authors=tuple(name for name in names if name)[:MAX_AUTHORS],
        open_url=f"https://europepmc.org/articles/{pmc}" if pmc else next(filter(None, open_links), ""),
        standing=standing,
        notice=f"https://europepmc.org/article/MED/{notice}" if notice else "",
    )
    url = f"https://europepmc.org/article/{source}/{number}" if source and number else _doi_url(paper.doi)
    return _build_hit("europepmc", row, url, paper)


def _choose_standing(notices: Iterable[tuple[str, str]], kinds: Iterable[str]) -> tuple[str, str]:
    """The gravest that notices, by kind and number, say of a paper, with that number; else what its own kinds say."""
    # The kinds are MEDLINE's, and the same at Europe PMC and at PubMed.
    standing, notice = "", ""
    for kind, number in notices:
        if standing == "retracted":
            break
        if kind.lower() in ("retraction in", "partial retraction in", "retracted and republished in"):
            standing, notice = "retracted", number
        elif kind.lower() == f"{CONCERN} in":
            standing, notice = "concern", number
    if standing != "retracted" and any(
        "retracted publication" in kind.lower() or kind.lower() == "retracted-article" for kind in kinds
    ):
        standing, notice = "retracted", ""
    return standing, notice


def read_unpaywall(row: Row) -> Hit | None:
    """A paper by its DOI, for its open copy."""
    locations = dig_rows(row, "oa_locations")
    # A copy in a repository goes before the publisher's, who may refuse programs.
    copies = [location for location in locations if read_line(location, "host_type") == "repository"]
    copies.append(dig(row, "best_oa_location"))
    paper = replace(
        _read_paper("unpaywall", row),
        authors=_join_names(row, "z_authors"),
        open_url=next((url for copy in copies if (url := read_web_url(copy, "url_for_pdf", "url"))), ""),
        versions=_find_versions(read_line(location, "url") for location in locations),
    )
    return _build_hit("unpaywall", row, _doi_url(paper.doi), paper)


# PubMed: numbers first, then their summaries


def follow_pubmed(data: Any, caller: Caller) -> BackendRequest | None:
    numbers = read_lines(data, "esearchresult.idlist")
    params = {"db": "pubmed", "id": ",".join(numbers), "retmode": "json"} | _describe_caller(caller)
    return caller.build_request("/esummary.fcgi", params) if numbers else None


def _describe_caller(caller: Caller) -> dict[str, str]:
    return {"tool": "nexi", "email": caller.contact, "api_key": caller.key}


def unfold_pubmed(result: Any) -> Any:
    """Summaries stand under their numbers; the list of numbers has their order."""
    return [result.get(number) for number in read_lines(result, "uids")] if isinstance(dig(result, "uids"), list) else None


def read_pubmed(row: Row) -> Hit | None:
    ids = {read_line(item, "idtype"): read_line(item, "value") for item in dig_rows(row, "articleids")}
    notices = ((read_line(link, "reftype"), read_line(link, "pmid")) for link in dig_rows(row, "references"))
    standing, notice = _choose_standing(notices, read_lines(row, "pubtype"))
    paper = _read_paper("pubmed", row)
    paper = replace(
        paper,
        doi=read_doi(ids.get("doi", ""), read_line(row, "elocationid")),
        year=paper.year[:4],
        open_url=f"https://pmc.ncbi.nlm.nih.gov/articles/{ids['pmc']}/" if ids.get("pmc") else "",
        standing=standing,
        notice=_pubmed_url(notice),
    )
    day = read_day({"day": read_line(row, "sortpubdate").partition(" ")[0].replace("/", "-")}, "day")
    return _build_hit("pubmed", row, _pubmed_url(read_line(row, "uid")), paper, published=day)


def _pubmed_url(number: str) -> str:
    return f"https://pubmed.ncbi.nlm.nih.gov/{number}/" if number.isdigit() else ""


def semanticscholar_request(query: Query, caller: Caller) -> BackendRequest:
    fields = "title,abstract,year,venue,journal,citationCount,externalIds,openAccessPdf,url,publicationDate,authors"
    params = {"query": query.text.replace("-", " "), "limit": str(min(query.count, 50)), "fields": fields}
    return caller.build_request("/paper/search", params, {"x-api-key": caller.key})


def read_semanticscholar(row: Row) -> Hit | None:
    paper = _read_paper("semanticscholar", row)
    if arxiv := read_line(row, "externalIds.ArXiv"):
        open_url = paper.open_url or f"https://arxiv.org/abs/{arxiv}"
        paper = replace(paper, open_url=open_url, versions=(f"10.48550/arxiv.{arxiv}",))
    return _build_hit("semanticscholar", row, _doi_url(paper.doi) or paper.open_url or read_web_url(row, "url"), paper)


def read_doaj(row: Row) -> Hit | None:
    ids = {read_line(item, "type").lower(): read_line(item, "id") for item in dig_rows(row.get("bibjson"), "identifier")}
    paper = replace(_read_paper("doaj", row), doi=read_doi(ids.get("doi", "")))
    return _build_hit("doaj", row, paper.open_url or _doi_url(paper.doi), paper, published=paper.year)


def read_zenodo(row: Row) -> Hit | None:
    number, day = read_line(row, "id"), read_day(row, "metadata.publication_date")
    url = read_web_url(row, "links.self_html", "links.html") or (f"https://zenodo.org/records/{number}" if number else "")
    paper = replace(
        _read_paper("zenodo", row),
        venue="Zenodo",
        year=day[:4],
        open_url=url if read_line(row, "metadata.access_right") == "open" else "",
        versions=_find_versions([read_line(row, "conceptdoi")]),
    )
    return _build_hit("zenodo", row, url, paper, published=day, extra=(read_line(row, "metadata.resource_type.title"),))


def read_clinicaltrials(row: Row) -> Hit | None:
    about = row.get("protocolSection")
    number = read_line(about, "identificationModule.nctId")
    if not number:
        return None
    status = read_line(about, "statusModule.overallStatus").replace("_", " ").capitalize()
    phases = ", ".join(read_lines(about, "designModule.phases")).replace("PHASE", "Phase ")
    conditions = ", ".join(read_lines(about, "conditionsModule.conditions")[:5])
    snippet = join_parts((status, phases, conditions, read_line(about, "descriptionModule.briefSummary")))
    day = read_day(about, "statusModule.lastUpdatePostDateStruct.date")
    title = read_line(about, "identificationModule.briefTitle", "identificationModule.officialTitle")
    return Hit(f"https://clinicaltrials.gov/study/{number}", title, snippet, day, "clinicaltrials")


FORMS = {
    "openalex": ServiceForm("https://api.openalex.org", openalex_request, read_openalex, "", unfold_works("results", "doi"),
        missing_is_empty=True),
    "crossref": ServiceForm("https://api.crossref.org", crossref_request, read_crossref, "message",
        unfold_works("items", "DOI"), missing_is_empty=True),
    "europepmc": ServiceForm("https://www.ebi.ac.uk/europepmc/webservices/rest", europepmc_request, read_europepmc,
        "resultList.result"),
    # What is no DOI is known to nobody there. It refuses a request without an address, and is not asked without one.
    "unpaywall": ServiceForm("https://api.unpaywall.org",
        lambda query, caller: caller.build_request(
            f"/v2/{quote(read_doi(query.text) or query.text, safe='/')}", {"email": caller.contact}),
        read_unpaywall, "", unfold_works("", "doi"), missing_is_empty=True),
    "pubmed": ServiceForm("https://eutils.ncbi.nlm.nih.gov/entrez/eutils",
        lambda query, caller: caller.build_request("/esearch.fcgi", {"db": "pubmed", "term": query.text, "retmode": "json",
            "retmax": str(min(query.count, 50)), "sort": "relevance", **_describe_caller(caller)}),
        read_pubmed, "result", unfold_pubmed, follow=follow_pubmed, first_rows="esearchresult.idlist"),
    "semanticscholar": ServiceForm("https://api.semanticscholar.org/graph/v1", semanticscholar_request, read_semanticscholar,
        "data", is_empty=lambda data: dig(data, "total") == 0),
    "doaj": ServiceForm("https://doaj.org/api",
        lambda query, caller: caller.build_request(
            f"/search/articles/{quote(query.text.replace('/', ' '), safe='')}", {"pageSize": str(min(query.count, 50))}),
        read_doaj, "results"),
    "zenodo": ServiceForm("https://zenodo.org/api", search_by("/records", "q", "size", {"sort": "bestmatch"}, most=25),
        read_zenodo, "hits.hits"),
    "clinicaltrials": ServiceForm("https://clinicaltrials.gov/api/v2",
        search_by("/studies", "query.term", "pageSize", {"format": "json"}), read_clinicaltrials, "studies"),
}  # fmt: skip
