"""The Search API, version 1: a stateless tool that searches, reads pages when asked to, and packs what it found.

`Nexi.search_api()` enters by the names below, routes stand above and call `SearchService`; ports stand below. It decides
nothing: whether to search, how often and with which words is the caller's. It knows a model only for `snippet_rank` and
`llm_query`.

    schema     what a request may say, and the request as a value
    service    one request: search or take the client's items, pick, read, pack
    pack       the response, "ucp-1", and the same as text for a model
    excerpt    the part of a page that is about a query, and how much of it a result holds
    snippets   snippet_rank and llm_query, one model call each
    assembly   the service over the ports of one `Nexi`, and searcher.yaml
    routes     its paths over HTTP, which alone know a web framework
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.apis.search.assembly import build_search_service as build_search_service
    from nexi.apis.search.assembly import settings_of as settings_of
    from nexi.apis.search.service import SearchService as SearchService
else:
    _MODULE_OF = {"SearchService": "service", "build_search_service": "assembly", "settings_of": "assembly"}
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> Any:
        """Load a name of the list above from its module."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
