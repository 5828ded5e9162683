"""Bundles: a run and the pages it rests on in one file, to be replayed elsewhere or attached to a report of a fault.

Configured keys are taken out of everything. Reading one takes only names that belong there, within caps: it may come from a
stranger.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from nexi.errors import StoreError
from nexi.files import create_private_file, make_private_directory, store_error
from nexi.runs.directory import RunDirectory, describe_damage
from nexi.runs.log_format import RUN_ID, digests_in, seal_record, try_unseal, unseal_line
from nexi.types import content_digest

REDACTED = "[redacted]"
MAX_BYTES = 512_000_000
MAX_FILES = 20_000
_PAGE = re.compile(r"pages/([0-9a-f]{64})\.txt")


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
        create_private_file(path, file.getvalue())
    except FileExistsError as error:
        raise StoreError(f"{path} is not overwritten", cause="it exists", fix="name another file with -o") from error
    except OSError as error:
        raise store_error("Could not write the bundle", path, error) from error
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
        raise store_error("Could not read the bundle", path, error) from error


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
            make_private_directory(runs.runs_dir / run_id)
            (runs.runs_dir / run_id / "log.jsonl").write_bytes(log)
        elif page := _PAGE.fullmatch(member.name):
            data, path = source.read(), runs.pages.path_of(page[1])
            # a page whose text was redacted no longer is what its name says, and is left out
            if content_digest(data.decode("utf-8", "surrogatepass")) == page[1]:
                make_private_directory(path.parent)
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
