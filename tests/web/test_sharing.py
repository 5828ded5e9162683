"""A link to a run for others: only where the owner allows it, for one run alone, and until it is taken back."""

from __future__ import annotations

import re
from pathlib import Path

from nexi.config import Config
from nexi.web.guard import GuardRules
from tests.web.world import serving

SECRET = "a-long-secret-of-the-test"


def sharing(home: Path) -> Config:
    return Config(home=home, model="extractive", share=True)


async def test_a_server_shares_nothing_unless_its_owner_allows_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask()
        await served.events(run_id)
        refused = await served.client.post(f"/page/runs/{run_id}/share")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
        assert (await served.client.get(f"/shared/{'a' * 32}")).status_code == 404


async def test_a_link_shows_one_run_without_scripts_until_it_is_taken_back(tmp_path: Path) -> None:
    async with serving(tmp_path, config=sharing(tmp_path)) as served:
        run_id = await served.ask()
        await served.events(run_id)
        path = (await served.client.post(f"/page/runs/{run_id}/share")).json()["path"]
        assert re.fullmatch(r"/shared/[A-Za-z0-9_-]{32}", path)
        assert (await served.client.post(f"/page/runs/{run_id}/share")).json()["path"] == path
        shown = await served.client.get(path)
        assert (shown.status_code, "384,400 km" in shown.text, "<script" in shown.text) == (200, True, False)
        assert shown.headers["content-security-policy"].startswith("default-src 'none'")
        assert shown.headers["x-robots-tag"] == "noindex, nofollow"
        item = (await served.client.get("/page/history")).json()["items"][0]
        assert item["share"] is True  # never the key
        assert (await served.client.get(path[:-1] + ("a" if path[-1] != "a" else "b"))).status_code == 404
        assert (await served.client.delete(f"/page/runs/{run_id}/share")).status_code == 204
        assert (await served.client.get(path)).status_code == 404


async def test_a_link_ends_with_its_run_and_what_has_no_answer_gets_none(tmp_path: Path) -> None:
    async with serving(tmp_path, config=sharing(tmp_path)) as served:
        run_id = await served.ask()
        await served.events(run_id)
        path = (await served.client.post(f"/page/runs/{run_id}/share")).json()["path"]
        await served.client.delete(f"/page/history/{run_id}")
        assert (await served.client.get(path)).status_code == 404
        assert (await served.client.post("/page/runs/aaaaaa/share")).status_code == 404


async def test_a_link_needs_no_token_and_making_one_does(tmp_path: Path) -> None:
    async with serving(tmp_path, config=sharing(tmp_path), rules=GuardRules(token=SECRET), token=SECRET) as served:
        run_id = await served.ask()
        await served.events(run_id)
        path = (await served.client.post(f"/page/runs/{run_id}/share")).json()["path"]
        del served.client.headers["authorization"]
        assert (await served.client.get(path)).status_code == 200
        assert (await served.client.post(f"/page/runs/{run_id}/share")).status_code == 401
        assert (await served.client.delete(f"/page/runs/{run_id}/share")).status_code == 401
