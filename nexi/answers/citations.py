"""Numbers, [n], and the list of sources.

Pure text in, text out. The loop gives a number to a page when it hands the page to the model; what the model writes is brought
to one spelling, markers that name nothing are dropped, and the list of sources is written by us. Code is never touched. Whether
a sentence is supported by its source is not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nexi.text.sentences import CLOSER, STOPS, WIDE_STOPS, ends_sentence, is_undecided
from nexi.types import Imprint, Source
from nexi.urls import is_note_link

UNSAID = Imprint()

MARKER_NUMBER = r"[1-9][0-9]{0,2}"  # [2024] is a year
_LINK = r"(?:\([^()\s]{0,2000}\))?"  # some models link their markers; the address is theirs, not ours
_MARKER = re.compile(rf"\[({MARKER_NUMBER})\]")
_UNLINKED_MARKER = re.compile(rf"\[({MARKER_NUMBER})\](?!\()")
_LINKED_MARKER = re.compile(rf"\[\\\[({MARKER_NUMBER})\\\]\]\([^()\s]{{0,2000}}\)")
_IN_LINK = {ord(char): f"%{ord(char):02X}" for char in '()<>[]|\\ "`*_~'}
UNREAD_PAGE = "a page that was not read"
_NEEDS_NOUN = re.compile(r"\b(?:in|see|from|by|to|of|with|per|at|on|and|or|than)[ \t]+$", re.I)
_ENDS_PHRASE = re.compile(r"[ \t]*(?:[.,;:!?)]|for\b|(?:and|or)[ \t]+\[|$)", re.M)
_JOINS_LEFT = re.compile(r"[\[0-9]$")
_JOINS_RIGHT = re.compile(r"[0-9\]]")
MARKERS = re.compile(
    rf"\[\[({MARKER_NUMBER})\]\]{_LINK}"  # [[1]](url)
    rf"|【({MARKER_NUMBER})(?![0-9])[^】\n]{{0,80}}】"  # 【1†L3-L5】
    rf"|\[({MARKER_NUMBER})†[^\]\n]{{0,80}}\]"  # [1†source]
    rf"|\[\^?({MARKER_NUMBER}(?:[ \t]*[,;][ \t]*\^?{MARKER_NUMBER})*)\]{_LINK}"  # [1, 2] and [^1] and [1](url)
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]{1,2000}?(?<!`)\1(?!`)")

_SOURCES_WORD = r"(?:sources?|references?|citations?|bibliography|(?:works|sources?|pages?)\s+(?:cited|used|consulted))"
_SOURCES_HEAD = re.compile(rf"\s{{0,3}}(?:#{{1,6}}\s*)?(?:\*\*|__)?(?:📚\s*)?{_SOURCES_WORD}\s*[:*_]*\s*$", re.IGNORECASE)
_SOURCES_LINE = re.compile(rf"\s{{0,3}}(?:\*\*|__)?{_SOURCES_WORD}\s*[:*_]*:[*_]*\s*(?P<rest>\S.*)$", re.IGNORECASE)
_ENTRY = re.compile(
    rf"\s*(?:[-*+•]\s+|[0-9]{{1,3}}[.)]\s+)?(?:\*\*)?\[\^?{MARKER_NUMBER}\]|.*(?:https?://|www\.)", re.IGNORECASE
)
_DEFINITION = re.compile(rf"\s{{0,3}}\[\^?{MARKER_NUMBER}\]:\s*\S")
_ONLY_MARKERS = re.compile(rf"(?:\[\^?{MARKER_NUMBER}\]|[\s,;.])+$")
_RULE = re.compile(r"\s{0,3}(?:-{3,}|\*{3,}|_{3,})\s*$")
_SENTENCE_END = re.compile(rf"(?P<stop>[{STOPS}]+){CLOSER}*|(?P<wide>[{WIDE_STOPS}]+){CLOSER}*")
_SPACES = re.compile(r"[ \t]*")
_FOLLOWING_MARKERS = re.compile(
    rf"(?:(?:[ \t]*(?:\[\[?\^?{MARKER_NUMBER}[^\[\]\n]{{0,80}}\]\]?{_LINK}|【[^】\n]{{0,80}}】))+[.,;]?)?"
)
# What may still become a marker or its link.
_UNFINISHED = re.compile(r"(?:\[{1,2}[^\[\]\n]{0,80}\]?|【[^】\n]{0,80}|\([^()\s]{0,200})$")
_WHOLE_LINE = re.compile(r"\s{0,12}(?:[-*+•]\s|[0-9]{1,3}[.)]\s|\||#{1,6}\s|>|`{3}|~{3})")
_TITLE_MARKUP = re.compile(r"<[A-Za-z/!?]|!\[|\]\s*[\[(:]|`")
_NO_MARKUP = str.maketrans("<>[]`", "‹›()'")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class CitationBook:
    """Gives each page one number for the life of a session; `key` says when two URLs are the same page."""

    # A branch takes its numbers from the book it belongs to; `orders_by_use` has answers number sources as they cite them.

    def __init__(
        self, key: Callable[[str], str] = str, sources: Iterable[Source] = (), *, trunk: CitationBook | None = None
    ) -> None:
        self._key = key
        self._trunk = trunk
        self._by_key: dict[str, Source] = {}
        self._by_number: dict[int, Source] = {}
        self._reserved: dict[str, int] = {}
        self._settled: set[int] = set()
        self.orders_by_use = False
        for source in sources:
            self._add_source(source)

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self._by_number.values())

    def by_number(self, number: int) -> Source | None:
        return self._by_number.get(number)

    def find(self, url: str) -> Source | None:
        """The source of this URL, if the page was given a number."""
        return self._by_key.get(self._key(url))

    def number_for(self, url: str, title: str = "", digest: str = "", imprint: Imprint = UNSAID) -> Source:
        """The source of a page: the one it already has, or the next number."""
        key = self._key(url)
        if source := self._by_key.get(key):
            return source
        if self._trunk:
            return self._add_source(self._trunk.number_for(url, title, digest, imprint))
        number = self._reserved.get(key, 0)
        if not number or number in self._by_number:
            number = max(*self._by_number, *self._reserved.values(), 0, 0) + 1
        return self._add_source(Source(number, url, title, digest, imprint))

    def reserve(self, sources: Iterable[Source]) -> None:
        """Let pages have the numbers they once had, whenever they come; others are numbered after them."""
        self._reserved |= {self._key(source.url): source.number for source in sources}

    def keep_numbers(self) -> None:
        """Let the sources that there are keep their numbers, cited or not."""
        self._settled.update(self._by_number)

    def cite(self, number: int) -> int:
        """The number under which a source is cited: its own once that is settled, else the lowest that is not, by exchange."""
        if number in self._settled or number not in self._by_number:
            return number
        lowest = min(n for n in self._by_number if n not in self._settled)
        for source, new in ((self._by_number[number], lowest), (self._by_number[lowest], number)):
            changed = replace(source, number=new)
            if self._by_key[self._key(source.url)].number == source.number:
                self._by_key[self._key(source.url)] = changed
            self._by_number[new] = changed
        self._settled.add(lowest)
        return lowest

    def branch(self) -> CitationBook:
        return CitationBook(self._key, trunk=self)

    def adopt(self, numbers: Iterable[int]) -> None:
        """Take sources of the trunk as one's own: they were met in somebody else's report."""
        for number in numbers:
            if self._trunk and (source := self._trunk.by_number(number)):
                self._add_source(source)

    def _add_source(self, source: Source) -> Source:
        self._by_number[source.number] = source
        return self._by_key.setdefault(self._key(source.url), source)


class NumbersByUse:
    """The numbers that a model was given, and those under which its answer cites the sources, in the order of first use."""

    def __init__(self, book: CitationBook) -> None:
        self._book = book
        self._given = {source.number: source.url for source in book.sources}

    @property
    def moved(self) -> dict[int, int]:
        """The number that a source has now, by the one that a model was given, where they differ."""
        return {number: now for number in self._given if (now := self._number_now(number)) != number}

    def translate(self, text: str) -> str:
        """What a model wrote, with the numbers that readers see."""
        return outside_code(text, lambda part: _MARKER.sub(lambda m: f"[{self._book.cite(self._number_now(int(m[1])))}]", part))

    def given_number(self, source: Source) -> int:
        """The number under which a model knows a source."""
        return next((number for number, url in self._given.items() if url == source.url), source.number)

    def _number_now(self, number: int) -> int:
        source = self._book.find(self._given[number]) if number in self._given else None
        return source.number if source else number


def renumber_markers(text: str, new_numbers: Mapping[int, int]) -> str:
    """A text whose citations have other numbers now."""
    return outside_code(text, lambda part: _MARKER.sub(lambda m: f"[{new_numbers.get(int(m[1]), int(m[1]))}]", part))


def extract_citation_markers(text: str) -> set[int]:
    """The numbers cited as [n] outside code."""
    return {int(n) for part, is_code in _split_code(text) if not is_code for n in _MARKER.findall(part)}


def map_markers_to_urls(markers: Iterable[int], number_to_url: Mapping[int, str]) -> dict[int, str]:
    """The URLs of those markers that have one, in order."""
    return {number: number_to_url[number] for number in sorted(markers) if number in number_to_url}


def format_citations_section(
    marker_url_map: Mapping[int, str], url_to_title: Mapping[str, str] | None = None, plain: bool = True
) -> str:
    """The list of sources, or "" when there are none."""
    if not marker_url_map:
        return ""
    lines = ["Sources:" if plain else "📚 Sources:"]
    for number, url in sorted(marker_url_map.items()):
        title, address = clean_title((url_to_title or {}).get(url, "")), clean_address(url)
        lines.append(f"[{number}] {title} - {address}" if title and title != address else f"[{number}] {address}")
    return "\n".join(lines)


def add_citations_to_answer(
    answer: str, number_to_url: Mapping[int, str], plain: bool = True, url_to_title: Mapping[str, str] | None = None
) -> str:
    """The answer with the list of the sources it cites, unless it already ends with one."""
    urls = map_markers_to_urls(extract_citation_markers(answer), number_to_url)
    lines = answer.split("\n")
    start = _sources_start(lines)
    # A heading with nothing under it is no list.
    has_list = start is not None and (_is_sources_line(lines[start]) or any(map(_ENTRY.match, lines[start:])))
    if not urls or has_list:
        return answer
    return f"{strip_sources_section(answer).rstrip()}\n\n{format_citations_section(urls, url_to_title, plain)}"


def process_answer_with_citations(
    answer: str,
    url_citations: Mapping[str, int],
    include_citations_section: bool = True,
    plain: bool = True,
    url_to_title: Mapping[str, str] | None = None,
) -> str:
    """The same, from the URL's side of the mapping."""
    if not include_citations_section:
        return answer
    number_to_url: dict[int, str] = {}
    for url, number in url_citations.items():
        number_to_url.setdefault(number, url)
    return add_citations_to_answer(answer, number_to_url, plain, url_to_title)


