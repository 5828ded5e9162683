"""The `nexi` command, kept outside the package: another project's package `nexi` may have overwritten files of ours.

The package is below; here it is only started, and where it cannot be, the other one is named.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, metadata


def main() -> None:
    """Hand over to the command line, or say which package is in its way."""
    try:
        from nexi.__main__ import main as run_command

        run_command()
    except ImportError:
        if not (theirs := _name_other_package()):
            raise
        fix = f"{sys.executable} -m pip uninstall nexi, then install nexi-engine again"
        sys.exit(f"Error: another project's package has overwritten files of nexi-engine: {theirs}\n  Fix: {fix}")


def _name_other_package() -> str:
    """What the distribution `nexi` says of itself; ours is called nexi-engine."""
    try:
        theirs = metadata("nexi")
    except PackageNotFoundError:
        return ""
    return f"{theirs['Name']} {theirs['Version']}, {theirs['Summary']}"
