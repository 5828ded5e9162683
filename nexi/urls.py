"""URLs as a browser reads them: parse, normal form, keys for comparing, ids.

Everything that compares, joins or finds a web address asks here, so that two parts of nexi can never read one text as two
hosts. The parser is ada-url (WHATWG). Text that is no URL raises ValueError.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, unquote_plus

from msgspec import Struct

MAX_URL_CHARS = 8_192
DEFAULT_PORTS = {"http": 80, "https": 443}

_TRACKING_PREFIXES = ("utm_", "hsa_", "mtm_", "pk_campaign", "pk_kwd")
_TRACKING_NAMES = frozenset((
    "_ga", "_gl", "_hsenc", "_hsmi", "dclid", "epik", "fbclid", "gad_source", "gbraid", "gclid", "gclsrc", "igsh",
    "igshid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "rb_clickid",
    "s_kwcid", "srsltid", "ttclid", "twclid", "vero_conv", "vero_id", "wbraid", "wickedid", "yclid", "ysclid",
))  # fmt: skip
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f]")
_URL_IN_TEXT = re.compile(r"https?://[^\s<>\"`\x00-\x1f\x7f，。、；：！？「」『』【】《》（）]+", re.IGNORECASE)
_DOI_IN_PATH = re.compile(r"/(10\.\d{4,9}/[^\s?#]+)")
_DOI_TAIL = re.compile(r"(?:\.pdf|/(?:full|abstract|pdf|epdf|html|meta))+$", re.IGNORECASE)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#\"<>]*@")
_SENTENCE_END = frozenset(".,;:!?'\"*_~|…’”»")
_CLOSING = {")": "(", "]": "[", "}": "{"}


class Url(Struct, frozen=True):
    """A parsed URL. `host` has no brackets, `port` is the one that would be used (0 where the scheme has none)."""

    href: str
    scheme: str
    host: str
    port: int
    path: str
    query: str
    fragment: str = ""
    userinfo: bool = False

    @property
    def explicit_port(self) -> int | None:
        """The port where it is not the scheme's own."""
        return None if self.port == DEFAULT_PORTS.get(self.scheme, 0) else self.port

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.explicit_port is None else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


@lru_cache(maxsize=4096)
def hide_userinfo(text: str) -> str:
    """The text with user names and passwords cut out of every address in it."""
    return _USERINFO.sub(r"\1", text)


@lru_cache(maxsize=1024)
def parse(url: str) -> Url:
    """Read one absolute URL; ValueError for what the WHATWG parser refuses."""
    # Reading a URL is needed late in a run, and the parser's library is not free to import.
    import ada_url

    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"a URL of {len(url)} characters is too long")
    try:
        ada = ada_url.URL(url)
    except ValueError:
        raise ValueError(f"not a URL: {url[:200]!r}") from None
    scheme, host = ada.protocol.rstrip(":"), ada.hostname.strip("[]")
    port, has_user = int(ada.port or DEFAULT_PORTS.get(scheme, 0)), bool(ada.username or ada.password)
    query, fragment = ada.search.removeprefix("?"), ada.hash.removeprefix("#")
    return Url(ada.href, scheme, host, port, ada.pathname, query, fragment, has_user)


def join(base: str, href: str) -> str:
    import ada_url

    if len(href) > MAX_URL_CHARS:
        raise ValueError(f"a link of {len(href)} characters is too long")
    url: str = ada_url.join_url(base, href)
    return url


@lru_cache(maxsize=4096)
def normal(url: str) -> str:
    """The form under which two spellings of one web page are the same: no fragment, no default port, no tracking."""
    parts = _parse_web_url(url)
    pairs = []
    for pair in filter(None, parts.query.split("&")):
        name = unquote_plus(pair.partition("=")[0]).lower()
        if name not in _TRACKING_NAMES and not name.startswith(_TRACKING_PREFIXES):
            pairs.append(pair)
    head = parts.href.partition("#")[0].partition("?")[0]
    return f"{head}?{'&'.join(pairs)}" if pairs else head


def dedup_key(url: str) -> str:
    """The normal form without its scheme: http and https copies of a page are one result."""
    return normal(url).partition(":")[2]


def hit_key(url: str) -> str:
    """The dedup key of a hit; a hit of this machine is no web URL and is its own key."""
    return dedup_key(url) if is_web_url(url) else url


def host_of(url: str) -> str:
    return parse(url).host


def find_doi(url: str) -> str:
    """The DOI in the address of a paper, in lower case: at doi.org, and where publishers put it into their paths."""
    match = _DOI_IN_PATH.search(unquote(url.partition("#")[0].partition("?")[0]))
    return _DOI_TAIL.sub("", match[1]).lower() if match else ""


def page_id(url: str) -> str:
    """The id under which a page is known outside of nexi."""
    return "web:sha256:" + hashlib.sha256(normal(url).encode()).hexdigest()


def is_note_link(text: str) -> bool:
    """Whether `text` opens a note or an item in the program that keeps it."""
    return text.startswith(("obsidian://", "logseq://", "zotero://")) and not _UNPRINTABLE.search(text)


def is_web_url(text: str) -> bool:
    """Whether `text`, as it stands, is an http or https URL."""
    with suppress(ValueError):
        return not _UNPRINTABLE.search(text) and bool(_parse_web_url(text))
    return False


def find_urls(text: str) -> list[str]:
    """The web URLs in a text, verbatim, in order, each once; punctuation of the sentence around them is left out."""
    urls = []
    for match in _URL_IN_TEXT.findall(text):
        if len(match) > MAX_URL_CHARS:
            continue
        url = match.partition("](")[0]  # a Markdown label ends here
        while url:
            opening = _CLOSING.get(url[-1])  # a closing bracket stays when the URL itself opened it
            closes_nothing = opening is not None and url.count(url[-1]) > url.count(opening)
            if url[-1] not in _SENTENCE_END and not closes_nothing:
                break
            url = url[:-1]
        urls.append(url)
    return [url for url in dict.fromkeys(urls) if is_web_url(url)]


def bypasses_proxy(url: Url, no_proxy: Sequence[str]) -> bool:
    """Whether NO_PROXY entries (hosts, `.suffixes`, networks, `host:port`, `*`) name this URL's host."""
    for entry in filter(None, (text.strip().lower() for text in no_proxy)):
        try:
            is_match = ipaddress.ip_address(url.host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            host, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
            suffix = host.lstrip("*").lstrip(".")
            is_match = (url.host == suffix or url.host.endswith("." + suffix)) and port in ("", str(url.port))
        if is_match or entry == "*":
            return True
    return False


def _parse_web_url(url: str) -> Url:
    parts = parse(url)
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"not a web URL: {url[:200]!r}")
    return parts
