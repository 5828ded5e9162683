"""The security eval counts what it says: a clean run is clean, a violation is found and ends with 1, absence is said."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from evals import security
from nexi.fetchers.guard import forbidden_reason

PAYLOADS = [
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://169.254.169.254/latest",
    "http://0x7f.1/",
    "gopher://127.0.0.1/",
    "http://",
]
MUST_FAIL = {"input": "http://a b/", "base": None, "failure": True}
TREES = b"#data\n<b><i></b>\n#errors\nx\n#document\n\n#data\n<table><p>\n#errors\n"


def archive(path: Path, name: str, body: bytes) -> None:
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(body)
        tar.addfile(member, io.BytesIO(body))


def data(folder: Path, urls: list[Any]) -> Path:
    """A small copy of the data, in the form of the large one."""
    contents = {
        "ssrf-and-fuzz": ("x/ssrf_payloads_1022.json", json.dumps(PAYLOADS).encode()),
        "wpt-url": ("x/urltestdata.json", json.dumps(["a comment", *urls]).encode()),
        "html5-tree-construction": ("x/tests1.dat", TREES),
        "json-test-suite": ("x/n_open.json", b'{"a": [1, 2'),
        "blns": ("x/blns.json", json.dumps(["", "\u0000", "<script>alert(1)</script>", "田中さん"]).encode()),
    }
    for name, (member, body) in contents.items():
        archive(folder / f"{name}.tar.gz", member, body)
    return folder


def run(folder: Path) -> tuple[int, dict[str, tuple[int, int]], str]:
    """In a process of its own: an audit hook stays. (exit code, cases and violations by row, what was said of trouble)."""
    command = [sys.executable, "-m", "evals.security", "--data", str(folder)]
    done = subprocess.run(command, cwd=security.ROOT, capture_output=True, text=True, timeout=300, check=False)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    return done.returncode, {row[0]: (int(row[1].replace(",", "")), int(row[2].split(" ")[0])) for row in rows}, done.stderr


def test_a_clean_run_counts_every_case_and_no_violation(tmp_path: Path) -> None:
    code, rows, trouble = run(data(tmp_path, [MUST_FAIL, {"input": "http://fine.example/", "base": None}]))
    assert (code, trouble) == (0, "")
    assert {name: violations for name, (_, violations) in rows.items() if violations} == {}
    cases = {name: count for name, (count, _) in rows.items()}
    assert (cases["SSRF URLs"], cases["redirects to them"], cases["WPT URLs that must fail"]) == (6, 6, 1)
    assert cases["made SSRF URLs"] == 10_000
    assert (cases["malformed HTML"], cases["JSON suite"], cases["naughty strings as text/html"]) == (2, 1, 4)


def test_a_violation_is_counted_and_ends_with_1(tmp_path: Path) -> None:
    accepted = {"input": "http://fine.example/", "base": None, "failure": True}
    code, rows, _ = run(data(tmp_path, [MUST_FAIL, accepted]))
    assert (code, rows["WPT URLs that must fail"]) == (1, (2, 1))


def test_the_watch_sees_a_connect_before_it_happens_and_lets_our_own_port_through() -> None:
    watch = security.Watch(own_port=8080)
    watch.hook("socket.connect", (None, ("127.0.0.1", 8080)))
    watch.hook("open", ("file", "r", 0))
    for address in (("10.0.0.1", 80), ("::1", 80, 0, 0), "/run/docker.sock"):
        with pytest.raises(ConnectionRefusedError):
            watch.hook("socket.connect", (None, address))
    assert [bool(forbidden_reason(address)) for address in watch.tried] == [True, True, True]
    assert (watch.taken(), watch.tried) == (["10.0.0.1", "::1", "/run/docker.sock"], [])


def test_text_that_takes_too_long_or_raises_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(body: bytes, content_type: str, url: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(security, "extract", broken)
    assert security.text_row("broken", [b"a", b"b"], "text/html").violations == 2
    monkeypatch.setattr(security, "extract", lambda *words: None)
    assert security.text_row("slow", [b"a"], "text/html", slow_s=-1.0).violations == 1


def test_without_the_data_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["security", "--data", str(tmp_path)])
    assert security.main() == 0
    assert capsys.readouterr().out == f"security: skipped, ssrf-and-fuzz.tar.gz is not in {tmp_path}\n"


def test_the_registry_and_the_guard_agree_on_the_made_addresses() -> None:
    addresses = (*security.FORBIDDEN, *security.FORBIDDEN_V6, "8.8.8.8", "2606:4700::1111")
    by_registry = [security.is_forbidden_by_registry(address) for address in addresses]
    assert (
        by_registry == [bool(forbidden_reason(address)) for address in addresses] == [True] * (len(addresses) - 2) + [False] * 2
    )
