"""The settings.yml of the container: the default, or the user's own version of it, with secret, proxies and keys filled in.

YAML takes JSON for a value, so what is filled in is JSON and needs no library.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from nexi.errors import ConfigError
from nexi.files import make_private_directory, replace_file, translate_os_errors

__all__ = ["draft_settings", "write_settings"]

DEFAULT = "default-settings.yml"
READABLE_INSIDE = 0o644  # the container's user is another one; the folder around it is private
MAX_BYTES = 1_000_000
_MARK = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class SettingsDraft(Struct, frozen=True):
    """Settings without their secret, which is a new one at each start."""

    text: str
    proxies: tuple[str, ...] = ()
    engine_keys: Mapping[str, str] = {}

    @property
    def digest(self) -> str:
        """What a container was started with, to tell whether it is still what is wanted."""
        return hashlib.sha256(self.fill_in("").encode()).hexdigest()[:16]

    def fill_in(self, secret: str) -> str:
        # Each engine that has a key, turned on. SearXNG leaves out what `keep_only` does not name before it reads them, so each
        # names its module too, which has the engine's name.
        engines = [
            json.dumps({"name": name, "engine": name, "api_key": key, "inactive": False, "disabled": False})
            for name, key in sorted(self.engine_keys.items())
        ]
        values = {
            "secret_key": json.dumps(secret),
            "proxies": json.dumps({"all://": list(self.proxies)} if self.proxies else {}),
            "engine_keys": "\n  ".join(f"- {engine}" for engine in engines),
        }

        def fill(mark: re.Match[str]) -> str:
            line = self.text[self.text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
            is_comment = line.lstrip().startswith("#")
            return mark[0] if is_comment else values.get(mark[1], mark[0])

        return _MARK.sub(fill, self.text)


def draft_settings(own: Path, proxies: tuple[str, ...], engine_keys: Mapping[str, str]) -> SettingsDraft:
    """The user's own version where there is one, else the default. Raises ConfigError."""
    try:
        text = (own if own.is_file() else Path(__file__).with_name(DEFAULT)).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{own} cannot be read", cause=cause, fix="make it UTF-8 text that you may read") from error
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{own} is too large", cause=f"it has more than {MAX_BYTES:,} characters", fix="shorten it")
    return SettingsDraft(text, proxies, engine_keys)


def write_settings(draft: SettingsDraft, path: Path) -> None:
    """The file to mount, with a new secret."""
    with translate_os_errors("the settings of SearXNG were not written", path):
        make_private_directory(path.parent)
        replace_file(path, draft.fill_in(secrets.token_hex(32)).encode())
        path.chmod(READABLE_INSIDE)
