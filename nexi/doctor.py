"""The checks behind `nexi doctor`: they call the app's ports as a search would, with one small request each.

Checks are independent, have a deadline each, and run in parallel. They change nothing, and show no keys.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi import __version__, app
from nexi.app import Nexi, SystemClock, find_protections, open_runs, pair_models, resolve_host
from nexi.app.factory import find_reading_problem
from nexi.app.history import read_history
from nexi.app.local_models import PORTS, LocalServer, describe_server, find_servers, server_time
from nexi.app.plugins import list_plugins
from nexi.app.resolve import can_test_judge
from nexi.app.stored_runs import find_damaged_runs
from nexi.config import Config, EndpointRole, load_config
from nexi.errors import ConfigError, FetchError, LLMError, NexiError
from nexi.install import install_command, other_package, reader_command
from nexi.notices import map_notice
from nexi.ports import Clock, SearchBackend
from nexi.structured.schema_check import object_schema
from nexi.types import FetchLimits, Message, Query, StoreStats, ToolSpec

SCHEMA = "nexi-doctor-1"
DEADLINE_S = 5.0
REQUEST_SHARE, JUDGE_TEST_SHARE = 0.7, 0.9  # of the time for a check: the rest is for saying that it was not enough
SETUP_CALLS = 3  # of a model in the test of settings: a word, and the judge's test with its repetition
MAX_PROBE_TOKENS = 256
TEST_QUERY = "encyclopedia"
SERVICE_QUERIES = {
    "pypi": "pip",
    "wayback": "example.com",
    "nominatim": "Paris",
    "clinicaltrials": "asthma",
    "gdelt": "election",
    "unpaywall": "10.1038/nature12373",
}
PUBLIC_NAME = "example.com"
FORBIDDEN_URLS = ("http://169.254.169.254/", "http://10.0.0.1/", "http://[::1]/")
MIN_FREE_MB = 200
MAX_CHECKED_RUNS = 200  # with their page texts about a second; --repair checks every log
PLAUSIBLE_YEARS = range(2025, 2100)
MAX_SKEW_S = 300
LIBRARIES = ("httpx2", "click", "rich", "prompt_toolkit", "ada-url", "html-to-markdown", "resiliparse", "protego", "splintr-rs")
SETUP_FIX = "choose a model: nexi config setup"
PROBE_TOOL = ToolSpec("report", "Report that you are ready.", object_schema({"ready": {"type": "boolean"}}))
RUNG_MESSAGES = {  # how a model answered a small request with a tool
    "native": "tool calls work",
    "schema": "no tool calls, but JSON schema output works",
    "text": "no tool calls or JSON schema, but text works",
    "none": "reachable, but it does not use tools: nexi searches for it and hands it passages to answer from",
}


class Check(Struct, frozen=True):
    """One line. `area` groups checks: a search needs one that is ok in each of NEEDED_AREAS."""

    name: str
    ok: bool
    message: str
    cause: str = ""
    fix: str = ""

    @property
    def area(self) -> str:
        return self.name.partition(" ")[0]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


NEEDED_AREAS = ("config", "model", "search", "fetch")


class DoctorReport(Struct, frozen=True):
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether a search could work."""
        return all(any(c.ok for c in self.checks if c.area == area) for area in NEEDED_AREAS)

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "ok": self.ok, "checks": [check.as_json() for check in self.checks]}


class _DoctorEnvironment(Struct, frozen=True):
    """What the checks use of the machine and the network; tests pass their own."""

    clock: Clock = SystemClock()
    ports: Mapping[str, int] = msgspec.field(default_factory=lambda: PORTS)
    deadline_s: float = DEADLINE_S
    resolve: Callable[[str, int], Awaitable[Any]] = resolve_host
    read_time: Callable[..., Awaitable[datetime | None]] = server_time
    libraries: tuple[str, ...] = LIBRARIES


