"""The page's view of the set-up: which parts are configured, and what the doctor finds. Never a key, nor a part of one.

Above, the page; below, the config and `nexi.doctor`, whose checks have a deadline each and all together have one more here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from nexi import __version__
from nexi.config import KEYED_BACKENDS, Config, Endpoint, name_service
from nexi.errors import StoreError
from nexi.notices import Notice
from nexi.web.contract import Contract
from nexi.web.payload import build_refusal, told_reply

if TYPE_CHECKING:
    from nexi.doctor import DoctorReport

CONTRACT = Contract()
DOCTOR_TIMEOUT_S = 30.0
SETUP_FIX = "nexi config setup"
UNTESTED = Notice("part.untested", "tested with its first use")


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
