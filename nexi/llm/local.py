"""Model servers on this machine: which of Ollama, LM Studio, llama.cpp and others run here, their models and real windows.

They are asked by plain HTTP to loopback, without proxy, redirect or key. No answer is believed to be well-formed, no model is
called, and none is loaded. Any server, here or elsewhere, can be asked for its time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import urlsplit

from msgspec import Struct

from nexi.errors import ConfigError
from nexi.net.addresses import is_loopback_url
from nexi.net.trust import MACHINE, Trust
from nexi.structured.json_reader import as_mapping, parse_json
from nexi.tasks import gather_all

if TYPE_CHECKING:
    import httpx2

__all__ = ["PORTS", "LocalServer", "describe_server", "find_servers", "server_time"]

OLLAMA, LM_STUDIO, LLAMA_CPP = "Ollama", "LM Studio", "llama.cpp"
OPENAI_COMPATIBLE = "OpenAI-compatible"
PORTS: Mapping[str, int] = {
    OLLAMA: 11434,
    LM_STUDIO: 1234,
    LLAMA_CPP: 8080,
    "vLLM": 8000,
    "Jan": 1337,
    "KoboldCpp": 5001,
    "LocalAI": 8080,
    "text-generation-webui": 5000,
}
PATIENCE_S = 1.5
MAX_BYTES = 4_000_000
MAX_DESCRIBED = 40  # Ollama is asked once per model


class LocalModel(Struct, frozen=True):
    """A model with the window its server gives it now, and the largest it was made for; None where the server is silent."""

    name: str
    window: int | None = None
    largest: int | None = None
    billions: float | None = None  # of parameters

    @property
    def context(self) -> int | None:
        return self.window or self.largest


class LocalServer(Struct, frozen=True):
    kind: str
    base_url: str
    models: tuple[LocalModel, ...]
    max_parallel: int = 1  # such servers answer one request after another and cache only the last prompt

    def model(self, name: str) -> LocalModel | None:
        """The model under that name; Ollama's `:latest` may be left out."""
        return next((m for m in self.models if m.name in (name, f"{name}:latest")), None)


async def find_servers(ports: Mapping[str, int] = PORTS) -> list[LocalServer]:
    """The servers that answer on their usual ports, in the order of `ports`; two kinds may share a port."""
    async with _open_client(PATIENCE_S) as client:
        replies = await gather_all(_ask_server(kind, f"http://127.0.0.1:{port}", client) for kind, port in ports.items())
    servers: dict[str, LocalServer] = {}
    for server in filter(None, replies):
        servers.setdefault(server.base_url, server)
    return list(servers.values())


async def describe_server(base_url: str, *, patience_s: float = PATIENCE_S) -> LocalServer | None:
    """The server behind a loopback address that reports its windows; None where it is none of those."""
    if not is_loopback_url(base_url):
        return None
    parts = urlsplit(base_url)
    async with _open_client(patience_s) as client:
        origin = f"{parts.scheme}://{parts.netloc}"
        replies = await gather_all(_ask_server(kind, origin, client, guess=False) for kind in _MODELS)
    return next((server for server in replies if server), None)


def _open_client(patience_s: float) -> httpx2.AsyncClient:
    import ssl

    import httpx2

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.AsyncClient(timeout=patience_s, trust_env=False, follow_redirects=False, verify=context)


async def _ask_server(kind: str, origin: str, client: httpx2.AsyncClient, *, guess: bool = True) -> LocalServer | None:
    models = await _MODELS[kind](origin, client, guess) if kind in _MODELS else None
    if models is None and guess and kind not in (LM_STUDIO, LLAMA_CPP):  # which look at the common list themselves
        models = listed_models(await _get_json(client, f"{origin}/v1/models"))
        kind = OPENAI_COMPATIBLE if kind == OLLAMA else kind
    return LocalServer(kind, f"{origin}/v1", models) if models is not None else None


async def _ask_ollama(origin: str, client: httpx2.AsyncClient, guess: bool) -> tuple[LocalModel, ...] | None:
    names = ollama_names(await _get_json(client, f"{origin}/api/tags"))
    if names is None:
        return None
    windows = ollama_loaded(await _get_json(client, f"{origin}/api/ps"))
    first_names = names[:MAX_DESCRIBED]
    descriptions = await gather_all(_get_json(client, f"{origin}/api/show", {"model": name}) for name in first_names)
    models = {name: ollama_model(name, show, windows.get(name)) for name, show in zip(first_names, descriptions, strict=True)}
    return tuple(models.get(name) or LocalModel(name) for name in names)


async def _ask_lm_studio(origin: str, client: httpx2.AsyncClient, guess: bool) -> tuple[LocalModel, ...] | None:
    models = lm_studio_models(await _get_json(client, f"{origin}/api/v0/models"))
    if models is None and guess:  # an older version has only the common list
        models = listed_models(await _get_json(client, f"{origin}/v1/models"))
    return models


