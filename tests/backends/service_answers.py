"""Short answers of the open services in the form that their documentation gives, and the hits that should be read from them.

Written by hand from the pages named in `nexi/routing/services.json`, as they were on 17 November 2026. None of the services was
called: what is pinned here is the documented form, with names and numbers of our own.
"""

from __future__ import annotations

from typing import Any

from nexi.types import Hit, Paper

Case = tuple[Any, list[Hit]]

CASES: dict[str, Case] = {
    "openalex": (
        {
            "meta": {"count": 1, "page": 1, "per_page": 10},
            "results": [
                {
                    "id": "https://openalex.org/W1",
                    "doi": "https://doi.org/10.5555/Tides.1",
                    "display_name": "Tides of small harbours",
                    "publication_year": 2021,
                    "publication_date": "2021-03-04",
                    "is_retracted": True,
                    "authorships": [{"author": {"display_name": "Ada Byron"}}, {"author": {"display_name": "Ben Cole"}}],
                    "primary_location": {"source": {"display_name": "Journal of Tides"}, "license": "cc-by"},
                    "best_oa_location": {"pdf_url": "https://repo.example/tides.pdf", "license": "cc-by"},
                    "locations": [{"landing_page_url": "https://arxiv.org/abs/2101.00001v2"}],
                    "open_access": {"is_oa": True, "oa_url": "https://repo.example/tides"},
                    "abstract_inverted_index": {"rise": [1], "Harbours": [0], "twice": [2]},
                    "biblio": {"volume": "12", "issue": "3", "first_page": "45", "last_page": "67"},
                    "cited_by_count": 1204,
                }
            ],
        },
        [
            Hit(
                "https://doi.org/10.5555/tides.1",
                "Tides of small harbours",
                "RETRACTED · Ada Byron, Ben Cole · Journal of Tides · 2021 · cited by 1,204 · Harbours rise twice",
                "2021-03-04",
                "openalex",
                Paper(
                    "10.5555/tides.1",
                    ("Ada Byron", "Ben Cole"),
                    "Journal of Tides",
                    "2021",
                    "cc-by",
                    "https://repo.example/tides.pdf",
                    "retracted",
                    versions=("10.48550/arxiv.2101.00001",),
                    volume="12",
                    issue="3",
                    pages="45-67",
                    cited_by=1204,
                ),
            )
        ],
    ),
    "crossref": (
        {
            "status": "ok",
            "message-type": "work-list",
            "message": {
                "total-results": 1,
                "items": [
                    {
                        "DOI": "10.5555/Tides.1",
                        "URL": "https://doi.org/10.5555/tides.1",
                        "title": ["Tides of small harbours"],
                        "author": [{"given": "Ada", "family": "Byron"}, {"name": "Tide Group"}],
                        "container-title": ["Journal of Tides"],
                        "issued": {"date-parts": [[2021, 3, 4]]},
                        "volume": "12",
                        "issue": "3",
                        "page": "45-67",
                        "is-referenced-by-count": 31,
                        "license": [{"URL": "https://creativecommons.org/licenses/by/4.0/"}],
                        "abstract": "<jats:p>Harbours rise &amp; fall.</jats:p>",
                        "updated-by": [
                            {"type": "expression_of_concern", "DOI": "10.5555/tides.c", "source": "publisher"},
                            {"type": "retraction", "DOI": "10.5555/tides.r", "source": "retraction-watch"},
                        ],
                        "relation": {"has-preprint": [{"id-type": "doi", "id": "10.48550/arXiv.2101.00001"}]},
                    }
                ],
            },
        },
        [
            Hit(
                "https://doi.org/10.5555/tides.1",
                "Tides of small harbours",
                "RETRACTED · Ada Byron, Tide Group · Journal of Tides · 2021 · cited by 31 · Harbours rise & fall.",
                "2021-03-04",
                "crossref",
                Paper(
                    "10.5555/tides.1",
                    ("Ada Byron", "Tide Group"),
                    "Journal of Tides",
                    "2021",
                    "https://creativecommons.org/licenses/by/4.0/",
                    "",
                    "retracted",
                    "https://doi.org/10.5555/tides.r",
                    ("10.48550/arxiv.2101.00001",),
                    volume="12",
                    issue="3",
                    pages="45-67",
                    cited_by=31,
                ),
            )
        ],
    ),
    "europepmc": (
        {
            "version": "6.9",
            "hitCount": 1,
            "resultList": {
                "result": [
                    {
                        "id": "100",
                        "source": "MED",
                        "pmid": "100",
                        "pmcid": "PMC7",
                        "doi": "10.5555/salt.2",
                        "title": "Salt and sleep.",
                        "authorString": "Byron A, Cole B.",
                        "journalInfo": {"journal": {"title": "Sleep Letters"}, "volume": "7", "issue": "1"},
                        "pageInfo": "e12",
                        "citedByCount": 2,
                        "pubYear": "2020",
                        "abstractText": "<h4>Aim</h4>Less salt, more sleep.",
                        "license": "cc by",
                        "firstPublicationDate": "2020-05-06",
                        "commentCorrectionList": {
                            "commentCorrection": [{"id": "200", "source": "MED", "type": "Expression of concern in"}]
                        },
                        "fullTextUrlList": {"fullTextUrl": [{"availabilityCode": "S", "url": "https://publisher.example/2"}]},
                    }
                ]
            },
        },
        [
            Hit(
                "https://europepmc.org/article/MED/100",
                "Salt and sleep.",
                "EXPRESSION OF CONCERN · Byron A, Cole B · Sleep Letters · 2020 · cited by 2 · AimLess salt, more sleep.",
                "2020-05-06",
                "europepmc",
                Paper(
                    "10.5555/salt.2",
                    ("Byron A", "Cole B"),
                    "Sleep Letters",
                    "2020",
                    "cc by",
                    "https://europepmc.org/articles/PMC7",
                    "concern",
                    "https://europepmc.org/article/MED/200",
                    volume="7",
                    issue="1",
                    pages="e12",
                    cited_by=2,
                ),
            )
        ],
    ),
    "unpaywall": (
        {
            "doi": "10.5555/Tides.1",
            "doi_url": "https://doi.org/10.5555/tides.1",
            "title": "Tides of small harbours",
            "genre": "journal-article",
            "is_oa": True,
            "oa_status": "green",
            "journal_name": "Journal of Tides",
            "publisher": "Harbour Press",
            "year": 2021,
            "published_date": "2021-03-04",
            "z_authors": [{"given": "Ada", "family": "Byron", "sequence": "first"}, {"family": "Cole"}],
            "best_oa_location": {
                "url": "https://publisher.example/tides.pdf",
                "url_for_pdf": "https://publisher.example/tides.pdf",
                "host_type": "publisher",
                "license": "cc-by",
            },
            "oa_locations": [
                {"url": "https://publisher.example/tides.pdf", "host_type": "publisher", "license": "cc-by"},
                {
                    "url": "https://arxiv.org/abs/2101.00001",
                    "url_for_pdf": "https://arxiv.org/pdf/2101.00001",
                    "host_type": "repository",
                },
            ],
        },
        [
            Hit(
                "https://doi.org/10.5555/tides.1",
                "Tides of small harbours",
                "Ada Byron, Cole · Journal of Tides · 2021",
                "2021-03-04",
                "unpaywall",
                Paper(
                    "10.5555/tides.1",
                    ("Ada Byron", "Cole"),
                    "Journal of Tides",
                    "2021",
                    "cc-by",
                    "https://arxiv.org/pdf/2101.00001",
                    versions=("10.48550/arxiv.2101.00001",),
                ),
            )
        ],
    ),
    "pubmed": (
        {
            "header": {"type": "esummary", "version": "0.3"},
            "result": {
                "uids": ["100"],
                "100": {
                    "uid": "100",
                    "pubdate": "2020 May 6",
                    "sortpubdate": "2020/05/06 00:00",
                    "source": "Sleep Lett",
                    "fulljournalname": "Sleep Letters",
                    "volume": "7",
                    "issue": "1",
                    "pages": "e12",
                    "authors": [{"name": "Byron A", "authtype": "Author"}],
                    "title": "Salt and sleep.",
                    "elocationid": "doi: 10.5555/salt.2",
                    "articleids": [{"idtype": "pubmed", "value": "100"}, {"idtype": "pmc", "value": "PMC7"}],
                    "pubtype": ["Journal Article", "Retracted Publication"],
                },
            },
        },
        [
            Hit(
                "https://pubmed.ncbi.nlm.nih.gov/100/",
                "Salt and sleep.",
                "RETRACTED · Byron A · Sleep Letters · 2020",
                "2020-05-06",
                "pubmed",
                Paper(
                    "10.5555/salt.2",
                    ("Byron A",),
                    "Sleep Letters",
                    "2020",
                    "",
                    "https://pmc.ncbi.nlm.nih.gov/articles/PMC7/",
                    "retracted",
                    volume="7",
                    issue="1",
                    pages="e12",
                ),
            )
        ],
    ),
    "semanticscholar": (
        {
            "total": 1,
            "offset": 0,
            "data": [
                {
                    "paperId": "f00",
                    "externalIds": {"ArXiv": "2101.00001", "DOI": "10.5555/tides.1"},
                    "url": "https://www.semanticscholar.org/paper/f00",
                    "title": "Tides of small harbours",
                    "abstract": "Harbours rise.",
                    "venue": "Journal of Tides",
                    "journal": {"name": "Journal of Tides", "volume": "12", "pages": "45-67"},
                    "citationCount": 40,
                    "year": 2021,
                    "publicationDate": "2021-03-04",
                    "openAccessPdf": {"url": "https://repo.example/tides.pdf", "status": "GREEN", "license": "CCBY"},
                    "authors": [{"authorId": "1", "name": "Ada Byron"}],
                }
            ],
        },
        [
            Hit(
                "https://doi.org/10.5555/tides.1",
                "Tides of small harbours",
                "Ada Byron · Journal of Tides · 2021 · cited by 40 · Harbours rise.",
                "2021-03-04",
                "semanticscholar",
                Paper(
                    "10.5555/tides.1",
                    ("Ada Byron",),
                    "Journal of Tides",
                    "2021",
                    "CCBY",
                    "https://repo.example/tides.pdf",
                    versions=("10.48550/arxiv.2101.00001",),
                    volume="12",
                    pages="45-67",
                    cited_by=40,
                ),
            )
        ],
    ),
    "doaj": (
        {
            "total": 1,
            "results": [
                {
                    "id": "d1",
                    "bibjson": {
                        "title": "Open wells",
                        "abstract": "Wells of the north.",
                        "year": "2019",
                        "journal": {"title": "Water Notes", "volume": "4", "number": "2"},
                        "start_page": "9",
                        "end_page": "9",
                        "author": [{"name": "Cleo Dunn"}],
                        "identifier": [{"type": "doi", "id": "10.5555/wells.3"}],
                        "link": [{"type": "fulltext", "url": "https://water.example/wells"}],
                    },
                }
            ],
        },
        [
            Hit(
                "https://water.example/wells",
                "Open wells",
                "Cleo Dunn · Water Notes · 2019 · Wells of the north.",
                "2019",
                "doaj",
                Paper(
                    "10.5555/wells.3",
                    ("Cleo Dunn",),
                    "Water Notes",
                    "2019",
                    "",
                    "https://water.example/wells",
                    volume="4",
                    issue="2",
                    pages="9",
                ),
            )
        ],
    ),
    "zenodo": (
        {
            "hits": {
                "total": 1,
                "hits": [
                    {
                        "id": 42,
                        "doi": "10.5281/zenodo.42",
                        "conceptdoi": "10.5281/zenodo.41",
                        "links": {"self_html": "https://zenodo.org/records/42"},
                        "metadata": {
                            "title": "Tide gauge readings",
                            "description": "<p>Hourly.</p>",
                            "publication_date": "2022-01-02",
                            "creators": [{"name": "Byron, Ada"}],
                            "resource_type": {"title": "Dataset", "type": "dataset"},
                            "license": {"id": "cc-by-4.0"},
                            "access_right": "open",
                        },
                    }
                ],
            }
        },
        [
            Hit(
                "https://zenodo.org/records/42",
                "Tide gauge readings",
                "Byron, Ada · Zenodo · 2022 · Dataset · Hourly.",
                "2022-01-02",
                "zenodo",
                Paper(
                    "10.5281/zenodo.42",
                    ("Byron, Ada",),
                    "Zenodo",
                    "2022",
                    "cc-by-4.0",
                    "https://zenodo.org/records/42",
                    versions=("10.5281/zenodo.41",),
                ),
            )
        ],
    ),
    "clinicaltrials": (
        {
            "studies": [
                {
                    "protocolSection": {
                        "identificationModule": {"nctId": "NCT00000001", "briefTitle": "Salt in Sleep"},
                        "statusModule": {
                            "overallStatus": "NOT_YET_RECRUITING",
                            "lastUpdatePostDateStruct": {"date": "2026-02-03", "type": "ACTUAL"},
                        },
                        "descriptionModule": {"briefSummary": "Less salt for a month."},
                        "conditionsModule": {"conditions": ["Insomnia"]},
                        "designModule": {"phases": ["PHASE2", "PHASE3"]},
                    },
                    "hasResults": False,
                }
            ]
        },
        [
            Hit(
                "https://clinicaltrials.gov/study/NCT00000001",
                "Salt in Sleep",
                "Not yet recruiting · Phase 2, Phase 3 · Insomnia · Less salt for a month.",
                "2026-02-03",
                "clinicaltrials",
            )
        ],
    ),
    "github": (
        {
            "total_count": 1,
            "incomplete_results": False,
            "items": [
                {
                    "full_name": "ada/tides",
                    "html_url": "https://github.com/ada/tides",
                    "description": "Tide tables",
                    "language": "Rust",
                    "stargazers_count": 12,
                    "pushed_at": "2026-01-02T03:04:05Z",
                    "license": {"spdx_id": "MIT"},
                }
            ],
        },
        [Hit("https://github.com/ada/tides", "ada/tides", "Rust · 12 stars · MIT · Tide tables", "2026-01-02", "github")],
    ),
    "pypi": (
        {
            "info": {
                "name": "tides",
                "version": "2.1",
                "summary": "Tide tables",
                "requires_python": ">=3.10",
                "license_expression": "MIT",
                "project_url": "https://pypi.org/project/tides/",
            },
            "releases": {},
            "urls": [],
        },
        [Hit("https://pypi.org/project/tides/", "tides 2.1", "version 2.1 · Python >=3.10 · MIT · Tide tables", "", "pypi")],
    ),
    "npm": (
        {
            "objects": [
                {
                    "package": {
                        "name": "tides",
                        "version": "1.0.0",
                        "description": "Tide tables",
                        "date": "2025-06-07T08:09:10.000Z",
                        "links": {"npm": "https://www.npmjs.com/package/tides"},
                    }
                }
            ],
            "total": 1,
        },
        [Hit("https://www.npmjs.com/package/tides", "tides 1.0.0", "version 1.0.0 · Tide tables", "2025-06-07", "npm")],
    ),
    "crates": (
        {
            "crates": [
                {
                    "id": "tides",
                    "name": "tides",
                    "max_stable_version": "0.3.1",
                    "newest_version": "0.4.0-rc1",
                    "description": "Tide tables",
                    "updated_at": "2025-06-07T08:09:10Z",
                }
            ],
            "meta": {"total": 1},
        },
        [Hit("https://docs.rs/crate/tides/latest", "tides 0.3.1", "version 0.3.1 · Tide tables", "2025-06-07", "crates")],
    ),
    "hackernews": (
        {
            "hits": [
                {
                    "objectID": "77",
                    "title": "Show HN: Tides",
                    "url": "https://tides.example/",
                    "points": 5,
                    "num_comments": 2,
                    "created_at": "2024-02-03T04:05:06Z",
                }
            ],
            "nbHits": 1,
        },
        [
            Hit(
                "https://news.ycombinator.com/item?id=77",
                "Show HN: Tides",
                "5 points, 2 comments · https://tides.example/",
                "2024-02-03",
                "hackernews",
            )
        ],
    ),
    "marginalia": (
        {
            "license": "CC-BY-NC-SA 4.0",
            "query": "tides",
            "results": [{"url": "https://tides.example/", "title": "Tides", "description": "How tides rise.", "quality": 3.0}],
        },
        [Hit("https://tides.example/", "Tides", "How tides rise.", "", "marginalia")],
    ),
    "mwmbl": (
        [
            {
                "url": "https://tides.example/",
                "title": [{"value": "Tides", "is_bold": True}, {"value": " of the sea", "is_bold": False}],
                "extract": [{"value": "How tides rise.", "is_bold": False}],
                "source": "mwmbl",
            }
        ],
        [Hit("https://tides.example/", "Tides of the sea", "How tides rise.", "", "mwmbl")],
    ),
    "yacy": (
        {
            "channels": [
                {"title": "YaCy", "items": [{"title": "Tides", "link": "https://tides.example/", "description": "Rise."}]}
            ]
        },
        [Hit("https://tides.example/", "Tides", "Rise.", "", "yacy")],
    ),
    "gdelt": (
        {
            "articles": [
                {
                    "url": "https://news.example/tide",
                    "title": "High tide in Ewell",
                    "seendate": "20261105T101500Z",
                    "domain": "news.example",
                    "language": "English",
                    "sourcecountry": "United Kingdom",
                }
            ]
        },
        [
            Hit(
                "https://news.example/tide",
                "High tide in Ewell",
                "news.example · English · United Kingdom",
                "2026-11-05",
                "gdelt",
            )
        ],
    ),
    "archive": (
        {
            "responseHeader": {"status": 0},
            "response": {
                "numFound": 1,
                "docs": [
                    {
                        "identifier": "tides1901",
                        "title": "Tides",
                        "description": ["A scan."],
                        "date": "1901-01-01T00:00:00Z",
                        "creator": "A. Byron",
                        "mediatype": "texts",
                    }
                ],
            },
        },
        [Hit("https://archive.org/details/tides1901", "Tides", "texts · A. Byron · A scan.", "1901-01-01", "archive")],
    ),
    "wayback": (
        {
            "url": "tides.example",
            "archived_snapshots": {
                "closest": {
                    "status": "200",
                    "available": True,
                    "url": "http://web.archive.org/web/20010911000000/http://tides.example/",
                    "timestamp": "20010911000000",
                }
            },
        },
        [
            Hit(
                "https://web.archive.org/web/20010911000000/http://tides.example/",
                "Archived copy of 2001-09-11",
                "HTTP 200",
                "2001-09-11",
                "wayback",
            )
        ],
    ),
    "openlibrary": (
        {
            "numFound": 1,
            "start": 0,
            "docs": [
                {
                    "key": "/works/OL1W",
                    "title": "The Tide Book",
                    "author_name": ["Ada Byron"],
                    "first_publish_year": 1954,
                    "isbn": ["9780000000002"],
                    "publisher": ["Quay Press", "Other"],
                }
            ],
        },
        [
            Hit(
                "https://openlibrary.org/works/OL1W",
                "The Tide Book",
                "Ada Byron · first published 1954 · Quay Press · ISBN 9780000000002",
                "1954",
                "openlibrary",
            )
        ],
    ),
    "nominatim": (
        [
            {
                "osm_type": "relation",
                "osm_id": 9,
                "lat": "51.35",
                "lon": "-0.25",
                "name": "Ewell",
                "display_name": "Ewell, Surrey, England",
                "type": "village",
                "extratags": {"wikipedia": "en:Ewell"},
            },
            {"osm_type": "node", "osm_id": 8, "lat": "1", "lon": "2", "display_name": "Ewell, Elsewhere", "type": "hamlet"},
        ],
        [
            Hit(
                "https://en.wikipedia.org/wiki/Ewell",
                "Ewell",
                "Ewell, Surrey, England · village · coordinates 51.35, -0.25",
                "",
                "nominatim",
            ),
            Hit(
                "https://www.openstreetmap.org/node/8",
                "Ewell",
                "Ewell, Elsewhere · hamlet · coordinates 1, 2",
                "",
                "nominatim",
            ),
        ],
    ),
    "wikidata": (
        {
            "searchinfo": {"search": "Ewell"},
            "search": [{"id": "Q7", "label": "Ewell", "description": "village in Surrey", "url": "//www.wikidata.org/wiki/Q7"}],
            "success": 1,
        },
        [Hit("https://www.wikidata.org/wiki/Q7", "Ewell", "village in Surrey · Q7", "", "wikidata")],
    ),
}
