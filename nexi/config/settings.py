"""Config: the settings, and what follows from them. A value, built once and passed whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from nexi.config import _names
from nexi.config._checks import quote_value
from nexi.config._environment import nexi_cache, nexi_home, override_roles
from nexi.config._names import DEFAULT_BASE_URL, EXTRACTIVE, OLD_NAMES, ROLES, EndpointRole, Keys
from nexi.config._values import (
    deduplicate_keys,
    find_key_owner,
    hide_password,
    mask_key,
    parse_keys,
    parse_names,
    parse_site,
    to_json_value,
)
from nexi.config.fields import DECLARATIONS, SAVED, UNSAVED, Settings, describe_unknown_keys, find_problems, suggest_fix
from nexi.errors import ConfigError

if TYPE_CHECKING:
    from nexi.net.trust import Trust

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Endpoint:
    """Where one role's model is called. Keys are tried in order; an empty tuple means none is sent."""

    base_url: str
    api_keys: Keys
    model: str
    max_context: int

    def __repr__(self) -> str:
        return f"Endpoint({hide_password(self.base_url)}, {len(self.api_keys)} keys, {self.model}, {self.max_context})"

    @property
    def label(self) -> str:
        """The model and its server, without a password, as what is known of both is kept under."""
        return f"{self.model} at {hide_password(self.base_url).rstrip('/')}"

    @property
    def is_extractive(self) -> bool:
        return self.model == EXTRACTIVE


def select_settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among `data` under their present names; a present name wins over an old one."""
    old = {OLD_NAMES[k]: v for k, v in data.items() if k in OLD_NAMES}
    return {**old, **{k: v for k, v in data.items() if k in SAVED}}


def _with_parameters_of(source: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function of `**values` the typed parameters of `source`, for type checkers; at run time nothing changes."""

    def keep(function: Callable[..., R]) -> Callable[P, R]:
        return function

    return keep


class _Place:
    """A path below the folder for all files, or below that of the person."""

    def __init__(self, *parts: str, is_personal: bool = False) -> None:
        self._parts, self._is_personal = parts, is_personal

    def __get__(self, config: Config, owner: object) -> Path:
        return (config.personal_dir if self._is_personal else config.root).joinpath(*self._parts)


