"""All runs of one home: made, reopened, listed, stopped, repaired, removed and pruned. They share the page texts in `pages/`.

The directory makes the logs that `log` writes. Page texts, kept by their content hash, are on disk or in memory; `app` hands
them out as the port PageStore.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct, structs

from nexi import files
from nexi.errors import StoreError
from nexi.events import Fact, PageFetched, RunStarted, Warned, decode, is_fact
from nexi.ports import Clock, PageStore
from nexi.runs import log_format
from nexi.runs.log import FileRunLog
from nexi.runs.log_format import DamagedLogError, ReadLog, RunSummary
from nexi.text.words import contains_words
from nexi.types import content_digest

__all__ = ["FilePages", "LogRepair", "MemoryPages", "RunDirectory", "RunSummary", "count_lost_facts", "describe_damage"]

_ATTEMPTS = 100
_POLL_S = 0.2
_PAGE_GRACE = timedelta(hours=1)  # a page is put before the fact that names it, so young ones are left alone
_CLOCK_TOLERANCE = timedelta(hours=1)
_DIGEST = re.compile(r"[0-9a-f]{64}")
LOST_FACT = "log_damaged"  # the code of the warning that a repair writes in the place of a fact it could not verify


class FilePages:
    """Texts by content hash: `pages/ab/abcdef….txt`."""

    def __init__(self, pages_dir: Path) -> None:
        self.root = pages_dir

    async def put(self, text: str) -> str:
        """Keep a text; it is on the disk when this returns, so that a fact may name it. Raises StoreError."""
        return await asyncio.to_thread(self._put, text)

    async def get(self, digest: str) -> str | None:
        """The text, or None when it is absent or no longer what its name says."""
        return await asyncio.to_thread(self.read_text, digest)

    def path_of(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}.txt"

    def _put(self, text: str) -> str:
        data, digest = text.encode("utf-8", "surrogatepass"), content_digest(text)
        path = self.path_of(digest)
        with files.translate_os_errors("Could not keep the text of a page", self.root):
            if self.read_text(digest) is not None:
                os.utime(path)
                files.sync_directory(path.parent)  # another process may have renamed it a moment ago
            else:
                if not path.parent.is_dir():
                    files.make_private_directory(path.parent)
                    files.sync_directory(self.root)
                    files.sync_directory(self.root.parent)
                files.replace_file(path, data, is_durable=True)
        return digest

    def read_text(self, digest: str) -> str | None:
        """What `get` returns, for code that is already in a thread."""
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


class LogRepair(Struct, frozen=True):
    """A log that was repaired: how many facts were saved, which numbers are lost, and where the damaged file is."""

    run: str
    facts: int
    lost: tuple[int, ...]
    kept_aside: str


class PruneReport(Struct, frozen=True):
    """What was removed."""

    runs: tuple[str, ...] = ()
    pages: int = 0
    bytes_freed: int = 0


class RunDirectory:
    """All runs of one home."""

    def __init__(self, runs_dir: Path, pages_dir: Path, clock: Clock, *, new_id: Callable[[], str] | None = None) -> None:
        self.runs_dir, self.pages = runs_dir, FilePages(pages_dir)
        self._clock, self._new_id = clock, new_id or log_format.new_run_id

    def create(self) -> FileRunLog:
        """A new run under an unused id. Raises StoreError."""
        with files.translate_os_errors("Could not start a run log", self.runs_dir), ExitStack() as cleanup:
            files.make_private_directory(self.runs_dir)
            for _ in range(_ATTEMPTS):
                folder = self.runs_dir / log_format.check_run_id(self._new_id())
                with suppress(FileExistsError):
                    folder.mkdir(mode=files.PRIVATE_DIRECTORY)
                    break
            else:
                cause = f"{_ATTEMPTS} ids in a row are taken in {self.runs_dir}"
                raise StoreError("Could not find a free run id", cause=cause, fix="Delete old folders under runs.")
            cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
            path = folder / "log.jsonl"
            fd = os.open(path, files.APPEND | os.O_CREAT | os.O_EXCL, files.PRIVATE_FILE)
            cleanup.callback(os.close, fd)
            files.wait_for_lock(fd)
            files.write_all(fd, log_format.encode_header(folder.name, self._clock.now()))
            log = FileRunLog(path, fd, self._clock)
            cleanup.pop_all()
        return log

    def reopen(self, run_id: str) -> tuple[ReadLog, FileRunLog]:
        """Go on with a run that did not end: its facts, and its log without the torn tail."""
        path, fd = self._log_path(run_id), self._open_locked(run_id)
        with files.translate_os_errors(f"Could not reopen run {run_id}", path), ExitStack() as cleanup:
            cleanup.callback(os.close, fd)
            data = path.read_bytes()
            log = log_format.parse_log(run_id, data)
            log_format.refuse_ended(run_id, log)
            sound_lines = data.split(b"\n")[: len(log.facts) + 1]  # the header and the facts
            os.ftruncate(fd, sum(len(line) + 1 for line in sound_lines))
            (path.parent / "stop").unlink(missing_ok=True)
            writer = FileRunLog(path, fd, self._clock, count=len(log.facts), worked=log.seconds)
            cleanup.pop_all()
        return log, writer

    def open_log(self, run_id: str) -> ReadLog:
        """Read a log. A torn last line is left out and told; any other damage is a DamagedLogError."""
        path = self._log_path(run_id)
        with files.translate_os_errors(f"Could not read run {run_id}", path):
            try:
                data = path.read_bytes()
            except FileNotFoundError as error:
                raise log_format.no_such_run(run_id) from error
        return log_format.parse_log(run_id, data)

    async def wait_for_facts(self, run_id: str, number: int, timeout_s: float) -> None:
        """Return when there may be facts after that number, or when the time is over: a file is looked at again and again."""
        await asyncio.sleep(min(timeout_s, _POLL_S))

    def list_runs(self, newest: int = 0, *, state: str = "") -> list[RunSummary]:
        """Runs, newest first, all of them or so many. Only the ends of each log are read: a bad line between is not seen."""
        if state:
            return [run for run in self.list_runs() if run.state == state][: newest or None]
        return self._summarise_all(self.run_ids(newest) if newest else (folder.name for folder in self._run_folders()))

    def find_runs(self, text: str, newest: int) -> list[RunSummary]:
        """So many runs whose question contains each word of the text, newest first."""
        return [run for run in self.list_runs() if contains_words(run.query, text)][:newest]

    def read_summaries(self, run_ids: Collection[str]) -> list[RunSummary]:
        """The runs of these ids, as far as there are any, newest first."""
        return self._summarise_all(filter(self.has_run, run_ids))

    def _summarise_all(self, run_ids: Iterable[str]) -> list[RunSummary]:
        return sorted(map(self._summarise, run_ids), key=lambda run: (run.created, run.id), reverse=True)

    def check_lines(self, run: RunSummary) -> RunSummary:
        """The summary, with the state `damaged` where any line of the log does not match its checksum."""
        try:
            data = self._log_path(run.id).read_bytes() if run.state != "running" else b""
        except OSError:
            return run
        is_sound = all(map(log_format.try_unseal, data.split(b"\n")[:-1]))  # a torn last line is no damage
        return run if is_sound else structs.replace(run, state="damaged")

    def repair_log(self, run_id: str) -> LogRepair | None:
        """Replace a damaged log by its verifiable lines and keep it beside them; None if it is sound. Raises StoreError."""
        path, fd = self._log_path(run_id), self._open_locked(run_id)
        with files.translate_os_errors(f"Could not repair the log of run {run_id}", path), ExitStack() as cleanup:
            cleanup.callback(os.close, fd)
            data = path.read_bytes()
            with suppress(DamagedLogError):
                log_format.parse_log(run_id, data)
                return None
            (repaired_log, facts, lost), number = _salvage_log(run_id, data, self._clock.now()), 1
            while (aside := path.with_name(f"log.damaged-{number}.jsonl")).exists():
                number += 1
            files.replace_file(aside, data, is_durable=True)
            files.replace_file(path, repaired_log, is_durable=True)
        return LogRepair(run_id, facts, lost, str(aside))

    def run_ids(self, newest: int = 0) -> list[str]:
        """Ids of runs, newest first, all of them or so many; no log is opened."""
        folders = sorted(self._run_folders(), key=_modification_time, reverse=True)
        return [folder.name for folder in folders[: newest or None]]

    def has_run(self, run_id: str) -> bool:
        """Whether anything is kept under this id, which may be any text."""
        return bool(log_format.RUN_ID.fullmatch(run_id)) and self._run_folder(run_id).is_dir()

    def is_running(self, run_id: str) -> bool:
        """Whether a writer holds the log."""
        try:
            fd = os.open(self._log_path(run_id), os.O_RDONLY)
        except OSError:
            return False
        try:
            return not files.take_lock(fd, shared=True)  # two who only look do not disturb each other
        finally:
            os.close(fd)

    def request_stop(self, run_id: str) -> bool:
        """Ask a run to answer from what it has; False when it is not running."""
        if not self.is_running(run_id):
            self._require_run(run_id)
            return False
        stop = self._run_folder(run_id) / "stop"
        with files.translate_os_errors(f"Could not ask run {run_id} to stop", stop):
            stop.touch(mode=files.PRIVATE_FILE)
        return True

    def request_cancel(self, run_id: str) -> None:
        """Ask the process that has this run to end it without an answer. Raises StoreError."""
        try:
            (self._run_folder(run_id) / "cancel").touch(mode=files.PRIVATE_FILE)
        except OSError as error:
            raise StoreError(f"Could not ask for the end of run {run_id}", cause=str(error), fix="try again") from error

    def is_cancel_requested(self, run_id: str) -> bool:
        return (self._run_folder(run_id) / "cancel").exists()

    def remove(self, run_id: str) -> None:
        """Delete a run that is not running; its pages go at the next prune."""
        self._require_run(run_id)
        if self.is_running(run_id):
            raise log_format.locked_error(run_id)
        with files.translate_os_errors(f"Could not remove run {run_id}", self._run_folder(run_id)):
            shutil.rmtree(self._run_folder(run_id))

    def keep(self, run_id: str, *, is_kept: bool = True) -> None:
        """Exempt a run from every cleanup, or end the exemption. Raises StoreError."""
        self._require_run(run_id)
        mark = self._run_folder(run_id) / "keep"
        with files.translate_os_errors(f"Could not mark run {run_id}", mark):
            mark.touch(mode=files.PRIVATE_FILE) if is_kept else mark.unlink(missing_ok=True)

    def find_expired(self, keep_days: float, max_mb: float) -> list[str]:
        """The runs that `prune` would remove."""
        return [run.id for run in self._choose_removals(keep_days, max_mb)[0]]

    def has_clock_jumped(self, keep_days: float) -> bool:
        """Whether the ages of runs mean nothing: one is from the future, or all but the newest would expire at once."""
        now = self._clock.now()
        ages = sorted(now - self._creation_time(run) for run in self.list_runs())
        is_ahead = bool(ages) and ages[0] < -_CLOCK_TOLERANCE
        return is_ahead or (len(ages) > 1 and ages[0] < _CLOCK_TOLERANCE and ages[1] > timedelta(days=keep_days))

    def prune(self, keep_days: float, max_mb: float, *, only: Collection[str] | None = None) -> PruneReport:
        """Keep the newest runs and their pages that are young enough and fit, and all that run, are kept or outside `only`."""
        removals, named_digests = self._choose_removals(keep_days, max_mb)
        if only is not None:
            for run in removals:
                named_digests |= set() if run.id in only else self._named_digests(run.id)
            removals = [run for run in removals if run.id in only]
        for run in removals:
            self.remove(run.id)
        page_files = [*self.pages.root.glob("??/*.txt"), *self.pages.root.glob("??/.*.tmp")]  # and what a crash left of them
        newest = self._clock.now() - _PAGE_GRACE
        pages = [path for path in page_files if path.stem not in named_digests and _modification_time(path) < newest]
        byte_count = sum(run.size for run in removals) + sum(map(_size_of, pages))
        with files.translate_os_errors("Could not remove old pages", self.pages.root):
            for path in pages:
                path.unlink(missing_ok=True)
        return PruneReport(tuple(run.id for run in removals), len(pages), byte_count)

    def _choose_removals(self, keep_days: float, max_mb: float) -> tuple[list[RunSummary], set[str]]:
        """The runs to remove, and the digests the others name."""
        oldest, room = self._clock.now() - timedelta(days=keep_days), int(max_mb * 1_000_000)
        removals: list[RunSummary] = []
        named_digests: set[str] = set()
        for run in self.list_runs():
            digests = self._named_digests(run.id)
            cost = run.size + sum(_size_of(self.pages.path_of(digest)) for digest in digests - named_digests)
            is_kept = (self._run_folder(run.id) / "keep").exists()
            if run.state != "running" and not is_kept and (cost > room or self._creation_time(run) < oldest):
                removals.append(run)
                room = 0 if cost > room else room  # nothing older than a run that did not fit is kept in its place
            else:
                room -= cost
                named_digests |= digests
        return removals, named_digests

    def _open_locked(self, run_id: str) -> int:
        path = self._log_path(run_id)
        with files.translate_os_errors(f"Could not open run {run_id}", path):
            try:
                fd = os.open(path, files.APPEND)
            except FileNotFoundError as error:
                raise log_format.no_such_run(run_id) from error
        if files.take_lock(fd):
            return fd
        os.close(fd)
        raise log_format.locked_error(run_id)

    def _summarise(self, run_id: str) -> RunSummary:
        path = self._log_path(run_id)
        lines = [b"", b"", b""]  # the header, the first fact and the last; empty where the log cannot be read
        with suppress(OSError):
            with path.open("rb") as file:
                head = file.readline(), file.readline()
            ends = files.lines_from_end(path)
            lines = [*head, b"" if next(ends) else next(ends, b"")]
        header = log_format.try_unseal(lines[0])
        first, last = (log_format.try_unseal(line).get("fact", {}) for line in lines[1:])
        is_running = (not header or last.get("kind") not in log_format.ENDED_STATES) and self.is_running(run_id)
        size = sum(map(_size_of, path.parent.glob("*")))
        return log_format.summarise_run(run_id, str(header.get("created", "")), size, first, last, is_running=is_running)

    def _creation_time(self, run: RunSummary) -> datetime:
        """When a run began, by its header; by the file where that is unreadable."""
        return log_format.parse_moment(run.created) or _modification_time(self._run_folder(run.id))

    def _named_digests(self, run_id: str) -> set[str]:
        """Every page a log names, damaged or not, or the copy that was kept beside a repaired one."""
        try:
            logs = [path.read_bytes() for path in self._run_folder(run_id).glob("log*.jsonl")]
        except OSError:
            return set()
        return {digest for data in logs for digest in log_format.digests_in(data)}

    def _run_folders(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (p for p in self.runs_dir.iterdir() if log_format.RUN_ID.fullmatch(p.name) and p.is_dir())

    def _require_run(self, run_id: str) -> None:
        if not self._run_folder(run_id).is_dir():
            raise log_format.no_such_run(run_id)

    def _run_folder(self, run_id: str) -> Path:
        return self.runs_dir / log_format.check_run_id(run_id)

    def _log_path(self, run_id: str) -> Path:
        return self._run_folder(run_id) / "log.jsonl"


def _modification_time(path: Path) -> datetime:
    """When a file changed last; now, as it were, for one that just went away."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime.max.replace(tzinfo=UTC)