DEFAULT_ENVIRONMENT = _DoctorEnvironment()
SETUP_ENVIRONMENT = _DoctorEnvironment(deadline_s=30.0)  # a local model may have to be loaded first


async def examine_setup(
    load: Callable[[], Config] = load_config, environment: _DoctorEnvironment = DEFAULT_ENVIRONMENT
) -> DoctorReport:
    """Run all checks. Never raises for a problem with the setup."""
    try:
        config = load()
    except NexiError as error:
        versions = await _run_checks([("versions", _check_versions(environment))], environment)
        return DoctorReport((_failed_check("config", error), *versions))
    async with Nexi(config.override(llm_max_retries=0), clock=environment.clock) as nexi:
        config = nexi.config
        has_extract_model = config.endpoint("extract") != config.endpoint("answer")
        work: list[NamedCheck] = [
            ("config", _check_config(config)),
            ("model", _check_model(nexi, "answer", environment)),
            *([("extract model", _check_model(nexi, "extract", environment))] if has_extract_model else []),
            *_plan_search_checks(nexi),
            ("fetch", _check_fetch(nexi)),
            ("plug-ins", _check_plugins(config)),
            ("documents", _check_document_reader()),
            ("fetch DNS", _check_dns(config, environment)),
            ("store", asyncio.to_thread(_check_store, config)),
            ("runs", asyncio.to_thread(_check_runs, config)),
            ("knowledge", _check_knowledge(nexi)),
            ("embedder", _check_embedder(nexi)),
            ("reading model", _check_reading_model()),
            ("proof judge", _check_proof_judge(config)),
            ("proof model", _check_proof_model(config)),
            ("disk", _check_disk(config)),
            ("clock", _check_clock(nexi, environment)),
            ("versions", _check_versions(environment)),
        ]
        return DoctorReport(_hide_secrets(config, await _run_checks(work, environment)))


async def examine_settings(config: Config, environment: _DoctorEnvironment = SETUP_ENVIRONMENT) -> tuple[Check, ...]:
    """Check only the answer model, what it is worth as a judge, and the search services, before settings are saved."""
    async with Nexi(config.override(llm_max_retries=0), clock=environment.clock) as nexi:
        work = [("model", _check_model(nexi, "answer", environment)), *_plan_search_checks(nexi)]
        if can_test_judge(config) and (config.max_model_calls or SETUP_CALLS) >= SETUP_CALLS:
            work.append(("proof judge", _test_proof_judge(nexi, environment)))
        return _hide_secrets(config, await _run_checks(work, environment))


def _failed_check(name: str, error: NexiError) -> Check:
    return Check(name, False, error.message, error.cause, error.fix)


NamedCheck: TypeAlias = tuple[str, Coroutine[Any, Any, list[Check]]]


async def _run_checks(work: Iterable[NamedCheck], environment: _DoctorEnvironment) -> list[Check]:
    """Run the checks in parallel; one that fails or takes too long is a problem under its name."""

    async def run(name: str, check: Coroutine[Any, Any, list[Check]]) -> list[Check]:
        try:
            async with asyncio.timeout(environment.deadline_s):
                return await check
        except TimeoutError:
            return [Check(name, False, "timed out", f"no answer within {environment.deadline_s:g} s", "run nexi doctor again")]
        except NexiError as error:
            return [_failed_check(name, error)]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(name, check)) for name, check in work]
    return [check for task in tasks for check in task.result()]


async def _check_config(config: Config) -> list[Check]:
    path = config.config_path
    absence = "" if path.exists() else " does not exist: using defaults and the environment"
    checks = [Check("config", True, f"{path}{absence}")]
    for note in config.notes:
        mode = re.search(r"chmod 600 .+", note)
        checks.append(Check("config note", False, note, fix=mode[0] if mode else "nexi --edit-config"))
    return checks