def extract_citations_from_tool_result(result: Mapping[str, Any]) -> dict[str, int]:
    """URL and number of each page of a web_get result; a number stands only at the very start of its text."""
    citations: dict[str, int] = {}
    for page in result.get("pages") or ():
        match = _MARKER.match(str(page.get("content") or ""))
        if match and page.get("url") and not page.get("error"):
            citations[str(page["url"])] = int(match[1])
    return citations


def normalise_markers(text: str) -> str:
    """Every spelling of a citation as [n]."""

    def spell(match: re.Match[str]) -> str:
        return "".join(f"[{number}]" for number in re.findall(r"[0-9]+", next(filter(None, match.groups()))))

    return outside_code(text, lambda part: MARKERS.sub(spell, part))


def drop_unknown(text: str, numbers: set[int], *, stand_in: str = "") -> tuple[str, set[int]]:
    """The text without markers that are not among `numbers`, and which those were."""
    # `stand_in` takes the place of one that a sentence cannot do without, as in "It is also in [7]."
    dropped: set[int] = set()

    def drop(part: str) -> str:
        out: list[str] = []
        position = 0
        for match in _UNLINKED_MARKER.finditer(part):
            if int(match[1]) in numbers:
                continue
            dropped.add(int(match[1]))
            before, position = part[position : match.start()], match.end()
            out.append(before)
            if not part.startswith("[", position):
                while out and not (end := out.pop().rstrip(" \t")):  # the blanks before a row of markers that all went
                    pass
                out.append(end)
            if stand_in and _NEEDS_NOUN.search(before) and _ENDS_PHRASE.match(part, position):
                out.append(f" {stand_in}")
            if _JOINS_LEFT.search("".join(out[-2:])) and _JOINS_RIGHT.match(part, position):
                out.append(" ")  # "[[9]2]" must not become a citation by losing its middle
        return "".join([*out, part[position:]])

    return outside_code(text, drop), dropped


