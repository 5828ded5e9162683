"""Config: the settings, and what follows from them. A value, built once and passed whole.

Reading files and the environment is for `files`; whether a value is right, for `checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexi.config.addresses import key_owner, mask, masked_role, site, without_password
from nexi.config.checks import fix_for, problems_of, short, unknown_keys
from nexi.config.environment import nexi_cache, nexi_home
from nexi.config.fields import SAVED, UNSAVED, Settings, as_keys, as_names, distinct, known, normal, plain, roles_under
from nexi.config.names import (
    DEFAULT_BASE_URL,
    EMBEDDING_LIBRARIES,
    EMBEDDING_MODEL,
    EXTRACTIVE,
    FREE_BACKENDS,
    KEY_VARIABLES,
    KEYED_BACKENDS,
    OLD_NAMES,
    ROLES,
    EndpointRole,
    Keys,
)
from nexi.errors import ConfigError
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.trust import Trust


@frozen
class Endpoint:
    """Where one role's model is called. Keys are tried in order; an empty tuple means none is sent."""

    base_url: str
    api_keys: Keys
    model: str
    max_context: int

    def __repr__(self) -> str:
        return f"Endpoint({without_password(self.base_url)}, {len(self.api_keys)} keys, {self.model}, {self.max_context})"

    @property
    def is_extractive(self) -> bool:
        """Whether this is the built-in model, which calls nobody."""
        return self.model == EXTRACTIVE