async def _check_model(nexi: Nexi, role: EndpointRole, environment: _DoctorEnvironment) -> list[Check]:
    name = "model" if role == "answer" else f"{role} model"
    endpoint = nexi.config.endpoint(role)
    if endpoint.is_extractive:
        models = [f"{s.models[0].name} ({s.kind})" for s in await find_servers(environment.ports) if s.models]
        more = f"; available: {', '.join(models)}" if models else ""
        message = f"no model configured: the built-in extractive model answers with passages{more}"
        return [Check(name, True, message, fix=SETUP_FIX)]
    gate = nexi.gate()
    where = f"{endpoint.model} at {urlsplit(endpoint.base_url).netloc.rpartition('@')[2]}"
    try:
        names = await gate.list_models(role)
    except LLMError as error:
        if error.code in ("connect", "dns", "tls", "auth", "timeout"):
            raise
        names = None  # not every endpoint has a list
    is_unlisted = names is not None and endpoint.model not in names and f"{endpoint.model}:latest" not in names
    listing = f", but it is not among the {len(names or ())} listed models" if is_unlisted else ""
    llm, patience_s = gate.open_llm(role, "probe"), REQUEST_SHARE * environment.deadline_s
    request = Message("user", "Call the tool report with ready set to true.")
    deadline = environment.clock.monotonic() + patience_s
    try:
        reply = await llm.complete([request], [PROBE_TOOL], max_tokens=MAX_PROBE_TOKENS, deadline=deadline)
        rung = getattr(getattr(llm, "dialect", None), "rung", "native")
        ability = RUNG_MESSAGES["none" if rung == "native" and not reply.tool_calls else rung]
        checks = [Check(name, True, f"{where}: {ability}{listing}")]
    except LLMError as error:
        if error.code != "timeout":
            raise
        cause = f"no answer within {patience_s:g} s; loading a model can take longer"
        slow = Check(f"{name} speed", False, "a small request timed out", cause, "run nexi doctor again")
        checks = [Check(name, True, f"{where}: reachable{listing}"), slow]
    server = await describe_server(endpoint.base_url)  # after the request: servers report the window of loaded models
    return [*checks, *_check_window(nexi.config, role, server)]


def _check_window(config: Config, role: EndpointRole, server: LocalServer | None) -> list[Check]:
    """Compare max_context with the context window of the local server."""
    endpoint = config.endpoint(role)
    model = server.model(endpoint.model) if server else None
    if server is None or model is None or not model.context:
        return [Check("window", True, f"{endpoint.max_context} tokens (max_context)")]
    size, key = model.context, "max_context" if role == "answer" else f"roles.{role}.max_context"
    if endpoint.max_context <= size:
        return [Check("window", True, f"{size} tokens at {server.kind}, max_context is {endpoint.max_context}")]
    cause = f"{server.kind} gives {endpoint.model} {size}"
    message = f"max_context is {endpoint.max_context}, more than the model has"
    return [Check("window", False, message, cause, f"nexi config set {key} {size}")]


def _plan_search_checks(nexi: Nexi) -> list[NamedCheck]:
    try:
        return [(f"search {backend.name}", _check_search(nexi, backend)) for backend in nexi.ports.backends()]
    except NexiError as error:
        keep = "; to keep it: nexi config set searxng_url http://127.0.0.1:8080" if "SEARXNG_URL" in error.fix else ""
        problem = Check("search", False, error.message, error.cause, error.fix + keep)

    async def report_problem() -> list[Check]:
        return [problem]

    return [("search", report_problem())]


async def examine_services(load: Callable[[], Config] = load_config) -> DoctorReport:
    """Call every open service once with a query it must know. Tells which of them answer from here."""
    config, environment = load(), DEFAULT_ENVIRONMENT
    async with Nexi(config.override(search_backend="services"), clock=environment.clock) as nexi:
        federation: Any = nexi.ports.backends()[0]
        members = [federation.member(name) for name in getattr(federation, "services", ())]
        work = [(f"service {member.name}", _check_search(nexi, member, is_service=True)) for member in members]
        return DoctorReport(_hide_secrets(config, await _run_checks(work, environment)))


