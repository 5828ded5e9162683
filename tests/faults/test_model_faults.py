"""A model that fails: what the person sees, what the shell sees, and that nothing read or paid for is lost.

Each row of the table is one fault. It comes once at the first model call, when nothing was read, and once at the third, when
a page was read. Waiting between retries takes no time here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from nexi.app import SystemClock
from nexi.events import ModelFailed, RunFinished, ToolFinished
from nexi.model import CallCounter
from nexi.types import StopReason
from tests.faults.command import (
    ANSWER,
    MOON,
    Outcome,
    answering,
    calling,
    calling_all,
    check_nothing_is_left_behind,
    check_nothing_is_lost,
    endpoint,
    reading,
    searching,
)
from tests.llm.server import Canned, call_delta, delta, refused, said, sse

pytestmark = pytest.mark.long

Ask = Callable[..., Outcome]
STAYS = 40  # a server that is broken stays broken, however often it is asked
PASSAGE = "The Moon is 384,400 km from Earth on average. [1]"
SENTENCE = '{"answer": "The Moon is 384,400 km away on average [1]. It has '
MEGABYTE = "The Moon is far away [1]. " + "It is very far and " * 52_000


def breaking_off(*events: object) -> Canned:
    return sse(*events, done=False, then="abort")


def answer_piece(text: str) -> dict[str, object]:
    return call_delta(0, "f", "final_answer", text)


# What the endpoint does
REPLIES = {
    "no content": sse(delta("stop")),
    "no body": Canned(200),
    "half a JSON body": Canned(200, (b'{"choices": [{"mess',)),
    "HTML": Canned(200, (b"<html><title>Log in</title>",), "text/html"),
    "400": refused(400, "bad model"),
    "401": refused(401, "bad key"),
    "402": refused(402, "no credit"),
    "404": refused(404, "no model"),
    "429": refused(429, "slow down", ("retry-after", "7")),
    "429 for an hour": refused(429, "later", ("retry-after", "3600")),
    "500": refused(500, "out of memory"),
    "redirect": Canned(307, headers=(("location", "http://b.example/"),)),
    "closes at once": Canned(then="refuse"),
    "closes after the headers": Canned(content_type="text/event-stream", then="abort"),
    "closes in a thought": breaking_off(delta(content="<think>hm")),
    "closes after a call": breaking_off(call_delta(0, "s", "web_search", '{"queries": ["moon"]}')),
    "closes in the first sentence": breaking_off(answer_piece('{"answer": "The Moon is 38')),
    "closes in the second sentence": breaking_off(answer_piece(SENTENCE)),
    "unknown tool once": calling("fly_to_moon", {"speed": 9}),
    "unknown tool always": calling("fly_to_moon", {}),
    "half a call": calling("web_search", '{"queries": ["moon dis'),
    "no arguments": calling("web_search", ""),
    "30 tool calls": calling_all([(f"c{i}", "web_search", {"queries": [f"moon {i}"]}) for i in range(30)]),
    "half an answer": calling("final_answer", SENTENCE),
    "10 MB answer": sse(answer_piece('{"answer": "'), *[call_delta(0, None, None, MEGABYTE)] * 10),
    "10 MB of text": sse(*[delta(content=MEGABYTE)] * 10),
}


@dataclass(frozen=True)
class Fault:
    """What comes of it."""

    name: str
    first: tuple[int, str]  # exit code, and what stderr says, when nothing was read
    third: tuple[int, str]  # the same when a page was read
    answer: str = PASSAGE  # what stdout begins with when a page was read
    stays: bool = True  # or the endpoint recovers after once
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def replies(self) -> list[Canned]:
        return [REPLIES[self.name]] * (STAYS if self.stays else 1)


CLOSED = "closed the connection in the middle of a reply"
GOES_ON = "continuing with what had arrived"
BUILT_IN = "before any page was read, so the built-in model read and answered"
LIMIT = "the iteration limit was reached"
CIRCLES = "the model made the same calls again and again"
TABLE = [
    #     the endpoint                     nothing was read                           a page was read
    Fault("no content", (1, "sent an empty reply"), (0, "choose another model: -m MODEL")),
    Fault("no body", (1, "sent an empty reply"), (0, "choose another model: -m MODEL")),
    Fault("half a JSON body", (1, "sent a reply that is no chat completion"), (0, "correct base_url")),
    Fault("HTML", (1, "answered with a web page: Log in"), (0, "correct base_url")),
    Fault("400", (1, "refused the request: bad model"), (0, "choose another model: -m MODEL")),
    Fault("401", (1, "refused the API key: bad key"), (0, "set the right key")),
    Fault("402", (1, "requires payment: no credit"), (0, "top up the account")),
    Fault("404", (1, "does not have the model faulty"), (0, "nexi models")),
    Fault("429", (1, "is limiting requests: slow down"), (0, "wait or choose another model")),
    Fault("429 for an hour", (1, "is limiting requests: later"), (0, "wait or choose another model")),
    Fault("500", (1, "failed: out of memory"), (0, "wait or choose another model")),
    Fault("redirect", (1, "redirect to http://b.example/"), (0, "set base_url to the new address")),
    Fault("closes at once", (1, CLOSED), (0, "wait or choose another model")),
    Fault("closes after the headers", (1, CLOSED), (0, "wait or choose another model")),
    Fault("closes in a thought", (1, CLOSED), (0, "wait or choose another model")),
    Fault("closes after a call", (0, GOES_ON), (0, GOES_ON), ANSWER, stays=False),
    Fault("closes in the first sentence", (1, CLOSED), (0, CLOSED)),
    Fault("closes in the second sentence", (1, CLOSED), (0, "the answer breaks off"), ANSWER),
    Fault("unknown tool once", (0, ""), (0, ""), ANSWER, stays=False),
    Fault("unknown tool always", (0, f"{CIRCLES} {BUILT_IN}"), (0, LIMIT), flags=("--max-iter", "4")),
    Fault("half a call", (0, ""), (0, ""), ANSWER, stays=False),
    Fault("no arguments", (0, ""), (0, ""), ANSWER, stays=False),
    Fault("30 tool calls", (0, ""), (0, ""), ANSWER, stays=False),
    Fault("half an answer", (0, "did not use its tools"), (0, "the answer breaks off"), ANSWER),
    Fault("10 MB answer", (0, "did not use its tools"), (0, "the answer breaks off"), "The Moon is far away [1]."),
    Fault("10 MB of text", (0, "did not use its tools"), (0, "assembled from passages without a model")),
]
each_fault = pytest.mark.parametrize("fault", TABLE, ids=str)


def test_every_fault_is_in_the_table_once() -> None:
    assert sorted(f.name for f in TABLE) == sorted(REPLIES)


def check_words(done: Outcome, words: str) -> None:
    assert words in done.err
    if done.code:
        assert "Error: " in done.err
        assert "Fix: " in done.err


@each_fault
def test_at_the_first_call_nothing_was_read(ask: Ask, web: str, waits: list[float], fault: Fault) -> None:
    rest = [] if fault.stays else [searching(), reading(web), answering()]
    with endpoint([*fault.replies, *rest]) as server:
        done = ask(*fault.flags, base_url=server.url)
    code, words = fault.first
    assert (done.code, "384,400 km" in done.out) == (code, not code)
    check_words(done, words)
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


@each_fault
def test_at_the_third_call_a_page_was_read(ask: Ask, web: str, waits: list[float], fault: Fault) -> None:
    rest = [] if fault.stays else [answering()]
    with endpoint([searching(), reading(web), *fault.replies, *rest]) as server:
        done = ask(*fault.flags, base_url=server.url)
    code, words = fault.third
    assert (done.code, done.out[: len(fault.answer)]) == (code, fault.answer)
    assert done.out.endswith(f"\n\nSources:\n[1] Moon facts - {web}/moon.test/facts\n")
    check_words(done, words)
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


FAR_TARGET_S = 600
NEVER_ENDING = [
    ("silence", Canned(content_type="text/event-stream", then="hang")),
    ("a thought", sse(delta(content="<think>hm"), usage=False, done=False, then="hang")),
]


@pytest.fixture
def expire_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let the time target pass when the model is called for this time, however long that takes; returns the flags to give."""
    passed = {"s": 0.0}
    monotonic, number_call = SystemClock.monotonic, CallCounter.next
    monkeypatch.setattr(SystemClock, "monotonic", lambda clock: monotonic(clock) + passed["s"])

    def expire(call: int, left_s: float = 0.0) -> list[str]:
        def number(calls: CallCounter) -> int:
            if calls.made + 1 == call:
                passed["s"] = FAR_TARGET_S - left_s
            elif calls.made + 1 > call:
                passed["s"] = 0.0  # what is asked afterwards answers, at its pace
            return number_call(calls)

        monkeypatch.setattr(CallCounter, "next", number)
        return ["--time-target", str(FAR_TARGET_S)]

    return expire


