"""The page's view of the set-up: which parts are configured, what the doctor finds, and the settings that the owner changes.

Above, the page; below, the config file and `nexi.doctor`, whose checks have a deadline each and all together have one more
here. Keys go in and never come out, nor a part of one. The guard before all routes checks Host, Origin and token; a server of
several people or processes has no settings to change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from starlette.requests import Request
from starlette.responses import Response

from nexi import __version__
from nexi.app import Nexi
from nexi.config import (
    DEFAULT_BASE_URL,
    EXTRACTIVE,
    KEYED_BACKENDS,
    Config,
    Endpoint,
    change_config,
    name_service,
    parse_site,
    read_file_settings,
)
from nexi.errors import ConfigError, StoreError
from nexi.notices import Notice
from nexi.web.contract import Contract
from nexi.web.payload import bad_request, build_refusal, json_reply, read_body, told_reply

if TYPE_CHECKING:
    from nexi.doctor import DoctorReport

CONTRACT = Contract()
DOCTOR_TIMEOUT_S = 30.0
SETUP_FIX = "nexi config setup"
UNTESTED = Notice("part.untested", "tested with its first use")
TEXTS = ("base_url", "model", "searxng_url", "default_effort")
SECRETS = ("api_key", "jina_key")
LIMITS = ("max_cost", "max_tokens", "time_target")
MAX_LISTED_MODELS = 500
Text = Annotated[str, Meta(max_length=2000)] | UnsetType


@CONTRACT.serve("GET /page/setup")
async def _show_setup(request: Request) -> Response:
    parts = await asyncio.to_thread(lambda: list(_parts_of(request.app.state.nexi.config)))
    return told_reply({"parts": [{"name": n, "on": on, "value": value, "fix": fix} for n, on, value, fix in parts]})


def _parts_of(config: Config) -> Iterator[tuple[str, bool, str, str]]:
    """Name, whether it is configured, what it is, and what to do where it is not."""
    answer = config.endpoint("answer")
    fix = SETUP_FIX if answer.is_extractive else ""
    yield Notice("part.model", "Model"), not answer.is_extractive, _describe_model(answer), fix
    for role in ("extract", "judge"):
        if (other := config.endpoint(role)) != answer:
            yield Notice("part.model_to", "Model to {role}", role=role), not other.is_extractive, _describe_model(other), ""
    yield from _search_rows(config)
    fetchers = config.fetch_chain()
    fix = "" if fetchers else "nexi config set content_fetcher http"
    yield Notice("part.pages", "Pages"), bool(fetchers), ", ".join(fetchers) or "none", fix
    on = bool(config.knowledge)
    one_file = Notice("part.one_file", "one file, beside the runs")
    where = f"Qdrant at {_place_of(config.qdrant_url)}" if config.qdrant_url else one_file
    nothing = Notice("part.nothing_kept", "off: nothing that is read is kept")
    yield Notice("part.knowledge", "Knowledge"), on, where if on else nothing, "" if on else "nexi config set knowledge true"
    vectors: str = Notice("part.own_vectors", "MiniLM or static vectors where installed, else words alone")
    if embedding := config.embedding_endpoint():
        vectors = f"{embedding.model} at {_place_of(embedding.base_url)}"
    if not config.use_hybrid_search:
        vectors = Notice("part.no_vectors", "off: words alone are compared")
    yield Notice("part.vectors", "Vectors"), bool(config.use_hybrid_search), vectors, ""
    yield from _proof(config)
    count = Notice("part.known", "{n} known", n=len(config.prices))
    price = count if config.prices else Notice("part.no_prices", "unknown: costs are not shown")
    fix = "" if config.prices else "nexi config set prices.MODEL.input 1.0"
    yield Notice("part.prices", "Prices"), bool(config.prices), price, fix
    is_guarded = bool(config.token) or config.always_wants_token
    required = Notice("part.token_asked", "asked of every client")
    own = Notice("part.token_own", "yours; who does not have it can only ask the web")
    yield Notice("part.token", "Token"), True, required if is_guarded else own, ""
    yield Notice("part.kept", "Kept in"), True, str(config.root), ""
    yield Notice("part.version", "Version"), True, f"nexi {__version__}", ""


def _describe_model(endpoint: Endpoint) -> str:
    if endpoint.is_extractive:
        return Notice("part.no_model", "none: the built-in extractive model answers with passages")
    values = {"model": endpoint.model, "place": _place_of(endpoint.base_url), "n": f"{endpoint.max_context:,}"}
    if endpoint.api_keys:
        return Notice("part.model_keyed", "{model} at {place}, with a key, {n} tokens", **values)
    return Notice("part.model_open", "{model} at {place}, without a key, {n} tokens", **values)


def _place_of(url: str) -> str:
    """Host and port of an address: what stands before and after them may be secret."""
    return urlsplit(url).netloc.rpartition("@")[2] or "an address of its own"


def ready_services(config: Config) -> tuple[str, ...]:
    """The search services that need nothing more to be asked."""
    rows = zip(config.search_chain(), _search_rows(config), strict=True)
    return tuple(name for name, (_, is_ready, _, _) in rows if is_ready)


def _search_rows(config: Config) -> Iterator[tuple[str, bool, str, str]]:
    for name in config.search_chain():
        title = Notice("part.search", "Search {service}", service=name_service(name))
        if name == "searxng":
            where = _place_of(config.searxng_url) if config.searxng_url else Notice("part.no_address", "no address yet")
            fix = "" if config.searxng_url or config.searxng_autostart else "nexi config set searxng_url http://127.0.0.1:8080"
            yield title, not fix, where, fix
        elif name in KEYED_BACKENDS:
            has_key = bool(config.keys_for(name))
            state = Notice("part.keyed", "with a key") if has_key else Notice("part.no_key", "no key yet")
            yield title, has_key, state, "" if has_key else f"nexi config set api_keys.{name}"
        else:
            yield title, True, Notice("part.keyless", "needs no key"), ""


def _proof(config: Config) -> Iterator[tuple[str, bool, str, str]]:
    """Who says whether passages support a sentence, with the figure of the test."""
    from nexi.app.pair_models import describe_grade, installed_model, kept_judge_grade, kept_model_grade, model_root

    if not config.endpoint("judge").is_extractive:
        grade = kept_judge_grade(config)
        state: str = describe_grade(grade) if grade else UNTESTED
        state = state if config.verify_judge else Notice("part.off", "off")
        yield Notice("part.judge", "Judge"), config.verify_judge, state, "" if grade else "nexi doctor --judge"
    try:
        folder = installed_model(model_root(config))
    except StoreError as error:
        yield Notice("part.proof", "Proof model"), False, error.message, error.fix
        return
    if folder is None:
        state = Notice("part.no_proof", "none: rules and the judge check sentences")
        yield Notice("part.proof", "Proof model"), False, state, "nexi proof status"
    else:
        grade = kept_model_grade(config, folder)
        test_result = describe_grade(grade) if grade else UNTESTED
        state = Notice("joined.list", "{first}, {second}", first=folder.name, second=test_result)
        yield Notice("part.proof", "Proof model"), True, state, ""


@CONTRACT.serve("POST /page/doctor")
async def _run_doctor(request: Request) -> Response:
    """What works, what does not, why, and how to fix it. One check at a time: each asks the services once."""
    state = request.app.state
    if state.examining.locked():
        raise build_refusal(409, "examining", "the checks are already running", fix="wait for them", retry_after=5)
    async with state.examining:
        try:
            async with asyncio.timeout(state.doctor_timeout_s):
                report = await _examine(state.nexi.config)
        except TimeoutError:
            raise build_refusal(504, "timeout", "the checks took too long", fix="run nexi doctor in a terminal") from None
    return told_reply(report.as_json())


async def _examine(config: Config) -> DoctorReport:
    """What `nexi doctor` says and, where the open services are asked, a row for each of them."""
    from nexi.doctor import DoctorReport, examine_services, examine_setup

    if "services" not in config.search_chain():
        return await examine_setup(lambda: config)
    async with asyncio.TaskGroup() as tasks:
        setup = tasks.create_task(examine_setup(lambda: config))
        services = tasks.create_task(examine_services(lambda: config))
    return DoctorReport((*setup.result().checks, *services.result().checks))


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
