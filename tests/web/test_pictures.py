"""Pictures of sources on the page: fetched by the server for runs that may have them, and for their own addresses alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nexi.app import SystemClock
from nexi.config import Config
from nexi.events import RunFinished, RunStarted
from nexi.runs.directory import RunDirectory
from nexi.types import Picture, PictureFile
from tests.web import samples
from tests.web.world import serving

PNG = b"\x89PNG\r\n\x1a\n"
CLIFF = Picture("https://cdn.example/cliff.png", "A cliff", "CC BY 4.0")


async def keep(home: Path, **started: Any) -> str:
    start, *others, end = samples.planets()
    assert isinstance(start, RunStarted)
    assert isinstance(end, RunFinished)
    first, second = end.sources
    pictured = tuple(replace(s, imprint=replace(s.imprint, picture=CLIFF)) for s in (first, second))
    runs = RunDirectory(home / "runs", home / "pages", clock=SystemClock())
    return await samples.keep(runs, [replace(start, **started), *others, replace(end, sources=pictured)])


def give_pictures(web: Any) -> list[str]:
    """Let the web of a test have every picture, and list which were fetched."""
    fetched: list[str] = []

    async def fetch_picture(url: str) -> PictureFile:
        fetched.append(url)
        return PictureFile("image/png", PNG)

    web.fetch_picture = fetch_picture
    return fetched


async def test_a_picture_comes_from_the_server_with_its_source_and_licence(tmp_path: Path) -> None:
    run_id = await keep(tmp_path)
    async with serving(tmp_path) as served:
        fetched = give_pictures(served.web)
        view = (await served.client.get(f"/page/runs/{run_id}")).json()
        assert view["pictures"] == [{"n": 1, "description": "A cliff", "licence": "CC BY 4.0", "host": "cdn.example"}]
        assert view["shows_pictures"] is True
        assert fetched == []
        sent = await served.client.get(f"/page/runs/{run_id}/picture?source=1")
        assert (sent.content, sent.headers["content-type"], fetched) == (PNG, "image/png", [CLIFF.url])
        assert sent.headers["x-content-type-options"] == "nosniff"
        assert "private" in sent.headers["cache-control"]
        for number in ("2", "9", "x", ""):
            assert (await served.client.get(f"/page/runs/{run_id}/picture?source={number}")).status_code == 404
        assert fetched == [CLIFF.url]


async def test_a_strict_answer_shows_its_pictures_when_it_is_asked_to(tmp_path: Path) -> None:
    run_id = await keep(tmp_path, settings={"strict": True})
    async with serving(tmp_path) as served:
        view = (await served.client.get(f"/page/runs/{run_id}")).json()
        assert (len(view["pictures"]), view["shows_pictures"]) == (1, False)


@pytest.mark.parametrize(("request_", "shown"), [({"scope": "local"}, True), ({}, False)])
async def test_a_local_run_and_a_server_that_shows_none_fetch_no_picture(
    tmp_path: Path, request_: dict[str, str], shown: bool
) -> None:
    run_id = await keep(tmp_path, request=request_)
    async with serving(tmp_path, config=Config(home=tmp_path, model="extractive", show_pictures=shown)) as served:
        fetched = give_pictures(served.web)
        assert (await served.client.get(f"/page/runs/{run_id}")).json()["pictures"] == []
        assert (await served.client.get(f"/page/runs/{run_id}/picture?source=1")).status_code >= 400
        assert fetched == []
