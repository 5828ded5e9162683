"""Links that open a page where its evidence stands: text fragments for HTML, page numbers for PDF.

Above are the doors that print sources and evidence; below is the parser of blocks. A browser looks for a text fragment in
the words of the page it shows, so Markdown is taken off first. What the browser does not find is ignored by it, and the page
opens at its top. Whether the evidence is any good is not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import normalize
from urllib.parse import quote, unquote

from msgspec.structs import replace

from nexi.checking.pages import Pages
from nexi.text.blocks import list_cells, parse_blocks, read_block
from nexi.types import Claim, Evidence, Source, Verdict

MAX_QUOTE_CHARS = 100  # characters; a longer one is named by its beginning and its end
MAX_PIECE_CHARS = 60
MAX_WORD_CHARS = 40
MIN_WORDS, MAX_WORDS = 4, 9
CONTEXT_WORDS = 3
MAX_PAGE_CHARS = 1_000_000  # characters searched for repetitions
SAID = (Verdict.SUPPORTED, Verdict.FOUND, Verdict.NOT_FOUND)  # a page that is said not to hold a sentence may hold most of it
HTML = ("text/html", "application/xhtml+xml")

_IMAGE = re.compile(r"!\[([^\]\n]{0,300})\]\([^()\s]{0,2000}\)")
_LINK = re.compile(
    r"\[((?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,500})\]\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?: \"[^\"\n]{0,300}\")?\)"
)
_MARKS = re.compile(r"(?<!\\)(?:\*{1,3}|~~|`+|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w))")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~&$^'\"])")
_EDGES = re.compile(r"^\W+|\W+$")
_CLAUSE = re.compile(r"[，。、；：！？「」『』]+")
_VAULT = re.compile(r"file:///([^/]+)~(obsidian|logseq|zotero)-[0-9a-f]{6}/([^#]+)")
_WORD_REST = re.compile(r"(?:[*_~`]{0,3}[A-Za-z0-9])+")
_PAGE_MARK = re.compile(r"^\[page (\d{1,5})\]$", re.MULTILINE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def link_to(url: str, text: str, start: int, end: int, content_type: str = "") -> str:
    """The URL that opens a page at `text[start:end]`; the plain URL where no such link can be made."""
    if not 0 <= start < end <= len(text):
        return url
    if vault := _VAULT.match(url):
        return _link_to_note(vault[2], vault[1], vault[3], text, start)
    if page := page_number(text, start, content_type, url):
        return f"{url.partition('#')[0]}#page={page}"
    if content_type.partition(";")[0].strip().lower() not in HTML:
        return url
    directive = _text_directive(text, start, end)
    if not directive:
        return url
    head, _, fragment = url.partition("#")
    return f"{head}#{fragment.partition(':~:')[0]}:~:text={directive}"


def _link_to_note(program: str, vault: str, path: str, text: str, start: int) -> str:
    """The address at which the program that keeps a note or an item opens it: at a heading, or at the page of a PDF."""
    if program == "zotero":
        kind, key, *_ = *path.split("/"), ""
        if number := page_number(text, start, "", path):
            return f"zotero://open-pdf/library/items/{key}?page={number}"
        return f"zotero://{'open-pdf' if kind == 'storage' else 'select'}/library/items/{key}"
    name = normalize("NFC", unquote(path)).removesuffix(".md")
    if program == "logseq":
        page = unquote(name.rpartition("/")[2]).replace("___", "/")
        return f"logseq://graph/{vault}?page={quote(page, safe='')}"
    headings = [block for block in parse_blocks(text[:start]) if block.kind == "heading"]
    heading = headings[-1].label if headings else ""
    return f"obsidian://open?vault={vault}&file={quote(f'{name}#{heading}' if heading else name, safe='')}"


def page_number(text: str, start: int, content_type: str = "application/pdf", url: str = "") -> int:
    """The page of a PDF on which a place stands; 0 where that is not known, or for what is no PDF."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/pdf" and not (not kind and url.partition("?")[0].lower().endswith(".pdf")):
        return 0
    numbers = _PAGE_MARK.findall(text, 0, start)
    return int(numbers[-1]) if numbers else 0


