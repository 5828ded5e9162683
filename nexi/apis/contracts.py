"""Every interface as one list, and the shape of an error by the start of a path.

Above is the server; below, the interfaces. What a path does is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from nexi.apis import openwebui, searxng, tavily
from nexi.apis.openai import completions, responses
from nexi.apis.openai.shapes import openai_error
from nexi.apis.search import routes
from nexi.web.contract import Contract
from nexi.web.payload import Shape, own_shape

_MODULES = (completions, responses, routes, searxng, tavily, openwebui)
CONTRACTS: tuple[Contract, ...] = tuple(module.CONTRACT for module in _MODULES)
ERROR_SHAPES: Mapping[str, Shape] = {
    "/v1/": openai_error,  # clients of OpenAI try paths that are not there
    "/v1/search": own_shape,
    "/v1/cache": own_shape,
    "/v1/snippet_rank": own_shape,
    "/searxng": searxng.searxng_error,
    "/tavily": tavily.tavily_error,
    "/openwebui": openwebui.openwebui_error,
}
