"""Thirty papers that were retracted or put in doubt, and five that were not, each as one index says it.

Written by hand in the documented forms of Crossref (with Retraction Watch), OpenAlex, Europe PMC and PubMed, and of indexes
that say it in the title alone, as of 17 November 2026; names and numbers are our own. None of the services was called.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TITLE = "Salt and sleep"
DOI = "10.5555/salt.2"
NOTICE_DOI = "10.5555/salt.r"
NOTICE = f"https://doi.org/{NOTICE_DOI}"
PUBMED_NOTICE = "https://pubmed.ncbi.nlm.nih.gov/222/"
EUROPE_NOTICE = "https://europepmc.org/article/MED/222"


class Case(NamedTuple):
    """What a service answers, by the last part of the address that is asked, and what must be known of the paper then."""

    name: str
    service: str
    answers: dict[str, Any]
    standing: str = "retracted"
    notice: str = ""


def crossref(name: str, standing: str = "retracted", notice: str = NOTICE, title: str = TITLE, **fields: Any) -> Case:
    row = {"DOI": DOI, "title": [title], "author": [{"given": "Ada", "family": "Byron"}], **fields}
    return Case(name, "crossref", {"works": {"message": {"items": [row]}}}, standing, notice)


def update(kind: str, year: int = 2020, doi: str = NOTICE_DOI, source: str = "publisher", **more: str) -> dict[str, Any]:
    return {"DOI": doi, "type": kind, "source": source, "updated": {"date-parts": [[year, 3, 6]]}, **more}


def openalex(name: str, standing: str = "retracted", title: str = TITLE, **fields: Any) -> Case:
    row = {"id": "https://openalex.org/W1", "doi": f"https://doi.org/{DOI}", "display_name": title, **fields}
    return Case(name, "openalex", {"works": {"results": [row]}}, standing)


def europepmc(
    name: str, *links: tuple[str, str], kinds: tuple[str, ...] = (), standing: str = "retracted", notice: str = EUROPE_NOTICE
) -> Case:
    comments = [{"id": number, "source": "MED", "type": kind} for kind, number in links]
    row = {
        "id": "111",
        "source": "MED",
        "doi": DOI,
        "title": TITLE,
        "authorString": "Byron A, Cole B.",
        "pubTypeList": {"pubType": ["research-article", *kinds]},
        "commentCorrectionList": {"commentCorrection": comments},
    }
    return Case(name, "europepmc", {"search": {"resultList": {"result": [row]}}}, standing, notice)


def pubmed(
    name: str,
    *links: tuple[str, str],
    kinds: tuple[str, ...] = (),
    title: str = TITLE,
    standing: str = "retracted",
    notice: str = "",
) -> Case:
    row = {
        "uid": "111",
        "title": title,
        "pubtype": ["Journal Article", *kinds],
        "authors": [{"name": "Byron A", "authtype": "Author"}],
        "articleids": [{"idtype": "doi", "value": DOI}],
        "references": [{"refsource": "Sleep Lett. 2020", "reftype": kind, "pmid": number} for kind, number in links],
    }
    found = {"esearchresult": {"count": "1", "idlist": ["111"]}}
    summary = {"result": {"uids": ["111"], "111": row}}
    return Case(name, "pubmed", {"esearch.fcgi": found, "esummary.fcgi": summary}, standing, notice)


def semanticscholar(name: str, title: str) -> Case:
    row = {
        "paperId": "s1",
        "externalIds": {"DOI": DOI},
        "title": title,
        "year": 2020,
        "url": "https://www.semanticscholar.org/s1",
    }
    return Case(name, "semanticscholar", {"search": {"total": 1, "data": [row]}})


WATCH = {"source": "retraction-watch"}
CASES = (
    crossref("a retraction of the publisher", **{"updated-by": [update("retraction")]}),
    crossref("a retraction of Retraction Watch", **{"updated-by": [update("retraction", **WATCH)]}),
    crossref("a correction, then a retraction", **{"updated-by": [update("correction", 2004), update("retraction", 2010)]}),
    crossref("a retraction, then a correction", **{"updated-by": [update("retraction", 2010), update("correction", 2012)]}),
    crossref("a withdrawal", **{"updated-by": [update("withdrawal")]}),
    crossref("a removal", **{"updated-by": [update("removal")]}),
    crossref("a partial retraction", **{"updated-by": [update("partial_retraction")]}),
    crossref("a retraction by its label", **{"updated-by": [update("", label="Retraction")]}),
    crossref("an expression of concern", "concern", **{"updated-by": [update("expression_of_concern")]}),
    crossref("a concern with hyphens", "concern", **{"updated-by": [update("expression-of-concern", **WATCH)]}),
    crossref(
        "a concern, then a retraction",
        **{"updated-by": [update("expression_of_concern", 2018, "10.5555/salt.c"), update("retraction", 2020)]},
    ),
    crossref(
        "a retraction, then a concern",
        **{"updated-by": [update("retraction", 2018), update("expression_of_concern", 2020, "10.5555/salt.c")]},
    ),
    crossref("a record that retracts itself", notice="", **{"update-to": [update("retraction", doi=DOI)]}),
    crossref(
        "a record that retracts itself, and a notice elsewhere",
        **{"update-to": [update("retraction", 2019, DOI)], "updated-by": [update("retraction", 2020, **WATCH)]},
    ),
    crossref(
        "a retraction after a reinstatement", **{"updated-by": [update("reinstatement", 2019), update("retraction", 2021)]}
    ),
    crossref("a title of Elsevier", notice="", title=f"RETRACTED: {TITLE}"),
    crossref("a title of Springer", notice="", title=f"RETRACTED ARTICLE: {TITLE}"),
    crossref("a title of Hindawi", notice="", title=f"[Retracted] {TITLE}"),
    crossref("a title of a withdrawn review", notice="", title=f"WITHDRAWN: {TITLE}"),
    openalex("a flag", is_retracted=True),
    openalex("a title without a flag", title=f"RETRACTED: {TITLE}", is_retracted=False),
    europepmc("a link to a retraction", ("Retraction in", "222")),
    europepmc("a link to a concern", ("Expression of concern in", "222"), standing="concern"),
    europepmc("both links", ("Expression of concern in", "221"), ("Retraction in", "222"), kinds=("Retracted Publication",)),
    europepmc("a kind alone", kinds=("Retracted Publication",), notice=""),
    europepmc("a kind and a concern", ("Expression of concern in", "221"), kinds=("retracted publication",), notice=""),
    pubmed("a kind alone", kinds=("Retracted Publication",)),
    pubmed("a link and a kind", ("Retraction in", "222"), kinds=("Retracted Publication",), notice=PUBMED_NOTICE),
    pubmed("a link to a concern", ("Expression of concern in", "222"), standing="concern", notice=PUBMED_NOTICE),
    semanticscholar("a title alone", f"Retracted: {TITLE}"),
)
SOUND_CASES = (
    crossref("a correction", "", "", **{"updated-by": [update("correction")]}),
    crossref("a notice that retracts another paper", "", "", f"Retraction: {TITLE}", **{"update-to": [update("retraction")]}),
    crossref("a reinstatement", "", "", **{"updated-by": [update("retraction", 2018), update("reinstatement", 2020)]}),
    europepmc("a retraction of another paper", ("Retraction of", "222"), standing="", notice=""),
    pubmed("a notice", ("Retraction of", "222"), kinds=("Retraction of Publication",), standing=""),
)