async def _check_search(nexi: Nexi, backend: SearchBackend, *, is_service: bool = False) -> list[Check]:
    """Search even if the backend is suspended; an answer ends the suspension. An open service must have results."""
    hits = await backend.search(Query(SERVICE_QUERIES.get(backend.name, TEST_QUERY) if is_service else TEST_QUERY))
    if breaker := nexi.ports.breaker():
        await breaker.record_success(backend.name)
    name = f"{'service' if is_service else 'search'} {backend.name}"
    message = f"{len(hits)} result{'s' * (len(hits) != 1)} for a test query"
    if hits or not is_service:
        return [Check(name, True, message)]
    fix = "try again later; if it stays so, tell the developers of nexi"
    return [Check(name, False, message, "a test query should have results", fix)]


async def _check_fetch(nexi: Nexi) -> list[Check]:
    """The fetchers exist, and the guard and each fetcher refuse private addresses."""
    config, fetchers = nexi.config, nexi.ports.fetchers()
    refused_urls = []
    for url in FORBIDDEN_URLS:
        try:
            nexi.ports.check_url(url)
        except FetchError:
            refused_urls.append(url)
    for fetcher in fetchers if refused_urls else ():
        url = refused_urls[0]
        try:
            await fetcher.fetch(url, FetchLimits(timeout_s=DEADLINE_S))
        except FetchError as error:
            if error.reason == "blocked":
                continue
        raise ConfigError(f"{url} was not refused", cause="a fetcher ignores the guard", fix="set content_fetcher to http")
    names = ", ".join(fetcher.name for fetcher in fetchers)
    browser: list[Check] = []
    if any(fetcher.name == "crawl4ai" for fetcher in fetchers):
        lack = app.missing_parts()
        works = "cannot read pages" if lack else f"{app.installed_browser()} reads pages"
        fix = app.browser_install_fix() if lack else ""
        browser = [Check("fetch crawl4ai", not lack, f"{works} that need JavaScript", lack, fix)]
    if len(refused_urls) < len(FORBIDDEN_URLS):
        open_to = ", ".join(url for url in FORBIDDEN_URLS if url not in refused_urls)
        fix = "nexi config set allow_private HOST:PORT,... with exact hosts"
        wide = Check("fetch guard", False, "allow_private opens a whole network to pages", open_to, fix)
        return [Check("fetch", True, names), wide, *browser]
    proxy = "; a proxy is set, so addresses are checked but cannot be pinned" if config.http_proxy or config.https_proxy else ""
    exceptions = f", except {', '.join(config.allow_private)}" if config.allow_private else ""
    return [Check("fetch", True, f"{names}; private addresses are refused{exceptions}{proxy}"), *browser]


async def _check_plugins(config: Config) -> list[Check]:
    """One line for each plug-in that is installed; none where there is none."""
    settings_by_kind = {"backend": "search_backend", "fetcher": "content_fetcher", "tool": "tools"}
    checks = []
    for plugin in await asyncio.to_thread(list_plugins, config):
        name = f"plug-in {plugin.name}"
        if plugin.error:
            checks.append(Check(name, False, f"{plugin.origin} cannot be used", plugin.error))
            continue
        settings = " or ".join(settings_by_kind[kind] for kind in plugin.kinds)
        advice = "" if plugin.is_used else f"; to use it, add it to {settings}"
        checks.append(Check(name, True, f"{' and '.join(plugin.kinds)} from {plugin.origin}{advice}"))
    return checks


async def _check_document_reader() -> list[Check]:
    """Say what the process that reads documents cannot reach; a system without such limits is no problem of the setup."""
    in_force = await find_protections()
    names = {"network": "the network", "files": "your files"}
    remaining_rights = " or ".join(name for key, name in names.items() if key not in in_force)
    dropped_rights = " and ".join(name for key, name in names.items() if key in in_force)
    parts = [f"without {dropped_rights}"] if dropped_rights else []
    parts += [f"this system cannot take {remaining_rights} from it"] if remaining_rights else []
    return [Check("documents", True, f"read in a process of their own, without keys; {'; '.join(parts)}")]


