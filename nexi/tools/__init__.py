"""The tools of the loop. The function faces of the first version are importable from here and live in `nexi.compat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.compat import (
        ContentFetcher,
        JinaContentFetcher,
        JinaSearchBackend,
        SearchBackend,
        _extract_with_llm,
        execute_tool,
        web_get,
        web_search,
    )
    from nexi.tools.specs import TOOLS

__all__ = [
    "TOOLS",
    "ContentFetcher",
    "JinaContentFetcher",
    "JinaSearchBackend",
    "SearchBackend",
    "_extract_with_llm",
    "execute_tool",
    "web_get",
    "web_search",
]


def __getattr__(name: str) -> Any:
    """Import a face of the first version when it is first used: they stand above the tools, on the assembly."""
    if name not in __all__:
        raise AttributeError(name)
    from nexi import compat

    return getattr(compat, name)
