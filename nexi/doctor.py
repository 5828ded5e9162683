"""What works, what does not, and how to mend it: the checks behind `nexi doctor`.

A door: it asks the app's own ports the way a search would, once and small, and turns every error into a line with a cause
and a fix. Each check has a deadline and stands alone; independent ones run side by side. Nothing is changed, and no key is
in what is said.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from nexi import __version__
from nexi.app import Nexi, SystemClock
from nexi.config import Config, load_config
from nexi.errors import ConfigError, FetchError, LLMError, NexiError, StoreError
from nexi.llm.local import PORTS, LocalServer, describe, find_servers
from nexi.ports import LLM, Clock, SearchBackend
from nexi.types import FetchLimits, Message, Query, StoreStats, ToolSpec

if TYPE_CHECKING:
    from nexi.config import EndpointRole

SCHEMA = "nexi-doctor-1"
DEADLINE_S = 5.0
MAX_PROBE_TOKENS = 256
TEST_QUERY = "encyclopedia"
PUBLIC_NAME = "example.com"
FORBIDDEN_URLS = ("http://169.254.169.254/", "http://10.0.0.1/", "http://[::1]/")
MIN_FREE_MB = 200
PLAUSIBLE_YEARS = range(2025, 2100)
MAX_SKEW_S = 300
LIBRARIES = ("httpx2", "click", "rich", "prompt_toolkit", "ada-url", "html-to-markdown", "resiliparse", "protego", "splintr-rs")
SETUP_FIX = "choose a model: nexi config setup"
PROBE_TOOL = ToolSpec(
    "report",
    "Report that you are ready.",
    {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]},
)
RUNG_MESSAGES = {
    "native": "tools work",
    "schema": "no tools, but JSON by a schema works",
    "text": "no tools and no schema, but text works",
}

Resolve: TypeAlias = Callable[[str, int], Awaitable[Any]]
ServerTime: TypeAlias = Callable[[str], Awaitable[datetime | None]]


class Check(Struct, frozen=True):
    """One line. `area` groups checks of one kind: a search needs one that is ok in each of the areas in NEEDED_AREAS."""

    name: str
    ok: bool
    message: str
    cause: str = ""
    fix: str = ""

    @property
    def area(self) -> str:
        return self.name.partition(" ")[0]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "ok": self.ok, "message": self.message, "cause": self.cause, "fix": self.fix}


NEEDED_AREAS = ("config", "model", "search", "fetch")


class DoctorReport(Struct, frozen=True):
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether a search could work."""
        return all(any(c.ok for c in self.checks if c.area == area) for area in NEEDED_AREAS)

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "ok": self.ok, "checks": [check.as_json() for check in self.checks]}


class DoctorEnvironment(Struct, frozen=True):
    """What the checks ask of the world, so that a test can answer instead."""

    clock: Clock = SystemClock()
    ports: Mapping[str, int] = msgspec.field(default_factory=lambda: PORTS)
    deadline_s: float = DEADLINE_S
    resolve: Resolve | None = None
    server_time: ServerTime | None = None
    libraries: tuple[str, ...] = LIBRARIES


DEFAULT_ENVIRONMENT = DoctorEnvironment()


async def examine_setup(
    load: Callable[[], Config] = load_config, environment: DoctorEnvironment = DEFAULT_ENVIRONMENT
) -> DoctorReport:
    """Check everything. Never raises for what is wrong with the set-up."""
    try:
        config = load()
    except NexiError as error:
        return DoctorReport(
            (_failed_check("config", error), *await _run_checks([_plan_version_check(environment)], environment))
        )
    async with Nexi(config.override(llm_max_retries=0), clock=environment.clock) as nexi:
        checks = await _run_checks(_plan_checks(nexi, environment), environment)
    hide = _secret_hider(config)
    return DoctorReport(tuple(Check(c.name, c.ok, hide(c.message), hide(c.cause), hide(c.fix)) for c in checks))


def _failed_check(name: str, error: NexiError) -> Check:
    return Check(name, False, error.message, error.cause, error.fix)


NamedCheck: TypeAlias = tuple[str, Coroutine[Any, Any, list[Check]]]


def _plan_checks(nexi: Nexi, environment: DoctorEnvironment) -> list[NamedCheck]:
    config = nexi.config
    return [
        ("config", _check_config(config)),
        *(
            ("model" if role == "answer" else f"{role} model", _check_model(nexi, role, environment))
            for role in _model_roles(config)
        ),
        *_plan_search_checks(nexi),
        ("fetch", _check_fetch(nexi)),
        ("fetch DNS", _check_dns(config, environment)),
        ("store", _check_store(config)),
        ("knowledge", _check_knowledge(nexi)),
        ("embedder", _check_embedder(nexi)),
        ("proof judge", _check_proof_judge(config)),
        ("proof model", _check_proof_model(config)),
        ("disk", _check_disk(config)),
        ("clock", _check_clock(nexi, environment)),
        _plan_version_check(environment),
    ]


