"""Whatever a model or a person writes, there is an agenda, a judgement, and a report that is sound."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.citations import extract_citation_markers
from nexi.research.evaluator import _parse_judgement, build_digest
from nexi.research.planner import PlanningContext, _parse_agenda, _resolve_from_conversation, plan_by_parts
from nexi.research.report import (
    LETTERS,
    PREFERRED_FOLDERS,
    SaveLocation,
    choose_folder,
    lint_report,
    make_file_name,
    render_document,
    render_front_matter,
)
from nexi.research.state import FIRST_RESEARCHERS, MAX_TASKS
from nexi.text.words import find_names
from nexi.types import Source
from tests.research.test_evaluator import after

WORDS = st.sampled_from(
    ["who", "what", "and", "or", "Ada", "Lovelace", "it", "she", "?", ",", "vs", "the", '"', "月", "Жук", "\n"]
)
TEXT = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=25).map(" ".join))
KEYS = st.sampled_from(["tasks", "agenda", "complexity", "task", "action", "queries", "x"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.just("delegate"), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=7), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
FIELDS = st.dictionaries(
    st.sampled_from(["question", "model", "cost"]), st.one_of(TEXT, st.integers(), st.none(), st.booleans())
)
DEPTHS = st.integers(0, 3)


@given(TEXT, DEPTHS)
def test_the_fallback_always_has_one_to_five_tasks_with_words(question: str, depth: int) -> None:
    agenda = plan_by_parts(question, PlanningContext("2026-01-02", depth), "fallback")
    assert 1 <= len(agenda.tasks) <= min(MAX_TASKS, FIRST_RESEARCHERS[agenda.complexity])
    assert all(task.strip() for task in agenda.tasks)
    assert agenda.complexity == depth or not depth
    assert len(set(agenda.tasks)) == len(agenda.tasks)


@given(st.one_of(TEXT, VALUES.map(json.dumps), VALUES.map(lambda v: f"Sure!\n```json\n{json.dumps(v)}\n```")), DEPTHS)
def test_an_agenda_that_is_read_is_one_that_the_run_accepts(text: str, depth: int) -> None:
    agenda = _parse_agenda(text, depth)
    if agenda is not None:
        assert 1 <= len(agenda.tasks) <= FIRST_RESEARCHERS[agenda.complexity] <= MAX_TASKS
        assert all(task.strip() for task in agenda.tasks)


@given(st.one_of(TEXT, VALUES.map(json.dumps)))
def test_a_judgement_is_a_delegation_with_tasks_or_a_report(text: str) -> None:
    judgement = _parse_judgement(text)
    if judgement.decision == "delegate":
        assert 1 <= len(judgement.tasks) <= MAX_TASKS
        assert all(task.strip() for task in judgement.tasks)
    else:
        assert (judgement.decision, judgement.tasks) == ("synthesise", ())


@given(TEXT, TEXT)
def test_names_stand_in_the_question_they_are_from(question: str, conversation: str) -> None:
    assert all(name and name.split()[0] in question for name in find_names(question))
    assert _resolve_from_conversation(question, conversation).strip() or not question.strip()


@given(st.lists(st.text(max_size=80), min_size=1, max_size=3), TEXT.filter(str.strip), st.booleans())
def test_a_digest_cites_nothing_that_no_report_cites(reports: list[str], question: str, quoted: bool) -> None:
    told = [f"{text} [{n}]" for n, text in enumerate(reports, 1)]
    text = build_digest(after(*told, question=question), quoted=quoted)
    assert extract_citation_markers(text) <= extract_citation_markers("\n\n".join([*told, question]))


@given(TEXT, st.lists(st.integers(1, 6), unique=True, max_size=4), TEXT, st.lists(st.integers(0, 9), max_size=6))
def test_in_a_linted_report_every_citation_has_a_source_and_every_source_a_citation(
    text: str, numbers: list[int], question: str, cited: list[int]
) -> None:
    sources = [Source(n, f"https://page.example/{n}") for n in numbers]
    marked = text + "".join(f" Said [{n}]." for n in cited)
    linted = lint_report(marked, sources, question)
    assert extract_citation_markers(linted.text) == {s.number for s in linted.sources}
    assert lint_report(linted.text, linted.sources, question).text == linted.text
    assert render_document(linted.text, linted.sources, {"question": question}, "/x.md").startswith("---\n")


@given(TEXT, st.integers(0, 255), st.integers(0, 255))
def test_a_file_name_is_one_name_that_every_system_takes(question: str, letter: int, digit: int) -> None:
    name = make_file_name(question, letter, digit)
    assert name.startswith("nexi-research-")
    assert (name[-5] in LETTERS, name[-4].isdigit(), name[-3:]) == (True, True, ".md")
    assert not set(name) & set('/\\:*?"<>|\0\n')
    assert len(name.encode()) <= 255


@given(st.dictionaries(st.sampled_from(["question", "model"]), st.one_of(TEXT, st.integers(), st.none(), st.booleans())))
def test_front_matter_is_read_back_as_it_was_written(fields: dict[str, object]) -> None:
    lines = render_front_matter(fields).split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("---", "---", "")
    read = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in lines[1:-2])}
    assert read == {name: value for name, value in fields.items() if value is not None}


@given(st.lists(st.sampled_from([*PREFERRED_FOLDERS, "src", "Docs", "RESEARCH", "x"]), unique=True))
def test_a_report_goes_to_where_the_user_stands_or_one_below(subfolders: list[str]) -> None:
    here = PurePosixPath("/srv/moon")
    folder = choose_folder(SaveLocation(here, tuple(subfolders), PurePosixPath("/home/ada"), PurePosixPath("/tmp")))
    good = [name for name in PREFERRED_FOLDERS if name in {s.casefold() for s in subfolders}]
    assert (folder == here) is (not good)
    assert not good or (folder.parent == here and folder.name.casefold() == good[0] and folder.name in subfolders)
