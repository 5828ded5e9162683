"""Whatever is sent to a contract, the answer is its own: a result or a refusal in its shape, never a fault of ours."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from nexi.apis import openwebui, tavily
from nexi.apis.search import routes as search
from nexi.structured.schema_check import check_schema, schema_of
from nexi.testing import ScriptedLLM
from nexi.types import Reply
from nexi.web import documents
from tests.apis.search.support import HITS, Fetcher
from tests.web.doors import DOORS, application
from tests.web.doors import nexi as world

pytestmark = pytest.mark.long

NAUGHTY: list[str] = json.loads((Path(__file__).parent / "naughty.json").read_text(encoding="utf-8"))
TEXT = st.sampled_from(NAUGHTY) | st.text(max_size=40)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
ANY = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12)
VERIFY = schema_of(documents.VerifyBody)
BODIES: dict[str, Mapping[str, Any]] = {
    "/v1/search": schema_of(search.SearchBody),
    "/v1/snippet_rank": schema_of(search.RankBody),
    "/tavily/search": schema_of(tavily.TavilySearch),
    "/tavily/extract": schema_of(tavily.TavilyExtract),
    "/openwebui/search": schema_of(openwebui.OpenWebUISearch),
    "/openwebui/load": schema_of(openwebui.OpenWebUIPages),
    # Of one target, since two are refused, and as JSON.
    "/v1/verify": {
        **VERIFY,
        "required": ["text"],
        "properties": {name: part for name, part in VERIFY["properties"].items() if name not in ("url", "run_id", "format")},
    },
}
CONTRACTS = (*DOORS, documents.CONTRACT)
SHAPES = {"/v1": ["error"], "/searxng": ["error"], "/tavily": ["detail"], "/openwebui": ["detail"]}
FEW = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def near(schema: Any) -> st.SearchStrategy[Any]:
    """Values near a schema: of its kinds, around its limits, and seldom of another kind."""
    return st.integers(0, 19).flatmap(lambda n: ANY if n == 0 else _fitting(schema))


def _fitting(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "anyOf" in schema:
        return st.one_of([_fitting(branch) for branch in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", ["object", "array", "string", "integer", "null"])
    parts = {name: near(part) for name, part in schema.get("properties", {}).items()}
    needed = {name: parts[name] for name in schema.get("required", ())}
    made = {
        "object": lambda: st.fixed_dictionaries(
            needed, optional={name: part for name, part in parts.items() if name not in needed}
        ),
        "array": lambda: st.lists(near(schema.get("items") or {"type": "integer"}), max_size=4),
        "string": lambda: TEXT | st.sampled_from([HITS[0].url, "bm25", "en", "2026-01-01"]),
        "integer": lambda: st.integers(-2, 60) | st.integers(),
        "number": lambda: st.floats(0, 1) | st.floats(allow_nan=False),
        "boolean": st.booleans,
        "null": st.none,
    }
    return st.one_of([made[kind]() for kind in ([kinds] if isinstance(kinds, str) else kinds)])


NEAR = {path: near(schema) for path, schema in BODIES.items()}


@pytest.fixture(scope="module")
def http() -> Iterator[TestClient]:
    """One client for all examples; a model that answers nonsense, so that every path is taken."""
    with tempfile.TemporaryDirectory() as folder:
        llm = ScriptedLLM(*[Reply('{"pick":[1,0]}'), Reply("nonsense")] * 1000)
        shared = world(Path(folder), fetcher=Fetcher(), llm=llm)
        with TestClient(application(shared, CONTRACTS)) as caller:
            yield caller


def sound(path: str, got: Any) -> None:
    """A result that fits what the contract says of itself, or a refusal in its shape."""
    described = next(c.openapi()[path] for c in CONTRACTS if path in c.openapi())
    operation = described[got.request.method.lower()]
    assert got.headers["content-type"] == "application/json"
    if got.status_code == 200:
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert check_schema(got.json(), schema) == []
    else:
        assert got.status_code in (400, 422)
        assert list(got.json()) == next(keys for prefix, keys in SHAPES.items() if path.startswith(prefix))


@pytest.mark.parametrize("path", BODIES)
@FEW
@given(data=st.data())
def test_any_body_is_answered_or_refused(http: TestClient, path: str, data: st.DataObject) -> None:
    body = data.draw(NEAR[path])
    if isinstance(body, dict):
        body.pop("include_answer", None)  # a whole search of its own; it has tests of its own
    sound(path, http.post(path, content=json.dumps(body).encode()))


@pytest.mark.parametrize("path", BODIES)
@FEW
@given(body=st.binary(max_size=60) | TEXT.map(lambda text: json.dumps(text).encode()))
def test_any_bytes_are_refused(http: TestClient, path: str, body: bytes) -> None:
    got = http.post(path, content=body)
    assert got.status_code == 400
    sound(path, got)


@pytest.mark.parametrize("path", BODIES)
def test_naughty_strings_pass_through_every_body(http: TestClient, path: str) -> None:
    whole = {
        "/v1/search": lambda text: {"query": {"text": text}, "intent": text[:200], "context_hint": {"known_topics": [text]}},
        "/v1/snippet_rank": lambda text: {
            "qid": text,
            "query": text,
            "candidates": [dict.fromkeys(("title", "snippet", "url"), text)],
        },
        "/tavily/search": lambda text: {"query": text, "country": text, "include_domains": [text[:300]]},
        "/tavily/extract": lambda text: {"urls": [text], "query": text},
        "/openwebui/search": lambda text: {"query": text},
        "/openwebui/load": lambda text: {"urls": [text, HITS[0].url]},
        "/v1/verify": lambda text: {"text": f"BM25 ranks pages [{text}]({HITS[0].url}). {text}"},
    }
    for text in NAUGHTY:
        for form in (json.dumps(whole[path](text)), json.dumps(whole[path](text), ensure_ascii=False)):
            sound(path, http.post(path, content=form.encode()))


@pytest.mark.parametrize("name", ["q", "language", "time_range", "pageno", "format", "engines"])
def test_naughty_strings_pass_through_every_parameter(http: TestClient, name: str) -> None:
    for text in NAUGHTY:
        sound("/searxng/", http.get("/searxng/", params={"q": "bm25", name: text}))
        sound("/searxng/search", http.post("/searxng/search", data={"q": "bm25", name: text}))


@FEW
@given(form=st.binary(max_size=80))
def test_any_form_is_answered_or_refused(http: TestClient, form: bytes) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    sound("/searxng/search", http.post("/searxng/search", content=form, headers=headers))


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    for contract in CONTRACTS:
        described = {(path, method.upper()) for path, item in contract.openapi().items() for method in item}
        served = {(route.path, method) for route in contract.routes for method in route.methods or () if method != "HEAD"}
        assert described == served
