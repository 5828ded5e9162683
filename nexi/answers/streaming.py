"""Turns what the model writes into what the reader gets, stretch by stretch.

Pure: text goes in as it streams, checked text comes out, and what came out is never taken back. The final answer is the
concatenation of the released stretches, so streaming and storing cannot disagree. It also reads the `answer` string out
of a final_answer call whose JSON is still arriving.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from html import unescape

from nexi.answers.citations import (
    UNREAD_PAGE,
    SentenceStream,
    drop_unknown,
    normalise_markers,
    outside_code,
    strip_sources_section,
)
from nexi.answers.safe_markdown import ADDRESS, MarkdownGuard, Place, escape_markup

_SOURCES_HEAD = re.compile(r"^\s{0,3}(?:#{1,6}\s*|\*\*|__)?(?:sources|references|citations)\b[\s:*_]*$", re.IGNORECASE)
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_ADDRESS = re.compile(ADDRESS, re.IGNORECASE)
_TARGET = r"(?:[a-z][a-z0-9+.-]*:|/|www\.)[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*"
_LINK = re.compile(
    rf"(?P<image>!?)\[(?P<label>[^\[\]\n]*)\]\(\s*<?(?P<target>{_TARGET})>?(?:\s+[\"'][^\n]*?[\"'])?\s*\)"
    rf"|(?P<blank>[ \t]*)<?(?P<bare>(?:{ADDRESS})(?<![.,;:!?*_]))>?",
    re.IGNORECASE,
)
_HOLLOW = re.compile(r"[ \t]*(?:\(\s*\)|<\s*>|\*\*\*\*)")  # what stood around an address that is gone
_CITED = re.compile(r"\[\d{1,3}\]\W*$")
_LIST_MARK = re.compile(r"^(?:[-*+•]|\d{1,3}[.)])\s")
MIN_REPEATED_WORDS = 5  # a shorter line may be said twice
_PLAIN_RUN = re.compile(r'[^"\\]+')
_MARKUP = re.compile(r"[`~<>|&\\()\[\]:@/]|-(?=-)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def keep_given_addresses(text: str, place: Place) -> tuple[str, set[str]]:
    """The text with addresses of read pages as citations and without those that are in no result, and which those were."""
    removed: set[str] = set()
    if "](" not in text and not _ADDRESS.search(text):
        return text, removed

    def settle(match: re.Match[str]) -> str:
        url = match["target"] or match["bare"]
        number = place(url)
        if number is None:
            removed.add(url)
        label = match["label"] or ""
        if match["bare"]:
            return {None: "", 0: match[0]}.get(number, f"{match['blank']}[{number}]")
        if number == 0 and not match["image"]:
            return match[0]
        words = "" if label.startswith(("http://", "https://")) else label
        return f"{words} [{number}]".lstrip() if number else words

    result = outside_code(text, lambda part: _LINK.sub(settle, part))
    return _HOLLOW.sub("", result) if removed else result, removed


@dataclass(eq=False, repr=False)
class AnswerStream:
    """Releases an answer whose citations all name a source: `release` gets each stretch and whether it is code."""

    # `place` has the numbers that the model knows; `translate` gives a stretch those that readers see.

    numbers: set[int]
    release: Callable[[str, bool], None] = lambda _, __: None
    _: KW_ONLY
    place: Place = lambda _: 0
    translate: Callable[[str], str] = str
    is_echo: Callable[[str], bool] = lambda _: False
    drops_repeats: bool = False
    guards_code: bool = False
    dropped: set[int] = field(default_factory=set, init=False)  # citation numbers that name nothing
    removed: set[str] = field(default_factory=set, init=False)  # addresses that nobody gave
    _sentences: SentenceStream = field(default_factory=SentenceStream, init=False)
    _held: list[str] = field(default_factory=list, init=False)
    _out: list[str] = field(default_factory=list, init=False)
    _in_code: bool = field(default=False, init=False)
    _said: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._guard = MarkdownGuard(self.place, guards_code=self.guards_code)

    @property
    def has_released(self) -> bool:
        """Whether anything of the answer was passed on."""
        return bool(self._out)

    def feed(self, text: str) -> None:
        for stretch in self._sentences.feed(text):
            self._take_stretch(stretch)

    def finish(self) -> str:
        """Release what is left and return the whole answer."""
        self._take_stretch(self._sentences.finish())
        stretches, self._held = self._held, []
        rest = strip_sources_section("".join(stretches))
        for stretch in stretches if rest.strip() else ():
            self._pass_on(rest[: len(stretch)])
            rest = rest[len(stretch) :]
        return "".join(self._out).strip()

    def clean(self, text: str, place: Place | None = None) -> str:
        """A text of the model with one spelling of citations, and none that names nothing."""
        text, removed = keep_given_addresses(normalise_markers(text), place or self.place)
        text, dropped = drop_unknown(text, self.numbers, stand_in=UNREAD_PAGE)
        self.dropped |= dropped
        self.removed |= removed
        return text

    def _take_stretch(self, stretch: str) -> None:
        """A model-written list of sources is held back until the end shows whether it is one."""
        if self._held or (not self._in_code and _SOURCES_HEAD.match(stretch)):
            self._held.append(stretch)
        elif stretch:
            self._pass_on(stretch)

    def _pass_on(self, stretch: str) -> None:
        fences = sum(bool(_FENCE.match(line)) for line in stretch.split("\n"))
        is_code = self._in_code or fences > 0
        self._in_code ^= fences % 2 == 1
        if not is_code and (self.is_echo(stretch) or (self.drops_repeats and self._is_repeated(stretch))):
            stretch = stretch[len(stretch.rstrip("\n")) :]
        stretch, exits = _fit_stretch(self._guard, stretch, self.clean, is_code=is_code)
        self.removed |= exits
        stretch = stretch if is_code else self.translate(stretch)
        stretch = stretch if self._out else stretch.lstrip()
        if stretch:
            self._guard.add(stretch)
            self._out.append(stretch)
            self.release(stretch, is_code)

    def _is_repeated(self, stretch: str) -> bool:
        """Whether a cited sentence stands in the answer already, word for word and with the same source."""
        words = _LIST_MARK.sub("", " ".join(stretch.split())).casefold()
        if not _CITED.search(words) or len(words.split()) < MIN_REPEATED_WORDS or words.startswith(("|", "{", '"')):
            return False
        is_repeated = words in self._said
        self._said.add(words)
        return is_repeated


def _fit_stretch(
    guard: MarkdownGuard, stretch: str, clean: Callable[[str], str], *, is_code: bool = False
) -> tuple[str, set[str]]:
    """The stretch in the first of several forms that gives a reader nothing to load or open, and what had to be taken out."""
    if is_code:
        exits = guard.find_exits(stretch)
        code = guard.cut_addresses(stretch) if exits else stretch
        if not exits or not guard.find_exits(code):
            return code, exits
    text = clean(stretch)
    exits = guard.find_exits(text)
    if not exits:
        return text, exits
    text = guard.cut_addresses(text)
    if not guard.find_exits(text):
        return text, exits
    for form in (outside_code(text, escape_markup), escape_markup(text)):
        if not guard.find_exits(form):
            return form, set()
    bare = guard.cut_addresses(clean(unescape(text)))
    forms = (escape_markup(bare), _MARKUP.sub(" ", bare))  # the last without a character of markup or of an address
    return next((form for form in forms if not guard.find_exits(form)), ""), exits


def make_safe(text: str, place: Place) -> str:
    """A whole text of a model without images, HTML and addresses that were not given, also in code."""
    guard, sentences = MarkdownGuard(place, guards_code=True), SentenceStream()
    out: list[str] = []
    for stretch in (*sentences.feed(text), sentences.finish()):
        safe, _ = _fit_stretch(guard, stretch, lambda part: keep_given_addresses(part, place)[0])
        guard.add(safe)
        out.append(safe)
    return "".join(out).lstrip()


def find_rest(shown_text: str, answer: str) -> str:
    """What a reader who saw `shown_text` still needs: the rest, or where the answer was corrected meanwhile, what changed."""
    if answer.startswith(shown_text):
        return answer[len(shown_text) :]
    before, after = _cut_sentences(shown_text), _cut_sentences(answer)
    removed = [f"- Removed: {sentence}" for sentence in before if sentence not in after]
    replacements = [f"- Replaced by: {sentence}" for sentence in after if sentence not in before]
    changes = "\n".join((*removed, *replacements))
    return f"\n\nCorrected after it was written:\n\n{changes}" if changes else ""


def _cut_sentences(text: str) -> list[str]:
    sentences = SentenceStream()
    return [stretch.strip() for stretch in (*sentences.feed(text), sentences.finish()) if stretch.strip()]


class AnswerArgument:
    """Reads the value of "answer" from the pieces of a JSON object, as far as it has arrived."""

    def __init__(self, feed: Callable[[str], None]) -> None:
        self._feed = feed
        self._buffer = ""
        self._inside = False
        self._done = False

    @property
    def is_open(self) -> bool:
        """Whether the value has begun and its end has not come."""
        return self._inside and not self._done

    def take(self, piece: str) -> None:
        if self._done:
            return
        self._buffer += piece
        if not self._inside:
            start = re.match(r'\s*\{\s*"answer"\s*:\s*"', self._buffer)
            if not start:
                return
            self._buffer, self._inside = self._buffer[start.end() :], True
        text, position = [], 0
        while position < len(self._buffer):
            if run := _PLAIN_RUN.match(self._buffer, position):
                text.append(run[0])
                position = run.end()
                continue
            if self._buffer[position] == '"':
                self._done = True
                break
            character, length = self._read_escape(position)
            if not length:
                break
            text.append(character)
            position += length
        self._buffer = self._buffer[position:]
        if text:
            self._feed("".join(text))

    def _read_escape(self, at: int) -> tuple[str, int]:
        """The character an escape stands for and how long the escape is; length 0 while it is incomplete."""
        rest = self._buffer[at + 1 : at + 12]
        if not rest:
            return "", 0
        if rest[0] != "u":
            return _ESCAPES.get(rest[0], rest[0]), 2
        if len(rest) < 5:
            return "", 0
        code = int(rest[1:5], 16) if re.fullmatch(r"[0-9a-fA-F]{4}", rest[1:5]) else 0xFFFD
        if not 0xD800 <= code < 0xDC00:
            return chr(code) if not 0xDC00 <= code < 0xE000 else "�", 6
        if len(rest) < 11 and "\\u".startswith(rest[5:7]):
            return "", 0
        low = int(rest[7:11], 16) if re.fullmatch(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}", rest[5:11]) else 0
        return (chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), 12) if low else ("�", 6)
