"""Checks of the values of settings. A check takes the name to report and the value, and yields what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from nexi.config._names import EFFORT_LEVELS, ROLES
from nexi.config._values import parse_names, parse_proxy_url, parse_searxng_url, split_url

_TOOLS_OF_NEXI = frozenset(
    ["web_search", "web_get", "local_search", "search", "scrape", "final_answer", "security_search", "stackexchange", "grep"]
)
_MAX_NUMBER = 10**15  # a larger number is a typing mistake, and would overflow where limits are multiplied
Check: TypeAlias = Callable[[str, Any], Iterator[str]]


def _make_check(requirement: str, is_valid: Callable[[Any], bool], *, secret: bool = False) -> Check:
    """Build a check from one predicate. The message repeats the value, unless the value is secret."""

    def check(name: str, value: Any) -> Iterator[str]:
        if not is_valid(value):
            yield f"{name} {requirement}" if secret else f"{name} {requirement} (got {quote_value(value)})"

    return check


def _make_items_check(requirement: str, item_check: Check, *, kind: Any = Mapping, secret: bool = False) -> Check:
    """Build a check of every value of an object, under its own name, or of every item of a list."""
    whole_check = _make_check(requirement, lambda v: isinstance(v, kind), secret=secret)

    def check(name: str, value: Any) -> Iterator[str]:
        if not isinstance(value, kind):
            yield from whole_check(name, value)
            return
        items = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
        for key, item in items:
            yield from item_check(name if key is None else f"{name}.{key}", item)

    return check


def quote_value(value: Any) -> str:
    """The value as JSON, cut to the length of a message."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def _is_int(value: Any, minimum: int, maximum: int = _MAX_NUMBER) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_NUMBER


def _is_line(value: Any) -> bool:
    """One line of text, not empty."""
    return isinstance(value, str) and bool(value.strip()) and value.strip().isprintable()


def _is_key(value: Any) -> bool:
    """What an HTTP header can carry. Empty is valid, since local servers need no key."""
    return isinstance(value, str) and value.strip().isascii() and value.strip().isprintable()


def _is_web_url(value: Any) -> bool:
    return isinstance(value, str) and _is_url(value.strip(), ("http", "https"))


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    parts = split_url(value)
    is_clean = value.isprintable() and not set(value) & set(' \\"<>')
    return is_clean and parts is not None and parts.scheme in schemes and bool(parts.hostname)


def _is_encodable(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_path(value: Any) -> bool:
    return _is_encodable(value) and "\0" not in value


def _is_host_list(value: Any) -> bool:
    names = parse_names(value) if isinstance(value, str) else value
    name = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
    return isinstance(names, list | tuple) and all(isinstance(n, str) and name.fullmatch(n.strip()) for n in names)


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value.strip()) is not None


