"""Hints name the command that works in this installation: pip, pipx, uv; another project's `nexi` is noticed."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from nexi import doctor, install
from nexi.install import _list_requirements, import_silenced, install_command, other_package, reader_command

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["numpy>=2.0", "qdrant-client>=1.15"]


class Installed:
    """The metadata of a package that is installed."""

    def __init__(self, direct: object = None) -> None:
        self.direct = direct

    def read_text(self, name: str) -> str | None:
        return json.dumps(self.direct) if name == "direct_url.json" and self.direct else None


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["click>=8.2", *(f'{package}; extra == "qdrant"' for package in PACKAGES), "mcp<3,>=2.3; extra == 'mcp'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: rows if name == "nexi-engine" else None)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed())
    monkeypatch.setattr(install, "find_spec", lambda name: object())


def test_pip_is_that_of_the_interpreter_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/opt/nexi/bin/python")
    assert install_command("mcp") == '/opt/nexi/bin/python -m pip install "mcp<3,>=2.3"'
    monkeypatch.setattr(sys, "executable", "/opt/my nexi/bin/python")
    assert install_command("qdrant") == '"/opt/my nexi/bin/python" -m pip install "numpy>=2.0" "qdrant-client>=1.15"'


def test_an_environment_without_pip_is_one_of_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/opt/nexi/bin/python")
    monkeypatch.setattr(install, "find_spec", lambda name: None)
    assert install_command("mcp") == 'uv pip install --python /opt/nexi/bin/python "mcp<3,>=2.3"'


def test_pipx_injects_into_the_environment_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/a/.local/share/pipx/venvs/nexi-engine")
    assert install_command("mcp") == 'pipx inject nexi-engine "mcp<3,>=2.3"'


@pytest.mark.parametrize(
    ("direct", "source"),
    [
        (None, "nexi-engine"),
        ({"url": "file:///src/nexi", "dir_info": {}}, "nexi-engine @ file:///src/nexi"),
        (
            {"url": "https://git.example/nexi", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "nexi-engine @ git+https://git.example/nexi",
        ),
    ],
)
def test_a_tool_of_uv_is_installed_again_from_where_it_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, direct: Any, source: str
) -> None:
    (tmp_path / "uv-receipt.toml").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(direct))
    assert install_command("qdrant") == f'uv tool install --with "numpy>=2.0" --with "qdrant-client>=1.15" "{source}"'


@pytest.mark.parametrize(
    ("direct", "package"),
    [
        (None, "./reader"),
        (
            {"url": "https://git.example/nexi", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "nexi-engine-reader @ git+https://git.example/nexi#subdirectory=reader",
        ),
    ],
)
def test_the_reading_model_comes_from_the_repository_of_nexi_or_from_a_checkout(
    monkeypatch: pytest.MonkeyPatch, direct: Any, package: str
) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/a/.local/share/pipx/venvs/nexi-engine")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(direct))
    assert reader_command() == f'pipx inject nexi-engine "{package}"'


RECEIPT = """[tool]
requirements = [
    { name = "nexi-engine", directory = "/src/nexi" },
    { name = "mcp", specifier = "<3,>=2.3" },
    { name = "psycopg", extras = ["binary", "pool"] },
    { name = "helper", git = "https://git.example/helper" },
    { name = "nexi-engine-reader", git = "https://git.example/nexi?subdirectory=reader" },
]
"""


def test_a_tool_of_uv_keeps_what_an_earlier_hint_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text(RECEIPT)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("qdrant") == (
        'uv tool install --with "mcp<3,>=2.3" --with "psycopg[binary,pool]" --with "helper @ git+https://git.example/helper" '
        '--with "nexi-engine-reader @ git+https://git.example/nexi#subdirectory=reader" '
        '--with "numpy>=2.0" --with "qdrant-client>=1.15" "nexi-engine"'
    )


def test_a_checkout_names_the_packages_of_the_extra_and_never_a_package_that_somebody_else_may_register(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert _list_requirements("mcp") == extras["mcp"]
    assert all("nexi-engine" not in install_command(extra) for extra in extras)


@pytest.mark.parametrize(("extras", "expected"), [((), "nexi 1.0.7: Neurites"), (("mcp", "vectors"), "")])
async def test_the_package_of_another_project_is_noticed(
    monkeypatch: pytest.MonkeyPatch, extras: tuple[str, ...], expected: str
) -> None:
    theirs = Message()
    for name, value in [
        ("Name", "nexi"),
        ("Version", "1.0.7"),
        ("Summary", "Neurites"),
        *(("Provides-Extra", e) for e in extras),
    ]:
        theirs[name] = value
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: theirs)
    assert other_package() == expected
    checks = await doctor._check_versions(doctor._DoctorEnvironment(libraries=()))
    assert [(check.ok, check.cause) for check in checks[1:]] == ([(False, expected)] if expected else [])


def test_the_distribution_has_its_own_name_and_every_version_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [row.rpartition(" ")[2] for row in project["classifiers"] if "Python :: 3." in row]
    assert (project["name"], list(project["scripts"])) == ("nexi-engine", ["nexi"])
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def test_no_hint_installs_the_package_of_another_project() -> None:
    files = [*(ROOT / "nexi").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    hints = ("pip install nexi", 'pip install "nexi[', "pip install 'nexi[", "`nexi[")
    texts = {path: path.read_text(encoding="utf-8").replace("nexi-engine", "") for path in files}
    assert [(path.name, hint) for path, text in texts.items() for hint in hints if hint in text] == []


def test_the_command_names_a_package_that_has_overwritten_files_of_nexi(tmp_path: Path) -> None:
    """As it is found after `pip install nexi`: their package in the place of ours, and our command beside it."""
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "__init__.py").write_text("import a_library_that_is_missing\n")
    (tmp_path / "nexi-1.0.7.dist-info").mkdir()
    (tmp_path / "nexi-1.0.7.dist-info" / "METADATA").write_text("Name: nexi\nVersion: 1.0.7\nSummary: Neurites\n")
    shutil.copy(ROOT / "nexi_engine.py", tmp_path)
    words = [sys.executable, "-S", "-c", "import nexi_engine; nexi_engine.main()"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    fix = f"{sys.executable} -m pip uninstall nexi, then install nexi-engine again"
    said = f"Error: another project's package has overwritten files of nexi-engine: nexi 1.0.7, Neurites\n  Fix: {fix}\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_the_command_hides_no_failure_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "__init__.py").write_text("import a_library_that_is_missing\n")
    shutil.copy(ROOT / "nexi_engine.py", tmp_path)
    words = [sys.executable, "-S", "-c", "import nexi_engine; nexi_engine.main()"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'a_library_that_is_missing'\n")


def test_a_library_that_runs_models_finds_its_telemetry_switched_off_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    (tmp_path / "runtime_of_models.py").write_text("import os\nOFF = os.environ.get('ORT_DISABLE_TELEMETRY')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_silenced("runtime_of_models").OFF == "1"


def test_nothing_of_nexi_loads_onnx_runtime_in_another_way() -> None:
    sources = (Path(__file__).resolve().parents[1] / "nexi").rglob("*.py")
    loading = [line.strip() for path in sources for line in path.read_text().splitlines() if 'onnxruntime")' in line]
    assert loading
    assert all("import_silenced" in line for line in loading)
