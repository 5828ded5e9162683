"""Values of settings: the form in which they are kept, and their form in JSON. What a setting means is not known here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nexi.config._names import Keys


def freeze_value(value: Any) -> Any:
    """A copy of our own: text trimmed, lists as tuples."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        return tuple(freeze_value(item) for item in value)
    return {str(k): freeze_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def to_json_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    return {k: to_json_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def parse_key(value: str | None) -> str:
    return (value or "").strip()


def parse_prompt(value: str | None) -> str:
    """The text as it is: its white space is the user's."""
    return value or ""


def parse_names(value: str | Iterable[str]) -> tuple[str, ...]:
    """A name, names separated by commas, or a list of names."""
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def parse_keys(value: str | Iterable[str]) -> Keys:
    return (value,) if isinstance(value, str) else tuple(value)


def deduplicate_keys(*keys: str) -> Keys:
    return tuple(dict.fromkeys(key for key in keys if key))