def _empty_or(is_valid: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and (not value.strip() or is_valid(value.strip()))


def _is_private_exception(value: Any) -> bool:
    """A host, a host with its port, or a network. There is no wildcard."""
    import ipaddress

    if not _is_line(value) or set(value.strip()) & set(" \\@*?#"):
        return False
    text = value.strip()
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        parts = split_url(f"//{text}")
        return "/" not in text and parts is not None and bool(parts.hostname)
    return True


def check_private_exceptions(name: str, value: Any) -> Iterator[str]:
    entries = parse_names(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        yield f"{name} must be a list of hosts, host:port or networks (got {quote_value(value)})"
        return
    for entry in entries:
        if not _is_private_exception(entry):
            yield f"{name} has {quote_value(entry)}, which is no host, host:port or network"


def _check_tool(name: str, tool: Any) -> Iterator[str]:
    if not isinstance(tool, str) or re.fullmatch(r"[a-z][a-z0-9_-]{0,49}", tool) is None:
        yield f"{name} must have the names of files in the folder plugins, in small letters (got {quote_value(tool)})"
    elif tool.replace("-", "_") in _TOOLS_OF_NEXI:
        yield f"{name} has {quote_value(tool)}, and nexi has a tool of that name: rename the file"


def check_roles(name: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{name} must be an object with any of {', '.join(ROLES)} (got {quote_value(value)})"
        return
    for role, part in value.items():
        if role not in ROLES:
            yield f"{name} has {quote_value(role)}, which is none of {', '.join(ROLES)}"
        elif not isinstance(part, Mapping):
            yield f"{name}.{role} must be an object with any of {', '.join(_ROLE_CHECKS)}"
        else:
            for key, setting in part.items():
                if key not in _ROLE_CHECKS:
                    yield f"{name}.{role} has {quote_value(key)}, which is none of {', '.join(_ROLE_CHECKS)}"
                else:
                    yield from _ROLE_CHECKS[key](f"{name}.{role}.{key}", setting)


def _is_price(value: Any) -> bool:
    is_pair = isinstance(value, Mapping) and set(value) == {"input", "output"}
    return is_pair and all(_is_number(price) and price >= 0 for price in value.values())


def whole_number_up_to(maximum: int) -> Check:
    return _make_check(f"must be a whole number from 1 to {maximum}", lambda v: _is_int(v, 1, maximum))


BOOLEAN = _make_check("must be true or false", lambda v: isinstance(v, bool))
POSITIVE_INT = _make_check("must be a positive integer", lambda v: _is_int(v, 1))
NON_NEGATIVE_INT = _make_check("must be a non-negative integer", lambda v: _is_int(v, 0))
OPTIONAL_INT = _make_check("must be a positive integer or null", lambda v: v is None or _is_int(v, 1))
POSITIVE_NUMBER = _make_check("must be a positive number", lambda v: _is_number(v) and v > 0)
OPTIONAL_NUMBER = _make_check("must be a positive number or null", lambda v: v is None or (_is_number(v) and v > 0))
SHARE = _make_check("must be a number between 0.0 and 1.0", lambda v: _is_number(v) and 0 <= v <= 1)
TEMPERATURE = _make_check("must be a number between 0.0 and 2.0", lambda v: _is_number(v) and 0 <= v <= 2)
PORT = _make_check("must be a port, or 0 to have one chosen", lambda v: _is_int(v, 0, 65535))
CHUNK_SIZE = _make_check("must be a number of characters from 200 to 20000", lambda v: _is_int(v, 200, 20_000))
EFFORT = _make_check("must be one of s, m, l", lambda v: isinstance(v, str) and v in EFFORT_LEVELS)
SERVE_TOKEN = _make_check("must be private or always", lambda v: v in ("private", "always"))
LINE = _make_check("must be a non-empty string on one line", _is_line)
OPTIONAL_LINE = _make_check("must be a string on one line", lambda v: isinstance(v, str) and v.strip().isprintable())
TEXT = _make_check("must be a string", _is_encodable)
PROMPT = _make_check("must be text", lambda v: v is None or _is_encodable(v), secret=True)
OPTIONAL_EMAIL = _make_check("must be empty, or an email address", _empty_or(_matches(r"[!-?A-~]+@[!-?A-~]+\.[!-?A-~]+")))
NAME_LIST = _make_check(
    "must be a name or a list of names",
    lambda v: v.strip().isprintable() if isinstance(v, str) else isinstance(v, list | tuple) and all(map(_is_line, v)),
)
HOST_LIST = _make_check("must be a list of host names", _is_host_list)
FILE = _make_check("must be empty, or name a file", _is_path)
FOLDER = _make_check("must be empty, or name a folder", _is_path)
# what a container engine reads as an image and never as an option
IMAGE = _make_check("must be the name of a container image", _matches(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*"))
IMAGE_TAG = _make_check("must be the tag of a container image", _matches(r"(?a:\w[\w.-]{0,127})"))
OCR_LANGUAGES = _make_check(
    "must be empty, or names such as deu+eng", _matches(r"(?:[A-Za-z][A-Za-z_]{1,20}(?:[+, ]+|$)){0,10}")
)
KEY = _make_check("must be a string of one line of ASCII text", _is_key, secret=True)
OPTIONAL_KEY = _make_check(
    "must be a string of one line of ASCII text, or null", lambda v: v is None or _is_key(v), secret=True
)
WEB_URL = _make_check("must start with http:// or https:// and name a host", _is_web_url, secret=True)
_EMPTY_OR_URL = "must be empty, or start with http:// or https:// and name a host"
OPTIONAL_WEB_URL = _make_check(_EMPTY_OR_URL, _empty_or(_is_web_url), secret=True)
SEARXNG_URL = _make_check(_EMPTY_OR_URL, _empty_or(lambda v: _is_web_url(parse_searxng_url(v))), secret=True)
PROXY_URL = _make_check(
    "must be the address of a proxy",
    _empty_or(lambda v: _is_url(parse_proxy_url(v), ("http", "https", "socks5", "socks5h"))),
    secret=True,
)
API_KEYS = _make_items_check(
    "must be an object of provider names and keys",
    _make_check(
        "must be a key or a list of keys, each one line of ASCII text",
        lambda v: _is_key(v) or (isinstance(v, list | tuple) and all(map(_is_key, v))),
        secret=True,
    ),
    secret=True,
)
SERVICE_URLS = _make_items_check("must be an object of service names and addresses", WEB_URL, secret=True)
URL_LIST = _make_items_check(
    "must be a list of addresses",
    _make_check("must have addresses that start with http:// or https:// and name a host", _is_web_url, secret=True),
    kind=(list, tuple),
)
TOOLS = _make_items_check("must be a list of names", _check_tool, kind=(list, tuple))
PRICES = _make_items_check(
    "must be an object of model names", _make_check("must have input and output, in dollars per million tokens", _is_price)
)
_ROLE_CHECKS: Mapping[str, Check] = {"base_url": WEB_URL, "api_key": KEY, "model": LINE, "max_context": POSITIVE_INT}
