"""003: research, where no other test holds a requirement."""

from __future__ import annotations

from collections.abc import Callable

from nexi.app.factory import container_options
from nexi.config import Config, load_config
from nexi.events import AgendaSet, RoundEvaluated, ToolFinished
from nexi.testing import answering, reading, searching
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play
from tests.scenarios.world import MOON, World

Make = Callable[..., Config]


async def test_a_question_without_deep_has_no_plan_and_no_evaluator(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), answering("It has no air [1]."))
    result = await world.ask()
    assert [fact for fact in world.facts if isinstance(fact, AgendaSet | RoundEvaluated)] == []
    assert (len(world.llm.requests), result.answer.text) == (3, "It has no air [1].")


def test_a_researcher_is_told_its_phases_and_the_parts_of_its_report(make_config: Make) -> None:
    model = PromptModel(rounds=1)

    async def work() -> None:
        async with nexi_over(make_config(), SlowWeb(PAGES), model) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass

    play(work)
    told = [asked for asked in model.asked if "You are one of several researchers" in asked]
    assert told
    for words in (
        "Gathering: 4 calls",
        "Scraping",
        "of 3, 2 and 3 URLs",
        "executive summary",
        "key findings",
        "pages you cite",
    ):
        assert all(words in asked for asked in told)


def test_the_pool_of_addresses_is_new_for_every_run(make_config: Make) -> None:
    async def work() -> list[str]:
        texts = []
        async with nexi_over(make_config(), SlowWeb(PAGES), PromptModel(rounds=1)) as nexi:
            for _ in range(2):
                async with nexi.research(QUESTION) as run:
                    async for _event in run:
                        pass
                    handshakes = [f for f in run.facts if isinstance(f, ToolFinished) and f.name == "scrape"]
                    texts.append(handshakes[0].text)
        return texts

    first, second = play(work)
    assert '"already_read_by_others": []' in first
    assert first == second


def test_the_tag_of_searxng_is_latest_unless_set(make_config: Make) -> None:
    options = container_options(make_config())
    assert (options.image, options.tag) == ("searxng/searxng", "latest")


def test_the_proxy_of_the_environment_reaches_searxng(make_config: Make) -> None:
    config = load_config(env={"NEXI_HOME": str(make_config().root), "HTTPS_PROXY": "http://proxy.example:3128"})
    assert container_options(config).proxies == ("http://proxy.example:3128",)