async def _check_dns(config: Config, environment: _DoctorEnvironment) -> list[Check]:
    if config.http_proxy or config.https_proxy:
        return [Check("fetch DNS", True, "host names are resolved and checked before the proxy is used")]
    try:
        await environment.resolve(PUBLIC_NAME, 443)
    except FetchError as error:
        fix = "check the network connection and DNS"
        return [Check("fetch DNS", False, "cannot resolve public host names", error.cause, fix)]
    return [Check("fetch DNS", True, "public host names are resolved")]


def _check_store(config: Config) -> list[Check]:
    unwritable = []
    for place in (config.runs_dir, config.pages_dir, config.history_path):
        nearest = _nearest_existing(place)
        if not os.access(nearest, os.W_OK | (os.X_OK if nearest.is_dir() else 0)):
            unwritable.append(str(place))
    if unwritable:
        fix = f"chmod -R u+rwX {config.root}, or set NEXI_HOME to another folder"
        return [Check("store", False, "answers cannot be saved", f"not writable: {', '.join(unwritable)}", fix)]
    history = read_history(config.history_path)
    message = f"{config.root} is writable, {len(history.entries)} answers in the history"
    if history.damaged:
        cause = f"{history.damaged} damaged lines were skipped"
        return [Check("store", False, message, cause, f"delete them in {config.history_path}, or all: nexi --clear-history")]
    return [Check("store", True, message)]


def _check_runs(config: Config) -> list[Check]:
    """The logs of the newest runs, line by line, and the page texts they name."""
    runs = open_runs(config)
    ids = runs.run_ids(MAX_CHECKED_RUNS)
    if not ids:
        return [Check("runs", True, "no runs yet")]
    damaged_logs, losses = find_damaged_runs(runs, ids)
    checks = []
    if damaged_logs:
        cause = "damaged: " + ", ".join(damaged_logs)
        checks.append(Check("runs", False, f"{len(damaged_logs)} of {len(ids)} run logs", cause, "nexi doctor --repair"))
    if losses:
        cause = "; ".join(f"run {run_id}: {why}" for run_id, why in list(losses.items())[:3])
        fix = f"restore {runs.pages.root} from a backup; the answers are kept: nexi --show ID"
        message = f"{len(losses)} of {len(ids)} runs cannot be replayed"
        checks.append(Check("runs evidence", False, message, cause, fix))
    return checks or [Check("runs", True, f"{len(ids)} newest runs, logs and page texts intact")]


async def _check_knowledge(nexi: Nexi) -> list[Check]:
    """The size and integrity of the knowledge base; creates none."""
    config, knowledge = nexi.config, nexi.knowledge()
    if not config.knowledge:
        return [Check("knowledge", True, "off: pages are not indexed", fix="nexi config set knowledge true")]
    if not knowledge.may_hold_something():
        return [Check("knowledge", True, f"empty: {config.knowledge_path} will be created with the first page")]
    await knowledge.check_journal()
    store = await knowledge.open_store()
    await store.lexical("nexi", count=1)
    stats = await store.stats()
    contents = f"{stats.sources:,} sources, {stats.chunks:,} passages, {stats.bytes / 1e6:,.1f} MB in {store.name}"
    if stats.damage:
        return [Check("knowledge", False, contents, stats.damage, "nexi doctor --repair")]
    if await knowledge.is_full():
        fix = f"nexi sources rm URL, or raise the limit: nexi config set knowledge_max_mb {config.knowledge_max_mb * 2}"
        message = f"{contents}: full, so new pages are not indexed"
        return [Check("knowledge", False, message, "it reached knowledge_max_mb", fix)]
    return [Check("knowledge", True, contents)]


