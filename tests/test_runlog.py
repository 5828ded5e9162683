"""The run log: numbered, checksummed, locked; torn tails are told, damage is refused, a failing disk loses nothing."""

from __future__ import annotations

import asyncio
import errno
import json
import multiprocessing
import os
import stat
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from nexi import __version__, events, files
from nexi.app.emit import RunEmit
from nexi.errors import StoreError
from nexi.events import AgendaProposed, AgendaSet, ModelAsked, PageFetched, RunFailed, RunFinished, RunStarted, Warned
from nexi.ports import PageStore, RunLog
from nexi.runs import log_format
from nexi.runs.directory import FilePages, MemoryPages, PruneReport, RunDirectory, RunSummary
from nexi.runs.log import MemoryRunLog
from nexi.runs.log_format import DamagedLogError, LogHeader, ReadLog
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage, content_digest
from tests.raising import has_code

STARTED = RunStarted("why is the sky blue?", "m", "scripted")
WARNED = Warned("slow", 'the page said "wait"\nand \ud800')
ASKED = ModelAsked(1, "answer", "scripted", 120)
FINISHED = RunFinished("Because [1].", (), StopReason.FINAL_ANSWER, 1, Usage(3, 4), 0.5, 0, 1)
FAILED = RunFailed("llm", "no answer", "it is off", "start it", StopReason.API_ERROR, 0, Usage(), 0.1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC))


@pytest.fixture
def runs(tmp_path: Path, clock: FakeClock) -> RunDirectory:
    ids = iter(["aaaaaa", "aaaaaa", "bbbbbb", "cccccc", "dddddd", "eeeeee"])
    return RunDirectory(tmp_path / "home" / "runs", tmp_path / "home" / "pages", clock, new_id=lambda: next(ids))


async def write(runs: RunDirectory, *facts: events.Fact) -> str:
    log = runs.create()
    for fact in facts:
        await log.append(fact)
    await log.close()
    return log.run_id


def log_file(runs: RunDirectory, run_id: str) -> Path:
    return runs.runs_dir / run_id / "log.jsonl"