async def _run_checks(work: Iterable[NamedCheck], environment: DoctorEnvironment) -> list[Check]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_with_deadline(name, check, environment.deadline_s)) for name, check in work]
    return [check for task in tasks for check in task.result()]


async def _run_with_deadline(name: str, work: Coroutine[Any, Any, list[Check]], deadline_s: float) -> list[Check]:
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError:
        return [Check(name, False, "no answer in time", f"it took more than {deadline_s:g} s", "run nexi doctor again")]
    except NexiError as error:
        return [_failed_check(name, error)]


# the settings


async def _check_config(config: Config) -> list[Check]:
    path = config.config_path
    where = f"{path}" if path.exists() else f"{path} does not exist: defaults and the environment are used"
    notes = [Check("config note", False, note, fix=_note_fix(note)) for note in config.notes]
    return [Check("config", True, where), *notes]


def _note_fix(note: str) -> str:
    mode = re.search(r"chmod 600 .+", note)
    return mode[0] if mode else "nexi --edit-config"


# models


def _model_roles(config: Config) -> list[EndpointRole]:
    """The answering model, and the reading one where it is another."""
    same = config.endpoint("extract") == config.endpoint("answer")
    return ["answer"] if same else ["answer", "extract"]


async def _check_model(nexi: Nexi, role: EndpointRole, environment: DoctorEnvironment) -> list[Check]:
    name = "model" if role == "answer" else f"{role} model"
    endpoint = nexi.config.endpoint(role)
    if endpoint.is_extractive:
        return [await _check_without_model(name, environment)]
    llm = nexi.llm(role)
    where = f"{endpoint.model} at {urlsplit(endpoint.base_url).netloc.rpartition('@')[2]}"
    listed = await _describe_listing(llm, endpoint.model)
    try:
        checks = [Check(name, True, f"{where}: {await _probe_model(llm, environment)}{listed}")]
    except LLMError as error:
        if error.code != "timeout":
            raise
        checks = [Check(name, True, f"{where}: reachable{listed}"), _slow_model_check(f"{name} speed", environment)]
    server = await describe(endpoint.base_url)  # after the request: the window of a loaded model is known
    return [*checks, *_check_window(nexi.config, role, server)]


def _slow_model_check(name: str, environment: DoctorEnvironment) -> Check:
    cause = f"it took more than {_request_timeout_s(environment):g} s; a model that is being loaded takes longer"
    return Check(name, False, "a tiny request was not answered in time", cause, "run nexi doctor again")


def _request_timeout_s(environment: DoctorEnvironment) -> float:
    return 0.7 * environment.deadline_s


async def _check_without_model(name: str, environment: DoctorEnvironment) -> Check:
    servers = await find_servers(environment.ports)
    found = [f"{s.kind} offers {s.models[0].name}" for s in servers if s.models]
    more = f"; here {' and '.join(found)}" if found else ""
    return Check(name, True, f"no model configured: the built-in extractive model answers with passages{more}", fix=SETUP_FIX)


async def _describe_listing(llm: LLM, model: str) -> str:
    """What the endpoint's own list says of the model. Not every endpoint has a list."""
    models = getattr(llm, "models", None)
    if models is None:
        return ""
    try:
        names = await models()
    except LLMError as error:
        if error.code in ("connect", "dns", "tls", "auth", "timeout"):
            raise
        return ", no list of models"
    return ", listed" if model in names or f"{model}:latest" in names else f", but not among the {len(names)} it lists"


async def _probe_model(llm: LLM, environment: DoctorEnvironment) -> str:
    """One tiny request with a tool, and which rung of the ladder answered it."""
    deadline = environment.clock.monotonic() + _request_timeout_s(environment)
    asked = Message("user", "Call the tool report with ready set to true.")
    reply = await llm.complete([asked], [PROBE_TOOL], max_tokens=MAX_PROBE_TOKENS, deadline=deadline)
    rung = getattr(getattr(llm, "dialect", None), "rung", "native")
    if rung == "native" and not reply.tool_calls:
        return "takes tools, but called none: passages in the prompt are used where it does so again"
    return RUNG_MESSAGES[rung]