def _salvage_log(run_id: str, data: bytes, now: datetime) -> tuple[bytes, int, tuple[int, ...]]:
    """A sound log of every line that can be verified, how many facts it has, and the numbers of those that are lost, each of
    which a warning takes, so that no other fact moves."""
    first, *rest = data.split(b"\n")
    header = log_format.try_unseal(first)
    facts: dict[int, bytes] = {}  # lines that are whole facts by their checksum, under their numbers, in rising order
    for row in rest:
        record = log_format.try_unseal(row)
        if isinstance(place := record.get("n"), int) and place > next(reversed(facts), 0):
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                if is_fact(decode(record["fact"])):
                    facts[place] = row
    moment, elapsed = now, 0.0
    lines, lost = [first + b"\n"], []
    if not header:
        first_record = log_format.unseal_line(next(iter(facts.values()))) if facts else {}
        lines = [log_format.encode_header(run_id, log_format.parse_moment(str(first_record.get("t", ""))) or now)]
    for number in range(1, max(facts, default=0) + 1):
        if line := facts.get(number):
            record = log_format.unseal_line(line)
            moment = log_format.parse_moment(str(record.get("t", ""))) or moment
            elapsed = float(record.get("s") or elapsed)
            lines.append(line + b"\n")
        else:
            warning = Warned(LOST_FACT, f"fact {number} of this log was damaged and is lost")
            lines.append(log_format.encode_fact(number, moment, elapsed, warning))
            lost.append(number)
    return b"".join(lines), len(facts), tuple(lost)


