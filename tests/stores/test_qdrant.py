"""Qdrant over HTTP: what is sent to the server, checked with the models that are generated from its published interface."""

from __future__ import annotations

import json
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("qdrant_client")
from qdrant_client import models

from nexi.errors import StoreError
from nexi.stores._schema import TERMS
from nexi.stores._writing import key_of
from nexi.stores.qdrant import QdrantStore
from nexi.stores.qdrant._points import chunk_id, slugify, source_id
from nexi.types import Chunk, IndexedPage, Scope, StoredSource
from tests.stores.qdrant_interface import problems

PAGE = IndexedPage(
    StoredSource("https://space.example/moon", digest="d", tags=("space",)),
    (Chunk("The moon is far."),),
    (array("f", [0.6, 0.8]),),
)


class Server:
    """The few answers that these tests need, and all that was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.collections: set[str] = set()
        self.points: dict[str, dict[str, Any]] = {}
        self.status = 0
        self.problems: list[str] = []
        self.scrolls = False

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path, body))
        if self.status:
            return self.status, {"status": {"error": "no"}, "time": 0.0}
        status, reply = self._reply(method, path, body)
        self.problems += problems(method, path, body, reply)
        return status, reply

    def _reply(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[-1] == "exists":
            return 200, _ok({"exists": parts[1] in self.collections})
        if method == "PUT" and len(parts) == 2:
            self.collections.add(parts[1])
            return 200, _ok(True)
        if method == "PUT" and parts[-1] == "points":
            self.points.update({p["id"]: p for p in body["points"]})
            return 200, _ok({"operation_id": 1, "status": "completed"})
        if method == "POST" and parts[-1] == "points":
            return 200, _ok([{"id": i, "payload": self.points[i]["payload"]} for i in body["ids"] if i in self.points])
        if parts[-1] == "scroll":
            found = [p for p in self.points.values() if self.scrolls and "text" in p["payload"]]
            shown = [{name: p[name] for name in ("id", "payload", "vector")} for p in found]
            return 200, _ok({"points": shown, "next_page_offset": None})
        if parts[-1] == "count":
            return 200, _ok({"count": len(self.points)})
        if parts[-1] == "query":
            found = [p for p in self.points.values() if "text" in p["payload"]]
            return 200, _ok({"points": [{"id": p["id"], "version": 1, "score": 0.5, "payload": p["payload"]} for p in found]})
        return 200, _ok({"operation_id": 1, "status": "completed"} if "points" in path or "index" in path else True)


def _ok(result: Any) -> dict[str, Any]:
    return {"result": result, "status": "ok", "time": 0.001}


@contextmanager
def serving(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            server.headers.append({k.lower(): v for k, v in self.headers.items()})
            status, value = server.answer(self.command, self.path, json.loads(raw) if raw else None)
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)


async def test_pages_and_questions_are_sent_as_the_interface_wants_them() -> None:
    server = Server()
    with serving(server) as url:
        store = QdrantStore.at(url, shards=4, replicas=2)
        await store.put([PAGE], embedder="toy")
        found = await store.dense(array("f", [1.0, 0.0]), embedder="toy", scope=Scope(tags=("space",)))
        await store.aclose()
    assert [(p.url, p.text, p.tags) for p in found] == [("https://space.example/moon", "The moon is far.", ("space",))]
    name = f"nexi_{slugify('toy')}_2"
    assert server.collections == {"nexi_sources", "nexi_words", name}
    made = {path.split("?")[0]: body for method, path, body in server.asked if method == "PUT"}
    collection = models.CreateCollection.model_validate(made[f"/collections/{name}"])
    assert (collection.shard_number, collection.replication_factor) == (4, 2)
    assert (collection.vectors, collection.sparse_vectors) == (
        {"dense": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        {"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    models.PointsList.model_validate(made[f"/collections/{name}/points"])
    indexed = {body["field_name"] for _, path, body in server.asked if path.startswith(f"/collections/{name}/index")}
    assert {"digest", "sources[].within", "sources[].tags", "sources[].fetched"} <= indexed
    [query] = [models.QueryRequest.model_validate(body) for _, path, body in server.asked if path.endswith("/points/query")]
    assert (query.query, query.using) == (models.NearestQuery(nearest=[1.0, 0.0]), "dense")


async def test_every_call_and_every_answer_of_the_stub_is_one_of_the_interface() -> None:
    server = Server()
    every = Scope(
        urls=("https://space.example/moon",),
        domains=("space.example",),
        excluded_domains=("sun.example",),
        languages=("en",),
        tags=("space",),
        since="2026-01-01",
        until="2026-12-31",
        code=False,
    )
    with serving(server) as url:
        store = QdrantStore.at(url)
        await store.put([PAGE], embedder="toy")
        await store.link(StoredSource("https://space.example/luna", digest="d"))
        await store.source("https://space.example/moon")
        await store.sources(every)
        await store.passages("https://space.example/moon", 0, 3)
        await store.lexical("moon", scope=every)
        await store.dense(array("f", [1.0, 0.0]), embedder="toy", scope=every)
        await store.list_unembedded()
        await store.stats()
        chunk = chunk_id(key_of("https://space.example/moon"), 0)
        await store.add_vectors({chunk: array("f", [0.0, 1.0])}, embedder="toy")
        server.scrolls = True
        await store.forget_vectors()
        server.scrolls = False
        await store.remove(["https://space.example/moon"])
        await store.aclose()
    assert server.problems == []
    assert {f"{method} {path.partition('?')[0].partition('/points')[2]}" for method, path, _ in server.asked} >= {
        "PUT ", "POST ", "POST /scroll", "POST /query", "POST /count", "POST /delete", "POST /payload", "PUT /vectors",
    }  # fmt: skip


async def test_the_points_of_a_team_name_their_person_and_every_search_asks_for_them() -> None:
    server = Server()
    with serving(server) as url:
        store = QdrantStore.at(url, person="ada")
        await store.put([PAGE], embedder="toy")
        await store.lexical("moon")
        await store.dense(array("f", [1.0, 0.0]), embedder="toy", scope=Scope(tags=("space",)))
        await store.sources()
        await store.list_unembedded()
        await store.stats()
        await store.prepare_reembedding("other")
        server.scrolls = True
        chunk = chunk_id(f"ada {key_of('https://space.example/moon')}", 0)
        await store.add_vectors({chunk: array("f", [1.0, 0.0, 0.0])}, embedder="other")
        server.scrolls = False
        await store.remove(["https://space.example/moon"])
        await store.aclose()
    assert server.problems == []
    assert {point["payload"].get("person") for point in server.points.values()} == {"ada", None}  # None: the state
    indexes = [body for _, path, body in server.asked if path.partition("?")[0].endswith("/index")]
    tenant = {"field_name": "person", "field_schema": {"type": "keyword", "is_tenant": True}}
    assert sum(body == tenant for body in indexes) >= 2
    reads = {"key": "person", "match": {"any": ["ada", "team"]}}
    searches = [body for _, path, body in server.asked if path.endswith("/points/query")]
    assert [reads in body["filter"]["must"] for body in searches] == [True, True]


async def test_ids_come_from_the_url_and_the_number_alone() -> None:
    key = key_of("https://space.example/moon")
    assert chunk_id(key, 0) == chunk_id(key_of("http://space.example/moon#x"), 0) != chunk_id(key, 1)
    server = Server()
    with serving(server) as url:
        store = QdrantStore.at(url)
        await store.put([PAGE], embedder="toy")
        await store.aclose()
    assert chunk_id(key, 0) in server.points


async def test_the_key_goes_to_the_server_and_into_no_message() -> None:
    server = Server()
    server.status = 403
    with serving(server) as url:
        with pytest.warns(UserWarning, match="insecure connection"):
            store = QdrantStore.at(url, api_key="q-secret-key")
        with pytest.raises(StoreError) as refused:
            await store.stats()
        await store.aclose()
    assert server.headers[0]["api-key"] == "q-secret-key"
    assert (refused.value.code, "QDRANT_API_KEY" in refused.value.fix) == ("store_qdrant", True)
    assert "q-secret-key" not in f"{refused.value}{refused.value.fix}"


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_a_server_in_trouble_is_an_error_with_a_fix(status: int) -> None:
    server = Server()
    server.status = status
    with serving(server) as url:
        store = QdrantStore.at(url)
        with pytest.raises(StoreError) as failed:
            await store.lexical("moon")
        await store.aclose()
    assert "QDRANT_URL" in failed.value.fix


async def test_nobody_listening_is_an_error_with_a_fix() -> None:
    store = QdrantStore.at("http://127.0.0.1:9")
    with pytest.raises(StoreError) as failed:
        await store.source("https://space.example/moon")
    await store.aclose()
    assert (failed.value.code, "QDRANT_URL" in failed.value.fix) == ("store_qdrant", True)


async def test_words_that_an_earlier_version_numbered_are_numbered_anew_once() -> None:
    server = Server()
    with serving(server) as url:
        store = QdrantStore.at(url)
        await store.put([PAGE], embedder="toy")
        await store.aclose()
        state = server.points[source_id("state")]["payload"]
        wanted = server.points[chunk_id(key_of("https://space.example/moon"), 0)]["vector"]["words"]
        del state["terms"]
        server.asked.clear()
        server.scrolls = True
        store = QdrantStore.at(url)
        await store.lexical("moons")
        await store.lexical("moons")
        await store.aclose()
    sent = [body["points"] for method, path, body in server.asked if method == "PUT" and "/points/vectors" in path]
    assert sent == [[{"id": chunk_id(key_of("https://space.example/moon"), 0), "vector": {"words": wanted}}]]
    assert server.points[source_id("state")]["payload"] == {**state, "terms": TERMS}
    assert server.problems == []
