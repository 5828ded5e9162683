"""The history on the command line."""

from __future__ import annotations

from typing import Any

from nexi.errors import NexiError


def history_command(options: dict[str, Any]) -> None:
    if options["clear_history"]:
        return _clear_history()
    if options["last"]:
        return _show_last_n(options["last"])
    if options["prev"]:
        return _show_prev()
    return _show_by_id(options["show"])


def _clear_history() -> None:
    from nexi.config import nexi_home
    from nexi.history import clear_history
    from nexi.output import print_success

    clear_history()
    print_success(f"History deleted. Runs and pages stay in {nexi_home()}.")


def _show_last_n(n: int) -> None:
    """Previews of the last n searches, newest first."""
    from nexi.history import format_entry_preview, get_last_n_entries
    from nexi.output import write

    entries = get_last_n_entries(n)
    if not entries:
        raise NexiError("the history is empty", code="not_found", fix='ask something: nexi "your question"')
    write("\n\n".join(format_entry_preview(e, i) for i, e in enumerate(entries, 1)) + "\n")


def _show_prev() -> None:
    """The latest search in full."""
    from nexi.history import format_entry_full, get_latest_entry
    from nexi.output import write

    entry = get_latest_entry()
    if entry is None:
        raise NexiError("the history is empty", code="not_found", fix='ask something: nexi "your question"')
    write(format_entry_full(entry) + "\n")


def _show_by_id(entry_id: str) -> None:
    """One search in full."""
    from nexi.history import format_entry_full, get_entry_by_id
    from nexi.output import write

    entry = get_entry_by_id(entry_id)
    if entry is None:
        raise NexiError(f"no search has the id {entry_id}", code="not_found", fix="nexi --last 10 lists ids")
    write(format_entry_full(entry) + "\n")
