"""Saving: the file is written atomically, and keeps content that is not ours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nexi.config._environment import nexi_home
from nexi.config._files import read_file
from nexi.config._names import OLD_NAMES
from nexi.config._validation import describe_unknown_keys, find_problems, suggest_fix
from nexi.config._values import to_json_value
from nexi.config.fields import ALWAYS_SAVED, CHECKS, Origin
from nexi.config.settings import DEFAULT_CONFIG, Config, select_settings
from nexi.errors import ConfigError, StoreError


def save_config(config: Config, path: Path | str | None = None) -> Path:
    """Write the settings atomically, readable by the owner only. Raises StoreError.

    Settings from the environment are not written, and unknown content of the file is kept.
    """
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


def change_config(
    changes: Mapping[str, Any],
    *,
    remove: Iterable[str] = (),
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
) -> Path:
    """Set and remove settings of the file, and leave the rest of it as it is. Raises ConfigError or StoreError.

    The changed file is checked, so that an unusable setting can be corrected. The environment is not read.
    """
    env = os.environ if env is None else env
    place = Path(path).absolute() if path is not None else nexi_home(env) / "config.json"
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


def read_file_settings(path: Path | str | None = None, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The settings of the file under their present names, unchecked. Raises ConfigError."""
    env = os.environ if env is None else env
    return select_settings(read_file(Path(path).absolute() if path is not None else nexi_home(env) / "config.json"))
