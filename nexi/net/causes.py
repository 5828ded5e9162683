"""What the operating system and libraries say about a failed connection, in words for people. Pure."""

from __future__ import annotations

import re

from nexi.notices import Notice

_UNKNOWN_NAME = re.compile(
    r"name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address", re.I
)
_NO_LISTENER = re.compile(r"connection refused|all connection attempts failed|actively refused", re.IGNORECASE)
_CODES = re.compile(r"^\[[^\]]*\]\s*|\s*\(_ssl\.c:\d+\)")  # such as [Errno 111], [SSL: WRONG_VERSION_NUMBER]


def plain_cause(words: str) -> str:
    """The same cause without error numbers, and in plain English where it is a common one."""
    if _UNKNOWN_NAME.search(words):
        return Notice("network.own_name", "its name cannot be resolved")
    if _NO_LISTENER.search(words):
        return Notice("network.no_listener", "nothing answers at that address")
    return _CODES.sub("", words).strip() or words
