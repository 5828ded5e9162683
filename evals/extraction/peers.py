"""The extractors that nexi is measured beside, and the folder they are installed in when asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from evals.extraction.scoring import Extractor

FOLDER = Path(__file__).resolve().parent.parent.parent / ".venv-extractors"
# The second asks for a library of its own choice to clean HTML, and works with the first's.
INSTALLS = (("trafilatura", "lxml_html_clean", "cssselect", "chardet"), ("--no-deps", "readability-lxml"))


def resiliparse_text(html: str, url: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, links=False))


def _trafilatura(html: str, url: str) -> str:
    peer = import_module("trafilatura")
    return str(peer.extract(html, url=url, output_format="markdown", include_links=True, include_tables=True) or "")


def _readability(html: str, url: str) -> str:
    """Its result is HTML; made Markdown by the same writer as nexi's, whole."""
    from html_to_markdown import convert

    peer = import_module("readability")
    try:
        summary = peer.Document(html, url=url).summary()
    except peer.readability.Unparseable:
        return ""
    return convert(summary).content or ""


def installed() -> dict[str, Extractor]:
    """The peers, installed first where they are not; empty, with a line that says why, where they cannot be."""
    if not FOLDER.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(FOLDER)]
        for packages in INSTALLS:
            if subprocess.run([*pip, "--upgrade", *packages], check=False).returncode:
                print(f"extraction: {' '.join(packages)} could not be installed")
                return {}
    sys.path.append(str(FOLDER))  # last, so that nexi's own libraries are the ones in use
    return {"trafilatura": _trafilatura, "readability-lxml": _readability}
