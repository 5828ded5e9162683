"""Offline archives: the right page among the hits of a kiwix-serve and the answers from it, against the mini-web over HTTP.

    python -m evals.offline_archive [--sample N] [--shut] [--save]

The pages of the dev mini-web become a ZIM file (`zimwriterfs` of Debian's zim-tools), which kiwix-serve serves on this
machine; nothing else is asked. `--shut` runs all of it in a network namespace that has loopback alone (`unshare --net`), and
the table says whether any other address had a route. A page counts where a right one is among the ten hits, an answer where
the scorer finds it right and its citation supports it. The words that are left out and the ranking were made on another
sample.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from evals import answers
from evals.starved import DATA, SEED
from nexi.backends.kiwix import KiwixBackend
from nexi.backends.sender import Sender
from nexi.types import Query
from rig import miniweb

TABLE = Path(__file__).with_name("offline_archive.md")
TOP = 10
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WORDS = ["--language=eng", "--title=Mini", "--description=mini", "--creator=nexi", "--publisher=nexi", "--name=mini"]


def make_archive(corpus: miniweb.Corpus, folder: Path) -> Path:
    """Write the pages as `0.html`, `1.html` and so on into a ZIM file."""
    site = folder / "site"
    site.mkdir()
    for number, page in enumerate(corpus.pages):
        (site / f"{number}.html").write_text(page["html"], encoding="utf-8")
    (site / "i.png").write_bytes(base64.b64decode(PICTURE))
    archive = folder / "mini.zim"
    command = ["zimwriterfs", "--welcome=0.html", "--illustration=i.png", *WORDS, str(site), str(archive)]
    subprocess.run(command, check=True, capture_output=True)
    return archive


async def count_right(base: str, corpus: miniweb.Corpus, rows: list[dict[str, object]]) -> tuple[int, int]:
    """The questions whose page is found in the archive, and by the search of the mini-web."""
    backend, archived, served = KiwixBackend(base, Sender(user_agent="nexi")), 0, 0
    for row in rows:
        right = {str(url) for key in ("gold_urls", "also_urls") for url in row.get(key, ())}  # type: ignore[attr-defined]
        question = str(row["question"])
        hits = await backend.search(Query(question, count=TOP))
        numbers = [int(found[1]) for hit in hits if (found := re.search(r"/(\d+)\.html$", hit.url))]
        archived += not right.isdisjoint(corpus.pages[number]["url"] for number in numbers)
        served += not right.isdisjoint(corpus.pages[number]["url"] for number, _ in corpus.search(question)[1][:TOP])
    return archived, served


async def ask_archive(base: str, corpus: miniweb.Corpus, rows: list[dict[str, Any]], home: Path) -> answers.Row:
    """The answers without a model from the archive alone, its addresses read as those of the pages in it."""
    config = answers.bare_config(base, home, model="extractive", search_backend=("kiwix",), service_urls={"kiwix": base})
    replies = {}
    for row in rows:
        reply = await answers.ask(config, row)
        for name in ("citations", "fetched"):
            reply[name] = [_page_address(corpus, url) for url in reply.get(name, ())]
        replies[row["id"]] = reply
    return answers.summary("ZIM", False, rows, replies)


def _page_address(corpus: miniweb.Corpus, url: str) -> str:
    found = re.search(r"/(\d+)\.html$", url)
    return str(corpus.pages[int(found[1])]["url"]) if found else url


def shut_network() -> int:
    """Run this command again, without the flag, where there is no network but loopback."""
    again = [sys.executable, "-m", "evals.offline_archive", *(word for word in sys.argv[1:] if word != "--shut")]
    inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", *again]
    return subprocess.run(["unshare", "--map-root-user", "--net", *inside], check=False).returncode


def is_network_shut() -> bool:
    """Whether no address outside this machine has a route; nothing is sent."""
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            if probe.connect_ex((address, 9)) == 0:
                return False
    return True


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sample", type=int, default=40)
    options.add_argument("--save", action="store_true", help="write the table")
    options.add_argument("--shut", action="store_true", help="run in a network namespace that has loopback alone")
    given = options.parse_args()
    if given.shut:
        return shut_network()
    is_shut = is_network_shut()
    source = DATA / "dev.tar.gz"
    corpus = miniweb.load(source)
    rows = random.Random(SEED).sample(miniweb.read_jsonl(source, "questions.jsonl"), given.sample)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        archive = make_archive(corpus, Path(folder))
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        server = subprocess.Popen(
            ["kiwix-serve", "--address", "127.0.0.1", "--port", str(port), str(archive)],
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/")
            base = f"http://127.0.0.1:{port}"
            archived, served = asyncio.run(count_right(base, corpus, rows))
            offline = asyncio.run(ask_archive(base, corpus, rows, Path(folder) / "home"))
        finally:
            server.terminate()
            server.wait()
        with miniweb.serve(source) as web:
            model = {"model": "extractive"}
            replies = asyncio.run(answers.ask_all(web, Path(folder) / "online", rows, model))
    online = answers.summary("HTTP", False, rows, replies)
    lines = [
        "# Offline archives",
        "",
        f"Right page among the first {TOP} hits, the same pages as a ZIM file, kiwix-serve 3.3.0",
        f"(`python -m evals.offline_archive --sample {len(rows)}{' --shut' * is_shut}`).",
        *(("", "The network was shut: nothing but loopback could be reached.") if is_shut else ()),
        "",
        "| questions of dev | kiwix-serve | search of the mini-web |",
        "|---|---|---|",
        f"| {len(rows)} | {archived} | {served} |",
        "",
        "Answers without a model from the same pages; shares in per cent:",
        "",
        *answers.table([offline, online]).splitlines(),
    ]
    print("\n".join(lines[2:]))
    if given.save:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def wait_for(url: str) -> None:
    for _ in range(100):
        try:
            urlopen(url).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
