"""Config: the settings, and what follows from them. A value, built once and passed whole.

It is loaded from the file, overridden by the environment, with notes for the user, and saved with the content that is not ours.
The prompts of one search are made of it, with the instructions and prompt files of the user.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from nexi.config._environment import nexi_cache, nexi_home, override_roles, read_keys, read_overlay
from nexi.config._values import (
    DEFAULT_BASE_URL,
    EFFORT_LEVELS,
    EXTRACTIVE,
    KEY_VARIABLES,
    KEYED_BACKENDS,
    OLD_NAMES,
    ROLES,
    EndpointRole,
    Keys,
    deduplicate_keys,
    find_key_owner,
    hide_password,
    mask_key,
    parse_keys,
    parse_names,
    parse_site,
    to_json_value,
)
from nexi.config.fields import (
    ALWAYS_SAVED,
    CHECKS,
    DECLARATIONS,
    SAVED,
    UNSAVED,
    Origin,
    Settings,
    describe_unknown_keys,
    find_problems,
    quote_value,
    refuse_problems,
)
from nexi.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from nexi.net.trust import Trust

EMBEDDING_MODEL = "text-embedding-3-small"
EMBEDDING_LIBRARIES = ("e5:", "minilm:", "model2vec:", "fastembed:")  # prefixes of models that run on this machine
FREE_BACKENDS = ("services",)
ALWAYS = "always"  # value of serve_token
GUEST_PERSON = "guest"  # whose files are those of callers that a server does not know
GUEST_KEEP_DAYS = 1
PRIVATE_BACKENDS = ("ripgrep",)  # they search files of the owner
EDIT_FIX = "run `nexi --edit-config` to fix it, or delete the file to start from the defaults"
MAX_FILE_BYTES = 1_000_000
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
        refuse_problems("a setting cannot be used", find_problems(values))
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
        refuse_problems("the configuration cannot be used", problems)
        return cls(**select_settings(data), notes=tuple(describe_unknown_keys(data)))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, keys in clear text. Keys from the environment are not included."""
        return {name: to_json_value(getattr(self, name)) for name in SAVED}

    @_with_parameters_of(Settings.__init__)
    def override(self, **changes: Any) -> Config:
        """A copy in which these settings win; None changes nothing. Raises ConfigError."""
        values = {OLD_NAMES.get(k, k): v for k, v in changes.items() if v is not None}
        problems = find_problems(values) + describe_unknown_keys({k: v for k, v in values.items() if k not in UNSAVED})
        refuse_problems("a setting cannot be used", problems)
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
        return self.embedding_model if self.embedding_model.startswith(EMBEDDING_LIBRARIES) else ""

    def embedding_endpoint(self) -> Endpoint | None:
        """Where texts are turned into vectors; None if no endpoint is set. A model alone means the main address."""
        base_url = self.embedding_base_url or (self.base_url if self.embedding_model else "")
        if not base_url or self.embedding_library:
            return None
        own = next(iter(self.keys_for("embedding")), "")
        keys = self._endpoint_keys(base_url, {"api_key": own, "base_url": self.embedding_base_url})
        return Endpoint(base_url, keys, self.embedding_model or EMBEDDING_MODEL, self.max_context)

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
        others = tuple(name for name in KEYED_BACKENDS if self.keys_for(name)) or FREE_BACKENDS
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
            data["environment_keys"] = {KEY_VARIABLES[k]: mask_key(v) for k, v in self.origin.env_keys.items()}
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
        chain = tuple(name for name in parse_names(self.search_backend) if name not in PRIVATE_BACKENDS)
        return self.override(
            person=GUEST_PERSON,
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
            runs_keep_days=min(self.runs_keep_days, GUEST_KEEP_DAYS),
        )

    @property
    def always_wants_token(self) -> bool:
        return self.serve_token == ALWAYS

    @property
    def is_for_guests(self) -> bool:
        return self.person == GUEST_PERSON

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


def load_config(path: Path | str | None = None, env: Mapping[str, str] | None = None) -> Config:
    """Load the file, overridden by the environment. A missing file is no error; an unusable one is. Raises ConfigError."""
    # with a path, all other files are beside it, unless NEXI_HOME is set
    env = os.environ if env is None else env
    place = Path(path).absolute() if path is not None else None
    home = nexi_home(env) if place is None or env.get("NEXI_HOME", "").strip() else place.parent
    cache = nexi_cache(env) if place is None else home / "cache"
    place = place or home / "config.json"
    data = read_file(place)
    if problems := find_problems(data):
        raise ConfigError(f"{place} has settings that cannot be used", cause="; ".join(problems), fix=EDIT_FIX)
    settings = select_settings(data)
    overlay = read_overlay(env, settings.get("roles") or {})
    origin = Origin(place, data, overlay, read_keys(env), home, cache)
    config = Config(**{**settings, **overlay}, home=home, origin=origin)
    return replace(config, notes=tuple(_find_notes(config)))


