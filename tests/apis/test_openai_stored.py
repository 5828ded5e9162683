"""Responses given again: retrieved, followed, cancelled and deleted, and what they were asked with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.testing import answering, reading, searching
from nexi.types import Reply
from tests.apis.test_openai_responses import PATH, SAID, body, scripted
from tests.web.world import MOON, QUESTION, GatedWeb, Served, serving


async def give(served: Served, **more: Any) -> dict[str, Any]:
    reply = await served.client.post(PATH, json=body(**more))
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def follow(served: Served, response_id: str, query: str = "") -> list[dict[str, Any]]:
    async with served.client.stream("GET", f"{PATH}/{response_id}?stream=true{query}") as stream:
        lines = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


async def test_a_response_is_given_again_as_it_was(tmp_path: Path) -> None:
    async with serving(tmp_path, **scripted(tmp_path, searching("moon"), reading(MOON), answering(SAID))) as served:
        given = await give(served, metadata={"ticket": "7"}, instructions="Be brief.")
        again = (await served.client.get(f"{PATH}/{given['id']}")).json()
    assert again == given
    assert (again["metadata"], again["instructions"]) == ({"ticket": "7"}, "Be brief.")


async def test_a_response_in_the_background_is_followed_and_ends_without_its_client(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        begun = await give(served, background=True)
        assert (begun["status"], begun["background"], begun["output"]) == ("queued", True, [])
        await served.web.asked.wait()
        assert (await served.client.get(f"{PATH}/{begun['id']}")).json()["status"] == "in_progress"
        served.web.gate.set()
        events = await follow(served, begun["id"])
        ended = (await served.client.get(f"{PATH}/{begun['id']}")).json()
    assert (ended["status"], ended["output"][-1]["type"]) == ("completed", "message")
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    assert events[-1]["response"] == ended


async def test_a_reader_that_was_cut_off_gets_the_events_after_the_last_it_saw(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        begun = await give(served, background=True)
        whole = await follow(served, begun["id"])
        rest = await follow(served, begun["id"], "&starting_after=3")
        last = await follow(served, begun["id"], "&starting_after=9999")
    assert rest == whole[4:]
    assert last == whole[-1:]


async def test_a_stream_in_the_background_outlives_its_reader(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        async with served.client.stream("POST", PATH, json=body(background=True, stream=True)) as stream:
            line = await anext(line async for line in stream.aiter_lines() if line.startswith("data: "))
        response_id = json.loads(line.removeprefix("data: "))["response"]["id"]
        served.web.gate.set()
        events = await follow(served, response_id)
    assert events[-1]["type"] == "response.completed"


async def test_a_response_in_the_background_is_cancelled_once(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        begun = await give(served, background=True)
        await served.web.asked.wait()
        replies = [(await served.client.post(f"{PATH}/{begun['id']}/cancel")).json() for _ in range(2)]
        shown = (await served.client.get(f"{PATH}/{begun['id']}")).json()
    assert [reply["status"] for reply in (*replies, shown)] == ["cancelled"] * 3


async def test_a_response_that_is_not_in_the_background_cannot_be_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        given = await give(served)
        refused = await served.client.post(f"{PATH}/{given['id']}/cancel")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == ("only a response in the background can be cancelled. close the connection")


async def test_a_failed_response_says_why_when_it_is_given_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        begun = await give(served, background=True, model="nexi-local")
        events = await follow(served, begun["id"])
        shown = (await served.client.get(f"{PATH}/{begun['id']}")).json()
    assert (events[-1]["type"], shown["status"], shown["error"]["code"]) == ("response.failed", "failed", "no_evidence")


async def test_a_deleted_response_is_gone_with_its_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        given = await give(served)
        gone = (await served.client.delete(f"{PATH}/{given['id']}")).json()
        again = await served.client.get(f"{PATH}/{given['id']}")
        run = await served.client.get(f"/v1/runs/{given['id'].removeprefix('resp_')}")
    assert gone == {"id": given["id"], "object": "response", "deleted": True}
    assert (again.status_code, again.json()["error"]["code"], run.status_code) == (404, "not_found", 404)


async def test_a_response_that_is_not_to_be_stored_leaves_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        given = await give(served, store=False)
        run_id = given["id"].removeprefix("resp_")
        listed = (await served.client.get("/v1/runs")).json()["runs"]
        again = await served.client.get(f"{PATH}/{given['id']}")
    assert (given["status"], given["store"]) == ("completed", False)
    assert (listed, again.status_code) == ([], 404)
    assert list((tmp_path / "runs").glob(f"{run_id}*")) == []


async def test_the_json_of_a_response_is_not_kept_and_that_is_said(tmp_path: Path) -> None:
    steps = (searching("moon"), reading(MOON), answering(SAID), Reply('{"km": 384400}'))
    schema = {"type": "object", "properties": {"km": {"type": "integer"}}}
    form = {"format": {"type": "json_schema", "name": "distance", "schema": schema}}
    async with serving(tmp_path, **scripted(tmp_path, *steps)) as served:
        given = await give(served, text=form)
        again = await served.client.get(f"{PATH}/{given['id']}")
    assert json.loads(given["output"][-1]["content"][0]["text"]) == {"km": 384400}
    assert (again.status_code, again.json()["error"]["code"]) == (409, "not_kept")


TURNS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Good day."},
    {"role": "user", "content": QUESTION},
]


async def test_what_a_response_was_asked_with_is_listed_in_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        given = await give(served, input=TURNS)
        path = f"{PATH}/{given['id']}/input_items"
        first = (await served.client.get(f"{path}?limit=2")).json()
        rest = (await served.client.get(f"{path}?after={first['last_id']}")).json()
        forwards = (await served.client.get(f"{path}?order=asc")).json()
    texts = [(item["role"], item["content"][0]["text"]) for item in (*first["data"], *rest["data"])]
    assert texts == [(turn["role"], turn["content"]) for turn in reversed(TURNS)]
    assert (first["object"], first["has_more"], rest["has_more"]) == ("list", True, False)
    assert [item["content"][0]["text"] for item in forwards["data"]] == [turn["content"] for turn in TURNS]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "order=newest", "after=msg_1"], ids=lambda query: str(query)
)
async def test_a_list_that_cannot_be_given_is_refused(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as served:
        given = await give(served)
        refused = await served.client.get(f"{PATH}/{given['id']}/input_items?{query}")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("name", ["resp_ffffff", "resp_", "..%2f..%2fetc", "resp_" + "f" * 500])
async def test_a_response_that_is_not_there_is_unknown_at_every_door(tmp_path: Path, name: str) -> None:
    async with serving(tmp_path) as served:
        asked = [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items"), ("GET", "?stream=true")]
        replies = [await served.client.request(method, f"{PATH}/{name}{more}") for method, more in asked]
    assert [reply.status_code for reply in replies] == [404] * 5


async def test_a_run_of_another_door_can_be_had_as_a_response(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.end_of(run_id)
        shown = (await served.client.get(f"{PATH}/resp_{run_id}")).json()
    assert (shown["status"], shown["output"][-1]["type"]) == ("completed", "message")


async def test_a_guest_gets_a_guests_response_again_and_not_the_owners(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.base, timeout=120) as guest:
        owners = await give(served)
        given = (await guest.post(PATH, json=body())).json()
        shown = [(await guest.get(f"{PATH}/{response['id']}")).status_code for response in (given, owners)]
    assert shown == [200, 404]
