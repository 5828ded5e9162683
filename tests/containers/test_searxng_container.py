"""The life of the container with a real podman, where it is installed; a small web server stands in for SearXNG."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.app import Nexi
from nexi.app.factory import container_options
from nexi.backends.container import Lifecycle, is_healthy
from nexi.backends.container.engine import ContainerEngine
from nexi.config import Config
from nexi.errors import BackendError
from tests.containers import podman

if podman.missing():
    pytest.skip(f"not installed: {', '.join(podman.missing())}", allow_module_level=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of a podman that has the image."""
    folder = tmp_path_factory.mktemp("podman")
    variables = podman.environment(folder)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        if trouble := podman.import_image():
            pytest.skip(f"podman cannot make an image here: {trouble.strip()[-300:]}")
        if why := _cannot_run():
            pytest.skip(f"podman cannot run a container here: {why}")
        yield variables
        podman.podman("rm", "--all", "--force")


def _cannot_run() -> str:
    done = podman.podman("run", "--rm", "--publish", "127.0.0.1::8080", podman.IMAGE, "/bin/busybox", "true")
    return done.stderr.decode("utf-8", "replace").strip()[-300:] if done.returncode else ""


@pytest.fixture
def config(store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    return Config(
        home=tmp_path, model="extractive", search_backend="searxng", searxng_autostart=True, searxng_image=podman.IMAGE
    )


def user_of(config: Config) -> Lifecycle:
    return Lifecycle(container_options(config), runner=podman.OnlyPodman())


def running(config: Config) -> bool:
    lifecycle = user_of(config)
    return ContainerEngine("podman", podman.OnlyPodman()).is_running(lifecycle.options.container, lifecycle.patience(30))


def test_it_is_started_shared_and_ended_with_its_last_user(config: Config) -> None:
    first, second = user_of(config), user_of(config)
    url = first.join(first.patience(60))
    assert second.join(second.patience(60)) == url
    assert is_healthy(int(url.rpartition(":")[2]))
    first.leave()
    assert running(config)
    second.leave()
    assert not running(config)


def test_the_container_sees_its_settings_and_cannot_change_them(config: Config) -> None:
    user = user_of(config)
    user.join(user.patience(60))
    name = user.options.container
    seen = podman.podman("exec", name, "/bin/busybox", "cat", "/etc/searxng/settings.yml").stdout.decode()
    changed = podman.podman("exec", name, "/bin/busybox", "touch", "/etc/searxng/settings.yml")
    user.leave()
    assert seen == user.options.mounted_file.read_text()
    assert "limiter: false" in seen
    assert changed.returncode != 0


def test_a_user_that_was_killed_is_swept_and_its_container_ended(config: Config) -> None:
    lines = (
        "import sys; from pathlib import Path; from nexi.backends.container import Lifecycle, Options",
        "from tests.containers.podman import OnlyPodman",
        f"user = Lifecycle(Options(Path({str(config.state_dir)!r}), Path('none'), {podman.IMAGE!r}), runner=OnlyPodman())",
        "print(user.join(user.patience(60)), flush=True); sys.stdin.read()",
    )
    words = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline().startswith(b"http://127.0.0.1:")
        assert running(config)
        killed.send_signal(signal.SIGKILL)
    looker = user_of(config)
    assert looker.status(looker.patience(60)).running is False
    assert not running(config)


def test_an_image_that_does_not_serve_is_an_error_with_its_log(config: Config) -> None:
    lifecycle = Lifecycle(container_options(config), runner=podman.OnlyPodman(), healthy=lambda port: False)
    with pytest.raises(BackendError) as failed:
        lifecycle.join(lifecycle.patience(3))
    assert failed.value.code == "not_healthy"
    assert not running(config)


def test_a_port_that_is_taken_is_named(config: Config) -> None:
    first = user_of(config)
    port = int(first.join(first.patience(60)).rpartition(":")[2])
    other = replace(container_options(config), port=port, state_dir=config.root / "other")
    second = Lifecycle(other, runner=podman.OnlyPodman())
    try:
        with pytest.raises(BackendError) as failed:
            second.join(second.patience(60))
    finally:
        first.leave()
    assert failed.value.code == "port_taken"


async def test_a_search_starts_it_and_finds_what_it_serves(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexi.backends.container.Runner", podman.OnlyPodman)
    async with Nexi(config) as nexi:
        outcome = await nexi.find("moon")
        assert running(config)
    assert ([hit.url for hit in outcome.hits], outcome.failures) == (["http://moon.test/facts"], ())
    assert not running(config)