class Disk:
    """Lets writes and flushes fail on order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flushed = 0
        self.room: int | None = None
        self.flush_error = 0
        self.truncate_error = 0
        real_write, real_fsync, real_truncate = os.write, os.fsync, os.ftruncate

        def write(fd: int, data: bytes) -> int:
            if self.room is None:
                return real_write(fd, data)
            if not self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            taken = real_write(fd, bytes(data[: self.room]))
            self.room -= taken
            return taken

        def fsync(fd: int) -> None:
            self.flushed += 1
            if self.flush_error:
                raise OSError(self.flush_error, os.strerror(self.flush_error))
            real_fsync(fd)

        def ftruncate(fd: int, size: int) -> None:
            if self.truncate_error:
                raise OSError(self.truncate_error, os.strerror(self.truncate_error))
            real_truncate(fd, size)

        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "ftruncate", ftruncate)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


# writing and reading


async def test_a_log_reads_back_as_it_was_written(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED, WARNED, ASKED, FINISHED)
    assert runs.open_log(run_id) == ReadLog(
        LogHeader(1, "aaaaaa", "2026-03-01T12:00:00.000+00:00", __version__),
        [(1, STARTED), (2, WARNED), (3, ASKED), (4, FINISHED)],
        "",
    )


async def test_a_line_holds_number_time_fact_and_checksum(runs: RunDirectory) -> None:
    run_id = await write(runs, Warned("slow", "wait"))
    header, line, rest = log_file(runs, run_id).read_text().split("\n")
    assert list(json.loads(header)) == ["schema", "run", "created", "nexi", "sum"]
    assert json.loads(line) == {
        "n": 1,
        "t": "2026-03-01T12:00:00.000+00:00",
        "s": 0.0,
        "fact": {"kind": "warned", "code": "slow", "message": "wait", "cause": ""},
        "sum": json.loads(line)["sum"],
    }
    assert rest == ""


async def test_append_returns_the_number_and_parallel_appends_leave_no_hole(runs: RunDirectory) -> None:
    log = runs.create()
    numbers = await asyncio.gather(*(log.append(ASKED if i % 3 else WARNED) for i in range(30)))
    await log.close()
    assert sorted(numbers) == list(range(1, 31))
    assert [n for n, _ in runs.open_log(log.run_id).facts] == list(range(1, 31))


async def test_files_and_folders_are_private(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED)
    await runs.pages.put("text")
    path = log_file(runs, run_id)
    page = runs.pages.path_of(content_digest("text"))
    folders = {*path.parents, *page.parents} & {runs.runs_dir.parent, *runs.runs_dir.parent.rglob("*")}
    assert {stat.S_IMODE(p.stat().st_mode) for p in folders} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in (path, page)} == {0o600}


async def test_an_id_in_use_is_never_given_again(runs: RunDirectory) -> None:
    assert [await write(runs, STARTED), await write(runs, STARTED)] == ["aaaaaa", "bbbbbb"]


def test_when_every_id_is_taken_it_says_so(tmp_path: Path, clock: FakeClock) -> None:
    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", clock, new_id=lambda: "abcdef")
    (tmp_path / "runs" / "abcdef").mkdir(parents=True)
    with pytest.raises(StoreError, check=has_code("store", tmp_path / "runs")):
        runs.create()


async def test_only_what_costs_money_or_ends_a_run_is_flushed(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    counts = []
    for fact in (STARTED, WARNED, ASKED, WARNED, ASKED, FINISHED):
        await log.append(fact)
        counts.append(disk.flushed)
    await log.close()
    assert counts == [0, 0, 3, 3, 4, 5]  # the first flush also makes the two directories durable


@pytest.mark.parametrize("terminal", [FINISHED, FAILED])
async def test_nothing_follows_a_terminal_fact(runs: RunDirectory, terminal: events.Fact) -> None:
    log = runs.create()
    await log.append(terminal)
    with pytest.raises(ValueError, match="run aaaaaa has ended"):
        await log.append(WARNED)
    await log.close()
    assert runs.open_log("aaaaaa").facts == [(1, terminal)]


async def test_a_closed_log_refuses_and_closes_twice(runs: RunDirectory) -> None:
    log = runs.create()
    await log.close()
    await log.close()
    with pytest.raises(ValueError, match="the log of run aaaaaa is closed"):
        await log.append(WARNED)


# a failing disk


async def test_a_full_disk_is_told_and_the_next_fact_takes_the_same_number(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    await log.append(STARTED)
    disk.room = 20
    with pytest.raises(StoreError) as caught:
        await log.append(WARNED)
    assert caught.value.message == "Could not write the log of run aaaaaa"
    assert caught.value.cause == f"No space left on device ({log.path})"
    assert "NEXI_HOME" in caught.value.fix
    assert runs.open_log("aaaaaa") == ReadLog(runs.open_log("aaaaaa").header, [(1, STARTED)], "")  # nothing torn is left
    disk.room = None
    assert await log.append(ASKED) == 2
    await log.close()
    assert runs.open_log("aaaaaa") == ReadLog(runs.open_log("aaaaaa").header, [(1, STARTED), (2, ASKED)], "")


async def test_a_torn_line_that_could_not_be_cut_at_once_is_cut_before_the_next(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    await log.append(STARTED)
    disk.room, disk.truncate_error = 20, errno.EIO
    for _ in range(2):
        with pytest.raises(StoreError):
            await log.append(WARNED)
    assert runs.open_log("aaaaaa").damage == "the last line (20 bytes) is torn and was left out"
    disk.room, disk.truncate_error = None, 0
    assert await log.append(WARNED) == 2
    await log.close()
    assert runs.open_log("aaaaaa").facts == [(1, STARTED), (2, WARNED)]


async def test_a_fact_whose_flush_failed_is_not_in_the_log(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    await log.append(STARTED)
    disk.flush_error = errno.EIO
    with pytest.raises(StoreError) as caught:
        await log.append(FINISHED)
    assert caught.value.message == "Could not flush the log of run aaaaaa"
    assert runs.open_log("aaaaaa").facts == [(1, STARTED)]
    disk.flush_error = 0
    assert await log.append(FAILED) == 2
    await log.close()
    assert runs.open_log("aaaaaa").facts == [(1, STARTED), (2, FAILED)]


async def test_facts_that_come_together_share_a_flush(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    await log.append(ASKED)
    before = disk.flushed
    await asyncio.gather(*(log.append(ASKED) for _ in range(30)))
    await log.close()
    assert disk.flushed - before <= 2
    assert len(runs.open_log("aaaaaa").facts) == 31


async def test_a_flush_that_fails_refuses_everyone_who_shared_it_and_those_behind_it(runs: RunDirectory, disk: Disk) -> None:
    log = runs.create()
    await log.append(STARTED)
    disk.flush_error = errno.EIO
    first = asyncio.create_task(log.append(ASKED))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # its flush is under way, so the next ones share another
    outcomes = await asyncio.gather(first, *(log.append(ASKED) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 4
    disk.flush_error = 0
    assert await log.append(ASKED) == 2
    await log.close()
    assert runs.open_log("aaaaaa").facts == [(1, STARTED), (2, ASKED)]


class HeldFlush:
    """The first flush waits until it is let go, and then fails if it is told to; those after it succeed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        self.has_begun, self._loop, self._gate = asyncio.Event(), asyncio.get_running_loop(), threading.Event()
        self._calls = 0

        def fsync(_: int) -> None:
            self._calls += 1
            if self._calls > 1:
                return
            self._loop.call_soon_threadsafe(self.has_begun.set)
            self._gate.wait(300)
            if fails:
                raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fsync", fsync)

    def let_go(self) -> None:
        self._gate.set()


