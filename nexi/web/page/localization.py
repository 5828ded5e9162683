"""The page in the language of its reader. Pure, but for the files of the package.

Above, the route of the page; below, `index.html`, which names its texts, and a file of texts for each language: those of the
page itself, those of its scripts, which travel inside the page, and the sentences that the server says in English.
"""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from typing import Any

__all__ = ["LANGUAGES", "choose_language", "read_texts", "render_index"]

LANGUAGES = ("en", "de", "es", "fr", "zh", "ar")
RIGHT_TO_LEFT = ("ar",)
_NAME = re.compile(r"\{\{(\w+)\}\}")


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
    return _NAME.sub(lambda match: values[match[1]], page)


def read_texts(language: str) -> dict[str, dict[str, Any]]:
    """The texts of a language: `page`, `scripts`, and `sentences` by what the server says."""
    texts: dict[str, dict[str, Any]] = json.loads(
        (resources.files(__package__) / "texts" / f"{language}.json").read_text(encoding="utf-8")
    )
    return texts
