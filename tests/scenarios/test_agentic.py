"""`Nexi.agentic_search` over a mini-web on loopback: with a scripted judge, with none, and asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import ConfigError, QuestionError
from nexi.testing import ScriptedLLM
from nexi.types import Reply, Usage
from rig import miniweb
from tests.cli.command import PAGES, QUESTION
from tests.raising import has_code

Make = Callable[..., Config]


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def make(make_config: Make, web: str) -> Make:
    def made(**values: Any) -> Config:
        return make_config(
            **{"searxng_url": web, "allow_private": [web.removeprefix("http://")], "page_cache": False, **values}
        )

    return made


def said(value: object) -> Reply:
    return Reply(json.dumps(value), (), Usage(100, 10))


async def test_with_a_scripted_judge_only_the_promising_page_is_read(make: Make, web: str) -> None:
    judge = ScriptedLLM(
        said(
            {
                "ranked": [
                    {"i": 0, "score": 0.95, "reasoning": "it is about the Moon"},
                    {"i": 1, "score": 0.7, "reasoning": "Mars"},
                ]
            }
        ),
        said({"score": 0.92, "reasoning": "the distance is there", "gaps": []}),
    )
    async with Nexi(make(), llms={"judge": judge}) as nexi:
        found = await nexi.agentic_search(QUESTION)
    moon = f"{web}/moon.test/facts"
    assert (found["success"], found["status"], found["iterations"], found["completeness"]) == (True, "complete", 1, 0.92)
    assert [(r["url"], r["chunk_index"]) for r in found["results"]] == [(moon, 0)]
    assert "384,400 km" in found["results"][0]["content"]
    assert [(h["iteration"], h["action"]) for h in found["search_history"]] == [
        (1, "local_check"), (1, "web_search"), (1, "crawl"), (1, "local_check"),
    ]  # fmt: skip
    assert found["search_history"][2]["urls"] == [moon]


async def test_with_no_model_it_answers_and_a_second_time_reads_nothing(make: Make) -> None:
    config = make(model="extractive")
    async with Nexi(config) as nexi:
        first = await nexi.agentic_search(QUESTION)
    async with Nexi(config) as nexi:
        second = await nexi.agentic_search(QUESTION)
    assert [f["status"] for f in (first, second)] == ["complete", "complete"]
    assert [h["action"] for h in second["search_history"]] == ["local_check"]
    assert second["results"][0]["content"] == first["results"][0]["content"]


async def test_what_agentic_search_read_a_question_is_answered_from(make: Make) -> None:
    config = make(model="extractive")
    async with Nexi(config) as nexi:
        await nexi.agentic_search(QUESTION)
        from nexi.app import RunRequest

        result = await nexi.answer(RunRequest(QUESTION, scope="local"))
    assert "384,400 km" in result.answer.text


async def test_the_arguments_of_a_call_win_over_the_settings(make: Make) -> None:
    async with Nexi(make(model="extractive", agentic_search_max_iterations=1)) as nexi:
        found = await nexi.agentic_search("zzz qqq xyzzy", max_iterations=2, completeness_threshold=1.0)
    assert found["iterations"] == 2
    assert found["status"] in ("max_iterations_reached", "error")


@pytest.mark.parametrize(
    "asked",
    [{"max_iterations": 0}, {"completeness_threshold": float("nan")}, {"url_score_threshold": "high"}, {"speed": 3}],
)
async def test_an_argument_that_makes_no_sense_is_refused(make: Make, asked: dict[str, Any]) -> None:
    async with Nexi(make(model="extractive")) as nexi:
        with pytest.raises(ConfigError, check=has_code("config", *asked)):
            await nexi.agentic_search(QUESTION, **asked)


async def test_an_empty_query_and_a_search_that_is_switched_off_are_refused(make: Make) -> None:
    async with Nexi(make(model="extractive")) as nexi:
        with pytest.raises(QuestionError):
            await nexi.agentic_search("  ")
    async with Nexi(make(model="extractive", agentic_search_enabled=False)) as nexi:
        with pytest.raises(ConfigError, check=has_code("config", "agentic_search_enabled")):
            await nexi.agentic_search(QUESTION)
