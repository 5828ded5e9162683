"""Where the sentences of plain text begin and end, in every script. Pure lists and functions of general language.

A regular expression finds the marks that may end a sentence; what stands before and after a full stop decides. Everything that
needs sentences asks here: whole texts by `sentence_bounds`, and a text that still arrives by `ends_sentence`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nexi.text.words import read_word_sets

MAX_WORD_CHARS = 24  # of the words beside a full stop that are looked at
GLUED_STARTS = "The|This|These|It|He|She|They|We|There|In|However"  # after "end.The", where a page lost its blank

STOPS = ".!?…؟۔։"  # end a sentence where a blank follows
WIDE_STOPS = "。！？｡．।॥።፧။។៕"  # of scripts that need no blank
CLOSER = r"(?:[ \u00a0\u202f]?»|[\"'”’“‘«›)\]*_`」』）〉》】])"

_NOTES = r"(?:\[[^\[\]\s]{1,8}\])*"
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f"
_END = re.compile(
    rf"[{STOPS}{WIDE_STOPS}](?<![{STOPS}{WIDE_STOPS}][{STOPS}{WIDE_STOPS}])"  # once for a run of marks: linear time
    rf"(?:[{STOPS}{WIDE_STOPS}]*+{CLOSER}*+{_NOTES}(?:\s+|$)"
    rf"|(?<=[{WIDE_STOPS}])(?<!．(?=\d))[{WIDE_STOPS}]*+(?:{CLOSER}++(?!と|って|など)|(?!{CLOSER}))"
    rf"|(?<=[{_CJK}][!?])[!?]*+(?=[{_CJK}])"
    rf"|(?<=[a-zа-яß-ÿ][a-zа-яß-ÿ]\.)(?=(?:{GLUED_STARTS})\s))"
)
_PLAIN_STOP = re.compile(r"\.(?![!?])")
_ELLIPSIS = re.compile(r"…|\.\.\.")
_OPENERS = re.compile(r"(?:…\s?)?[\"'“‘„«‹»¿¡(\[`*_「『（]*\s?")
_PARTICLES = "van|von|de|du|di|da|ter|ten"
_STARTS_SMALL = re.compile(rf"[a-z][A-Z]|(?:{_PARTICLES})\s[A-Z]")  # eBay; van Gogh
_UNFINISHED = re.compile(rf"(?:[^\W_]{{0,{MAX_WORD_CHARS - 1}}}|\w{{1,3}}\)|(?:{_PARTICLES})\s)$")
_LISTED = re.compile(r"\([a-z0-9]{1,3}\)\s")
_CITED = re.compile(r"[^\W_][^\n\[\]]?(?:\[\d{1,4}\])+$")  # a citation after a word ends what it belongs to
_WORD_BEFORE = re.compile(r"[^\s\"'“‘„«(\[/§]*$")
_NEXT_WORD = re.compile(r"[^\W\d_]+(?!\.)\b")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}")  # U.S, Ph.D, т.д
_NUMERAL = re.compile(r"\d|[IVXLC]{1,5}\b|[A-Z]\b")

_WORDS = read_word_sets(__file__)
_LINKING = _WORDS["linking"]  # never the last word of a sentence
_TITLES = _WORDS["titles"]  # before a name, with a capital
_NUMBERED = _WORDS["numbered"]  # before a number
_WORDS_TOO = _WORDS["words_too"]  # of these
_MAY_END = _WORDS["may_end"]  # the last word of a sentence only where a word follows that begins one
_NAMES_MAY_END = _WORDS["names_may_end"]  # the same, with a capital
_STARTERS = _WORDS["starters"]
_NAME_PARTICLES = _WORDS["name_particles"]  # M. Le Pen
_BEFORE_ORDINAL = _WORDS["before_ordinals"]
_EXCLAIMED = _WORDS["exclaimed"]
_GERMAN_MONTH = re.compile(
    r"\. ?(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Jahrtausend)\b"
)
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip


def sentence_bounds(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one plain paragraph stand; initials, abbreviations and decimals do not end one."""
    start = 0
    for match in _END.finditer(text):
        if ends_sentence(text, start, match.start(), match.end()):
            yield from _chop_stretch(text, start, match.end(), longest)
            start = match.end()
    yield from _chop_stretch(text, start, len(text), longest)