class Config(Settings):
    """The settings, and what follows from them: endpoints, chains, keys and places. Frozen as Settings is."""

    def __init__(self, *, max_timeout: int | None = None, **values: Any) -> None:
        """Every field of Settings by name; `max_timeout` is the old name of `time_target`."""
        if max_timeout is not None:
            values.setdefault("time_target", max_timeout)
        super().__init__(**{name: normal(name, value) for name, value in values.items()})

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.masked().items() if v != DEFAULT_CONFIG.get(k)}
        return f"Config({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    @property
    def max_timeout(self) -> int | None:
        """The old name of `time_target`."""
        return self.time_target

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Config:
        """A checked Config; absent settings have their defaults, unknown ones become notes. Raises ConfigError."""
        problems = problems_of(data) if isinstance(data, Mapping) else [f"it must be an object (got {short(data)})"]
        if problems:
            raise ConfigError("the configuration cannot be used", cause="; ".join(problems), fix=fix_for(problems))
        return cls(**known(data), notes=tuple(unknown_keys(data)))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, keys in the clear. What the environment gave as keys is not among them."""
        return {name: plain(getattr(self, name)) for name in SAVED}

    def override(self, **flags: Any) -> Config:
        """A Config in which these settings win; None means the flag was not given. Raises ConfigError."""
        given = {OLD_NAMES.get(k, k): v for k, v in flags.items() if v is not None}
        problems = problems_of(given) + unknown_keys({k: v for k, v in given.items() if k not in UNSAVED})
        if problems:
            raise ConfigError("a setting cannot be used", cause="; ".join(problems), fix=fix_for(problems))
        current = {f.name: getattr(self, f.name) for f in fields(self)}
        return Config(**{**current, "roles": roles_under(self.roles, given), **given})

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
        if model == EXTRACTIVE or (not keys and site(base_url) == site(DEFAULT_BASE_URL)):
            return Endpoint("", (), EXTRACTIVE, max_context)
        return Endpoint(base_url, keys, model, max_context)

    @property
    def embedding_library(self) -> str:
        """The library and the model that make vectors on this machine, where `embedding_model` names such a one."""
        return self.embedding_model if self.embedding_model.startswith(EMBEDDING_LIBRARIES) else ""

    def embedding(self) -> Endpoint | None:
        """Where texts are turned into vectors; None where no endpoint is named. A model alone is asked of the main address."""
        base_url = self.embedding_base_url or (self.base_url if self.embedding_model else "")
        if not base_url or self.embedding_library:
            return None
        own = next(iter(self.keys_for("embedding")), "")
        keys = self._endpoint_keys(base_url, {"api_key": own} if own else {})
        return Endpoint(base_url, keys, self.embedding_model or EMBEDDING_MODEL, self.max_context)

    def _endpoint_keys(self, base_url: str, part: Mapping[str, Any]) -> Keys:
        """A key follows the address it was given for; another address gets only keys that are known to be its own."""
        if part.get("api_key"):
            return (part["api_key"],)
        if site(base_url) == site(self.base_url):
            return self._main_keys()
        owner = key_owner(base_url)
        return distinct(self.origin.env_keys.get(owner, ""), *as_keys(self.api_keys.get(owner, "")))

    def _main_keys(self) -> Keys:
        owner = key_owner(self.base_url)
        more = (*as_keys(self.api_keys.get(owner, "")), *as_keys(self.api_keys.get("llm", "")))
        if self._is_explicit("api_key"):
            return distinct(self.api_key, *more)
        return distinct(self._environment_key(owner), self._file_key(), *more)

    def _file_key(self) -> str:
        """The file's key belongs to the file's address: elsewhere it is not sent."""
        address = self.origin.file.get("base_url", DEFAULT_BASE_URL).strip()
        return self.api_key if site(address) == site(self.base_url) else ""

    def _environment_key(self, owner: str) -> str:
        """The address's own key; else OPENAI_API_KEY, which many servers take, where the user chose the address.

        A file that names another address and its own key keeps the two together.
        """
        keys = self.origin.env_keys
        if keys.get(owner):
            return keys[owner]
        chosen_in_environment = self.origin.env.get("base_url") == self.base_url
        chosen = chosen_in_environment or site(self.base_url) != site(DEFAULT_BASE_URL)
        return keys.get("openai", "") if chosen and (chosen_in_environment or not self._file_key()) else ""

    def _is_explicit(self, name: str) -> bool:
        """Whether a flag or the caller set this, and not the file."""
        value = getattr(self, name)
        return bool(value) and value != normal(name, self.origin.file.get(name))

    # Providers

    def keys_for(self, provider: str) -> Keys:
        """The keys of a search or fetch provider, in the order to try them."""
        configured = as_keys(self.api_keys.get(provider, ""))
        if provider == "jina":
            configured = (self.jina_key, *configured)
            if self._is_explicit("jina_key"):
                return distinct(*configured)
        return distinct(self.origin.env_keys.get(provider, ""), *configured)

    def search_chain(self) -> tuple[str, ...]:
        """The backends to ask, in order."""
        if configured := as_names(self.search_backend):
            return configured
        if self.searxng_url:
            return ("searxng",)
        others = tuple(name for name in KEYED_BACKENDS if self.keys_for(name)) or FREE_BACKENDS
        return ("searxng", *others) if self.searxng_autostart else others

    def fetch_chain(self) -> tuple[str, ...]:
        """The fetchers to ask, in order. Jina learns what is read, so it takes part only where it was asked for."""
        if configured := as_names(self.content_fetcher):
            return configured
        return ("http", "jina") if self.keys_for("jina") else ("http",)

    @property
    def trust(self) -> Trust:
        """The certificates every client believes."""
        from nexi.trust import Trust

        return Trust(self.ssl_cert_file, self.ssl_cert_dir)

    # Showing

    def masked(self) -> dict[str, Any]:
        """The settings fit for eyes and logs: no key is whole, no password is in an address."""
        data = self.to_dict()
        for name in ("api_key", "token", "jina_key"):
            data[name] = mask(data[name])
        for name in ("base_url", "searxng_url", "http_proxy", "https_proxy", "qdrant_url", "embedding_base_url"):
            data[name] = without_password(data[name])
        data["api_keys"] = {k: [mask(key) for key in as_keys(v)] for k, v in self.api_keys.items()}
        data["roles"] = {role: masked_role(part) for role, part in self.roles.items()}
        if self.origin.env_keys:
            data["environment_keys"] = {KEY_VARIABLES[k]: mask(v) for k, v in self.origin.env_keys.items()}
        return data

    # Places

    @property
    def root(self) -> Path:
        """The folder everything lives in."""
        return self.home or nexi_home()

    @property
    def config_path(self) -> Path:
        return self.origin.path if self.origin.path and not self._has_moved() else self.root / "config.json"

    @property
    def history_path(self) -> Path:
        return self.root / "history.jsonl"

    @property
    def knowledge_path(self) -> Path:
        return self.root / "knowledge.db"

    @property
    def runs_dir(self) -> Path:
        return self.root / "runs"

    @property
    def pages_dir(self) -> Path:
        return self.root / "pages"

    @property
    def page_cache_dir(self) -> Path:
        """Pages that were read once, kept for `page_cache_ttl_s`."""
        return self.cache_dir / "pages"

    @property
    def state_dir(self) -> Path:
        return self.root / "state"

    @property
    def searxng_settings(self) -> Path:
        """Where the user's own version of the container's settings is looked for."""
        return self.root / "searxng" / "default-settings.yml"

    @property
    def prompts_dir(self) -> Path:
        """Where the user's own versions of the prompts are looked for."""
        return self.root / "prompts"

    @property
    def cache_dir(self) -> Path:
        """What may be deleted at any time."""
        if self.origin.cache and not self._has_moved():
            return self.origin.cache
        return self.home / "cache" if self.home else nexi_cache()

    def _has_moved(self) -> bool:
        """Whether another home was set after loading: then nothing is written at the old one."""
        return self.home != self.origin.home


DEFAULT_CONFIG: dict[str, Any] = Config().to_dict()
