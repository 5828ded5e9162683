"""Facts and deltas: a closed union with one codec."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest

from nexi import events
from nexi.events import (
    DURABLE,
    KINDS,
    TERMINAL,
    AnswerChecked,
    MarksDelta,
    ModelAsked,
    ModelReplied,
    PageFetched,
    RunFailed,
    RunFinished,
    RunStarted,
    SearchFinished,
    SentenceMark,
    SourceNumbered,
    StatusDelta,
    TextDelta,
    decode,
    encode,
    is_fact,
)
from nexi.types import Claim, Evidence, Failure, Hit, Imprint, Proof, Review, Source, StopReason, ToolCall, Usage, Verdict

EXAMPLES = [
    RunStarted("q", "m", "model", "search", 6, {"max_context": 1000, "nested": {"a": [1, None, "x"]}}),
    ModelReplied(1, "text", (ToolCall("c1", "web_get", "{}"),), Usage(1, 2, True, None), "tool_calls", 0.25),
    SearchFinished("q", "searxng", (Hit("u", "t"),), (Failure("jina", "401", "no key", "set it"),), 0.1),
    PageFetched("u", "u2", "t", "d" * 64, 3, 4, 0.5, True),
    SourceNumbered(Source(1, "u", "t", "d")),
    AnswerChecked(
        Review(Proof((Claim(0, "a [1]", 0, 5, Verdict.NOT_FOUND, evidence=(Evidence(1, missing=("b",)),)),)), (0,), asked=True)
    ),
    RunFinished("a [1]", (Source(1, "u"),), StopReason.TIME_TARGET, 2, Usage(5, 6, False, 0.01), 1.5, 3, 2, ("slow",)),
    RunFailed("llm", "m", "c", "f", StopReason.API_ERROR, 0, Usage(), 0.0),
    TextDelta("half a sentence"),
    StatusDelta("searching"),
    MarksDelta((SentenceMark(0, 5, Verdict.FOUND, "said in other words"),)),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda e: e.kind)
def test_an_event_survives_json(event: events.Event) -> None:
    data = encode(event)
    assert next(iter(data.items())) == ("kind", event.kind)
    assert decode(json.loads(json.dumps(data))) == event


def test_an_encoded_fact_reads_like_its_fields() -> None:
    assert encode(EXAMPLES[1]) == {
        "kind": "model_replied",
        "call": 1,
        "text": "text",
        "tool_calls": [{"id": "c1", "name": "web_get", "arguments": "{}"}],
        "usage": {"input_tokens": 1, "output_tokens": 2, "estimated": True, "cost": None},
        "finish": "tool_calls",
        "seconds": 0.25,
    }


def test_every_kind_is_named_once_and_known() -> None:
    union = typing.get_args(events.Fact) + typing.get_args(events.Delta)
    assert len(KINDS) == len(union)
    assert {cls.kind: cls for cls in union} == KINDS


def test_only_deltas_are_no_facts() -> None:
    assert [kind for kind, cls in KINDS.items() if cls in typing.get_args(events.Delta)] == [
        "text_delta",
        "marks_delta",
        "status_delta",
    ]
    assert [is_fact(event) for event in EXAMPLES] == [True] * 8 + [False] * 3


def test_terminal_facts_are_durable_and_so_is_what_costs_money() -> None:
    assert set(TERMINAL) == {RunFinished, RunFailed}
    assert set(DURABLE) == {RunFinished, RunFailed, ModelAsked, ModelReplied}


def test_fields_of_a_later_version_are_left_out_and_absent_ones_take_their_default() -> None:
    data = encode(RunStarted("q", "m", "model"))
    del data["mode"]
    assert decode({**data, "colour": "red"}) == RunStarted("q", "m", "model")


def test_a_source_of_an_older_log_has_no_imprint_and_no_link() -> None:
    older = {"kind": "source_numbered", "source": {"number": 1, "url": "https://a.org/", "title": "A", "digest": "d"}}
    assert decode(older) == SourceNumbered(Source(1, "https://a.org/", "A", "d", Imprint(), ""))


@pytest.mark.parametrize("data", [{}, {"kind": "nonesuch"}, {"kind": ""}])
def test_an_unknown_kind_is_an_error(data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="unknown event kind"):
        decode(data)


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(TypeError):
        decode({"kind": "warned", "code": "x"})
    with pytest.raises(ValueError, match="sideways"):
        decode({**encode(EXAMPLES[6]), "stop": "sideways"})


def test_a_review_of_version_0_1_is_read_in_the_words_of_today() -> None:
    """Rules alone had decided it: what they called supported is found, and a part of what they did not find is no pass."""

    def claim(index: int, verdict: str, *sources: str) -> dict[str, Any]:
        evidence = [{"number": n, "verdict": said} for n, said in enumerate(sources, 1)]
        return {"index": index, "text": "a", "start": 0, "end": 1, "verdict": verdict, "evidence": evidence}

    old = [claim(0, "supported", "partly", "supported"), claim(1, "partly", "partly"), claim(2, "contradicted", "contradicted")]
    data = {"kind": "answer_checked", "review": {"proof": {"claims": old}, "dropped": [claim(3, "partly")]}}
    event = decode(data)
    assert isinstance(event, AnswerChecked)
    assert [(c.verdict.value, [e.verdict.value for e in c.evidence]) for c in event.review.proof.claims] == [
        ("found", ["found", "found"]),
        ("not_found", ["not_found"]),
        ("contradicted", ["contradicted"]),
    ]
    assert event.review.dropped[0].verdict is Verdict.NOT_FOUND
