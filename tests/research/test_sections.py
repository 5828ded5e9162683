"""A report written section by section: an outline, each section from its evidence, an introduction from the sections."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nexi.app import RunResult
from nexi.checking.answer import AnswerCheck
from nexi.config import Config
from nexi.errors import LLMError
from nexi.events import RoundEvaluated, Warned
from nexi.prompts import NAMES, template
from nexi.research.evaluator import EvaluationLimits, RoundJudgement, Section, _parse_judgement, build_messages
from nexi.research.sections import (
    LENGTHS,
    SectionWriter,
    _clean_section,
    _drop_repeated_sentences,
    _section_words,
    _SectionedReport,
)
from nexi.research.state import ResearchState
from nexi.runs.session import Session
from nexi.testing import ScriptedLLM
from nexi.types import Message, Page, PageView, Reply, StopReason
from tests.research.test_resume import cut_after, resumed
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, _said, nexi_over, play, replayed

Make = Callable[..., Config]

MOON = PageView("https://moon.example", 1, "Moon", "The Moon is 384,400 km from Earth. It orbits Earth in 27.3 days.")
TIDE = PageView("https://tide.example", 2, "Tides", "A high tide comes about every 12 hours and 25 minutes.")
LIMITS = EvaluationLimits(window=8000, max_tokens=1000)
OUTLINE = {
    "action": "outline",
    "sections": [
        {"heading": "The distance of the Moon", "covers": "How far away the Moon is.", "sources": [1]},
        {"heading": "The tides", "covers": "What the Moon does to the tides.", "sources": [2]},
    ],
}
SECTIONS = (
    Section("The distance of the Moon", "How far away the Moon is.", (1,)),
    Section("The tides", "What the Moon does to the tides.", (2,)),
)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


# the outline


@pytest.mark.parametrize("text", [json.dumps(OUTLINE), f"Here is the plan:\n```json\n{json.dumps(OUTLINE)}\n```"])
def test_an_outline_is_read_bare_and_fenced_in_prose(text: str) -> None:
    assert _parse_judgement(text) == RoundJudgement("outline", sections=SECTIONS)


def test_an_outline_without_a_section_is_asked_for_again() -> None:
    assert _parse_judgement('{"action": "outline", "sections": []}') == RoundJudgement("synthesise")


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("# The Moon and\nthe tides.", "The Moon and the tides"),
        ("How far is the Moon?", ""),
        ("The Moon [1]", ""),
        ("Moon " * 30, ""),
        ("…", ""),
        (3, ""),
    ],
)
def test_a_title_of_an_outline_is_one_line_that_asks_and_cites_nothing(title: object, read: str) -> None:
    assert _parse_judgement(json.dumps({**OUTLINE, "title": title})).title == read


def test_what_is_no_section_is_left_out_and_a_heading_stands_once() -> None:
    listed = [
        "# Tides:",
        {"heading": "tides"},
        {"heading": "…"},
        3,
        {"heading": 4},
        {"heading": "Mars", "sources": [1, "2", True, 1]},
    ]
    assert _parse_judgement(json.dumps({**OUTLINE, "sections": listed})).sections == (
        Section("Tides"),
        Section("Mars", "", (1,)),
    )


def test_an_outline_names_what_no_report_answers() -> None:
    listed = ["The colour of the Moon.", 3, "…", "The colour of the Moon", "Who owns it [2]"]
    judgement = _parse_judgement(json.dumps({**OUTLINE, "not_found": listed}))
    assert judgement == RoundJudgement("outline", sections=SECTIONS, gaps=("The colour of the Moon", "Who owns it"))


def test_an_outline_has_at_most_six_sections() -> None:
    assert len(_parse_judgement(json.dumps({**OUTLINE, "sections": [f"Part {n}" for n in range(9)]})).sections) == 6


@pytest.mark.parametrize(
    ("words", "most", "sections", "each"),
    [(0, 6, 6, 400), (LENGTHS["brief"], 3, 3, 100), (LENGTHS["standard"], 6, 4, 250), (LENGTHS["long"], 6, 6, 500)],
)
def test_the_length_of_a_report_is_shared_by_its_sections(words: int, most: int, sections: int, each: int) -> None:
    model = ScriptedLLM(Reply(FAR), Reply(WET), Reply(SHORT))
    limits = replace(LIMITS, words=words, plans_sections=True)
    asked = build_messages(ResearchState(question=QUESTION), False, limits)[0].content
    assert f"with 2 to {most} sections" in asked
    assert _section_words(words, sections) == each
    writer = SectionWriter(QUESTION, SECTIONS, ((MOON,), (TIDE,)), model, limits, asyncio.Semaphore(1))
    asyncio.run(writer.write_report())
    assert f"in at most {_section_words(words, 2)} words" in model.requests[0][0].content


# the writing


def write(
    *replies: Reply | LLMError, evidence: Sequence[Sequence[PageView]] = ((MOON,), (TIDE,)), **more: Any
) -> _SectionedReport:
    writer = SectionWriter(QUESTION, SECTIONS, evidence, ScriptedLLM(*replies), LIMITS, asyncio.Semaphore(1), **more)
    return asyncio.run(writer.write_report())


FAR, WET = "The Moon is 384,400 km away [1].", "High tides are about 12 hours and 25 minutes apart [2]."
SHORT = "At 384,400 km the Moon is far [1], and it brings a high tide twice a day [2]."
WHOLE = f"# The Moon\n\n{SHORT}\n\n## The distance of the Moon\n\n{FAR}\n\n## The tides\n\n{WET}"


def test_a_report_has_a_title_an_introduction_and_its_sections() -> None:
    assert write(Reply(FAR), Reply(WET), Reply(SHORT)) == _SectionedReport(WHOLE)


def test_a_report_has_the_title_of_its_outline() -> None:
    written = write(Reply(FAR), Reply(WET), Reply(SHORT), title="The Moon and its tides").text
    assert written == WHOLE.replace("# The Moon\n", "# The Moon and its tides\n", 1)


def test_a_section_is_asked_for_with_its_own_evidence_and_the_notes_on_its_sources() -> None:
    model = ScriptedLLM(Reply(FAR), Reply(WET), Reply(SHORT))
    reports = (
        "Summary.\n\n- The Moon is far [1].\n- Mars has moons [3].\n\nSources: [1], [3]",
        "- It is far, and wet [1][2].\n- Tides rise [2].\n\n[2] Tides",
    )
    writer = SectionWriter(QUESTION, SECTIONS, ((MOON,), (TIDE,)), model, LIMITS, asyncio.Semaphore(1), reports)
    asyncio.run(writer.write_report())
    first, second, introduction = ([m.content for m in request] for request in model.requests)
    assert first[0] == second[0]  # the server's prefix cache serves every section
    assert first[1] == (
        "Source [1], Moon:\nThe Moon is 384,400 km from Earth. It orbits Earth in 27.3 days.\n\n"
        "Notes of the researchers:\n- The Moon is far [1].\n\n"
        "Now write the section “The distance of the Moon”. How far away the Moon is."
    )
    assert second[1] == (
        "Source [2], Tides:\nA high tide comes about every 12 hours and 25 minutes.\n\n"
        "Notes of the researchers:\n- Tides rise [2].\n\n"
        "Now write the section “The tides”. What the Moon does to the tides."
    )
    assert introduction[1] == f"## The distance of the Moon\n\n{FAR}\n\n## The tides\n\n{WET}"


def test_a_paragraph_that_cites_only_the_notes_of_the_researchers_stays() -> None:
    reports = ("- High tides are about 12 hours and 25 minutes apart [2].",)
    wide = (replace(SECTIONS[0], sources=(1, 2)), SECTIONS[1])
    model = ScriptedLLM(Reply(f"{FAR}\n\n{WET}\n\nMars is red [3]."), Reply(WET), Reply(""))
    writer = SectionWriter(QUESTION, wide, ((MOON,), (TIDE,)), model, LIMITS, asyncio.Semaphore(1), reports)
    report = asyncio.run(writer.write_report())
    assert report.text.split("## ")[1] == f"The distance of the Moon\n\n{FAR}\n\n{WET}\n\n"


def test_evidence_is_cut_to_the_window_and_keeps_its_best_passage() -> None:
    model = ScriptedLLM(Reply(FAR), Reply(WET), Reply(SHORT))
    many = tuple(PageView("u", 1, "Moon", f"Passage {n}. " + "The Moon is far. " * 60) for n in range(9))
    limits = EvaluationLimits(window=3000, max_tokens=750)
    asyncio.run(SectionWriter(QUESTION, SECTIONS, (many, (TIDE,)), model, limits, asyncio.Semaphore(1)).write_report())
    asked = model.requests[0][1].content
    assert re.findall(r"Passage \d", asked) == ["Passage 0", "Passage 1", "Passage 2"]
    assert len(asked.encode()) < 3000 * 3


@pytest.mark.parametrize("reply", [LLMError("gone"), Reply(""), Reply("The Moon is far."), Reply("The Moon is far [7].")])
def test_a_section_that_is_not_written_or_cites_nothing_is_quoted(reply: Reply | LLMError) -> None:
    quoted = "The Moon is 384,400 km from Earth. [1] It orbits Earth in 27.3 days. [1]"
    why = "gone" if isinstance(reply, LLMError) else ""
    assert write(reply, Reply(WET), Reply(SHORT)) == _SectionedReport(
        WHOLE.replace(FAR, quoted), ("The distance of the Moon",), why
    )


def test_a_section_without_evidence_is_named_and_not_asked_for() -> None:
    report = write(Reply(FAR), evidence=((MOON,), ()))
    assert report == _SectionedReport(
        f"# The Moon\n\n## The distance of the Moon\n\n{FAR}\n\n## Not found\n\n- The tides", missing=("The tides",)
    )


def test_a_report_ends_with_what_no_report_answers() -> None:
    replies = (Reply(FAR), Reply(WET), Reply(SHORT))
    assert write(*replies, gaps=("Its colour",)) == _SectionedReport(f"{WHOLE}\n\n## Not found\n\n- Its colour")
    report = write(Reply(FAR), evidence=((MOON,), ()), gaps=("Its colour", "The tides"))
    assert report.text.endswith("## Not found\n\n- The tides\n- Its colour")


def test_notes_are_whole_and_hold_no_list_of_pages() -> None:
    facts = [f"- Crater {n} of the Moon is {'very ' * 20}old [1]." for n in range(40)]
    report = "\n".join([*facts, "", "## Pages cited", "", "[1] Moon, [2] Tides"])
    model = ScriptedLLM(Reply(FAR), Reply(WET), Reply(SHORT))
    writer = SectionWriter(QUESTION, SECTIONS, ((MOON,), (TIDE,)), model, LIMITS, asyncio.Semaphore(1), (report,))
    asyncio.run(writer.write_report())
    notes = model.requests[0][1].content.split("Notes of the researchers:\n")[1].split("\n\n")[0].split("\n")
    assert notes == facts[:14]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (f"## The tides\n\n{WET}", WET),
        (f"**The tides**\n{WET}", WET),
        (f"Here is the section:\n\n{WET}", WET),
        (f"Question: {QUESTION}\n\n{WET}\n\nSources:\n[2] https://tide.example", WET),
        (f"<think>hm</think>```markdown\n{WET}\n```", WET),
        ("They rise [2][9]. They fall 【2】.", "They rise [2]. They fall [2]."),
        ('{"tool": "search", "queries": ["tides [2]"]}', ""),
    ],
)
def test_no_heading_prompt_or_list_of_sources_leaks_into_a_section(reply: str, text: str) -> None:
    assert _clean_section(reply, {2}) == text


def test_a_line_that_introduces_a_cited_list_stays_with_it() -> None:
    start, lead_in = "It is old [2].", "Its parts are older:\n\n- Bacteria have enzymes [2]."
    assert _clean_section(f"{start}\n\n{lead_in}\n\nNobody knows:\n\nSo it is.\n\nThe end:", {2}) == f"{start}\n\n{lead_in}"
    assert _clean_section("Here is the section:\n\n- Bacteria have enzymes [2].", {2}) == "- Bacteria have enzymes [2]."


def test_code_stays_with_the_sentence_that_it_illustrates() -> None:
    code = "```sh\n# list the tides\n\ntides --list\n```"
    text = f"{WET}\n\nThis command lists them [2]:\n\n{code}\n\nIts output is short [2]:\n{code}"
    assert _clean_section(text, {2}) == text
    assert _clean_section(f"{code}\n\nNobody says so.\n\n{code}\n\n{WET}", {2}) == WET


def test_an_introduction_does_not_repeat_the_sections() -> None:
    body = f"## The distance\n\n{FAR}\n\n## The tides\n\n{WET}"
    assert _drop_repeated_sentences(f"{FAR} {SHORT}", body) == SHORT
    assert _drop_repeated_sentences(f"{FAR} {WET}", body) == ""


# in a run


class OutlineModel(PromptModel):
    """Plans its report, and writes each section from the first sentence of its evidence."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        rules, last = messages[0].content, messages[-1].content
        if rules.startswith("You write a report"):
            number, text = re.findall(r"Source \[(\d+)\], .*:\n(?:#.*\s+)*(.+?)\.(?:\s|$)", last)[0]
            return _said(f"{text} [{number}].")
        if rules.startswith("You write the introduction"):
            numbers = sorted(set(re.findall(r"\[\d+\]", last)))
            return _said(f"The Moon, at 384,400 km, moves the tides of Earth {''.join(numbers)}.")
        return super().reply(messages, tools)

    def _judged(self, rules: str, reports: str) -> Reply:
        reply = super()._judged(rules, reports)
        if '"action": "outline"' not in rules or reply.text.startswith("{"):
            return reply
        numbers = {words: int(n) for words, n in re.findall(r"^- (\w+ \w+) .*\[(\d+)\]\.$", reports, re.MULTILINE)}
        sections = [
            {"heading": "The distance of the Moon", "covers": "How far it is from Earth.", "sources": [numbers["The Moon"]]},
            {"heading": "The tides", "covers": "When a high tide comes.", "sources": [numbers["A high"]]},
        ]
        return _said(json.dumps({"action": "outline", "sections": sections}))


