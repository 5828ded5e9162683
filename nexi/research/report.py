"""The report as a document: linted, with front matter and sources, and the place and name it is saved under.

Pure: the folders come in as values, and `app` writes the file. Whether sentences are supported is the verifier's task; this
module only checks that the document is well formed.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from nexi.answers import citations
from nexi.answers.safe_markdown import make_inert
from nexi.text.words import STOP, find_words, language_of, word_set
from nexi.types import Source
from nexi.urls import is_note_link

FILE_PREFIX = "nexi-research"
MAX_SLUG_CHARS = 32
MAX_SLUG_BYTES = 200  # a file name holds 255
PREFERRED_FOLDERS = ("research", "reports", "docs", "doc", "ref", "references", "notes")  # indexing leaves reports out
SYSTEM_FOLDERS = word_set(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /srv /sys /tmp /usr /var "
    "/Applications /Library /System /Users /Volumes"
)
SYSTEM_ROOTS = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIN_LETTERS = 40  # of a report, below which its language cannot be detected

_MARKUP = re.compile(r"[<>\[\]]")
_LEAKED = re.compile(
    r"\\?<(think|thinking|reasoning|tool_call|tool_response|function_calls?)>.*?\\?</\1>\s*"
    r"|\\?</?(?:think|thinking|reasoning|answer|final|report|tool_call|tool_response|function_calls?|invoke|parameter)(?:\s[^<>]*)?>"
    r"|<\|[a-z_]{2,40}\|>",
    re.DOTALL | re.IGNORECASE,
)
_SECTION = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


class SaveLocation(Struct, frozen=True):
    """The folders that decide where a report is saved: working folder, its subfolders, home and temporary folder."""

    cwd: PurePath
    subfolders: tuple[str, ...]
    home: PurePath
    temporary: PurePath


class LintedReport(Struct, frozen=True):
    """A well-formed report, and notes on what was repaired."""

    text: str
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()


def choose_folder(location: SaveLocation) -> PurePath:
    """Choose where to save: never in a home or system folder; in a folder for reports, else in the working folder."""
    folder, text = location.cwd, location.cwd.as_posix().rstrip("/") or "/"
    if folder.drive:
        windows = ("windows", "program files", "program files (x86)")
        is_of_system = len(folder.parts) <= 1 or folder.parts[1].casefold() in windows
    else:
        is_of_system = text in SYSTEM_FOLDERS or any(text.startswith(f"{root}/") for root in SYSTEM_ROOTS)
    if folder == location.home or is_of_system:
        return location.temporary
    by_name = {name.casefold(): name for name in sorted(location.subfolders, reverse=True)}
    preferred = next((by_name[name] for name in PREFERRED_FOLDERS if name in by_name), "")
    return folder / preferred if preferred else folder


def make_file_name(question: str, letter: int, digit: int) -> str:
    """`nexi-research-{slug}-{letter}{digit}.md`; letter and digit distinguish reports on the same question."""
    # the slug: the telling words of the question in letters and digits of any script, cut at a word boundary
    plain = unicodedata.normalize("NFKC", question).casefold()
    words = [word for word in find_words(plain) if word not in STOP] or find_words(plain)
    slug = ""
    for word in words:
        if len(slug) + len(word) + 1 > MAX_SLUG_CHARS:
            break
        slug = f"{slug}-{word}" if slug else word
    slug = slug or (words[0][:MAX_SLUG_CHARS] if words else "report")
    slug = slug.encode()[:MAX_SLUG_BYTES].decode(errors="ignore").rstrip("-")
    return f"{FILE_PREFIX}-{slug}-{LETTERS[letter % 26]}{digit % 10}.md"


def is_report_name(name: str) -> bool:
    return name.startswith(f"{FILE_PREFIX}-") and name.endswith(".md")


def render_front_matter(fields: Mapping[str, Any]) -> str:
    """Render YAML front matter with JSON values, which every YAML parser reads and no text can break."""
    # what Markdown would take for a tag, a link or an image is escaped: not every reader knows front matter
    dumped = {name: json.dumps(value, ensure_ascii=False) for name, value in fields.items() if value is not None}
    values = {name: _MARKUP.sub(lambda match: f"\\u{ord(match[0]):04x}", text) for name, text in dumped.items()}
    return "\n".join(["---", *[f"{name}: {value}" for name, value in values.items()], "---", ""])


def render_document(text: str, sources: Sequence[Source], fields: Mapping[str, Any], path: str = "") -> str:
    """Render the whole file: front matter, report, sources, and the path it was saved under."""
    lines = []
    for s in sources:
        address = citations.clean_address(s.url)
        link = f"<{citations.clean_address(s.link)}>" if is_note_link(s.link) else address  # a note's program opens it
        lines.append(f"[{s.number}] {citations.clean_title(s.title) or address}  \n    {link}")
    listed = "\n\n".join(("## Sources", "\n".join(lines))) if lines else ""
    parts = (render_front_matter(fields), text, listed, f"---\n\n*Saved as `{path}`*" if path else "")
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def lint_report(text: str, sources: Sequence[Source], question: str) -> LintedReport:
    """Repair what a reader should not see, and note what was repaired or looks wrong."""
    notes: list[str] = []
    clean = citations.outside_code(text, lambda part: _LEAKED.sub("", part))
    if clean != text:
        notes.append("tags of the model were left out")
    body = citations.strip_sources_section(clean)
    body, dropped = citations.drop_unknown(body, {s.number for s in sources}, stand_in=citations.UNREAD_PAGE)
    if dropped:
        notes.append(f"citations without a source were left out: {', '.join(f'[{n}]' for n in sorted(set(dropped)))}")
    body, repeated = _drop_repeated_sections(body)
    body = make_inert(body) if body != text else body  # what is left out can join what was kept apart
    notes += [f"the section {title!r} stood there twice" for title in repeated]
    if (script := _detect_script(body)) and (expected := _detect_script(question)) and script != expected:
        notes.append(f"the report seems to be in another language than the question ({script} letters, not {expected})")
    elif (script := language_of(body)) and (expected := language_of(question)) and script != expected:
        notes.append(f"the report seems to be in another language than the question ({script}, not {expected})")
    cited = citations.extract_citation_markers(body)
    return LintedReport(body.strip(), tuple(s for s in sources if s.number in cited), tuple(notes))


def _drop_repeated_sections(text: str) -> tuple[str, list[str]]:
    """Keep the first of several sections with the same heading and the same words."""
    heads = list(_SECTION.finditer(text))
    bounds = [*(head.start() for head in heads), len(text)]
    sections, marks, repeated = text[: bounds[0]], set(), []
    for head, end in zip(heads, bounds[1:], strict=True):
        mark = (head[2].casefold(), " ".join(text[head.end() : end].split()).casefold())
        if mark in marks and mark[1]:
            repeated.append(head[2])
        else:
            sections += text[head.start() : end]
        marks.add(mark)
    return sections, repeated


def _detect_script(text: str) -> str:
    """Detect the script of most letters: Latin, Cyrillic, Arabic, CJK …; "" for too few letters or a mixture."""
    names = (unicodedata.name(char, "?").split(" ")[0] for char in text[:20_000] if char.isalpha())
    counts = Counter("CJK" if name in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL") else name for name in names)
    if counts.total() < MIN_LETTERS // 4:
        return ""
    best, count = counts.most_common(1)[0]
    return best.capitalize() if count > counts.total() * 0.6 else ""
