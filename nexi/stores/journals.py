"""The journal of the embedded store, as the operating system sees it.

`nexi doctor` asks whether a running process writes into a journal that was removed under it: what it stores is then seen by no
other process. Only Linux tells, through `/proc`, and only of one's own processes; elsewhere nothing is known or said.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from nexi.errors import StoreError

__all__ = ["check_alone", "check_journal"]

PROCESSES = Path("/proc")


def find_lost_journals(path: Path, processes: Path = PROCESSES) -> list[int]:
    """The processes that hold a removed journal of the store at this path."""
    return _find_holders(f"{path.resolve()}-wal (deleted)", processes)


def check_journal(path: Path) -> None:
    """Raise StoreError for the first of such processes."""
    for process in find_lost_journals(path):
        fix = (
            f"End it with `kill -9 {process}`: an orderly end could write its old pages over newer ones. Then run "
            "`nexi doctor --repair`, and ask again what it was asked since."
        )
        message = f"Process {process} stores pages where no other process can see them"
        cause = f"the journal of the knowledge base ({path}-wal) was removed while it was running"
        raise StoreError(message, cause=cause, fix=fix, code="store_journal")


def check_alone(path: Path) -> None:
    """Raise StoreError where another process has the store open: what it writes while the file is replaced would be lost."""
    for process in _find_holders(str(path.resolve()), PROCESSES):
        if process != os.getpid():
            message = "The knowledge base is not repaired while another process uses it"
            cause = f"process {process} has {path} open, and what it stores during the repair would be lost"
            fix = f"End it (`kill {process}`, or Ctrl-C where it runs), then run `nexi doctor --repair` again."
            raise StoreError(message, cause=cause, fix=fix, code="store_in_use")


def _find_holders(target: str, processes: Path) -> list[int]:
    """The processes that have this file open, as far as the system tells."""
    try:
        numbers = sorted(int(entry.name) for entry in processes.iterdir() if entry.name.isdigit())
    except OSError:
        return []
    holders: dict[int, None] = {}
    for number in numbers:
        with suppress(OSError):  # another user's process, or one that has ended
            for descriptor in (processes / str(number) / "fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) == target:
                        holders[number] = None
    return list(holders)
