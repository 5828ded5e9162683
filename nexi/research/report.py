"""The report as a document: linted, with front matter and sources, and the place and name it is saved under.

Pure: a folder's listing and the user's places come in as values, and the file is written by the assembly. Whether sentences are
true is the verifier's matter; here it is only whether the document is sound.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from nexi.answers.citations import drop_unknown, extract_citation_markers, outside_code, strip_sources_section
from nexi.text.stopwords import language_of
from nexi.types import Source
from nexi.values import frozen

PREFIX = "nexi-research"
SLUG_CHARS = 60
SLUG_BYTES = 200  # a file name holds 255
GOOD_FOLDERS = ("research", "docs", "doc", "ref", "references", "notes")
SYSTEM_FOLDERS = (
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",  # noqa: S108 - a name to compare with, nothing is written there
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
)
SYSTEM_ROOTS = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEAST_LETTERS = 40  # of a report, before its language can be told from the question's

_LEAKED = re.compile(
    r"<(think|thinking|reasoning|tool_call|tool_response|function_calls?)>.*?</\1>\s*"
    r"|</?(?:think|thinking|reasoning|answer|final|report|tool_call|tool_response|function_calls?|invoke|parameter)(?:\s[^<>]*)?>"
    r"|<\|[a-z_]{2,40}\|>",
    re.DOTALL | re.IGNORECASE,
)
_SECTION = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


@frozen
class Place:
    """Where a report would go: the working folder, its subfolders by name, and the folders of user and system."""

    cwd: PurePath
    subfolders: tuple[str, ...]
    home: PurePath
    temporary: PurePath


@frozen
class Linted:
    """A report that is sound, and what had to be mended."""

    text: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()


def folder_for(place: Place) -> PurePath:
    """Three tiers: not into a home or system folder, into a folder made for such things, else where the user stands."""
    if place.cwd == place.home or _is_system(place.cwd):
        return place.temporary
    by_name = {name.casefold(): name for name in sorted(place.subfolders, reverse=True)}
    found = next((by_name[name] for name in GOOD_FOLDERS if name in by_name), "")
    return place.cwd / found if found else place.cwd


def _is_system(folder: PurePath) -> bool:
    text = folder.as_posix().rstrip("/") or "/"
    if folder.drive:
        return len(folder.parts) <= 1 or folder.parts[1].casefold() in ("windows", "program files", "program files (x86)")
    return text in SYSTEM_FOLDERS or any(text.startswith(f"{root}/") for root in SYSTEM_ROOTS)


def file_name(question: str, letter: int, digit: int) -> str:
    """`nexi-research-{slug}-{letter}{digit}.md`; the last two only keep reports with one question apart."""
    return f"{PREFIX}-{slug(question)}-{LETTERS[letter % 26]}{digit % 10}.md"


def slug(question: str) -> str:
    """The question in letters and digits of any script, cut at a word."""
    plain = unicodedata.normalize("NFKC", question).casefold()
    words = re.findall(r"[^\W_]+", plain)
    kept = ""
    for word in words:
        if len(kept) + len(word) + 1 > SLUG_CHARS:
            break
        kept = f"{kept}-{word}" if kept else word
    kept = kept or (words[0][:SLUG_CHARS] if words else "report")
    return kept.encode()[:SLUG_BYTES].decode(errors="ignore").rstrip("-")


def front_matter(fields: Mapping[str, Any]) -> str:
    """YAML whose values are JSON, which every YAML reader takes and no text can break."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value is not None]
    return "\n".join(["---", *lines, "---", ""])


def document(text: str, sources: Sequence[Source], fields: Mapping[str, Any], path: str = "") -> str:
    """The whole file: front matter, report, sources, and the path it was saved under."""
    listed = "\n".join(f"[{s.number}] {' '.join(s.title.split()) or s.url}  \n    {s.url}" for s in sources)
    parts = [front_matter(fields), text.strip(), f"## Sources\n\n{listed}" if listed else ""]
    footer = f"---\n\n*Saved as `{path}`*" if path else ""
    return "\n\n".join(part.strip() for part in (*parts, footer) if part.strip()) + "\n"


def lint(text: str, sources: Sequence[Source], question: str) -> Linted:
    """Mend what a reader should not see; what cannot be mended is noted."""
    notes: list[str] = []
    clean = outside_code(text, lambda part: _LEAKED.sub("", part))
    if clean != text:
        notes.append("tags of the model were left out")
    body = strip_sources_section(clean)
    body, dropped = drop_unknown(body, {s.number for s in sources})
    if dropped:
        notes.append(f"citations without a source were left out: {', '.join(f'[{n}]' for n in sorted(set(dropped)))}")
    body, repeated = _without_repeated_sections(body)
    notes += [f"the section {title!r} stood there twice" for title in repeated]
    if (told := _script(body)) and (asked := _script(question)) and told != asked:
        notes.append(f"the report seems to be in another language than the question ({told} letters, not {asked})")
    elif (told := language_of(body)) and (asked := language_of(question)) and told != asked:
        notes.append(f"the report seems to be in another language than the question ({told}, not {asked})")
    cited = extract_citation_markers(body)
    return Linted(body.strip(), tuple(s for s in sources if s.number in cited), tuple(notes))


def _without_repeated_sections(text: str) -> tuple[str, list[str]]:
    """Of sections with the same heading and the same words, the first stays."""
    heads = list(_SECTION.finditer(text))
    if not heads:
        return text, []
    ends = [*(h.start() for h in heads[1:]), len(text)]
    seen: set[tuple[str, str]] = set()
    kept, repeated = [text[: heads[0].start()]], []
    for head, end in zip(heads, ends, strict=True):
        mark = (head[2].casefold(), " ".join(text[head.end() : end].split()).casefold())
        if mark in seen and mark[1]:
            repeated.append(head[2])
            continue
        seen.add(mark)
        kept.append(text[head.start() : end])
    return "".join(kept), repeated


def _script(text: str) -> str:
    """The script most letters are of: Latin, Cyrillic, Arabic, CJK …; "" for too few letters or a mixture."""
    counts: dict[str, int] = {}
    for char in text[:20_000]:
        if char.isalpha():
            name = unicodedata.name(char, "?").split(" ")[0]
            name = "CJK" if name in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else name
            counts[name] = counts.get(name, 0) + 1
    total = sum(counts.values())
    if total < LEAST_LETTERS // 4:
        return ""
    best = max(counts, key=lambda name: counts[name])
    return best.capitalize() if counts[best] > total * 0.6 else ""
