"""Stored runs: their checks and repairs, the notice before old ones are deleted, and one with its pages as a file.

What is damaged is never deleted. Old runs are deleted only after a notice that a person has seen, and never because a clock
jumped. Configured keys are taken out of a bundle; reading one takes only names that belong there, within caps: it may come from
a stranger.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nexi import files
from nexi.errors import StoreError
from nexi.events import Fact, RunFinished, RunResumed, SourceNumbered, Warned
from nexi.notices import Notice
from nexi.ports import Clock
from nexi.runs.directory import LogRepair, RunDirectory, describe_damage
from nexi.runs.log_format import RUN_ID, DamagedLogError, digests_in, seal_record, try_unseal, unseal_line
from nexi.types import content_digest
from nexi.urls import is_web_url

NOTICE_DAYS = 7  # between the notice and the first deletion
REDACTED = "[redacted]"
MAX_BYTES = 512_000_000
MAX_FILES = 20_000
_PAGE = re.compile(r"pages/([0-9a-f]{64})\.txt")
_NOT_INDEXED = ("not_indexed", "store")  # the codes of warnings that a page did not get into the knowledge base


def find_damaged_runs(runs: RunDirectory, run_ids: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Read the logs of these runs and compare the page texts they name: those with a damaged log, and what finished ones have
    lost of their evidence. Logs of a newer nexi are left to it."""
    damaged_logs: list[str] = []
    losses: dict[str, str] = {}
    for run_id in run_ids:
        try:
            log = runs.open_log(run_id)
        except DamagedLogError:
            damaged_logs.append(run_id)
            continue
        except StoreError:
            continue
        if log.has_ended and (why := describe_damage(runs.pages, log.bare_facts)):
            losses[run_id] = why
    return damaged_logs, losses


def list_indexed_pages(runs: RunDirectory) -> list[str]:
    """The pages that all stored runs have put into the knowledge base, without those of damaged logs."""
    urls: dict[str, None] = {}
    for run_id in runs.run_ids():
        with suppress(StoreError):
            urls |= dict.fromkeys(list_indexed_urls(runs.open_log(run_id).bare_facts))
    return list(urls)


def list_indexed_urls(facts: Sequence[Fact]) -> list[str]:
    """The pages that a run has put into the knowledge base, none where its log leaves a doubt."""
    # a run waits for its pages and warns of those that were not stored; a resumed one does not store those of its earlier life
    has_doubt = any(isinstance(fact, RunResumed) or (isinstance(fact, Warned) and fact.code in _NOT_INDEXED) for fact in facts)
    if has_doubt or not any(isinstance(fact, RunFinished) for fact in facts):
        return []
    sources = [fact.source for fact in facts if isinstance(fact, SourceNumbered)]
    return [source.url for source in sources if is_web_url(source.url)]


def repair_logs(runs: RunDirectory) -> tuple[list[LogRepair], dict[str, StoreError]]:
    """Repair every damaged log; the errors say which could not be repaired."""
    repaired: list[LogRepair] = []
    refused: dict[str, StoreError] = {}
    for run_id in runs.run_ids():
        try:
            runs.open_log(run_id)
        except DamagedLogError:
            try:
                repaired += filter(None, [runs.repair_log(run_id)])
            except StoreError as error:
                refused[run_id] = error
        except StoreError:
            continue
    return repaired, refused


class RetentionNotice:
    """The notice of one home: which runs are due for deletion, and since when someone knows."""

    def __init__(self, path: Path, runs: RunDirectory, clock: Clock) -> None:
        self._path, self._runs, self._clock = path, runs, clock

    def tidy(self, keep_days: float, max_mb: float) -> None:
        """Delete what a notice announced long enough ago; announce what is due now. Raises StoreError, OSError."""
        if self._runs.has_clock_jumped(keep_days):
            return
        due, notice = self._runs.find_expired(keep_days, max_mb), self._read_notice()
        shown_at, runs = str(notice.get("shown") or ""), set(notice.get("runs", ()))
        if shown_at and runs and datetime.fromisoformat(shown_at) > self._clock.now() - timedelta(days=NOTICE_DAYS):
            return  # one notice at a time: what became due since is in the next one
        may_go = [run for run in due if shown_at and run in runs]
        self._runs.prune(keep_days, max_mb, only=may_go)
        due_later = [run for run in due if run not in may_go]
        self._write_notice({"runs": due_later, "shown": ""} if due_later else {})

    def take_message(self, keep_days: float) -> str:
        """What to tell the user, once for each notice; the time until the deletion starts now. "" if there is nothing."""
        notice = self._read_notice()
        if not notice.get("runs") or notice.get("shown"):
            return ""
        now = self._clock.now()
        self._write_notice({**notice, "shown": now.isoformat()})
        count, day = len(notice["runs"]), (now + timedelta(days=NOTICE_DAYS)).date().isoformat()
        values = {"n": count, "day": day, "days": f"{keep_days:g}"}
        if count == 1:
            return Notice(
                "runs.expire_one",
                "{n} old run will be deleted after {day} (runs_keep_days is {days}); "
                "nexi runs tidy --dry-run lists it, nexi runs keep ID keeps it",
                **values,
            )
        return Notice(
            "runs.expire",
            "{n} old runs will be deleted after {day} (runs_keep_days is {days}); "
            "nexi runs tidy --dry-run lists them, nexi runs keep ID keeps one",
            **values,
        )

    def _read_notice(self) -> dict[str, Any]:
        notice = files.read_json_object(self._path)
        if not isinstance(notice.get("runs", []), list):
            return {}
        with suppress(ValueError):
            if not (shown_at := str(notice.get("shown") or "")) or datetime.fromisoformat(shown_at).tzinfo:
                return notice
        return {**notice, "shown": ""}  # when it was shown cannot be read: it is shown once more

    def _write_notice(self, notice: dict[str, Any]) -> None:
        if notice == self._read_notice():
            return
        files.make_private_directory(self._path.parent)
        files.replace_file(self._path, json.dumps(notice).encode())