Expire = Callable[..., list[str]]


@pytest.mark.parametrize("reply", [c for _, c in NEVER_ENDING], ids=[n for n, _ in NEVER_ENDING])
def test_a_model_that_never_finishes_is_left_at_the_time_target(ask: Ask, expire_at: Expire, reply: Canned) -> None:
    with endpoint([reply]) as server:
        done = ask(*expire_at(1), base_url=server.url)
    assert (done.code, done.out, len(server.asked)) == (5, "", 1)
    check_words(done, "the time target was reached before any page was read")
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_a_model_that_never_finishes_after_a_page_was_read_is_not_asked_again(ask: Ask, web: str, expire_at: Expire) -> None:
    with endpoint([searching(), reading(web), NEVER_ENDING[0][1], answering()]) as server:
        done = ask(*expire_at(3), base_url=server.url)
    assert (done.code, done.out[: len(PASSAGE)], len(server.asked)) == (0, PASSAGE, 3)
    check_words(done, "the time target was reached; this answer uses what was read until then. raise it with --time-target")
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_a_model_that_hangs_in_its_answer_keeps_the_sentences_that_came(ask: Ask, web: str, expire_at: Expire) -> None:
    half = sse(answer_piece(SENTENCE), usage=False, done=False, then="hang")
    with endpoint([searching(), reading(web), half]) as server:
        done = ask(*expire_at(3), base_url=server.url)
    assert (done.code, done.out.partition("\n")[0]) == (0, f"{ANSWER} It has")
    check_words(done, "did not answer in time")
    check_words(done, "breaks off")
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_a_model_that_hangs_over_a_summary_is_given_the_beginning_of_the_page(ask: Ask, web: str, expire_at: Expire) -> None:
    get = calling("web_get", {"urls": [MOON.replace("http:/", web)]}, "g1")
    with endpoint([searching(), get, NEVER_ENDING[0][1], said(ANSWER)]) as server:
        done = ask(*expire_at(3, left_s=3.0), base_url=server.url)
        last = server.bodies[-1]["messages"]
    assert (done.code, done.out[: len(ANSWER)]) == (0, ANSWER)
    assert any("384,400 km" in message["content"] for message in last)
    check_words(done, "the time target was reached")
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_each_of_thirty_calls_runs_and_gets_its_result(ask: Ask, web: str) -> None:
    with endpoint([REPLIES["30 tool calls"], reading(web), answering()]) as server:
        done = ask(base_url=server.url)
        results = {m["tool_call_id"] for m in server.bodies[1]["messages"] if m["role"] == "tool"}
    assert results == {f"c{i}" for i in range(30)}
    assert {f.call_id for f in done.facts if isinstance(f, ToolFinished) and f.ok} == results | {"g1"}


