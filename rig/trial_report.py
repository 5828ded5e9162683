"""What a trial came to, as a section of a document."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What was tried, the lines of its tables, and whether what was promised holds."""

    about: str
    lines: Sequence[str]
    holds: bool

    def render(self, title: str) -> str:
        """The section, with how loaded the machine was at its end."""
        verdict = "Holds." if self.holds else "DOES NOT HOLD."
        load = f"Load of the machine at the end: {os.getloadavg()[1]:.0f} on {os.cpu_count()} cores."
        return "\n".join([f"## {title}", "", self.about, "", *self.lines, "", f"{verdict} {load}"])
