"""A power cut of a real file system: an ext4 image that is shut down without flushing its journal.

Needs root, a loop device and ext4's tools; elsewhere it is skipped, and `test_power_cut` plays the cut by a recording layer.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import PATIENCE_S, Home, check_taken_up, home, kill

SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITHOUT_FLUSH = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH: what only the cache holds is lost
IMAGE_BYTES = 64 * 2**20


class Disk:
    """An ext4 image and where it is mounted."""

    def __init__(self, folder: Path) -> None:
        self.image, self.path = folder / "disk.img", folder / "disk"

    def make(self) -> str:
        """Make and mount it; why that cannot be, or ""."""
        if sys.platform != "linux" or os.geteuid() != 0:
            return "only root may mount an image"
        if not (shutil.which("mkfs.ext4") and shutil.which("mount")):
            return "ext4's tools are not installed"
        self.path.mkdir()
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        made = subprocess.run(["mkfs.ext4", "-q", str(self.image)], capture_output=True, text=True, check=False, timeout=300)
        done = made if made.returncode else self._mount()
        return "" if done.returncode == 0 else f"an image cannot be mounted here: {done.stderr.strip()[:100]}"

    def _mount(self) -> subprocess.CompletedProcess[str]:
        command = ["mount", "-o", "loop", str(self.image), str(self.path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    def cut_power(self) -> None:
        """Lose what is not on the disk."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        except OSError as error:
            pytest.skip(f"this kernel does not shut a file system down: {error}")
        finally:
            os.close(folder)

    def start_again(self) -> None:
        self.unmount()
        done = self._mount()
        assert done.returncode == 0, done.stderr

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=False, capture_output=True, timeout=300)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path)
    if reason := made.make():
        pytest.skip(reason)
    yield made
    made.unmount()


def replay(at: Home, run_id: str) -> tuple[int, str]:
    child = at.start("replay", run_id)
    out, err = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out + err


@pytest.mark.slow
def test_an_ended_run_is_whole_after_the_cut(disk: Disk) -> None:
    with home(disk.path) as at:
        child = at.research()
        _, err = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0, err
        (log,) = at.logs
        disk.cut_power()
        disk.start_again()
        code, told = replay(at, log.parent.name)
        assert (code, "byte for byte" in told) == (0, True), told


@pytest.mark.parametrize(
    "facts", [pytest.param(30, marks=pytest.mark.slow), *(pytest.param(facts, marks=pytest.mark.long) for facts in (12, 60))]
)
def test_a_run_that_was_cut_in_the_middle_goes_on_to_its_report(disk: Disk, facts: int) -> None:
    with home(disk.path, latency_ms=40) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: len(kinds) >= facts)
        disk.cut_power()
        kill(child)
        disk.start_again()
        check_taken_up(at, run_id)