def _check_window(config: Config, role: EndpointRole, server: LocalServer | None) -> list[Check]:
    """The window a local server really gives, against the one that requests are made for."""
    endpoint = config.endpoint(role)
    model = server.model(endpoint.model) if server else None
    if server is None or model is None or not model.context:
        return [Check("window", True, f"{endpoint.max_context} tokens, as max_context says")]
    size, key = model.context, "max_context" if role == "answer" else f"roles.{role}.max_context"
    if endpoint.max_context <= size:
        return [Check("window", True, f"{size} tokens at {server.kind}, max_context is {endpoint.max_context}")]
    cause = f"{server.kind} gives {endpoint.model} {size}"
    said = f"max_context is {endpoint.max_context}, more than the model has"
    return [Check("window", False, said, cause, f"nexi config set {key} {size}")]


# search and pages


def _plan_search_checks(nexi: Nexi) -> list[NamedCheck]:
    try:
        backends = nexi.backends()
    except NexiError as error:
        return [("search", _check_missing_search(error))]
    return [(f"search {backend.name}", _check_search(nexi, backend)) for backend in backends]


async def _check_missing_search(error: NexiError) -> list[Check]:
    keep = "; to keep it: nexi config set searxng_url http://127.0.0.1:8080" if "SEARXNG_URL" in error.fix else ""
    return [Check("search", False, error.message, error.cause, error.fix + keep)]


async def _check_search(nexi: Nexi, backend: SearchBackend) -> list[Check]:
    """Ask although the backend may rest after failures; an answer ends its rest."""
    hits = await backend.search(Query(TEST_QUERY))
    if breaker := nexi.ports.breaker():
        await breaker.succeeded(backend.name)
    return [Check(f"search {backend.name}", True, f"{len(hits)} result{'s' * (len(hits) != 1)} for a test query")]


async def _check_fetch(nexi: Nexi) -> list[Check]:
    """The fetchers exist, and a private address is refused by the rule and by the fetcher."""
    from nexi.fetchers.guard import AddressGuard

    config, fetchers = nexi.config, nexi.fetchers()
    guard = AddressGuard(config.allow_private)
    refused = [url for url in FORBIDDEN_URLS if _is_refused(guard.check_url, url)]
    for fetcher in fetchers if refused else ():
        await _expect_refusal(fetcher.fetch(refused[0], FetchLimits(timeout_s=DEADLINE_S)), refused[0])
    names = ", ".join(fetcher.name for fetcher in fetchers)
    browser = _check_browser() if any(fetcher.name == "crawl4ai" for fetcher in fetchers) else []
    if len(refused) < len(FORBIDDEN_URLS):
        open_to = ", ".join(url for url in FORBIDDEN_URLS if url not in refused)
        fix = "nexi config set allow_private HOST:PORT,... with exact hosts"
        wide = Check("fetch guard", False, "a wide network is open to pages", open_to, fix)
        return [Check("fetch", True, names), wide, *browser]
    proxy = (
        "; through a proxy, so addresses are checked but cannot be pinned" if config.http_proxy or config.https_proxy else ""
    )
    return [Check("fetch", True, f"{names}; private addresses are refused{proxy}"), *browser]


def _check_browser() -> list[Check]:
    from nexi.fetchers.browser import INSTALL_FIX, installed_browser, missing_parts

    if lack := missing_parts():
        return [Check("fetch crawl4ai", False, "pages that need a script cannot be read", lack, INSTALL_FIX)]
    return [Check("fetch crawl4ai", True, f"{installed_browser()} reads pages that need a script")]


def _is_refused(check: Callable[[str], object], url: str) -> bool:
    try:
        check(url)
    except FetchError:
        return True
    return False


async def _expect_refusal(fetching: Coroutine[Any, Any, object], url: str) -> None:
    try:
        await fetching
    except FetchError as error:
        if error.reason == "blocked":
            return
    raise ConfigError(f"{url} was not refused", cause="a fetcher does not obey the guard", fix="set content_fetcher to http")


async def _check_dns(config: Config, environment: DoctorEnvironment) -> list[Check]:
    if config.http_proxy or config.https_proxy:
        return [Check("fetch DNS", True, "names are resolved for the proxy too")]
    from nexi.fetchers.guard import resolve_host

    try:
        await (environment.resolve or resolve_host)(PUBLIC_NAME, 443)
    except FetchError as error:
        return [Check("fetch DNS", False, "public names are not resolved", error.cause, "check the network and its DNS")]
    return [Check("fetch DNS", True, "public names are resolved")]


# this machine


async def _check_store(config: Config) -> list[Check]:
    return await asyncio.to_thread(_check_store_sync, config)