def ends_sentence(text: str, start: int, stop: int, after: int) -> bool:
    """Whether the sentence from `start` ends with the mark at `stop`, where the text goes on at `after`."""
    if text[stop] in WIDE_STOPS or after >= len(text) or not text[after - 1].isspace():
        return True
    if _CITED.search(text, max(start, stop - MAX_WORD_CHARS), stop):
        return True
    first = _skip_openers(text, after)
    following = text[first : first + 1]
    if _is_small(following):
        begins = _STARTS_SMALL.match(text, first) or _LISTED.match(text, after) or "`" in text[after:first]
        return bool(begins) and text[stop] in ".!?" and not _goes_on(text, start, stop, first)
    if not following.isalnum() and following not in "$€£¥§#@":
        return False
    if _ELLIPSIS.match(text, stop):
        return text[stop - 1 : stop].isspace() or _is_starter(text, first)
    if text[stop] == "!":
        return _word_before(text, start, stop).lower() not in _EXCLAIMED or _is_starter(text, first)
    return not _PLAIN_STOP.match(text, stop) or not _goes_on(text, start, stop, first)


def is_undecided(text: str, start: int, stop: int, after: int) -> bool:
    """Whether a text that still arrives must go on before `ends_sentence` can say what the mark at `stop` is."""
    if _CITED.search(text, max(start, stop - MAX_WORD_CHARS), stop):
        return False
    first = _skip_openers(text, after)
    if first == len(text):
        return True
    if not _UNFINISHED.match(text, first):
        return False
    if _is_small(text[first]) or _ELLIPSIS.match(text, stop):
        return True
    word = _word_before(text, start, stop)
    low = word.lower()
    is_known = low in _NUMBERED or low in _EXCLAIMED or low.endswith("str") or _may_end(word)
    return is_known or len(word) == 1 or word[-1:].isdecimal()


def _skip_openers(text: str, at: int) -> int:
    match = _OPENERS.match(text, at)
    return match.end() if match else at


def _is_small(char: str) -> bool:
    return char.islower() and not "\u10d0" <= char <= "\u10ff"  # Georgian has no capitals in use


def _goes_on(text: str, start: int, stop: int, first: int) -> bool:
    """Whether a full stop abbreviates, follows an initial, or numbers what comes next, at `first`."""
    word = _word_before(text, start, stop)
    if not word:
        return False
    low = word.lower()
    if word[-1].isdecimal():  # it counts something: "1. Introduction", "Chapter 3. Rivers", "im 19. Jahrhundert"
        before = text[max(start, stop - MAX_WORD_CHARS) : stop].split()
        if len(before) <= 2 and stop - start < MAX_WORD_CHARS:
            return True
        # The day of a German date, or a century: 3. Mai.
        is_day = text[max(0, stop - 2) : stop].strip().isdecimal() and _GERMAN_MONTH.match(text, stop) is not None
        is_ordinal = len(word) <= 2 and word.isdecimal() and len(before) > 1
        return is_day or (is_ordinal and before[-2].lower() in _BEFORE_ORDINAL and text[first].isalpha())
    if low in _LINKING or (word[0].isupper() and low.rpartition("-")[2] in _TITLES) or (low in _TITLES and not low.isascii()):
        return True
    if low in _NUMBERED or low.endswith("str"):
        if _NUMERAL.match(text, first):
            return True
        if low in _WORDS_TOO:
            return False
    is_initial = len(word) == 1 and word.isalpha() and not "\u3040" <= word <= "\ud7ff"
    if is_initial:
        # "A. The first answer": the letter is all that the sentence has.
        if stop - start < MAX_WORD_CHARS and not text[start : stop - 1].strip("\"'“„(*_# \n"):
            return True
        # The last letter of an abbreviation with blanks: z. B., d. h.
        is_spelled = stop > 3 and text[stop - 3 : stop - 1] == ". " and text[stop - 4].islower()
        if is_spelled and not text[max(0, stop - 5)].isalpha():
            return True
    if is_initial or low in _NUMBERED or _may_end(word):
        return not _is_starter(text, first) or (is_initial and _next_word(text, first) in _NAME_PARTICLES)
    return False


def _may_end(word: str) -> bool:
    low = word.lower()
    return low in _MAY_END or (word[:1].isupper() and low in _NAMES_MAY_END) or _DOTTED.fullmatch(word) is not None


def _word_before(text: str, start: int, stop: int) -> str:
    match = _WORD_BEFORE.search(text, max(start, stop - MAX_WORD_CHARS), stop)
    return match[0] if match else ""


def _next_word(text: str, first: int) -> str:
    match = _NEXT_WORD.match(text, first, first + MAX_WORD_CHARS)
    return match[0].lower() if match else ""


def _is_starter(text: str, first: int) -> bool:
    return text[first : first + 1].isupper() and _next_word(text, first) in _STARTERS


def _chop_stretch(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """The stretch without blanks at its ends, in pieces where it is overlong."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        if end - start <= longest:
            break
        stop = text.rfind(" ", start + 1, start + longest)
        stop = stop if stop > 0 else start + longest
        yield start, stop
        start = stop
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield start, end
