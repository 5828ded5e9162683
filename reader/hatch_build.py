"""Fetches the model before the package is built, so that the wheel carries it and nothing is fetched when nexi runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FetchModel(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root)))
        from fetch_model import fetch_model

        fetch_model()
