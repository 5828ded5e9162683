"""The container file with a real podman: built from its base image, then run as it is meant to be, a question included.

It uses the podman of this machine, so that layers which did not change are not made again; the image stays there as
localhost/nexi-tested, or NEXI_IMAGE names one that is built already. A small web runs in the network of the container, from the
files of this checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.command import PAGES, QUESTION
from tests.containers import podman

ROOT = Path(__file__).resolve().parents[2]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
BUILT = os.environ.get("NEXI_IMAGE", "")
IMAGE, VOLUME, TOKEN = BUILT or "localhost/nexi-tested", "nexi-tested", "a-token-for-the-container"
BASE = os.environ.get("NEXI_BASE_IMAGE") or re.findall(r"^ARG BASE=(\S+)$", CONTAINERFILE.read_text("utf-8"), re.MULTILINE)[0]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_SETTINGS = Path("/etc/pip.conf")
SAFE = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
WEB = "127.0.0.1:8890"

if not shutil.which("podman"):
    pytest.skip("podman is not installed: apt-get install podman runc", allow_module_level=True)


def engine(*words: str, timeout: float = 120) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of podman."""
    done = subprocess.run(["podman", *words], capture_output=True, timeout=timeout, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def done(*words: str, timeout: float = 120) -> str:
    code, out, err = engine(*words, timeout=timeout)
    assert code == 0, err[-3000:]
    return out.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of a podman that has the image, built from what is in this checkout."""
    variables = podman.shared_environment(tmp_path_factory.mktemp("podman"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        if not BUILT:
            _build()
        done("volume", "create", VOLUME)
        yield variables
        engine("volume", "rm", "--force", VOLUME)


@pytest.fixture(autouse=True)
def _podman(image: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in image.items():
        monkeypatch.setenv(name, value)


def _build() -> None:
    if engine("image", "exists", BASE)[0]:
        pytest.skip(f"the base image is not here: podman pull {BASE}, or name another in NEXI_BASE_IMAGE")
    done("build", *_build_options(), "--file", str(CONTAINERFILE), str(ROOT), timeout=1800)


def _build_options() -> list[str]:
    """A machine with certificates or a package index of its own lends them to the build."""
    options = ["--format", "docker", "--network", "host", "--build-arg", f"BASE={BASE}", "--tag", IMAGE]
    if CERTIFICATES.exists():
        options += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
    if PIP_SETTINGS.exists():
        options += ["--secret", f"id=pip.conf,src={PIP_SETTINGS}"]
    return options


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("web") / "pages.jsonl"
    file.write_text("".join(json.dumps(page) + "\n" for page in PAGES), encoding="utf-8")
    for path in (file, file.parent, *file.parents[1:3]):
        path.chmod(path.stat().st_mode | 0o555)
    return file.parent


class Served:
    """A container that serves, beside a small web that only it can reach."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.base = f"http://{done('port', name, '8000').splitlines()[0]}"

    def ask(self, path: str, body: dict[str, Any] | None = None, token: str = TOKEN) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"}
        method = "GET" if body is None else "POST"
        return httpx2.request(method, self.base + path, json=body, headers=headers, timeout=300, verify=False)


@contextmanager
def serving(corpus: Path, latency_ms: int = 0) -> Iterator[Served]:
    variables = {"NEXI_TOKEN": TOKEN, "SEARXNG_URL": f"http://{WEB}", "NEXI_ALLOW_PRIVATE": WEB, "NEXI_MODEL": "extractive"}
    given = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    name = done("run", "--detach", *SAFE, *given, "--volume", f"{VOLUME}:/data", "--publish", "127.0.0.1::8000", IMAGE)
    try:
        web = ["python", "-m", "rig.miniweb", "/srv/web", "--port", WEB.rpartition(":")[2], "--latency-ms", str(latency_ms)]
        mounts = ["--volume", f"{ROOT / 'rig'}:/srv/rig:ro", "--volume", f"{corpus}:/srv/web:ro", "--workdir", "/srv"]
        beside = done("run", "--detach", "--no-healthcheck", "--network", f"container:{name}", *mounts, IMAGE, *web)
        try:
            _until_healthy(name)
            yield Served(name)
        finally:
            engine("rm", "--force", "--time", "0", beside)
    finally:
        engine("rm", "--force", "--time", "0", name)


def _until_healthy(name: str) -> None:
    """As the engine does it: the health check of the image, again until it passes."""
    for _ in range(30):
        if engine("healthcheck", "run", name)[0] == 0:
            return
    raise AssertionError(engine("logs", name)[2][-3000:])


def test_the_image_is_nobody_special_and_holds_no_tools_to_build_with() -> None:
    (told,) = json.loads(done("image", "inspect", IMAGE))
    config = told["Config"]
    assert (config["User"], config["StopSignal"], list(config["Volumes"])) == ("nexi", "SIGTERM", ["/data"])
    assert told["Healthcheck"]["Test"][:2] == ["CMD", "python"]
    assert not any(line.startswith(("NEXI_TOKEN", "PIP_")) for line in config["Env"])
    inside = "import importlib.util as u, os, sys; print(os.getuid(), sys.prefix, u.find_spec('pip'), u.find_spec('hatchling'))"
    assert done("run", "--rm", *SAFE, IMAGE, "python", "-c", inside) == "10001 /opt/nexi None None"


def test_without_a_token_it_does_not_start() -> None:
    code, _, err = engine("run", "--rm", *SAFE, IMAGE)
    assert code == 2
    assert "does not listen on 0.0.0.0 without a token" in err


def test_it_answers_with_a_read_only_root_and_keeps_its_runs_in_the_volume(corpus: Path) -> None:
    with serving(corpus) as served:
        said = [{"role": "user", "content": QUESTION}]
        answer = served.ask("/v1/chat/completions", {"model": "nexi-s", "messages": said}).json()
        refused = served.ask("/v1/models", token="wrong").status_code
        outside = engine("exec", served.name, "touch", "/opt/nexi/x")[0]
    assert "384,400 km" in answer["choices"][0]["message"]["content"]
    assert answer["citations"] == [f"http://{WEB}/moon.test/facts"]
    assert (refused, outside != 0) == (401, True)
    kept = json.loads(done("run", "--rm", *SAFE, "--volume", f"{VOLUME}:/data", IMAGE, "nexi", "runs", "--json"))
    assert [(run["query"], run["state"]) for run in kept["runs"]] == [(QUESTION, "finished")]


def test_a_run_that_was_accepted_ends_before_the_container_stops(corpus: Path) -> None:
    with serving(corpus, latency_ms=1500) as served:
        run_id = served.ask("/v1/runs", {"question": QUESTION}).json()["id"]
        done("stop", "--time", "40", served.name)
        code = done("inspect", "--format", "{{.State.ExitCode}}", served.name)
    words = ("nexi", "history", "show", run_id, "--json")
    kept = json.loads(done("run", "--rm", *SAFE, "--volume", f"{VOLUME}:/data", IMAGE, *words))
    assert (code, "384,400 km" in json.dumps(kept)) == ("0", True)
