"""The user's own instructions: `--system TEXT`, and templates in `templates/NAME.md` next to the config."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import click
from msgspec import Struct

from nexi.cli.flags import AskFlags, json_option
from nexi.config import nexi_home
from nexi.errors import ConfigError
from nexi.files import is_existing_file
from nexi.output import print_json, write

MAX_BYTES = 200_000
PLACEHOLDER = "{question}"


class _Template(Struct, frozen=True):
    name: str
    path: Path
    text: str

    @property
    def first_line(self) -> str:
        line = next((line.strip() for line in self.text.splitlines() if line.strip()), "").lstrip("# ")
        return line if len(line) <= 60 else line[:59] + "…"

    @property
    def wraps_question(self) -> bool:
        return PLACEHOLDER in self.text


def _templates_folder() -> Path:
    return nexi_home() / "templates"


def list_templates() -> list[_Template]:
    place = _templates_folder()
    try:
        paths = sorted(place.glob("*.md"))
    except OSError as error:
        raise _unreadable_error(place, error) from error
    return [_Template(path.stem, path, _read_text(path)) for path in paths if path.is_file()]


def _read_template(name: str) -> _Template:
    """Read a template. Raises ConfigError, with a suggestion for a typo."""
    place = _templates_folder()
    path = place / f"{name}.md"
    if name and Path(name).name == name and is_existing_file(path):
        return _Template(name, path, _read_text(path))
    names = [path.stem for path in sorted(place.glob("*.md"))] if place.is_dir() else []
    near = difflib.get_close_matches(name, names, n=1)
    available = f"available: {', '.join(names)}" if names else "there are no templates"
    cause = f"did you mean {near[0]}?" if near else available
    raise ConfigError(f"no template named {name!r}", cause=cause, fix=f"create it: {place}/NAME.md")


def system_prompt_of(flags: AskFlags) -> str:
    """The instructions of `--template` and `--system`; empty without either."""
    template = _chosen_template(flags)
    parts = (template.text if template and not template.wraps_question else "", flags.system)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def apply_template(question: str, flags: AskFlags) -> str:
    """The question inside its template, if the template has a place for it."""
    template = _chosen_template(flags)
    wraps = template is not None and template.wraps_question and question.strip()
    return template.text.replace(PLACEHOLDER, question).strip() if template and wraps else question


def _chosen_template(flags: AskFlags) -> _Template | None:
    return _read_template(flags.template) if flags.template else None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise _unreadable_error(path, error) from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path} is too large", cause=f"it is larger than {MAX_BYTES:,} bytes", fix="shorten it")
    return text


def _unreadable_error(path: Path, error: Exception) -> ConfigError:
    cause = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"cannot read {path}", cause=cause, fix="make it a readable UTF-8 text file")


@click.command("templates")
@json_option
def _templates_command(as_json: bool) -> None:
    """List the saved templates."""
    templates = list_templates()
    if as_json:
        rows = [
            {"name": t.name, "about": t.first_line, "wraps_question": t.wraps_question, "path": str(t.path)} for t in templates
        ]
        return print_json({"schema": "nexi-templates-1", "templates": rows})
    if not templates:
        return write(f"No templates. Create one: {_templates_folder()}/NAME.md\n", sys.stderr)
    width = max(len(t.name) for t in templates)
    return write("".join(f"{t.name:<{width}}  {t.first_line}\n" for t in templates))