async def test_a_flush_waits_for_the_one_before_it_and_fails_with_it(
    runs: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, flush = runs.create(), HeldFlush(monkeypatch, fails=True)
    first = asyncio.create_task(log.append(ASKED))
    await flush.has_begun.wait()
    second = asyncio.create_task(log.append(ASKED))
    for _ in range(5):
        await asyncio.sleep(0)  # the second has written its line and waits
    flush.let_go()
    outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 2
    await log.close()
    assert runs.open_log("aaaaaa").facts == []


async def test_a_log_is_closed_when_its_flush_has_ended(runs: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    log, flush = runs.create(), HeldFlush(monkeypatch)
    appending = asyncio.create_task(log.append(ASKED))
    await flush.has_begun.wait()
    closing = asyncio.create_task(log.close())
    for _ in range(5):
        await asyncio.sleep(0)
    was_closed_early = closing.done()
    flush.let_go()
    await closing
    assert (await appending, was_closed_early) == (1, False)


async def test_a_fact_is_never_written_before_its_run_began(runs: RunDirectory, clock: FakeClock) -> None:
    log = runs.create()
    clock.advance(-5)
    await log.append(WARNED)
    await log.close()
    assert runs.open_log("aaaaaa").elapsed == [0.0]


async def test_what_is_shown_comes_in_the_order_of_the_log_whether_it_waits_for_the_disk_or_not(runs: RunDirectory) -> None:
    shown: list[events.Event] = []
    log = runs.create()
    emit = RunEmit(log, shown.append)
    facts = [Warned("w", str(n)) if n % 3 else ModelAsked(n, "answer", "m", 1, "d") for n in range(30)]
    await asyncio.gather(*map(emit, facts))
    await log.close()
    assert shown == facts
    assert [fact for _, fact in runs.open_log("aaaaaa").facts] == facts


async def test_when_the_disk_fails_under_many_facts_it_is_left_once_and_none_is_lost(runs: RunDirectory, disk: Disk) -> None:
    shown: list[events.Event] = []
    emit = RunEmit(runs.create(), shown.append)
    await emit(STARTED)
    disk.flush_error = errno.EIO
    facts = [ModelAsked(n, "answer", "m", 1, "d") for n in range(9)]
    await asyncio.gather(*map(emit, facts))
    assert [getattr(event, "code", "") for event in shown].count("log_not_kept") == 1
    assert [event for event in shown if isinstance(event, ModelAsked)] == facts


class SetForward(FakeClock):
    """A wall clock that somebody sets forward by a day between two looks."""

    def now(self) -> datetime:
        self._now += timedelta(days=1)
        return self._now


async def test_the_seconds_of_a_run_are_those_it_worked_whatever_the_clock_says(tmp_path: Path) -> None:
    clock = SetForward()
    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", clock, new_id=lambda: "aaaaaa")
    log = runs.create()
    await log.append(STARTED)
    clock.advance(5)
    await log.append(ASKED)
    await log.close()
    clock.advance(1000)  # nobody works
    read, log = runs.reopen("aaaaaa")
    assert read.seconds == 5
    clock.advance(2)
    await log.append(WARNED)
    await log.close()
    assert runs.open_log("aaaaaa").seconds == 7


async def test_a_cancelled_append_keeps_its_number_and_the_log_stays_sound(
    runs: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, entered, gate = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def slow_fsync(_: int) -> None:
        loop.call_soon_threadsafe(entered.set)
        gate.wait(300)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    log = runs.create()
    appending = asyncio.create_task(log.append(ASKED))
    await entered.wait()
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    following = asyncio.create_task(log.append(WARNED))
    await asyncio.sleep(0)
    gate.set()
    assert await following == 2
    await log.close()
    assert runs.open_log("aaaaaa").facts == [(1, ASKED), (2, WARNED)]


async def test_a_home_that_cannot_be_written_is_told(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "file").write_text("not a folder")
    runs = RunDirectory(tmp_path / "file" / "runs", tmp_path / "file" / "pages", clock)
    with pytest.raises(StoreError, check=has_code("store", "runs")):
        runs.create()
    with pytest.raises(StoreError, check=has_code("store", "pages")):
        await runs.pages.put("text")


def test_a_header_that_cannot_be_written_leaves_no_folder(runs: RunDirectory, disk: Disk) -> None:
    disk.room = 5
    with pytest.raises(StoreError, check=has_code("store", "runs")):
        runs.create()
    assert list(runs.runs_dir.iterdir()) == []


# damage


async def test_every_cut_of_a_log_is_read_up_to_its_last_whole_line(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED, WARNED)
    path = log_file(runs, run_id)
    data = path.read_bytes()
    whole = runs.open_log(run_id)
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    for size in range(ends[0], len(data) + 1):
        path.write_bytes(data[:size])
        lines = sum(end <= size for end in ends) - 1
        torn = size - max(end for end in ends if end <= size)
        damage = f"the last line ({torn} bytes) is torn and was left out" if torn else ""
        assert runs.open_log(run_id) == ReadLog(whole.header, whole.facts[:lines], damage)


async def test_a_last_line_of_zeros_counts_as_torn(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED)
    with log_file(runs, run_id).open("ab") as file:
        file.write(b"\0" * 50 + b"\n")
    log = runs.open_log(run_id)
    assert (log.facts, log.damage) == ([(1, STARTED)], "the last line (50 bytes) is torn and was left out")


def change(data: bytes, line: int, old: bytes, new: bytes) -> bytes:
    lines = data.split(b"\n")
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new)
    return b"\n".join(lines)


@pytest.mark.parametrize(
    ("damage", "line", "why", "readable"),
    [
        (lambda d: change(d, 2, b"slow", b"fast"), 3, "its checksum does not match", 1),
        (lambda d: change(d, 3, b"scripted", b"scr1pted"), 4, "its checksum does not match", 2),
        (lambda d: b"\n".join(d.split(b"\n")[:2] + d.split(b"\n")[3:]), 3, "fact 3 stands where fact 2 belongs", 1),
        (lambda d: change(d, 2, b'"n":2', b"\xff\xff"), 3, "", 1),
        (lambda d: b"\n".join([*d.split(b"\n")[:2], b"7", *d.split(b"\n")[2:]]), 3, "it is no record", 1),
    ],
)
async def test_damage_in_the_middle_is_refused_with_what_can_be_read(
    runs: RunDirectory, damage: Callable[[bytes], bytes], line: int, why: str, readable: int
) -> None:
    run_id = await write(runs, STARTED, WARNED, ASKED)
    whole = runs.open_log(run_id)
    path = log_file(runs, run_id)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedLogError) as caught:
        runs.open_log(run_id)
    assert caught.value.message == f"The log of run aaaaaa is damaged at line {line}"
    assert why in caught.value.cause
    assert f"{readable} facts before it can still be read" in caught.value.cause
    assert caught.value.readable == ReadLog(whole.header, whole.facts[:readable], "")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"garbage\n", b'{"schema":1}\n', b"\x00\xff\n", b'{"schema":1,"sum":"00000000"}\n']
)
async def test_a_log_without_a_sound_header_is_refused(runs: RunDirectory, content: bytes) -> None:
    run_id = await write(runs, STARTED)
    log_file(runs, run_id).write_bytes(content)
    with pytest.raises(DamagedLogError) as caught:
        runs.open_log(run_id)
    assert caught.value.readable is None


