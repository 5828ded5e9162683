"""The services that need no key: what each is good for, how often it may be asked, and what its terms want.

The rows are in `services.json`; how a service is asked and how its answers read is the adapter's (`nexi/backends/services`).
The rates are those of the services' own documentation, or slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

Wording = Literal["question", "words", "keywords", "name", "package", "address"]


class Service(msgspec.Struct, frozen=True):
    """One service. `wording` is what it is asked with; `documentation` is where its terms and its answers are described."""

    name: str
    title: str
    good_for: str
    documentation: str
    terms: str
    interval_s: float = 1.0  # between two requests
    wording: Wording = "keywords"
    filters: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # whose pages it finds, for a query that is limited to sites
    credit: str = ""  # what must stand beside its results
    key: str = ""  # what a key changes, where it takes one
    needs_url: bool = False  # it is asked only where an address is set
    needs_contact: bool = False  # it is asked only where the user has set an email address
    last_called: str = ""  # the day on which someone last reported an answer to nexi, as 2026-11-17


_ROWS = msgspec.json.decode(Path(__file__).with_name("services.json").read_bytes(), type=tuple[Service, ...])
SERVICES: Mapping[str, Service] = {service.name: service for service in _ROWS}
