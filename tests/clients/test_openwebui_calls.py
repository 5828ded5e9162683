"""Open WebUI's external search and loader, as its code calls them (`requests`, a bearer key), against a real server."""

from __future__ import annotations

from pathlib import Path

from nexi.web.guard import GuardRules
from tests.clients.programs import OPENWEBUI, needs_clients, needs_openwebui, run
from tests.web.world import MOON, PAGES, serving

TOKEN = "a-token-for-clients"
PROGRAM = """
import json, sys
import requests

base, token, page = sys.argv[1:]

def posted(path, body, key=token):
    headers = {"User-Agent": "Open WebUI (https://github.com/open-webui/open-webui) RAG Bot", "Authorization": "Bearer " + key}
    response = requests.post(base + path, headers=headers, json=body)
    try:
        response.raise_for_status()
    except requests.HTTPError:
        return [response.status_code, response.json()]
    return response.json()

print(json.dumps({
    "search": posted("/openwebui/search", {"query": "moon distance", "count": 1}),
    "load": posted("/openwebui/load", {"urls": [page, page + "/nothing"]}),
    "unreadable": posted("/openwebui/load", {"urls": [page + "/nothing"]}),
    "wrong key": posted("/openwebui/search", {"query": "moon", "count": 1}, "wrong")[0],
}))
"""


@needs_clients
async def test_open_webui_searches_and_loads(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(PROGRAM, served.base, TOKEN, MOON)
    assert told == {
        "search": [{"link": MOON, "title": "Moon facts", "snippet": PAGES[MOON]}],
        "load": [{"page_content": PAGES[MOON], "metadata": {"source": MOON, "title": "Moon facts"}}],
        "unreadable": [422, {"detail": "no page could be read: the page does not exist"}],
        "wrong key": 401,
    }


OWN_CODE = """
import json, sys
from open_webui.retrieval.loaders.external_web import ExternalWebLoader

base, token, page = sys.argv[1:]
loader = ExternalWebLoader([page, page + "/nothing"], base + "/openwebui/load", token, continue_on_failure=False)
print(json.dumps([[document.page_content, document.metadata] for document in loader.lazy_load()]))
"""


@needs_openwebui
async def test_open_webuis_own_loader_reads_pages_where_it_is_installed(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(OWN_CODE, served.base, TOKEN, MOON, python=OPENWEBUI)
    assert told == [[PAGES[MOON], {"source": MOON, "title": "Moon facts"}]]