def count_lost_facts(facts: Iterable[Fact]) -> int:
    """How many facts of a log were lost when it was repaired."""
    return sum(isinstance(fact, Warned) and fact.code == LOST_FACT for fact in facts)


def describe_damage(pages: PageStore, facts: Sequence[Fact]) -> str:
    """What a run has lost of its log and its page texts, empty where it is whole; only files can lose a text unseen."""
    losses = []
    if isinstance(pages, FilePages):
        names: list[str] = []
        for fact in facts:
            conversation = fact.settings.get("conversation") if isinstance(fact, RunStarted) else None
            if isinstance(fact, PageFetched):
                names += (fact.digest, fact.links)
            elif isinstance(conversation, Mapping):
                names.append(str(conversation.get("digest") or ""))
        digests = dict.fromkeys(filter(None, names))
        lost = [pages.path_of(digest) for digest in digests if pages.read_text(digest) is None]
        missing, changed = [path for path in lost if not path.exists()], [path for path in lost if path.exists()]
        counts = [f"{len(paths)} {kind}" for paths, kind in ((missing, "missing"), (changed, "changed")) if paths]
        if lost:
            losses.append(f"of the {len(digests)} page texts it read, {' and '.join(counts)}: {(missing + changed)[0]}")
    if lost_facts := count_lost_facts(facts):
        losses.append(f"{lost_facts} of its facts were damaged and are lost")
    return "; ".join(losses)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