async def test_a_fact_this_nexi_does_not_know_is_refused(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED)
    with log_file(runs, run_id).open("ab") as file:
        file.write(log_format.seal_record({"n": 2, "t": "", "fact": {"kind": "text_delta", "text": "x"}}))
        file.write(log_format.seal_record({"n": 3, "t": "", "fact": {"kind": "newer"}}))
    with pytest.raises(DamagedLogError, check=has_code("damaged_log", "text_delta")):
        runs.open_log(run_id)


async def test_a_newer_schema_is_refused(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED)
    header, facts = log_file(runs, run_id).read_bytes().split(b"\n", 1)
    newer = {name: value for name, value in json.loads(header).items() if name != "sum"} | {"schema": log_format.SCHEMA + 1}
    log_file(runs, run_id).write_bytes(log_format.seal_record(newer) + facts)
    with pytest.raises(StoreError) as caught:
        runs.open_log(run_id)
    assert (caught.value.code, "aaaaaa" in caught.value.message) == ("newer_log", True)
    assert f"schema {log_format.SCHEMA + 1}" in caught.value.cause


# the lock, stopping, going on


def _hold(runs_dir: str, held: multiprocessing.synchronize.Event, release: multiprocessing.synchronize.Event) -> None:
    runs = RunDirectory(Path(runs_dir), Path(runs_dir), FakeClock(), new_id=lambda: "facade")
    log = runs.create()
    held.set()
    release.wait(300)
    asyncio.run(log.close())


