"""What the page asks with: models, focus, plans, files and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi.config import Config
from nexi.errors import BackendError
from nexi.types import Hit, Message, Query, Reply, Usage
from nexi.web.guard import MAX_FILE_BYTES, GuardRules
from tests import namesakes
from tests.web.world import MOON, QUESTION, GatedWeb, Served, serving

NEXT = '{"queries": ["How old is the Moon?", "Who walked on it?", "Why does it shine?"]}'


class Judge:
    """A model that answers everything with the same text, and counts."""

    name = "wise"

    def __init__(self, text: str = NEXT) -> None:
        self.text, self.asked = text, 0

    async def complete(self, messages: Sequence[Message], tools: Sequence[Any] = (), **_: Any) -> Reply:
        self.asked += 1
        return Reply(self.text, (), Usage(1, 1), "stop")

    async def models(self) -> tuple[str, ...]:
        return ("wise", "wiser")


def with_model(home: Path, **more: Any) -> Config:
    return Config(home=home, base_url="http://127.0.0.1:9/v1", model="wise", **more)


async def finished(served: Served, **more: Any) -> tuple[str, dict[str, Any]]:
    run_id = await served.ask(**more)
    return run_id, await served.end_of(run_id)


# choosing


async def test_the_form_says_what_can_be_chosen_and_what_limits_hold(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        form = (await served.client.get("/page/form")).json()
    limits = {"time_target": None, "max_cost": None, "max_tokens": None, "max_model_calls": None, "max_pages": 60}
    assert form == {
        "model": "extractive",
        "has_model": False,
        "add_a_model": "nexi config setup",
        "first_run": True,
        "search": ["open services"],
        "editable": True,
        "effort": "m",
        "focus": ["web", "docs", "discussions", "papers", "code", "news", "places", "local"],
        "limits": limits,
        "most_file": MAX_FILE_BYTES,
        "share": False,
        "team": False,
        "suggestions": True,
        "keeps_offline": True,
    }


async def test_a_first_run_is_one_without_a_model_on_which_nothing_was_asked(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.get("/page/form")).json()["first_run"] is True
        await served.events(await served.ask())
        assert (await served.client.get("/page/form")).json()["first_run"] is False


async def test_models_are_those_of_the_endpoint_with_its_own_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.get("/page/models")).json() == {"models": ["extractive"], "problem": ""}
    llms = {"answer": Judge(), "extract": Judge(), "judge": Judge()}
    async with serving(tmp_path, config=with_model(tmp_path), llms=llms) as served:
        told = (await served.client.get("/page/models")).json()
    assert told == {"models": ["wise", "wiser", "extractive"], "problem": ""}


async def test_a_run_may_use_another_model_of_the_endpoint_and_the_next_one_does_not(tmp_path: Path) -> None:
    judge = Judge("no tools")
    async with serving(
        tmp_path, config=with_model(tmp_path), llms={"answer": judge, "extract": judge, "judge": judge}
    ) as served:
        _, other = await finished(served, options={"model": "extractive"})
        assert (other["state"], other["model"], judge.asked) == ("finished", "extractive", 0)
        _, own = await finished(served)
        assert (own["model"], judge.asked > 0) == ("wise", True)


@pytest.mark.parametrize(
    "options", [{"focus": "moon"}, {"model": "a\nb"}, {"model": "x" * 201}, {"plan": True}, {"plan": "yes"}]
)
async def test_a_choice_that_is_none_is_refused_in_words(tmp_path: Path, options: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/runs", json={"question": QUESTION, "options": options})
    assert (reply.status_code, bool(reply.json()["error"]["message"])) == (400, True)


async def test_a_focus_reaches_the_search_and_local_asks_nobody(tmp_path: Path) -> None:
    class Kept(GatedWeb):
        filters = frozenset({"focus"})

        def __init__(self) -> None:
            super().__init__()
            self.focuses: list[str] = []

        async def search(self, query: Any) -> Any:
            self.focuses.append(query.focus)
            return await super().search(query)

    web = Kept()
    async with serving(tmp_path, web=web) as served:
        _, told = await finished(served, options={"focus": "papers"})
        assert (told["state"], set(web.focuses)) == ("finished", {"papers"})
        _, again = await finished(served, question="Which moons has Mars?", options={"focus": "local"})
        assert set(web.focuses) == {"papers"}
        assert again["state"] in ("finished", "failed")


# a plan that waits


async def test_research_waits_with_its_plan_and_goes_on_with_the_tasks_of_a_person(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask(mode="research", options={"plan": True, "depth": 1})
        await _until(served, run_id, "agenda_proposed")
        path = f"/v1/runs/{run_id}/plan"
        bad = await served.client.post(path, json={"tasks": ["x"] * 6})
        assert bad.status_code == 400
        reply = await served.client.post(path, json={"tasks": ["How far is the Moon from Earth?"]})
        assert reply.json() == {"id": run_id, "tasks": ["How far is the Moon from Earth?"], "by": "user"}
        events = [data for _, data in await served.events(run_id)]
        agenda = next(data for data in events if data["kind"] == "agenda_set")
        assert (agenda["tasks"], agenda["by"]) == (["How far is the Moon from Earth?"], "user")
        assert events[-1]["kind"] == "run_finished"
        assert (await served.client.post(path, json={})).status_code == 409


async def test_a_plan_can_be_taken_as_it_is_and_a_stop_means_no(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        taken, refused = [await served.ask(mode="research", options={"plan": True, "depth": 1}) for _ in range(2)]
        for run_id in (taken, refused):
            await _until(served, run_id, "agenda_proposed")
        assert (await served.client.post(f"/v1/runs/{taken}/plan", json={})).json()["by"] == "built-in"
        await served.client.post(f"/v1/runs/{refused}/stop")
        assert ((await served.end_of(taken))["state"], (await served.end_of(refused))["state"]) == (
            "finished",
            "stopped",
        )


async def test_a_run_without_a_plan_has_none_to_settle(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id, _ = await finished(served)
        assert (await served.client.post(f"/v1/runs/{run_id}/plan", json={})).status_code == 409
        assert (await served.client.post("/v1/runs/aaaaaa/plan", json={})).status_code == 404


async def _until(served: Served, run_id: str, kind: str) -> None:
    async with served.client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line == f"event: {kind}":
                return


# a run under way


async def test_the_timeline_so_far_is_told_of_a_run_under_way_with_the_facts_it_covers(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id, _ = await finished(served)
        told = (await served.client.get(f"/page/runs/{run_id}/timeline")).json()
        view = (await served.client.get(f"/page/runs/{run_id}")).json()
        assert (told["bars"], told["facts"]) == (view["timeline"], len(await _facts(served, run_id)))
        assert told["seconds"] >= 0
        assert (await served.client.get("/page/runs/aaaaaa/timeline")).status_code == 404


async def _facts(served: Served, run_id: str) -> list[str]:
    return [mark for mark, _ in await served.events(run_id) if "." not in mark]


# files


async def test_a_dropped_file_is_known_at_once_and_not_left_on_the_disk(tmp_path: Path) -> None:
    text = b"# Tides\n\nThe tide gauge of Port Alder stands 4.2 metres above the quay."
    async with serving(tmp_path) as served:
        path = "/page/files?name=..%2F..%2Ftides.md"
        told = (await served.client.post(path, content=text)).json()
        assert (told["name"], told["outcome"], told["warnings"]) == ("tides.md", "stored", [])
        assert (await served.client.post(path, content=text)).json()["outcome"] == "unchanged"
        known = (await served.client.get("/page/knowledge")).json()
        assert [source["title"] for source in known["sources"]] == ["Tides"]
        _, answered = await finished(served, question="How high is the tide gauge of Port Alder?", options={"focus": "local"})
        assert answered["state"] == "finished"
    assert list((tmp_path / "state" / "dropped").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.txt", b"", 400),
        ("a.txt", b"  \n", 400),
        ("", b"text", 400),
        ("..", b"text", 400),
        ("x" * 300, b"text", 400),
        ("a.bin", b"\x00\x01\x02" * 50, 422),
    ],
)
async def test_a_file_that_cannot_be_taken_is_refused_in_words(tmp_path: Path, name: str, content: bytes, status: int) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/page/files", params={"name": name}, content=content)
    assert (reply.status_code, bool(reply.json()["error"]["message"]), bool(reply.json()["error"])) == (status, True, True)


async def test_a_file_may_be_larger_than_a_question_and_not_larger_than_its_limit(tmp_path: Path) -> None:
    rules = GuardRules(max_body=100, max_file=300, per_minute=1_000_000, burst=1_000_000)
    async with serving(tmp_path, rules=rules) as served:
        fits = await served.client.post("/page/files?name=a.txt", content=b"word " * 50)
        large = await served.client.post("/page/files?name=a.txt", content=b"word " * 80)
        other = await served.client.post("/page/render", content=b"word " * 50)
    assert (fits.status_code, large.status_code, other.status_code) == (200, 413, 413)


async def test_a_file_needs_the_token_and_the_page_of_a_run_does_not(tmp_path: Path) -> None:
    rules = GuardRules(token="letmein", per_minute=1_000_000, burst=1_000_000)
    async with serving(tmp_path, rules=rules) as served:
        assert (await served.client.post("/page/files?name=a.txt", content=b"text")).status_code == 401
        assert (await served.client.get("/runs/aaaaaa")).status_code == 200
        assert (await served.client.get("/page/runs/aaaaaa")).status_code == 401


# what to ask next


async def test_suggestions_cost_one_call_however_often_they_are_looked_at(tmp_path: Path) -> None:
    judge = Judge()
    config = with_model(tmp_path)
    async with serving(tmp_path, config=config, llms={"answer": Judge("none"), "extract": Judge(), "judge": judge}) as served:
        run_id, told = await finished(served, options={"model": "extractive"})
        assert told["state"] == "finished"
        for _ in range(2):
            found = (await served.client.get(f"/page/runs/{run_id}/suggestions")).json()
            assert found == {"suggestions": ["How old is the Moon?", "Who walked on it?", "Why does it shine?"]}
        assert judge.asked == 1


FROM_PAGES = [
    "What is known about the formation of the Moon?",
    "What does Neil Armstrong have to do with the Moon?",
    "What does “Moon facts” say?",
]


def longer_web() -> GatedWeb:
    """The web with more to ask about on its page of the Moon."""
    web = GatedWeb()
    web.pages[MOON] += "\n\n## Formation\n\nThe Moon formed from what a collision of the young Earth left in its orbit."
    web.pages[MOON] += " Rocks that Neil Armstrong brought home tell how its formation went on.\n\n## References\n\n- A book"
    return web


@pytest.mark.parametrize(
    ("more", "text", "suggested"),
    [
        ({"suggestions": False}, NEXT, []),
        ({}, "I would rather not say.", FROM_PAGES),
        ({"model": "extractive"}, NEXT, FROM_PAGES),
    ],
)
async def test_without_a_model_or_from_its_nonsense_they_are_made_from_the_pages_unless_switched_off(
    tmp_path: Path, more: dict[str, Any], text: str, suggested: list[str]
) -> None:
    config = Config(**{"home": tmp_path, "base_url": "http://127.0.0.1:9/v1", "model": "wise", **more})
    async with serving(tmp_path, config=config, web=longer_web(), llms={"judge": Judge(text)}) as served:
        run_id, _ = await finished(served, options={"model": "extractive"})
        assert (await served.client.get(f"/page/runs/{run_id}/suggestions")).json() == {"suggestions": suggested}


async def test_a_question_that_may_mean_several_things_is_asked_back_for_each(tmp_path: Path) -> None:
    web = GatedWeb()
    web.pages.clear()
    for kind, born in (("basketball", "17 February 1963 in Brooklyn"), ("footballer", "7 April 1986 in Cheshunt")):
        text = f"# Michael Jordan ({kind})\n\nMichael Jordan was born on {born}.\n"
        web.pages[f"https://{kind}.example/jordan"] = text
    async with serving(tmp_path, web=web) as served:
        run_id, _ = await finished(served, question="When was Michael Jordan born?")
        found = (await served.client.get(f"/page/runs/{run_id}/suggestions")).json()["suggestions"]
    assert sorted(found) == [
        f"When was Michael Jordan born? (Michael Jordan ({kind}))" for kind in ("basketball", "footballer")
    ]


async def test_a_run_that_has_used_its_budget_gets_those_of_its_pages_and_the_model_is_not_asked(tmp_path: Path) -> None:
    judge = Judge()
    config = with_model(tmp_path, max_model_calls=2, verify_judge=False)
    llms = {"answer": Judge("none"), "extract": Judge(), "judge": judge}
    async with serving(tmp_path, config=config, web=longer_web(), llms=llms) as served:
        run_id, told = await finished(served, options={"model": "extractive"})
        reply = await served.client.get(f"/page/runs/{run_id}/suggestions")
    assert (told["state"], told["model_calls"]) == ("finished", 2)
    assert (reply.status_code, reply.json(), judge.asked) == (200, {"suggestions": FROM_PAGES}, 0)


async def test_a_run_under_way_has_no_suggestions(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        run_id = await served.ask()
        assert (await served.client.get(f"/page/runs/{run_id}/suggestions")).status_code == 409
        served.web.gate.set()
        assert (await served.client.get(f"/page/runs/{MOON[:6]}/suggestions")).status_code in (400, 404)


# asking back


class Namesakes(GatedWeb):
    """A web in which two people have one name."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = dict(namesakes.MARKDOWN)