def research(config: Config, model: PromptModel) -> RunResult:
    async def work() -> RunResult:
        async with nexi_over(config, SlowWeb(PAGES), model) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def test_a_run_plans_its_report_and_every_sentence_is_checked(make_config: Make) -> None:
    result = research(make_config(), OutlineModel())
    text = re.sub(r"\[\d+\]", "[n]", result.answer.text)
    assert text == (
        "# The Moon\n\n"
        "The Moon, at 384,400 km, moves the tides of Earth [n][n].\n\n"
        "## The distance of the Moon\n\nThe Moon is 384,400 km from Earth on average [n].\n\n"
        "## The tides\n\nThe tides follow the Moon [n]."
    )
    assert result.answer.stop is StopReason.FINAL_ANSWER
    judged = [(f.decision, f.by) for f in result.facts if isinstance(f, RoundEvaluated)]
    assert judged == [("delegate", "model"), ("synthesise", "model")]


def test_a_run_by_sections_is_replayed_byte_for_byte(make_config: Make) -> None:
    config = make_config()
    result = research(config, OutlineModel())

    async def work() -> tuple[bool, str]:
        async with nexi_over(config, SlowWeb({}), OutlineModel()) as nexi:
            replay = await nexi.replay(result.id)
            return replay.is_same, replay.result.answer.text

    assert play(work) == (True, result.answer.text)


