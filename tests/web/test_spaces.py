"""Spaces over HTTP, for the owner of a server: made, asked in, listed and removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.world import MOON, QUESTION, Served, serving

LEASE = b"The rent of the flat is 812 euros a month. The notice period of the flat is three months. " * 5
RENT = "What is the rent of the flat a month?"
FLAT = {"name": "flat", "instructions": "Quote the clause.", "model": "", "effort": "s", "scope": "local", "services": []}


async def add_flat(served: Served) -> None:
    made = await served.client.post("/v1/spaces", json={"name": "flat", "instructions": "Quote the clause.", "scope": "local"})
    assert (made.status_code, made.headers["location"]) == (201, "/v1/spaces/flat")
    taken = await served.client.post("/page/files?name=lease.txt&space=flat", content=LEASE)
    assert taken.status_code == 200, taken.text


async def test_a_space_is_made_changed_and_listed(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        changed = await served.client.patch("/v1/spaces/flat", json={"effort": "s"})
        listed = (await served.client.get("/v1/spaces")).json()
    assert changed.json() == {**FLAT, "owner": "", "address": "flat"}
    assert listed == {"spaces": [changed.json()]}


async def test_a_question_in_a_space_is_answered_from_its_files_and_remembers_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        run_id = await served.ask(RENT, space="flat")
        assert (await served.end_of(run_id))["state"] == "finished"
        other = await served.ask(QUESTION)
        await served.end_of(other)
        result = (await served.client.get(f"/v1/runs/{run_id}/result")).json()
        runs = (await served.client.get("/v1/runs?space=flat")).json()["runs"]
        started = (await served.events(run_id))[0][1]
    assert ("812 euros" in result["answer"], [s["title"] for s in result["sources"]]) == (True, ["lease.txt"])
    assert [(run["id"], run["space"]) for run in runs] == [(run_id, "flat")]
    asked = started["request"]
    assert (asked["space"], asked["instructions"], asked["scope"]) == ("flat", "Quote the clause.", "local")


async def test_pages_are_put_into_a_space_and_taken_out_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.client.post("/v1/spaces", json={"name": "moon"})
        put = await served.client.post("/v1/spaces/moon/sources", json={"urls": [MOON]})
        before = (await served.client.get("/v1/spaces/moon/sources")).json()["sources"]
        removed = await served.client.delete("/v1/spaces/moon/sources", params={"url": MOON})
        after = (await served.client.get("/v1/spaces/moon/sources")).json()["sources"]
        stored = (await served.client.get("/page/knowledge")).json()["sources"]
    assert (put.json()["stored"], [source["url"] for source in before], removed.status_code, after) == (1, [MOON], 204, [])
    assert [source["url"] for source in stored] == [MOON]


@pytest.mark.parametrize(("query", "left"), [("", ["lease.txt"]), ("?files=delete", [])])
async def test_a_removed_space_leaves_its_threads_and_its_files_unless_they_are_to_go(
    tmp_path: Path, query: str, left: list[str]
) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        run_id = await served.ask(RENT, space="flat")
        await served.end_of(run_id)
        assert (await served.client.delete(f"/v1/spaces/flat{query}")).status_code == 204
        stored = (await served.client.get("/page/knowledge")).json()["sources"]
        runs = (await served.client.get("/v1/runs")).json()["runs"]
        gone = await served.client.post("/v1/runs", json={"question": RENT, "space": "flat"})
    assert ([source["title"] for source in stored], [run["id"] for run in runs]) == (left, [run_id])
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "no_such_space")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/spaces", {"name": "../x"}, 400),
        ("POST", "/v1/spaces", {"name": "a", "effort": "xl"}, 400),
        ("PATCH", "/v1/spaces/none", {"effort": "s"}, 404),
        ("DELETE", "/v1/spaces/none", None, 404),
        ("POST", "/v1/spaces/none/sources", {"urls": [MOON]}, 404),
        ("PUT", "/v1/spaces/none/shares", {"team": True}, 404),
    ],
)
async def test_what_is_no_space_is_refused(tmp_path: Path, method: str, path: str, body: Any, status: int) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.request(method, path, json=body)
    assert (reply.status_code, bool(reply.json()["error"]["message"])) == (status, True)


async def test_a_name_is_given_once_and_a_guest_has_no_space(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        twice = await served.client.post("/v1/spaces", json={"name": "flat"})
        guest = await served.client.post(
            "/v1/runs", json={"question": RENT, "space": "flat"}, headers={"authorization": "Bearer no"}
        )
    assert (twice.status_code, guest.status_code, guest.json()["error"]["message"]) == (409, 404, "a guest has no spaces")


async def test_what_is_no_web_address_is_not_read_into_a_space(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        replies = [
            await served.client.post("/v1/spaces/flat/sources", json={"urls": [MOON, name]}) for name in ("/etc/passwd", "")
        ]
    assert [(reply.status_code, reply.json()["error"]["parameter"]) for reply in replies] == [(400, "urls")] * 2


async def test_a_local_space_keeps_a_question_from_the_web_whatever_it_says(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        run_id = await served.ask(RENT, space="flat", options={"focus": "web"})
        await served.end_of(run_id)
        events = [event for _, event in await served.events(run_id)]
    assert events[0]["request"]["scope"] == "local"
    assert not served.web.asked.is_set()


async def test_a_follow_up_stays_in_its_space_while_there_is_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await add_flat(served)
        first = await served.ask(RENT, space="flat")
        await served.end_of(first)
        second = await served.ask("What is the notice period of the flat?", continues=first)
        await served.end_of(second)
        await served.client.delete("/v1/spaces/flat")
        third = await served.ask("And the rent?", continues=second, options={"only_local": True})
        await served.end_of(third)
        shown = (await served.client.get(f"/v1/runs/{first}")).json()["space"]
        kept = [item["id"] for item in (await served.client.get("/page/history?space=flat")).json()["items"]]
        requests = [(await served.events(run_id))[0][1]["request"].get("space", "") for run_id in (first, second, third)]
    assert (kept, requests, shown) == ([second, first], ["flat", "flat", ""], "flat")
