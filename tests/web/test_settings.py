"""Settings in the browser: read without keys, tested, saved, and used by the next run without a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from nexi.config import Config, change_config, load_config
from nexi.doctor import Check
from rig import scripted_llm
from tests.web.world import Served, serving

KEY = "sk-very-secret-0123456789"


async def post(served: Served, path: str, changes: dict[str, Any], status: int = 200) -> Any:
    reply = await served.client.post(path, json=changes)
    assert reply.status_code == status, reply.text
    return reply.json()


async def test_settings_are_shown_without_a_key_or_a_part_of_one(tmp_path: Path) -> None:
    config = Config(home=tmp_path, base_url=f"https://me:{KEY}@models.example/v1?key={KEY}", api_key=KEY, model="moon-1")
    async with serving(tmp_path, config=config) as served:
        reply = await served.client.get("/page/settings")
    assert KEY not in reply.text
    shown = reply.json()
    assert (shown["values"]["base_url"], shown["values"]["model"]) == ("https://models.example/v1", "moon-1")
    assert (shown["has"], shown["editable"]) == ({"api_key": True, "jina_key": False}, True)


async def test_what_is_saved_is_used_at_once_and_kept_in_the_file(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        with scripted_llm.serve() as root:
            typed = {"base_url": f"{root}/v1", "api_key": KEY}
            listed = await post(served, "/page/settings/models", typed)
            assert listed == {"models": ["scripted"], "problem": ""}
            saved = await post(served, "/page/settings", {**typed, "model": "scripted", "max_cost": 0.5})
        assert KEY not in json.dumps(saved)
        assert (saved["values"]["model"], saved["values"]["max_cost"], saved["has"]["api_key"]) == ("scripted", 0.5, True)
        parts = (await served.client.get("/page/setup")).json()["parts"]
        assert parts[0]["value"].startswith("scripted at 127.0.0.1")
        file = Path(saved["file"])
        kept = json.loads(file.read_text())
        assert (kept["model"], kept["api_key"], kept["max_cost"]) == ("scripted", KEY, 0.5)
        assert file.stat().st_mode & 0o777 == 0o600
        again = await post(served, "/page/settings", {"max_cost": None})
        assert (again["values"]["max_cost"], again["values"]["model"], again["has"]["api_key"]) == (None, "scripted", True)
        assert "max_cost" not in json.loads(file.read_text())


async def test_ports_that_were_given_stay_when_settings_are_saved(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        nexi = served.app.state.nexi
        before = (nexi.ports, nexi.ports.backends(), nexi.ports.fetchers())
        await post(served, "/page/settings", {})
        assert (nexi.ports, nexi.ports.backends(), nexi.ports.fetchers()) == before
        await post(served, "/page/settings", {"max_cost": 0.5})
        assert nexi.ports is not before[0]
        assert (nexi.ports.backends(), nexi.ports.fetchers()) == before[1:]


async def test_a_stored_key_goes_to_no_other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[tuple[str, str]] = []

    async def examine(config: Config) -> tuple[Check, ...]:
        tested.append((config.base_url, config.api_key))
        return (Check("model", True, "it answers"),)

    monkeypatch.setattr("nexi.doctor.examine_settings", examine)
    config = Config(home=tmp_path, base_url="https://models.example/v1", api_key=KEY)
    async with serving(tmp_path, config=config) as served:
        found = await post(served, "/page/settings/test", {"base_url": "https://models.example/v2"})
        await post(served, "/page/settings/test", {"base_url": "https://elsewhere.example/v1"})
    assert [check["message"] for check in found["checks"]] == ["it answers"]
    assert tested == [("https://models.example/v2", KEY), ("https://elsewhere.example/v1", "")]


@contextmanager
def recording() -> Iterator[tuple[str, list[str | None]]]:
    """The address of a model server of somebody else, and the Authorization of every request to it."""
    sent: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("authorization"))
            body = b'{"data": [{"id": "scripted"}]}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


OWN = "https://models.example/v1"
KEYED = {
    "base_url": OWN,
    "api_key": KEY,
    "model": "scripted",
    "searxng_url": "http://127.0.0.1:9",
    "embedding_model": "vectors",
    "api_keys": {"llm": [f"{KEY}-llm"], "openai": [f"{KEY}-openai"]},
    "roles": {"judge": {"api_key": f"{KEY}-judge"}},
}
KEYS_OF_ENVIRONMENT = {name: f"{KEY}-{name}" for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "NEXI_EMBEDDING_API_KEY")}


def load_keyed(home: Path, **settings: Any) -> Config:
    change_config({**KEYED, **settings}, path=home / "config.json")
    return load_config(home / "config.json", KEYS_OF_ENVIRONMENT)


def all_keys(config: Config) -> set[str]:
    embedding = config.embedding_endpoint()
    endpoints = (*(config.endpoint(role) for role in ("answer", "extract", "judge")), *((embedding,) if embedding else ()))
    return {key for endpoint in endpoints for key in endpoint.api_keys}


@pytest.mark.parametrize("settings", [{}, {"api_key": ""}, {"api_key": "", "base_url": "https://openrouter.ai/api/v1"}])
async def test_no_key_follows_an_address_from_the_browser(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = load_keyed(tmp_path, **settings)
    assert len(all_keys(config)) > 2
    with recording() as (address, sent):
        async with serving(tmp_path, config=config) as served:
            typed = {"base_url": address, "model": "scripted"}
            assert (await post(served, "/page/settings/models", typed))["models"] == ["scripted"]
            await post(served, "/page/settings/test", typed)
            tried = len(sent)
            await post(served, "/page/settings", typed)
            await post(served, "/page/settings", {**typed, "max_cost": 0.5})
            await post(served, "/page/settings/models", {})
            await post(served, "/page/settings/test", {})
            assert all_keys(served.app.state.nexi.config) == set()
        assert 1 < tried < len(sent)
        assert set(sent) == {None}
    restarted = load_config(config.config_path, KEYS_OF_ENVIRONMENT)
    assert (restarted.base_url, restarted.api_key, all_keys(restarted)) == (address, "", set())


async def test_a_key_that_is_typed_with_an_address_goes_there_alone(tmp_path: Path) -> None:
    config = load_keyed(tmp_path)
    with recording() as (address, sent):
        async with serving(tmp_path, config=config) as served:
            typed = {"base_url": address, "api_key": "sk-typed-0123456789"}
            await post(served, "/page/settings/models", typed)
            await post(served, "/page/settings", typed)
            await post(served, "/page/settings/models", {})
    assert sent == ["Bearer sk-typed-0123456789"] * 2
    restarted = load_config(config.config_path, KEYS_OF_ENVIRONMENT)
    assert restarted.endpoint("answer").api_keys == ("sk-typed-0123456789",)


async def test_an_address_of_a_known_service_gets_the_keys_of_that_service(tmp_path: Path) -> None:
    config = load_keyed(tmp_path)
    async with serving(tmp_path, config=config) as served:
        await post(served, "/page/settings", {"base_url": "https://api.openai.com/v1"})
    restarted = load_config(config.config_path, KEYS_OF_ENVIRONMENT)
    assert all_keys(restarted) == {KEYS_OF_ENVIRONMENT["OPENAI_API_KEY"], f"{KEY}-openai"}


async def test_an_address_from_the_browser_gets_keys_again_once_its_owner_sets_it_by_hand(tmp_path: Path) -> None:
    config = load_keyed(tmp_path, api_key="")
    async with serving(tmp_path, config=config) as served:
        await post(served, "/page/settings", {"base_url": "https://elsewhere.example/v1"})
    path = config.config_path
    assert all_keys(load_config(path, KEYS_OF_ENVIRONMENT)) == set()
    in_environment = load_config(path, {**KEYS_OF_ENVIRONMENT, "OPENAI_BASE_URL": "https://elsewhere.example/v1"})
    assert in_environment.endpoint("extract").api_keys == (KEYS_OF_ENVIRONMENT["OPENAI_API_KEY"], f"{KEY}-llm")
    change_config({"base_url": "https://elsewhere.example/v1"}, path=path)
    assert load_config(path, KEYS_OF_ENVIRONMENT).endpoint("extract").api_keys == in_environment.endpoint("extract").api_keys


async def test_a_key_of_the_file_does_not_follow_the_address_of_the_environment_into_the_file(tmp_path: Path) -> None:
    change_config({"base_url": OWN, "api_key": KEY}, path=tmp_path / "config.json")
    config = load_config(tmp_path / "config.json", {"OPENAI_BASE_URL": "https://elsewhere.example/v1"})
    async with serving(tmp_path, config=config) as served:
        await post(served, "/page/settings", {"base_url": "https://elsewhere.example/v1"})
    restarted = load_config(config.config_path, {})
    assert (restarted.base_url, restarted.api_key) == ("https://elsewhere.example/v1", "")


@pytest.mark.parametrize("changes", [{"base_url": "nowhere"}, {"max_cost": -1}, {"token": "x"}, {"default_effort": "xl"}, []])
async def test_a_value_that_cannot_be_used_is_refused_and_changes_nothing(tmp_path: Path, changes: Any) -> None:
    async with serving(tmp_path) as served:
        before = (await served.client.get("/page/settings")).json()
        reply = await served.client.post("/page/settings", json=changes)
        assert 400 <= reply.status_code < 500, reply.text
        assert (await served.client.get("/page/settings")).json() == before
        assert not Path(before["file"]).exists()


async def test_a_page_of_another_site_cannot_change_settings(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for headers, status in (({"origin": "https://evil.example"}, 403), ({"host": "evil.example"}, 421)):
            reply = await served.client.post("/page/settings", json={"model": "evil"}, headers=headers)
            assert reply.status_code == status, headers
        assert (await served.client.get("/page/settings")).json()["values"]["model"] != "evil"


async def test_a_server_of_several_processes_or_people_has_no_settings_to_change(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.app.state.edits_settings = False
        assert (await served.client.get("/page/settings")).json()["editable"] is False
        for path in ("/page/settings", "/page/settings/models", "/page/settings/test"):
            refused = await post(served, path, {"model": "x"}, 403)
            assert refused["error"]["code"] == "not_editable"
