"""Where an answer goes besides the screen: a file, the clipboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexi.errors import ConfigError, NexiError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexi.app import RunResult
    from nexi.config import Config
    from nexi.types import Source

STDOUT = "-"
REFERENCES = ("ris", "bibtex", "csl")
MARKDOWN = (".md", ".markdown")


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
    from nexi.answers.citations import format_citations_section

    cited = result.answer.sources
    listed = format_citations_section({s.number: s.url for s in cited}, url_to_title={s.url: s.title for s in cited})
    return f"{result.answer.text}\n" + (f"\n{listed}\n" if listed else "")


def markdown_text(result: RunResult) -> str:
    """The same for a file of Markdown, with figures: an address opens its page where the evidence stands."""
    from nexi.output.proof import figures_line

    linked = [
        f"[{s.number}] {' '.join(s.title.split())} - [{s.url}]({s.link.replace('(', '%28').replace(')', '%29')})"
        for s in result.answer.sources
    ]
    figures = figures_line(result.answer.review)
    told = f"\n{figures}\n" if figures else ""
    if not all(s.link for s in result.answer.sources):
        return answer_text(result) + told
    return f"{result.answer.text}\n" + ("\nSources:\n" + "\n".join(linked) + "\n" if linked else "") + told


def wants_references(options: dict[str, Any]) -> bool:
    """Whether only the sources are wanted, in a form that other programs read."""
    return options.get("form") in REFERENCES


def reference_text(sources: Sequence[Source], form: str, accessed: str = "") -> str:
    """The sources as references. Raises NexiError where there are none."""
    from nexi.answers.bibliography import FORMS

    if not sources:
        raise NexiError("there are no references", cause="the answer cites no source", code="not_found")
    return FORMS[form](sources, accessed)


def print_references(sources: Sequence[Source], form: str, accessed: str = "") -> None:
    from nexi.output import write

    write(reference_text(sources, form, accessed))


def write_answer(path: Path, result: RunResult, question: str, config: Config, options: dict[str, Any]) -> None:
    """The answer in a new file. Raises StoreError."""
    import json

    from nexi.output import answer_json, print_success

    text = markdown_text(result) if path.suffix.lower() in MARKDOWN else answer_text(result)
    if wants_references(options):
        text = reference_text(result.answer.sources, options["form"])
    elif options["as_json"]:
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