def test_a_run_by_sections_cut_off_after_any_fact_repeats_no_call(make_config: Make, tmp_path: Path) -> None:
    config, model = make_config(), OutlineModel()
    whole = research(config, model)
    lines = (config.runs_dir / whole.id / "log.jsonl").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if '"kind":"round_evaluated"' in line)
    differences = {}
    for facts in range(first, len(lines) - 1):
        again = OutlineModel()
        result = resumed(cut_after(config, whole.id, facts, tmp_path / str(facts)), whole.id, again)
        answered = sum('"kind":"model_replied"' in line for line in lines[: facts + 1])
        repeated = len(again.asked) - (len(model.asked) - answered)
        if result.answer.text != whole.answer.text or repeated:
            differences[facts] = (json.loads(lines[facts])["fact"]["kind"], repeated, result.answer.text)
    assert differences == {}


def test_a_budget_that_is_too_small_for_sections_gives_a_report_in_one_call_that_says_so(make_config: Make) -> None:
    model = OutlineModel(rounds=1)
    result = research(make_config(max_tokens=16_000), model)
    warned = [f.message for f in result.facts if isinstance(f, Warned) and f.code == "one_call"]
    assert warned == ["the report was written in one call, not section by section: the budget leaves too little for that"]
    assert result.answer.text.startswith("# The Moon and the tides")
    assert not any("one section at a time" in asked for asked in model.asked)


