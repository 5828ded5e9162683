"""Checks: what each setting may be. A check takes the name to blame and the value, and yields what is wrong.

One table for the file, the flags and the environment alike. Where a value came from is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from nexi.config.addresses import proxy_address, searxng_base, split
from nexi.config.fields import as_names
from nexi.config.names import EFFORT_LEVELS, REQUIRED, ROLES

MAX_NUMBER = 10**15  # larger is a typing slip, and would overflow where limits are multiplied
Check: TypeAlias = Callable[[str, Any], Iterator[str]]


def _rule(says: str, holds: Callable[[Any], bool], *, secret: bool = False) -> Check:
    def check(name: str, value: Any) -> Iterator[str]:
        if not holds(value):
            yield f"{name} {says}" if secret else f"{name} {says} (got {short(value)})"

    return check


def short(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_NUMBER


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_line(value: Any) -> bool:
    """One line of text, with something in it."""
    return isinstance(value, str) and bool(value.strip()) and value.strip().isprintable()


def _is_key(value: Any) -> bool:
    """What an HTTP header can carry; empty is valid, since local servers want no key."""
    return isinstance(value, str) and value.strip().isascii() and value.strip().isprintable()


def _is_web_address(value: Any) -> bool:
    return isinstance(value, str) and _is_address(value.strip(), ("http", "https"))


def _is_address(value: str, schemes: tuple[str, ...]) -> bool:
    parts = split(value)
    plain = value.isprintable() and not set(value) & set(' \\"<>')
    return plain and parts is not None and parts.scheme in schemes and bool(parts.hostname)


def _is_proxy(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return not value.strip() or _is_address(proxy_address(value.strip()), ("http", "https", "socks5", "socks5h"))


def _is_encodable(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_names(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isprintable()
    return isinstance(value, list | tuple) and all(_is_line(item) for item in value)


def _is_keys(value: Any) -> bool:
    return _is_key(value) or (isinstance(value, list | tuple) and all(_is_key(item) for item in value))


def _is_hosts(value: Any) -> bool:
    import re

    names = as_names(value) if isinstance(value, str) else value
    name = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
    return isinstance(names, list | tuple) and all(isinstance(n, str) and name.fullmatch(n.strip()) for n in names)


def _is_image(value: Any) -> bool:
    """What a container engine takes for an image and never for an option."""
    import re

    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", value.strip()) is not None


def _is_tag(value: Any) -> bool:
    import re

    return isinstance(value, str) and re.fullmatch(r"\w[\w.-]{0,127}", value.strip(), re.ASCII) is not None


def _is_private_exception(value: Any) -> bool:
    """A host, a host with its port, or a network; nothing wider can be written."""
    import ipaddress

    if not _is_line(value) or set(value.strip()) & set(" \\@*?#"):
        return False
    text = value.strip()
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        parts = split(f"//{text}")
        return "/" not in text and parts is not None and bool(parts.hostname)
    return True


def _check_private(name: str, value: Any) -> Iterator[str]:
    entries = as_names(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        yield f"{name} must be a list of hosts, host:port or networks (got {short(value)})"
        return
    for entry in entries:
        if not _is_private_exception(entry):
            yield f"{name} has {short(entry)}, which is no host, host:port or network"


def _check_api_keys(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object of provider names and keys"
        return
    for provider, keys in value.items():
        if not _is_keys(keys):
            yield f"{name}.{provider} must be a key or a list of keys, each one line of ASCII text"


def _check_roles(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object with any of {', '.join(ROLES)} (got {short(value)})"
        return
    for role, part in value.items():
        if role not in ROLES:
            yield f"{name} has {short(role)}, which is none of {', '.join(ROLES)}"
        elif not isinstance(part, Mapping):
            yield f"{name}.{role} must be an object with any of {', '.join(ROLE_CHECKS)}"
        else:
            yield from _check_role(f"{name}.{role}", part)


def _check_role(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    for key, value in part.items():
        if key not in ROLE_CHECKS:
            yield f"{name} has {short(key)}, which is none of {', '.join(ROLE_CHECKS)}"
        else:
            yield from CHECKS[key](f"{name}.{key}", value)


def _check_prices(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object of model names (got {short(value)})"
        return
    for model, price in value.items():
        good = isinstance(price, Mapping) and set(price) == {"input", "output"}
        if not good or not all(_is_number(p) and p >= 0 for p in price.values()):
            yield f"{name}.{model} must have input and output, in dollars per million tokens (got {short(price)})"


def _up_to(most: int) -> Check:
    return _rule(f"must be a whole number from 1 to {most}", lambda v: _is_int(v, 1) and v <= most)


ROLE_CHECKS = ("base_url", "api_key", "model", "max_context")
_positive_int = _rule("must be a positive integer", lambda v: _is_int(v, 1))
_non_negative_int = _rule("must be a non-negative integer", lambda v: _is_int(v, 0))
_positive_number = _rule("must be a positive number", lambda v: _is_number(v) and v > 0)
_optional_int = _rule("must be a positive integer or null", lambda v: v is None or _is_int(v, 1))
_optional_number = _rule("must be a positive number or null", lambda v: v is None or (_is_number(v) and v > 0))
_bool = _rule("must be true or false", lambda v: isinstance(v, bool))
_line = _rule("must be a non-empty string on one line", _is_line)
_optional_line = _rule("must be a string on one line", lambda v: isinstance(v, str) and v.strip().isprintable())
_optional_address = _rule(
    "must be empty, or start with http:// or https:// and name a host",
    lambda v: isinstance(v, str) and (not v.strip() or _is_web_address(v)),
    secret=True,
)
_share = _rule("must be a number between 0.0 and 1.0", lambda v: _is_number(v) and 0 <= v <= 1)
_names = _rule("must be a name or a list of names", _is_names)
_proxy = _rule("must be the address of a proxy", _is_proxy, secret=True)
CHECKS: Mapping[str, Check] = {
    "base_url": _rule("must start with http:// or https:// and name a host", _is_web_address, secret=True),
    "api_key": _rule("must be a string of one line of ASCII text", _is_key, secret=True),
    "model": _line,
    "jina_key": _rule("must be a string of one line of ASCII text, or null", lambda v: v is None or _is_key(v), secret=True),
    "default_effort": _rule("must be one of s, m, l", lambda v: isinstance(v, str) and v in EFFORT_LEVELS),
    "time_target": _optional_int,
    "max_timeout": _optional_int,
    "max_output_tokens": _positive_int,
    "max_context": _positive_int,
    "auto_compact_thresh": _share,
    "compact_target_words": _positive_int,
    "preserve_last_n_messages": _non_negative_int,
    "tokenizer_encoding": _line,
    "jina_timeout": _positive_number,
    "llm_max_retries": _non_negative_int,
    "search_backend": _names,
    "content_fetcher": _names,
    "api_keys": _check_api_keys,
    "searxng_url": _rule(
        "must be empty, or start with http:// or https:// and name a host",
        lambda v: isinstance(v, str) and (not v.strip() or _is_web_address(searxng_base(v.strip()))),
        secret=True,
    ),
    "searxng_autostart": _bool,
    "searxng_image": _rule("must be the name of a container image", _is_image),
    "searxng_tag": _rule("must be the tag of a container image", _is_tag),
    "searxng_port": _rule("must be a port, or 0 to have one chosen", lambda v: _is_int(v, 0) and v < 65536),
    "grep_root": _rule("must be empty, or name a folder", lambda v: _is_encodable(v) and "\0" not in v),
    "roles": _check_roles,
    "prices": _check_prices,
    "allow_private": _check_private,
    "respect_robots": _bool,
    "strict": _bool,
    "verify_judge": _bool,
    "prefetch": _bool,
    "stream": _bool,
    "suggestions": _bool,
    "color": _bool,
    "max_pages": _positive_int,
    "max_cost": _optional_number,
    "max_tokens": _optional_int,
    "max_model_calls": _optional_int,
    "fetch_timeout": _positive_number,
    "search_timeout": _positive_number,
    "llm_timeout": _positive_number,
    "http_proxy": _proxy,
    "https_proxy": _proxy,
    "no_proxy": _rule("must be a string", _is_encodable),
    "ssl_cert_file": _rule("must be empty, or name a file", lambda v: _is_encodable(v) and "\0" not in v),
    "ssl_cert_dir": _rule("must be empty, or name a folder", lambda v: _is_encodable(v) and "\0" not in v),
    "runs_keep_days": _non_negative_int,
    "pages_max_mb": _non_negative_int,
    "page_cache": _bool,
    "page_cache_ttl_s": _positive_number,
    "knowledge": _bool,
    "knowledge_max_mb": _non_negative_int,
    "knowledge_chunk_size": _rule(
        "must be a number of characters from 200 to 20000", lambda v: _is_int(v, 200) and v <= 20_000
    ),
    "qdrant_url": _optional_address,
    "qdrant_shards": _non_negative_int,
    "qdrant_replicas": _positive_int,
    "embedding_base_url": _optional_address,
    "embedding_model": _optional_line,
    "contextual_embedding_model": _optional_line,
    "agentic_search_enabled": _bool,
    "agentic_search_completeness_threshold": _share,
    "agentic_search_max_iterations": _up_to(20),
    "agentic_search_max_urls_per_iteration": _up_to(20),
    "agentic_search_url_score_threshold": _share,
    "agentic_search_use_search_hints": _bool,
    "agentic_search_llm_temperature": _rule("must be a number between 0.0 and 2.0", lambda v: _is_number(v) and 0 <= v <= 2),
    "agentic_search_max_qdrant_results": _up_to(100),
    "use_contextual_embeddings": _bool,
    "use_hybrid_search": _bool,
    "use_reranking": _bool,
    "use_agentic_rag": _bool,
    "token": _rule("must be a string of one line of ASCII text", _is_key, secret=True),
    "serve_hosts": _rule("must be a list of host names", _is_hosts),
    "system_prompt": _rule("must be text", lambda v: v is None or _is_encodable(v), secret=True),
}


def validate_config(data: Any) -> tuple[bool, list[str]]:
    """Whether `data` is a whole configuration, and every reason why not. Unknown keys are no reason: see `unknown_keys`."""
    if not isinstance(data, Mapping):
        return False, [f"the configuration must be an object (got {short(data)})"]
    problems = [f"{name} is missing" for name in REQUIRED if name not in data] + problems_of(data)
    return not problems, problems


def problems_of(data: Mapping[str, Any]) -> list[str]:
    return [problem for name, value in data.items() if name in CHECKS for problem in CHECKS[name](name, value)]


def fix_for(problems: list[str]) -> str:
    return "correct the setting named here" if len(problems) == 1 else "correct the settings named here"


def unknown_keys(data: Mapping[str, Any]) -> list[str]:
    """One line for each setting nexi does not know, with the one that was probably meant."""
    return [_unknown(str(key)) for key in data if key not in CHECKS]


def _unknown(key: str) -> str:
    import difflib

    close = difflib.get_close_matches(key[:60].lower(), CHECKS, n=1)
    return f"unknown setting {short(key)}" + (f"; did you mean {close[0]}?" if close else "")
