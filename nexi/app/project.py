"""The project that nexi is started in: a git work tree whose code may be searched with `grep`.

Doors at which one person sits in one folder ask for it; a server does not, because its folder is not its users'.
"""

from __future__ import annotations

from pathlib import Path

from nexi.config import Config


def with_project(config: Config, folder: Path | None = None) -> Config:
    """The config with the project around a folder, by default the current one, as the code to search, unless one is named."""
    if config.grep_root or not config.grep_project:
        return config
    try:
        current, home = (folder or Path.cwd()).resolve(), Path.home().resolve()
        outside = {home, *home.parents}  # which hold more than a project
        root = next((f for f in (current, *current.parents) if f not in outside and (f / ".git").exists()), None)
    except (OSError, RuntimeError):
        return config
    return config.override(grep_root=str(root)) if root else config
