"""Validation: every problem of a set of settings at once, and the setting that an unknown name was probably meant to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexi.config._checks import quote_value
from nexi.config._names import REQUIRED
from nexi.config.fields import CHECKS


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are allowed."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {quote_value(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + find_problems(data)
    return not problems, problems


def find_problems(data: Mapping[str, Any]) -> list[str]:
    """One line for each value that its setting cannot have."""
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def suggest_fix(problems: list[str]) -> str:
    return "correct the setting named here" if len(problems) == 1 else "correct the settings named here"


def describe_unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting that does not exist, with the one that was probably meant."""
    lines = []
    for key in (str(key) for key in data if key not in CHECKS):
        import difflib

        close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
        lines.append(f"unknown setting {quote_value(key)}" + (f"; did you mean {close[0]}?" if close else ""))
    return lines
