"""The services that need no key: what each is good for, how often it may be asked, and what its terms want. Data.

How a service is asked and how its answers read is the adapter's (`nexi/backends/services`). The rates are those of the
services' own documentation, or slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Wording = Literal["question", "words", "keywords", "name", "package", "address"]


class Service(Struct, frozen=True):
    """One service. `wording` is what it is asked with; `documentation` is where its terms and its answers are described."""

    name: str
    title: str
    good_for: str
    documentation: str
    terms: str
    interval_s: float = 1.0  # between two requests
    wording: Wording = "keywords"
    filters: tuple[str, ...] = ()
    credit: str = ""  # what must stand beside its results
    key: str = ""  # what a key changes, where it takes one
    needs_url: bool = False  # it is asked only where an address is set
    needs_contact: bool = False  # it is asked only where the user has set an email address
    last_called: str = ""  # the day on which someone last reported an answer to nexi, as 2026-11-17


SERVICES: Mapping[str, Service] = {
    service.name: service
    for service in (
        Service("duckduckgo", "DuckDuckGo", "the general web",
            "https://pypi.org/project/ddgs/",
            "no documented API: the ddgs library reads the page a person would see; blocks come without notice",
            wording="question", filters=("site", "time", "language")),
        Service("wikipedia", "Wikipedia", "facts, people, places, history, in any language",
            "https://www.mediawiki.org/wiki/API:Search",
            "one request at a time, a user agent that names the program; texts are CC BY-SA 4.0",
            filters=("language",), credit="Wikipedia contributors, CC BY-SA 4.0", wording="words"),
        Service("wikidata", "Wikidata", "names of people, places and things, with their identifiers",
            "https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities", "as Wikipedia; data is CC0",
            wording="name", filters=("language",)),
        Service("openalex", "OpenAlex", "papers of every field, their citations and open copies",
            "https://developers.openalex.org/api-reference/authentication", "a few searches a day without a key; data is CC0",
            key="1,000 searches a day instead of a few; free"),
        Service("crossref", "Crossref", "papers and books by title, author and DOI, with retractions",
            "https://www.crossref.org/documentation/retrieve-metadata/rest-api/",
            "a contact address in each request is asked for, and gives the better pool; metadata is free of copyright"),
        Service("europepmc", "Europe PMC", "medicine and life sciences, with abstracts and free full texts",
            "https://europepmc.org/RestfulWebService", "free; abstracts stay their publishers'"),
        Service("unpaywall", "Unpaywall", "the open copy of a paper by its DOI; it has no search",
            "https://unpaywall.org/products/api",
            "100,000 requests a day; an email address in each request is required, so it is asked only where `contact` is set",
            needs_contact=True),
        Service("pubmed", "PubMed", "medicine and life sciences",
            "https://www.ncbi.nlm.nih.gov/books/NBK25497/",
            "three requests a second without a key; tool and address are to be named",
            interval_s=0.8, key="ten requests a second instead of three; free"),
        Service("arxiv", "arXiv", "preprints of physics, mathematics and computer science",
            "https://info.arxiv.org/help/api/user-manual.html", "one request every three seconds; metadata is CC0",
            interval_s=3.0, credit="Thank you to arXiv for use of its open access interoperability."),
        Service("semanticscholar", "Semantic Scholar", "papers of every field, with abstracts",
            "https://api.semanticscholar.org/api-docs/",
            "one pool for all who have no key, so that refusals are common; results must name it",
            credit="Data from Semantic Scholar", key="one request a second of your own; free on application"),
        Service("doaj", "DOAJ", "articles of open access journals",
            "https://doaj.org/api/docs", "two requests a second; metadata is CC0"),
        Service("zenodo", "Zenodo", "data sets, software and reports of researchers",
            "https://developers.zenodo.org/", "60 requests a minute for guests; metadata is CC0"),
        Service("clinicaltrials", "ClinicalTrials.gov", "clinical trials: status, phase, conditions, eligibility",
            "https://clinicaltrials.gov/data-api/api",
            "about 50 requests a minute; the source and the date of processing are to be named",
            interval_s=1.5, credit="ClinicalTrials.gov, U.S. National Library of Medicine"),
        Service("stackexchange", "Stack Exchange", "programming questions with accepted answers",
            "https://api.stackexchange.com/docs",
            "300 requests a day and address without a key; texts are CC BY-SA 4.0 with a link to the question",
            credit="Stack Exchange contributors, CC BY-SA", key="10,000 requests a day; free"),
        Service("hackernews", "Hacker News", "what developers say about tools, companies and ideas",
            "https://hn.algolia.com/api", "10,000 requests an hour and address"),
        Service("github", "GitHub", "repositories by topic and name; code with a key",
            "https://docs.github.com/en/rest/search/search", "ten searches a minute without a key",
            interval_s=6.0, key="30 searches a minute, and search in code"),
        Service("pypi", "PyPI", "a Python package by its name: version, licence, requirements",
            "https://docs.pypi.org/api/json/",
            "no fixed limit; a user agent with a contact is asked for; there is no search, only names",
            wording="package"),
        Service("npm", "npm", "JavaScript packages",
            "https://github.com/npm/registry/blob/main/docs/REGISTRY-API.md", "acceptable use: no bulk requests",
            wording="package"),
        Service("crates", "crates.io", "Rust packages",
            "https://crates.io/data-access", "one request a second, and a user agent with a contact",
            wording="package"),
        Service("marginalia", "Marginalia", "small, text-heavy sites without advertising",
            "https://about.marginalia-search.com/article/api/",
            "the public key is shared by all, so that refusals are common; results are CC BY-NC-SA 4.0",
            credit="Marginalia Search, CC BY-NC-SA 4.0", key="a rate of your own; free for private use", wording="words"),
        Service("mwmbl", "Mwmbl", "the general web, from a free index that volunteers build",
            "https://mwmbl.org/", "no documented limit",
            interval_s=2.0, wording="words"),
        Service("yacy", "YaCy", "the general web, from a peer of your own",
            "https://yacy.net/api/", "your own peer decides",
            interval_s=0.0, needs_url=True, wording="words"),
        Service("gdelt", "GDELT", "news of the last three months, in many languages",
            "https://blog.gdeltproject.org/gdelt-doc-2-0-api-debuts/",
            "one request every five seconds; use is free with a mention of the GDELT Project",
            interval_s=5.0, filters=("time", "language"), credit="The GDELT Project"),
        Service("archive", "Internet Archive", "scanned books and magazines, films, recordings, old software",
            "https://archive.org/developers/", "no fixed limit; items have licences of their own",
            interval_s=2.0),
        Service("wayback", "Wayback Machine", "the archived copy of an address",
            "https://archive.org/help/wayback_api.php", "no fixed limit; copies stay their authors'",
            interval_s=2.0, wording="address"),
        Service("openlibrary", "Open Library", "books: authors, editions, ISBN, first year",
            "https://openlibrary.org/developers/api",
            "one request a second, three with a contact in the user agent; data is CC0"),
        Service("nominatim", "Nominatim (OpenStreetMap)", "places: where they are, coordinates, addresses",
            "https://operations.osmfoundation.org/policies/nominatim/",
            "one request a second at most, no heavy use, a user agent that names the program",
            interval_s=1.5, filters=("language",), credit="© OpenStreetMap contributors, ODbL"),
    )
}  # fmt: skip
