"""The entry for nexi in the config file of an MCP client: its text, and a merge that loses nothing.

Above is `nexi mcp install`; below are the client's files, JSON or TOML, which are theirs: a file that cannot be understood is
left alone, everything else in it stays as it was, and the file as it was is kept beside it. No key is ever written.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.config import nexi_home
from nexi.errors import StoreError
from nexi.files import replace_file, store_error

CLIENT_NAMES = {"claude": "Claude Desktop", "cursor": "Cursor", "codex": "Codex"}
BACKUP = ".before-nexi"
CODEX_DEFAULTS = {"tool_timeout_sec": 120}  # its own are 60, and a thorough search can take longer
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_OURS = re.compile(r"^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*[\"']?nexi[\"']?[ \t]*(?:\.[^\]\n]*)?\][^\n]*$", re.MULTILINE)


class Installed(Struct, frozen=True):
    """What was done to a file."""

    told: str
    backup: Path | None = None


def place_of(client: str) -> Path:
    """Where a client keeps its config on this system."""
    folder = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}.get(sys.platform, ".config")
    places = {"cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}
    return Path.home() / places.get(client, f"{folder}/Claude/claude_desktop_config.json")


def _build_entry() -> dict[str, Any]:
    """How a client starts the server: this very Python, since a desktop program has another PATH."""
    home, usual = nexi_home(), nexi_home({"HOME": str(Path.home()), "USERPROFILE": str(Path.home())})
    entry: dict[str, Any] = {"command": sys.executable, "args": ["-m", "nexi.mcp_server_cli"]}
    return entry if home == usual else {**entry, "env": {"NEXI_HOME": str(home)}}


def entry_text(client: str) -> str:
    """The entry as it stands in the client's file."""
    if client == "codex":
        return _to_toml(_merge_entry(CODEX_DEFAULTS))
    return json.dumps({"mcpServers": {"nexi": _build_entry()}}, indent=2, ensure_ascii=False) + "\n"


def install_entry(client: str, path: Path) -> Installed:
    """Put the entry into a file. Raises StoreError, and then nothing was changed."""
    place = path.expanduser().resolve()
    try:
        before = place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        before = ""
    except UnicodeDecodeError as error:
        raise _not_understood(place, "it is not UTF-8 text") from error
    except OSError as error:
        raise store_error("Could not read the client's config", place, error) from error
    after = _add_entry(before, place, is_toml=client == "codex")
    if after == before:
        return Installed("has the entry already")
    # the file is replaced whole, with its permissions, and its old text is kept beside it
    backup = place.with_name(place.name + BACKUP) if before.strip() else None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        if backup:
            replace_file(backup, before.encode("utf-8"), is_durable=True)
            backup.chmod(mode)
        replace_file(place, after.encode("utf-8"), is_durable=True)
        place.chmod(mode)
    except OSError as error:
        raise store_error("Could not write the client's config", place, error) from error
    return Installed("has the entry now", backup)


def _add_entry(text: str, path: Path, *, is_toml: bool) -> str:
    """The text with our entry in place of an older one, or beside the others; what the TOML then means is checked."""
    name, kind = ("mcp_servers", "table of tables") if is_toml else ("mcpServers", "object of objects")
    try:
        whole = tomllib.loads(text) if is_toml else _parse_json(text)
    except (ValueError, RecursionError) as error:
        raise _not_understood(path, str(error)) from error
    if not isinstance(whole, dict):
        raise _not_understood(path, "it holds no JSON object")
    servers = whole.get(name, {})
    old = servers.get("nexi", {}) if isinstance(servers, dict) else None
    if not isinstance(old, dict):
        raise _not_understood(path, f"{name} in it is no {kind}")
    new = _merge_entry({**CODEX_DEFAULTS, **old} if is_toml else old)
    if new == old:
        return text
    merged = {**whole, name: {**servers, "nexi": new}}
    if not is_toml:
        return json.dumps(merged, indent=2, ensure_ascii=False) + "\n"
    others, at = "", 0
    for match in _OURS.finditer(text):
        following = _TABLE.search(text, match.end())
        others, at = others + text[at : match.start()], following.start() if following else len(text)
    others = (others + text[at:]).rstrip()
    after = f"{others}\n\n{_to_toml(new)}" if others else _to_toml(new)
    try:
        is_safe = tomllib.loads(after) == merged
    except tomllib.TOMLDecodeError:
        is_safe = False
    if not is_safe:
        raise _not_understood(path, "its table mcp_servers.nexi is written in a way that cannot be changed safely")
    return after


def _parse_json(text: str) -> Any:
    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name stands in it twice")
        return dict(pairs)

    return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=build_object) if text.strip() else {}


def _merge_entry(old: Mapping[str, Any]) -> dict[str, Any]:
    """Ours, with what the user added, such as variables."""
    new = _build_entry()
    if isinstance(old.get("env"), dict) or "env" in new:
        new["env"] = {**(old.get("env") or {}), **new.get("env", {})}
    return {**old, **new}


def _to_toml(values: Mapping[str, Any]) -> str:
    """A table of strings, lists and one table of strings; JSON strings are TOML strings."""
    plain = {name: value for name, value in values.items() if not isinstance(value, dict)}
    lines = ["[mcp_servers.nexi]", *(f"{_toml_name(name)} = {_toml_value(value)}" for name, value in plain.items())]
    for name, table in values.items():
        if isinstance(table, dict):
            lines += ["", f"[mcp_servers.nexi.{_toml_name(name)}]"]
            lines += [f"{_toml_name(key)} = {_toml_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _toml_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml_value(name)


def _toml_value(value: Any) -> str:
    """As JSON writes it, which TOML reads alike for strings, numbers, switches and lists of them."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _not_understood(path: Path, cause: str) -> StoreError:
    fix = "put the entry in by hand; without --write it is printed"
    return StoreError(f"{path} was left as it is", cause=cause, fix=fix, code="client_config")
