"""Where an answer goes besides the screen: a file, the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexi.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from nexi.app import RunResult
    from nexi.config import Config

STDOUT = "-"


def file_of(options: dict[str, Any]) -> Path | None:
    """The file the answer goes to. Raises ConfigError before a search is paid for whose answer could not be kept."""
    name = options.get("output")
    if name is None or name == STDOUT:
        return None
    path = Path(name).expanduser()
    if path.exists() or path.is_symlink():
        raise ConfigError(
            f"{path} is not overwritten", cause="it exists", fix="name another file, or remove it first", code="exists"
        )
    if not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written", cause=f"there is no folder {path.parent}", fix=f"mkdir {path.parent}")
    return path


def answer_text(result: RunResult) -> str:
    """The answer in Markdown with the list of its sources."""
    from nexi.citations import format_citations_section

    cited = result.answer.sources
    listed = format_citations_section({s.number: s.url for s in cited}, url_to_title={s.url: s.title for s in cited})
    return f"{result.answer.text}\n" + (f"\n{listed}\n" if listed else "")


def write_answer(path: Path, result: RunResult, question: str, config: Config, options: dict[str, Any]) -> None:
    """The answer in a new file. Raises StoreError."""
    import json

    from nexi.output import answer_json, print_success

    text = answer_text(result)
    if options["as_json"]:
        text = json.dumps(answer_json(result, question, config.endpoint("answer").model), ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(
            f"the answer could not be written to {path}", cause=error.strerror or str(error), fix="nexi --prev shows the answer"
        ) from error
    print_success(f"The answer is in {path}.")


def copy_answer(result: RunResult) -> None:
    """The answer on the clipboard, or a warning that it is not there."""
    from nexi.cli.clipboard import copy
    from nexi.output import print_warning

    if not copy(answer_text(result)):
        print_warning(
            "the answer was not copied: there is no terminal to ask, and none of wl-copy, xclip, pbcopy and clip works here"
        )