# bundles


def write_bundle(runs: RunDirectory, run_id: str, path: Path, secrets: Iterable[str]) -> int:
    """Pack a run into a new file and return how many pages are in it. Raises StoreError."""
    read = runs.open_log(run_id)
    if read.has_ended and (damage := describe_damage(runs.pages, read.bare_facts)):
        failure = f"The bundle of run {run_id} could not be replayed, so it was not written"
        fix = f"Restore the files from a backup; `nexi export {run_id} --format md` saves the answer without its evidence."
        raise StoreError(failure, cause=damage, fix=fix, code="damaged_evidence")
    keys = [key for key in secrets if key]
    try:
        log = (runs.runs_dir / run_id / "log.jsonl").read_bytes()
        pages = []
        for digest in digests_in(log):
            with suppress(FileNotFoundError, UnicodeDecodeError):
                pages.append((digest, runs.pages.path_of(digest).read_bytes().decode("utf-8", "surrogatepass")))
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            _add_file(archive, "log.jsonl", _redacted_log(log, keys))
            for digest, text in pages:
                for form in (form for key in keys for form in _key_spellings(key)):
                    text = text.replace(form, REDACTED)
                _add_file(archive, f"pages/{digest}.txt", text.encode("utf-8", "surrogatepass"))
        files.create_private_file(path, file.getvalue())
    except FileExistsError as error:
        raise StoreError(f"{path} is not overwritten", cause="it exists", fix="name another file with -o") from error
    except OSError as error:
        raise files.store_error("Could not write the bundle", path, error) from error
    return len(pages)


def read_bundle(path: Path, runs: RunDirectory, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> str:
    """Unpack a bundle into a home of runs and return the id of its run. Raises StoreError."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            return _unpack_archive(archive, runs, max_bytes, max_files)
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, ValueError, KeyError, TypeError) as error:
        fix = "nexi export ID --bundle makes one"
        raise StoreError(f"{path} is not a bundle of a run", cause=str(error) or type(error).__name__, fix=fix) from error
    except OSError as error:
        raise files.store_error("Could not read the bundle", path, error) from error


def _unpack_archive(archive: tarfile.TarFile, runs: RunDirectory, max_bytes: int, max_files: int) -> str:
    run_id, bytes_left = "", max_bytes
    for count, member in enumerate(archive):
        bytes_left -= member.size
        if count >= max_files or bytes_left < 0:
            raise ValueError("it is larger than a run can be")
        source = archive.extractfile(member) if member.isfile() else None
        if source is None:
            continue
        if member.name == "log.jsonl":
            log = source.read()
            run_id = str(unseal_line(log.partition(b"\n")[0])["run"])
            if not RUN_ID.fullmatch(run_id):
                raise ValueError("its log has no id")
            files.make_private_directory(runs.runs_dir / run_id)
            (runs.runs_dir / run_id / "log.jsonl").write_bytes(log)
        elif page := _PAGE.fullmatch(member.name):
            data, path = source.read(), runs.pages.path_of(page[1])
            # a page whose text was redacted no longer is what its name says, and is left out
            if content_digest(data.decode("utf-8", "surrogatepass")) == page[1]:
                files.make_private_directory(path.parent)
                path.write_bytes(data)
    if not run_id:
        raise ValueError("it has no log")
    return run_id


def _redacted_log(log: bytes, keys: list[str]) -> bytes:
    """The log without keys; lines that held one are sealed anew, and one that was cut off is left out."""
    spellings = [_escape_json(form) for key in keys for form in _key_spellings(key)]
    if not any(form.encode() in log for form in spellings):
        return log
    lines = []
    for record in filter(None, map(try_unseal, log.splitlines())):
        del record["sum"]
        text = json.dumps(record)
        for form in spellings:
            text = text.replace(form, REDACTED)
        lines.append(seal_record(json.loads(text)))
    return b"".join(lines)


def _key_spellings(key: str) -> list[str]:
    """A key as it may stand in a text: as it is, inside JSON, inside JSON in JSON, in an address."""
    escaped = _escape_json(key)
    return list(dict.fromkeys((_escape_json(escaped), escaped, key, quote(key, safe=""))))


def _escape_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _add_file(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    archive.addfile(member, io.BytesIO(data))