def test_a_server_is_waited_for_as_long_as_it_asks(ask: Ask, web: str, waits: list[float]) -> None:
    busy = refused(429, "slow down", ("retry-after", "7"))
    with endpoint([busy, busy, searching(), reading(web), answering()]) as server:
        done = ask(base_url=server.url)
    assert (done.code, waits) == (0, [7.0, 7.0])


def test_a_server_that_asks_for_an_hour_is_not_waited_for(ask: Ask, waits: list[float]) -> None:
    with endpoint([refused(429, "later", ("retry-after", "3600"))]) as server:
        done = ask(base_url=server.url)
    assert (done.code, waits, len(server.asked)) == (1, [], 1)


@pytest.mark.parametrize("status", [400, 401, 402, 404])
def test_what_cannot_get_better_is_asked_once(ask: Ask, waits: list[float], status: int) -> None:
    with endpoint([refused(status, "no")] * STAYS) as server:
        done = ask(base_url=server.url)
    assert (done.code, waits, len(server.asked)) == (1, [], 1)


def test_a_server_that_recovers_costs_nothing_but_time(ask: Ask, web: str, waits: list[float]) -> None:
    broken = [refused(500), Canned(then="refuse"), sse(delta("stop"))]
    with endpoint([*broken, searching(), *broken, reading(web), *broken, answering()]) as server:
        done = ask(base_url=server.url)
    assert (done.code, done.out[: len(ANSWER)], len(waits)) == (0, ANSWER, 9)
    assert [line.split()[0] for line in done.err.splitlines()] == ["Searched", "Read"]
    assert not any(isinstance(f, ModelFailed) for f in done.facts)


def test_an_answer_that_broke_off_does_not_pass_for_a_final_one(ask: Ask, web: str) -> None:
    with endpoint([searching(), reading(web), REPLIES["closes in the second sentence"]]) as server:
        done = ask(base_url=server.url)
    last = done.facts[-1]
    assert isinstance(last, RunFinished)
    assert last.stop is StopReason.API_ERROR
    assert any("breaks off" in warning for warning in last.warnings)


def test_a_call_that_came_before_the_stream_closed_is_not_asked_for_again(ask: Ask, web: str, waits: list[float]) -> None:
    with endpoint([REPLIES["closes after a call"], reading(web), answering()]) as server:
        done = ask(base_url=server.url)
    assert (done.code, len(server.asked), waits) == (0, 3, [])
    assert [f.call_id for f in done.facts if isinstance(f, ToolFinished)] == ["s", "g1"]