@pytest.fixture
def other_process(runs: RunDirectory) -> Iterator[multiprocessing.synchronize.Event]:
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(runs.runs_dir), held, release))
    process.start()
    assert held.wait(300)
    yield release
    release.set()
    process.join(300)
    assert process.exitcode == 0


def test_a_run_of_another_process_is_running_and_can_only_be_asked_to_stop(
    runs: RunDirectory, other_process: multiprocessing.synchronize.Event
) -> None:
    assert [(run.id, run.state) for run in runs.list_runs()] == [("facade", "running")]
    for forbidden in (runs.remove, runs.reopen):
        with pytest.raises(StoreError, check=has_code("run_locked", "facade")):
            forbidden("facade")
    assert runs.prune(0, 0) == PruneReport()
    assert runs.request_stop("facade") is True
    assert (runs.runs_dir / "facade" / "stop").exists()


async def test_a_stop_request_reaches_the_writer_and_nobody_else(runs: RunDirectory) -> None:
    log = runs.create()
    assert log.stop_requested() is False
    assert runs.request_stop(log.run_id) is True
    assert log.stop_requested() is True
    await log.close()
    assert runs.request_stop(log.run_id) is False


async def test_a_broken_run_goes_on_after_its_last_whole_fact(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED, ASKED)
    path = log_file(runs, run_id)
    with path.open("ab") as file:
        file.write(b'{"n":3,"t":"20')
    (path.parent / "stop").touch()
    read, log = runs.reopen(run_id)
    assert [fact for _, fact in read.facts] == [STARTED, ASKED]
    assert log.stop_requested() is False
    assert await log.append(FINISHED) == 3
    await log.close()
    assert runs.open_log(run_id) == ReadLog(read.header, [(1, STARTED), (2, ASKED), (3, FINISHED)], "")


async def test_an_ended_run_is_not_reopened(runs: RunDirectory) -> None:
    run_id = await write(runs, STARTED, FINISHED)
    with pytest.raises(StoreError, check=has_code("store", "aaaaaa")):
        runs.reopen(run_id)
    runs.remove(run_id)


@pytest.mark.parametrize("bad", ["", "..", "../../etc", "ABCDEF", "abcde", "abcdefa", "abc/ef", "abcde\n", "١٢٣٤٥٦"])
def test_what_is_no_id_never_becomes_a_path(runs: RunDirectory, bad: str) -> None:
    for method in (runs.open_log, runs.remove, runs.request_stop, runs.is_running, runs.reopen):
        with pytest.raises(StoreError) as caught:
            method(bad)
        assert caught.value.code == "bad_run_id"


