"""miniweb - an offline "web" on one loopback port (standard library only).

It loads a corpus (pages.jsonl: one {"url","title","html"} object per line) and serves

  GET /<host>/<path>            the page http://<host>/<path> of the corpus
  GET http://<host>/<path>      the same, when the server is used as an HTTP proxy
                                (HTTP_PROXY=http://127.0.0.1:PORT), or by Host header
  GET /search?q=&format=json    SearXNG-compatible search (BM25 over title + text);
                                understands pageno, site:host in q, format=html|json
  GET /jina/s/?q=               Jina-Search-like plain text
  GET /jina/r/<url>             Jina-Reader-like plain text of a page of the corpus
  GET /healthz  /config  /stats POST /reset

Faults are deterministic: the decision for the n-th request of a URL depends only on
(seed, url, n), never on timing, so a run can be repeated and a retry can succeed.

In tests: `with serve(corpus_path, latency_ms=120) as base_url`, on a free port, in a thread that ends with the block.

  python -m rig.miniweb dev/ --port 8890
  python -m rig.miniweb dev.tar.gz --latency-ms 120 --rate-500 0.05 --rate-timeout 0.02
  python -m rig.miniweb dev/ --query "who designed the ..."      # one search, no server
  python -m rig.miniweb dev/ --baseline                          # BM25 quality on questions.jsonl
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html as html_mod
import io
import json
import math
import re
import sys
import tarfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from rig.serving import serve_in_thread

# ---------------------------------------------------------------- text

_DROP = re.compile(
    r"<(script|style|noscript|template|svg|nav|header|footer|aside|form|button|select)\b.*?</\1\s*>",
    re.I | re.S,
)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_BLOCK = re.compile(
    r"</?(p|div|section|article|main|h[1-6]|li|ul|ol|table|tr|td|th|pre|blockquote|dd|dt|dl|br|hr|title)\b[^>]*>",
    re.I,
)
_TAG = re.compile(r"<[^>]+>")
_HEAD = re.compile(r"<head\b.*?</head\s*>", re.I | re.S)
_WS = re.compile(r"[ \t\r\f\v\u00a0]+")
_NL = re.compile(r"\s*\n\s*")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?", re.U)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # Chinese and Japanese words are searched by pairs of characters

STOP = frozenset(
    re.split(
        " ",
        "a an and are as at be been but by did do does for from had has have he her him his how i in "
        "into is it its me my no not of on or our she so than that the their them then there these they "
        "this those to us was we were what when where which who whom whose why will with would you your",
    )
)


def html_to_text(page: str) -> str:
    """Readable text of an HTML page: boilerplate elements dropped, one block per line."""
    page = _HEAD.sub(" ", page)
    page = _COMMENT.sub(" ", page)
    page = _DROP.sub(" ", page)
    page = _BLOCK.sub("\n", page)
    page = html_mod.unescape(_TAG.sub("", page))
    return _NL.sub("\n", _WS.sub(" ", page)).strip()


def _stem(word: str) -> str:
    if len(word) > 4:
        if word.endswith("ies"):
            return word[:-3] + "y"
        if word.endswith("sses"):
            return word[:-2]
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            return word[:-1]
    return word


def tokens(text: str) -> list[str]:
    out = []
    for match in _WORD.finditer(text.lower()):
        word = match.group().replace("\u2019", "'")
        if word.endswith("'s"):
            word = word[:-2]
        if _UNSPACED.search(word):
            out += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word and word not in STOP:
            out.append(_stem(word))
    return out


# ---------------------------------------------------------------- corpus


def read_member(source: Path, name: str) -> str | None:
    """Text of `name` in a corpus given as a directory, a .tar.gz, or a .jsonl[.gz] file."""
    if source.is_dir():
        for cand in (source / name, source / (name + ".gz")):
            if cand.exists():
                data = cand.read_bytes()
                return (gzip.decompress(data) if cand.suffix == ".gz" else data).decode("utf-8")
        return None
    if tarfile.is_tarfile(source):
        with tarfile.open(source) as tar:
            for member in tar.getmembers():
                if Path(member.name).name == name:
                    handle = tar.extractfile(member)
                    return handle.read().decode("utf-8") if handle else None
        return None
    if name == "pages.jsonl":
        data = source.read_bytes()
        return (gzip.decompress(data) if source.suffix == ".gz" else data).decode("utf-8")
    return None


def read_jsonl(source: Path, name: str) -> list[dict]:
    text = read_member(source, name)
    return [json.loads(line) for line in io.StringIO(text)] if text else []


class Corpus:
    """Pages plus a BM25 index (k1, b as usual; a title hit counts `title_weight` times)."""

    def __init__(self, pages: list[dict], k1: float = 1.2, b: float = 0.75, title_weight: int = 3):
        self.pages = pages
        self.by_key: dict[str, int] = {}
        self.text: list[str] = []
        self.hosts: list[str] = []
        self.k1, self.b = k1, b
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.length: list[int] = []
        for i, page in enumerate(pages):
            parts = urlsplit(page["url"])
            self.hosts.append(parts.netloc.lower())
            self.by_key[self._key(parts.netloc, parts.path, parts.query)] = i
            text = html_to_text(page["html"])
            self.text.append(text)
            counts = Counter(tokens(text))
            for term in tokens(page.get("title", "")):
                counts[term] += title_weight
            self.length.append(sum(counts.values()))
            for term, n in counts.items():
                postings[term].append((i, n))
        self.postings = dict(postings)
        self.avg = (sum(self.length) / len(self.length)) if self.length else 1.0
        self.n = len(pages)

    @staticmethod
    def _key(host: str, path: str, query: str = "") -> str:
        return host.lower() + (unquote(path) or "/") + ("?" + query if query else "")

    def find(self, host: str, path: str, query: str = "") -> int | None:
        for key in (self._key(host, path, query), self._key(host, path)):
            if key in self.by_key:
                return self.by_key[key]
        return self.by_key.get(self._key(host, path.rstrip("/") + "/index.html"))

    def idf(self, term: str) -> float:
        df = len(self.postings.get(term, ()))
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def search(self, query: str, limit: int = 10, offset: int = 0) -> tuple[int, list[tuple[int, float]]]:
        sites = [s.lower() for s in re.findall(r"(?:^|\s)site:(\S+)", query)]
        query = re.sub(r"(?:^|\s)site:\S+", " ", query)
        scores: dict[int, float] = defaultdict(float)
        for term, qn in Counter(tokens(query)).items():
            idf = self.idf(term)
            for i, tf in self.postings.get(term, ()):
                norm = self.k1 * (1 - self.b + self.b * self.length[i] / self.avg)
                scores[i] += qn * idf * tf * (self.k1 + 1) / (tf + norm)
        if sites:
            scores = {
                i: s for i, s in scores.items() if any(self.hosts[i] == x or self.hosts[i].endswith("." + x) for x in sites)
            }
        ranked = sorted(scores.items(), key=lambda kv: (-kv[1], kv[0]))
        return len(ranked), ranked[offset : offset + limit]

    def snippet(self, i: int, query: str, width: int = 300) -> str:
        """The window of about `width` characters that holds the most (idf-weighted) query terms."""
        terms = {t: self.idf(t) for t in set(tokens(query))}
        text = self.text[i].replace("\n", " ")
        hits = []
        if terms:
            stems = sorted({t[:-1] if t.endswith("y") and len(t) > 4 else t for t in terms}, key=len, reverse=True)
            for match in re.finditer(rf"\b(?:{'|'.join(map(re.escape, stems))})[^\W_]*", text.lower()):
                found = tokens(match.group())
                if found and found[0] in terms:
                    hits.append((match.start(), found[0]))
        if not hits:
            return text[:width].strip()
        best, best_score, lo = 0, -1.0, 0
        for hi in range(len(hits)):
            while hits[hi][0] - hits[lo][0] > width * 0.8:
                lo += 1
            score = sum(terms[t] for t in {t for _, t in hits[lo : hi + 1]})
            if score > best_score + 1e-9:
                best_score, best = score, (hits[lo][0] + hits[hi][0]) // 2
        start = max(0, min(best - width // 2, len(text) - width))
        if start:
            cut = text.find(" ", start)
            start = cut + 1 if 0 <= cut < start + 30 else start
        end = min(len(text), start + width)
        if end < len(text):
            cut = text.rfind(" ", start, end)
            end = cut if cut > start else end
        return ("... " if start else "") + text[start:end].strip() + (" ..." if end < len(text) else "")


# ---------------------------------------------------------------- server


def html_row(result: dict) -> str:
    url, title, content = (html_mod.escape(result[key], quote=True) for key in ("url", "title", "content"))
    return f'<article class="result"><h3><a href="{url}">{title}</a></h3><p class="content">{content}</p></article>'


def address_of(server: ThreadingHTTPServer) -> str:
    host, port = server.server_address[:2]
    return f"http://{host!s}:{port}"


@dataclass(frozen=True)
class Settings:
    """How the web behaves: addresses, delays and faults (shares of requests, 0 to 1)."""

    host: str = "127.0.0.1"
    port: int = 0
    base_url: str = ""
    url_mode: str = "loopback"
    page_size: int = 10
    snippet_chars: int = 300
    latency_ms: float = 0
    search_latency_ms: float | None = None
    jitter_ms: float = 0
    rate_500: float = 0.0
    rate_429: float = 0.0
    rate_timeout: float = 0.0
    rate_truncate: float = 0.0
    rate_empty: float = 0.0
    rate_redirect: float = 0.0
    fault_scope: str = "all"
    hang_s: float = 60
    seed: int = 0
    verbose: bool = False


class World:
    def __init__(self, corpus: Corpus, args: Settings):
        self.corpus, self.args = corpus, args
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.hosts_set = set(corpus.hosts)
        hosts = "|".join(map(re.escape, sorted(self.hosts_set)))
        self._links = re.compile(rf'(href|src)="https?://({hosts})(/[^"]*)?"')
        self.reset()

    def reset(self) -> None:
        with getattr(self, "lock", threading.Lock()):
            self.seen: Counter = Counter()
            self.stats: Counter = Counter()
            self.fetched: Counter = Counter()
            self.queries: list[str] = []
            self.t0 = time.time()

    def rewrite(self, body: str, link: Callable[[str], str]) -> str:
        """A page with its links to the corpus turned into links to this server."""
        return self._links.sub(lambda m: f'{m[1]}="{link("http://" + m[2] + (m[3] or "/"))}"', body)

    def fault(self, kind: str, key: str) -> str:
        """'' or one of 500 429 timeout truncate empty redirect for this (kind, key) request."""
        args = self.args
        if args.fault_scope not in ("all", kind):
            return ""
        with self.lock:
            self.seen[key] += 1
            nth = self.seen[key]
        digest = hashlib.sha256(f"{args.seed}|{key}|{nth}".encode()).digest()
        roll = int.from_bytes(digest[:8], "big") / 2**64
        for name in ("500", "429", "timeout", "truncate", "empty", "redirect"):
            rate = getattr(args, "rate_" + name)
            if roll < rate:
                return name
            roll -= rate
        return ""

    def delay(self, kind: str, key: str) -> float:
        args = self.args
        base = args.search_latency_ms if kind == "search" and args.search_latency_ms is not None else args.latency_ms
        digest = hashlib.sha256(f"{args.seed}|delay|{key}".encode()).digest()
        return (base + args.jitter_ms * digest[0] / 255) / 1000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "miniweb/1.0"
    world: World

    def log_message(self, fmt: str, *rest: object) -> None:
        if self.world.args.verbose:
            sys.stderr.write(f"{self.log_date_time_string()} {fmt % rest}\n")

    # -- replies
    def reply(self, code: int, body: bytes, ctype: str, extra: dict | None = None, fault: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", ctype)
        self.send_header("Content-Length", str(len(body)))
        for key, value in (extra or {}).items():
            self.send_header(key, value)
        if fault == "truncate":
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if fault == "truncate" else body)

    def json(self, obj: object, code: int = 200, fault: str = "") -> None:
        self.reply(code, json.dumps(obj, ensure_ascii=False).encode(), "application/json; charset=utf-8", fault=fault)

    def count(self, *names: str) -> None:
        with self.world.lock:
            for name in names:
                self.world.stats[name] += 1

    def enter(self, kind: str, key: str) -> str | None:
        """Latency and faults. Returns the fault to apply to the body, or None if already answered."""
        time.sleep(self.world.delay(kind, key))
        fault = self.world.fault(kind, key)
        self.count(kind + "_requests", *(["fault_" + fault] if fault else []))
        if fault == "500":
            self.reply(500, b"Internal Server Error", "text/plain")
        elif fault == "429":
            self.reply(429, b"Too Many Requests", "text/plain", {"Retry-After": "1"})
        elif fault == "timeout":
            self.world.closing.wait(self.world.args.hang_s)
            self.close_connection = True
        elif fault == "empty":
            self.reply(200, b"", "text/html; charset=utf-8")
        elif fault == "redirect":
            self.reply(302, b"", "text/plain", {"Location": self.path})
        else:
            return fault
        return None

    # -- routes
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode("utf-8", "replace")
        if urlsplit(self.path).path == "/reset":
            self.world.reset()
            self.json({"ok": True})
        elif urlsplit(self.path).path == "/search":
            self.do_search({k: v[-1] for k, v in parse_qs(body).items()})
        else:
            self.json({"error": "not found"}, 404)

    def do_GET(self) -> None:
        try:
            self.route()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self) -> None:
        target = urlsplit(self.path)
        if target.scheme and target.netloc:  # used as a proxy
            return self.do_page(target.netloc, target.path, target.query)
        host = (self.headers.get("Host") or "").split(":")[0].lower()
        if host in self.world.hosts_set:  # virtual host
            return self.do_page(host, target.path, target.query)
        query = {k: v[-1] for k, v in parse_qs(target.query).items()}
        path = target.path
        if path in ("/search", "/searxng/search"):
            return self.do_search(query)
        if path == "/healthz":
            return self.json({"ok": True, "pages": self.world.corpus.n})
        if path == "/config":
            return self.json(
                {
                    "instance_name": "miniweb",
                    "engines": [{"name": "miniweb", "enabled": True}],
                    "categories": ["general"],
                    "safe_search": 0,
                    "default_locale": "en",
                }
            )
        if path == "/stats":
            with self.world.lock:
                return self.json(
                    {
                        "seconds": round(time.time() - self.world.t0, 3),
                        **self.world.stats,
                        "distinct_pages": len(self.world.fetched),
                        "queries": self.world.queries[-200:],
                        "pages": dict(self.world.fetched.most_common(200)),
                    }
                )
        if path == "/robots.txt":
            return self.reply(200, b"User-agent: *\nAllow: /\n", "text/plain")
        if path in ("/jina/s", "/jina/s/"):
            return self.do_jina_search(query.get("q", ""))
        if path.startswith("/jina/r/"):
            return self.do_jina_reader(self.path[len("/jina/r/") :])
        if path == "/":
            return self.reply(
                200,
                b"<html><head><title>miniweb</title></head><body><form action=/search><input name=q></form></body></html>",
                "text/html; charset=utf-8",
            )
        first, _, rest = path.lstrip("/").partition("/")
        return self.do_page(first, "/" + rest, target.query)

    def link(self, url: str) -> str:
        if self.world.args.url_mode == "original":
            return url
        parts = urlsplit(url)
        base = self.world.args.base_url or address_of(cast("ThreadingHTTPServer", self.server))
        return base + "/" + parts.netloc + parts.path + ("?" + parts.query if parts.query else "")

    def lookup(self, url: str) -> int | None:
        parts = urlsplit(url if "://" in url else "http://" + url)
        i = self.world.corpus.find(parts.netloc, parts.path, parts.query)
        if i is None:  # a loopback-form URL
            first, _, rest = parts.path.lstrip("/").partition("/")
            i = self.world.corpus.find(first, "/" + rest, parts.query)
        return i

    def do_page(self, host: str, path: str, query: str) -> None:
        i = self.world.corpus.find(host.split(":")[0], path, query)
        if i is None:
            self.count("page_requests", "page_404")
            return self.reply(
                404,
                b"<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>",
                "text/html; charset=utf-8",
            )
        page = self.world.corpus.pages[i]
        fault = self.enter("pages", page["url"])
        if fault is None:
            return None
        with self.world.lock:
            self.world.fetched[page["url"]] += 1
        if picture := page.get("picture"):
            return self.reply(200, bytes.fromhex(picture), "image/png", fault=fault)
        body = page["html"]
        if self.world.args.url_mode != "original":
            body = self.world.rewrite(body, self.link)
        self.reply(200, body.encode(), "text/html; charset=utf-8", fault=fault)
        return None

    def do_search(self, query: dict) -> None:
        q = (query.get("q") or "").strip()
        if not q:
            return self.json({"error": "No query"}, 400)
        fault = self.enter("search", "search:" + q + ":" + query.get("pageno", "1"))
        if fault is None:
            return None
        with self.world.lock:
            self.world.queries.append(q)
        try:
            pageno = max(1, int(query.get("pageno", "1")))
        except ValueError:
            pageno = 1
        size = self.world.args.page_size
        corpus = self.world.corpus
        total, ranked = corpus.search(q, size, (pageno - 1) * size)
        results = []
        for rank, (i, score) in enumerate(ranked, 1 + (pageno - 1) * size):
            page = corpus.pages[i]
            url = self.link(page["url"])
            parts = urlsplit(url)
            results.append(
                {
                    "url": url,
                    "title": page.get("title", ""),
                    "content": corpus.snippet(i, q, self.world.args.snippet_chars),
                    "publishedDate": None,
                    "thumbnail": "",
                    "engine": "miniweb",
                    "template": "default.html",
                    "parsed_url": [parts.scheme, parts.netloc, parts.path, "", parts.query, ""],
                    "img_src": "",
                    "priority": "",
                    "engines": ["miniweb"],
                    "positions": [rank],
                    "score": round(score, 4),
                    "category": "general",
                }
            )
        if query.get("format", "html") == "json":
            return self.json(
                {
                    "query": q,
                    "number_of_results": total,
                    "results": results,
                    "answers": [],
                    "corrections": [],
                    "infoboxes": [],
                    "suggestions": [],
                    "unresponsive_engines": [],
                },
                fault=fault,
            )
        rows = "".join(html_row(result) for result in results)
        self.reply(200, ("<html><body>" + rows + "</body></html>").encode(), "text/html; charset=utf-8", fault=fault)
        return None

    def do_jina_search(self, q: str) -> None:
        fault = self.enter("search", "jina:" + q)
        if fault is None:
            return
        with self.world.lock:
            self.world.queries.append(q)
        corpus, lines = self.world.corpus, []
        for n, (i, _) in enumerate(corpus.search(q, self.world.args.page_size)[1], 1):
            page = corpus.pages[i]
            lines += [
                f"[{n}] Title: {page.get('title', '')}",
                f"[{n}] URL Source: {self.link(page['url'])}",
                f"[{n}] Description: {corpus.snippet(i, q, self.world.args.snippet_chars)}",
                "",
            ]
        self.reply(200, "\n".join(lines).encode(), "text/plain; charset=utf-8", fault=fault)

    def do_jina_reader(self, url: str) -> None:
        i = self.lookup(unquote(url) if "%3A" in url else url)
        if i is None:
            self.count("page_requests", "page_404")
            return self.reply(404, b"Not Found", "text/plain")
        page = self.world.corpus.pages[i]
        fault = self.enter("pages", page["url"])
        if fault is None:
            return None
        with self.world.lock:
            self.world.fetched[page["url"]] += 1
        text = self.world.corpus.text[i].replace("\n", "\n\n")
        body = f"Title: {page.get('title', '')}\n\nURL Source: {self.link(page['url'])}\n\nMarkdown Content:\n{text}\n"
        self.reply(200, body.encode(), "text/plain; charset=utf-8", fault=fault)
        return None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def make_server(corpus: Corpus, settings: Settings) -> Server:
    handler = type("BoundHandler", (Handler,), {"world": World(corpus, settings)})
    return Server((settings.host, settings.port), handler)


def load(*sources: Path | str) -> Corpus:
    """A corpus from one or more folders, archives or pages.jsonl files."""
    return Corpus([page for source in sources for page in read_jsonl(Path(source), "pages.jsonl")])


@contextmanager
def serve(corpus: Corpus | Path | str, **settings: Any) -> Iterator[str]:
    """Serve a corpus on a free loopback port while the block runs; gives the base URL, which is also the SearXNG URL."""
    server = make_server(corpus if isinstance(corpus, Corpus) else load(corpus), Settings(**settings))
    with serve_in_thread(server):
        try:
            yield address_of(server)
        finally:
            server.RequestHandlerClass.world.closing.set()  # type: ignore[attr-defined]


# ---------------------------------------------------------------- baseline


def normalise(text: str) -> str:
    text = re.sub(r"\b(a|an|the)\b", " ", text.lower())
    return " ".join(re.sub(r"[^\w\s]", " ", text).split())


def baseline(corpus: Corpus, questions: list[dict]) -> dict:
    cuts = (1, 3, 5, 10)
    any_hit: Counter[int] = Counter()
    all_hit: Counter[int] = Counter()
    snip: Counter[int] = Counter()
    page = 0
    t0 = time.time()
    for item in questions:
        ranked = corpus.search(item["question"], 10)[1]
        urls = [corpus.pages[i]["url"] for i, _ in ranked]
        gold = set(item["gold_urls"])
        wanted = [normalise(a) for a in item["answers"] if normalise(a)]
        snippets = [normalise(corpus.snippet(i, item["question"])) for i, _ in ranked]
        for k in cuts:
            any_hit[k] += bool(gold & set(urls[:k]))
            all_hit[k] += gold <= set(urls[:k])
            snip[k] += any(re.search(r"\b" + re.escape(a) + r"\b", s) for a in wanted for s in snippets[:k])
        for url in gold:
            parts = urlsplit(url)
            i = corpus.find(parts.netloc, parts.path, parts.query)
            if i is not None and any(a in normalise(corpus.text[i]) for a in wanted):
                page += 1
                break
    n = max(1, len(questions))

    def pct(counter: Counter) -> dict[int, float]:
        return {k: round(100 * counter[k] / n, 1) for k in cuts}

    return {
        "pages": corpus.n,
        "questions": len(questions),
        "any_gold_page_in_top_k_pct": pct(any_hit),
        "all_gold_pages_in_top_k_pct": pct(all_hit),
        "answer_in_top_k_snippets_pct": pct(snip),
        "answer_in_gold_page_text_pct": round(100 * page / n, 1),
        "ms_per_query": round(1000 * (time.time() - t0) / n, 1),
    }


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("corpus", type=Path, nargs="+", help="corpus directory, .tar.gz, or pages.jsonl[.gz]; several are merged")
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=8890)
    ap.add_argument("--base-url", default="", help="base of the links given out (default http://HOST:PORT)")
    ap.add_argument(
        "--url-mode",
        choices=("loopback", "original"),
        default="loopback",
        help="original: give out http://host.test/... links, for clients that use this server as HTTP proxy",
    )
    ap.add_argument("--page-size", type=int, default=10)
    ap.add_argument("--snippet-chars", type=int, default=300)
    ap.add_argument("--latency-ms", type=float, default=0)
    ap.add_argument("--search-latency-ms", type=float, default=None)
    ap.add_argument("--jitter-ms", type=float, default=0)
    for name in ("500", "429", "timeout", "truncate", "empty", "redirect"):
        ap.add_argument("--rate-" + name, type=float, default=0.0, help="share of requests, 0..1")
    ap.add_argument("--fault-scope", choices=("all", "pages", "search"), default="all")
    ap.add_argument("--hang-s", type=float, default=60, help="how long a 'timeout' fault holds the connection")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--verbose", action="store_true")
    ap.add_argument("--query", help="print one search and exit")
    ap.add_argument("--baseline", action="store_true", help="BM25 quality on questions.jsonl, then exit")
    args = ap.parse_args()
    started = time.time()
    corpus = load(*args.corpus)
    print(f"miniweb: {corpus.n} pages, {len(corpus.postings)} terms, indexed in {time.time() - started:.1f} s", file=sys.stderr)
    if args.query:
        for i, score in corpus.search(args.query)[1]:
            page = corpus.pages[i]
            print(f"{score:.2f}\t{page['url']}\t{page.get('title')}\n\t{corpus.snippet(i, args.query)}")
        return
    if args.baseline:
        questions = [q for source in args.corpus for q in read_jsonl(source, "questions.jsonl")]
        kinds = sorted({q.get("kind", "") for q in questions})
        by_kind = {k: baseline(corpus, [q for q in questions if q.get("kind", "") == k]) for k in kinds}
        print(json.dumps({"all": baseline(corpus, questions), **(by_kind if len(kinds) > 1 else {})}, indent=1))
        return
    server = make_server(corpus, Settings(**{f.name: getattr(args, f.name) for f in fields(Settings)}))
    print(f"miniweb: {address_of(server)}  (SEARXNG_URL)", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
