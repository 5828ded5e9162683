"""Which extra tools a run offers besides the web search, and the searchers behind them.

Research offers each that can be used; an ordinary search offers those that are set up: a backend that the config names or has
a key for, and grep where there is code to search. A resumed run keeps the tools it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from nexi.searcher import Searcher
from nexi.tools.extra import BACKENDS_OF_TOOLS

if TYPE_CHECKING:
    from nexi.app.environment import RunEnvironment
    from nexi.app.factory import PortFactory
    from nexi.ports import Emit, SearchBackend
    from nexi.runs.recording import AgentReplay

__all__ = ["build_extra_searchers", "usable_tools", "wanted_tools"]


def usable_tools(environment: RunEnvironment) -> list[str]:
    """Every extra tool that can be used here."""
    if environment.recorded.facts:
        return _recorded_tools(environment)
    config = environment.config
    allowed = {*config.search_chain(), *config.service_names(), "ripgrep"} if environment.request.services else None
    usable = ((tool, name) for tool, name in BACKENDS_OF_TOOLS.items() if environment.ports.can_use_extra(name))
    return [tool for tool, name in usable if allowed is None or name in allowed]


def wanted_tools(environment: RunEnvironment) -> list[str]:
    """The extra tools of an ordinary search: those that are set up, for a model that chooses among tools itself."""
    if environment.recorded.facts:
        return _recorded_tools(environment)
    config = environment.config
    if environment.is_small_model or environment.approach == "passages" or config.endpoint("answer").is_extractive:
        return []
    named = {*config.search_chain(), "ripgrep"}
    backends = [(tool, BACKENDS_OF_TOOLS[tool]) for tool in usable_tools(environment)]
    return [tool for tool, backend in backends if backend in named or config.keys_for(backend)]


def build_extra_searchers(ports: PortFactory, tools: Iterable[str], emit: Emit, replay: AgentReplay) -> Mapping[str, Searcher]:
    """A searcher over the one backend of each tool; over none where a tool is only remembered."""

    def backends_of(tool: str) -> Callable[[], tuple[SearchBackend, ...]]:
        def build() -> tuple[SearchBackend, ...]:
            backend = ports.extra_backend(BACKENDS_OF_TOOLS[tool])
            return (backend,) if backend else ()

        return build

    names = [tool for tool in tools if tool in BACKENDS_OF_TOOLS]
    return {tool: Searcher(backends_of(tool), emit=emit, clock=ports.clock, replay=replay) for tool in names}


def _recorded_tools(environment: RunEnvironment) -> list[str]:
    recorded = environment.recorded.settings.get("tools")
    return [name for name in recorded if name in BACKENDS_OF_TOOLS] if isinstance(recorded, list) else []
