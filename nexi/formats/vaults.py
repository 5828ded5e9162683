"""A note of an Obsidian or Logseq vault as text: its properties, and its links, embeds and references as words. Pure.

Above sits `app.documents`, which knows the folder. A reference to a block gets the words of that block and goes no deeper, so
that notes which refer to each other in a circle end at once. An embedded note is named, not copied: it is a source of its own.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from urllib.parse import unquote

from msgspec import Struct

from nexi.extract import one_line
from nexi.text.dates import normalise_date
from nexi.text.plain import change_outside

MAX_FRONT_CHARS = 20_000
MAX_NAMES = 100  # aliases or tags
MAX_BLOCK_CHARS = 2_000
HIDDEN_PROPERTIES = ("id", "collapsed", "cssclass", "cssclasses", "publish", "background-color", "icon")

_FRONT = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_KEY = re.compile(r"([^\s:#\-\"'\[{][^:\n]{0,80}?):(?:[ \t]+(.*))?$")
_PAGE_PROPERTY = re.compile(r"[ \t]*([\w./-]{1,80})::[ \t]*(.*)$")
_LISTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\[\[[^\[\]]*\]\]|[^,\s][^,]*")
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)|`[^`\n]{1,500}`", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(r"(!?)\[\[([^\[\]|#\n]{0,400})(?:#([^\[\]|\n]{0,300}))?(?:\\?\|([^\[\]\n]{0,400}))?\]\]")
_LOGSEQ_REFERENCE = re.compile(r"(?:\{\{embed[ \t]+)?\(\(([0-9a-fA-F-]{8,64})\)\)(?:[ \t]*\}\})?")
_LOGSEQ_EMBED = re.compile(r"\{\{embed[ \t]+(\[\[[^\[\]\n]{1,400}\]\])[ \t]*\}\}")
_TAG = re.compile(r"(?<![\w#/&\[(\"'=])#(?:\[\[([^\[\]\n]{1,100})\]\]|([\w/-]{1,100}))")
_BLOCK_MARK = re.compile(r"[ \t]+\^([A-Za-z0-9-]{1,100})[ \t]*$|^\^([A-Za-z0-9-]{1,100})[ \t]*$", re.MULTILINE)
_BLOCK_PROPERTY = re.compile(rf"^[ \t]*(?:- )?(?:{'|'.join(HIDDEN_PROPERTIES)})::.*\n?", re.MULTILINE)
_BLOCK_ID = re.compile(r"^[ \t]*id::[ \t]*([0-9a-fA-F-]{8,64})[ \t]*$", re.MULTILINE)
_CALLOUT = re.compile(r"^([ \t]*>[ \t]*)\[!([\w-]{1,40})(?:\|[^\]\n]{0,80})?\][+-]?[ \t]*", re.MULTILINE)
_MARKS = re.compile(r"%%|==(?=\S)|(?<=\S)==")
_DAY = re.compile(r"(\d{4})[-_.](\d\d)[-_.](\d\d)")


class Note(Struct, frozen=True):
    """A note as text, with what it says of itself."""

    text: str
    title: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    published: str = ""
    updated: str = ""


def read_note(source: str, name: str, find_block: Callable[[str], str] = lambda _: "") -> Note:
    """Read a note from its file's text and name. `find_block` gives the text of a block, as `find_blocks` names it."""
    source = source.removeprefix("\ufeff").replace("\r\n", "\n")
    properties, body = _split_properties(source)
    # Logseq writes a slash in the name of a page as `___` or %2F.
    title = next(iter(properties.get("title", [])), "") or unquote(PurePath(name).stem).replace("___", "/")
    aliases = [*properties.get("alias", []), *properties.get("aliases", [])][:MAX_NAMES]
    names = [*properties.get("tag", []), *properties.get("tags", [])][:MAX_NAMES]
    tags = dict.fromkeys(tag.lstrip("#") for tag in names)
    names = [match[1] or match[2] for match in _TAG.finditer(_CODE.sub(" ", body))]
    tags |= dict.fromkeys(tag for tag in names if not tag.isdecimal())  # `#12` is a number of something
    day = _DAY.fullmatch(PurePath(name).stem)
    others = properties.keys() - {"title", "alias", "aliases", "tag", "tags", *HIDDEN_PROPERTIES}
    facts = {"Aliases": aliases, "Tags": list(tags)[:MAX_NAMES]} | {key: properties[key] for key in properties if key in others}
    head = "\n".join(f"{key}: {', '.join(values)}  " for key, values in facts.items() if any(values))
    text = change_outside(_CODE, body, lambda part: _to_plain_links(part, find_block)).strip()
    return Note(
        f"{head.rstrip()}\n\n{text}".strip(),
        one_line(unicodedata.normalize("NFC", title)),
        tuple(aliases),
        tuple(list(tags)[:MAX_NAMES]),
        _date_of(properties, "date", "created", "published") or ("-".join(day.groups()) if day else ""),
        _date_of(properties, "updated", "modified", "lastmod"),
    )


