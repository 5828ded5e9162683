"""The Search API, version 1: a stateless tool that searches, reads pages when asked to, and packs what it found.

Doors stand above and call `SearchService`; ports stand below. It decides nothing: whether to search, how often and with
which words is the caller's. It knows no web framework, and a model only for `snippet_rank` and `llm_query`.

    schema     what a request may say, and the request as a value
    service    one request: search or take the client's items, pick, read, pack
    pack       the response, "ucp-1"
    render     the same as text for a model
    relevance  how much of a query a result holds
    excerpt    the part of a page that is about a query
    snippets   snippet_rank and llm_query, one model call each
    settings   searcher.yaml
"""

from nexi.search_api.service import SearchService
from nexi.search_api.settings import SearcherSettings

__all__ = ["SearchService", "SearcherSettings"]
