"""A power cut at every flush of a run: what the disk holds then is consistent, and an ended run is whole.

A recording layer notes, at each fsync, what the disk is sure to hold: the bytes of a file as of its last fsync, and the
names in a folder as of its own. Everything else counts as lost, which is stricter than any real file system.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app.folders import Folders
from nexi.config import Config
from nexi.errors import StoreError
from nexi.events import PageFetched
from nexi.runs.directory import RunDirectory, describe_damage
from nexi.testing import FakeClock
from tests.research.test_resume import research
from tests.research.world import PromptModel, replayed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the path of a descriptor is read from /proc")

Make = Callable[..., Config]


class DurableDisk:
    """What is sure to be on the disk below `root`, and a copy of it after every flush."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.cuts: list[dict[str, bytes]] = []
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._real_fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, fd: int) -> None:
        self._real_fsync(fd)
        found, path = os.fstat(fd), Path(f"/proc/self/fd/{fd}").readlink()
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._bytes[found.st_ino] = path.read_bytes()
        self.cuts.append(self._files_of(self.root.stat().st_ino, ""))

    def _files_of(self, folder: int, prefix: str) -> dict[str, bytes]:
        held: dict[str, bytes] = {}
        for name, inode in self._names.get(folder, {}).items():
            held |= self._files_of(inode, f"{prefix}{name}/") if inode in self._names else {}
            if "." in name:
                held[prefix + name] = self._bytes.get(inode, b"")
        return held


def write_home(home: Path, files: dict[str, bytes]) -> RunDirectory:
    for name, data in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    return RunDirectory(home / "runs", home / "pages", FakeClock())


def test_at_every_flush_the_log_on_the_disk_names_only_texts_that_are_on_it_too(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config()
    config.root.mkdir(parents=True, exist_ok=True)
    disk = DurableDisk(config.root, monkeypatch)
    whole = research(config, PromptModel())
    named = []
    for number, files in enumerate(disk.cuts):
        runs = write_home(tmp_path / f"cut{number}", files)
        try:
            facts = [fact for _, fact in runs.open_log(whole.id).facts]
        except StoreError:
            continue  # the cut came before the header was flushed
        assert (number, describe_damage(runs.pages, facts)) == (number, "")
        named.append(len({digest for f in facts if isinstance(f, PageFetched) for digest in (f.digest, f.links) if digest}))
    assert (named[0], named[-1]) == (0, len(list(config.pages_dir.rglob("*.txt"))))
    assert named[-1] > 3


def test_a_run_that_ended_is_replayed_from_what_a_power_cut_leaves(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config()
    config.root.mkdir(parents=True, exist_ok=True)
    disk = DurableDisk(config.root, monkeypatch)
    whole = research(config, PromptModel())
    monkeypatch.undo()
    left = make_config(home=tmp_path / "after")
    write_home(left.root, disk.cuts[-1])
    assert replayed(left, whole.id) == whole.answer.text


def test_the_names_of_indexed_folders_survive_the_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "folders.json"
    disk = DurableDisk(tmp_path, monkeypatch)
    Folders(place).address_of(tmp_path / "notes" / "pump.md", tmp_path / "notes")
    assert disk.cuts[-1]["folders.json"] == place.read_bytes()


def test_the_recording_layer_loses_what_was_not_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = DurableDisk(tmp_path, monkeypatch)
    (tmp_path / "a.txt").write_bytes(b"never flushed")
    with (tmp_path / "b.txt").open("wb") as file:
        file.write(b"flushed")
        file.flush()
        os.fsync(file.fileno())
        file.write(b", and more")
    assert disk.cuts[-1] == {}
    fd = os.open(tmp_path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    assert disk.cuts[-1] == {"a.txt": b"", "b.txt": b"flushed"}
