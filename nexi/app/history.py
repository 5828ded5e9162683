"""Past answers and past runs, for doors that list, show, search and remove them. Light: no engine is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexi.history import (
    HistoryEntry,
    HistoryRead,
    clear_history,
    find_entries,
    fold_repeats,
    format_entry_full,
    format_entry_preview,
    get_entry_by_id,
    get_last_n_entries,
    name_day,
    read_history,
    read_last,
    remove_entry,
)

if TYPE_CHECKING:
    from nexi.config import Config
    from nexi.runs.directory import RunDirectory

__all__ = [
    "HistoryEntry",
    "HistoryRead",
    "clear_history",
    "find_entries",
    "fold_repeats",
    "format_entry_full",
    "format_entry_preview",
    "get_entry_by_id",
    "get_last_n_entries",
    "name_day",
    "open_runs",
    "read_history",
    "read_last",
    "remove_entry",
]


def open_runs(config: Config) -> RunDirectory:
    """The runs of a config, without its other ports."""
    from nexi.app.clock import SystemClock
    from nexi.runs.directory import RunDirectory

    return RunDirectory(config.runs_dir, config.pages_dir, clock=SystemClock())
