"""Where answers and reports go besides the screen: a file, the clipboard."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nexi import app, output
from nexi.cli.flags import OutputFlags
from nexi.config import Config, is_dumb_terminal
from nexi.errors import ConfigError, NexiError, StoreError
from nexi.files import create_private_file, expand_home, is_existing_path, translate_os_errors
from nexi.output import answer_json, clean_text, is_tty, print_json, print_note, print_success, print_warning
from nexi.output.streams import write_raw
from nexi.text.controls import escape_json
from nexi.types import Source

STDOUT = "-"
MARKDOWN_SUFFIXES = (".md", ".markdown")
CLIPBOARD_PROGRAMS = (("wl-copy",), ("xclip", "-selection", "clipboard"), ("pbcopy",), ("clip",))
CLIPBOARD_TIMEOUT_S = 5
MAX_ESCAPED_BYTES = 74_000  # terminals drop longer sequences


def output_path(flags: OutputFlags) -> Path | None:
    """The file for the answer. Raises ConfigError if it cannot be written, before a search costs money."""
    if flags.output is None or flags.output == STDOUT:
        return None
    path = expand_home(flags.output)
    try:
        is_taken = is_existing_path(path) or path.is_symlink()
    except OSError as error:
        cause = error.strerror or ""
        raise ConfigError(f"{flags.output[:80]} cannot be written", cause=cause, fix="choose another name") from error
    if is_taken:
        fix = "choose another name, or delete it"
        raise ConfigError(f"{path} already exists", cause="files are never overwritten", fix=fix, code="exists")
    if not path.parent.is_dir():
        cause, fix = f"the folder {path.parent} does not exist", f"create it: mkdir -p {path.parent}"
        raise ConfigError(f"cannot write {path}", cause=cause, fix=fix)
    return path


def answer_text(result: app.RunResult) -> str:
    from nexi.answers.citations import format_citations_section

    sources = result.answer.sources
    source_list = format_citations_section({s.number: s.url for s in sources}, url_to_title={s.url: s.title for s in sources})
    return f"{result.answer.text}\n" + (f"\n{source_list}\n" if source_list else "")


def reference_text(sources: Sequence[Source], form: str, access_date: str = "") -> str:
    """Format the sources as references. Raises NexiError if there are none."""
    from nexi.answers.bibliography import FORMS

    if not sources:
        raise NexiError("no references to export", cause="the answer cites no sources", code="not_found")
    return FORMS[form](sources, access_date)


def write_answer(path: Path, result: app.RunResult, question: str, flags: OutputFlags) -> None:
    from nexi.exports import markdown_document

    if flags.is_references:
        text = reference_text(result.answer.sources, flags.form)
    elif flags.as_json:
        text = escape_json(json.dumps(answer_json(result, question), ensure_ascii=False)) + "\n"
    elif path.suffix.lower() in MARKDOWN_SUFFIXES:
        text = markdown_document(result, _today())
    else:
        text = answer_text(result)
    try:
        write_text(path, text)
    except OSError as error:
        cause, fix = error.strerror or str(error), "nexi --prev shows the answer"
        raise StoreError(f"could not write the answer to {path}", cause=cause, fix=fix) from error
    print_success(f"Saved the answer to {path}.")


def write_text(path: Path, text: str) -> None:
    """Write a text without control characters to a new private file. Raises OSError, FileExistsError where there is one."""
    create_private_file(path, clean_text(text).encode("utf-8", "replace"))


def write_export(body: bytes, output: str, name: str = "the run") -> None:
    """Write to stdout or a new file. Raises StoreError."""
    if output == STDOUT:
        sys.stdout.buffer.write(body)
        return
    path = expand_home(output)
    with translate_os_errors("Could not write the export", path):
        try:
            create_private_file(path, body)
        except FileExistsError as error:
            fix = "choose another name with -o"
            raise StoreError(f"{path} already exists", cause="files are never overwritten", fix=fix) from error
    print_success(f"Saved {name} to {path}.")


def chosen_vault(config: Config, flags: OutputFlags) -> Path | None:
    """The vault for `--save vault`. Raises ConfigError if there is none."""
    from nexi.app.report import find_save_folder

    return find_save_folder(config) if flags.save == "vault" else None


def deliver_report(
    result: app.RunResult, flags: OutputFlags, screen: output.Screen, *, vault: Path | None = None, at_prompt: bool = False
) -> None:
    """Print a research report and save it: to --output, else where reports go; with `-o -` it is only printed."""
    from nexi.app.report import report_text

    if not flags.as_json:
        screen.finish(result)
    path = None if vault else output_path(flags)
    if path:
        text, lint = report_text(result, _today(), has_links=True)
        with translate_os_errors("Could not save the report", path):
            write_text(path, text)
        _print_saved(path, lint.notes)
    elif vault or flags.output != STDOUT:
        path = save_answer_report(result, vault)
    if flags.as_json:
        answer = answer_json(result)
        print_json({**answer, "report": str(path)} if path else answer)
    if flags.copy:
        copy_answer(result)
    if not flags.as_json:
        print_next_steps(result, at_prompt=at_prompt)


def save_answer_report(result: app.RunResult, vault: Path | None = None) -> Path | None:
    """Save an answer as a report, in the vault or where reports go by default, and print where; None if that fails."""
    from nexi.app.report import save_report

    try:
        path, notes = save_report(result, Path.cwd(), _today(), vault=vault)
    except StoreError as error:
        print_warning(f"{error}. {error.fix} To see the report: nexi --show {result.id}")
        return None
    _print_saved(path, notes)
    return path


def _print_saved(path: Path, notes: Sequence[str]) -> None:
    for note in notes:
        print_warning(f"in the report, {note}")
    print_success(f"Saved the report to {path}.")


def _today() -> str:
    from nexi.app.clock import SystemClock

    return SystemClock().now().date().isoformat()


def print_next_steps(result: app.RunResult, *, at_prompt: bool = False) -> None:
    """Print on a terminal the ID of the run and what can be done with the answer."""
    if not is_tty(sys.stderr):
        return
    first = min((source.number for source in result.answer.sources), default=0)
    slash = "/" if at_prompt else "nexi "
    steps = [f"{slash}evidence {first}", f"{slash}open {first}"] if first else []
    steps.append("/export html" if at_prompt else 'nexi -c "follow-up"')
    export = "" if at_prompt else f"\n  nexi export {result.id} --format html"
    print_note(" · ".join((f"Run {result.id}", *steps)) + export, None, "dim")


def copy_answer(result: app.RunResult) -> None:
    if not _copy_text(answer_text(result)):
        print_warning("the answer was not copied: there is no terminal, and none of wl-copy, xclip, pbcopy and clip works")


def _copy_text(text: str) -> bool:
    """Copy text to the clipboard, with an escape sequence on a terminal, else with a program; False if neither is possible."""
    import shutil
    from base64 import b64encode
    from subprocess import DEVNULL, SubprocessError, run

    data = text.encode("utf-8", "replace")
    terminal = next((stream for stream in (sys.stdout, sys.stderr) if is_tty(stream)), None)
    if terminal is not None and not is_dumb_terminal() and len(data) <= MAX_ESCAPED_BYTES:
        # OSC 52 sets the clipboard of a terminal, also over SSH
        write_raw(f"\x1b]52;c;{b64encode(data).decode('ascii')}\x07", terminal)
        return True
    for name, *arguments in CLIPBOARD_PROGRAMS:
        program = shutil.which(name)
        if program is None:
            continue
        with suppress(OSError, SubprocessError):
            # a fixed list of programs, found on the user's PATH
            run([program, *arguments], input=data, stdout=DEVNULL, stderr=DEVNULL, timeout=CLIPBOARD_TIMEOUT_S, check=True)  # noqa: S603
            return True
    return False
