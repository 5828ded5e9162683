"""Which extra tools a run offers besides the web search, and the searchers behind them; a resumed run keeps its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nexi.app.environment import RunEnvironment
from nexi.app.factory import PortFactory
from nexi.app.plugins import describe_tool
from nexi.config import Config
from nexi.ports import Emit
from nexi.runs.recording import AgentReplay
from nexi.searcher import Searcher
from nexi.tools.specs import BACKENDS_OF_TOOLS, EXTRA_SPECS, build_spec
from nexi.types import ToolSpec


def usable_tools(environment: RunEnvironment) -> list[str]:
    """Every extra tool that can be used here; a resumed run keeps its own."""
    config = environment.config
    if environment.recorded.facts:
        names, backends = environment.recorded.settings.get("tools"), _list_backends(config)
        return [name for name in names if name in backends] if isinstance(names, list) else []
    backends_allowed = {*config.search_chain(), *config.service_names(), "ripgrep"} if environment.request.services else None
    calls_tools = not config.endpoint("answer").is_extractive
    backends = {tool: name for tool, name in _list_backends(config).items() if calls_tools or name not in config.tools}
    usable = ((tool, name) for tool, name in backends.items() if environment.ports.can_use_extra(name))
    return [tool for tool, name in usable if backends_allowed is None or name in backends_allowed]


def wanted_tools(environment: RunEnvironment) -> list[str]:
    """The extra tools of an ordinary search: those that are set up, for a model that chooses among tools itself."""
    if environment.recorded.facts:
        return usable_tools(environment)
    config = environment.config
    if environment.is_small_model or environment.approach == "passages" or config.endpoint("answer").is_extractive:
        return []
    names, backends = {*config.search_chain(), "ripgrep", *config.tools}, _list_backends(config)
    return [tool for tool in usable_tools(environment) if backends[tool] in names or config.keys_for(backends[tool])]


def list_extra_specs(config: Config, tools: Iterable[str]) -> tuple[ToolSpec, ...]:
    """What a model is told of these tools; of the user's own, what their files say."""
    backends = _list_backends(config)
    return tuple(
        EXTRA_SPECS.get(tool) or build_spec(tool, describe_tool(config, backends[tool])) for tool in tools if tool in backends
    )


def build_extra_searchers(ports: PortFactory, tools: Iterable[str], emit: Emit, replay: AgentReplay) -> Mapping[str, Searcher]:
    """A searcher over the one backend of each tool; over none where a tool is only remembered."""
    backends = _list_backends(ports.config)

    def build(name: str) -> Searcher:
        return Searcher(lambda: list(filter(None, [ports.extra_backend(name)])), emit=emit, clock=ports.clock, replay=replay)

    return {tool: build(backends[tool]) for tool in tools if tool in backends}


def _list_backends(config: Config) -> dict[str, str]:
    """The backend of each tool; one of the user has the name of its file."""
    return {**BACKENDS_OF_TOOLS, **{name.replace("-", "_"): name for name in config.tools}}
