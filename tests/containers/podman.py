"""A podman of the test's own: its images, containers and settings lie in a folder that goes with it.

The settings are those with which podman runs on a sandboxed machine: no systemd, no journal, limits that need no privilege.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from nexi.backends.container.engine import Runner

IMAGE = "localhost/searxng-stand-in"
NEEDED = ("podman", "busybox")
HITS = b'{"query": "moon", "results": [{"url": "http://moon.test/facts", "title": "Moon facts", "content": "384,400 km"}]}'
SHARED_CONF = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
{runtime}
"""
CONTAINERS_CONF = """{shared}
lock_type = "file"
static_dir = "{folder}/static"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_config_dir = "{folder}/networks"
{network}
"""
HELPERS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman", "/usr/local/libexec/podman")
NETWORK = "nexi-tests"
NETWORK_FILE = {
    "name": NETWORK,
    "id": hashlib.sha256(NETWORK.encode()).hexdigest(),
    "driver": "bridge",
    "network_interface": f"{NETWORK}0",
    "created": "2026-01-01T00:00:00Z",
    "subnets": [{"subnet": "10.213.97.0/24", "gateway": "10.213.97.1"}],
    "ipam_options": {"driver": "host-local"},
}
STORAGE_CONF = """[storage]
driver = "vfs"
graphroot = "{folder}/images"
runroot = "{folder}/run"
"""


class OnlyPodman(Runner):
    """A docker beside it is left alone."""

    def has_command(self, command: str) -> bool:
        return command == "podman" and super().has_command(command)


def missing() -> list[str]:
    return [name for name in NEEDED if not shutil.which(name)]


def environment(folder: Path) -> dict[str, str]:
    """What podman reads instead of the machine's own settings."""
    settings = CONTAINERS_CONF.format(folder=folder, shared=_shared(), network=_make_network(folder))
    (folder / "containers.conf").write_text(settings)
    (folder / "storage.conf").write_text(STORAGE_CONF.format(folder=folder))
    return {"CONTAINERS_CONF": str(folder / "containers.conf"), "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf")}


def _make_network(folder: Path) -> str:
    """A network beside that of the machine's podman, whose addresses would be given out twice; the settings that name it."""
    if not any(Path(helpers, "netavark").exists() for helpers in HELPERS):
        return ""
    (folder / "networks").mkdir()
    (folder / "networks" / f"{NETWORK}.json").write_text(json.dumps(NETWORK_FILE))
    return f'network_backend = "netavark"\ndefault_network = "{NETWORK}"'


def shared_environment(folder: Path) -> dict[str, str]:
    """The same settings over the images that the machine has."""
    (folder / "containers.conf").write_text(_shared())
    return {"CONTAINERS_CONF": str(folder / "containers.conf")}


def named_environment(folder: Path) -> dict[str, str]:
    """The same, with a network in which containers find each other by name."""
    (folder / "containers.conf").write_text(f'{_shared()}\n[network]\nnetwork_backend = "netavark"\n')
    return {"CONTAINERS_CONF": str(folder / "containers.conf")}


def _shared() -> str:
    return SHARED_CONF.format(runtime='runtime = "runc"' if shutil.which("runc") else "").rstrip()


def podman(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["podman", *words], input=stdin, capture_output=True, timeout=120, check=False)


def import_image() -> str:
    """Make the image; what podman says when it cannot."""
    command = '["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/www"]'
    done = podman("import", "--change", f"CMD {command}", "-", f"{IMAGE}:latest", stdin=_root_folder())
    return done.stderr.decode("utf-8", "replace") if done.returncode else ""


def _root_folder() -> bytes:
    """A root folder in which busybox serves what nexi asks of a SearXNG."""
    busybox = shutil.which("busybox") or ""
    files = {
        "bin/busybox": Path(busybox).read_bytes(),
        "www/healthz": b"OK",
        "www/search": HITS,
        "etc/searxng/settings.yml": b"",
    }
    files |= {name.lstrip("/"): Path(name).read_bytes() for name in _libraries(busybox)}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), 0o755
            archive.addfile(entry, io.BytesIO(body))
    return whole.getvalue()


def _libraries(program: str) -> Iterable[str]:
    """What a busybox that is not static needs beside it."""
    if not shutil.which("ldd"):
        return ()
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [path for path in re.findall(r"(/\S+) \(0x", said) if Path(path).exists()]
