"""Prompts are documents: one Markdown file each, beside this one or in a folder of the user's own, rendered strictly.

`{name}` stands for a value, `{{` and `}}` for a brace. A value that is missing or not used is an error, in our files and in
the user's alike. What a value contains is never looked at, so a page cannot smuggle in a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from nexi.errors import ConfigError

NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.md")))
_TOKEN = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}|[{}]")


def render(name: str, *, folder: Path | None = None, **values: object) -> str:
    """The prompt with its values filled in; `<folder>/<name>.md` wins over ours."""
    text, where = template(name, folder)
    names = placeholders(text, where)
    if absent := sorted(names - values.keys()):
        fix = f"the values it may use are {_list_placeholders(values)}"
        raise ConfigError(f"{where} asks for {_list_placeholders(absent)}", cause="no such value is given to it", fix=fix)
    if unused := sorted(values.keys() - names):
        raise ConfigError(f"{where} does not use {_list_placeholders(unused)}", fix="put every value into the text")
    return _TOKEN.sub(lambda match: str(values[match[1]]) if match[1] else match[0][0], text)


def template(name: str, folder: Path | None = None) -> tuple[str, str]:
    """The text of a prompt before its values, and where it comes from."""
    if name not in NAMES:
        raise ConfigError(f"there is no prompt called {name!r}", fix=f"the prompts are {', '.join(NAMES)}")
    path = folder / f"{name}.md" if folder else None
    try:
        if path:
            return path.read_text(encoding="utf-8-sig").strip(), str(path)
    except FileNotFoundError:
        pass  # the user has no text of their own for it
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text", cause=str(error), fix="save it as UTF-8, or delete it") from error
    except OSError as error:
        fix = "make it a readable file, or delete it to use the built-in prompt"
        raise ConfigError(f"{path} cannot be read", cause=error.strerror or str(error), fix=fix) from error
    return read_packaged_prompt(name), f"the prompt {name}.md"


def placeholders(text: str, where: str = "the prompt") -> frozenset[str]:
    """The names a template asks for. A brace that is neither doubled nor around a name is an error."""
    names = set()
    for match in _TOKEN.finditer(text):
        if match[0] in "{}":
            line = text.count("\n", 0, match.start()) + 1
            raise ConfigError(f"{where} has a stray {match[0]!r} on line {line}", fix="write {{ or }} for a brace in the text")
        if match[1]:
            names.add(match[1])
    return frozenset(names)


@cache
def read_packaged_prompt(name: str) -> str:
    """The text of one of our own prompts."""
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()


def _list_placeholders(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "none"