def test_a_prompt_of_ones_own_for_the_evaluator_is_used_and_writes_the_report_in_one_call(make_config: Make) -> None:
    config, model = make_config(), OutlineModel(rounds=1)
    config.prompts_dir.mkdir(parents=True)
    own = "You lead. {question}{agenda} Round {round} {target}{most}{budget}{choice}"
    (config.prompts_dir / "evaluator.md").write_text(own, encoding="utf-8")
    assert research(config, model).answer.text.startswith("# The Moon and the tides")


INTRODUCED = "The Moon, at 384,400 km, moves the tides of Earth"


def test_the_report_of_a_small_model_quotes_the_parts_of_the_question_and_the_model_introduces_it(make_config: Make) -> None:
    model, config = OutlineModel(), make_config(model="qwen2.5:1.5b", base_url="http://127.0.0.1:9/v1")
    result = research(config, model)
    assert not any("You lead" in asked or "You coordinate" in asked for asked in model.asked)
    assert sum("You write the introduction" in asked for asked in model.asked) == 1
    assert re.sub(r"\[\d+\]", "[n]", result.answer.text) == (
        f"# The Moon\n\n{INTRODUCED} [n][n].\n\n"
        "## How far is the Moon?\n\nThe Moon is 384,400 km from Earth on average. [n] It orbits Earth in 27.3 days. [n]\n\n"
        "## What does the Moon do to the tides?\n\n"
        "The tides follow the Moon. [n] A high tide comes about every 12 hours and 25 minutes. [n]"
    )
    assert result.answer.stop is StopReason.FINAL_ANSWER
    assert replayed(config, result.id) == result.answer.text


