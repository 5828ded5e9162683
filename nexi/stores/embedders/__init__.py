"""What turns texts into vectors: one file for each way, all behind the Embedder port."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def find_package(name: str) -> Path | None:
    """The folder of an installed package, found without running its code; None where it is not installed."""
    spec = find_spec(name)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None
