"""Report files: a finished piece of research as a Markdown document in the user's folder, under a new name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nexi.answers.citations import link_citations
from nexi.app.run import RunResult
from nexi.config import Config
from nexi.errors import ConfigError, StoreError
from nexi.events import RoundEvaluated
from nexi.files import create_private_file, store_error
from nexi.research.report import (
    LintedReport,
    SaveLocation,
    choose_folder,
    lint_report,
    make_file_name,
    render_document,
    render_front_matter,
)
from nexi.text.controls import clean_text

ATTEMPTS = 260  # as many as there are names for one question


def find_save_folder(config: Config) -> Path:
    """The vault of the settings. Raises ConfigError where there is none, before anything is spent."""
    folder = Path(config.vault).expanduser()
    if not config.vault or not folder.is_dir():
        cause = f"the folder {config.vault} does not exist" if config.vault else "the setting vault is empty"
        raise ConfigError("there is no vault to save to", cause=cause, fix="name its folder: nexi config set vault ~/Vault")
    return folder


def save_report(
    result: RunResult, cwd: Path, today: str, *, vault: Path | None = None, pick: Callable[[], tuple[int, int]] | None = None
) -> tuple[Path, tuple[str, ...]]:
    """Write the report of a run into the folder it belongs to, or as a note of a vault: its path, and what was corrected in it.
    Raises StoreError."""
    report = lint_report(result.answer.text, result.answer.sources, result.started.query)
    folder = vault
    if folder is None:
        folders: tuple[str, ...] = ()
        with suppress(OSError):
            folders = tuple(entry.name for entry in os.scandir(cwd) if entry.is_dir())
        folder = Path(choose_folder(SaveLocation(cwd, folders, Path.home(), Path(tempfile.gettempdir()))))
    fields, body = _front_matter_fields(result, today), link_citations(report.text, report.sources)
    if vault:
        fields |= {"tags": "nexi", "sources": len(report.sources)}
    for _ in range(ATTEMPTS):
        first, second = os.urandom(2)
        path = folder / make_file_name(result.started.query, *(pick() if pick else (first % 26, second % 10)))
        try:
            text = clean_text(render_document(body, report.sources, fields, "" if vault else str(path)))
            create_private_file(path, text.encode("utf-8", "replace"))
        except FileExistsError:
            continue
        except OSError as error:
            raise store_error("Could not save the report", path, error) from error
        return path, report.notes
    raise StoreError("Could not save the report", cause=f"every name for it is taken in {folder}", fix="use -o FILE")


def report_text(result: RunResult, today: str, *, has_links: bool = False) -> tuple[str, LintedReport]:
    """The report as a document without a place, for a door that shows or sends it; in a file its citations are links."""
    report = lint_report(result.answer.text, result.answer.sources, result.started.query)
    body = link_citations(report.text, report.sources) if has_links else report.text
    return render_document(body, report.sources, _front_matter_fields(result, today)), report


def front_matter_of(result: RunResult, today: str) -> str:
    """The front matter of an exported answer or report."""
    return render_front_matter(_front_matter_fields(result, today))


def _front_matter_fields(result: RunResult, today: str) -> dict[str, Any]:
    """The front matter: what was asked of whom, when, what it cost, and how much of it was checked."""
    started, end, review = result.started, result.finished, result.answer.review
    last_round = next((f for f in reversed(result.facts) if isinstance(f, RoundEvaluated)), None)
    return {
        "question": started.query,
        "model": started.model,
        "date": today,
        "run": result.id,
        "mode": started.mode,
        "cost_usd": None if end.usage.cost is None else round(end.usage.cost, 6),
        "tokens": end.usage.total,
        "seconds": end.seconds,
        "pages_read": end.pages,
        "model_calls": end.model_calls,
        "written_by": {"built-in": "passages"}.get(last_round.by, last_round.by) if last_round else None,
        "stopped_by": end.stop.value,
        "sentences_checked": len(review.proof.checked) if review else None,
        "sentences_found": review.proof.passed if review else None,
        "sentences_supported": review.proof.supported if review else None,
        "check_gap": (review.gap or None) if review else None,
    }