async def _ask_llama_cpp(origin: str, client: httpx2.AsyncClient, guess: bool) -> tuple[LocalModel, ...] | None:
    window = llama_cpp_window(await _get_json(client, f"{origin}/props"))
    if window is None:
        return None
    models = listed_models(await _get_json(client, f"{origin}/v1/models")) or ()
    return tuple(LocalModel(m.name, window, m.largest, m.billions) for m in models)


_MODELS = {OLLAMA: _ask_ollama, LM_STUDIO: _ask_lm_studio, LLAMA_CPP: _ask_llama_cpp}


async def _get_json(client: httpx2.AsyncClient, url: str, body: Mapping[str, Any] | None = None) -> Any:
    """The JSON at that address (a POST where there is a body); None for anything else."""
    import httpx2

    try:
        async with client.stream("GET" if body is None else "POST", url, json=body) as response:
            if response.status_code != httpx2.codes.OK:
                return None
            raw = bytearray()
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > MAX_BYTES:
                    return None
        return parse_json(raw.decode("utf-8", "replace"))
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None


def ollama_names(tags: Any) -> list[str] | None:
    """The models of `/api/tags`; None where that is not Ollama's answer."""
    models = as_mapping(tags).get("models")
    if not isinstance(models, list):
        return None
    names = (as_mapping(m).get("name") or as_mapping(m).get("model") for m in models)
    return [name for name in names if _is_name(name)]


def ollama_loaded(running: Any) -> dict[str, int]:
    """The windows of `/api/ps`: what the models that are loaded now really have."""
    models = as_mapping(running).get("models")
    entries = [as_mapping(m) for m in models] if isinstance(models, list) else []
    return {str(m.get("name")): size for m in entries if (size := _as_size(m.get("context_length")))}


def ollama_model(name: str, show: Any, window: int | None = None) -> LocalModel:
    """A model of `/api/show`: its own `num_ctx` is what it gets, `*.context_length` the most it could have."""
    description = as_mapping(show)
    setting = re.search(r"^\s*num_ctx\s+(\d{1,9})\s*$", str(description.get("parameters") or ""), re.M)
    sizes = (value for key, value in as_mapping(description.get("model_info")).items() if str(key).endswith(".context_length"))
    largest = next((size for size in map(_as_size, sizes) if size), None)
    size = re.fullmatch(r"(\d+(?:\.\d+)?)([BM])", str(as_mapping(description.get("details")).get("parameter_size")))
    billions = float(size[1]) / (1 if size[2] == "B" else 1000) if size else None
    return LocalModel(name, window or (_as_size(int(setting[1])) if setting else None), largest, billions)


def lm_studio_models(listing: Any) -> tuple[LocalModel, ...] | None:
    """The models of `/api/v0/models` that can chat; None where that is not LM Studio's answer."""
    if (models := _read_entries(listing)) is None:
        return None
    return tuple(
        LocalModel(m["id"], _as_size(m.get("loaded_context_length")), _as_size(m.get("max_context_length")))
        for m in models
        if _is_name(m.get("id")) and m.get("type") != "embeddings"
    )


def llama_cpp_window(props: Any) -> int | None:
    """The window of `/props`; None where that is not llama.cpp's answer."""
    fields = as_mapping(props)
    settings = as_mapping(fields.get("default_generation_settings"))
    places = (settings, as_mapping(settings.get("params")), fields)
    return next((size for place in places if (size := _as_size(place.get("n_ctx")))), None)


def listed_models(listing: Any) -> tuple[LocalModel, ...] | None:
    """The models of the common `/v1/models`, with what llama.cpp and vLLM add; None where that is no such list."""
    if (models := _read_entries(listing)) is None:
        return None
    if models and all(m.get("owned_by") == "nexi" for m in models):
        return None  # nexi's own server, on the port of vLLM
    result = []
    for model in models:
        meta, name = as_mapping(model.get("meta")), model.get("id")
        count = meta.get("n_params")
        billions = count / 1e9 if isinstance(count, int) and count > 0 else None
        if _is_name(name):
            result.append(LocalModel(name, _as_size(model.get("max_model_len")), _as_size(meta.get("n_ctx_train")), billions))
    return tuple(result)


def _read_entries(listing: Any) -> list[Mapping[str, Any]] | None:
    entries = as_mapping(listing).get("data")
    return [as_mapping(entry) for entry in entries] if isinstance(entries, list) else None


def _is_name(value: Any) -> TypeGuard[str]:
    """Whether that can be the name of a model: a setting, a line on a screen."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _as_size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else None


async def server_time(url: str, *, patience_s: float, proxy: str | None = None, trust: Trust = MACHINE) -> datetime | None:
    """The time that a server believes it is, by the Date header of its answer; None where it names none or is out of reach."""
    import httpx2

    try:
        verify = trust.context() or True
        async with httpx2.AsyncClient(timeout=patience_s, trust_env=False, proxy=proxy or None, verify=verify) as client:
            answer = await client.head(url)
        then = parsedate_to_datetime(answer.headers.get("date", ""))
    except (ConfigError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError, OverflowError, ImportError):
        return None
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone(UTC)
