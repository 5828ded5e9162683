"""The log of a run on disk, and the pages it rests on.

`runs/<id>/log.jsonl` is a header and one line per fact, each numbered and checksummed, under a lock that the writer holds for
its life; the file `stop` beside it is another process asking the run to answer now. Page texts lie in `pages/` under their
SHA-256, shared by all runs. Above, `app` hands these out as the ports RunLog and PageStore; below are private files. What a
fact means is not known here. When the disk refuses, `MemoryRunLog` and `MemoryPages` keep a search going.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

from nexi import events, files
from nexi.errors import StoreError
from nexi.events import Fact
from nexi.ports import Clock
from nexi.types import content_digest
from nexi.values import frozen

SCHEMA = 1
RunState: TypeAlias = Literal["running", "finished", "failed", "unfinished", "damaged"]

_ID = re.compile(r"[0-9a-f]{6}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGESTS_IN_LOG = re.compile(rb'"(?:digest|links)":"([0-9a-f]{64})"')
_ATTEMPTS = 100
_PAGE_GRACE = timedelta(hours=1)  # a page is put before the fact that names it, so young ones are left alone
_ENDED: dict[str, RunState] = {"run_finished": "finished", "run_failed": "failed"}


@frozen
class LogHeader:
    """The first line of a log."""

    schema: int
    run: str
    created: str
    nexi: str


@frozen
class ReadLog:
    """A log as read: its facts with their numbers, and what was wrong with its end, if anything."""

    header: LogHeader
    facts: list[tuple[int, Fact]] = field(default_factory=list)
    damage: str = ""
    moments: list[str] = field(default_factory=list, compare=False)
    elapsed: list[float | None] = field(default_factory=list, compare=False)

    @property
    def seconds(self) -> float:
        """How long the run has worked; the time between an interruption and its end does not count."""
        return max(self._worked(), default=0.0)

    @property
    def ended(self) -> bool:
        return bool(self.facts) and isinstance(self.facts[-1][1], events.TERMINAL)

    @property
    def beginnings(self) -> dict[str, float]:
        """When each researcher began, in seconds of work."""
        starts = zip(self.facts, self._worked(), strict=True)
        return {fact.researcher: worked for (_, fact), worked in starts if isinstance(fact, events.ResearcherStarted)}

    def _worked(self) -> list[float]:
        """Seconds of work at each fact: as the writer counted them, since clocks jump; by the clock in older logs."""
        worked, before, all_of_them = 0.0, _moment(self.header.created), []
        for (_, fact), stamp, counted in zip(self.facts, self.moments, self.elapsed, strict=True):
            now = _moment(stamp)
            if counted is not None:
                worked = max(worked, counted)
            elif now and before and not isinstance(fact, events.RunResumed):
                worked += max(0.0, (now - before).total_seconds())
            before = now or before
            all_of_them.append(round(worked, 3))
        return all_of_them


@frozen
class RunSummary:
    """One line of a list of runs."""

    id: str
    created: str
    query: str
    mode: str
    state: RunState
    size: int


@frozen
class PruneReport:
    """What was removed."""

    runs: tuple[str, ...] = ()
    pages: int = 0
    bytes_freed: int = 0


class DamagedLogError(StoreError):
    """A log that cannot be trusted past a point; `readable` is what comes before it, None when not even the header is."""

    code = "damaged_log"

    def __init__(self, message: str, *, cause: str, fix: str, readable: ReadLog | None) -> None:
        super().__init__(message, cause=cause, fix=fix)
        self.readable = readable


class FileRunLog:
    """A run's log, open for writing. Made by RunDirectory. `worked` are the seconds that earlier writers of it have worked."""

    def __init__(self, path: Path, fd: int, clock: Clock, *, count: int = 0, worked: float = 0.0) -> None:
        self.path = path
        self._fd = fd
        self._clock = clock
        self._began = clock.monotonic() - worked
        self._count = count
        self._end = os.fstat(fd).st_size
        self._torn = False
        self._ended = False
        self._closed = False
        self._named = False
        self._flushing: _Flush | None = None  # under way
        self._next: _Flush | None = None  # begins when that has ended; who comes meanwhile shares it

    @property
    def run_id(self) -> str:
        return self.path.parent.name

    async def append(self, fact: Fact) -> int:
        """Commit a fact; what costs money or ends the run is on the disk when this returns. Facts that come together share a
        flush."""
        self._refuse_when_over()
        elapsed = max(0.0, self._clock.monotonic() - self._began)
        line = _encode_fact(self._count + 1, self._clock.now(), elapsed, fact)
        self._write(line)
        self._count += 1
        number, self._ended = self._count, isinstance(fact, events.TERMINAL)
        if isinstance(fact, events.DURABLE):
            await self._flushed(number, len(line))
        return number

    def stop_requested(self) -> bool:
        return (self.path.parent / "stop").exists()

    async def close(self) -> None:
        """Give up the file and its lock. Closing twice is harmless."""
        while flush := self._next or self._flushing:
            await asyncio.wait([flush.task])
        if not self._closed:
            self._closed = True
            os.close(self._fd)

    def _refuse_when_over(self) -> None:
        if self._closed:
            raise ValueError(f"the log of run {self.run_id} is closed")
        if self._ended:
            raise ValueError(f"run {self.run_id} has ended: nothing may follow its terminal fact")

    def _write(self, line: bytes) -> None:
        try:
            self._mend()
            self._torn = True
            files.write_all(self._fd, line)
        except OSError as error:
            self._try_to_mend()
            raise files.store_error(f"Could not write the log of run {self.run_id}", self.path, error) from error
        self._torn = False
        self._end += len(line)

    def _mend(self) -> None:
        """Cut a torn line off; a number is only ever written once."""
        if self._torn:
            os.ftruncate(self._fd, self._end)
            self._torn = False

    def _try_to_mend(self) -> None:
        try:
            self._mend()
        except OSError:
            return  # the next append tries again before it writes

    async def _flushed(self, number: int, size: int) -> None:
        """Wait for the disk. A cancelled caller leaves the line in place: it was written, and its number is taken."""
        if self._next is None:
            self._next = _Flush(number, self._end - size)
            self._next.task = asyncio.ensure_future(self._flush(self._next, self._flushing))
        flush = self._next
        await asyncio.wait([flush.task])  # unlike awaiting it, a cancelled wait leaves the flush alone
        if flush.failure:
            raise files.store_error(f"Could not flush the log of run {self.run_id}", self.path, flush.failure)

    async def _flush(self, mine: _Flush, before: _Flush | None) -> None:
        if before:
            await asyncio.wait([before.task])
        self._flushing, self._next = mine, None
        try:
            if before and before.failure:
                mine.failure = before.failure  # what was to be flushed went with the lines before it
                return
            await asyncio.get_running_loop().run_in_executor(None, self._sync_now)
        except OSError as error:
            mine.failure = error
            self._take_back(mine)
        finally:
            self._flushing = None

    def _sync_now(self) -> None:
        os.fsync(self._fd)
        if not self._named:
            files.sync_directory(self.path.parent)
            files.sync_directory(self.path.parent.parent)
            self._named = True

    def _take_back(self, flush: _Flush) -> None:
        """Facts whose flush failed were refused to their callers, so they are not in the log either."""
        self._count, self._end = flush.number - 1, flush.start
        self._ended = False
        self._torn = True
        self._try_to_mend()


