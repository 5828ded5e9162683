"""The lines of a run log and what they say about a run, without a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from nexi import __version__
from nexi.events import (
    Fact,
    ModelAsked,
    ModelReplied,
    ResearcherStarted,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    Warned,
)
from nexi.runs.log_format import (
    RUN_ID,
    DamagedLogError,
    LogHeader,
    LogState,
    ReadLog,
    RunSummary,
    _to_aware,
    encode_fact,
    encode_header,
    new_long_id,
    new_run_id,
    parse_log,
    seal_record,
    state_of,
    summarise_run,
    unseal_line,
)
from nexi.types import StopReason, Usage

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HEADER = LogHeader(1, "aaaaaa", NOON.isoformat(), "0.2.0")
STARTED = RunStarted("why is the sky blue?", "m", "scripted")
WARNED = Warned("slow", "wait")
ASKED = ModelAsked(1, "answer", "scripted", 120)
RESUMED = RunResumed(1, 0.0)
FINISHED = RunFinished("Because [1].", (), StopReason.FINAL_ANSWER, 1, Usage(3, 4), 0.5, 0, 1)


def failed(stop: StopReason) -> RunFailed:
    return RunFailed("llm", "no answer", "it is off", "start it", stop, 0, Usage(), 0.1)


def read_log(*lines: tuple[Fact, str, float | None]) -> ReadLog:
    """A log whose facts have these stamps and, where their writer counted them, these seconds of work."""
    facts = list(enumerate((fact for fact, _, _ in lines), 1))
    return ReadLog(HEADER, facts, moments=[stamp for _, stamp, _ in lines], elapsed=[seconds for _, _, seconds in lines])


def begin_researcher(name: str) -> ResearcherStarted:
    return ResearcherStarted(name, 1, "one")


def at(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


# lines


def test_a_line_has_its_number_time_seconds_and_fact_and_ends_with_its_checksum() -> None:
    line = encode_fact(3, NOON, 1.23456, WARNED)
    record = unseal_line(line.rstrip(b"\n"))
    assert (record["n"], record["t"], record["s"]) == (3, "2026-03-01T12:00:00.000+00:00", 1.235)
    assert record["fact"] == {"kind": "warned", "code": "slow", "message": "wait", "cause": ""}
    assert list(record)[-1] == "sum"


def test_a_time_without_a_zone_is_universal_time() -> None:
    in_delhi = datetime(2026, 3, 1, 17, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    headers = [json.loads(encode_header("aaaaaa", moment))["created"] for moment in (datetime(2026, 3, 1, 12), in_delhi)]
    assert headers == ["2026-03-01T12:00:00.000+00:00", "2026-03-01T17:30:00.000+05:30"]
    assert _to_aware(in_delhi) is in_delhi


@pytest.mark.parametrize("line", [b'{"n":1}', b"7", b'[{"n":1,"sum":"0"}]'])
def test_a_line_that_is_no_record_with_a_checksum_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="it is no record"):
        unseal_line(line)


def test_ids_are_six_digits_here_and_thirty_two_where_no_one_may_guess_them() -> None:
    ids = (new_run_id(), new_long_id())
    assert [len(run_id) for run_id in ids] == [6, 32]
    assert all(RUN_ID.fullmatch(run_id) for run_id in ids)


@pytest.mark.parametrize("data", [b"", b"torn", b"nothing\n", b'{"schema":1}\n'])
def test_a_log_without_a_header_is_damaged_at_its_first_line(data: bytes) -> None:
    with pytest.raises(DamagedLogError) as caught:
        parse_log("aaaaaa", data)
    assert caught.value.message == "The log of run aaaaaa is damaged at line 1"
    assert caught.value.cause.endswith("; 0 facts before it can still be read")
    assert caught.value.readable is None


def test_a_log_of_an_older_nexi_has_no_seconds() -> None:
    fact = {"kind": "warned", "code": "slow", "message": "wait", "cause": ""}
    lines = [encode_header("aaaaaa", NOON), seal_record({"n": 1, "t": at(4), "fact": fact})]
    log = parse_log("aaaaaa", b"".join(lines))
    header = LogHeader(1, "aaaaaa", "2026-03-01T12:00:00.000+00:00", __version__)
    assert log == ReadLog(header, [(1, WARNED)])
    assert (log.bare_facts, log.moments, log.elapsed, log.seconds) == ((WARNED,), [at(4)], [None], 4.0)


# a log as read


def test_the_seconds_of_work_are_those_that_were_counted() -> None:
    assert read_log().seconds == 0.0
    assert read_log((STARTED, at(1), 0.5), (WARNED, at(90_000), 2.0), (ASKED, at(90_001), 1.5)).seconds == 2.0


def test_without_a_count_the_clock_says_how_long_a_run_worked_but_not_the_time_until_it_was_resumed() -> None:
    log = read_log(
        (begin_researcher("1"), at(1.2345), None),
        (begin_researcher("2"), at(3), None),
        (begin_researcher("3"), at(2), None),  # the clock was set back
        (begin_researcher("4"), "no time", None),
        (begin_researcher("5"), at(6), None),
        (RESUMED, at(90_000), None),
        (begin_researcher("6"), at(90_001), None),
    )
    assert log.beginnings == {"1": 1.234, "2": 3.0, "3": 3.0, "4": 3.0, "5": 7.0, "6": 8.0}
    assert log.seconds == 8.0


def test_a_header_without_a_time_counts_nothing_before_the_first_fact() -> None:
    facts = [(1, begin_researcher("1")), (2, begin_researcher("2"))]
    log = ReadLog(LogHeader(1, "aaaaaa", "", ""), facts, moments=[at(5), at(7)], elapsed=[None, None])
    assert log.beginnings == {"1": 0.0, "2": 2.0}


def test_a_log_without_its_times_does_not_say_how_long_a_run_worked() -> None:
    log = ReadLog(HEADER, [(1, STARTED)])
    with pytest.raises(ValueError, match="shorter"):
        _ = log.seconds


def test_each_researcher_began_when_its_fact_was_written() -> None:
    first, second = begin_researcher("1"), begin_researcher("2")
    log = read_log((STARTED, at(1), 1.0), (first, at(2), 2.0), (WARNED, at(3), 3.0), (second, at(4), 4.0))
    assert log.beginnings == {"1": 2.0, "2": 4.0}


def test_resumes_are_counted_since_the_run_last_got_further() -> None:
    reply = ModelReplied(1, "", (), Usage(), "stop", 1.0)
    logs: list[tuple[Fact, ...]] = [(STARTED, RESUMED, WARNED, RESUMED), (STARTED, RESUMED, reply, RESUMED), (STARTED,), ()]
    assert [read_log(*((fact, at(1), 1.0) for fact in facts)).resumes_without_progress for facts in logs] == [2, 1, 0, 0]


def test_logs_are_compared_by_their_facts_and_not_by_when_they_were_written() -> None:
    assert read_log((STARTED, at(1), 1.0)) == read_log((STARTED, at(2), 2.0)) != read_log((WARNED, at(1), 1.0))
    with pytest.raises(AttributeError):
        read_log().damage = "torn"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        HEADER.run = "bbbbbb"  # type: ignore[misc]


def test_a_run_stands_as_its_last_fact_says() -> None:
    states: dict[LogState, tuple[Fact, ...]] = {
        "finished": (STARTED, FINISHED),
        "stopped": (STARTED, failed(StopReason.CANCELLED)),
        "failed": (STARTED, failed(StopReason.API_ERROR)),
        "unfinished": (STARTED,),
    }
    assert {state: state_of(facts) for state, facts in states.items()} == {state: state for state in states}
    assert (state_of((STARTED,), is_running=True), state_of((STARTED, FINISHED), is_running=True)) == ("running", "finished")


# summaries


def test_a_summary_knows_nothing_of_a_run_but_what_it_was_given() -> None:
    summary = RunSummary("aaaaaa", at(0), "q", "search", "running", 9)
    assert summary == RunSummary("aaaaaa", at(0), "q", "search", "running", 9, "", False, 0, 0.0, 0, None, "", "")
    with pytest.raises(AttributeError):
        summary.state = "failed"  # type: ignore[misc]


def test_a_run_that_a_person_stopped_is_not_shown_as_failed() -> None:
    shown = {
        (state, stop): RunSummary("aaaaaa", at(0), "q", "search", state, 9, stop=stop).shown_state
        for state in ("failed", "finished")
        for stop in ("cancelled", "api_error")
    }
    assert shown == {
        ("failed", "cancelled"): "stopped",
        ("failed", "api_error"): "failed",
        ("finished", "cancelled"): "finished",
        ("finished", "api_error"): "finished",
    }
    assert RunSummary("aaaaaa", at(0), "q", "search", "running", 9).was_stopped is False


def test_a_summary_is_made_of_the_first_and_the_last_fact() -> None:
    first = {"query": "q", "mode": "research", "settings": {"continues": "bbbbbb"}, "request": {"space": "moon"}}
    last = {"kind": "run_finished", "answer": "Three short words", "usage": {"output_tokens": 5, "cost": 0.25}, "stop": "final"}
    assert summarise_run("aaaaaa", at(0), 9, first, last, is_running=False) == RunSummary(
        "aaaaaa", at(0), "q", "research", "finished", 9, "bbbbbb", words=3, tokens=5, cost=0.25, stop="final", space="moon"
    )
    counted = {**last, "usage": {"input_tokens": 2, "output_tokens": 5}, "seconds": 1.5}
    summary = summarise_run("aaaaaa", at(0), 9, first, counted, is_running=False)
    assert (summary.tokens, summary.seconds, summary.cost) == (7, 1.5, None)
    assert summarise_run("aaaaaa", at(0), 9, first, {"kind": "warned", "seconds": 1.5}, is_running=False).seconds == 0.0


def test_the_state_of_a_summary_is_that_of_its_last_fact_and_of_its_lock() -> None:
    facts: tuple[dict[str, str], ...] = ({"kind": "run_failed"}, {"kind": "agenda_proposed"}, {})
    states = [
        (summary.state, summary.is_waiting)
        for created in (at(0), "")
        for is_running in (True, False)
        for last in facts
        for summary in [summarise_run("aaaaaa", created, 9, {}, last, is_running=is_running)]
    ]
    assert states == [
        *(("failed", False), ("running", True), ("running", False)),
        *(("failed", False), ("unfinished", False), ("unfinished", False)),
        *(("running", False), ("running", True), ("running", False)),
        *(("damaged", False), ("damaged", False), ("damaged", False)),
    ]