def test_a_run_that_is_not_there_is_told(runs: RunDirectory) -> None:
    for method in (runs.open_log, runs.remove, runs.request_stop, runs.reopen):
        with pytest.raises(StoreError, check=has_code("no_such_run", "123abc")):
            method("123abc")
    assert runs.is_running("123abc") is False
    assert runs.list_runs() == []


# listing and pruning


async def test_a_summary_names_the_run_it_continues_and_whether_its_plan_waits(runs: RunDirectory) -> None:
    first = structs.replace(STARTED, settings={"continues": "abcdef"})
    writer = runs.create()
    for fact in (first, AgendaProposed(("one",), 1)):
        await writer.append(fact)
    assert [(run.state, run.continues, run.is_waiting) for run in runs.list_runs()] == [("running", "abcdef", True)]
    await writer.append(AgendaSet(("one",), 1))
    assert [run.is_waiting for run in runs.list_runs()] == [False]
    await writer.close()


async def test_runs_are_listed_newest_first_with_their_state(runs: RunDirectory, clock: FakeClock) -> None:
    for facts in ((STARTED, FINISHED), (STARTED, FAILED), (STARTED,)):
        await write(runs, *facts)
        clock.advance(60)
    writer = runs.create()
    (runs.runs_dir / "ffffff").mkdir()
    (runs.runs_dir / "not-a-run").mkdir()
    sizes = {p.parent.name: p.stat().st_size for p in runs.runs_dir.glob("*/log.jsonl")}
    question = STARTED.query
    assert runs.list_runs() == [
        RunSummary("dddddd", "2026-03-01T12:03:00.000+00:00", "", "", "running", sizes["dddddd"]),
        RunSummary("cccccc", "2026-03-01T12:02:00.000+00:00", question, "search", "unfinished", sizes["cccccc"]),
        RunSummary(
            "bbbbbb",
            "2026-03-01T12:01:00.000+00:00",
            question,
            "search",
            "failed",
            sizes["bbbbbb"],
            seconds=0.1,
            cost=0.0,
            stop="api_error",
        ),
        RunSummary(
            "aaaaaa",
            "2026-03-01T12:00:00.000+00:00",
            question,
            "search",
            "finished",
            sizes["aaaaaa"],
            words=2,
            seconds=0.5,
            tokens=7,
            cost=0.0,
            stop="final_answer",
        ),
        RunSummary("ffffff", "", "", "", "damaged", 0),
    ]
    await writer.close()


