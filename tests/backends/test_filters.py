"""What each backend's filters are, and that the handbook says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nexi.backends import BACKENDS, NEEDS_KEY, Settings, create_backend
from nexi.backends.sender import BackendDialect, HttpBackend, Sender
from nexi.types import Query
from tests.backends.test_more_backends import DIALECTS

HANDBOOK = Path(__file__).resolve().parents[2] / "docs" / "search-and-pages.md"
FILTERS = {"site": Query("q", sites=("a.example",)), "time": Query("q", time_range="w"), "language": Query("q", language="de")}


def sent(dialect: BackendDialect, query: Query) -> str:
    request = dialect.request(query)
    return json.dumps([request.url, request.params, request.json])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", FILTERS)
def test_a_dialect_sends_the_filters_it_has_and_no_other(dialect: BackendDialect, name: str) -> None:
    changes = sent(dialect, FILTERS[name]) != sent(dialect, Query("q"))
    assert changes is (name in HttpBackend(dialect, Sender(user_agent="test")).filters)


async def test_the_table_of_the_handbook_is_what_the_backends_say() -> None:
    sender = Sender(user_agent="test")
    rows = {}
    for name in BACKENDS:
        known = getattr(create_backend(name, Settings("http://127.0.0.1:9", "key", root="."), sender), "filters", None)
        assert known is not None, name
        rows[name] = (name in NEEDS_KEY, *("yes" if f in known else "no" for f in FILTERS))
    await sender.aclose()
    found = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (yes|no) \| (yes|no) \| (yes|no) \|", HANDBOOK.read_text(encoding="utf-8"), re.M
    )
    assert {name: (key == "needed", *filters) for name, key, *filters in found} == rows
