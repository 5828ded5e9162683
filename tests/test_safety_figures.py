"""docs/safety.md gives figures; each is the one that the code keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evals import bodies, format_bodies
from nexi.apis.search import schema
from nexi.apis.tavily import MAX_EXTRACT_S
from nexi.app.components import MAX_LONG_PAGE_BYTES, MAX_LONG_PAGE_CHARS
from nexi.config import Config
from nexi.fetchers import Settings
from nexi.fetchers.apart import MAX_WORKERS
from nexi.formats import _containers, ocr, sheets, worker
from nexi.runs.session import MAX_PAGES_PER_HOST
from nexi.testing import FakeClock
from nexi.types import FetchLimits
from nexi.web.fences import RUN_BY_PROGRAMS
from nexi.web.guard import MAX_HEAD_BYTES

SAFETY = " ".join((Path(__file__).resolve().parents[1] / "docs" / "safety.md").read_text().split())
PACING = Settings(clock=FakeClock())
WORDS = {1: "one", 2: "two"}
FIGURES = (
    f"at most {MAX_PAGES_PER_HOST} of one host",
    f"At most {MAX_LONG_PAGE_BYTES:,} bytes of a page are read",
    f"at most {MAX_LONG_PAGE_CHARS:,} characters of its text are kept",
    f"at most {FetchLimits().max_redirects} redirects",
    f"ends after {FetchLimits().timeout_s:.0f} seconds in total, or after `fetch_timeout`",
    f"ends after {Config().fetch_timeout:.0f} seconds in total",
    f"`/v1/search` may allow up to {schema.MAX_REDIRECTS} redirects and {schema.MAX_TIME_MS / 1000:.0f} seconds",
    f"`/tavily/extract` up to {MAX_EXTRACT_S} seconds",
    f"{worker.MAX_CPU_S} seconds of computing time",
    f"read {WORDS[MAX_WORKERS['web']]} at a time and your own files {WORDS[MAX_WORKERS['file']]} at a time",
    f"{_containers.MAX_MEMBERS:,} parts, {_containers.MAX_BYTES // 1_000_000} MB once unpacked",
    f"{_containers.MAX_ELEMENTS:,} elements in a part ({sheets.MAX_SHEET_ELEMENTS:,} in a sheet)",
    f"{sheets.MAX_CELLS:,} cells in a workbook",
    f"{_containers.MAX_DEPTH} levels, {_containers.MAX_ATTRIBUTES} attributes for one element",
    f"up to {worker.RECOGNITION_BYTES // 1_000_000} MB more address space, {ocr.MAX_PAGE_S:.0f} seconds for each page",
    f"{ocr.MAX_DOCUMENT_S['web']:.0f} seconds for a document from the web",
    f"{ocr.MAX_DOCUMENT_S['file'] / 60:.0f} minutes for one of your own",
    f"at most {PACING.per_host_burst} requests in a burst and then {PACING.per_host_rate:.0f} per second",
    f"what {len(bodies.BODIES)} hostile documents cost; {len(format_bodies.BODIES)} of them are of the newer formats",
    f"A head over {MAX_HEAD_BYTES // 1024} kB gets status 431",
)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_of_the_rules_is_the_one_that_holds(figure: str) -> None:
    assert figure in SAFETY


def test_the_names_of_code_that_programs_run_are_in_the_list() -> None:
    names = re.search(r"a block named (.*?) or the like", SAFETY)
    assert names
    assert set(re.findall(r"`([^`]+)`", names[1])) <= RUN_BY_PROGRAMS


def test_every_http_server_takes_requests_in_the_strict_way() -> None:
    package = Path(__file__).resolve().parents[1] / "nexi"
    makers = ("uvicorn.Config(", "uvicorn.run(", "start_server(")
    assert {
        str(path.relative_to(package)): maker for path in package.rglob("*.py") for maker in makers if maker in path.read_text()
    } == {
        "web/server.py": "uvicorn.Config(",
        "fetchers/browser/gateway.py": "start_server(",
    }  # the latter is a proxy for a browser