class Config(Settings):
    """The settings, and what follows from them: endpoints, chains, keys and places. Frozen as Settings is."""

    @_with_parameters_of(Settings.__init__)
    def __init__(self, **values: Any) -> None:
        """Every field of Settings by name. `max_timeout` is the old name of `time_target`. Raises ConfigError."""
        old = {new: values.pop(name) for name, new in OLD_NAMES.items() if name in values}
        values = {**{name: value for name, value in old.items() if value is not None}, **values}
        if problems := find_problems(values):
            raise ConfigError("a setting cannot be used", cause="; ".join(problems), fix=suggest_fix(problems))
        for name in values.keys() & DECLARATIONS.keys():
            values[name] = DECLARATIONS[name].normalize(values[name])
        if values.get("home") is not None:
            values["home"] = Path(values["home"])
        super().__init__(**values)

    def __repr__(self) -> str:
        values = {k: v for k, v in self.to_masked_dict().items() if v != DEFAULT_CONFIG.get(k)}
        return f"Config({', '.join(f'{k}={v!r}' for k, v in values.items())})"

    @property
    def max_timeout(self) -> int | None:
        return self.time_target

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Config:
        """Build a Config; absent settings have their defaults, unknown ones become notes. Raises ConfigError."""
        problems = find_problems(data) if isinstance(data, Mapping) else [f"it must be an object (got {quote_value(data)})"]
        if problems:
            raise ConfigError("the configuration cannot be used", cause="; ".join(problems), fix=suggest_fix(problems))
        return cls(**select_settings(data), notes=tuple(describe_unknown_keys(data)))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, keys in clear text. Keys from the environment are not included."""
        return {name: to_json_value(getattr(self, name)) for name in SAVED}

    @_with_parameters_of(Settings.__init__)
    def override(self, **changes: Any) -> Config:
        """A copy in which these settings win; None changes nothing. Raises ConfigError."""
        values = {OLD_NAMES.get(k, k): v for k, v in changes.items() if v is not None}
        problems = find_problems(values) + describe_unknown_keys({k: v for k, v in values.items() if k not in UNSAVED})
        if problems:
            raise ConfigError("a setting cannot be used", cause="; ".join(problems), fix=suggest_fix(problems))
        current = {f.name: getattr(self, f.name) for f in fields(self)}
        return Config(**{**current, "roles": override_roles(self.roles, values), **values})

    # Models

    def endpoint(self, role: EndpointRole = "answer") -> Endpoint:
        """Where `role` is served. The default address without a key means the built-in extractive model."""
        if role not in ROLES:
            raise ConfigError(f"there is no role called {role!r}", fix=f"the roles are {', '.join(ROLES)}")
        part = self.roles.get(role, {})
        base_url = part.get("base_url") or self.base_url
        model = part.get("model") or self.model
        max_context = part.get("max_context") or self.max_context
        keys = self._endpoint_keys(base_url, part)
        if model == EXTRACTIVE or (not keys and parse_site(base_url) == parse_site(DEFAULT_BASE_URL)):
            return Endpoint("", (), EXTRACTIVE, max_context)
        return Endpoint(base_url, keys, model, max_context)

    @property
    def embedding_library(self) -> str:
        return self.embedding_model if self.embedding_model.startswith(_names.EMBEDDING_LIBRARIES) else ""

    def embedding_endpoint(self) -> Endpoint | None:
        """Where texts are turned into vectors; None if no endpoint is set. A model alone means the main address."""
        base_url = self.embedding_base_url or (self.base_url if self.embedding_model else "")
        if not base_url or self.embedding_library:
            return None
        own = next(iter(self.keys_for("embedding")), "")
        keys = self._endpoint_keys(base_url, {"api_key": own, "base_url": self.embedding_base_url})
        return Endpoint(base_url, keys, self.embedding_model or _names.EMBEDDING_MODEL, self.max_context)

    def _endpoint_keys(self, base_url: str, part: Mapping[str, Any]) -> Keys:
        """A key goes with the address it was set for; any other address gets only keys that are known to be its own."""
        if part.get("api_key") and (part.get("base_url") or not self._is_typed_in_browser):
            return (part["api_key"],)
        if parse_site(base_url) != parse_site(self.base_url):
            owner = find_key_owner(base_url)
            return deduplicate_keys(self.origin.env_keys.get(owner, ""), *parse_keys(self.api_keys.get(owner, "")))
        owner = find_key_owner(self.base_url)
        of_any = "" if self._is_typed_in_browser else self.api_keys.get("llm", "")
        more = (*parse_keys(self.api_keys.get(owner, "")), *parse_keys(of_any))
        if self._is_explicit("api_key"):
            return deduplicate_keys(self.api_key, *more)
        return deduplicate_keys(self._environment_key(owner), self._file_key(), *more)

    def _file_key(self) -> str:
        """The key of the file, if the address is the one of the file: it is sent to no other."""
        address = self.origin.file.get("base_url", DEFAULT_BASE_URL).strip()
        return self.api_key if parse_site(address) == parse_site(self.base_url) else ""

    def _environment_key(self, owner: str) -> str:
        """The key of this address; else OPENAI_API_KEY, which many servers accept, if the user chose the address."""
        # a file that names another address and its own key keeps the two together
        keys = self.origin.env_keys
        if keys.get(owner) or self._is_typed_in_browser:
            return keys.get(owner, "")
        is_in_environment = self.origin.env.get("base_url") == self.base_url
        is_chosen = is_in_environment or parse_site(self.base_url) != parse_site(DEFAULT_BASE_URL)
        return keys.get("openai", "") if is_chosen and (is_in_environment or not self._file_key()) else ""

    @property
    def _is_typed_in_browser(self) -> bool:
        """Whether the address comes from the page: whoever reaches the page must not collect keys that were set elsewhere."""
        is_from_page = bool(self.page_base_url) and parse_site(self.page_base_url) == parse_site(self.base_url)
        return is_from_page and self.origin.env.get("base_url") != self.base_url

    def _is_explicit(self, name: str) -> bool:
        """Whether a flag or the caller set it, not the file."""
        value = getattr(self, name)
        return bool(value) and value != DECLARATIONS[name].normalize(self.origin.file.get(name))

    # Providers

    def keys_for(self, provider: str) -> Keys:
        """The keys of a search or fetch provider, in the order to try them."""
        of_jina = (self.jina_key,) if provider == "jina" else ()
        of_environment = "" if of_jina and self._is_explicit("jina_key") else self.origin.env_keys.get(provider, "")
        return deduplicate_keys(of_environment, *of_jina, *parse_keys(self.api_keys.get(provider, "")))

    def search_chain(self) -> tuple[str, ...]:
        if names := parse_names(self.search_backend):
            return names
        if self.searxng_url or self.searxng_instances:
            return ("searxng",)
        others = tuple(name for name in _names.KEYED_BACKENDS if self.keys_for(name)) or _names.FREE_BACKENDS
        return ("searxng", *others) if self.searxng_autostart else others

    def searxng_urls(self) -> tuple[str, ...]:
        """The instances of SearXNG in the order in which they take turns, each once."""
        return tuple(dict.fromkeys(url for url in (self.searxng_url, *self.searxng_instances) if url))

    def service_names(self) -> tuple[str, ...]:
        """The open services that are chosen by hand; those to leave out begin with a minus."""
        return parse_names(self.services)

    def fetch_chain(self) -> tuple[str, ...]:
        """The fetchers to try, in order. Jina sees which pages are read, so without a key it is used only if configured."""
        if names := parse_names(self.content_fetcher):
            return names
        return ("http", "jina") if self.keys_for("jina") else ("http",)

    @property
    def trust(self) -> Trust:
        from nexi.net.trust import Trust

        return Trust(self.ssl_cert_file, self.ssl_cert_dir)

    # Showing

    def to_masked_dict(self) -> dict[str, Any]:
        """The settings as JSON values for people and logs: keys are masked, addresses have no password."""
        data = {name: declaration.mask(getattr(self, name)) for name, declaration in DECLARATIONS.items()}
        if self.origin.env_keys:
            data["environment_keys"] = {_names.KEY_VARIABLES[k]: mask_key(v) for k, v in self.origin.env_keys.items()}
        return data

    # Places

    @property
    def root(self) -> Path:
        return self.home or nexi_home()

    def for_person(self, person: str) -> Config:
        """The config with the personal files of one person of a team server."""
        return self.override(person=person)

    def for_guests(self) -> Config:
        """The config for callers whom a server does not know: the web alone, and files of their own, kept for a day."""
        chain = tuple(name for name in parse_names(self.search_backend) if name not in _names.PRIVATE_BACKENDS)
        return self.override(
            person=_names.GUEST_PERSON,
            search_backend=chain,
            knowledge=False,
            qdrant_url="",
            agentic_search_enabled=False,
            vault="",
            grep_root="",
            grep_project=False,
            tools=(),
            system_prompt="",
            share=False,
            runs_keep_days=min(self.runs_keep_days, _names.GUEST_KEEP_DAYS),
        )

    @property
    def always_wants_token(self) -> bool:
        return self.serve_token == _names.ALWAYS

    @property
    def is_for_guests(self) -> bool:
        return self.person == _names.GUEST_PERSON

    @property
    def personal_dir(self) -> Path:
        """The folder for what belongs to one person: all of it, or her part on a team server."""
        return self.root / "people" / self.person if self.person else self.root

    @property
    def config_path(self) -> Path:
        return self.origin.path if self.origin.path and not self._has_moved() else self.root / "config.json"

    history_path = _Place("history.jsonl", is_personal=True)
    spaces_path = _Place("spaces.db", is_personal=True)
    knowledge_path = _Place("knowledge.db", is_personal=True)
    runs_dir = _Place("runs", is_personal=True)
    pages_dir = _Place("pages", is_personal=True)
    state_dir = _Place("state")
    # the user's own versions of the container's settings and of the prompts, and backends and fetchers, one file each
    searxng_settings = _Place("searxng", "default-settings.yml")
    prompts_dir = _Place("prompts")
    plugins_dir = _Place("plugins")

    @property
    def page_cache_dir(self) -> Path:
        """The folder of cached pages; `page_cache_ttl_s` is their age limit."""
        return self.personal_dir / "cache" / "pages" if self.person else self.cache_dir / "pages"

    @property
    def cache_dir(self) -> Path:
        if self.origin.cache and not self._has_moved():
            return self.origin.cache
        return self.home / "cache" if self.home else nexi_cache()

    def _has_moved(self) -> bool:
        """Whether another home was set after loading; then nothing is written to the old one."""
        return self.home != self.origin.home


DEFAULT_CONFIG: dict[str, Any] = Config().to_dict()