async def _check_embedder(nexi: Nexi) -> list[Check]:
    """Embed a short text, and compare the embedder with that of the stored vectors."""
    config, knowledge = nexi.config, nexi.knowledge()
    if not config.use_hybrid_search:
        return [Check("embedder", True, "off: use_hybrid_search is false, so search is by keyword only")]
    embedder = await nexi.gate().open_embedder()
    if embedder is None:
        return [Check("embedder", True, "none: search is by keyword only", fix=install_command("vectors"))]
    await knowledge.check_journal()
    length = len((await embedder.embed(["test"])).vectors[0])
    stats = await (await knowledge.open_store()).stats() if knowledge.may_hold_something() else StoreStats()
    if stats.embedder and stats.embedder != embedder.name:
        cause = f"the stored vectors are from {stats.embedder}, but {embedder.name} is configured"
        return [Check("embedder", False, "search is by keyword only", cause, "nexi index --reembed")]
    backlog = f"; {stats.unembedded:,} passages are not embedded yet" if stats.unembedded else ""
    return [Check("embedder", True, f"{embedder.name}, {length} dimensions{backlog}")]


async def _check_reading_model() -> list[Check]:
    """Compare two words; without the model sentences are chosen by their words, which is no failure."""
    problem = await asyncio.to_thread(find_reading_problem)
    if problem is None:
        return [Check("reading model", True, "E5-small chooses the sentences of answers without a language model")]
    if problem.code == "not_installed":
        return [Check("reading model", True, "none: sentences are chosen by their words", fix=reader_command())]
    raise problem


async def _check_proof_judge(config: Config) -> list[Check]:
    """The judge and its saved test result; testing it here would cost tokens."""
    endpoint = config.endpoint("judge")
    if endpoint.is_extractive:
        return [Check("proof judge", True, "none: no model is configured, so only rules check sentences", fix=SETUP_FIX)]
    if not config.verify_judge:
        return [Check("proof judge", True, "off: verify_judge is false", fix="nexi config set verify_judge true")]
    grade = await asyncio.to_thread(pair_models.kept_judge_grade, config)
    where = f"{endpoint.model} at {urlsplit(endpoint.base_url).netloc.rpartition('@')[2]}"
    if grade is None:
        return [Check("proof judge", True, f"{where}: not tested yet", fix="nexi doctor --judge")]
    message = f"{where}: {pair_models.describe_grade(grade)}"
    if grade.may_raise:
        return [Check("proof judge", True, message)]
    return [Check("proof judge", False, message, fix="use a better model: nexi config set roles.judge.model MODEL")]


async def _test_proof_judge(nexi: Nexi, environment: _DoctorEnvironment) -> list[Check]:
    """What the judge is worth; no setup fails for its sake, since rules check sentences where it may not."""
    config, clock = nexi.config, environment.clock
    if not await asyncio.to_thread(pair_models.kept_judge_grade, config):
        deadline = clock.monotonic() + environment.deadline_s * JUDGE_TEST_SHARE
        try:
            await pair_models.grade_judge(config, nexi.gate().open_llm("judge", "probe"), clock, deadline=deadline)
        except NexiError as error:
            return [Check("proof judge", True, error.message, error.cause, fix="nexi doctor --judge")]
    return [replace(check, ok=True) for check in await _check_proof_judge(config)]


async def _check_proof_model(config: Config) -> list[Check]:
    folder = await asyncio.to_thread(pair_models.installed_model, pair_models.model_root(config))
    if folder is None:
        return [Check("proof model", True, "not installed", fix="list published models: nexi proof status")]
    await asyncio.to_thread(folder.check_files)
    if missing_packages := [name for name in ("onnxruntime", "tokenizers", "numpy") if not _installed_version(name)]:
        fix = install_command("proof")
        return [Check("proof model", False, f"{folder.name} cannot run", f"not installed: {', '.join(missing_packages)}", fix)]
    grade = await asyncio.to_thread(pair_models.kept_model_grade, config, folder)
    figures = pair_models.describe_grade(grade) if grade else "not tested yet"
    return [Check("proof model", True, f"{folder.name}: {figures}")]


