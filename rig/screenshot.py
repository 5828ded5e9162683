"""screenshot - docs/answer.svg, made from what a real terminal shows while nexi answers.

The command runs in a pseudo-terminal against its own handbook on loopback, with a scripted model; the second answer is still
being written when the picture is taken. Rich turns the terminal's rows into SVG.

  python -m rig.screenshot [docs/answer.svg]
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from nexi.cli.demo import serve_handbook
from rig.terminal import ENTER, Picture, terminal
from tests.faults.command import calling, endpoint
from tests.llm.server import Canned, call_delta, sse

COLUMNS = 92
LINK_MARK = re.compile(r"\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)")  # of a terminal that can open addresses
FIRST = "Which addresses does nexi refuse to fetch, and why?"
SECOND = "And may it read pages on my own network?"
ANSWER = """Nexi refuses every address that could reach into your own machine or network [1]:

- **loopback, private and link-local** addresses, in IPv4 and IPv6 and in every spelling of them
- **cloud metadata** addresses, such as `169.254.169.254`
- addresses with a user name or password in them, and ports that belong to other protocols

The check runs when the connection is made, and again after every redirect [1]."""
FOLLOW_UP = """Yes, where you say so. Name the hosts in `allow_private` [2]:

```sh
NEXI_ALLOW_PRIVATE=wiki.local:8080 nexi "what is on my wiki"
```

Addresses with a user name or password in them are refused [1]. A whole"""


def script(address: str) -> list[Canned]:
    """Two searches: the first is answered, the second is being answered."""
    pages = [f"http://{address}/safety", f"http://{address}/configuration"]
    unfinished = json.dumps({"answer": FOLLOW_UP})[:-2]
    return [
        calling("web_search", {"queries": ["addresses that are refused"]}, "s1"),
        calling("web_get", {"urls": pages[:1], "get_full": True}, "g1"),
        calling("final_answer", {"answer": ANSWER}, "f1"),
        calling("web_search", {"queries": ["read pages on private network"]}, "s2"),
        calling("web_get", {"urls": pages[1:], "get_full": True}, "g2"),
        sse(call_delta(0, "f2", "final_answer", unfinished), done=False, usage=False, then="hang"),
    ]


def screen_of(address: str, home: str) -> str:
    with endpoint(script(address)) as server:
        env = {
            "NEXI_HOME": home,
            "SEARXNG_URL": f"http://{address}",
            "NEXI_ALLOW_PRIVATE": address,
            "OPENAI_BASE_URL": server.url,
            "NEXI_MODEL": "scripted",
            "MODEL_CHOICE": "extractive",
        }
        with terminal([], env, columns=COLUMNS, rows=60) as screen:
            screen.expect("nexi>")
            screen.type(FIRST + ENTER)
            screen.expect("cost unknown")
            screen.expect("nexi>")
            screen.type(SECOND + ENTER)
            screen.expect("are refused [1].")
            screen.expect("Writing")
            return Picture(LINK_MARK.sub("", screen.raw)).styled


def svg_of(styled: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ nexi", style="bold green"))
    console.print(Text.from_ansi(styled))
    drawn = console.export_svg(title="nexi", unique_id="nexi")
    drawn = re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)  # a picture fetches nothing
    return drawn.replace("Fira Code, monospace", "Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace")


def main() -> None:
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/answer.svg")
    with serve_handbook() as address, tempfile.TemporaryDirectory() as home:
        place.write_text(svg_of(screen_of(address, home)), encoding="utf-8")
    print(place)


if __name__ == "__main__":
    main()
