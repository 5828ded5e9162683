"""`nexi export ID --format`: the very files that the page saves, never over another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import SystemClock
from nexi.exports import export_run
from nexi.runs.directory import RunDirectory
from tests.cli.command import Command
from tests.web import samples


def kept(home: Path, sample: str) -> tuple[RunDirectory, str]:
    runs = RunDirectory(home / "runs", home / "pages", clock=SystemClock())
    return runs, asyncio.run(samples.keep(runs, samples.SAMPLES[sample]()))


@pytest.mark.parametrize("form", sorted(set(EXPORT_FORMATS) - {"pdf", "docx"}))
def test_a_form_is_written_as_the_page_writes_it_and_only_once(nexi: Command, form: str) -> None:
    runs, run_id = kept(nexi.home, "planets")
    assert nexi("export", run_id, "--format", form).code == 0
    file = Path(f"nexi-{run_id}.{EXPORT_FORMATS[form].suffix}")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_bytes() == asyncio.run(export_run(runs, runs.pages, run_id, form))
    again = nexi("export", run_id, "--format", form)
    assert (again.code, "already exists" in again.err) == (1, True)


def test_what_cannot_be_exported_is_said_with_what_to_do(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    _, run_id = kept(nexi.home, "bare")
    pdf, ris = nexi("export", run_id, "--format", "pdf"), nexi("export", run_id, "--format", "ris")
    assert (pdf.code, "apt install chromium" in pdf.err) == (1, True)
    assert (ris.code, "export md" in ris.err) == (1, True)
    assert list(Path().iterdir()) == []
