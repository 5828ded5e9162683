"""Terminal output: data on stdout, everything else on stderr.

Callers use the print functions, or pass the events of a run to a `Screen`. Rich is imported only if there is a terminal to
draw on, and the screen only by a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.output._messages import (
    ANSWER_SCHEMA,
    answer_json,
    cost_text,
    create_progress_callback,
    print_answer,
    print_error,
    print_failure,
    print_json,
    print_note,
    print_result_summary,
    print_search_start,
    print_sources,
    print_success,
    print_warning,
)
from nexi.output.streams import is_plain, is_tty, set_plain_mode, takes_colors, write
from nexi.text.controls import clean_line, clean_text

if TYPE_CHECKING:
    from nexi.output.screen import Screen as Screen

__all__ = [
    "ANSWER_SCHEMA",
    "Screen",
    "answer_json",
    "clean_line",
    "clean_text",
    "cost_text",
    "create_progress_callback",
    "is_plain",
    "is_tty",
    "print_answer",
    "print_error",
    "print_failure",
    "print_json",
    "print_note",
    "print_result_summary",
    "print_search_start",
    "print_sources",
    "print_success",
    "print_warning",
    "set_plain_mode",
    "takes_colors",
    "write",
]


def __getattr__(name: str) -> Any:
    if name != "Screen":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nexi.output.screen import Screen

    return Screen
