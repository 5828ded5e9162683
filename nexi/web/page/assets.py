"""The files of the page as they are sent: in the language of the reader, without comments, compressed where a client takes it.

Above, the routes of the page; below, `index.html`, which names its texts, and a file of texts for each language: those of the
page itself, those of its scripts, which travel inside the page, and the sentences that the server says in English. There is no
build step: what is sent has the code of its file.
"""

from __future__ import annotations

import functools
import gzip
import html
import json
import re
from importlib import resources
from typing import Any

__all__ = ["LANGUAGES", "choose_language", "index_bytes", "pack_bytes", "read_texts", "sentences_bytes", "static_bytes"]

LANGUAGES = ("en", "de", "es", "fr", "zh", "ar")
RIGHT_TO_LEFT = ("ar",)
_TEXT_NAME = re.compile(r"\{\{(\w+)\}\}")
_JS_COMMENT = re.compile(r"(?m)^[ \t]*//.*\n")
_JS_END_COMMENT = re.compile(r"""(?m)(?<=\S)[ \t]+// [^"'`\n]*$""")  # without a quote, so that it cannot be within a text
_JS_SPACE = re.compile(r""" *([=(){};,?:<>&|!]) *|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""")
_JS_UNSURE = re.compile(r"[`/]")  # a line with a template or a pattern, whose spaces may be meant
_CSS_COMMENT = re.compile(r"/\*.*?\*/\n?", re.DOTALL)
_CSS_SPACE = re.compile(r"\s*([{};])\s*|([:,])\s+")  # what stands before a colon may matter, what stands after it never does
_INDENTATION = re.compile(r"(?m)^[ \t]+")


def compact_source(name: str, source: str) -> str:
    """A script, style sheet or page without what only its authors read; texts of several lines are in none of them."""
    if name.endswith(".css"):
        return _CSS_SPACE.sub(r"\1\2", _CSS_COMMENT.sub("", source))
    if name.endswith(".js"):
        lines = _JS_END_COMMENT.sub("", _JS_COMMENT.sub("", source)).split("\n")
        source = "\n".join(line if _JS_UNSURE.search(line) else _JS_SPACE.sub(r"\1\2", line) for line in lines)
    return _INDENTATION.sub("", source)


@functools.cache
def static_bytes(name: str, compressed: bool, package: str = __package__) -> bytes:
    source = (resources.files(package) / name).read_text(encoding="utf-8")
    return pack_bytes(compact_source(name, source).encode(), compressed)


@functools.cache
def index_bytes(language: str, compressed: bool) -> bytes:
    return pack_bytes(compact_source("index.html", render_index(language)).encode(), compressed)


@functools.cache
def sentences_bytes(language: str, compressed: bool) -> bytes:
    return pack_bytes(json.dumps(read_texts(language)["sentences"], ensure_ascii=False).encode(), compressed)


def pack_bytes(body: bytes, compressed: bool) -> bytes:
    return gzip.compress(body, mtime=0) if compressed else body


def choose_language(choice: str, accepted: str) -> str:
    """The language that the reader chose, else the first that the browser asks for and the page has, else English."""
    codes = [choice, *(code for _, code in sorted(map(_parse_range, accepted.split(",")), key=lambda pair: -pair[0]))]
    return next((code for code in (name.partition("-")[0] for name in codes) if code in LANGUAGES), LANGUAGES[0])


def _parse_range(item: str) -> tuple[float, str]:
    """The weight and the code of one range of Accept-Language; one that cannot be read has no weight."""
    code, _, weight = item.strip().lower().partition(";q=")
    try:
        return float(weight or 1), code.strip()
    except ValueError:
        return 0.0, ""


def render_index(language: str) -> str:
    """The page with its texts, and those of its scripts as data that a script can read and a browser does not run."""
    texts = read_texts(language)
    scripts = json.dumps(texts["scripts"], ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    values = {**{name: html.escape(text) for name, text in texts["page"].items()}, "language": language, "texts": scripts}
    values["direction"] = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    page = (resources.files(__package__) / "index.html").read_text(encoding="utf-8")
    return _TEXT_NAME.sub(lambda match: values[match[1]], page)


def read_texts(language: str) -> dict[str, dict[str, Any]]:
    """The texts of a language: `page`, `scripts`, and `sentences` by what the server says."""
    file = resources.files(__package__) / "texts" / f"{language}.json"
    texts: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return texts
