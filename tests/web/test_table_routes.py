"""`POST /v1/table`: values of pages by columns, for the owner alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.world import MOON, serving


async def test_a_page_gives_its_values_with_quotes(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        body = {"columns": ["How far is the Moon from Earth on average?"], "documents": [MOON]}
        reply = await served.client.post("/v1/table", json=body)
    (row,) = reply.json()["rows"]
    assert (reply.status_code, reply.json()["schema"], row["url"]) == (200, "nexi-table-1", MOON)
    assert "384,400 km" in row["cells"][0]["quote"]


async def test_every_form_is_served_with_its_type(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        types = {
            form: (
                await served.client.post("/v1/table", json={"columns": ["distance"], "documents": [MOON], "format": form})
            ).headers["content-type"]
            for form in ("md", "csv", "xlsx", "json")
        }
    assert {form: kind.partition(";")[0] for form, kind in types.items()} == {
        "md": "text/markdown",
        "csv": "text/csv",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "json": "application/json",
    }


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"columns": [], "documents": [MOON]},
        {"columns": ["price"], "documents": ["/etc/passwd"]},
        {"columns": [" "], "documents": [MOON]},
        {"columns": ["price"], "documents": [MOON], "only_local": True},
    ],
)
async def test_a_body_that_names_no_column_no_document_or_a_file_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post("/v1/table", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"]
