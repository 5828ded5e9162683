"""All runs of one home: made, reopened, listed, stopped, removed and pruned. They share the page texts in `pages/`."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct, structs

from nexi import files
from nexi.errors import StoreError
from nexi.ports import Clock
from nexi.runs import log_format
from nexi.runs.log import FileRunLog
from nexi.runs.log_format import DamagedLogError, ReadLog, RunSummary
from nexi.runs.pages import FilePages, size_of
from nexi.runs.repair import LogRepair, salvage_log
from nexi.text.words import contains_words

__all__ = ["RunDirectory", "RunSummary"]

_ATTEMPTS = 100
_POLL_S = 0.2
_PAGE_GRACE = timedelta(hours=1)  # a page is put before the fact that names it, so young ones are left alone
_CLOCK_TOLERANCE = timedelta(hours=1)


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
            (repaired_log, facts, lost), number = salvage_log(run_id, data, self._clock.now()), 1
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
        byte_count = sum(run.size for run in removals) + sum(map(size_of, pages))
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
            cost = run.size + sum(size_of(self.pages.path_of(digest)) for digest in digests - named_digests)
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
        size = sum(map(size_of, path.parent.glob("*")))
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
