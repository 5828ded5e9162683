"""The environment: settings and keys from its variables, the folders for files, the editor, the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nexi.config._values import EXTRACTIVE, JUDGE_VARIABLE, KEY_VARIABLES, freeze_value
from nexi.config.fields import CHECKS, DECLARATIONS, FIELD_VARIABLES, Settings
from nexi.errors import ConfigError

BOOLEANS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}
READER_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT", "PATHEXT"),
    *("PYTHONHOME", "PYTHONPATH", "LANG", "LC_ALL", "LC_CTYPE", "TESSDATA_PREFIX"),
)


def read_overlay(env: Mapping[str, str], roles: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that the environment sets; an empty variable sets nothing."""
    overlay: dict[str, Any] = {}
    for name, variables in FIELD_VARIABLES.items():
        if variable := next((variable for variable in variables if env.get(variable, "").strip()), ""):
            value = _check_variable(name, variable, _parse_variable(name, env[variable].strip()))
            overlay[name] = DECLARATIONS[name].normalize(value)
    if not wants_color(env):
        overlay["color"] = False
    new_roles = override_roles(roles, overlay)
    if judge := _check_variable("model", JUDGE_VARIABLE, env.get(JUDGE_VARIABLE, "").strip()):
        new_roles["judge"] = {**new_roles.get("judge", {}), "model": judge}
    return overlay if new_roles == roles else {**overlay, "roles": freeze_value(new_roles)}


def _parse_variable(name: str, value: str) -> Any:
    """The boolean or number in the text, if the setting is one; text that is neither stays, and fails the check."""
    default = getattr(Settings, name, "")
    if isinstance(default, bool):
        return BOOLEANS.get(value.lower(), value)
    with suppress(ValueError):
        return type(default)(value) if isinstance(default, int | float) else value
    return value


def override_roles(roles: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The roles without what `changes` replaces in the answer role."""
    # the extractive model means that no model is called, so it replaces every role
    if changes.get("model") == EXTRACTIVE:
        return {}
    names = {"model"} & set(changes) | ({"base_url", "api_key"} if "base_url" in changes else set())
    return {role: {k: v for k, v in part.items() if role != "answer" or k not in names} for role, part in roles.items()}


def read_keys(env: Mapping[str, str]) -> dict[str, str]:
    keys = {provider: _check_variable("api_key", name, env.get(name, "").strip()) for provider, name in KEY_VARIABLES.items()}
    return {provider: key for provider, key in keys.items() if key}


def _check_variable(name: str, variable: str, value: Any) -> Any:
    """The value, if the setting `name` can have it. Raises ConfigError."""
    if value != "" and (problems := list(CHECKS[name](variable, value))):
        fix = f"correct {variable} in your environment, or unset it"
        raise ConfigError("a variable of the environment cannot be used", cause="; ".join(problems), fix=fix)
    return value


def editor_command(env: Mapping[str, str] = os.environ, *, windows: bool = os.name == "nt") -> list[str]:
    """The user's editor with its arguments. It is no setting, because it is needed most when the file is broken."""
    import shlex

    try:
        words = shlex.split(env.get("EDITOR", ""), posix=not windows)
    except ValueError as error:
        raise ConfigError("EDITOR cannot be used", cause=str(error), fix="close the quotes in EDITOR, or unset it") from error
    return words or (["notepad"] if windows else ["vi"])


def reader_environment() -> dict[str, str]:
    """What a process that reads strangers' documents gets of the environment: paths and languages, no key."""
    return {name: os.environ[name] for name in READER_VARIABLES if name in os.environ}


def wants_color(env: Mapping[str, str] = os.environ) -> bool:
    return not env.get("NO_COLOR") and not is_dumb_terminal(env)


def is_dumb_terminal(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal can only print lines of text."""
    return env.get("TERM", "") == "dumb"


def nexi_home(env: Mapping[str, str] = os.environ, *, windows: bool = os.name == "nt") -> Path:
    """The folder for all files: NEXI_HOME, else the user's data folder."""
    if folder := env.get("NEXI_HOME", "").strip():
        is_in_home = folder == "~" or folder.startswith("~/")
        return _user_folder(env) / folder[2:] if is_in_home else Path(folder).absolute()
    if windows:
        local = env.get("LOCALAPPDATA", "").strip()
        return Path(local) / "nexi" if local else _user_folder(env, windows=True) / "AppData" / "Local" / "nexi"
    data = Path(env.get("XDG_DATA_HOME", "").strip())
    return (data if data.is_absolute() else _user_folder(env) / ".local" / "share") / "nexi"


def nexi_cache(env: Mapping[str, str] = os.environ, *, windows: bool = os.name == "nt") -> Path:
    if windows or env.get("NEXI_HOME", "").strip():
        return nexi_home(env, windows=windows) / "cache"
    cache = Path(env.get("XDG_CACHE_HOME", "").strip())
    return (cache if cache.is_absolute() else _user_folder(env) / ".cache") / "nexi"


def _user_folder(env: Mapping[str, str], *, windows: bool = False) -> Path:
    name = "USERPROFILE" if windows else "HOME"
    if folder := env.get(name, "").strip():
        return Path(folder).absolute()
    fix = "set NEXI_HOME to a folder you can write to, for example NEXI_HOME=/var/lib/nexi"
    raise ConfigError("nexi does not know where to keep its files", cause=f"{name} is not set", fix=fix)
