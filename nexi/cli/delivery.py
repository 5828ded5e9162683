"""Where answers and reports go besides the screen: a file, the clipboard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nexi.errors import ConfigError, NexiError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexi.app import RunResult
    from nexi.cli.flags import OutputFlags
    from nexi.config import Config
    from nexi.output import Screen
    from nexi.types import Source

STDOUT = "-"
MARKDOWN_SUFFIXES = (".md", ".markdown")


def output_path(flags: OutputFlags) -> Path | None:
    """The file for the answer. Raises ConfigError if it cannot be written, before a search costs money."""
    from nexi.files import is_existing_path

    if flags.output is None or flags.output == STDOUT:
        return None
    path = Path(flags.output).expanduser()
    try:
        is_taken = is_existing_path(path) or path.is_symlink()
    except OSError as error:
        cause = error.strerror or ""
        raise ConfigError(f"{flags.output[:80]} cannot be written", cause=cause, fix="choose another name") from error
    if is_taken:
        raise ConfigError(
            f"{path} already exists",
            cause="files are never overwritten",
            fix="choose another name, or delete it",
            code="exists",
        )
    if not path.parent.is_dir():
        raise ConfigError(
            f"cannot write {path}", cause=f"the folder {path.parent} does not exist", fix=f"create it: mkdir -p {path.parent}"
        )
    return path


def answer_text(result: RunResult) -> str:
    """The answer in Markdown, with its sources."""
    from nexi.answers.citations import format_citations_section

    sources = result.answer.sources
    source_list = format_citations_section({s.number: s.url for s in sources}, url_to_title={s.url: s.title for s in sources})
    return f"{result.answer.text}\n" + (f"\n{source_list}\n" if source_list else "")


def _reference_text(sources: Sequence[Source], form: str, access_date: str = "") -> str:
    """Format the sources as references. Raises NexiError if there are none."""
    from nexi.answers.bibliography import FORMS

    if not sources:
        raise NexiError("no references to export", cause="the answer cites no sources", code="not_found")
    return FORMS[form](sources, access_date)


def print_references(sources: Sequence[Source], form: str, access_date: str = "") -> None:
    from nexi.output import write

    write(_reference_text(sources, form, access_date))


def write_answer(path: Path, result: RunResult, question: str, flags: OutputFlags) -> None:
    """Write the answer to a new file. Raises StoreError."""
    import json

    from nexi.app.clock import SystemClock
    from nexi.cli.runner import model_of
    from nexi.exports import markdown_document
    from nexi.files import create_private_file
    from nexi.output import answer_json, clean_text, print_success
    from nexi.text.controls import escape_json

    if flags.is_references:
        text = _reference_text(result.answer.sources, flags.form)
    elif flags.as_json:
        text = escape_json(json.dumps(answer_json(result, question, model_of(result)), ensure_ascii=False)) + "\n"
    elif path.suffix.lower() in MARKDOWN_SUFFIXES:
        text = markdown_document(result, SystemClock().now().date().isoformat())
    else:
        text = answer_text(result)
    try:
        create_private_file(path, clean_text(text).encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError(
            f"could not write the answer to {path}", cause=error.strerror or str(error), fix="nexi --prev shows the answer"
        ) from error
    print_success(f"Saved the answer to {path}.")


def chosen_vault(config: Config, flags: OutputFlags) -> Path | None:
    """The vault for `--save vault`. Raises ConfigError if there is none."""
    from nexi.app.report import find_save_folder

    return find_save_folder(config) if flags.save == "vault" else None


def deliver_report(
    result: RunResult, flags: OutputFlags, screen: Screen, *, vault: Path | None = None, at_prompt: bool = False
) -> None:
    """Print a research report, save it, and print on stderr where."""
    from nexi.cli.runner import model_of, question_of
    from nexi.output import answer_json, print_json, print_success

    if not flags.as_json:
        screen.finish(result)
    path = _save_to_default_place(result, vault) if vault else _save_report(result, flags)
    if flags.as_json:
        answer = answer_json(result, question_of(result), model_of(result))
        print_json({**answer, "report": str(path)} if path else answer)
    if path:
        print_success(f"Saved the report to {path}.")
    if flags.copy:
        copy_answer(result)
    if not flags.as_json:
        print_next_steps(result, at_prompt=at_prompt)


def save_answer_report(result: RunResult, vault: Path | None = None) -> Path | None:
    """Save an answer as a report, in the vault or where reports go by default, and print where; None if that fails."""
    from nexi.output import print_success

    path = _save_to_default_place(result, vault)
    if path:
        print_success(f"Saved the report to {path}.")
    return path


def _save_report(result: RunResult, flags: OutputFlags) -> Path | None:
    """Save to --output, else where reports go by default; None with `-o -` or if the default place cannot be written."""
    from nexi.app.clock import SystemClock
    from nexi.app.report import report_text
    from nexi.files import create_private_file, store_error
    from nexi.output import clean_text

    if flags.output == STDOUT:
        return None
    path = output_path(flags)
    if not path:
        return _save_to_default_place(result)
    text, lint = report_text(result, SystemClock().now().date().isoformat(), has_links=True)
    try:
        create_private_file(path, clean_text(text).encode("utf-8", "replace"))
    except OSError as error:
        raise store_error("Could not save the report", path, error) from error
    _print_notes(lint.notes)
    return path


def _save_to_default_place(result: RunResult, vault: Path | None = None) -> Path | None:
    from nexi.app.clock import SystemClock
    from nexi.app.report import save_report
    from nexi.output import print_warning

    try:
        report = save_report(result, Path.cwd(), SystemClock().now().date().isoformat(), vault=vault)
    except StoreError as error:
        print_warning(f"{error}. {error.fix} To see the report: nexi --show {result.id}")
        return None
    _print_notes(report.notes)
    return report.path


def _print_notes(notes: Sequence[str]) -> None:
    from nexi.output import print_warning

    for note in notes:
        print_warning(f"in the report, {note}")


def print_next_steps(result: RunResult, *, at_prompt: bool = False) -> None:
    """Print on a terminal the ID of the run and what can be done with the answer."""
    from nexi.output import is_tty, print_note

    if not is_tty(sys.stderr):
        return
    first = min((source.number for source in result.answer.sources), default=0)
    slash = "/" if at_prompt else "nexi "
    steps = [f"{slash}evidence {first}", f"{slash}open {first}"] if first else []
    steps.append("/export html" if at_prompt else 'nexi -c "follow-up"')
    export = "" if at_prompt else f"\n  nexi export {result.id} --format html"
    print_note(" · ".join((f"Run {result.id}", *steps)) + export, None, "dim")


def copy_answer(result: RunResult) -> None:
    """Copy the answer to the clipboard, or warn that it could not be copied."""
    from nexi.cli.clipboard import copy_text
    from nexi.output import print_warning

    if not copy_text(answer_text(result)):
        print_warning("the answer was not copied: there is no terminal, and none of wl-copy, xclip, pbcopy and clip works")