async def test_the_newest_runs_are_listed_without_reading_the_logs_of_the_others(
    runs: RunDirectory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds, run_id in enumerate(("aaaaaa", "bbbbbb", "cccccc", "dddddd")):
        await write(runs, STARTED, FINISHED)
        os.utime(runs.runs_dir / run_id, (seconds, seconds))
        clock.advance(60)
    read: list[str] = []
    summarise = RunDirectory._summarise

    def note(self: RunDirectory, run_id: str) -> RunSummary:
        read.append(run_id)
        return summarise(self, run_id)

    monkeypatch.setattr(RunDirectory, "_summarise", note)
    assert [run.id for run in runs.list_runs(2)] == ["dddddd", "cccccc"]
    assert read == ["dddddd", "cccccc"]


def fetched(digest: str) -> PageFetched:
    return PageFetched("https://a.example", "https://a.example", "A", digest, 4, 4, 0.1)


def age_pages(runs: RunDirectory, clock: FakeClock, hours: float) -> None:
    moment = clock.now().timestamp() - hours * 3600
    for path in runs.pages.root.rglob("*"):
        os.utime(path, (moment, moment))


async def test_old_runs_go_and_take_the_pages_only_they_name(runs: RunDirectory, clock: FakeClock) -> None:
    shared, alone, orphan = [await runs.pages.put(text) for text in ("shared", "alone", "orphan")]
    old = await write(runs, STARTED, fetched(shared), fetched(alone), FINISHED)
    clock.advance(20 * 86_400)
    young = await write(runs, STARTED, fetched(shared), FINISHED)
    age_pages(runs, clock, 2)
    size = log_file(runs, old).stat().st_size
    assert runs.prune(keep_days=10, max_mb=100) == PruneReport((old,), 2, size + len("alone") + len("orphan"))
    assert [run.id for run in runs.list_runs()] == [young]
    assert [await runs.pages.get(d) for d in (shared, alone, orphan)] == ["shared", None, None]


async def test_the_newest_runs_that_fit_are_kept(runs: RunDirectory, clock: FakeClock) -> None:
    ids = []
    for text in ("x" * 3000, "y" * 3000, "z" * 3000):
        ids.append(await write(runs, STARTED, fetched(await runs.pages.put(text)), FINISHED))
        clock.advance(60)
    age_pages(runs, clock, 2)
    assert runs.prune(keep_days=10, max_mb=0.009).runs == (ids[0],)
    assert runs.prune(keep_days=10, max_mb=0.0045).runs == (ids[1],)
    assert len(list(runs.pages.root.rglob("*.txt"))) == 1


async def test_a_page_just_put_is_left_alone_until_its_fact_had_time_to_come(runs: RunDirectory, clock: FakeClock) -> None:
    digest = await runs.pages.put("new")
    age_pages(runs, clock, 0.5)
    assert runs.prune(keep_days=10, max_mb=100) == PruneReport()
    assert await runs.pages.get(digest) == "new"


def test_pruning_an_empty_home_does_nothing(runs: RunDirectory) -> None:
    assert runs.prune(keep_days=1, max_mb=1) == PruneReport()


# pages


@pytest.mark.parametrize(
    "text", ["", "plain", "line\r\nline\n", "日本語 👍", "half \ud83d of a pair", "\x1b[31mred\x1b[0m \u202eright to left"]
)
async def test_a_page_comes_back_as_it_was_put(tmp_path: Path, text: str) -> None:
    pages = FilePages(tmp_path)
    digest = await pages.put(text)
    assert digest == content_digest(text)
    assert await pages.get(digest) == text
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*")] == [f"{digest[:2]}/{digest}.txt"]


async def test_a_page_that_is_there_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = FilePages(tmp_path)
    await pages.put("text")
    monkeypatch.setattr(files, "replace_file", lambda *_: pytest.fail("written twice"))
    assert await pages.put("text") == content_digest("text")


async def test_a_damaged_page_is_no_evidence_and_is_healed_by_the_next_put(tmp_path: Path) -> None:
    pages = FilePages(tmp_path)
    digest = await pages.put("evidence")
    for broken in (b"evidencf", b"", b"\xff\xfe"):
        pages.path_of(digest).write_bytes(broken)
        assert await pages.get(digest) is None
        await pages.put("evidence")
        assert await pages.get(digest) == "evidence"


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "a" * 63, "A" * 64, "0" * 64])
async def test_an_unknown_digest_is_absent(tmp_path: Path, digest: str) -> None:
    assert await FilePages(tmp_path).get(digest) is None


async def test_a_page_on_a_full_disk_leaves_nothing_behind(tmp_path: Path, disk: Disk) -> None:
    disk.room = 3
    with pytest.raises(StoreError, check=has_code("store")):
        await FilePages(tmp_path).put("evidence")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


# memory


async def test_a_log_in_memory_counts_on_and_ends_like_the_one_on_disk() -> None:
    log = MemoryRunLog("abc123", after=7)
    assert (log.run_id, log.stop_requested()) == ("abc123", False)
    assert [await log.append(STARTED), await log.append(FINISHED)] == [8, 9]
    with pytest.raises(ValueError, match="run abc123 has ended"):
        await log.append(WARNED)
    await log.close()
    assert log.facts == [STARTED, FINISHED]
    assert await MemoryRunLog().append(STARTED) == 1


async def test_only_a_team_server_has_a_reason_for_a_stop(runs: RunDirectory) -> None:
    log = runs.create()
    assert [log.explain_stop(), MemoryRunLog().explain_stop()] == ["", ""]
    await log.close()


async def test_pages_in_memory_are_found_by_digest() -> None:
    pages = MemoryPages()
    assert await pages.get(await pages.put("text")) == "text"
    assert await pages.get("0" * 64) is None


async def test_logs_and_pages_fit_their_ports(runs: RunDirectory, tmp_path: Path) -> None:
    logs: list[RunLog] = [runs.create(), MemoryRunLog()]
    stores: list[PageStore] = [FilePages(tmp_path), MemoryPages()]
    assert [log_format.check_run_id(log.run_id) == log.run_id for log in logs] == [True, True]
    assert [await store.get(await store.put("text")) for store in stores] == ["text", "text"]
    for log in logs:
        await log.close()