async def report_of(served: Served, question: str) -> dict[str, Any]:
    run_id = await served.ask(question, mode="research")
    await served.end_of(run_id)
    return dict((await served.client.get(f"/v1/runs/{run_id}/result")).json())


async def test_research_that_may_mean_several_things_is_asked_back_before_it_begins(tmp_path: Path) -> None:
    asked = {"question": namesakes.QUESTION, "mode": "research"}
    async with serving(tmp_path, web=Namesakes()) as served:
        found = (await served.client.post("/page/open-question", json=asked)).json()
        names = [reading["name"] for reading in found["readings"]]
        assert (sorted(names), found["kind"]) == (list(namesakes.READINGS), "")
        assert (await served.client.get("/v1/runs")).json() == {"runs": []}
        meant = next(r["question"] for r in found["readings"] if r["name"] == namesakes.READINGS[1])
        again = (await served.client.post("/page/open-question", json={**asked, "question": meant})).json()
        run = await report_of(served, meant)
    assert again == {"readings": [], "kind": ""}
    assert ("Arsenal" in run["answer"], "Bulls" in run["answer"]) == (True, False)


async def test_what_a_question_does_not_name_is_asked_for_without_a_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        asked = {"question": "What are the advantages of this library?", "mode": "research"}
        assert (await served.client.post("/page/open-question", json=asked)).json() == {"readings": [], "kind": "library"}
        assert not served.web.asked.is_set()


async def test_over_http_research_is_not_asked_back_and_has_a_section_for_each_reading(tmp_path: Path) -> None:
    async with serving(tmp_path, web=Namesakes()) as served:
        run = await report_of(served, namesakes.QUESTION)
        next_questions = (await served.client.get(f"/page/runs/{run['id']}/suggestions")).json()["suggestions"]
    assert run["answered"] == "depends"
    assert [f"\n## {reading}\n" in run["answer"] for reading in namesakes.READINGS] == [True, True]
    assert sorted(next_questions) == [f"{namesakes.QUESTION} ({reading})" for reading in namesakes.READINGS]


async def test_a_search_that_fails_asks_nothing_back(tmp_path: Path) -> None:
    class Broken(GatedWeb):
        async def search(self, query: Query) -> list[Hit]:
            raise BackendError("broken")

    async with serving(tmp_path, web=Broken()) as served:
        asked = {"question": namesakes.QUESTION, "mode": "research"}
        assert (await served.client.post("/page/open-question", json=asked)).json() == {"readings": [], "kind": ""}
