"""Roles: which settings of a role remain when a stronger source names the model or the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexi.config._names import EXTRACTIVE


def override_roles(roles: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The roles without what `changes` replaces in the answer role.

    The extractive model means that no model is called, so it replaces every role.
    """
    if changes.get("model") == EXTRACTIVE:
        return {}
    names = {"model"} & set(changes) | ({"base_url", "api_key"} if "base_url" in changes else set())
    return {role: {k: v for k, v in part.items() if role != "answer" or k not in names} for role, part in roles.items()}