def _nearest_existing(place: Path) -> Path:
    return next((path for path in (place, *place.parents) if path.exists()), Path(place.anchor))


async def _check_disk(config: Config) -> list[Check]:
    place = _nearest_existing(config.root)
    try:
        free = (await asyncio.to_thread(shutil.disk_usage, place)).free // 1_000_000
    except OSError as error:
        return [Check("disk", False, f"cannot read the free space of {place}", error.strerror or str(error), "check the disk")]
    if free < MIN_FREE_MB:
        fix = f"free at least {MIN_FREE_MB} MB, or lower the limit: nexi config set pages_max_mb 100"
        return [Check("disk", False, f"only {free} MB free", f"at {place}", fix)]
    return [Check("disk", True, f"{free:,} MB free")]


async def _check_clock(nexi: Nexi, environment: _DoctorEnvironment) -> list[Check]:
    now = environment.clock.now()
    fix = "set the system clock, for example: timedatectl set-ntp true"
    if now.year not in PLAUSIBLE_YEARS:
        return [Check("clock", False, f"the clock says {now:%Y-%m-%d}", "that year is implausible", fix)]
    # the time from a server that the config names; no other server is contacted
    theirs = None
    if url := nexi.config.endpoint("answer").base_url or nexi.config.searxng_url:
        proxy, patience_s = nexi.ports.proxy_for(url), REQUEST_SHARE * environment.deadline_s
        theirs = await environment.read_time(url, patience_s=patience_s, proxy=proxy, trust=nexi.config.trust)
    if theirs is None:
        return [Check("clock", True, f"{now:%Y-%m-%d %H:%M} UTC")]
    skew = (now - theirs).total_seconds()
    if abs(skew) > MAX_SKEW_S:
        message = f"the clock is {abs(skew) / 60:.0f} minutes {'ahead of' if skew > 0 else 'behind'} a server's"
        return [Check("clock", False, message, f"it says {theirs:%c} UTC", fix)]
    return [Check("clock", True, f"{now:%Y-%m-%d %H:%M} UTC, matches a server's clock")]


async def _check_versions(environment: _DoctorEnvironment) -> list[Check]:
    versions = await asyncio.to_thread(lambda: {name: _installed_version(name) for name in environment.libraries})
    missing_packages = [name for name, version in versions.items() if not version]
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    message = f"nexi {__version__}, Python {sys.version.split()[0]}, {libraries}"
    if missing_packages:
        fix = f"{Path(sys.executable).name} -m pip install {' '.join(missing_packages)}"
        return [Check("versions", False, message, f"not installed: {', '.join(missing_packages)}", fix)]
    checks = [Check("versions", True, message)]
    if theirs := await asyncio.to_thread(other_package):  # it overwrites files of this one
        what = "another project's package `nexi` is installed beside nexi-engine"
        fix = f"{sys.executable} -m pip uninstall nexi, then install nexi-engine again"
        checks.append(Check("versions of nexi", False, what, theirs, fix))
    return checks


def _installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _hide_secrets(config: Config, checks: Iterable[Check]) -> tuple[Check, ...]:
    """Replace keys and passwords in the checks; adapters do so too, this is the last line of defence."""
    keys = [k for role in ("answer", "extract", "judge") for k in config.endpoint(role).api_keys]
    keys += [k for provider in (*config.api_keys, *config.origin.env_keys, "jina") for k in config.keys_for(provider)]
    addresses = (config.base_url, config.searxng_url, config.http_proxy, config.https_proxy)
    keys += [part for url in addresses if (part := urlsplit(url).netloc.rpartition("@")[0])]
    secrets = sorted({key for key in (*keys, config.api_key) if len(key) >= 4}, key=len, reverse=True)

    def replace_secrets(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "[key]")
        return text

    return tuple(Check(c.name, c.ok, *(map_notice(t, replace_secrets) for t in (c.message, c.cause, c.fix))) for c in checks)
