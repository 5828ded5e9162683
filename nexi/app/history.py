"""Past answers and past runs, for doors that list, show, search and remove them. Light: no engine is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexi.history import HistoryEntry as HistoryEntry
from nexi.history import HistoryRead as HistoryRead
from nexi.history import clear_history as clear_history
from nexi.history import find_entries as find_entries
from nexi.history import fold_repeats as fold_repeats
from nexi.history import format_entry_full as format_entry_full
from nexi.history import format_entry_preview as format_entry_preview
from nexi.history import get_entry_by_id as get_entry_by_id
from nexi.history import get_last_n_entries as get_last_n_entries
from nexi.history import name_day as name_day
from nexi.history import read_history as read_history
from nexi.history import read_last as read_last
from nexi.history import remove_entry as remove_entry

if TYPE_CHECKING:
    from nexi.config import Config
    from nexi.runs.directory import RunDirectory


def open_runs(config: Config) -> RunDirectory:
    """The runs of a config, without its other ports."""
    from nexi.app.clock import SystemClock
    from nexi.runs.directory import RunDirectory

    return RunDirectory(config.runs_dir, config.pages_dir, clock=SystemClock())
