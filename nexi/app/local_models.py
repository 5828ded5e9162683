"""Model servers on this machine and the clock of a server, for doors that look at a setup. No model is called."""

from __future__ import annotations

from nexi.config import Config
from nexi.errors import LLMError
from nexi.llm.local import PORTS, LocalServer, describe_server, find_servers, server_time

__all__ = ["PORTS", "LocalServer", "describe_server", "find_servers", "list_endpoint_models", "server_time"]

LISTING_TIMEOUT_S = 10


async def list_endpoint_models(config: Config) -> tuple[list[str], LLMError | None]:
    """The models that the answer endpoint lists, or the error that prevented it."""
    from nexi.app import Nexi

    if config.endpoint("answer").is_extractive:
        return [], None
    async with Nexi(config.override(llm_max_retries=0, llm_timeout=LISTING_TIMEOUT_S)) as nexi:
        try:
            return sorted(await nexi.gate().list_models() or []), None
        except LLMError as error:
            return [], error
