"""`POST /v1/verify`: texts are checked and reports audited, for the owner alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nexi.app.pair_models import grade_book, judge_key
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.events import RunStarted
from nexi.testing import ScriptedLLM
from nexi.types import Reply
from tests.web import samples
from tests.web.world import MANY, MOON, serving

FACT, LIE = "The Moon is 384,400 km from Earth on average.", "The Moon is 12 km from Earth on average."
REPORT = f"The Moon is 384,400 km from Earth on average [1]({MOON}). It is made of cheese [2](https://gone.example/).\n"
JUDGED = (
    '{"items": [{"n": 1, "passages": [1], "differs": "", "verdict": "supported"},'
    ' {"n": 2, "passages": [1], "differs": "it says 384,400 km", "verdict": "contradicted"}]}'
)


async def test_a_text_is_checked_against_given_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/verify", json={"text": f"{FACT} {LIE}", "against": [MOON]})
    found = reply.json()
    assert (reply.status_code, found["schema"], found["ok"], found["contradicted"]) == (200, "nexi-verification-1", False, True)
    assert [sentence["verdict"] for sentence in found["proof"]["sentences"]] == ["found", "contradicted"]
    assert (found["judge"], found["basis"]) == ("", "given")


async def test_the_judge_decides_where_there_is_one(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="reader", base_url="http://127.0.0.1:9/v1")
    grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.9, 0.9, 0.1, 0.5, pairs=24))
    judge = ScriptedLLM(Reply(JUDGED), name="reader")
    llms = {"answer": judge, "extract": judge, "judge": judge}
    text = "The Moon is far away. The Moon is close."
    async with serving(tmp_path, config=config, llms=llms) as served:
        found = (await served.client.post("/v1/verify", json={"text": text, "against": [MOON]})).json()
    assert [sentence["verdict"] for sentence in found["proof"]["sentences"]] == ["supported", "contradicted"]
    assert (found["judge"], found["gap"]) == ("reader", "")


async def test_a_report_is_audited_as_json_markdown_and_a_page(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        replies = {
            form: await served.client.post("/v1/verify", json={"text": REPORT, "audit": True, "format": form})
            for form in ("json", "md", "html")
        }
    assert (replies["json"].json()["precision"], replies["json"].json()["unreadable"]) == (0.5, 1)
    assert replies["md"].text.startswith("# Audit of the text\n\nPrecision 50%")
    assert '<h1 dir="auto">Audit of the text</h1>' in replies["html"].text
    assert "sandbox" in replies["html"].headers["content-security-policy"]


async def test_a_report_is_audited_by_its_address(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/verify", json={"url": MOON, "audit": True})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "no_evidence")  # that page has no links


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": " "},
        {"text": FACT, "run_id": "abcdef"},
        {"text": FACT, "against": ["/etc/passwd"]},
        {"text": FACT, "against": [MOON, ""]},
        {"text": FACT, "audit": True, "web": True},
        {"text": 5},
    ],
    ids=["nothing", "blank", "two things", "a file of the server", "its folder", "an audit with a search", "no text"],
)
async def test_a_body_that_cannot_be_used_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/verify", json=body)
    assert (reply.status_code, list(reply.json())) == (400, ["error"])


async def test_a_run_without_an_answer_and_an_id_that_several_runs_share_are_no_fault_of_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        runs = served.app.state.nexi.runs()
        kept = [await samples.keep(runs, [RunStarted("q", "m", "x")]) for _ in range(17)]  # of which two begin alike
        shared = next(letter for letter, count in Counter(run[0] for run in kept).items() if count > 1)
        replies = [await served.client.post("/v1/verify", json={"run_id": run_id}) for run_id in (kept[0], shared, "zz")]
    errors = [(reply.status_code, reply.json()["error"]["code"]) for reply in replies]
    assert errors == [(409, "not_ended"), (409, "ambiguous"), (404, "not_found")]


async def test_a_text_of_more_than_two_megabytes_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/verify", json={"text": "A is B. " * 300_000})
    assert reply.status_code == 413


async def test_a_guest_may_not_check_against_what_the_owner_keeps(tmp_path: Path) -> None:
    async with serving(tmp_path, is_guest=True, rules=MANY) as served:
        reply = await served.client.post("/v1/verify", json={"text": FACT})
    assert reply.status_code == 401