def _text_directive(text: str, start: int, end: int) -> str:
    """The value of `text=`: a quote, or its first and last words, with what stands before it where it is not the only one."""
    # whole words: a browser does not see the marks inside of one, as in `million*s*`
    if _WORD_REST.match(text, start, start + 1):
        before = _WORD_REST.match(text[max(0, start - MAX_WORD_CHARS) : start][::-1])
        start -= before.end() if before else 0
    if _WORD_REST.match(text, end - 1, end):
        after = _WORD_REST.match(text, end, end + MAX_WORD_CHARS)
        end = after.end() if after else end
    blocks = _cut_span(text[start:end])
    if not blocks:
        return ""
    page = "\n".join(_cut_span(text[:MAX_PAGE_CHARS])).casefold()
    quotes = blocks
    if len(blocks) > 1 or len(blocks[0]) > MAX_QUOTE_CHARS:
        # as few of the first words as stand nowhere else
        block = blocks[0]
        pieces = _cut_pieces(block)
        for count in range(min(MIN_WORDS, len(pieces)), min(MAX_WORDS, len(pieces)) + 1):
            head = _EDGES.sub("", _join_pieces(block, pieces[:count]))
            if _is_alone(head, page):
                break
        tail = _EDGES.sub("", _join_pieces(blocks[-1], _cut_pieces(blocks[-1])[-MIN_WORDS:], last=True))
        if not head or not tail:
            return ""
        quotes = [head, tail]
    parts = list(map(_encode_words, quotes))
    if not _is_alone(quotes[0], page) and (lines_before := _cut_span(text[max(0, start - 400) : start])):
        last_words = " ".join(lines_before[-1].split()[-CONTEXT_WORDS:])
        parts.insert(0, f"{_encode_words(last_words)}-")
    return ",".join(parts)


def with_links(sources: Iterable[Source], claims: Iterable[Claim], snapshots: Pages) -> tuple[Source, ...]:
    """The sources, each with a link to where it says what it is first cited for."""
    first: dict[int, Evidence] = {}
    for evidence in (e for claim in claims for e in claim.evidence if e.verdict in SAID and e.start < e.end):
        first.setdefault(evidence.number, evidence)
    linked_sources: list[Source] = []
    for source in sources:
        if (e := first.get(source.number)) and (snapshot := snapshots.get(source.number)):
            link = link_to(source.url, snapshot.text, e.start, e.end, source.imprint.content_type)
            source = replace(source, link="" if link == source.url else link)
        linked_sources.append(source)
    return tuple(linked_sources)


def list_shown_lines(markdown: str) -> list[str]:
    """The lines and cells of Markdown as a browser shows them."""
    lines: list[str] = []
    for block in parse_blocks(markdown):
        if block.kind not in ("rule", "mark"):
            body = read_block(markdown, block)
            lines += list_cells(body) if block.kind in ("row", "head") else body.split("\n")
    lines = [_LINK.sub(r"\1", _IMAGE.sub(" ", line)) for line in lines]
    return list(filter(None, (" ".join(_ESCAPE.sub(r"\1", _MARKS.sub("", line)).split()) for line in lines)))


def _cut_span(span: str) -> list[str]:
    """The shown pieces of a span: a browser finds a quote only inside one block."""
    return [piece for line in list_shown_lines(span) if (piece := _EDGES.sub("", line))]


def _is_alone(quote_: str, page: str) -> bool:
    words = quote_.casefold()
    first = page.find(words)
    return first < 0 or page.find(words, first + 1) < 0


def _cut_pieces(block: str) -> list[tuple[int, int]]:
    """The words of a block by their places; a script without spaces is cut at its punctuation."""
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", block)]
    if max(end - start for start, end in words) <= MAX_PIECE_CHARS and not _CLAUSE.search(block):
        return words
    clauses = [(m.start(), m.end()) for m in re.finditer(r"[^，。、；：！？「」『』\s]+", block)]
    return clauses or words


def _join_pieces(block: str, pieces: Sequence[tuple[int, int]], *, last: bool = False) -> str:
    if _CLAUSE.search(block):
        return block[slice(*pieces[-1 if last else 0])]  # a clause is enough
    return block[pieces[0][0] : pieces[-1][1]]


def _encode_words(words: str) -> str:
    """Percent-encoded; a dash, a comma and an ampersand are syntax in a text directive."""
    return quote(_INVISIBLE.sub("", words), safe="").replace("-", "%2D")
