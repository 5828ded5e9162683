"""Any Markdown with links, read as an answer: text with [n], and the sources those numbers name.

Pure. It understands `[n]` with a list of sources, footnotes, links with their text, by reference or behind a number, and bare
addresses; what is not prose (front matter, definitions, the list of sources) becomes blank lines, so that line numbers stay
true. Code is left alone. Nothing is fetched and nothing is judged here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.answers.citations import (
    extract_citation_markers,
    normalise_markers,
    outside_code,
    strip_sources_section,
    unlink_citations,
)
from nexi.answers.streaming import keep_given_addresses
from nexi.types import Source
from nexi.urls import dedup_key, find_urls, is_web_url

MAX_SOURCES = 999  # a marker has at most three digits

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_RUN = re.compile(r"^run(?:[ _-]?id)?:\s*[\"']?([0-9a-f]{32}|[0-9a-f]{6})\b", re.MULTILINE)
_FIGURES = re.compile(
    r"^\**(?:(?:Verified|Checked):\s*)?(?:\d+ of )?\d+ sentences? "
    r"(?:supported(?:, \d+ more found)?|found in the cited pages|not confirmed: only rules have [^\n,]*, and they see words)"
    r"(?:, \d+ (?:left out|omitted|marked \[unverified\]))*\.?(?: [^\n]{0,40}were not judged: [^\n]{0,600})?\**[ \t]*$",
    re.MULTILINE,
)
_FOOTNOTE = re.compile(r"^ {0,3}\[\^(?P<label>[^\]\s]{1,100})\]:[ \t]*(?P<rest>.*(?:\n(?: {2,}|\t)\S.*)*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^ {0,3}\[(?P<label>[^\]\n^]{1,100})\]:[ \t]*<?(?P<url>https?://[^\s<>]+)>?.*$", re.MULTILINE)
_ENTRY = re.compile(r"^\s*(?:[-*+•]\s+)?(?:\*\*)?(?:\[\^?(?P<a>[1-9]\d{0,2})\]|(?P<b>[1-9]\d{0,2})[.)])[:.]?\s*(?P<rest>.*)$")
_OLD_MARK = " [unverified]"  # printed into answers before version 2 of the check
_NOTE_MARK = re.compile(r"\[\^([^\]\s]{1,100})\]")
_REFERENCE = re.compile(r"\[([^\[\]\n]{1,300})\]\[([^\[\]\n]{0,100})\]")
_TARGET = r"\(\s*<?(https?://[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"\n]*\")?\s*\)"
_LINKED_NUMBER = re.compile(rf"\[(?:\\?\[)?\^?([1-9]\d{{0,2}})(?:\\?\])?\]{_TARGET}")
_LINKS_IN_BRACKETS = re.compile(rf"\((?=\[)((?:\[[^\[\]\n]{{0,300}}\]{_TARGET}[,;\s]*)+)\)")
_LINK = re.compile(rf"\[[^\[\]\n]{{0,300}}\]{_TARGET}")
_LINK_ITEM = re.compile(rf"^[ \t]*(?:[-*+•]|\d{{1,3}}[.)])[ \t]+(?:\*\*)?{_LINK.pattern}(?:\*\*)?[.,;]?[ \t]*$", re.MULTILINE)
_RAISED = re.compile(r"<sup>\s*\[?([1-9]\d{0,2})\]?\s*</sup>|(?<=[^\W\d_][.,;:!?”\"’)])([¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2})(?!\w)")
_SEPARATOR = re.compile(r"\s*[-–—|:,.]?\s*[<\[(]?$")


class Document(Struct, frozen=True):
    """What is to be checked. `lost` are numbers that are cited and name nothing; `run` is the run it says it comes from."""

    text: str
    sources: tuple[Source, ...] = ()
    lost: tuple[int, ...] = ()
    run: str = ""
    question: str = ""
    unread: int = 0  # addresses beyond what a document may cite


class _Places(Struct, frozen=True):
    """Numbers for addresses, as they are met; a method that takes a match returns what stands in its place."""

    sources: dict[int, Source] = {}
    by_key: dict[str, int] = {}
    labels: dict[str, str] = {}
    unread: list[str] = []

    def add(self, number: int, url: str, title: str = "") -> None:
        if number not in self.sources and is_web_url(url):
            self.sources[number] = Source(number, url, title)
            self.by_key.setdefault(dedup_key(url), number)

    def number(self, url: str) -> int:
        """The number of an address, a new one if need be; 0 for what is none or comes too late."""
        if not is_web_url(url):
            return 0
        if number := self.by_key.get(dedup_key(url), 0):
            return number
        number = max(self.sources, default=0) + 1
        if number > MAX_SOURCES:
            self.unread.append(url)
            return 0
        self.add(number, url)
        return number

    def define(self, label: str, url: str, title: str = "") -> None:
        self.labels.setdefault(label.casefold(), url)
        if label.isdecimal() and 0 < int(label) <= MAX_SOURCES:  # it is that number
            self.add(int(label), url, title)

    def read_footnote(self, match: re.Match[str]) -> str:
        if urls := find_urls(match["rest"]):
            self.define(match["label"], urls[0], _title(match["rest"], urls[0]))
        return _blank(match)

    def read_definition(self, match: re.Match[str]) -> str:
        self.define(match["label"], match["url"])
        return _blank(match)

    def cite_note(self, match: re.Match[str]) -> str:
        number = self.number(self.labels.get(match[1].casefold(), ""))
        return f"[{number}]" if number else match[0]

    def cite_reference(self, match: re.Match[str]) -> str:
        number = self.number(self.labels.get((match[2] or match[1]).casefold(), ""))
        return f"{match[1]} [{number}]" if number and not match[1].isdecimal() else match[0]

    def cite_linked_number(self, match: re.Match[str]) -> str:
        if dedup_key(match[2]) not in self.by_key:
            self.add(int(match[1]), match[2])
        number = self.number(match[2])
        return f"[{number}]" if number else match[0]

    def cite_links_in_brackets(self, match: re.Match[str]) -> str:
        numbers = [self.number(link[1]) for link in _LINK.finditer(match[1])]
        return "".join(f"[{number}]" for number in numbers) if all(numbers) else match[0]

    def cite_raised_number(self, match: re.Match[str]) -> str:
        number = int(unicodedata.normalize("NFKC", match[1] or match[2]))
        return f"[{number}]" if number in self.sources else match[0]

    def cite_labels(self, part: str) -> str:
        return _REFERENCE.sub(self.cite_reference, _NOTE_MARK.sub(self.cite_note, part))

    def cite_numbers(self, part: str) -> str:
        part = _LINKS_IN_BRACKETS.sub(self.cite_links_in_brackets, _LINKED_NUMBER.sub(self.cite_linked_number, part))
        return _RAISED.sub(self.cite_raised_number, part)


def read_markdown(text: str) -> Document:
    """A Markdown text as a document."""
    text = _remove_old_marks(unlink_citations(text.replace("\r\n", "\n").removeprefix("\ufeff")))
    run = ""
    if front := _FRONT_MATTER.match(text):
        run = match[1] if (match := _RUN.search(front[0])) else ""
        text = _blank(front) + text[front.end() :]
    places = _Places()
    text = _FIGURES.sub(_blank, text)
    body = strip_sources_section(text.rstrip())
    number, entry_text = 0, ""
    for line in text[len(body) :].split("\n"):
        if entry := _ENTRY.match(line):
            number, entry_text = int(entry["a"] or entry["b"]), entry["rest"]
        else:  # an address may stand under its title
            entry_text = f"{entry_text.rstrip()} {line.strip()}" if entry_text and line[:1].isspace() else ""
        if urls := find_urls(entry_text):
            places.add(number, urls[0], _title(entry_text, urls[0]))
    text = body + "\n" * text[len(body) :].count("\n")  # the list of sources at the end, once read, is blank
    text = outside_code(text, lambda part: _FOOTNOTE.sub(places.read_footnote, part))
    text = outside_code(text, lambda part: _DEFINITION.sub(places.read_definition, part))
    text = outside_code(_LINK_ITEM.sub(_blank, text), places.cite_labels)
    text = outside_code(text, places.cite_numbers)
    text, _ = keep_given_addresses(normalise_markers(text), places.number)
    lost = tuple(sorted(extract_citation_markers(text) - set(places.sources)))
    return Document(text, tuple(places.sources.values()), lost, run, unread=len(places.unread))


def read_answer(data: Mapping[str, Any]) -> Document:
    """What `--json` printed, as a document. ValueError for anything else."""
    if data.get("schema") != "nexi-answer-1" or not isinstance(data.get("answer"), str):
        raise ValueError("it is no answer of nexi")
    sources = tuple(
        Source(entry["n"], str(entry["url"]), str(entry.get("title", "")), str(entry.get("digest", "")))
        for entry in data.get("sources") or ()
        if isinstance(entry, Mapping) and isinstance(entry.get("n"), int) and entry.get("url")
    )
    return build_answer_document(data["answer"], sources, str(data.get("id", "")), str(data.get("question", "")))


def build_answer_document(answer: str, sources: tuple[Source, ...], run: str = "", question: str = "") -> Document:
    """An answer of ours, whose numbers need no reading."""
    text = _remove_old_marks(answer)
    lost = tuple(sorted(extract_citation_markers(text) - {source.number for source in sources}))
    return Document(text, sources, lost, run, question)


def _title(entry: str, url: str) -> str:
    before = entry.partition(url)[0]
    if before.endswith("](") and "[" in before:
        return before[before.index("[") + 1 : -2].strip()
    return _SEPARATOR.sub("", before).strip()


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _remove_old_marks(text: str) -> str:
    """A text of the same length with blanks where a mark stood, so that places stay what they are."""
    return text.replace(_OLD_MARK, " " * len(_OLD_MARK))
