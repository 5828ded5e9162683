"""Runs over HTTP: started at once, followed without gap or repeat, stopped, fetched, and taken up after a restart."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.app import Nexi
from nexi.app.run import Run
from nexi.config import Config
from nexi.events import MAX_LOSSES, RunResumed, SearchFinished
from nexi.testing import ScriptedLLM
from nexi.types import FetchLimits, Page, Reply, Usage
from tests.web.world import MANY, MOON, QUESTION, GatedWeb, read_events, serving


def facts(events: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    return [(mark, event["kind"]) for mark, event in events if "." not in mark]


async def test_a_run_has_its_id_before_it_has_done_anything(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        reply = await served.client.post("/v1/runs", json={"question": QUESTION})
        told = reply.json()
        assert (reply.status_code, reply.headers["location"]) == (202, f"/v1/runs/{told['id']}")
        assert (told["state"], told["mode"], told["question"], told["pages"]) == ("running", "search", QUESTION, 0)
        served.web.gate.set()


async def test_a_run_is_accepted_when_its_log_can_be_resumed_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is killed after its reply leaves a log with the question in it; the next server goes on with that."""
    asked: list[asyncio.Task[httpx2.Response]] = []
    settings = Run._settings

    async def take_long(run: Run) -> dict[str, Any]:
        await asyncio.wait(asked, timeout=0.5)  # a reply that comes earlier comes too early
        return await settings(run)

    monkeypatch.setattr(Run, "_settings", take_long)
    async with serving(tmp_path) as served:
        asked.append(asyncio.create_task(served.client.post("/v1/runs", json={"question": QUESTION})))
        run_id = (await asked[0]).json()["id"]
        first = served.app.state.host.nexi.runs().open_log(run_id).facts[:1]
    assert [fact.query for _, fact in first] == [QUESTION]


