"""A run in one file: without keys, playable elsewhere, and harmless when a stranger made it."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app.stored_runs import read_bundle, write_bundle
from nexi.config import Config
from nexi.errors import StoreError
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import seal_record
from nexi.testing import FakeClock
from tests.raising import has_code
from tests.research.test_resume import research
from tests.research.world import PAGES, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]


def directory(config: Config) -> RunDirectory:
    return RunDirectory(config.runs_dir, config.pages_dir, clock=FakeClock())


def replayed(config: Config, run_id: str) -> tuple[bool, str]:
    async def work() -> tuple[bool, str]:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            replay = await nexi.replay(run_id)
            return replay.is_same, replay.result.answer.text

    return play(work)


def archive(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def members_of(path: Path) -> list[str]:
    """The texts in a bundle, the log first; nobody else may read them."""
    with tarfile.open(path) as tar:
        assert {member.mode for member in tar} == {0o600}
        return [file.read().decode() for member in tar if (file := tar.extractfile(member))]


def test_a_bundle_is_played_again_in_another_home_byte_for_byte(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    path = tmp_path / "run.tar.gz"
    assert write_bundle(directory(config), whole.id, path, ["sk-unused"]) == len(list(config.pages_dir.rglob("*.txt")))
    there = config.override(home=tmp_path / "elsewhere")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_bundle(path, directory(there)) == whole.id
    assert replayed(there, whole.id) == (True, whole.answer.text)


def test_keys_are_taken_out_of_log_and_pages_and_the_log_still_opens(make_config: Make, tmp_path: Path) -> None:
    key = 'sk-"secret"-123'
    config = make_config()

    async def work() -> str:
        pages = {url: f"{text} Key {key}." for url, text in PAGES.items()}
        async with nexi_over(config, SlowWeb(pages), PromptModel()) as nexi, nexi.research(f"What is {key}?") as run:
            async for _ in run:
                pass
            return run.id

    run_id = play(work)
    path = tmp_path / "run.tar.gz"
    write_bundle(directory(config), run_id, path, [key, ""])
    texts = members_of(path)
    assert not any("secret" in text for text in texts)
    assert "What is [redacted]?" in texts[0]
    assert {line.count('"sum"') for line in texts[0].splitlines()} == {1}
    there = directory(config.override(home=tmp_path / "elsewhere"))
    assert read_bundle(path, there) == run_id
    assert len(there.open_log(run_id).facts) == len(directory(config).open_log(run_id).facts)


def test_a_run_that_was_cut_off_can_be_sent_too(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    log = config.runs_dir / whole.id / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-300])
    path = tmp_path / "run.tar.gz"
    write_bundle(directory(config), whole.id, path, ["The"])
    assert not any("The" in text for text in members_of(path))
    there = directory(config.override(home=tmp_path / "elsewhere"))
    assert there.open_log(read_bundle(path, there)).has_ended is False


def test_an_existing_file_and_an_unknown_run_are_refused(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    path = tmp_path / "run.tar.gz"
    path.write_text("mine")
    with pytest.raises(StoreError, check=has_code("store", "run.tar.gz")):
        write_bundle(directory(config), whole.id, path, [])
    assert path.read_text() == "mine"
    with pytest.raises(StoreError):
        write_bundle(directory(config), "ffffff", tmp_path / "other.tar.gz", [])
    assert not (tmp_path / "other.tar.gz").exists()
    with pytest.raises(StoreError, check=has_code("store", "where.tar.gz")):
        write_bundle(directory(config), whole.id, tmp_path / "no" / "where.tar.gz", [])


def spoilt(path: Path, whole: bytes, kind: str) -> Path:
    match kind:
        case "nothing":
            path.write_bytes(b"")
        case "no archive":
            path.write_bytes(b"# a report, not a bundle\n" * 50)
        case "cut off":
            path.write_bytes(whole[: len(whole) // 2])
        case "spoilt inside":
            path.write_bytes(whole[:200] + bytes(b ^ 0x5A for b in whole[200:400]) + whole[400:])
        case "no log":
            archive(path, **{"pages/x.txt": b"x"})
        case "a log of nothing":
            archive(path, **{"log.jsonl": b""})
        case "an id that is a path":
            header = {"schema": 1, "run": "../../x", "created": "2026-01-02T00:00:00+00:00", "nexi": "1"}
            archive(path, **{"log.jsonl": seal_record(header)})
        case "no text":
            archive(path, **{f"pages/{'0' * 64}.txt": b"\xff\xfe"})
    return path


@pytest.mark.parametrize(
    "kind",
    ["nothing", "no archive", "cut off", "spoilt inside", "no log", "a log of nothing", "an id that is a path", "no text"],
)
def test_what_is_no_bundle_is_refused_with_a_reason(make_config: Make, tmp_path: Path, kind: str) -> None:
    config = make_config()
    whole = tmp_path / "whole.tar.gz"
    write_bundle(directory(config), research(config, PromptModel()).id, whole, [])
    there = config.override(home=tmp_path / "elsewhere")
    with pytest.raises(StoreError, check=has_code("store", "bad.tar.gz")) as refused:
        read_bundle(spoilt(tmp_path / "bad.tar.gz", whole.read_bytes(), kind), directory(there))
    assert (bool(refused.value.cause), refused.value.fix) == (True, "nexi export ID --bundle makes one")


def test_paths_links_and_devices_of_a_stranger_are_ignored(make_config: Make, tmp_path: Path) -> None:
    config = make_config()
    path = tmp_path / "run.tar.gz"
    run_id = research(config, PromptModel()).id
    log = (config.runs_dir / run_id / "log.jsonl").read_bytes()
    with tarfile.open(path, "w:gz") as tar:
        for name, kind in (
            ("../../evil", tarfile.REGTYPE),
            ("/etc/evil", tarfile.REGTYPE),
            ("pages/../evil", tarfile.REGTYPE),
            (f"pages/{'a' * 64}.txt", tarfile.SYMTYPE),
            (f"pages/{'b' * 64}.txt", tarfile.LNKTYPE),
            ("pages", tarfile.DIRTYPE),
            ("device", tarfile.CHRTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
        for name, data in (("log.jsonl", log), (f"pages/{'c' * 64}.txt", b"another text than its name says")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    home = tmp_path / "elsewhere"
    assert read_bundle(path, directory(config.override(home=home))) == run_id
    assert [str(p.relative_to(home)) for p in sorted(home.rglob("*")) if p.is_file()] == [f"runs/{run_id}/log.jsonl"]
    assert not (tmp_path / "evil").exists()


def test_an_archive_larger_than_a_run_can_be_is_not_unpacked(make_config: Make, tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.tar.gz", **{"log.jsonl": b"0" * 10_001})
    with pytest.raises(StoreError, match="larger than a run can be"):
        read_bundle(path, directory(make_config()), max_bytes=10_000)
    many = archive(tmp_path / "many.tar.gz", **{f"f{n}": b"" for n in range(5)})
    with pytest.raises(StoreError, match="larger than a run can be"):
        read_bundle(many, directory(make_config()), max_files=3)


@pytest.mark.parametrize(
    ("sizes", "cause"),
    [
        ([512_000_000], "unexpected end of data"),
        ([512_000_001], "it is larger than a run can be"),
        ([0] * 20_000, "it has no log"),
        ([0] * 20_001, "it is larger than a run can be"),
    ],
)
def test_what_an_archive_says_of_its_size_is_believed_before_it_is_read(
    make_config: Make, tmp_path: Path, sizes: list[int], cause: str
) -> None:
    path, member = tmp_path / "bomb.tar.gz", tarfile.TarInfo("file")
    with gzip.open(path, "wb", compresslevel=1) as file:
        for member.size in sizes:
            file.write(member.tobuf())
    with pytest.raises(StoreError) as refused:
        read_bundle(path, directory(make_config()))
    assert refused.value.cause == cause


def test_a_bundle_that_cannot_be_opened_says_so(make_config: Make, tmp_path: Path) -> None:
    with pytest.raises(StoreError, check=has_code("store", tmp_path)):
        read_bundle(tmp_path, directory(make_config()))
