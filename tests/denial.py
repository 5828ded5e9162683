"""A folder that the system denies access to, for the superuser too, whom permissions do not bind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def deny_access(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look at the folder and at what is below it fail with EACCES."""

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *rest: Any, **options: Any) -> Any:
            if not isinstance(path, int) and Path(os.fsdecode(path)).is_relative_to(folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return function(path, *rest, **options)

        return call

    for name in ("scandir", "stat"):
        monkeypatch.setattr(os, name, guard(getattr(os, name)))
