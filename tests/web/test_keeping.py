"""What the page keeps: questions to find again, runs to go on with, knowledge to forget, and a set-up without secrets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from nexi.config import Config
from nexi.doctor import Check, DoctorReport
from nexi.events import RunStarted
from nexi.history import add_history_entry, create_entry
from nexi.types import Page
from nexi.web.page.history import excerpt_answer
from tests.web.world import MOON, QUESTION, GatedWeb, Served, serving

KEY = "sk-very-secret-0123456789"
ATOLL = "https://atoll.example/guide"


async def get(served: Served, path: str) -> Any:
    reply = await served.client.get(path)
    assert reply.status_code == 200, reply.text
    return reply.json()


# history


async def test_what_was_asked_is_found_by_words_of_its_question_or_its_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        moon, mars = await served.ask(), await served.ask("Which moons does Mars have?")
        await served.events(moon)
        await served.events(mars)
        found = await get(served, "/page/history")
        assert {(i["id"], i["state"]) for i in found["items"]} == {(moon, "finished"), (mars, "finished")}
        by_answer = await get(served, "/page/history?q=PHOBOS")
        assert [i["id"] for i in by_answer["items"]] == [mars]
        assert "Phobos" in by_answer["items"][0]["excerpt"]
        assert [i["id"] for i in (await get(served, "/page/history?q=how+far"))["items"]] == [moon]
        apart = (await get(served, "/page/history?q=phobos+which"))["items"]
        assert ([i["id"] for i in apart], "Phobos" in apart[0]["excerpt"]) == ([mars], True)
        await served.client.post(f"/page/history/{mars}", json={"title": "Red planet"})
        assert [i["id"] for i in (await get(served, "/page/history?q=planet+phobos"))["items"]] == [mars]
        assert await get(served, "/page/history?q=nothing+of+that") == {"items": [], "more": False}
        assert (await get(served, "/page/history?limit=1"))["more"] is True


async def test_the_address_bar_is_offered_own_questions_and_titles_of_the_knowledge_base(tmp_path: Path) -> None:
    asked = ["Is the Moon round?", "moon phases", "MOON   phases", "Which planets are there?", "moon " + "x" * 200]
    for number, question in enumerate(asked):
        entry = create_entry(question, "The moon.", [], "m", 1, 2.0, 30, id=f"{number:06x}")
        add_history_entry(entry, tmp_path / "history.jsonl")
    async with serving(tmp_path) as served:
        await served.client.post(
            "/page/files?name=moon-diary.md", content=b"# Moon diary\n\n" + b"It rose late over the bay. " * 8
        )
        found = await served.client.get("/suggest?q=Moon")
        nothing = [(await served.client.get(f"/suggest?q={q}")).json() for q in ("", "%20", "xyzzy")]
        long = await served.client.get("/suggest", params={"q": "x" * 201})
    assert found.headers["content-type"] == "application/x-suggestions+json"
    assert found.headers["cache-control"] == "private, no-store"
    assert found.json() == ["Moon", ["MOON phases", "Is the Moon round?", "Moon diary"]]
    assert (nothing, long.status_code) == ([["", []], [" ", []], ["xyzzy", []]], 400)


async def test_the_list_is_of_one_state_mode_or_space_where_that_is_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.client.post("/v1/spaces", json={"name": "flat"})
        moon, flat = await served.ask(), await served.ask("Which moons does Mars have?", space="flat")
        await served.events(moon)
        await served.events(flat)
        queries = ("state=finished", "state=failed", "mode=search", "mode=research", "space=flat", "space=flat&q=moon")
        found = {query: {i["id"] for i in (await get(served, f"/page/history?{query}"))["items"]} for query in queries}
    assert found == {
        "state=finished": {moon, flat},
        "state=failed": set(),
        "mode=search": {moon, flat},
        "mode=research": set(),
        "space=flat": {flat},
        "space=flat&q=moon": {flat},
    }


async def test_follow_ups_are_one_conversation_with_the_answers_before(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        first = await served.ask()
        await served.events(first)
        second = await served.ask("Which moons does Mars have?", continues=first)
        await served.events(second)
        items = {item["id"]: item for item in (await get(served, "/page/history"))["items"]}
        assert (items[first]["thread"], items[second]["thread"]) == (first, first)
        assert items[second]["words"] > 0
        assert {"seconds", "tokens", "cost"} <= set(items[second])
        turns = (await get(served, f"/page/runs/{second}/thread"))["turns"]
        assert [(turn["id"], turn["question"]) for turn in turns] == [(first, QUESTION)]
        assert "384,400 km" in turns[0]["html"]
        assert (await get(served, f"/page/runs/{first}/thread"))["turns"] == []
        assert (await get(served, f"/page/runs/{second}"))["continues"] == first
        await served.client.delete(f"/v1/runs/{first}")  # its answer stays in the history
        assert [turn["id"] for turn in (await get(served, f"/page/runs/{second}/thread"))["turns"]] == [first]


async def test_a_run_can_have_a_name_and_a_pin_until_it_is_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        moon, mars = await served.ask(), await served.ask("Which moons does Mars have?")
        await served.events(moon)
        await served.events(mars)
        older = (await get(served, "/page/history"))["items"][-1]["id"]
        named = await served.client.post(f"/page/history/{older}", json={"title": "  My   <b>name</b> ", "pinned": True})
        assert named.json() == {"title": "My <b>name</b>", "pinned": True}
        items = (await get(served, "/page/history"))["items"]
        assert (items[0]["id"], items[0]["title"], items[0]["pinned"]) == (older, "My <b>name</b>", True)
        assert [i["id"] for i in (await get(served, "/page/history?q=my+%3Cb"))["items"]] == [older]
        assert (await served.client.post(f"/page/history/{older}", json={"title": "", "pinned": False})).json() == {}
        assert (await served.client.post(f"/page/history/{older}", json={"title": "x" * 301})).status_code == 400
        assert (await served.client.post(f"/page/history/{older}", json={"colour": "red"})).status_code == 400
        await served.client.post(f"/page/history/{older}", json={"pinned": True})
        await served.client.delete(f"/page/history/{older}")
        assert json.loads((tmp_path / "state" / "labels.json").read_text()) == {}


async def test_labels_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "labels.json").write_text('[1, "x"')
    async with serving(tmp_path) as served:
        await served.events(await served.ask())
        assert len((await get(served, "/page/history"))["items"]) == 1


@pytest.mark.parametrize("asked", ["limit=0", "limit=x", "limit=99999999", f"q={'a' * 201}"])
async def test_a_list_that_cannot_be_made_is_refused_in_words(tmp_path: Path, asked: str) -> None:
    async with serving(tmp_path) as served:
        for path in ("/page/history", "/page/knowledge"):
            reply = await served.client.get(f"{path}?{asked}")
            assert (reply.status_code, reply.json()["error"]["parameter"]) == (400, asked[: asked.index("=")])


async def test_an_answer_whose_run_is_gone_can_still_be_read(tmp_path: Path) -> None:
    entry = create_entry("Where is <b>it</b>?", "Here [1]. <script>", [MOON], "m", 1, 2.0, 30, id="abc123")
    add_history_entry(entry, tmp_path / "history.jsonl")
    async with serving(tmp_path) as served:
        items = (await get(served, "/page/history"))["items"]
        assert [(i["id"], i["state"], i["question"]) for i in items] == [("abc123", "answer kept", "Where is <b>it</b>?")]
        view = await get(served, "/page/runs/abc123")
        assert (view["kept"], view["text"], view["sources"][0]["url"]) == (False, "Here [1]. <script>", MOON)
        assert "<script" not in view["html"]
        assert (await served.client.get("/page/runs/abc124")).status_code == 404


async def test_deleting_forgets_the_run_and_its_answer(tmp_path: Path) -> None:
    add_history_entry(create_entry("old", "gone", [], "m", 1, 2.0, 30, id="abc123"), tmp_path / "history.jsonl")
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        for each in (run_id, "abc123"):
            assert (await served.client.delete(f"/page/history/{each}")).status_code == 204
        assert (await get(served, "/page/history"))["items"] == []
        assert (await served.client.delete(f"/page/history/{run_id}")).status_code == 404
        assert not (tmp_path / "runs" / run_id).exists()


def test_an_excerpt_shows_the_words_that_were_looked_for() -> None:
    answer = "alpha " * 100 + "the needle is here " + "omega " * 100
    assert "needle" in excerpt_answer(answer, "needle")
    assert excerpt_answer(answer, "needle").startswith("…")
    assert excerpt_answer("short", "needle") == "short"


# runs


async def test_a_run_of_another_door_that_was_cut_off_goes_on_under_its_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        log = served.app.state.nexi.runs().create()
        await log.append(RunStarted(QUESTION, "m", "extractive", max_iterations=4))
        await log.close()
        assert (await get(served, "/page/history"))["items"][0]["state"] == "unfinished"
        reply = await served.client.post(f"/v1/runs/{log.run_id}/resume")
        assert (reply.status_code, reply.json()["id"], reply.json()["state"]) == (202, log.run_id, "running")
        assert (await served.end_of(log.run_id))["state"] == "finished"
        complete = await served.client.post(f"/v1/runs/{log.run_id}/resume")
        assert (complete.status_code, complete.json()["error"]["code"]) == (409, "complete")


async def test_a_run_that_had_failed_goes_on_under_a_new_id(tmp_path: Path) -> None:
    web = GatedWeb()
    pages, web.pages = web.pages, {}
    async with serving(tmp_path, web=web) as served:
        run_id = await served.ask()
        assert (await served.end_of(run_id))["state"] == "failed"
        web.pages = pages
        reply = await served.client.post(f"/v1/runs/{run_id}/resume")
        again = reply.json()
        assert (reply.status_code, reply.headers["location"]) == (202, f"/v1/runs/{again['id']}")
        assert (again["id"] != run_id, again["question"]) == (True, QUESTION)
        assert (await served.end_of(again["id"]))["last_event_id"] > 1


async def test_a_run_that_was_stopped_before_it_read_anything_is_listed_as_stopped(tmp_path: Path) -> None:
    web = GatedWeb(is_open=False)
    async with serving(tmp_path, web=web) as served:
        run_id = await served.ask()
        await web.asked.wait()
        await served.client.post(f"/v1/runs/{run_id}/stop")
        assert (await served.end_of(run_id))["state"] == "stopped"
        assert [(i["id"], i["state"]) for i in (await get(served, "/page/history"))["items"]] == [(run_id, "stopped")]


async def test_a_run_that_goes_on_cannot_be_taken_up_a_second_time(tmp_path: Path) -> None:
    web = GatedWeb(is_open=False)
    async with serving(tmp_path, web=web) as served:
        run_id = await served.ask()
        await web.asked.wait()
        reply = await served.client.post(f"/v1/runs/{run_id}/resume")
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "run_locked")
        assert (await served.client.post("/v1/runs/aaaaaa/resume")).status_code == 404
        web.gate.set()
        assert (await served.end_of(run_id))["state"] == "finished"


# knowledge


async def know(served: Served, url: str, title: str, text: str) -> None:
    nexi = served.app.state.nexi
    indexer = await nexi.knowledge().indexer(nexi.gate())
    await indexer.index(Page(url, text, title, fetched_at="2031-05-06T12:00:00+00:00"))


async def test_what_is_known_is_listed_searched_and_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        empty = await get(served, "/page/knowledge")
        assert (empty["total"], empty["sources"], empty["on"]) == (0, [], True)
        assert await get(served, "/page/knowledge/find?q=lagoon") == {"hits": []}
        await know(served, ATOLL, "<img src=x>", "An atoll is a ring of coral around a lagoon.")
        await know(served, MOON, "Moon", "The Moon is far away.")
        known = await get(served, "/page/knowledge")
        assert (known["total"], {s["url"] for s in known["sources"]}) == (2, {ATOLL, MOON})
        only = (await get(served, "/page/knowledge?q=ATOLL"))["sources"]
        assert [(s["url"], s["title"], s["domain"], s["fetched"]) for s in only] == [
            (ATOLL, "<img src=x>", "atoll.example", "2031-05-06")
        ]
        hits = (await get(served, "/page/knowledge/find?q=coral+lagoon"))["hits"]
        assert (hits[0]["url"], "ring of coral" in hits[0]["snippet"]) == (ATOLL, True)
        forgotten = await served.client.post("/page/knowledge/forget", json={"urls": [ATOLL]})
        assert forgotten.json() == {"removed": 1}
        assert [s["url"] for s in (await get(served, "/page/knowledge"))["sources"]] == [MOON]
        again = await served.client.post("/page/knowledge/forget", json={"urls": [ATOLL]})
        assert (again.status_code, again.json()["error"]["code"]) == (404, "not_found")
        assert (await served.client.post("/page/knowledge/forget", json={"urls": [MOON]})).json() == {"removed": 1}
        assert await get(served, "/page/knowledge/find?q=lagoon") == {"hits": []}


@pytest.mark.parametrize("body", [{}, {"urls": []}, {"urls": [1]}, {"urls": "x"}, {"urls": ["a"], "more": 1}])
async def test_what_to_forget_must_be_addresses(tmp_path: Path, body: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.post("/page/knowledge/forget", json=body)).status_code == 400


# the set-up


async def test_the_setup_names_every_part_and_tells_no_secret(tmp_path: Path) -> None:
    config = Config(
        home=tmp_path,
        base_url=f"https://user:{KEY}@models.example/v1?key={KEY}",
        api_key=KEY,
        model="moon-1",
        search_backend=("searxng", "brave", "tavily"),
        searxng_url=f"http://me:{KEY}@127.0.0.1:8080",
        api_keys={"brave": KEY},
        qdrant_url=f"http://:{KEY}@127.0.0.1:6333",
        token=KEY,
    )
    async with serving(tmp_path, config=config, token=KEY) as served:
        parts = (await get(served, "/page/setup"))["parts"]
    assert KEY not in json.dumps(parts)
    told = {part["name"]: (part["on"], part["value"]) for part in parts}
    assert told["Model"] == (True, "moon-1 at models.example, with a key, 128,000 tokens")
    assert told["Search SearXNG"] == (True, "127.0.0.1:8080")
    assert told["Search Brave"] == (True, "with a key")
    assert told["Search Tavily"] == (False, "no key yet")
    assert told["Knowledge"] == (True, "Qdrant at 127.0.0.1:6333")
    assert [p["fix"] for p in parts if p["name"] == "Search Tavily"] == ["nexi config set api_keys.tavily"]


async def test_without_a_model_the_setup_says_so_and_how_to_add_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        model = (await get(served, "/page/setup"))["parts"][0]
    assert (model["name"], model["on"], model["value"]) == (
        "Model",
        False,
        "none: the built-in extractive model answers with passages",
    )
    assert "nexi config setup" in model["fix"]


async def test_the_doctor_says_what_is_wrong_why_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Config] = []

    async def examine(load: Any) -> DoctorReport:
        asked.append(load())
        return DoctorReport((Check("model", False, "it is silent", "no answer", "start it"),))

    async def examine_none(load: Any) -> DoctorReport:
        return DoctorReport(())

    monkeypatch.setattr("nexi.doctor.examine_setup", examine)
    monkeypatch.setattr("nexi.doctor.examine_services", examine_none)
    async with serving(tmp_path) as served:
        report = (await served.client.post("/page/doctor")).json()
        assert (report["ok"], report["checks"]) == (
            False,
            [{"name": "model", "ok": False, "message": "it is silent", "cause": "no answer", "fix": "start it"}],
        )
        assert asked == [served.app.state.nexi.config]
        assert (await served.client.get("/page/doctor")).status_code == 405


@pytest.mark.parametrize(("chain", "rows"), [("services", ["model", "service crossref"]), ("searxng", ["model"])])
async def test_the_doctor_has_a_row_for_each_open_service_where_they_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chain: str, rows: list[str]
) -> None:
    async def examine_setup(load: Any) -> DoctorReport:
        return DoctorReport((Check("model", True, "answers"),))

    async def examine_services(load: Any) -> DoctorReport:
        return DoctorReport((Check("service crossref", True, "3 results for a test query"),))

    monkeypatch.setattr("nexi.doctor.examine_setup", examine_setup)
    monkeypatch.setattr("nexi.doctor.examine_services", examine_services)
    async with serving(tmp_path, config=Config(home=tmp_path, model="extractive", search_backend=chain)) as served:
        assert [check["name"] for check in (await served.client.post("/page/doctor")).json()["checks"]] == rows


async def test_checks_run_one_at_a_time_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def examine(load: Any) -> DoctorReport:
        begun.set()
        await release.wait()
        return DoctorReport(())

    monkeypatch.setattr("nexi.doctor.examine_setup", examine)
    monkeypatch.setattr("nexi.doctor.examine_services", examine)
    async with serving(tmp_path) as served:
        served.app.state.doctor_timeout_s = 600.0
        first = asyncio.create_task(served.client.post("/page/doctor"))
        await begun.wait()
        second = await served.client.post("/page/doctor")
        assert (second.status_code, second.json()["error"]["code"]) == (409, "examining")
        release.set()
        assert (await first).status_code == 200
        release.clear()
        served.app.state.doctor_timeout_s = 0.05
        assert (await served.client.post("/page/doctor")).json()["error"]["code"] == "timeout"


async def test_an_answer_whose_log_could_not_be_kept_is_shown_and_exported(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder of the runs should be", encoding="utf-8")
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.end_of(run_id)
        shown = await served.client.get(f"/page/runs/{run_id}")
        exported = await served.client.get(f"/page/runs/{run_id}/export?format=md")
    assert (shown.status_code, shown.json()["timeline"]) == (200, [])
    assert "384,400 km" in shown.json()["text"]
    assert (exported.status_code, "384,400 km" in exported.text) == (200, True)