def find_blocks(source: str, name: str) -> Iterator[tuple[str, str]]:
    """The blocks of a note that can be referred to, each by its mark: `name^mark` in Obsidian, an identifier in Logseq."""
    source = source.replace("\r\n", "\n")
    for mark in _BLOCK_MARK.finditer(source):
        yield f"{_link_key(name)}^{mark[1] or mark[2]}", _line_before(source, mark.start())
    for mark in _BLOCK_ID.finditer(source):
        yield mark[1].lower(), _line_before(source, mark.start())


def _line_before(text: str, end: int) -> str:
    """The line that ends here, or the one before where a mark has a line of its own."""
    while end and text[end - 1] == "\n":
        end -= 1
    first = max(0, end - MAX_BLOCK_CHARS)
    return text[max(first, text.rfind("\n", first, end) + 1) : end].strip().removeprefix("- ").strip()


def _link_key(name: str) -> str:
    """What a link calls a note: its name without folders, ending and case."""
    return PurePath(unicodedata.normalize("NFC", name).strip().removesuffix(".md")).name.casefold()


def _split_properties(source: str) -> tuple[dict[str, list[str]], str]:
    """The properties of a note and the rest of it: YAML as Obsidian writes it, which is flat, or lines of `key:: value`."""
    properties: dict[str, list[str]] = {}
    if front := _FRONT.match(source, 0, MAX_FRONT_CHARS):
        key = ""
        for line in (front[1] or "").splitlines():
            if match := _KEY.match(line):
                key, value = match[1].strip().casefold(), (match[2] or "").strip()
                if value.startswith("[") and value.endswith("]") and not value.startswith("[["):
                    properties[key] = _split_list(value[1:-1])
                elif key in ("tags", "tag", "aliases", "alias"):
                    properties[key] = _split_list(value)
                else:
                    properties[key] = [_plain_value(value)] if value.strip("|> ") else []
            elif key and (item := line.strip().removeprefix("- ").strip()) and not line.lstrip().startswith("#"):
                properties[key].append(_plain_value(item))
        return properties, source[front.end() :]
    at = 0
    for line in io.StringIO(source):
        match = _PAGE_PROPERTY.match(line) if len(line) <= MAX_BLOCK_CHARS else None
        if not match:
            break
        properties[match[1].casefold()] = _split_list(match[2])
        at += len(line)
    return properties, source[at:]


def _split_list(value: str) -> list[str]:
    return [plain for item in _LISTED.findall(value) if (plain := _plain_value(item))][:MAX_NAMES]


def _plain_value(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1].replace('\\"', '"') if value[0] == '"' else value[1:-1].replace("''", "'")
    return one_line(_WIKI_LINK.sub(_link_text, value))


def _date_of(properties: Mapping[str, list[str]], *keys: str) -> str:
    """The first value of the first of these properties that is a date."""
    return next(filter(None, (normalise_date(value) for key in keys for value in properties.get(key, [])[:1])), "")


def _to_plain_links(text: str, find_block: Callable[[str], str]) -> str:
    def replace_link(link: re.Match[str]) -> str:
        if link[1] and (link[3] or "").startswith("^") and (block := find_block(f"{_link_key(link[2])}{link[3]}")):
            return _name_links(block)
        return _link_text(link)

    text = _BLOCK_PROPERTY.sub("", text)
    text = _LOGSEQ_EMBED.sub(r"\1", text)
    text = _LOGSEQ_REFERENCE.sub(lambda match: _name_links(find_block(match[1].lower())) or match[0], text)
    text = _WIKI_LINK.sub(replace_link, text)
    return _MARKS.sub("", _CALLOUT.sub(r"\1", _BLOCK_MARK.sub("", text)))


def _name_links(block: str) -> str:
    """A block that is referred to: its own references stay names."""
    return _MARKS.sub("", _WIKI_LINK.sub(_link_text, _LOGSEQ_REFERENCE.sub("", block)))


def _link_text(link: re.Match[str]) -> str:
    """What a reader sees of a link: its words, else the name of the note and the heading."""
    words, place = (link[4] or "").strip(), (link[3] or "").strip()
    if words and not (link[1] and words.replace("x", "").isdecimal()):  # ![[picture.png|300]] gives a size
        return words
    name = unquote(link[2]).strip() if "%" in link[2] else link[2].strip()
    heading = "" if place.startswith("^") else place
    return ", ".join(filter(None, (PurePath(name).name.removesuffix(".md"), heading))) or place.lstrip("^")
