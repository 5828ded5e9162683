"""The scope `local`: a config under which nothing leaves this machine. Every door's run passes here; no door decides it."""

from __future__ import annotations

from typing import Any

from nexi.app.factory import fetches_its_model
from nexi.config import EXTRACTIVE, ROLES, Config
from nexi.errors import ConfigError
from nexi.net.addresses import is_loopback_url

MODEL_NOT_ASKED = "a local question asks no model on another machine: the built-in extractive model answers with passages"
ROLE_NOT_ASKED = "a local question asks no model on another machine: the built-in one checks and extracts in its place"


def restrict_to_local(config: Config) -> tuple[Config, tuple[str, ...]]:
    """The config without any model, embedder or collector of traces elsewhere, and what the user should know about that. Raises
    ConfigError when the knowledge store itself is on another machine."""
    if config.qdrant_url and not config.person and not is_loopback_url(config.qdrant_url):  # a team's store is its own
        fix = "ask without --local, or without only_local"
        raise ConfigError("a local question cannot use this knowledge store", cause="qdrant_url is on another machine", fix=fix)
    changes: dict[str, Any] = {"knowledge": True}
    embedding = config.embedding_endpoint()
    if (embedding and not is_loopback_url(embedding.base_url)) or fetches_its_model(config):
        changes["use_hybrid_search"] = False
    addresses = {"otel_endpoint": config.otel_endpoint, "webhook_url": config.webhook_url}
    changes |= {name: "" for name, url in addresses.items() if url and not is_loopback_url(url)}
    endpoints = {role: config.endpoint(role) for role in ROLES}
    remote = [role for role, at in endpoints.items() if not at.is_extractive and not is_loopback_url(at.base_url)]
    if not remote:
        return config.override(**changes), ()
    if "answer" in remote:
        return config.override(**changes, model=EXTRACTIVE), (MODEL_NOT_ASKED,)
    # A person's own model on this machine goes on answering when only a helper of it is elsewhere.
    built_in: dict[str, Any] = {role: {"model": EXTRACTIVE} for role in remote}
    return config.override(**changes, roles={**config.roles, **built_in}), (ROLE_NOT_ASKED,)
