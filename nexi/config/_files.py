"""Loading: the file, overridden by the environment, and notes about both for the user."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nexi.config._addresses import parse_site
from nexi.config._checks import quote_value
from nexi.config._environment import nexi_cache, nexi_home, read_keys, read_overlay
from nexi.config._names import EDIT_FIX, EXTRACTIVE
from nexi.config._validation import describe_unknown_keys, find_problems
from nexi.config.fields import Origin
from nexi.config.settings import Config, select_settings
from nexi.errors import ConfigError

MAX_FILE_BYTES = 1_000_000


def load_config(path: Path | str | None = None, env: Mapping[str, str] | None = None) -> Config:
    """Load the file, overridden by the environment. A missing file is no error; an unusable one is. Raises ConfigError.

    With a `path`, all other files are beside it, unless NEXI_HOME is set.
    """
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
        raw = _read_bytes(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        fix = f"make {path} a file that you may read, or set NEXI_HOME to another folder"
        raise ConfigError(f"{path} cannot be read", cause=cause, fix=fix) from error
    return _parse_object(path, raw)


def _read_bytes(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is too large", cause=f"it has more than {MAX_FILE_BYTES:,} bytes", fix=EDIT_FIX)
    return raw


def _parse_object(path: Path, raw: bytes) -> dict[str, Any]:
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