def link_citations(text: str, sources: Sequence[Source]) -> str:
    """Every [n] outside code as a link to its page, for a file that is read outside nexi; `unlink_citations` undoes it."""
    links = {s.number: s.url.translate(_IN_LINK) for s in sources if s.url.startswith(("https://", "http://"))}
    links |= {s.number: s.link.translate(_IN_LINK) for s in sources if is_note_link(s.link)}

    def link(match: re.Match[str]) -> str:
        address = links.get(int(match[1]))
        return rf"[\[{match[1]}\]]({address})" if address else match[0]

    return outside_code(text, lambda part: _UNLINKED_MARKER.sub(link, part))


def unlink_citations(text: str) -> str:
    """The [n] of a file whose citations are links."""
    return _LINKED_MARKER.sub(r"[\1]", text)


def strip_sources_section(answer: str) -> str:
    """The answer without a list of sources at its end that the model wrote itself; all else is kept."""
    lines = answer.split("\n")
    start = _sources_start(lines)
    if start is None:
        return answer
    while start and (not lines[start - 1].strip() or _RULE.match(lines[start - 1])):
        start -= 1
    return "\n".join(lines[:start]).rstrip()


def _sources_start(lines: list[str]) -> int | None:
    """The line where the answer's own list of sources begins: nothing but entries follows."""
    start = None
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if _SOURCES_HEAD.match(line) or _is_sources_line(line):
            return index
        if line.strip() and not _ENTRY.match(line):
            break
        if _DEFINITION.match(line):
            start = index
    return start