class _Flush:
    """One wait for the disk: from the fact `number`, whose line begins at the byte `start`, to the last that was written."""

    def __init__(self, number: int, start: int) -> None:
        self.number = number
        self.start = start
        self.failure: OSError | None = None
        self.task: asyncio.Future[None]


class MemoryRunLog:
    """A log that lasts as long as the process: for a disk that is full or read-only. `after` continues another's numbers."""

    def __init__(self, run_id: str = "", *, after: int = 0) -> None:
        self._run_id = run_id or new_run_id()
        self._after = after
        self.facts: list[Fact] = []

    @property
    def run_id(self) -> str:
        return self._run_id

    async def append(self, fact: Fact) -> int:
        if self.facts and isinstance(self.facts[-1], events.TERMINAL):
            raise ValueError(f"run {self._run_id} has ended: nothing may follow its terminal fact")
        self.facts.append(fact)
        return self._after + len(self.facts)

    def stop_requested(self) -> bool:
        return False

    async def close(self) -> None:
        return


class FilePages:
    """Texts by content hash: `pages/ab/abcdef….txt`."""

    def __init__(self, pages_dir: Path) -> None:
        self.root = pages_dir

    async def put(self, text: str) -> str:
        """Keep a text. Raises StoreError."""
        return await asyncio.to_thread(self._put, text)

    async def get(self, digest: str) -> str | None:
        """The text, or None when it is absent or no longer what its name says."""
        return await asyncio.to_thread(self._get, digest)

    def path_of(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}.txt"

    def _put(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        digest = content_digest(text)
        path = self.path_of(digest)
        try:
            if path.exists() and _size(path) == len(data):
                os.utime(path)
            else:
                files.make_private_directory(path.parent)
                files.replace_file(path, data)
        except OSError as error:
            raise files.store_error("Could not keep the text of a page", path, error) from error
        return digest

    def _get(self, digest: str) -> str | None:
        if not _DIGEST.fullmatch(digest):
            return None
        try:
            text = self.path_of(digest).read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            return None
        return text if content_digest(text) == digest else None


class MemoryPages:
    """Page texts that last as long as the process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def put(self, text: str) -> str:
        digest = content_digest(text)
        self._texts[digest] = text
        return digest

    async def get(self, digest: str) -> str | None:
        return self._texts.get(digest)


class RunDirectory:
    """All runs of one home."""

    def __init__(self, runs_dir: Path, pages_dir: Path, clock: Clock, *, new_id: Callable[[], str] | None = None) -> None:
        self.runs_dir = runs_dir
        self.pages = FilePages(pages_dir)
        self._clock = clock
        self._new_id = new_id or new_run_id

    def create(self) -> FileRunLog:
        """A new run under an id nobody has. Raises StoreError."""
        try:
            files.make_private_directory(self.runs_dir)
            folder = self._claim_folder()
            return self._start_log(folder)
        except OSError as error:
            raise files.store_error("Could not start a run log", self.runs_dir, error) from error

    def reopen(self, run_id: str) -> tuple[ReadLog, FileRunLog]:
        """Go on with a run that did not end: its facts, and its log without the torn tail."""
        path = self._log_path(run_id)
        fd = self._open_locked(run_id)
        try:
            data = path.read_bytes()
            log = _parse(run_id, data)
            _refuse_ended(run_id, log)
            os.ftruncate(fd, _sound_length(data, len(log.facts)))
            (path.parent / "stop").unlink(missing_ok=True)
            return log, FileRunLog(path, fd, self._clock, count=len(log.facts), worked=log.seconds)
        except OSError as error:
            os.close(fd)
            raise files.store_error(f"Could not reopen run {run_id}", path, error) from error
        except StoreError:
            os.close(fd)
            raise

    def open_log(self, run_id: str) -> ReadLog:
        """Read a log. A torn last line is left out and told; any other damage is a DamagedLogError."""
        path = self._log_path(run_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise _no_such_run(run_id) from error
        except OSError as error:
            raise files.store_error(f"Could not read run {run_id}", path, error) from error
        return _parse(run_id, data)

    def list_runs(self, newest: int = 0) -> list[RunSummary]:
        """Runs, newest first, all of them or so many; only the ends of each log are read."""
        folders = sorted(self._folders(), key=_modified, reverse=True)[:newest] if newest else self._folders()
        return sorted(map(self._summary, folders), key=lambda run: (run.created, run.id), reverse=True)

    def is_running(self, run_id: str) -> bool:
        """Whether a writer holds the log."""
        try:
            fd = os.open(self._log_path(run_id), os.O_RDONLY)
        except OSError:
            return False
        try:
            return files.is_locked(fd)
        finally:
            os.close(fd)

    def request_stop(self, run_id: str) -> bool:
        """Ask a run to answer from what it has; False when nobody is running it."""
        if not self.is_running(run_id):
            self._require(run_id)
            return False
        stop = self._folder(run_id) / "stop"
        try:
            stop.touch(mode=files.PRIVATE_FILE)
        except OSError as error:
            raise files.store_error(f"Could not ask run {run_id} to stop", stop, error) from error
        return True

    def remove(self, run_id: str) -> None:
        """Delete a run that is not running; its pages go at the next prune."""
        self._require(run_id)
        if self.is_running(run_id):
            raise _locked(run_id)
        try:
            shutil.rmtree(self._folder(run_id))
        except OSError as error:
            raise files.store_error(f"Could not remove run {run_id}", self._folder(run_id), error) from error

    def prune(self, keep_days: float, max_mb: float) -> PruneReport:
        """Keep the newest runs, with their pages, that are young enough and fit; running ones always stay."""
        doomed, wanted = self._divide(self._clock.now() - timedelta(days=keep_days), int(max_mb * 1_000_000))
        for run in doomed:
            self.remove(run.id)
        pages = [path for path in self._pages() if path.stem not in wanted and self._is_stale(path)]
        freed = sum(run.size for run in doomed) + sum(map(_size, pages))
        try:
            for path in pages:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise files.store_error("Could not remove old pages", self.pages.root, error) from error
        return PruneReport(tuple(run.id for run in doomed), len(pages), freed)

    def _divide(self, oldest: datetime, room: int) -> tuple[list[RunSummary], set[str]]:
        """The runs to remove, and the digests the others name."""
        doomed: list[RunSummary] = []
        wanted: set[str] = set()
        for run in self.list_runs():
            digests = self._digests(run.id)
            cost = run.size + sum(_size(self.pages.path_of(digest)) for digest in digests - wanted)
            if run.state != "running" and (cost > room or self._created(run) < oldest):
                doomed.append(run)
                room = 0 if cost > room else room  # nothing older than a run that did not fit is kept in its place
            else:
                room -= cost
                wanted |= digests
        return doomed, wanted

    def _claim_folder(self) -> Path:
        for _ in range(_ATTEMPTS):
            folder = self.runs_dir / check_run_id(self._new_id())
            try:
                folder.mkdir(mode=files.PRIVATE_DIRECTORY)
            except FileExistsError:
                continue
            return folder
        raise StoreError(
            "Could not find a free run id",
            cause=f"{_ATTEMPTS} ids in a row are taken in {self.runs_dir}",
            fix="Delete old folders under runs.",
        )

    def _start_log(self, folder: Path) -> FileRunLog:
        from nexi import __version__

        path = folder / "log.jsonl"
        header = {"schema": SCHEMA, "run": folder.name, "created": _iso(self._clock.now()), "nexi": __version__}
        try:
            fd = os.open(path, files.APPEND | os.O_CREAT | os.O_EXCL, files.PRIVATE_FILE)
            try:
                files.wait_for_lock(fd)
                files.write_all(fd, seal(header))
            except OSError:
                os.close(fd)
                raise
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return FileRunLog(path, fd, self._clock)

    def _open_locked(self, run_id: str) -> int:
        path = self._log_path(run_id)
        try:
            fd = os.open(path, files.APPEND)
        except FileNotFoundError as error:
            raise _no_such_run(run_id) from error
        except OSError as error:
            raise files.store_error(f"Could not open run {run_id}", path, error) from error
        if files.take_lock(fd):
            return fd
        os.close(fd)
        raise _locked(run_id)

    def _summary(self, folder: Path) -> RunSummary:
        path = folder / "log.jsonl"
        header, first, last = _glance(path)
        state = _ENDED.get(last.get("kind", ""), "unfinished") if header else "damaged"
        if state in ("unfinished", "damaged") and self.is_running(folder.name):
            state = "running"
        query, mode = str(first.get("query", "")), str(first.get("mode", ""))
        return RunSummary(folder.name, str(header.get("created", "")), query, mode, state, _tree_size(folder))

    def _created(self, run: RunSummary) -> datetime:
        """When a run began, by its header; by the file where that is unreadable."""
        try:
            return _aware(datetime.fromisoformat(run.created))
        except ValueError:
            return _modified(self._folder(run.id))

    def _is_stale(self, path: Path) -> bool:
        return self._clock.now() - _modified(path) > _PAGE_GRACE

    def _digests(self, run_id: str) -> set[str]:
        """Every page a log names, damaged or not."""
        try:
            data = self._log_path(run_id).read_bytes()
        except OSError:
            return set()
        return set(digests_in(data))

    def _folders(self) -> Iterator[Path]:
        try:
            yield from (p for p in self.runs_dir.iterdir() if _ID.fullmatch(p.name) and p.is_dir())
        except FileNotFoundError:
            return

    def _pages(self) -> list[Path]:
        """Page files and what a crash left of them."""
        return [*self.pages.root.glob("??/*.txt"), *self.pages.root.glob("??/.*.tmp")]

    def _require(self, run_id: str) -> None:
        if not self._folder(run_id).is_dir():
            raise _no_such_run(run_id)

    def _folder(self, run_id: str) -> Path:
        return self.runs_dir / check_run_id(run_id)

    def _log_path(self, run_id: str) -> Path:
        return self._folder(run_id) / "log.jsonl"


def digests_in(log: bytes) -> list[str]:
    """Every text a log names, in order, each once."""
    return list(dict.fromkeys(match.decode() for match in _DIGESTS_IN_LOG.findall(log)))


def new_run_id() -> str:
    return os.urandom(3).hex()


def check_run_id(run_id: str) -> str:
    """The id, if it is one; nothing else ever becomes part of a path."""
    if _ID.fullmatch(run_id):
        return run_id
    raise StoreError(
        f"{run_id!r} is not a run id",
        cause="an id is six hexadecimal digits, such as 3fa9c1",
        fix="`nexi runs` shows the ids there are.",
        code="bad_run_id",
    )


def _encode_fact(number: int, now: datetime, elapsed: float, fact: Fact) -> bytes:
    return seal({"n": number, "t": _iso(now), "s": round(elapsed, 3), "fact": events.encode(fact)})


def seal(record: dict[str, Any]) -> bytes:
    """A line with its checksum last. ASCII, so that no text can break it."""
    body = json.dumps(record, separators=(",", ":")).encode("ascii")
    return b'%s,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def unseal(line: bytes) -> dict[str, Any]:
    """The record of a line. ValueError says what is wrong with it."""
    record = json.loads(line)
    body, mark, tail = line.rpartition(b',"sum":"')
    if not isinstance(record, dict) or not mark:
        raise ValueError("it is no record")
    if tail != b'%08x"}' % zlib.crc32(body + b"}"):
        raise ValueError("its checksum does not match")
    return record


def _parse(run_id: str, data: bytes) -> ReadLog:
    """Read a whole log, strictly up to its last line."""
    *lines, tail = data.split(b"\n")
    if not lines:
        raise _damaged(run_id, 1, "the header is missing or torn", None)
    log = ReadLog(_parse_header(run_id, lines[0]))
    for index, line in enumerate(lines[1:], 1):
        if index == len(lines) - 1 and not tail and not _is_json(line):
            tail = line
            break
        try:
            fact, stamp, elapsed = _parse_fact(line, index)
            log.facts.append((index, fact))
            log.moments.append(stamp)
            log.elapsed.append(elapsed)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _damaged(run_id, index + 1, str(error), log) from error
    if not tail:
        return log
    return replace(log, damage=f"the last line ({len(tail)} bytes) is torn and was left out")


def _parse_header(run_id: str, line: bytes) -> LogHeader:
    try:
        record = unseal(line)
        header = LogHeader(int(record["schema"]), str(record["run"]), str(record["created"]), str(record["nexi"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(run_id, 1, f"the header cannot be read: {error}", None) from error
    if header.schema > SCHEMA:
        raise StoreError(
            f"Run {run_id} was written by a newer nexi",
            cause=f"its log has schema {header.schema} (nexi {header.nexi}); this nexi reads up to {SCHEMA}",
            fix="Upgrade nexi, or read it with the version that wrote it.",
            code="newer_log",
        )
    return header


def _parse_fact(line: bytes, expected: int) -> tuple[Fact, str, float | None]:
    record = unseal(line)
    if record["n"] != expected:
        raise ValueError(f"fact {record['n']} stands where fact {expected} belongs")
    event = events.decode(record["fact"])
    if not events.is_fact(event):
        raise ValueError(f"{event.kind} is no fact")
    elapsed = record.get("s")
    return event, str(record.get("t", "")), float(elapsed) if isinstance(elapsed, int | float) else None


def _refuse_ended(run_id: str, log: ReadLog) -> None:
    if log.ended:
        raise StoreError(f"Run {run_id} has ended", cause="its log has a terminal fact", fix="Start a new search.")


def _sound_length(data: bytes, facts: int) -> int:
    """Bytes of the header and that many facts."""
    return sum(len(line) + 1 for line in data.split(b"\n")[: facts + 1])


def _glance(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Header, first fact and last fact of a log, empty where they cannot be read."""
    try:
        with path.open("rb") as file:
            header, first = file.readline(), file.readline()
        ends = files.lines_from_end(path)
        last = b"" if next(ends) else next(ends, b"")
    except OSError:
        return {}, {}, {}
    return _try_unseal(header), _try_unseal(first).get("fact", {}), _try_unseal(last).get("fact", {})


def _try_unseal(line: bytes) -> dict[str, Any]:
    try:
        return unseal(line.rstrip(b"\n"))
    except ValueError:
        return {}


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _damaged(run_id: str, line: int, why: str, readable: ReadLog | None) -> DamagedLogError:
    count = len(readable.facts) if readable else 0
    return DamagedLogError(
        f"The log of run {run_id} is damaged at line {line}",
        cause=f"{why}; {count} facts before it can still be read",
        fix=f"Keep a copy of it, then delete runs/{run_id}.",
        readable=readable,
    )


def _no_such_run(run_id: str) -> StoreError:
    return StoreError(
        f"There is no run {run_id}",
        cause="it was never made here, or it was removed",
        fix="`nexi runs` shows the ids there are.",
        code="no_such_run",
    )


def _locked(run_id: str) -> StoreError:
    return StoreError(
        f"Run {run_id} is still running",
        cause="another process holds its log",
        fix=f"Wait for it, or stop it with `nexi stop {run_id}`.",
        code="run_locked",
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tree_size(folder: Path) -> int:
    return sum(map(_size, folder.glob("*")))


def _modified(path: Path) -> datetime:
    """When a file changed last; now, as it were, for one that just went away."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime.max.replace(tzinfo=UTC)


def _moment(stamp: str) -> datetime | None:
    try:
        return _aware(datetime.fromisoformat(stamp))
    except ValueError:
        return None


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _iso(moment: datetime) -> str:
    return _aware(moment).isoformat(timespec="milliseconds")