def read_file(path: Path) -> dict[str, Any]:
    """The object in the file; empty where there is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("it is not a regular file")  # noqa: TRY301 - as a file that cannot be opened
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        fix = f"make {path} a file that you may read, or set NEXI_HOME to another folder"
        raise ConfigError(f"{path} cannot be read", cause=cause, fix=fix) from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is too large", cause=f"it has more than {MAX_FILE_BYTES:,} bytes", fix=EDIT_FIX)
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        cause = f"byte {error.start} does not belong there"
        raise ConfigError(f"{path} is not UTF-8 text", cause=cause, fix=f"save it as UTF-8, or {EDIT_FIX}") from error
    except json.JSONDecodeError as error:
        cause = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise ConfigError(f"{path} is not valid JSON", cause=cause, fix=EDIT_FIX) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON", cause=str(error), fix=EDIT_FIX) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is no configuration", cause=f"it holds {quote_value(data)} and not an object", fix=EDIT_FIX)
    return data


def _find_notes(config: Config) -> Iterator[str]:
    """Warnings that stop nothing."""
    origin = config.origin
    yield from (f"{origin.path}: {problem}" for problem in describe_unknown_keys(origin.file))
    roles = origin.file.get("roles") or {}
    has_keys = any(origin.file.get(name) for name in ("api_key", "jina_key", "api_keys"))
    has_keys = has_keys or any(role.get("api_key") for role in roles.values())
    if has_keys and origin.path and os.name != "nt" and origin.path.exists() and origin.path.stat().st_mode & 0o077:
        yield f"{origin.path} holds keys and other users can read it; run: chmod 600 {origin.path}"
    if config.api_key and not config._is_explicit("api_key") and not config._file_key():
        yield f"the api_key in {origin.path} is not sent to {parse_site(config.base_url)[1]}: it belongs to another address"
    if "openai" in origin.env_keys and config.model != EXTRACTIVE and config.endpoint("answer").is_extractive:
        yield (
            "OPENAI_API_KEY is not used: it goes only to OpenAI or to an address you set; "
            "for OpenAI set OPENAI_BASE_URL=https://api.openai.com/v1 and NEXI_MODEL"
        )


def save_config(config: Config, path: Path | str | None = None) -> Path:
    """Write the settings atomically, readable by the owner only. Raises StoreError."""
    # settings from the environment are not written, and unknown content of the file is kept
    from nexi.files import replace_file

    place = Path(path) if path is not None else config.config_path
    before = config.origin.file
    data = {k: v for k, v in before.items() if k not in CHECKS}
    file_settings = select_settings(before)
    for name, value in config.to_dict().items():
        if name in config.origin.env and value == to_json_value(config.origin.env[name]):
            value = file_settings.get(name, DEFAULT_CONFIG[name])
        if name in ALWAYS_SAVED or name in file_settings or value != DEFAULT_CONFIG[name]:
            data[name] = value
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        place = place.resolve()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place, text.encode("utf-8", "backslashreplace"), is_durable=True)
    except OSError as error:
        fix = "check that the folder can be written and the disk is not full, or set NEXI_HOME to another folder"
        raise StoreError(f"{place} was not saved", cause=error.strerror or str(error), fix=fix) from error
    return place


def change_config(changes: Mapping[str, Any], *, remove: Iterable[str] = (), path: Path | str | None = None) -> Path:
    """Set and remove settings of the file, and leave the rest of it as it is. Raises ConfigError or StoreError."""
    # the changed file is checked, so that an unusable setting can be corrected; the environment is not read
    place = Path(path).absolute() if path is not None else nexi_home() / "config.json"
    removals = {*remove, *changes}
    if "base_url" in removals:
        removals.add("page_base_url")
    old = {name for name, new in OLD_NAMES.items() if new in removals}
    data = {**{k: v for k, v in read_file(place).items() if k not in removals | old}, **changes}
    problems = find_problems(data) + describe_unknown_keys({k: v for k, v in changes.items() if k not in CHECKS})
    refuse_problems("nothing was changed", problems)
    config = Config(**select_settings(data), home=place.parent, origin=Origin(place, data, home=place.parent))
    return save_config(config, place)


def read_file_settings(path: Path | None = None) -> dict[str, Any]:
    """The settings of the file under their present names, unchecked. Raises ConfigError."""
    return select_settings(read_file(path or nexi_home() / "config.json"))


def get_system_prompt(effort: str, max_iter: int | None = None, *, today: str = "", config: Config | None = None) -> str:
    """The system prompt of the answering model; the instructions in the config, if any, come first."""
    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"there is no effort level {effort!r}", fix=f"use one of {', '.join(EFFORT_LEVELS)}")
    level = EFFORT_LEVELS[effort]
    most = level["max_iter"] if max_iter is None else max_iter
    values = {"today": today or "unknown", "effort": effort, "description": level["description"], "max_iter": most}
    if config and config.system_prompt.strip():
        return _render_prompt("custom_system", config, instructions=config.system_prompt.strip(), **values)
    return _render_prompt("system", config, **values)


def get_compaction_prompt(original_query: str, content: str, target_words: int = 5000, *, config: Config | None = None) -> str:
    return _render_prompt("compaction", config, original_query=original_query, content=content, target_words=target_words)


def get_extractor_prompt(query: str, instructions: str = "", *, config: Config | None = None) -> str:
    """The prompt for reading one page, which follows in the next message."""
    return _render_prompt("extractor", config, query=query, instructions=instructions or "Answer the question.")


def _render_prompt(name: str, config: Config | None, **values: object) -> str:
    from nexi.prompts import render

    return render(name, folder=config.prompts_dir if config else None, **values)
