"""The unit and the container files say what `nexi serve` takes, and open nothing that should stay closed."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from nexi import cli
from nexi.config import FIELD_VARIABLES, KEY_VARIABLES

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"


def takes(arguments: list[str]) -> dict[str, Any]:
    command = cli.main.get_command(click.Context(cli.main), arguments[0])
    assert command
    return dict(command.make_context(arguments[0], arguments[1:]).params)


def test_the_unit_starts_a_server_on_this_machine() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read(DEPLOY / "nexi.service", encoding="utf-8")
    words = shlex.split(unit["Service"]["ExecStart"])
    given = takes(words[1:])
    assert given["host"] == "127.0.0.1"
    assert given["drain_s"] < float(unit["Service"]["TimeoutStopSec"])
    assert unit["Service"]["SuccessExitStatus"] == "143"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed: apt-get install systemd")
def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "nexi"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    verify = ["systemd-analyze", "verify", "--user", "--man=no", str(DEPLOY / "nexi.service")]
    known = {"PATH": os.defpath, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    told = subprocess.run(verify, env=known, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_the_container_serves_beyond_itself_as_nobody_special() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    command = json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[-1])
    given = takes(command[1:])
    assert (given["host"], given["port"], given["token"]) == ("0.0.0.0", 8000, "")
    assert re.search(r"^USER nexi$", text, re.MULTILINE)
    assert "NEXI_TOKEN=" not in text


def test_both_files_check_health_in_the_same_way() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (check,) = re.findall(r"^HEALTHCHECK .* CMD (.*)$", text, re.MULTILINE)
    assert ["CMD", *json.loads(check)] == compose["services"]["nexi"]["healthcheck"]["test"]


def test_the_build_sees_the_package_and_nothing_beside_it() -> None:
    lines = (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    code = {"nexi", "nexi_engine.py", "docs/*.md", "man", "pyproject.toml"}
    needed = code | {"README.md", "LICENSE", "reader", "requirements.txt", "requirements-reader.txt", "requirements-dev.txt"}
    assert {line[1:] for line in lines if line.startswith("!")} == needed


def test_compose_opens_one_port_of_this_machine_and_names_variables_that_are_read() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    ports = {name: service.get("ports", []) for name, service in compose["services"].items()}
    assert ports == {"nexi": ["127.0.0.1:${NEXI_PORT:-8000}:8000"], "searxng": [], "qdrant": []}
    networks = {name: service["networks"] for name, service in compose["services"].items()}
    assert networks == {"nexi": ["search", "knowledge"], "searxng": ["search"], "qdrant": ["knowledge"]}
    assert compose["networks"]["knowledge"] == {"internal": True}
    known = {name for names in FIELD_VARIABLES.values() for name in names} | set(KEY_VARIABLES.values())
    assert set(compose["services"]["nexi"]["environment"]) <= known
    settings = yaml.safe_load((DEPLOY / "searxng.yml").read_text(encoding="utf-8"))
    assert "json" in settings["search"]["formats"]


def test_the_team_server_opens_one_port_and_starts_what_the_commands_take() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((DEPLOY / "team.yaml").read_text(encoding="utf-8"))["services"]
    ports = {name: service.get("ports", []) for name, service in services.items()}
    assert ports == {"server": ["127.0.0.1:${NEXI_PORT:-8000}:8000"], "worker": [], "database": [], "searxng": []}
    assert takes(services["worker"]["command"][1:])["drain_s"] < float(services["worker"]["stop_grace_period"].rstrip("s"))
    known = {name for names in FIELD_VARIABLES.values() for name in names} | set(KEY_VARIABLES.values())
    for name in ("server", "worker"):
        assert set(services[name]["environment"]) <= known
        assert (services[name]["restart"], "cluster" in services[name]["build"]["args"]["EXTRAS"]) == ("always", True)
    assert services["database"]["networks"] == ["state"]


def kubernetes_objects() -> dict[tuple[str, str], dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    objects = [entry for file in files for entry in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in objects}


VERSIONS = {
    "ConfigMap": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}


@pytest.mark.parametrize(("version", "is_used"), [("1.0.3", False), ("1.5.9", False), ("1.6.0", True), ("2.0", True)])
def test_a_podman_compose_that_is_too_old_is_refused_before_anything_is_made(
    tmp_path: Path, version: str, is_used: bool
) -> None:
    shutil.copy(DEPLOY / "team.sh", tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text("#!/bin/sh\nexit 1\n")
    compose = f'[ "$1" = --version ] && echo "podman-compose version {version}" && exit\necho "called: $*"\nexit 3\n'
    (programs / "podman-compose").write_text(f"#!/bin/sh\n{compose}")
    for program in programs.iterdir():
        program.chmod(0o755)
    done = subprocess.run(
        ["sh", tmp_path / "team.sh"],
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    refusal = "deploy/team.sh needs podman-compose 1.6 or newer: pipx install podman-compose\n"
    assert (done.returncode, done.stderr) == ((3, "") if is_used else (1, refusal))
    assert done.stdout == ("called: -f team.yaml build server\n" if is_used else "")
    assert (tmp_path / ".env").exists() is is_used


def test_the_kubernetes_objects_fit_each_other() -> None:
    objects = kubernetes_objects()
    assert {kind: entry["apiVersion"] for (kind, _), entry in objects.items()} == VERSIONS
    pods = {name: entry["spec"]["template"] for (kind, name), entry in objects.items() if kind == "Deployment"}
    assert set(pods) == {"nexi-server", "nexi-worker"}
    for (kind, name), entry in objects.items():
        assert entry["metadata"]["labels"]["app"] == "nexi"
        chosen = entry.get("spec", {}).get("selector", {})
        chosen = chosen.get("matchLabels", chosen)
        fitting = [pod for pod in pods.values() if chosen.items() <= pod["metadata"]["labels"].items()]
        assert kind in ("ConfigMap", "NetworkPolicy") or len(fitting) == 1, name
    ports = {port["containerPort"] for pod in pods.values() for port in pod["spec"]["containers"][0]["ports"]}
    assert ports == {rule["port"] for rule in objects["NetworkPolicy", "nexi"]["spec"]["ingress"][0]["ports"]} == {8000, 9100}
    assert objects["Service", "nexi"]["spec"]["ports"][0]["targetPort"] == "http"
    assert set(objects["ConfigMap", "nexi"]["data"]) <= {name for names in FIELD_VARIABLES.values() for name in names}


@pytest.mark.parametrize("part", ["server", "worker"])
def test_a_pod_is_probed_limited_and_nobody_special(part: str) -> None:
    pod = kubernetes_objects()["Deployment", f"nexi-{part}"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    paths = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: probe["path"] for kind, probe in paths.items()} == {
        "startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz",
    }  # fmt: skip
    assert {probe["port"] for probe in paths.values()} == {container["ports"][0]["name"]}
    assert set(container["resources"]["limits"]) == set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    given = takes(container["command"][1:])
    assert (given["host"], given["port"]) == ("0.0.0.0", container["ports"][0]["containerPort"])
    assert given["drain_s"] < pod["terminationGracePeriodSeconds"]
    assert {"secretRef": {"name": "nexi"}} in container["envFrom"]


def test_no_secret_is_written_into_a_file_of_kubernetes() -> None:
    objects = kubernetes_objects()
    assert "Secret" not in {kind for kind, _ in objects}
    secret = {*KEY_VARIABLES.values(), "NEXI_DATABASE_URL", "NEXI_OIDC_SECRET", "NEXI_TOKEN"}
    assert secret.isdisjoint(objects["ConfigMap", "nexi"]["data"])
    for (kind, _), entry in objects.items():
        if kind == "Deployment":
            assert "env" not in entry["spec"]["template"]["spec"]["containers"][0]