def _check_store_sync(config: Config) -> list[Check]:
    from nexi.history import read_history

    places = (config.runs_dir, config.pages_dir, config.history_path)
    unwritable = [str(place) for place in places if not _is_writable(place)]
    if unwritable:
        fix = f"make it yours: chmod -R u+rwX {config.root}; or set NEXI_HOME to another folder"
        return [Check("store", False, "answers cannot be kept", f"not writable: {', '.join(unwritable)}", fix)]
    try:
        history = read_history(config.history_path)
    except StoreError as error:
        return [_failed_check("store", error)]
    kept = f"{config.root} is writable, {len(history.entries)} answers in the history"
    if history.damaged:
        cause = f"{history.damaged} damaged lines are skipped"
        return [Check("store", False, kept, cause, f"delete them in {config.history_path}, or all: nexi --clear-history")]
    return [Check("store", True, kept)]


async def _check_knowledge(nexi: Nexi) -> list[Check]:
    """What the knowledge store holds, and whether it is sound; one that does not exist is not made."""
    config, knowledge = nexi.config, nexi.knowledge()
    if not config.knowledge:
        return [Check("knowledge", True, "off: nothing that is read is kept", fix="nexi config set knowledge true")]
    if not knowledge.may_hold_something():
        return [Check("knowledge", True, f"empty: {config.knowledge_path} is made with the first page that is read")]
    try:
        store = await knowledge.opened()
        await store.lexical("nexi", count=1)
        stats = await store.stats()
    except StoreError as error:
        return [Check("knowledge", False, error.message, error.cause, error.fix)]
    held = f"{stats.sources:,} sources, {stats.chunks:,} passages, {stats.bytes / 1e6:,.1f} MB in {store.name}"
    if stats.damage:
        return [Check("knowledge", False, held, stats.damage, "nexi doctor --repair")]
    if await knowledge.is_full():
        fix = f"nexi sources rm URL forgets some, or: nexi config set knowledge_max_mb {config.knowledge_max_mb * 2}"
        return [Check("knowledge", False, f"{held}: full, so nothing more is kept", "knowledge_max_mb is reached", fix)]
    return [Check("knowledge", True, held)]


async def _check_embedder(nexi: Nexi) -> list[Check]:
    """Which vectors are made, by one short text, and whether they are those that the store has."""
    config, knowledge = nexi.config, nexi.knowledge()
    if not config.use_hybrid_search:
        return [Check("embedder", True, "off: use_hybrid_search is false, so words alone are compared")]
    embedder = await asyncio.to_thread(knowledge.embedder)
    if embedder is None:
        return [Check("embedder", True, "none: words alone are compared", fix="pip install nexi[vectors]")]
    try:
        length = len((await embedder.embed(["test"])).vectors[0])
        stats = await (await knowledge.opened()).stats() if knowledge.may_hold_something() else StoreStats()
    except (LLMError, StoreError) as error:
        return [_failed_check("embedder", error)]
    if stats.embedder and stats.embedder != embedder.name:
        cause = f"the store has vectors of {stats.embedder}, and {embedder.name} is configured"
        return [Check("embedder", False, "words alone are compared", cause, "nexi index --reembed")]
    waiting = f"; {stats.unembedded:,} passages have none yet" if stats.unembedded else ""
    return [Check("embedder", True, f"{embedder.name}, {length} dimensions{waiting}")]


async def _check_proof_judge(config: Config) -> list[Check]:
    """Which model judges sentences, and how it did in its test; it is not tested here, which would cost tokens."""
    endpoint = config.endpoint("judge")
    if endpoint.is_extractive:
        return [Check("proof judge", True, "none: no model is configured, so rules check sentences", fix=SETUP_FIX)]
    if not config.verify_judge:
        return [Check("proof judge", True, "off: verify_judge is false", fix="nexi config set verify_judge true")]
    from nexi.app.pair_models import describe_grade, kept_judge_grade

    grade = await asyncio.to_thread(kept_judge_grade, config)
    where = f"{endpoint.model} at {urlsplit(endpoint.base_url).netloc.rpartition('@')[2]}"
    if grade is None:
        return [Check("proof judge", True, f"{where}: not tested yet", fix="nexi models --probe")]
    said = f"{where}: {describe_grade(grade)}"
    if grade.may_raise:
        return [Check("proof judge", True, said)]
    return [Check("proof judge", False, said, fix="name a better model: nexi config set roles.judge.model MODEL")]


