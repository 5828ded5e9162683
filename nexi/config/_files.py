"""The file: loaded and overridden by the environment, with notes for the user; saved with the content that is not ours."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nexi.config._checks import quote_value
from nexi.config._environment import nexi_cache, nexi_home, read_keys, read_overlay
from nexi.config._names import EDIT_FIX, EXTRACTIVE, OLD_NAMES
from nexi.config._values import parse_site, to_json_value
from nexi.config.fields import ALWAYS_SAVED, CHECKS, Origin, describe_unknown_keys, find_problems, suggest_fix
from nexi.config.settings import DEFAULT_CONFIG, Config, select_settings
from nexi.errors import ConfigError, StoreError

MAX_FILE_BYTES = 1_000_000


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
    if problems:
        raise ConfigError("nothing was changed", cause="; ".join(problems), fix=suggest_fix(problems))
    config = Config(**select_settings(data), home=place.parent, origin=Origin(place, data, home=place.parent))
    return save_config(config, place)


def read_file_settings(path: Path | None = None) -> dict[str, Any]:
    """The settings of the file under their present names, unchecked. Raises ConfigError."""
    return select_settings(read_file(path or nexi_home() / "config.json"))
