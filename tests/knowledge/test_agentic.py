"""The agentic search goes to the web only for what is missing, says what it did in the seed's JSON, and never breaks off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexi.errors import ConfigError, LLMError, QuestionError, StoreError
from nexi.events import Judged, PageIndexed, Warned
from nexi.knowledge.agentic import KnowledgeSettings
from nexi.knowledge.coverage import find_bridge, find_open_parts
from nexi.types import Failure, Hit
from tests.knowledge.support import JudgingLLM, World

GOLDEN = Path(__file__).parent.parent / "golden"
OWL, VOLE, FOX = "http://birds.test/owl", "http://birds.test/vole", "http://birds.test/fox"
PAGES = {
    OWL: "# Owl\n\nThe barn owl hunts voles by night. It hears them under snow.",
    VOLE: "# Vole\n\nA vole eats grass and roots.",
    FOX: "# Fox\n\nThe fox sleeps in a den.",
}
QUESTION = "What does the barn owl hunt by night?"


def enough(score: float, *gaps: str) -> dict[str, Any]:
    return {"score": score, "reasoning": "because", "gaps": list(gaps)}


def by_rank(*scores: float) -> dict[str, Any]:
    return {"ranked": [{"i": i, "score": s, "reasoning": ""} for i, s in enumerate(scores)]}


async def test_without_a_model_a_question_is_answered_from_the_web_and_then_from_the_store(tmp_path: Path) -> None:
    world = World(tmp_path, PAGES)
    first = await world.ask(QUESTION)
    fetched = list(world.web.fetched)
    second = await world.ask(QUESTION)
    assert (first["status"], second["status"]) == ("complete", "complete")
    assert first["results"][0]["url"] == second["results"][0]["url"] == OWL
    assert (world.web.fetched, len(world.web.queries)) == (fetched, 1)
    assert [entry["action"] for entry in second["search_history"]] == ["local_check"]
    assert world.said.of(Warned) == []
    await world.store.aclose()


@pytest.mark.parametrize(("days", "age_days", "fetches"), [(30, 29, 1), (30, 31, 2), (0, 4000, 1)])
async def test_a_stored_page_older_than_the_setting_is_read_again(
    tmp_path: Path, days: int, age_days: int, fetches: int
) -> None:
    llm = JudgingLLM(
        completeness=lambda _: enough(0.1, "owl"),
        urls=lambda _: by_rank(0.9),
        queries=lambda _: {"queries": ["owl a", "owl b"]},
    )
    world = World(tmp_path, {OWL: PAGES[OWL]}, llm=llm)
    settings = KnowledgeSettings(max_iterations=1, max_page_age_days=days)
    await world.ask(QUESTION, settings)
    world.clock.advance(age_days * 86_400)
    await world.ask(QUESTION, settings)
    assert world.web.fetched == [OWL] * fetches
    await world.store.aclose()


@pytest.mark.parametrize("scores", [(0.5, 0.5, 0.5), (0.5, 0.5, 0.4)])
async def test_of_passages_judged_equal_the_larger_set_is_kept(tmp_path: Path, scores: tuple[float, ...]) -> None:
    verdicts = iter(scores)
    llm = JudgingLLM(
        completeness=lambda _: enough(next(verdicts), "vole"),
        urls=lambda data: by_rank(0.9, 0.9, 0.9),
        queries=lambda _: {"queries": ["fox den", "fox sleep"]},
    )
    world = World(tmp_path, PAGES, llm=llm)
    await world.indexer.index(await world.read(OWL))
    response = await world.ask("What do the barn owl, the vole and the fox eat?", KnowledgeSettings(max_iterations=1))
    assert {result["url"] for result in response["results"]} == {OWL, VOLE, FOX}
    await world.store.aclose()


async def test_the_response_is_the_seeds_json(tmp_path: Path) -> None:
    verdicts = iter([enough(0.45, "owl"), enough(0.6, "tunnels"), enough(0.92)])
    llm = JudgingLLM(
        completeness=lambda _: next(verdicts),
        urls=lambda _: by_rank(0.9, 0.2, 0.1),
        queries=lambda _: {"queries": ["tunnels under snow", "vole winter"]},
    )
    snow = "http://birds.test/snow"
    world = World(tmp_path, {OWL: PAGES[OWL], VOLE: PAGES[VOLE], snow: "# Snow\n\nVoles dig tunnels under snow."}, llm=llm)
    await world.indexer.index(await world.read(VOLE))
    response = await world.ask("What do the barn owl and the vole eat?")
    assert json.dumps(response, indent=2) + "\n" == (GOLDEN / "agentic.json").read_text(encoding="utf-8")
    await world.store.aclose()


async def test_only_urls_strictly_above_the_threshold_are_read_and_no_more_than_allowed(tmp_path: Path) -> None:
    pages = {f"http://birds.test/{i}": f"# Page {i}\n\nowl number {i}" for i in range(5)}
    llm = JudgingLLM(
        completeness=lambda _: enough(0.1, "owl"),
        urls=lambda data: by_rank(0.7, 0.71, 0.9, 0.95, 1.0),
        queries=lambda _: {"queries": ["owl a", "owl b"]},
    )
    world = World(tmp_path, pages, llm=llm)
    response = await world.ask("owl?", KnowledgeSettings(max_iterations=1, max_urls_per_iteration=2))
    assert world.web.fetched == ["http://birds.test/4", "http://birds.test/3"]
    search = next(e for e in response["search_history"] if e["action"] == "web_search")
    assert search == {"iteration": 1, "action": "web_search", "urls_found": 5, "urls_ranked": 5, "promising_urls": 2}
    assert response["status"] == "max_iterations_reached"
    await world.store.aclose()


async def test_judges_are_asked_at_the_seeds_temperatures(tmp_path: Path) -> None:
    llm = JudgingLLM(
        completeness=lambda _: enough(0.1, "owl"),
        urls=lambda _: by_rank(0.9),
        queries=lambda _: {"queries": ["owl a", "owl b"]},
        hints=lambda _: {"queries": ["owl food"]},
    )
    world = World(tmp_path, PAGES, llm=llm)
    await world.ask(QUESTION, KnowledgeSettings(use_search_hints=True, max_iterations=2))
    assert dict(llm.asked) == {"urls": 0.3, "hints": 0.3, "queries": 0.5, "completeness": 0.3}
    await world.store.aclose()


async def test_nothing_is_judged_again_when_nothing_new_was_stored(tmp_path: Path) -> None:
    llm = JudgingLLM(
        completeness=lambda _: enough(0.1, "owl"),
        urls=lambda _: by_rank(0.9),
        queries=lambda _: {"queries": ["barn owl night", "owl hunt night"]},
    )
    world = World(tmp_path, {OWL: PAGES[OWL]}, llm=llm)
    await world.ask(QUESTION, KnowledgeSettings(max_iterations=1))
    llm.asked.clear()
    response = await world.ask(QUESTION)
    assert [about for about, _ in llm.asked] == ["completeness", "urls", "queries", "urls", "queries", "urls"]
    assert world.web.fetched == [OWL]
    assert response["iterations"] == 3
    await world.store.aclose()


@pytest.mark.parametrize("broken", ["nonsense", '{"score": NaN, "reasoning": "", "gaps": []}', LLMError("down"), "{}"])
async def test_a_judge_that_fails_never_ends_the_search(tmp_path: Path, broken: object) -> None:
    llm = JudgingLLM(completeness=lambda _: broken, urls=lambda _: broken, queries=lambda _: broken)
    world = World(tmp_path, PAGES, llm=llm)
    response = await world.ask(QUESTION)
    assert (response["status"], response["results"][0]["url"]) == ("complete", OWL)
    assert {judged.by for judged in world.said.of(Judged)} == {"stand_in"}
    assert [warned.code for warned in world.said.of(Warned)] == ["judge_stand_in"]
    await world.store.aclose()


async def test_a_reply_that_cannot_be_used_is_asked_for_once_more(tmp_path: Path) -> None:
    replies = iter(["I would say 0.9", enough(0.9)])
    llm = JudgingLLM(completeness=lambda _: next(replies))
    world = World(tmp_path, PAGES, llm=llm)
    await world.indexer.index(await world.read(OWL))
    response = await world.ask(QUESTION)
    assert (response["completeness"], response["status"], len(llm.asked)) == (0.9, "complete", 2)
    await world.store.aclose()


async def test_pages_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    world = World(tmp_path, PAGES)
    searched = world.web.search

    async def with_a_dead_one(query: Any) -> Any:
        return [Hit("http://gone.test/owl", "barn owl hunt night", "barn owl hunt night"), *await searched(query)]

    world.web.search = with_a_dead_one  # type: ignore[method-assign]
    response = await world.ask(QUESTION)
    crawl = next(e for e in response["search_history"] if e["action"] == "crawl")
    assert "http://gone.test/owl" in crawl["urls"]
    assert crawl["urls_stored"] == len(crawl["urls"]) - 1
    assert response["status"] == "complete"
    await world.store.aclose()


async def test_an_empty_store_and_a_failing_web_are_an_error_that_is_said(tmp_path: Path) -> None:
    world = World(tmp_path, {}, failures=[Failure("fake", "503", "down")])
    response = await world.ask(QUESTION)
    assert response == {
        "success": False,
        "query": QUESTION,
        "iterations": 3,
        "completeness": 0.0,
        "results": [],
        "search_history": response["search_history"],
        "status": "error",
    }
    assert response["search_history"][1] == {
        "iteration": 1,
        "action": "web_search",
        "urls_found": 0,
        "urls_ranked": 0,
        "promising_urls": 0,
    }
    await world.store.aclose()


async def test_a_store_that_fails_is_an_error_with_its_reason(tmp_path: Path) -> None:
    world = World(tmp_path, PAGES)

    async def damaged(*_: object, **__: object) -> Any:
        raise StoreError("the store cannot be read", cause="it is damaged", fix="nexi doctor --repair", code="store_damaged")

    world.store.lexical = damaged  # type: ignore[method-assign]
    response = await world.ask(QUESTION)
    assert (response["success"], response["status"]) == (False, "error")
    assert response["search_history"][-1]["error"] == "the store cannot be read: it is damaged"
    assert world.said.of(Warned)[0].message.endswith("nexi doctor --repair")
    await world.store.aclose()


async def test_hints_ask_the_store_in_the_words_of_the_pages(tmp_path: Path) -> None:
    seen: list[str] = []

    def hint(data: str) -> object:
        seen.append(data)
        return {"queries": ["hears them under snow"]}

    llm = JudgingLLM(completeness=lambda _: enough(0.9), urls=lambda _: by_rank(0.9), hints=hint)
    world = World(tmp_path, {OWL: PAGES[OWL]}, llm=llm)
    await world.ask(QUESTION, KnowledgeSettings(use_search_hints=True))
    assert "Title: Owl" in seen[0]
    assert "Headings: Owl" in seen[0]
    await world.store.aclose()


async def test_what_was_read_is_indexed_whole(tmp_path: Path) -> None:
    world = World(tmp_path, {OWL: PAGES[OWL]})
    await world.ask(QUESTION)
    assert [(f.url, f.outcome, f.chunks) for f in world.said.of(PageIndexed)] == [(OWL, "stored", 1)]
    await world.store.aclose()


async def test_bad_questions_and_settings_are_refused_with_the_fix(tmp_path: Path) -> None:
    world = World(tmp_path, PAGES)
    with pytest.raises(QuestionError):
        await world.ask("   ")
    for bad in ({"completeness_threshold": 1.5}, {"max_iterations": 0}, {"url_score_threshold": float("nan")}):
        with pytest.raises(ConfigError) as refused:
            await world.ask(QUESTION, KnowledgeSettings(**bad))
        assert refused.value.fix.startswith("give a number from")
    await world.store.aclose()


async def test_without_a_model_the_page_that_the_first_one_names_is_read_before_better_worded_ones(tmp_path: Path) -> None:
    film, director, decoy = (f"http://films.test/{name}" for name in ("film", "director", "decoy"))
    pages = {
        film: "# Night Owl\n\nNight Owl is a film of 1973. It was directed by Ada Stern.",
        decoy: "# Films\n\nA film director works on a film: place, birth, night, owl.",
        director: "# Ada Stern\n\nAda Stern was born in Graz.",
    }
    world = World(tmp_path, pages)
    response = await world.ask("Where was the director of the film Night Owl born?")
    read = [url for step in response["search_history"] if step["action"] == "crawl" for url in step["urls"]]
    assert (read[0], director in read) == (film, True)
    await world.store.aclose()


async def test_a_page_that_was_read_is_described_with_its_topics_and_counts(tmp_path: Path) -> None:
    text = "# Owls\n\nOwls hunt. Owls hear.\n\n```python\nowl()\n```\n\n```python\nowl()\n```"
    world = World(tmp_path, {OWL: text})
    response = await world.ask("What do owls hunt?")
    [page] = next(step["pages"] for step in response["search_history"] if step["action"] == "crawl")
    assert (page["url"], page["headers"], page["topics"][0]) == (OWL, ["Owls"], "owls")
    assert page["code_blocks"] == [{"language": "python", "count": 2}]
    await world.store.aclose()


def test_names_of_a_question_without_a_page_are_open_parts_and_a_nested_one_has_a_bridge() -> None:
    assert find_open_parts("Which is larger, Lake Como or Lake Garda?", ["Lake Garda"]) == ("Lake Como",)
    assert find_open_parts("Which is larger, Lake Como or Lake Garda?", ["Lake Garda", "Lake Como (Italy)"]) == ()
    read = [("Night Owl", "It is a film of 1973. It was directed by Ada Stern in Graz.")]
    assert find_bridge("Where was the director of the film Night Owl born?", read) == "Ada Stern"
    assert find_bridge("When was Night Owl released?", read) == ""
