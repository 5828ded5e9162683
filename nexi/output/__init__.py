"""Terminal output: data on stdout, everything else on stderr.

Rich is imported only if there is a terminal to draw on, and the screen only by a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.output._messages import answer_json as answer_json
from nexi.output._messages import cost_text as cost_text
from nexi.output._messages import create_progress_callback as create_progress_callback
from nexi.output._messages import print_answer as print_answer
from nexi.output._messages import print_error as print_error
from nexi.output._messages import print_failure as print_failure
from nexi.output._messages import print_json as print_json
from nexi.output._messages import print_note as print_note
from nexi.output._messages import print_result_summary as print_result_summary
from nexi.output._messages import print_search_start as print_search_start
from nexi.output._messages import print_sources as print_sources
from nexi.output._messages import print_success as print_success
from nexi.output._messages import print_warning as print_warning
from nexi.output.streams import is_tty as is_tty
from nexi.output.streams import set_plain_mode as set_plain_mode
from nexi.output.streams import takes_colors as takes_colors
from nexi.output.streams import write as write
from nexi.text.controls import clean_line as clean_line
from nexi.text.controls import clean_text as clean_text

if TYPE_CHECKING:
    from nexi.output.screen import Screen as Screen


def __getattr__(name: str) -> Any:
    if name != "Screen":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nexi.output.screen import Screen

    return Screen
