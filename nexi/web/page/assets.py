"""The files of the page as they are sent: without comments and indentation, and compressed for a client that takes them so.

Above, the routes of the page; below, the files of the package. There is no build step: what is sent has the code of its file.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from importlib import resources

from nexi.web.page.localization import read_texts, render_index

__all__ = ["compact_source", "index_bytes", "pack_bytes", "sentences_bytes", "static_bytes"]

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
