"""A text outside a run is checked against pages that are looked up for it; a limit that is reached is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from nexi.app import Nexi, RunLimits, Target, VerifyRequest
from nexi.app.factory import PortFactory
from nexi.app.pair_models import grade_book, judge_key
from nexi.app.verification import MAX_GROUP, MAX_SEARCHES
from nexi.checking.quiz import Grade, packaged_quiz
from nexi.config import Config
from nexi.errors import LLMError, NoEvidenceError
from nexi.output.proof import verification_json, verification_lines
from nexi.testing import FakeWeb, ScriptedLLM
from nexi.types import Page, Paper, Reply, Verdict

Make = Callable[..., Config]
MOON, MARS = "https://moon.example/facts", "https://mars.example/facts"
PAGES = {
    MOON: "Moon facts\n\nThe Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    MARS: "Mars facts\n\nMars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
}
FACT, LIE = "The Moon is 384,400 km from Earth on average.", "The Moon orbits Earth in 12.5 days."


def nexi_over(config: Config, web: FakeWeb, judge: Any = None) -> Nexi:
    llms = {"answer": judge, "extract": judge, "judge": judge} if judge else None
    return Nexi(config, backends=[web], fetchers=[web], llms=llms)


def judged_config(make_config: Make) -> Config:
    config = make_config(verify_judge=True)
    grade_book(config).put(judge_key(config, packaged_quiz()), Grade(0.9, 0.9, 0.1, 0.5, pairs=24))
    return config


async def test_the_knowledge_base_is_asked_where_nothing_else_is_named(make_config: Make) -> None:
    web = FakeWeb(PAGES)
    async with nexi_over(make_config(), web) as nexi:
        await (await nexi.knowledge().indexer(nexi.gate())).index(Page(MOON, PAGES[MOON], "Moon facts"))
        found = await nexi.verify(Target(text=f"{FACT} Cats own all of it."))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.FOUND, Verdict.NOT_CONFIRMED]
    assert (found.basis, [state.source.url for state in found.sources]) == ("knowledge", [MOON])
    assert (web.queries, web.fetched) == ([], [])


async def test_an_empty_knowledge_base_is_no_evidence(make_config: Make) -> None:
    async with nexi_over(make_config(), FakeWeb(PAGES)) as nexi:
        with pytest.raises(NoEvidenceError, match="nothing to check this text against"):
            await nexi.verify(Target(text=FACT))


async def test_a_search_is_made_for_each_group_of_sentences_and_its_first_pages_are_read(make_config: Make) -> None:
    web = FakeWeb(PAGES)
    async with nexi_over(make_config(), web) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=f"{FACT} {LIE}"), web=True))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.FOUND, Verdict.CONTRADICTED]
    assert (len(web.queries), found.basis, found.is_contradicted) == (1, "web", True)
    assert "384,400" in web.queries[0]


async def test_the_number_of_searches_is_bounded_and_the_rest_is_said(make_config: Make) -> None:
    web = FakeWeb(PAGES)
    text = "\n\n".join(f"The Moon has crater number {n} on its far side." for n in range(200))
    async with nexi_over(make_config(), web) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=text), web=True))
    assert len(web.queries) == MAX_SEARCHES
    assert found.gap == f"Only the first {MAX_SEARCHES * MAX_GROUP} sentences were searched for"


async def test_a_text_with_citations_is_searched_for_only_where_it_cites_nothing(make_config: Make) -> None:
    web = FakeWeb(PAGES)
    text = f"{FACT[:-1]} [1]. Mars has two moons, Phobos and Deimos.\n\nSources:\n[1] {MOON}"
    async with nexi_over(make_config(), web) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=text), web=True))
    assert ["384,400" in query for query in web.queries] == [False]
    assert found.proof.checked[1].verdict is Verdict.FOUND


async def test_links_beyond_the_limit_on_pages_are_not_held_against_a_report(make_config: Make) -> None:
    text = f"{FACT[:-1]} [1]({MOON}). Mars has two moons [2]({MARS})."
    async with nexi_over(make_config(max_pages=1), FakeWeb(PAGES)) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=text), audit=True))
    assert [state.state for state in found.sources] == ["fresh", "unread"]
    assert found.citations is not None
    assert (found.citations.precision, found.citations.is_bound, found.citations.unreadable) == (0.5, True, 0)


async def test_a_judge_raises_what_rules_do_not_find_and_lowers_what_they_do(make_config: Make) -> None:
    said = [("supported", "It takes the Moon four weeks to go around us."), ("not_supported", FACT)]
    entries = [{"n": n, "passages": [1], "differs": "", "verdict": verdict} for n, (verdict, _) in enumerate(said, 1)]
    judge = ScriptedLLM(Reply(json.dumps({"items": entries})), name="scripted")
    async with nexi_over(judged_config(make_config), FakeWeb(PAGES), judge) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=" ".join(text for _, text in said)), against=(MOON,)))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.SUPPORTED, Verdict.NOT_FOUND]
    assert (found.judge, len(judge.requests)) == ("scripted", 1)


async def test_a_budget_too_small_for_the_judge_is_a_stated_gap(make_config: Make) -> None:
    judge = ScriptedLLM(name="scripted")
    async with nexi_over(judged_config(make_config), FakeWeb(PAGES), judge) as nexi:
        request = VerifyRequest(Target(text=FACT), against=(MOON,), limits=RunLimits(max_tokens=200))
        found = await nexi.verify(request)
    assert ("budget" in found.gap, found.judge, judge.requests) == (True, "", [])
    assert found.proof.checked[0].verdict is Verdict.FOUND


@pytest.mark.parametrize(
    "reply",
    [Reply("I think all of it is fine."), LLMError("the model's server has a fault", code="server")],
    ids=["babbles", "fails"],
)
async def test_what_rules_found_stands_when_the_judge_cannot_be_used(make_config: Make, reply: Reply | LLMError) -> None:
    async with nexi_over(judged_config(make_config), FakeWeb(PAGES), ScriptedLLM(reply, name="scripted")) as nexi:
        found = await nexi.verify(VerifyRequest(Target(text=f"{FACT} {LIE}"), against=(MOON,)))
    assert [claim.verdict for claim in found.proof.checked] == [Verdict.FOUND, Verdict.CONTRADICTED]
    assert (found.judge, found.gap.startswith("The sentences were not judged: ")) == ("", True)


async def test_a_judge_that_hangs_is_left_at_the_time_target(make_config: Make) -> None:
    class Hanging(ScriptedLLM):
        async def complete(self, *_: Any, **__: Any) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    async with nexi_over(judged_config(make_config), FakeWeb(PAGES), Hanging(name="scripted")) as nexi:
        request = VerifyRequest(Target(text=FACT), against=(MOON,), limits=RunLimits(time_target=0.2))
        found = await nexi.verify(request)
    assert (found.proof.checked[0].verdict, bool(found.gap)) == (Verdict.FOUND, True)


async def test_an_audit_names_the_papers_that_were_retracted_since(make_config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def find_paper(ports: PortFactory, doi: str) -> Paper:
        asked.append(doi)
        return Paper(doi, standing="retracted")

    monkeypatch.setattr(PortFactory, "find_paper", find_paper)
    paper = "https://doi.org/10.5555/moon.1"
    target = Target(text=f"{FACT.removesuffix('.')} [1].\n\n## Sources\n\n[1] {paper}\n")
    web = FakeWeb({paper: PAGES[MOON]})
    async with nexi_over(make_config(), web) as nexi:
        audited = await nexi.verify(VerifyRequest(target, audit=True))
        assert asked == ["10.5555/moon.1"]
        with pytest.raises(NoEvidenceError):
            await nexi.verify(VerifyRequest(Target(text=FACT)))
    assert asked == ["10.5555/moon.1"]  # what is checked against stored pages asks nobody
    assert [state.source.title for state in audited.sources] == ["RETRACTED: Moon facts"]
    assert "Cited is a retracted paper: 1 sentence." in verification_lines(audited)
    assert verification_json(audited, "notes.md", strict=False)["retracted"] == 1
