"""local_drive - drives every route, MCP tool, command and the page with scope local, and counts what leaves loopback.

  python -m rig.local_drive              zero may leave; exit 1 names what did
  python -m rig.local_drive --one-call   the same list with a limit of one model call: no request is followed by a second

It runs in a network namespace of its own (`unshare -n`), where the model, the embedder and the search service are at a public
address of an interface that leads nowhere. A request that reaches them is counted by their server; anything for another address
leaves through the interface, whose counter of packets is read. Routes come from /openapi.json and from the page's own list: one
that has no entry here, or is refused and so shows nothing, fails the drive. It says so and ends with 0 where namespaces are not
allowed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.egress import NOTE, QUESTION, ROOT, SECRET, Tree
from rig.served import Server

REMOTE = "93.184.216.34"
INTERFACE = "far"
INSIDE = "NEXI_DRIVE_INSIDE"
PATIENCE_S = 120
SETTLE_S = 0.2
QUIET = (  # what a browser sends of its own accord is not the page's
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
BROWSER_SETTLE_S = 4.0  # the kernel asks for the place of an address three times, a second apart
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
TITLE_TASK = f"### Task:\nGenerate a title.\n<chat_history>\nUSER: {NOTE}\n</chat_history>"

# Method and path: (kind, body). "local" must send nothing; "web" has no scope to ask for, so that only the note must stay here.
Entry = tuple[str, Any]
WAITING_RUN = {"question": QUESTION, "mode": "research", "options": {"only_local": True, "plan": True}}
# What a route needs instead of a finished run: one that waits with its plan, one that was stopped, one to lose, a shared one.
NEEDS: Mapping[str, str] = {
    "post /v1/runs/{id}/plan": "waiting",
    "post /v1/runs/{id}/stop": "waiting",
    "post /v1/runs/{id}/cancel": "waiting",
    "post /v1/runs/{id}/resume": "stopped",
    "delete /v1/runs/{id}": "own",
    "delete /v1/responses/{id}": "own",
    "delete /page/history/{id}": "own",
    "delete /page/runs/{id}/share": "shared",
    "get /shared/{key}": "shared",
}
# What a server of one person, a run of scope local, one in the foreground and a space that is still empty do not have.
ABSENT = {
    "delete /v1/spaces/{name}/sources": 404,
    "get /v1/spaces/{name}/shares": 404,
    "put /v1/spaces/{name}/shares": 404,
    "get /page/runs/{id}/picture": 404,
    "post /v1/responses/{id}/cancel": 400,
}
LOCAL_RUN = {"question": QUESTION, "options": {"only_local": True}}
ROUTES: Mapping[str, Entry] = {
    "post /v1/runs": ("local", LOCAL_RUN),
    "get /v1/runs": ("local", None),
    "get /v1/runs/{id}": ("local", None),
    "get /v1/runs/{id}/events": ("local", None),
    "get /v1/runs/{id}/result": ("local", None),
    "post /v1/runs/{id}/resume": ("local", {}),
    "post /v1/runs/{id}/plan": ("local", {"tasks": [QUESTION]}),
    "post /v1/runs/{id}/stop": ("local", {}),
    "post /v1/runs/{id}/cancel": ("local", {}),
    "delete /v1/runs/{id}": ("last", None),
    "post /v1/chat/completions": ("local", {"model": "nexi-local", "messages": [{"role": "user", "content": QUESTION}]}),
    "get /v1/models": ("local", None),
    "get /v1/models/{model}": ("local", None),
    "post /v1/responses": ("local", {"model": "nexi-local", "input": QUESTION}),
    "get /v1/responses/{id}": ("local", None),
    "get /v1/responses/{id}/input_items": ("local", None),
    "post /v1/responses/{id}/cancel": ("local", {}),
    "delete /v1/responses/{id}": ("last", None),
    "post /v1/completions": ("local", {"model": "nexi-local", "prompt": QUESTION}),
    "post /v1/embeddings": ("web", {"model": "nexi-embed", "input": "words"}),
    "post /v1/search": ("web", {"query": "moon"}),
    "post /v1/snippet_rank": ("web", {"query": "moon", "candidates": [{"id": "1", "text": "the Moon"}]}),
    "post /v1/verify": ("local", {"text": NOTE, "only_local": True}),
    "post /v1/table": ("local", {"columns": ["port"], "documents": ["file:note.txt"], "only_local": True}),
    "get /v1/spaces": ("local", None),
    "post /v1/spaces": ("local", {"name": "drive", "scope": "local"}),
    "get /v1/spaces/{name}": ("local", None),
    "patch /v1/spaces/{name}": ("local", {"effort": "s"}),
    "get /v1/spaces/{name}/sources": ("local", None),
    "post /v1/spaces/{name}/sources": ("web", {"urls": [f"http://{REMOTE}:8124/"]}),
    "delete /v1/spaces/{name}/sources": ("local", "url=file:note.txt"),
    "get /v1/spaces/{name}/shares": ("local", None),
    "put /v1/spaces/{name}/shares": ("local", {"team": False}),
    "delete /v1/spaces/{name}": ("last", None),
    "post /v1/cache/clear": ("local", {}),
    "get /searxng/search": ("web", "q=moon&format=json"),
    "post /searxng/search": ("web", "q=moon&format=json"),
    "get /searxng/": ("web", "q=moon&format=json"),
    "post /searxng/": ("web", "q=moon&format=json"),
    "get /searxng": ("web", "q=moon&format=json"),
    "post /searxng": ("web", "q=moon&format=json"),
    "get /searxng/config": ("local", None),
    "get /searxng/healthz": ("local", None),
    "post /tavily/search": ("web", {"query": "moon"}),
    "post /tavily/extract": ("web", {"urls": [f"http://{REMOTE}:8124/"]}),
    "post /tavily/crawl": ("web", {"url": f"http://{REMOTE}:8124/"}),
    "post /tavily/map": ("web", {"url": f"http://{REMOTE}:8124/"}),
    "post /tavily/research": ("web", {"input": "moon"}),
    "get /tavily/research/{id}": ("local", None),
    "post /openwebui/search": ("web", {"query": "moon", "count": 1}),
    "post /openwebui/load": ("web", {"urls": [f"http://{REMOTE}:8124/"]}),
    "get /healthz": ("local", None),
    "get /readyz": ("local", None),
    "get /metrics": ("local", None),
    "get /openapi.json": ("local", None),
}
PAGE_ROUTES: Mapping[str, Entry] = {
    "get /": ("local", None),
    "get /runs/{id}": ("local", None),
    "get /spaces/{name}": ("local", None),
    "get /history": ("local", None),
    "get /knowledge": ("local", None),
    "get /setup": ("local", None),
    "get /check": ("local", None),
    "get /page/check": ("local", None),
    "get /table": ("local", None),
    "get /page/table": ("local", None),
    "post /page/check": ("local", {"text": NOTE, "only_local": True}),
    "get /static/sentences": ("local", None),
    "get /static/opensearch.xml": ("local", None),
    "get /static/{name}": ("local", None),
    "post /page/open-question": ("local", {**LOCAL_RUN, "mode": "research"}),
    "post /page/render": ("local", {"text": "words"}),
    "get /page/runs/{id}": ("local", None),
    "get /page/runs/{id}/picture": ("local", "source=1"),
    "get /page/runs/{id}/passage": ("local", "source=1&start=0&end=20"),
    "get /page/runs/{id}/export": ("local", "format=html"),
    "get /page/form": ("local", None),
    "get /page/models": ("web", None),  # lists the models of the endpoint: no text is sent
    "post /page/files": ("web", NOTE),  # its vectors come from the embedder that the owner named
    "get /page/runs/{id}/suggestions": ("local", None),
    "get /page/history": ("local", None),
    "get /suggest": ("local", "q=shed"),
    "get /page/history/{id}": ("local", None),
    "post /page/history/{id}": ("local", {"pinned": True}),
    "delete /page/history/{id}": ("last", None),
    "patch /page/history/{id}": ("local", {"pinned": True}),
    "get /page/runs/{id}/thread": ("local", None),
    "get /page/knowledge": ("local", None),
    "get /page/knowledge/find": ("local", "q=shed+key"),
    "post /page/knowledge/forget": ("last", None),  # with the address of what is stored
    "get /page/setup": ("local", None),
    "post /page/doctor": ("web", {}),
    "get /page/settings": ("local", None),
    "post /page/settings": ("local", {"default_effort": "s"}),
    "post /page/settings/models": ("web", {}),
    "post /page/settings/test": ("web", {}),
    "post /page/runs/{id}/share": ("local", {}),
    "delete /page/runs/{id}/share": ("last", None),
    "get /shared/{key}": ("local", None),
    "get /page/runs/{id}/timeline": ("local", None),
}
MORE: tuple[tuple[str, str, Any], ...] = (
    ("focus local", "/v1/runs", {"question": QUESTION, "options": {"focus": "local"}}),
    ("research", "/v1/runs", {**LOCAL_RUN, "mode": "research"}),
    ("agentic", "/v1/runs", {**LOCAL_RUN, "mode": "agentic"}),
    ("title task", "/v1/chat/completions", {"model": "nexi-local", "messages": [{"role": "user", "content": TITLE_TASK}]}),
    (
        "JSON",
        "/v1/chat/completions",
        {"model": "nexi-local", "messages": [{"role": "user", "content": QUESTION}], "response_format": SCHEMA},
    ),
)


class Wire:
    """What reached the remote address, and the packets that left for any other."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    def packets(self) -> int:
        rows = (line.split(":") for line in Path("/proc/net/dev").read_text().splitlines() if ":" in line)
        return next(int(counts.split()[9]) for name, counts in rows if name.strip() == INTERFACE)

    @contextmanager
    def serve(self) -> Iterator[None]:
        wire = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def _answer(self, body: str) -> None:
                wire.requests.append((f"{self.command} {self.path}", body))
                reply = json.dumps(_reply_to(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                return

        servers = [http.server.ThreadingHTTPServer((REMOTE, port), Handler) for port in (8123, 8124)]
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        for server in servers:
            server.shutdown()


def _reply_to(path: str, body: str) -> dict[str, Any]:
    if path.endswith("/embeddings"):
        texts = json.loads(body)["input"]
        return {"data": [{"index": i, "embedding": [0.5] * 4} for i, _ in enumerate(texts)], "usage": {"prompt_tokens": 5}}
    if not body:
        return {"data": [{"id": "remote"}], "results": [], "query": "moon"}
    message = {"role": "assistant", "content": "Nobody knows."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "1", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


class Drive:
    """One pass over everything; `problems` names what must not have happened."""

    def __init__(self, wire: Wire, tree: Tree, *, is_one_call: bool) -> None:
        self.wire, self.tree, self.is_one_call = wire, tree, is_one_call
        self.problems: list[str] = []
        self.statuses: dict[str, int] = {}  # what each route answered
        self.run_id, self.token, self.base = "", "", ""

    @contextmanager
    def watch(self, name: str, kind: str) -> Iterator[None]:
        before, packets = len(self.wire.requests), self.wire.packets()
        yield
        time.sleep(SETTLE_S)
        sent = self.wire.requests[before:]
        left = self.wire.packets() - packets
        asked = [path for path, body in sent if path.startswith("POST") and not path.endswith("/embeddings")]
        with_note = sum(SECRET in body for _, body in sent)
        status = self.statuses.get(name, "")
        print(f"| {name} | {kind} | {status} | {len(sent)} | {with_note} | {left} |", flush=True)
        if self.is_one_call and len(asked) > 1:
            self.problems.append(f"{name}: {len(asked)} model calls with a limit of one: {asked}")
        if not self.is_one_call and kind != "web" and (sent or left):
            self.problems.append(f"{name}: {[path for path, _ in sent]} and {left} packets left this machine")
        if not self.is_one_call and with_note and name != "post /page/files":
            self.problems.append(f"{name}: the note left this machine")

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        query = f"?{body}" if isinstance(body, str) and method == "get" else ""
        data = None if body is None or query else (body if isinstance(body, str) else json.dumps(body)).encode()
        form = "application/x-www-form-urlencoded" if path.startswith("/searxng") else "application/json"
        headers = {"Content-Type": form, "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.base + path + query, data, headers, method=method.upper())
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                return reply.status, reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8", "replace")

    def widen(self, body: Any) -> Any:
        """With a limit of one call, the same without the scope: a local question would ask this model nothing."""
        if not self.is_one_call or not isinstance(body, dict):
            return body
        wide = json.dumps(body).replace('"nexi-local"', '"nexi-s"').replace('"only_local": true', '"only_local": false')
        return json.loads(wide.replace('"focus": "local"', '"focus": ""'))

    def finish_run(self, body: Mapping[str, Any]) -> str:
        status, text = self.send("post", "/v1/runs", self.widen(body))
        run_id = str(json.loads(text).get("id", "")) if status == 202 else ""
        if run_id:
            self.send("get", f"/v1/runs/{run_id}/events")
        return run_id

    def wait_with_plan(self) -> str:
        """A run that has its plan and waits for approval."""
        run_id = str(json.loads(self.send("post", "/v1/runs", WAITING_RUN)[1])["id"])
        request = urllib.request.Request(
            f"{self.base}/v1/runs/{run_id}/events", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as events:
            while b"agenda_proposed" not in events.readline():
                pass
        return run_id

    def prepare(self, need: str) -> tuple[str, str]:
        """The id of a run as a route needs it, and the key under which it is shared."""
        if need == "waiting":
            return self.wait_with_plan(), ""
        if need == "stopped":
            run_id = self.wait_with_plan()
            self.send("post", f"/v1/runs/{run_id}/stop", {})
            self.send("get", f"/v1/runs/{run_id}/events")
            return run_id, ""
        run_id = self.finish_run(LOCAL_RUN) if need else self.run_id
        shared = self.send("post", f"/page/runs/{run_id}/share", {})[1] if need == "shared" else "{}"
        return run_id, str(json.loads(shared).get("path", "")).rpartition("/")[2]

    def routes(self, *kinds: str) -> None:
        """Those of these kinds; first of all the local ones, while nothing else is under way."""
        offered = json.loads(self.send("get", "/openapi.json")[1])["paths"]
        names = [f"{method} {path}" for path, methods in offered.items() for method in methods]
        known = {**ROUTES, **PAGE_ROUTES}
        names += [name for name in list_page_routes() if name not in names]
        self.problems += [] if kinds else [f"{name} has no entry in rig/local_drive.py" for name in names if name not in known]
        for name in sorted((n for n in names if n in known), key=lambda name: known[name][0] == "last"):
            kind, body = known[name]
            if kind not in (kinds or ("local",)):
                continue
            method, path = name.split(" ", 1)
            run_id, key = self.prepare(NEEDS.get(name, ""))
            filled = (
                path.replace("{id}", run_id)
                .replace("{model}", "nexi-local")
                .replace("{name}", "app.js" if "/static/" in path else "drive")
            )
            filled = filled.replace("{key}", key) + ("?name=garden.md" if path == "/page/files" else "")
            if name == "post /page/knowledge/forget":
                body = {"urls": [json.loads(self.send("get", "/page/knowledge")[1])["sources"][0]["url"]]}
            with self.watch(name, kind):
                if name == "post /v1/runs":
                    self.statuses[name] = 202 if self.finish_run(body) else 400
                else:
                    self.statuses[name] = self.send(method, filled, self.widen(body))[0]
        for name, path, body in () if kinds else MORE:
            with self.watch(name, "local"):
                run_id = self.finish_run(body) if path == "/v1/runs" else ""
                if run_id:
                    self.send("get", f"/page/runs/{run_id}/suggestions")
                else:
                    self.send("post", path, self.widen(body))

    def commands(self) -> None:
        for words in (("--local", QUESTION), ("research", "--local", QUESTION), ("find", "--local", "shed key")):
            with self.watch(f"nexi {' '.join(words[:2])}", "local"):
                self.tree.run(*words)

    def tools(self) -> None:
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        async def call() -> None:
            server = StdioServerParameters(
                command=sys.executable, args=["-m", "nexi", "mcp"], env=self.tree.env, cwd=self.tree.home
            )
            async with Client(stdio_client(server)) as client:
                tools = (await client.list_tools()).tools
                for tool in tools:
                    question = "query" if "query" in tool.input_schema["properties"] else "question"
                    with self.watch(f"MCP {tool.name}", "local"):  # one without a local scope refuses the argument
                        await client.call_tool(tool.name, {question: QUESTION, "only_local": True})

        asyncio.run(call())

    def page(self) -> None:
        """A person asks with the focus on her own knowledge, and waits for what the page does after the answer."""
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            print("| the page | skipped: playwright is not installed |", flush=True)
            return
        program = shutil.which("chromium") or shutil.which("google-chrome")
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", *QUIET])
            page = browser.new_page()
            with self.watch("the page opens", "web"):  # it lists the models of the endpoint
                page.goto(f"{self.base}/?token={self.token}")
                page.wait_for_load_state("networkidle")
                time.sleep(BROWSER_SETTLE_S)
            with self.watch("the page asks", "local"), page.expect_response("**/suggestions", timeout=PATIENCE_S * 1000):
                page.evaluate("document.getElementById('focus').value = 'local'")
                page.fill("#question", QUESTION)
                page.evaluate("document.getElementById('ask').requestSubmit()")
            browser.close()


def list_page_routes() -> list[str]:
    """Every route of the app that a door of the page serves; those under /v1 and beside are in /openapi.json."""
    from nexi.config import Config
    from nexi.web import create_app

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Config(home=Path(folder), model="extractive"))
    rows = [(route.path, sorted(getattr(route, "methods", None) or ())) for route in app.routes if hasattr(route, "path")]
    return [f"{m.lower()} {path}" for path, methods in rows for m in methods if m not in ("HEAD", "OPTIONS") and path != "/mcp"]


def enter_namespace() -> int:
    """Run this command again in a namespace of its own."""
    program = shutil.which("unshare")
    if program is None or subprocess.run([program, "-n", "true"], check=False, capture_output=True).returncode:
        print("SKIPPED: network namespaces are not allowed here (unshare -n needs root or user namespaces)")
        return 0
    command = [program, "-n", sys.executable, "-m", "rig.local_drive", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode


def set_up_interfaces() -> None:
    for words in (
        "link set lo up",
        f"link add {INTERFACE} type veth peer name {INTERFACE}peer",
        f"link set {INTERFACE} addrgenmode none",
        f"link set {INTERFACE}peer addrgenmode none",
        f"addr add {REMOTE}/32 dev {INTERFACE}",
        f"link set {INTERFACE} up",
        f"link set {INTERFACE}peer up",
        f"route add default dev {INTERFACE}",
    ):
        subprocess.run(["ip", *words.split()], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one-call", action="store_true")
    is_one_call = parser.parse_args().one_call
    if INSIDE not in os.environ:
        return enter_namespace()
    set_up_interfaces()
    wire = Wire()
    with tempfile.TemporaryDirectory() as folder, wire.serve():
        tree = Tree(ROOT, Path(folder), f"http://{REMOTE}:8123/v1")
        tree.env |= {"SEARXNG_URL": f"http://{REMOTE}:8124", "EMBEDDING_BASE_URL": f"http://{REMOTE}:8123/v1"}
        (tree.home / "nexi").mkdir()
        limits = {"max_model_calls": 1} if is_one_call else {}
        (tree.home / "nexi" / "config.json").write_text(json.dumps({"embedding_model": "remote", "share": True, **limits}))
        (tree.home / "notes").mkdir()
        (tree.home / "notes" / "garden.md").write_text(NOTE)
        tree.run("index", "notes")
        print("| what | kind | status | requests | with the note | packets elsewhere |\n|---|---|---|---|---|---|")
        drive = Drive(wire, tree, is_one_call=is_one_call)
        server = Server(tree.env, tree.home / "serve.log")
        server.start()
        try:
            drive.base = server.base.partition("/?")[0]
            drive.token = (tree.home / "nexi" / "state" / "token").read_text().strip()
            drive.run_id = drive.finish_run(LOCAL_RUN)
            drive.routes()
            if not is_one_call:
                drive.page()
                drive.commands()
                drive.tools()
            drive.routes("web", "last")
        finally:
            server.stop()
    refused = {name: status for name, status in drive.statuses.items() if status >= 400 and ABSENT.get(name) != status}
    print(f"{len(drive.statuses) - len(refused)} of {len(drive.statuses)} routes answered below 400")
    drive.problems += [f"{name} answered {status}, so it shows nothing" for name, status in refused.items()]
    print("\n".join(drive.problems) or "nothing left this machine" * (not is_one_call) or "no second call was made")
    return int(bool(drive.problems))


if __name__ == "__main__":
    sys.exit(main())
