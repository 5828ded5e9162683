"""Build a release and try it: wheel and sdist in dist/, installed into an empty environment, and a list of all it brings along.

`make release` runs it. The version must have its section in CHANGELOG.md. The wheel is installed as a user would, answers the
demo's question with an empty home, and its environment is described in dist/ as a CycloneDX document (SBOM). The sdist must
build the same wheel. Nothing is uploaded and no tag is set.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def read_version() -> str:
    text = (ROOT / "nexi" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def read_changes(version: str) -> str:
    """The section of a version in the changelog; "" where it has none."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return section[1].strip() if section else ""


def build(source: Path, folder: Path, target: str) -> Path:
    """Build a wheel or an sdist of a source tree with the build backend itself, without a network."""
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), cwd=source)
    return max(folder.glob("*.whl" if target == "wheel" else "*.tar.gz"), key=lambda path: path.stat().st_mtime)


def run(*command: str, cwd: Path = ROOT, home: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NEXI_", "OPENAI_", "PYTHON"))}
    if home:
        environment["HOME"] = str(home)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def list_contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("RECORD")}


def main() -> int:
    version = read_version()
    if not read_changes(version):
        raise SystemExit(f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD'")
    DIST.mkdir(exist_ok=True)
    wheel, sdist = build(ROOT, DIST, "wheel"), build(ROOT, DIST, "sdist")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run("tar", "-xzf", str(sdist), "-C", str(folder))
        [source] = [path for path in folder.iterdir() if path.is_dir()]
        if list_contents(build(source, folder / "again", "wheel")) != list_contents(wheel):
            raise SystemExit(f"{sdist.name} does not build the same wheel")
        for name in ("user", "tools"):
            venv.create(folder / name, with_pip=True)
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(str(folder / "user" / "bin" / "python"), *install, str(wheel), cwd=folder)
        run(str(folder / "tools" / "bin" / "python"), *install, "cyclonedx-bom>=7", cwd=folder)
        nexi, home = str(folder / "user" / "bin" / "nexi"), folder / "home"
        home.mkdir()
        print(run(nexi, "--version", cwd=folder, home=home).strip())
        print(run(nexi, "demo", cwd=folder, home=home).strip())
        components = DIST / f"nexi_engine-{version}.cdx.json"
        tool = str(folder / "tools" / "bin" / "cyclonedx-py")
        run(tool, "environment", "--output-reproducible", "-o", str(components), str(folder / "user"), cwd=folder)
    for path in (wheel, sdist, components):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
