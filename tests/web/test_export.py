"""An answer as one file: nothing of it runs or loads, and its evidence, timeline and charts are inside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nexi.errors import NexiError
from nexi.web.page.export import timeline_svg, with_charts
from nexi.web.page.exports import TYPES, exported, suffix_of
from tests.web.world import MOON, QUESTION, serving

TABLE = (
    "<table><thead><tr><th>Body</th><th>Distance</th></tr></thead><tbody>"
    "<tr><td>Moon</td><td>384,400 km</td></tr><tr><td>Sun</td><td>149,600,000 km</td></tr></tbody></table>"
)


async def test_the_html_opens_alone_and_holds_the_evidence_and_the_timeline(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        nexi = served.app.state.nexi
        html = (await exported(nexi.runs(), nexi.pages(), run_id, "html")).decode()
        assert "<mark>The Moon is 384,400 km from Earth on average.</mark>" in html
        assert 'aria-label="Timeline of the run"' in html
        assert re.findall(r"<(script|img|iframe|link|object)\b", html) == []
        assert [url for url in re.findall(r'(?:src|href)="([^"]+)"', html) if not url.startswith(MOON)] == []


async def test_every_form_but_the_printed_one_is_made_without_help(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        for form in set(TYPES) - {"pdf"}:
            reply = await served.client.get(f"/page/runs/{run_id}/export?format={form}")
            name = f'attachment; filename="nexi-{run_id}.{suffix_of(form)}"'
            assert (reply.status_code, reply.headers["content-disposition"]) == (200, name)
            assert "384,400" in reply.text or MOON in reply.text
        assert json.loads((await served.client.get(f"/page/runs/{run_id}/export?format=json")).text)["question"] == QUESTION
        assert (await served.client.get(f"/page/runs/{run_id}/export?format=exe")).status_code == 400


async def test_without_a_browser_a_pdf_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        nexi = served.app.state.nexi
        with pytest.raises(NexiError, match="no PDF can be made here: Chromium is not installed"):
            await exported(nexi.runs(), nexi.pages(), run_id, "pdf")


def test_a_table_of_numbers_gets_a_chart_of_its_own_cells() -> None:
    made = with_charts(TABLE)
    assert made.startswith(TABLE)
    assert 'aria-label="Chart of Distance"' in made
    assert re.findall(r">(\d[\d.e+]*)</text>", made) == ["384400", "1.496e+08"]


@pytest.mark.parametrize("cells", ["red</td></tr><tr><td>b</td><td>blue", "-1</td></tr><tr><td>b</td><td>2", "1"])
def test_other_tables_get_none(cells: str) -> None:
    table = f"<table><tr><th>a</th><th>b</th></tr><tr><td>a</td><td>{cells}</td></tr></table>"
    assert with_charts(table) == table


def test_names_in_the_timeline_are_escaped() -> None:
    bar = {"who": "<b>", "lane": "page", "label": '"><script>', "start": 0.0, "end": 1.0, "failed": False}
    assert "<script>" not in timeline_svg([bar])
    assert "<b>" not in timeline_svg([bar])