def _is_sources_line(line: str) -> bool:
    """A whole list in one line: `Sources: [1], https://…`."""
    match = _SOURCES_LINE.match(line)
    return bool(match and (_ENTRY.match(line) or _ONLY_MARKERS.match(match["rest"])))


def clean_title(title: str) -> str:
    """A title as one line that is no markup in any reader: its page wrote it, and it stands beside our own links."""
    line = _BLANK.sub(" ", title).strip()
    return line.translate(_NO_MARKUP) if _TITLE_MARKUP.search(line) else line


def clean_address(url: str) -> str:
    """An address that is no markup: brackets may stand in a query, and an image can be spelled with them."""
    return url.replace("[", "%5B").replace("]", "%5D").replace("`", "%60") if "](" in url else url


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with a change made to all of it but code."""
    return "".join(part if is_code else change(part) for part, is_code in _split_code(text))


def _split_code(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is code: fenced blocks, and spans between backticks on one line."""
    if "`" not in text and "~~~" not in text:
        yield text, False
        return
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            yield line, True
            fence = mark[1]
        else:
            position = 0
            for span in INLINE_CODE.finditer(line):
                yield line[position : span.start()], False
                yield span[0], True
                position = span.end()
            yield line[position:], False


class SentenceStream:
    """Cuts a text that is still arriving into stretches that can be judged alone and that joined are the text."""

    # Prose goes by sentence, with the markers right behind it; code, tables, headings and items go by line.

    LONGEST = 20_000  # a stretch that never ends is released anyway, so that no input costs more than linear time
    _BITE = 4096

    def __init__(self) -> None:
        self._buffer = ""
        self._decided = 0  # up to here the buffer has no sentence end
        self._fence = ""
        self._in_line = False  # the buffer begins inside a line whose start is already out

    def feed(self, text: str) -> list[str]:
        """Take more text; return the stretches it completed."""
        stretches: list[str] = []
        for start in range(0, len(text), self._BITE):
            self._buffer += text[start : start + self._BITE]
            while size := self._next_size():
                stretch, self._buffer = self._buffer[:size], self._buffer[size:]
                self._decided = 0
                mark = None if self._in_line else _FENCE.match(stretch)
                if mark:
                    self._fence = ("" if mark[1].startswith(self._fence) else self._fence) if self._fence else mark[1]
                self._in_line = not stretch.endswith("\n")
                stretches.append(stretch)
        return stretches

    def finish(self) -> str:
        """What is left."""
        rest, self._buffer = self._buffer, ""
        return rest

    def _next_size(self) -> int:
        """How much of the buffer is a whole stretch; 0 to wait for more."""
        line_end = self._buffer.find("\n") + 1
        line = self._buffer[:line_end] if line_end else self._buffer
        goes_by_line = self._fence or (not self._in_line and _WHOLE_LINE.match(line))
        size = line_end if goes_by_line else self._sentence_size(line) or line_end
        if size or len(self._buffer) < self.LONGEST:
            return size
        open_bracket = max(self._buffer.rfind("[", -200), self._buffer.rfind("【", -200))
        return open_bracket if open_bracket > 0 else len(self._buffer)

    def _sentence_size(self, line: str) -> int:
        """How much of a line is a sentence that ends outside brackets and code; 0 to wait for more."""
        seen = brackets = ticks = 0
        for match in _SENTENCE_END.finditer(line, self._decided):
            self._decided = match.start()
            end = _end_of(_FOLLOWING_MARKERS, line, match.end())
            after = _end_of(_SPACES, line, end)
            if after == len(line) or _UNFINISHED.match(line, after) or is_undecided(line, 0, match.start(), after):
                return 0
            is_apart = line[after] != "\n" and bool(after > end or match["wide"])
            if is_apart and ends_sentence(line, 0, match.start(), after):
                piece, seen = line[seen:end], end
                brackets += piece.count("[") - piece.count("]")
                ticks += piece.count("`")
                if brackets <= 0 and ticks % 2 == 0:
                    return after
        self._decided = len(line)
        return 0


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where a pattern that may be empty ends."""
    match = pattern.match(text, start)
    return match.end() if match else start


def is_row(text: str) -> bool:
    """Whether a line, or what begins with one, is a row of a table, perhaps a quoted one."""
    return text.lstrip("\n\t >").startswith("|")
