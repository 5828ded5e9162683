"""How much of a page's content survives as Markdown, beside other extractors, in one run.

    python -m evals.extraction [--data FOLDER] [--peers]

Prints word precision, recall and F1 over annotated pages, by type, and CPU time as a multiple of resiliparse's plain text.
Fails when nexi falls below `extraction-floors.json`. Where the pages or a peer are not there, it says so in one line.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from shutil import which
from typing import Any

from nexi.extract import to_markdown

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "extraction"
FLOORS = Path(__file__).with_name("extraction-floors.json")
PAGES = "pages-600.tar.zst"

Extractor = Callable[[str, str], str]
Score = tuple[float, float, float]

_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"\]\([^)]*\)")


@dataclass(frozen=True)
class Page:
    """A page and what people say its content is."""

    html: str
    url: str
    kind: str
    text: str


@dataclass
class Table:
    """The scores of one extractor."""

    cpu: float = 0.0
    rows: dict[str, list[Score]] = field(default_factory=lambda: defaultdict(list))

    def mean(self, kind: str, column: int = 2) -> float:
        return sum(row[column] for row in self.rows[kind]) / max(1, len(self.rows[kind]))


def resiliparse_text(html: str, url: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, links=False))


def trafilatura_markdown(html: str, url: str) -> str:
    peer = import_module("trafilatura")
    return str(peer.extract(html, url=url, output_format="markdown", include_links=True, include_tables=True) or "")


def readability_text(html: str, url: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    peer = import_module("readability")
    return str(extract_plain_text(peer.Document(html).summary(), main_content=False, links=False))


PEERS: dict[str, tuple[str, Extractor]] = {
    "trafilatura": ("trafilatura", trafilatura_markdown),
    "readability-lxml": ("readability", readability_text),
}


def pages(folder: Path) -> Iterator[Page]:
    """The annotated pages, from the archive; `zstd` unpacks it."""
    packed = subprocess.run(["zstd", "-dc", "--long=27", str(folder / PAGES)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        bodies = {Path(m.name): archive.extractfile(m) for m in archive if m.isfile()}
        truths = sorted(name for name in bodies if name.parent.name == "ground-truth")
        for name in truths:
            record = json.loads(_text(bodies[name]))
            html = _text(bodies[name.parent.parent / "html" / f"{name.stem}.html"])
            kind = record["_internal"]["page_type"]["primary"]
            yield Page(html, record["url"], kind, record["ground_truth"]["main_content"])


def _text(file: Any) -> str:
    return str(file.read().decode("utf-8", "replace"))


def counted(text: str) -> Counter[str]:
    """The words of a text; targets of links are no words."""
    return Counter(_WORD.findall(_TARGET.sub("]", text).lower()))


def compared(got: Counter[str], want: Counter[str]) -> Score:
    """Precision, recall and F1 of words."""
    if not got or not want:
        return (1.0, 1.0, 1.0) if got == want else (0.0, 0.0, 0.0)
    same = (got & want).total()
    precision, recall = same / got.total(), same / want.total()
    return precision, recall, 2 * precision * recall / (precision + recall) if same else 0.0


def scored(extractor: Extractor, over: list[Page]) -> Table:
    table = Table()
    for page in over:
        start = time.process_time()
        text = extractor(page.html, page.url)
        table.cpu += time.process_time() - start
        score = compared(counted(text), counted(page.text))
        table.rows["all"].append(score)
        table.rows[page.kind].append(score)
    return table


def below(table: Table, times: float, floors: dict[str, float]) -> list[str]:
    """What fell under its floor, or cost more than it may."""
    kinds = [kind for kind, least in floors.items() if kind in table.rows and table.mean(kind) < least]
    found = [f"{kind} {table.mean(kind):.3f} < {floors[kind]}" for kind in kinds]
    return found + ([f"CPU {times:.1f}x > {floors['cpu']}x"] if times > floors["cpu"] else [])


def line(name: str, table: Table, reference: Table) -> str:
    types = "  ".join(f"{kind} {table.mean(kind):.3f}" for kind in sorted(table.rows) if kind != "all")
    all_pages = f"F1 {table.mean('all'):.3f}  P {table.mean('all', 0):.3f}  R {table.mean('all', 1):.3f}"
    return f"{name:<18} {all_pages}  CPU {table.cpu / reference.cpu:.1f}x\n{'':<18} {types}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", action="store_true", help="also the extractors that are installed beside nexi")
    options = parser.parse_args()
    if not (options.data / PAGES).exists() or which("zstd") is None:
        print(f"extraction: skipped, no {PAGES} in {options.data.name} or no zstd")
        return 0
    over = list(pages(options.data))
    reference, ours = scored(resiliparse_text, over), scored(to_markdown, over)
    print(line("resiliparse text", reference, reference))
    print(line("nexi", ours, reference))
    for name, (module, extractor) in PEERS.items() if options.peers else ():
        try:
            import_module(module)
        except ImportError:
            print(f"{name:<18} skipped, not installed")
            continue
        print(line(name, scored(extractor, over), reference))
    failures = below(ours, ours.cpu / reference.cpu, json.loads(FLOORS.read_text(encoding="utf-8")))
    for failure in failures:
        print(f"below the floor: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
