"""Markdown to plain text. Pure, and linear in the length of the text."""

from __future__ import annotations

import re

_CODE_SPAN = re.compile(r"(`{1,2})[^\n]{1,300}?\1")
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\]\([^()\n]{0,2000}\)")
_LINK = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]{0,200}\]){0,500})\]\((?:[^()\n]|\([^()\n]{0,300}\)){0,2000}\)")
_NOTE = re.compile(r"\[\^?(?:\d{1,3}|note \d+|citation needed)\]", re.I)
_STRONG = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,400}?)(?<=[^\s*])\1(?![\w*])")
_EMPHASIS = re.compile(r"(?<![\w_])(_{1,2})(?=[^\s_])([^_\n]{1,400}?)(?<=[^\s_])\1(?![\w_])")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|<!--")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")
_SPACE = re.compile(r"\s+")


def strip_markdown(markdown: str) -> str:
    """The text of one block of Markdown: links by their labels, no images, notes or emphasis; code keeps its backticks."""
    text = _IMAGE.sub(" ", markdown) if "![" in markdown else markdown
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "[" in text:
        text = _NOTE.sub("", text)
    for mark, pattern, kept in (("<", _TAG, " "), ("*", _STRONG, r"\2"), ("_", _EMPHASIS, r"\2"), ("\\", _ESCAPE, r"\1")):
        if mark in text:
            text = _outside_code(text, pattern, kept)
    return _SPACE.sub(" ", text.replace("¶", " ")).strip()


def _outside_code(text: str, pattern: re.Pattern[str], kept: str) -> str:
    out: list[str] = []
    start = 0
    for match in _CODE_SPAN.finditer(text):
        out += [pattern.sub(kept, text[start : match.start()]), match.group()]
        start = match.end()
    return "".join([*out, pattern.sub(kept, text[start:])])
