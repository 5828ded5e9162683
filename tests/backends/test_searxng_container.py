"""The SearXNG container over a scripted engine: one for everyone, whatever crashes, and gone with its last user."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from nexi.app import Nexi
from nexi.app.factory import container_options
from nexi.backends.container import (
    FAILED_FOR_S,
    ContainerBackend,
    ContainerStatus,
    Lifecycle,
    Options,
    State,
    User,
    decode_state,
    process_began,
)
from nexi.backends.container.engine import TOOK_TOO_LONG, CommandResult, Patience, Runner, Time, image_reference
from nexi.config import Config
from nexi.errors import BackendError, ConfigError, StoreError
from nexi.types import Hit, Query
from tests.backends.engine import IMAGE, FakeEngine, FakeTime
from tests.raising import has_code

ALIVE = {1: "one", 2: "two", 3: "three"}


class World:
    """A machine with an engine, processes and a NEXI_HOME."""

    def __init__(self, home: Path) -> None:
        self.options = Options(home / "state", home / "searxng" / "default-settings.yml")
        self.engine = FakeEngine()
        self.alive = dict(ALIVE)
        self.clock = FakeTime()

    def process(self, pid: int = 1, **changes: Any) -> Lifecycle:
        return Lifecycle(
            replace(self.options, **changes),
            runner=self.engine,
            healthy=self.engine.answers,
            clock=self.clock,
            began=lambda pid: self.alive.get(pid, ""),
            pid=pid,
        )

    def join(self, pid: int = 1, **changes: Any) -> Lifecycle:
        joined = self.process(pid, **changes)
        joined.join(joined.patience(60))
        return joined

    def status(self) -> ContainerStatus:
        looker = self.process(3)
        return looker.status(looker.patience(60))

    def fails(self, **changes: Any) -> BackendError:
        with pytest.raises(BackendError) as failed:
            self.join(**changes)
        return failed.value

    @property
    def state(self) -> Path:
        return self.options.state_dir / "searxng-singleton.json"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# One container


def test_the_first_user_starts_it_on_loopback_with_its_settings_read_only(world: World) -> None:
    process = world.process()
    assert process.join(process.patience(60)) == "http://127.0.0.1:40001"
    (run,) = [words for words in world.engine.said if words[1] == "run"]
    assert run == (
        *("docker", "run", "--detach", "--name", world.options.container),
        *("--publish", "127.0.0.1::8080"),
        *("--volume", f"{world.options.mounted_file}:/etc/searxng/settings.yml:ro"),
        *("--env", "FORCE_OWNERSHIP=false"),
        IMAGE,
    )


def test_a_second_process_uses_the_same_one_and_the_last_to_leave_ends_it(world: World) -> None:
    first, second = world.join(1), world.join(2)
    assert (world.engine.runs, world.status().users) == (1, (1, 2))
    first.leave()
    assert world.status().users == (2,)
    second.leave()
    assert (world.engine.containers, world.state.exists()) == ({}, False)


def test_two_seats_in_one_process_are_two_users(world: World) -> None:
    first, _second = world.join(1), world.join(1)
    first.leave()
    assert (world.status().users, len(world.engine.containers)) == ((1,), 1)


def test_many_who_start_at_once_make_one_container(world: World) -> None:
    world.clock = Time()  # type: ignore[assignment]
    threads = [threading.Thread(target=world.join, args=(1 + n % 3,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (world.engine.runs, len(json.loads(world.state.read_text())["users"])) == (1, 8)


def test_what_is_kept_outlives_its_users_until_it_is_stopped(world: World) -> None:
    keeper = world.process(1)
    kept = keeper.keep(keeper.patience(60))
    world.join(2).leave()
    assert (
        kept
        == world.status()
        == ContainerStatus(True, True, "http://127.0.0.1:40001", world.options.container, IMAGE, "docker", (), True)
    )
    assert keeper.stop(keeper.patience(60)) == ContainerStatus(running=False)
    assert (world.engine.containers, world.state.exists()) == ({}, False)


def test_stopping_waits_for_those_who_use_it_unless_forced(world: World) -> None:
    user, stopper = world.join(1), world.process(2)
    stopper.keep(stopper.patience(60))
    assert stopper.stop(stopper.patience(60)) == replace(world.status(), users=(1,), kept=False)
    assert len(world.engine.containers) == 1
    assert stopper.stop(stopper.patience(60), force=True) == ContainerStatus(running=False)
    user.leave()
    assert world.engine.containers == {}


def test_two_homes_have_two_containers(world: World, tmp_path: Path) -> None:
    world.join(1)
    world.join(1, state_dir=tmp_path / "other" / "state")
    assert len(world.engine.containers) == 2


def test_looking_at_what_was_never_started_makes_no_folder(world: World) -> None:
    assert world.status() == ContainerStatus(running=False)
    assert (world.options.state_dir.exists(), world.engine.said) == (False, [])


def test_the_state_and_the_folder_of_the_settings_are_private(world: World) -> None:
    world.join(1)
    modes = [
        stat.S_IMODE(p.stat().st_mode) for p in (world.state, world.options.mounted_file.parent, world.options.mounted_file)
    ]
    assert modes == [0o600, 0o700, 0o644]


# What crashes leave behind


def test_a_process_that_died_does_not_count(world: World) -> None:
    world.join(1)
    del world.alive[1]
    assert world.status() == ContainerStatus(running=False)
    assert (world.engine.containers, world.state.exists()) == ({}, False)


def test_a_reused_pid_is_not_the_process_that_registered(world: World) -> None:
    world.join(1)
    world.alive[1] = "another one"
    assert world.status() == ContainerStatus(running=False)


def test_a_container_left_by_a_crash_is_used_again(world: World) -> None:
    world.join(1)
    del world.alive[1]
    world.join(2)
    assert (world.engine.runs, world.status().users) == (1, (2,))


def test_a_crash_in_the_middle_of_a_start_is_cleaned_up(world: World) -> None:
    crashed = State("docker", world.options.container, IMAGE, "", 0, (User(9, "nine", "a"),))
    world.options.state_dir.mkdir(parents=True)
    world.state.write_bytes(msgspec.json.encode(crashed))
    world.engine.run(
        ["docker", "run", "--name", world.options.container, "--publish", "127.0.0.1::8080"], Patience(9, FakeTime())
    )
    world.join(1)
    assert (len(world.engine.containers), world.engine.containers[world.options.container].port) == (1, 40002)


def test_a_container_that_was_removed_or_died_is_started_again(world: World) -> None:
    world.join(1)
    world.engine.containers.clear()
    assert replace(world.status(), container="") == ContainerStatus(False, image=IMAGE, command="docker", users=(1,))
    world.join(2)
    world.engine.containers[world.options.container].running = False
    joined = world.process(3)
    assert joined.join(joined.patience(60)) == "http://127.0.0.1:40003"
    assert world.status().users == (1, 2, 3)


def test_a_container_that_answers_no_more_is_replaced(world: World) -> None:
    world.join(1)
    seen: list[int] = []

    def healthy(port: int) -> bool:
        seen.append(port)
        return port == 40002

    world.engine.answers = healthy  # type: ignore[method-assign]
    world.join(2)
    assert (world.engine.runs, seen[0], seen[-1]) == (2, 40001, 40002)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "nexi-searxng-1", "port": "x"}', "[" * 9999, "\x00"]
)
def test_a_broken_state_is_no_state_and_its_container_is_replaced(world: World, text: str) -> None:
    world.join(1)
    world.state.write_text(text)
    assert world.status() == ContainerStatus(running=False)
    world.join(2)
    assert (len(world.engine.containers), world.status().users) == (1, (2,))


def test_the_state_survives_being_written_and_read() -> None:
    state = State("podman", "c", "i:t", "d", 8888, (User(1, "x", "a"), User(2, "y", "b")), True)
    assert decode_state(msgspec.json.encode(state)) == state


def test_a_process_is_told_apart_from_a_later_one_and_a_dead_one_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = process_began(child.pid)
    assert began not in ("", process_began(os.getpid()))
    assert began == process_began(child.pid)
    child.communicate(b"\n")
    assert process_began(child.pid) == ""


def test_a_state_that_cannot_be_written_is_a_store_error_with_a_fix(world: World) -> None:
    world.options.state_dir.parent.joinpath("state").write_text("a file")
    with pytest.raises(StoreError) as failed:
        world.join(1)
    assert failed.value.fix


# What can fail


def test_without_docker_and_podman_the_fix_says_what_to_install(world: World) -> None:
    world.engine.commands = ()
    error = world.fails()
    assert (error.code, "podman" in error.fix, "SEARXNG_URL" in error.fix) == ("no_engine", True, True)
    assert world.status() == ContainerStatus(running=False)


def test_podman_is_used_when_docker_does_not_answer(world: World) -> None:
    world.engine.commands = ("docker", "podman")
    world.engine.down = {"docker": "Cannot connect to the Docker daemon"}
    world.join(1)
    assert world.status().command == "podman"
    world.engine.down = {"docker": "Cannot connect to the Docker daemon", "podman": "no"}
    error = world.fails(state_dir=world.options.state_dir / "other")
    assert (error.code, error.cause) == ("engine_down", "docker: Cannot connect to the Docker daemon; podman: no")


def test_a_missing_image_is_pulled_once(world: World) -> None:
    world.engine.images.clear()
    world.join(1)
    world.join(2)
    assert [words for words in world.engine.said if words[1] == "pull"] == [("docker", "pull", "--quiet", IMAGE)]


def test_an_image_that_cannot_be_fetched_is_named_with_the_command_to_try(world: World) -> None:
    world.engine.images.clear()
    world.engine.pull_fails = "Error: manifest for searxng/searxng:nope not found"
    error = world.fails(tag="nope")
    assert (error.code, error.cause) == ("image_missing", f"docker pull: {world.engine.pull_fails}")
    assert error.fix.startswith("run `docker pull docker.io/searxng/searxng:nope`")
    assert not world.state.exists()


def test_a_taken_port_says_so_and_leaves_nothing(world: World) -> None:
    world.engine.run_fails = ["docker: Error: Bind for 127.0.0.1:8888 failed: port is already allocated."]
    error = world.fails(port=8888)
    assert (error.code, error.fix) == ("port_taken", "set searxng_port to a free port, or to 0 to have one chosen")
    assert (world.engine.containers, world.state.exists()) == ({}, False)


def test_a_fixed_port_is_published_on_loopback(world: World) -> None:
    world.join(1, port=8888)
    assert world.status().url == "http://127.0.0.1:8888"


def test_a_name_that_is_taken_is_freed_and_tried_again(world: World) -> None:
    world.engine.run_fails = [f'HTTP 500: the container name "{world.options.container}" is already in use by 4f1c']
    world.join(1)
    assert (world.engine.runs, world.status().healthy) == (2, True)


def test_a_container_that_does_not_start_says_what_the_engine_said(world: World) -> None:
    world.engine.run_fails = ["Error: runc: no cgroups here"]
    error = world.fails()
    assert (error.code, error.cause) == ("container_failed", "docker run: Error: runc: no cgroups here")


def test_one_that_is_never_healthy_fails_in_time_with_the_end_of_its_log_and_is_removed(world: World) -> None:
    world.engine.healthy, world.engine.log = False, "loading\nValueError: settings.yml line 3\n"
    error = world.fails()
    assert (error.code, "http://127.0.0.1:40001/healthz" in error.cause) == ("not_healthy", True)
    assert error.cause.endswith("loading | ValueError: settings.yml line 3")
    assert "nexi searxng start" in error.fix
    assert 60 <= world.clock.now < 62
    assert (world.engine.containers, world.state.exists()) == ({}, False)


def test_one_that_dies_is_not_waited_for(world: World) -> None:
    world.engine.dies, world.engine.healthy, world.engine.log = True, False, "bad settings"
    error = world.fails()
    assert (error.code, error.cause.endswith(": bad settings")) == ("not_healthy", True)
    assert world.clock.now < 5


def test_a_lock_that_another_holds_is_waited_for_and_then_named(world: World) -> None:
    holder = world.process(1)
    with holder._file.hold_lock(holder.patience(1)):
        error = world.fails(pid=2)
        holder_leaves = world.process(3)
        holder_leaves.leave()
    assert error.code == "start_busy"


def test_a_caller_that_gives_up_ends_the_start_and_leaves_nothing(world: World) -> None:
    world.engine.healthy = False
    process = world.process()
    patience = process.patience(60)

    def give_up(port: int) -> bool:
        patience.give_up()
        return False

    process._healthy = give_up
    with pytest.raises(BackendError):
        process.join(patience)
    assert (world.engine.containers, world.clock.now < 1) == ({}, True)


# Settings


def test_the_settings_turn_json_on_and_the_limiter_off_with_a_new_secret_each_time(world: World) -> None:
    secrets = []
    for _ in range(2):
        user = world.join(1, proxies=("http://proxy.example:3128",))
        text = world.engine.mounted()
        secrets.append(re.findall(r'secret_key: "([0-9a-f]{64})"', text)[0])
        assert "\n    - json\n" in text
        assert "\n  limiter: false\n" in text
        assert '\n  proxies: {"all://": ["http://proxy.example:3128"]}\n' in text
        assert re.findall(r"^[^#\n]*\{\{", text, re.MULTILINE) == []
        user.leave()
    assert secrets[0] != secrets[1]


def test_an_engine_with_a_key_is_turned_on_in_the_list_of_engines(world: World) -> None:
    keys = {"braveapi": 'k"1', "exaapi": "k2"}
    world.join(1, engine_keys=keys)
    _, _, engines = world.engine.mounted().partition("\nengines:\n")
    entries = [json.loads(line.removeprefix("  - ")) for line in engines.splitlines() if line.startswith("  - {")]
    assert {entry["name"]: entry["api_key"] for entry in entries} == keys
    assert all((e["engine"], e["inactive"], e["disabled"]) == (e["name"], False, False) for e in entries)
    assert re.findall(r"^[^#\n]*\{\{", engines, re.MULTILINE) == []


def test_another_key_is_another_container(world: World) -> None:
    world.join(1, engine_keys={"braveapi": "k1"}).leave()
    world.join(1, engine_keys={"braveapi": "k2"})
    assert '"api_key": "k2"' in world.engine.mounted()


def test_the_users_own_settings_win_and_an_edit_counts_from_the_next_start(world: World) -> None:
    own = world.options.own_settings
    own.parent.mkdir(parents=True)
    own.write_text("# {{secret_key}}\nserver: {secret_key: {{ secret_key }}, note: '{{other}}'}\n")
    first = world.join(1)
    text = world.engine.mounted()
    assert re.sub("[0-9a-f]{64}", "S", text) == "# {{secret_key}}\nserver: {secret_key: \"S\", note: '{{other}}'}\n"
    own.write_text("changed: true\n")
    world.join(2)
    assert (world.engine.runs, world.engine.mounted()) == (1, text)
    first.leave()
    world.alive.pop(2)
    world.join(3)
    assert (world.engine.runs, world.engine.mounted()) == (2, "changed: true\n")


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("searxng/searxng", "docker.io/searxng/searxng:t"),
        ("searxng", "docker.io/library/searxng:t"),
        ("ghcr.io/searxng/searxng", "ghcr.io/searxng/searxng:t"),
        ("localhost/mine", "localhost/mine:t"),
        ("localhost:5000/mine", "localhost:5000/mine:t"),
        ("ghcr.io/searxng/searxng:own", "ghcr.io/searxng/searxng:own"),
        ("searxng/searxng@sha256:abc", "docker.io/searxng/searxng@sha256:abc"),
    ],
)
def test_an_image_is_named_in_full(image: str, full: str) -> None:
    assert image_reference(image, "t") == full


# Commands


def test_a_command_is_run_with_what_it_says_and_its_code() -> None:
    words = (sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert Runner().run(words, Patience(30, Time())) == CommandResult(3, "out\n", "err\n")
    assert Runner().run(("no-such-command-here",), Patience(5, Time())).code == 127
    assert (Runner().has_command("no-such-command-here"), Runner().has_command("sh")) == (False, True)


def test_a_command_is_ended_when_the_caller_gives_up() -> None:
    patience = Patience(600, Time())
    threading.Timer(0.2, patience.give_up).start()
    done = Runner().run((sys.executable, "-c", "import time; time.sleep(600)"), patience)
    assert done.code == TOOK_TOO_LONG


# The backend


class Pages:
    """The SearXNG in the container."""

    def __init__(self, url: str, errors: list[BackendError], name: str = "searxng") -> None:
        self.url, self.errors, self.name = url, errors, name

    async def search(self, query: Query) -> list[Hit]:
        if self.errors:
            raise self.errors.pop()
        return [Hit(f"{self.url}/{query.text}", "t", "")]


def backend_of(world: World, *errors: BackendError, now: Callable[[], float] = lambda: 0.0) -> ContainerBackend:
    return ContainerBackend(world.process(1), lambda url: Pages(url, list(errors)), monotonic=now)


async def test_the_first_search_starts_it_once_and_closing_ends_it(world: World) -> None:
    backend = backend_of(world)
    assert world.engine.said == []
    hits = await asyncio.gather(backend.search(Query("a")), backend.search(Query("b")))
    assert [h[0].url for h in hits] == ["http://127.0.0.1:40001/a", "http://127.0.0.1:40001/b"]
    assert world.engine.runs == 1
    await backend.aclose()
    assert world.engine.containers == {}


async def test_closing_a_backend_that_never_searched_touches_nothing(world: World) -> None:
    await backend_of(world).aclose()
    assert (world.engine.said, world.options.state_dir.exists()) == ([], False)


async def test_a_start_that_failed_is_said_again_for_a_while_and_then_tried_again(world: World) -> None:
    times = iter([0.0, 1.0, FAILED_FOR_S + 1])
    backend = backend_of(world, now=lambda: next(times))
    world.engine.commands = ()
    for _ in range(2):
        with pytest.raises(BackendError, check=has_code("no_engine")):
            await backend.search(Query("a"))
    world.engine.commands = ("docker",)
    assert len(await backend.search(Query("a"))) == 1
    await backend.aclose()


async def test_a_store_that_fails_is_a_failure_of_the_backend(world: World) -> None:
    world.options.state_dir.parent.joinpath("state").write_text("a file")
    backend = backend_of(world)
    with pytest.raises(BackendError) as failed:
        await backend.search(Query("a"))
    assert (failed.value.code, bool(failed.value.fix)) == ("store", True)
    await backend.aclose()


async def test_a_container_that_was_lost_is_looked_for_at_the_next_search(world: World) -> None:
    backend = backend_of(world, BackendError("gone", code="refused"))
    with pytest.raises(BackendError, check=has_code("refused")):
        await backend.search(Query("a"))
    world.engine.containers.clear()
    backend._connect = lambda url: Pages(url, [])
    assert (await backend.search(Query("a")))[0].url == "http://127.0.0.1:40002/a"
    assert world.status().users == (1,)
    await backend.aclose()


async def test_a_cancelled_search_gives_up_the_start(world: World) -> None:
    started, patience = asyncio.Event(), []
    loop = asyncio.get_running_loop()
    lifecycle = world.process(1)

    def join(given: Patience) -> str:
        patience.append(given)
        loop.call_soon_threadsafe(started.set)
        while given.seconds_left() > 0:
            given.pause(0.01)
        raise BackendError("given up")

    lifecycle.join = join  # type: ignore[method-assign]
    lifecycle.patience = lambda seconds: Patience(seconds, Time())  # type: ignore[method-assign]
    backend = ContainerBackend(lifecycle, lambda url: Pages(url, []))
    search = asyncio.create_task(backend.search(Query("a")))
    await started.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert patience[0].seconds_left() == 0
    await backend.aclose()


# In the chain


def test_with_autostart_it_comes_first_and_the_others_stay(make_config: Callable[..., Config]) -> None:
    assert make_config(searxng_autostart=True).search_chain() == ("searxng", "services")
    assert make_config(searxng_autostart=True, jina_key="k").search_chain() == ("searxng", "jina")


def test_an_instance_that_is_named_always_wins(make_config: Callable[..., Config]) -> None:
    config = make_config(searxng_autostart=True, searxng_url="http://127.0.0.1:9")
    nexi = Nexi(config)
    assert (config.search_chain(), nexi.ports._search_chain()["searxng"].container) == (("searxng",), None)
    assert not isinstance(nexi.ports.backends()[0], ContainerBackend)


async def test_a_search_without_an_engine_names_the_cause_and_the_fix_and_goes_on(
    make_config: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    config = make_config(search_backend="searxng", searxng_autostart=True)
    async with Nexi(config) as nexi:
        nexi.ports.check()
        shared = nexi.ports.shared
        shared.backends = dict.fromkeys(shared.backends, (*nexi.ports.backends(), Pages("http://other.test", [], "other")))
        outcome = await nexi.find("moon")
    (failure,) = outcome.failures
    assert [hit.url for hit in outcome.hits] == ["http://other.test/moon"]
    assert (failure.provider, failure.code) == ("searxng", "no_engine")
    assert "SEARXNG_URL" in failure.fix


def test_the_keys_of_engines_come_from_the_config(make_config: Callable[..., Config]) -> None:
    config = make_config(api_keys={"searxng:braveapi": ["k1", "k2"], "searxng:": "k3", "brave": "k4"})
    assert container_options(config).engine_keys == {"braveapi": "k1"}


def test_the_options_come_from_the_config(make_config: Callable[..., Config]) -> None:
    config = make_config(searxng_image="ghcr.io/a/b", searxng_tag="1", searxng_port=8888, https_proxy="p:1", http_proxy="q:2")
    root = config.root
    assert container_options(config) == Options(
        root / "state", root / "searxng" / "default-settings.yml", "ghcr.io/a/b", "1", 8888, ("http://p:1",)
    )


@pytest.mark.parametrize(
    "wrong", [{"searxng_image": "--privileged"}, {"searxng_image": "a b"}, {"searxng_tag": "-x"}, {"searxng_tag": "a/b"},
              {"searxng_tag": ""}, {"searxng_port": 65536}, {"searxng_port": -1}, {"searxng_autostart": "yes"}]
)  # fmt: skip
def test_settings_that_an_engine_could_misread_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=has_code("config", next(iter(wrong)))):
        Config.from_dict(wrong)
