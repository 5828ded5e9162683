"""How a missing part of nexi gets into this very installation: the command for pipx, uv or pip, whichever made it.

The distribution is called nexi-engine; `nexi` on PyPI is another project's, so a command names the packages of an extra.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DISTRIBUTION = "nexi-engine"
READER = "nexi-engine-reader"
FORMER_NAME = "nexi"  # of ours before, and of another project on PyPI


def import_silenced(name: str) -> Any:
    """A library that runs models, with its telemetry off: ONNX Runtime would report each session to its maker."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when the library is loaded; its own function for it comes too late
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    return import_module(name)


def find_package(name: str) -> Path | None:
    """The folder of an installed package, found without running its code; None where it is not installed."""
    spec = find_spec(name)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def install_command(extra: str) -> str:
    """The command that installs an extra of nexi where this nexi runs."""
    return _build_command(_list_requirements(extra))


def reader_command() -> str:
    """The command that installs the reading model where this nexi runs: from the repository nexi came from, or a checkout."""
    place = _find_source().partition(" @ ")[2]
    return _build_command([f"{READER} @ {place}#subdirectory=reader"] if place.startswith("git+") else ["./reader"])


def _build_command(packages: Sequence[str]) -> str:
    names = " ".join(f'"{package}"' for package in packages)
    prefix = Path(sys.prefix)
    if prefix.parent.name == "venvs" and "pipx" in prefix.parts:
        return f"pipx inject {prefix.name} {names}"
    if (prefix / "uv-receipt.toml").is_file():  # uv removes what the command does not name again
        with_options = " ".join(f'--with "{package}"' for package in dict.fromkeys((*_list_added(prefix), *packages)))
        return f'uv tool install {with_options} "{_find_source()}"'
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    return f"{python} -m pip install {names}" if find_spec("pip") else f"uv pip install --python {python} {names}"


def _list_requirements(extra: str) -> list[str]:
    """The packages of an extra, as the installed nexi names them, or the checkout that runs."""
    from importlib.metadata import PackageNotFoundError, requires

    for name in (DISTRIBUTION, FORMER_NAME):
        try:
            rows = [row.partition(";") for row in requires(name) or ()]
        except PackageNotFoundError:
            continue
        packages = [package.strip() for package, _, marker in rows if marker.strip().replace("'", '"') == f'extra == "{extra}"']
        if packages:
            return packages
    checkout = Path(__file__).resolve().parent.parent / "pyproject.toml"
    extras = tomllib.loads(checkout.read_text("utf-8"))["project"]["optional-dependencies"] if checkout.is_file() else {}
    return list(extras.get(extra, ()))


def _list_added(prefix: Path) -> list[str]:
    """What was installed beside nexi in a tool of uv, by its receipt."""
    rows = tomllib.loads((prefix / "uv-receipt.toml").read_text("utf-8")).get("tool", {}).get("requirements", ())
    packages = []
    for row in rows:
        extras = f"[{','.join(row['extras'])}]" if row.get("extras") else ""
        address, _, folder = str(row.get("git") or "").partition("?subdirectory=")
        repository = f"git+{address}" + (f"#subdirectory={folder}" if folder else "") if address else ""
        place = repository or row.get("url") or row.get("path") or row.get("directory") or ""
        if row.get("name") != DISTRIBUTION:
            packages.append(f"{row['name']}{extras}" + (f" @ {place}" if place else row.get("specifier", "")))
    return packages


def _find_source() -> str:
    """What nexi was installed from: its name, or the file, folder or repository."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        direct = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        direct = {}
    if not direct.get("url"):
        return DISTRIBUTION
    scheme = f"{direct['vcs_info']['vcs']}+" if direct.get("vcs_info") else ""
    return f"{DISTRIBUTION} @ {scheme}{direct['url']}"


def other_package() -> str:
    """What the package `nexi` of another project says of itself, where it is installed beside this one; else ""."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        theirs = metadata(FORMER_NAME)
    except PackageNotFoundError:
        return ""
    provides = set(theirs.get_all("Provides-Extra") or ())
    return "" if {"mcp", "vectors"} <= provides else f"{theirs['Name']} {theirs['Version']}: {theirs['Summary']}"
