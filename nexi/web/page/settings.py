"""The settings that the owner of a server changes in the browser: model, search service and limits.

Above, the page; below, the config file and `nexi.doctor`, which tests settings before they are saved. Keys go in and never come
out. The guard before all routes checks Host, Origin and token; a server of several people or processes has no such settings.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from starlette.requests import Request
from starlette.responses import Response

from nexi.app import Nexi
from nexi.config import DEFAULT_BASE_URL, EXTRACTIVE, Config, change_config, parse_site, read_file_settings
from nexi.errors import ConfigError
from nexi.web.contract import Contract
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body, told_reply

CONTRACT = Contract()
TEXTS = ("base_url", "model", "searxng_url", "default_effort")
SECRETS = ("api_key", "jina_key")
LIMITS = ("max_cost", "max_tokens", "time_target")
MAX_LISTED_MODELS = 500
Text = Annotated[str, Meta(max_length=2000)] | UnsetType


class _SettingsChange(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that were typed; null takes a limit away."""

    base_url: Text = UNSET
    model: Text = UNSET
    searxng_url: Text = UNSET
    default_effort: Text = UNSET
    api_key: Text = UNSET
    jina_key: Text = UNSET
    max_cost: float | UnsetType | None = UNSET
    max_tokens: int | UnsetType | None = UNSET
    time_target: float | UnsetType | None = UNSET


@CONTRACT.serve("GET /page/settings")
async def _show_settings(request: Request) -> Response:
    """The values without keys, which keys there are, and what the environment decides."""
    config: Config = request.app.state.nexi.config
    values = {name: getattr(config, name) for name in (*TEXTS, *LIMITS)}
    for name in ("base_url", "searxng_url"):  # what an address has beside scheme, host and path may be secret
        parts = urlsplit(values[name])
        values[name] = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    keys = {name: bool(getattr(config, name)) for name in SECRETS}
    environment = sorted(set(config.origin.env) & {*TEXTS, *SECRETS, *LIMITS})
    about = {"editable": request.app.state.edits_settings, "file": str(config.config_path)}
    return json_reply({"values": values, "has": keys, "environment": environment, **about})


@CONTRACT.serve("POST /page/settings/models")
async def _list_models(request: Request) -> Response:
    """The models at the address that was typed; `problem` says why there are none."""
    from nexi.app.local_models import list_endpoint_models

    config, _ = await _read_changes(request)
    any_model = config.override(model="any") if config.model == EXTRACTIVE else config
    names, error = await list_endpoint_models(any_model)
    return told_reply({"models": names[:MAX_LISTED_MODELS], "problem": str(error) if error else ""})


@CONTRACT.serve("POST /page/settings/test")
async def _test_settings(request: Request) -> Response:
    """Ask the model and every search service once, with what was typed."""
    from nexi.doctor import examine_settings

    (config, _), state = await _read_changes(request), request.app.state
    if state.examining.locked():
        raise build_refusal(409, "examining", "the checks are already running", fix="wait for them", retry_after=5)
    async with state.examining:
        checks = await examine_settings(config)
    return told_reply({"checks": [check.as_json() for check in checks]})


@CONTRACT.serve("POST /page/settings")
async def _save_settings(request: Request) -> Response:
    """Save what was typed, and use it for every run that begins from now on."""
    (config, changes), nexi = await _read_changes(request), request.app.state.nexi
    values = {name: value for name, value in changes.items() if value not in (None, "")}
    names = [name for name, value in changes.items() if value is None or (value == "" and name == "searxng_url")]
    path = nexi.config.config_path
    if "base_url" in values:
        values |= {"page_base_url": config.page_base_url} if config.page_base_url else {}
        former_url = (await asyncio.to_thread(read_file_settings, path)).get("base_url", DEFAULT_BASE_URL)
        if parse_site(former_url) != parse_site(config.base_url):
            names.append("api_key")  # the key in the file belongs to the former address
    await asyncio.to_thread(change_config, values, remove=names, path=path)
    nexi.reconfigure(config)
    return await _show_settings(request)


async def _read_changes(request: Request) -> tuple[Config, dict[str, Any]]:
    """The config with what was typed, and the changes. No key goes to another address than before. Raises Refused."""
    if not request.app.state.edits_settings:
        message, fix = "this server's settings are not changed in the browser", "use nexi config on the server"
        raise build_refusal(403, "not_editable", message, fix=fix)
    nexi: Nexi = request.app.state.nexi
    changes: dict[str, Any] = to_builtins(await read_body(request, _SettingsChange))
    # an empty key means the stored one
    values = {name: value for name, value in changes.items() if value is not None and (value or name not in SECRETS)}
    if parse_site(address := values.get("base_url", nexi.config.base_url)) != parse_site(nexi.config.base_url):
        values = {"api_key": "", **values, "page_base_url": address}  # the key belongs to the former address
    unset: dict[str, Any] = {name: None for name in LIMITS if changes.get(name, 0) is None}
    try:
        return replace(nexi.config.override(**values), **unset), changes
    except ConfigError as error:
        raise bad_request(str(error), fix=error.fix) from error