def test_an_introduction_of_a_small_model_that_fails_the_check_is_left_out(make_config: Make) -> None:
    class Liar(OutlineModel):
        def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
            reply = super().reply(messages, tools)
            return replace(reply, text=reply.text.replace("384,400", "900"))

    result = research(make_config(model="qwen2.5:1.5b", base_url="http://127.0.0.1:9/v1"), Liar())
    assert (INTRODUCED in result.answer.text, "900" in result.answer.text) == (False, False)
    assert "The tides follow the Moon." in result.answer.text
    assert result.answer.stop is StopReason.FINAL_ANSWER


# a model that repeats its prompt


class EchoingModel(OutlineModel):
    """Writes its prompt before whatever it is asked to write."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        reply = super().reply(messages, tools)
        echo = "\n\n".join(message.content for message in messages if message.role in ("system", "user"))
        if reply.tool_calls and reply.tool_calls[0].name == "final_answer":
            answer = json.loads(reply.tool_calls[0].arguments)["answer"]
            call = replace(reply.tool_calls[0], arguments=json.dumps({"answer": f"{echo}\n\n{answer}"}))
            return replace(reply, tool_calls=(call,))
        is_text = reply.text and not reply.text.startswith("{")
        return replace(reply, text=f"{echo}\n\n{reply.text}") if is_text else reply


def list_prompt_sentences() -> list[str]:
    lines = [line.strip("- ") for name in NAMES for line in re.split(r"\n|\{[a-z_]+\}", template(name)[0])]
    sentences = [sentence.strip() for line in lines for sentence in re.split(r"(?<=[.:!?])\s+", line)]
    return [sentence for sentence in sentences if len(sentence.split()) >= 5]


@pytest.mark.parametrize(
    "settings", [{}, {"max_tokens": 16_000}, {"model": "qwen2.5:1.5b", "base_url": "http://127.0.0.1:9/v1"}]
)
def test_no_sentence_of_a_prompt_is_in_the_report_of_a_model_that_repeats_its_prompt(
    make_config: Make, settings: dict[str, Any]
) -> None:
    text = research(make_config(**settings), EchoingModel(rounds=1)).answer.text
    assert [sentence for sentence in list_prompt_sentences() if sentence in text] == []
    assert "384,400 km" in text
    cited = [line.strip("- ") for line in text.split("\n") if "[" in line]
    assert len(set(cited)) == len(cited)


def test_a_sentence_of_a_prompt_that_a_page_says_is_kept_in_an_answer() -> None:
    session = Session()
    session.add_page("https://docs.example/", Page("https://docs.example/", "A rule: Answer in the language of the question."))
    shown: list[str] = []
    check = AnswerCheck(session, None, shown.append)
    check.stream.feed("Write no list of sources; it is added for you.\nAnswer in the language of the question.\n")
    check.stream.finish()
    assert "".join(shown).strip() == "Answer in the language of the question."
