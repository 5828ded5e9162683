"""`python -m nexi`, and the `nexi` command."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Force UTF-8 where the platform's default is another, then hand over to the command line."""
    if sys.platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="replace")
    gc.set_threshold(50_000)  # start-up makes many objects that live on; collecting among them is wasted work
    from nexi.cli import main as command

    command(prog_name="nexi")


if __name__ == "__main__":
    main()