async def test_a_run_ends_with_an_answer_and_its_events_are_those_of_its_log(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        events = await served.events(run_id)
        logged = served.app.state.nexi.runs().open_log(run_id).facts
        assert facts(events) == [(str(number), fact.kind) for number, fact in logged]
        status = (await served.client.get(f"/v1/runs/{run_id}")).json()
        assert (status["state"], status["stop"], status["last_event_id"]) == ("finished", "final_answer", len(logged))


async def test_a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        whole = await served.events(run_id)
        for index, (mark, _) in enumerate(whole):
            assert await served.events(run_id, after=mark) == whole[index + 1 :]


async def test_a_reader_of_a_live_run_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        await served.web.asked.wait()
        first: list[tuple[str, dict[str, Any]]] = []
        async with served.client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
            async for event in read_events(stream):
                first.append(event)
                if len(first) == 3:
                    break
        served.web.gate.set()
        rest = await served.events(run_id, after=first[-1][0])
        assert first + rest == await served.events(run_id)


async def test_deltas_come_live_between_the_facts(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        events = await served.events(run_id)
        text = "".join(event["text"] for _, event in events if event["kind"] == "text_delta")
        assert text
        assert events[-1][1]["answer"].startswith(text)
        marks = [mark for _, event in events if event["kind"] == "marks_delta" for mark in event["marks"]]
        claims = next(event["review"]["proof"]["claims"] for _, event in events if event["kind"] == "answer_checked")
        fields = ("start", "end", "verdict", "reason")
        assert marks == [{name: claim[name] for name in fields} for claim in claims]


async def test_nothing_more_to_come_is_said_without_a_body(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        last = (await served.events(run_id))[-1][0]
        reply = await served.client.get(f"/v1/runs/{run_id}/events", headers={"last-event-id": last})
        assert (reply.status_code, reply.content) == (204, b"")


async def test_a_run_goes_on_when_its_reader_leaves(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        async with served.client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
            async for _ in stream.aiter_lines():
                break
        served.web.gate.set()
        assert (await served.end_of(run_id))["state"] == "finished"


async def test_research_runs_as_a_search_does_and_tells_its_researchers(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask(mode="research", options={"depth": 1})
        status = await served.end_of(run_id)
        assert (status["mode"], status["state"]) == ("research", "finished")
        assert status["progress"]["researchers"]
        report = await served.client.get(f"/v1/runs/{run_id}/result?format=md")
        assert report.text.startswith("---\nquestion:")


async def test_the_result_comes_as_markdown_json_and_html(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.end_of(run_id)
        path = f"/v1/runs/{run_id}/result"
        told = (await served.client.get(path)).json()
        assert (told["schema"], told["id"], told["sources"][0]["url"]) == ("nexi-answer-1", run_id, MOON)
        markdown = await served.client.get(path, headers={"accept": "text/markdown"})
        assert markdown.headers["content-type"].startswith("text/markdown")
        assert "384,400 km" in markdown.text
        assert MOON in markdown.text
        page = await served.client.get(path, params={"format": "html"})
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "384,400 km" in page.text


async def test_a_follow_up_goes_on_from_a_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        first = await served.ask()
        await served.end_of(first)
        second = await served.ask("And which moons does Mars have?", continues=first)
        await served.end_of(second)
        started = served.app.state.nexi.runs().open_log(second).facts[0][1]
        assert (started.settings["continues"], started.settings["door"]) == (first, "http")


async def test_a_stopped_run_answers_from_what_there_is(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        await served.web.asked.wait()
        reply = await served.client.post(f"/v1/runs/{run_id}/stop")
        assert (reply.status_code, reply.json()) == (202, {"id": run_id, "stopping": True})
        status = await served.end_of(run_id)
        assert (status["state"], "error" in status) == ("stopped", False)  # nothing had been read
        again = await served.client.post(f"/v1/runs/{run_id}/stop")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "not_running")


async def test_a_cancelled_run_has_ended_when_the_reply_comes(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        status = (await served.client.post(f"/v1/runs/{run_id}/cancel")).json()
        assert (status["state"], status["stop"], status["code"]) == ("stopped", "cancelled", "cancelled")
        assert (await served.events(run_id))[-1][1]["kind"] == "run_failed"


async def test_a_deleted_run_is_gone_also_one_under_way(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        assert (await served.client.delete(f"/v1/runs/{run_id}")).status_code == 204
        assert (await served.client.get(f"/v1/runs/{run_id}")).status_code == 404
        assert (await served.client.delete(f"/v1/runs/{run_id}")).status_code == 404
        assert (await served.client.get("/v1/runs")).json() == {"runs": []}


async def test_runs_are_listed_newest_first_and_by_state(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ids = []
        for question in ("How far is the Moon?", "Which moons does Mars have?"):
            ids.append(await served.ask(question))
            await served.end_of(ids[-1])
        listed = (await served.client.get("/v1/runs", params={"state": "finished"})).json()["runs"]
        assert {run["id"] for run in listed} == set(ids)
        assert [run["created"] for run in listed] == sorted((run["created"] for run in listed), reverse=True)
        assert len((await served.client.get("/v1/runs", params={"limit": "1"})).json()["runs"]) == 1


async def test_a_server_that_ends_leaves_runs_open_and_the_next_one_takes_them_up(tmp_path: Path) -> None:
    held = GatedWeb(is_open=False)
    async with serving(tmp_path, web=held) as served:
        run_id = await served.ask(options={"time_target": 500, "sites": ["moon.example"]})
        await held.asked.wait()
        before = served.app.state.host.get(run_id).feed.fact_count
    async with serving(tmp_path) as served:
        while not served.app.state.host.get(run_id):
            await asyncio.sleep(0.01)
        run = served.app.state.host.get(run_id).run
        header = served.app.state.nexi.runs().open_log(run_id).header
        assert served.app.state.host.get(run_id).created == header.created
        assert (run.request.limits.time_target, run.request.query.sites) == (500, ("moon.example",))
        events = await served.events(run_id, after=str(before))
        assert events[0][1]["kind"] == "run_resumed"
        assert events[-1][1]["kind"] == "run_finished"
        numbers = [int(mark) for mark, _ in facts(await served.events(run_id))]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_a_reader_that_comes_back_before_its_run_is_resumed_waits_for_it(tmp_path: Path) -> None:
    held = GatedWeb(is_open=False)
    async with serving(tmp_path, web=held) as served:
        ids = [await served.ask() for _ in range(3)]
        while any(len(served.app.state.host.get(run_id).feed._items) < 3 for run_id in ids):
            await asyncio.sleep(0.001)
    async with serving(tmp_path, web=GatedWeb(is_open=False), most_runs=1) as served:
        last = {run_id: len(served.app.state.nexi.runs().open_log(run_id).facts) for run_id in ids}
        readers = [asyncio.create_task(served.events(run_id, after=str(last[run_id]))) for run_id in ids]
        await served.web.asked.wait()  # one is resumed and holds the only place
        served.web.gate.set()
        for run_id, reader in zip(ids, readers, strict=True):
            numbers = [int(mark) for mark, _ in facts(await reader)]
            assert numbers == list(range(last[run_id] + 1, last[run_id] + 1 + len(numbers)))
            assert (await served.client.get(f"/v1/runs/{run_id}")).json()["state"] == "finished"


async def suspend_a_run(home: Path) -> tuple[str, int]:
    """A run of the library that was suspended while it searched: its id and the number of its facts."""
    held = GatedWeb(is_open=False)
    async with Nexi(Config(home=home, model="extractive"), backends=(held,), fetchers=(held,)) as nexi:
        async with nexi.search(QUESTION) as run:
            await held.asked.wait()
            run.suspend()
        return run.id, len(nexi.runs().open_log(run.id).facts)


async def test_a_reader_of_a_run_that_no_server_goes_on_with_is_not_kept_waiting(tmp_path: Path) -> None:
    run_id, known = await suspend_a_run(tmp_path)
    async with serving(tmp_path) as served:
        assert len(await served.events(run_id)) == known
        assert await served.events(run_id, after=str(known)) == []


async def test_a_run_of_another_door_is_not_taken_up(tmp_path: Path) -> None:
    run_id, _ = await suspend_a_run(tmp_path)
    async with serving(tmp_path) as served:
        status = (await served.client.get(f"/v1/runs/{run_id}")).json()
        assert (status["state"], served.app.state.host.active) == ("unfinished", 0)


async def test_two_servers_on_one_home_do_not_fight(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as first, serving(tmp_path) as second:
        run_id = await first.ask()
        await first.web.asked.wait()
        assert (await second.client.get(f"/v1/runs/{run_id}")).json()["state"] == "running"
        assert (await second.client.delete(f"/v1/runs/{run_id}")).status_code == 409
        following = asyncio.create_task(second.events(run_id))
        first.web.gate.set()
        assert facts(await following) == facts(await first.events(run_id))


async def test_another_server_may_stop_and_cancel_a_run(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as first, serving(tmp_path) as second:
        stopped, cancelled = await first.ask(), await first.ask()
        assert (await second.client.post(f"/v1/runs/{stopped}/stop")).status_code == 202
        assert (await second.client.post(f"/v1/runs/{cancelled}/cancel")).json() == {"id": cancelled, "cancelling": True}
        assert (await first.end_of(stopped))["state"] == "stopped"
        assert (await first.end_of(cancelled))["stop"] == "cancelled"


async def test_more_runs_than_there_is_room_for_are_refused_and_the_accepted_ones_finish(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False), most_runs=3) as served:
        replies = await asyncio.gather(*(served.client.post("/v1/runs", json={"question": QUESTION}) for _ in range(30)))
        accepted = [reply.json()["id"] for reply in replies if reply.status_code == 202]
        refused = [reply for reply in replies if reply.status_code == 503]
        assert (len(accepted), len(refused)) == (3, 27)
        assert {(reply.headers["retry-after"], reply.json()["error"]["code"]) for reply in refused} == {("5", "busy")}
        assert (await served.client.get("/readyz")).status_code == 503
        served.web.gate.set()
        assert {(await served.end_of(run_id))["state"] for run_id in accepted} == {"finished"}
        assert (await served.client.get("/readyz")).status_code == 200


@pytest.mark.parametrize("path", ["", "/events", "/result"])
async def test_a_run_that_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as served:
        for run_id in ("abcdef", "..%2f..%2fetc", "x", "%00", "ABCDEF"):
            reply = await served.client.get(f"/v1/runs/{run_id}{path}")
            assert (run_id, reply.status_code) == (run_id, 404)
            assert set(reply.json()["error"]) <= {"code", "message", "fix"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": 3},
        {"question": "x", "mode": "guess"},
        {"question": "x", "options": {"effort": "xl"}},
        {"question": "x", "options": {"max_cost": 0}},
        {"question": "x", "options": {"unknown": 1}},
        {"question": "\x00\x01"},
        {"question": "x" * 100_001},
        [],
        "x",
        None,
    ],
)
async def test_an_order_that_cannot_be_used_is_refused_with_words(tmp_path: Path, body: object) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/runs", json=body)
        assert reply.status_code == 400
        assert reply.json()["error"]["message"]


async def test_a_result_is_asked_for_too_early_or_in_a_form_there_is_not(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False), rules=MANY) as served:
        run_id = await served.ask()
        early = await served.client.get(f"/v1/runs/{run_id}/result")
        assert (early.status_code, early.json()["error"]["code"]) == (409, "not_ended")
        served.web.gate.set()
        await served.end_of(run_id)
        assert (await served.client.get(f"/v1/runs/{run_id}/result?format=exe")).status_code == 400
        assert (await served.client.get(f"/v1/runs/{run_id}/events?last_event_id=x")).status_code == 400


async def test_an_agentic_search_is_a_run_whose_result_is_the_seeds_response(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask(mode="agentic", options={"max_iterations": 1})
        status = await served.end_of(run_id)
        assert (status["mode"], status["state"]) == ("agentic", "finished")
        told = (await served.client.get(f"/v1/runs/{run_id}/result")).json()
        assert set(told) == {"success", "query", "iterations", "completeness", "results", "search_history", "status", "usage"}
        assert MOON in (await served.client.get(f"/v1/runs/{run_id}/result?format=md")).text
        assert "nexi_completeness_count 0" not in (await served.client.get("/metrics")).text


async def test_a_stopped_agentic_search_tells_what_is_known(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask(mode="agentic")
        await served.web.asked.wait()
        await served.client.post(f"/v1/runs/{run_id}/stop")
        status = await served.end_of(run_id)
        assert (status["state"], status["stop"]) == ("finished", "cancelled")
        assert (await served.client.get(f"/v1/runs/{run_id}/result")).json()["results"] == []


async def test_an_agentic_search_that_was_left_open_is_taken_up(tmp_path: Path) -> None:
    held = GatedWeb(is_open=False)
    async with serving(tmp_path, web=held) as served:
        run_id = await served.ask(mode="agentic", options={"max_iterations": 1})
        await held.asked.wait()
    async with serving(tmp_path) as served:
        while not served.app.state.host.get(run_id):
            await asyncio.sleep(0.01)
        status = await served.end_of(run_id)
        assert (status["mode"], status["state"]) == ("agentic", "finished")


class HeldPages(GatedWeb):
    """A web whose pages wait for ever."""

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        self.asked.set()
        await asyncio.Event().wait()
        return await super().fetch(url, limits)


def judged(value: object) -> Reply:
    return Reply(json.dumps(value), (), Usage(100, 10, cost=0.01))


async def test_what_a_judge_said_before_a_restart_is_not_paid_for_again(tmp_path: Path) -> None:
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    ranked = {"ranked": [{"i": 0, "score": 0.95, "reasoning": "the Moon"}, {"i": 1, "score": 0.1, "reasoning": "Mars"}]}
    first, held = ScriptedLLM(judged(ranked)), HeldPages()
    async with serving(tmp_path, web=held, config=config, llms={"judge": first}) as served:
        run_id = await served.ask(mode="agentic", options={"max_iterations": 1, "use_search_hints": False})
        while not first.requests or not served.app.state.metrics.value("nexi_model_calls_total"):
            await asyncio.sleep(0.01)
    second = ScriptedLLM(judged({"score": 0.99, "reasoning": "the distance is there", "gaps": []}))
    async with serving(tmp_path, config=config, llms={"judge": second}) as served:
        while not served.app.state.host.get(run_id):
            await asyncio.sleep(0.01)
        status = await served.end_of(run_id)
        told = (await served.client.get(f"/v1/runs/{run_id}/result")).json()
    assert (len(first.requests), len(second.requests)) == (1, 1)
    assert (status["model_calls"], status["pages"], status["cost"]) == (2, 1, 0.02)
    assert (told["status"], told["completeness"], [r["url"] for r in told["results"]]) == ("complete", 0.99, [MOON])


async def test_an_agentic_search_keeps_to_the_budget_of_its_run(tmp_path: Path) -> None:
    config = Config(home=tmp_path, base_url="http://127.0.0.1:9/v1", model="scripted", verify_judge=False)
    judge = ScriptedLLM(*[judged({"ranked": [{"i": 0, "score": 0.95}]})] * 20)
    async with serving(tmp_path, config=config, llms={"judge": judge}) as served:
        run_id = await served.ask(mode="agentic", options={"max_cost": 0.01, "max_iterations": 3})
        status = await served.end_of(run_id)
    assert (status["state"], status["model_calls"], status["cost"], len(judge.requests)) == ("finished", 1, 0.01, 1)


async def test_a_run_that_gets_nowhere_in_eight_servers_is_left_alone_by_the_ninth(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        await served.web.asked.wait()
    runs = served.app.state.nexi.runs()
    for _ in range(MAX_LOSSES - 1):
        read, log = runs.reopen(run_id)
        await log.append(RunResumed(len(read.facts), 1.0))
        await log.close()
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        await served.web.asked.wait()
    async with serving(tmp_path) as served:
        assert "run_finished" not in [event["kind"] for _, event in await served.events(run_id)]
        assert (await served.client.get(f"/v1/runs/{run_id}")).json()["state"] == "unfinished"


async def test_a_run_that_gets_on_in_every_server_is_resumed_as_often_as_it_takes(tmp_path: Path) -> None:
    web = GatedWeb(is_open=False)
    async with serving(tmp_path, web=web) as served:
        run_id = await served.ask()
        await web.asked.wait()
    runs = served.app.state.nexi.runs()
    for number in range(5):
        read, log = runs.reopen(run_id)
        await log.append(RunResumed(len(read.facts), 1.0))
        await log.append(SearchFinished(f"query {number}", "searxng", (), (), 0.1))
        await log.close()
    async with serving(tmp_path) as served:
        assert (await served.events(run_id))[-1][1]["kind"] == "run_finished"


@pytest.mark.parametrize(
    ("options", "parameter", "message"),
    [
        ({"attachments": ["/etc/passwd"]}, "attachments", "'/etc/passwd' is not the address of a web page"),
        ({"attachments": ["file:///etc/passwd"]}, "attachments", "'file:///etc/passwd' is not the address of a web page"),
        ({"attachments": [""]}, "attachments", "'' is not the address of a web page"),
        ({"scope": "web", "only_local": True}, "scope", "the scope web leaves the knowledge base out"),
        ({"scope": "web", "focus": "local"}, "scope", "the scope web leaves the knowledge base out"),
    ],
)
async def test_files_of_the_server_and_contradictions_are_refused(
    tmp_path: Path, options: dict[str, Any], parameter: str, message: str
) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/runs", json={"question": "why", "options": options})
        error = reply.json()["error"]
        assert (reply.status_code, error["parameter"], error["message"]) == (400, parameter, message)


async def test_an_option_that_is_null_counts_as_left_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        options = {"effort": None, "max_cost": None, "max_tokens": None, "strict": None, "length": None}
        reply = await served.client.post("/v1/runs", json={"question": QUESTION, "options": options})
        assert (reply.status_code, (await served.end_of(reply.json()["id"]))["state"]) == (202, "finished")