async def _check_proof_model(config: Config) -> list[Check]:
    """The cross-encoder that is installed, whether its files are as they were, and how it did in its test."""
    from nexi.app.pair_models import describe_grade, kept_model_grade, model_root
    from nexi.pair_models.folder import installed_model

    folder = await asyncio.to_thread(installed_model, model_root(config))
    if folder is None:
        return [Check("proof model", True, "none is installed", fix="see what there is: nexi proof status")]
    await asyncio.to_thread(folder.check_files)
    if missing := [name for name in ("onnxruntime", "tokenizers", "numpy") if not _installed_version(name)]:
        fix = 'pip install "nexi[proof]"'
        return [Check("proof model", False, f"{folder.name} cannot run", f"not installed: {', '.join(missing)}", fix)]
    grade = await asyncio.to_thread(kept_model_grade, config, folder)
    return [Check("proof model", True, f"{folder.name}: {describe_grade(grade) if grade else 'not tested yet'}")]


def _is_writable(place: Path) -> bool:
    """Whether we may write there; of what does not exist yet, whether we may make it."""
    while not place.exists() and place != place.parent:
        place = place.parent
    return os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0))


async def _check_disk(config: Config) -> list[Check]:
    place = config.root
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = (await asyncio.to_thread(shutil.disk_usage, place)).free // 1_000_000
    except OSError as error:
        return [Check("disk", False, f"{place} cannot be measured", error.strerror or str(error), "check the disk")]
    if free < MIN_FREE_MB:
        fix = f"free {MIN_FREE_MB} MB, or keep less: nexi config set pages_max_mb 100"
        return [Check("disk", False, f"only {free} MB are free", f"at {place}", fix)]
    return [Check("disk", True, f"{free:,} MB are free")]


async def _check_clock(nexi: Nexi, environment: DoctorEnvironment) -> list[Check]:
    now = environment.clock.now()
    fix = "set the clock of this machine, for example: timedatectl set-ntp true"
    if now.year not in PLAUSIBLE_YEARS:
        return [Check("clock", False, f"the clock says {now:%Y-%m-%d}", "the year cannot be right", fix)]
    theirs = await _server_time(nexi, environment)
    if theirs is None:
        return [Check("clock", True, f"{now:%Y-%m-%d %H:%M} UTC")]
    skew = (now - theirs).total_seconds()
    if abs(skew) > MAX_SKEW_S:
        way = "ahead of" if skew > 0 else "behind"
        return [
            Check(
                "clock", False, f"the clock is {abs(skew) / 60:.0f} minutes {way} a server's", f"it says {theirs:%c} UTC", fix
            )
        ]
    return [Check("clock", True, f"{now:%Y-%m-%d %H:%M} UTC, as a server says")]


async def _server_time(nexi: Nexi, environment: DoctorEnvironment) -> datetime | None:
    """The time by a server that the config names anyway; nobody else is asked."""
    from nexi.llm.hour import server_time

    config = nexi.config
    url = config.endpoint("answer").base_url or config.searxng_url
    if not url:
        return None
    if environment.server_time:
        return await environment.server_time(url)
    return await server_time(
        url, patience_s=_request_timeout_s(environment), proxy=nexi.ports.proxy_for(url), trust=nexi.config.trust
    )


def _plan_version_check(environment: DoctorEnvironment) -> NamedCheck:
    async def check() -> list[Check]:
        found = await asyncio.to_thread(lambda: {name: _installed_version(name) for name in environment.libraries})
        missing = [name for name, version in found.items() if not version]
        said = f"nexi {__version__}, Python {sys.version.split()[0]}, " + ", ".join(f"{n} {v}" for n, v in found.items() if v)
        if missing:
            fix = f"{Path(sys.executable).name} -m pip install {' '.join(missing)}"
            return [Check("versions", False, said, f"not installed: {', '.join(missing)}", fix)]
        return [Check("versions", True, said)]

    return "versions", check()


def _installed_version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


# what is never said


def _secret_hider(config: Config) -> Callable[[str], str]:
    """Takes keys and passwords out of a text; adapters do so too, this is the last door."""
    secrets = sorted(_collect_secrets(config), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "[key]")
        return text

    return hide


def _collect_secrets(config: Config) -> set[str]:
    keys = [k for role in ("answer", "extract", "judge") for k in config.endpoint(role).api_keys]
    keys += [k for provider in (*config.api_keys, *config.origin.env_keys, "jina") for k in config.keys_for(provider)]
    addresses = (config.base_url, config.searxng_url, config.http_proxy, config.https_proxy)
    keys += [part for url in addresses if (part := urlsplit(url).netloc.rpartition("@")[0])]
    return {key for key in (*keys, config.api_key) if len(key) >= 4}
