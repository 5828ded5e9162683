"""The HTTP interfaces that programs of others know: OpenAI, Tavily, SearXNG, Open WebUI, and nexi's own Search API.

This is the only way in: the server mounts what `CONTRACTS` lists and imports none of the modules; `Nexi.search_api()` enters
`search` by its names. Below are `nexi.app`, and the parts of `nexi.web` that every path shares.

    openai/     chat completions, the Responses API, stored responses, completions of old clients, models and embeddings
    tavily      search, extract, crawl, map and research
    searxng     passes as a SearXNG
    openwebui   the external search engine and web loader of Open WebUI
    search/     the Search API: the service, and its paths
    contracts   all of them as a list, with the shape of their errors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.apis.contracts import CONTRACTS as CONTRACTS
    from nexi.apis.contracts import ERROR_SHAPES as ERROR_SHAPES
    from nexi.apis.search.assembly import settings_of as settings_of
    from nexi.apis.search.routes import sweep_cache as sweep_cache
else:
    _MODULE_OF = {
        "CONTRACTS": "contracts",
        "ERROR_SHAPES": "contracts",
        "settings_of": "search.assembly",
        "sweep_cache": "search.routes",
    }
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name: str) -> Any:
        """Load a name of the list above from its module."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
