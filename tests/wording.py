"""The words that texts for users must not have (tests/words.json), and the texts of the code that users and models read."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS: dict[str, dict[str, str]] = json.loads((ROOT / "tests" / "words.json").read_text(encoding="utf-8"))
_COMMENT = re.compile(r"(?m)^\s*//.*$|(?<=[;{},)])\s+//.*$")
_JS_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`')
_NESTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def find_old_words(text: str) -> list[str]:
    """Words of the list, each with what surrounds it and what to write instead."""
    found = []
    for word in WORDS.values():
        for match in re.finditer(word["pattern"], text, re.IGNORECASE):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 40].split())
            found.append(f"{match[0]!r} in {around!r}: write {word['instead']}")
    return found


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Every literal of more than one word that is no docstring, with its line; an f-string is one text, `{}` for its values.

    The docstring of a click command is its help, and an MCP client reads those of the public methods of `Tools`, so they count.
    """
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} - set(_shown_docstrings(tree))
    in_f_strings = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | in_f_strings:
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield node.lineno, text


def _shown_docstrings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Tools":
            shown = [each for each in node.body if isinstance(each, _NESTED) and not each.name.startswith("_")]
        elif isinstance(node, ast.FunctionDef) and any("command(" in ast.unparse(each) for each in node.decorator_list):
            shown = [node]
        else:
            continue
        yield from (id(each.body[0].value) for each in shown if each.body and isinstance(each.body[0], ast.Expr))


def strip_comments(script: str) -> str:
    return _COMMENT.sub("", script)


def script_texts(source: str) -> Iterator[tuple[int, str]]:
    """The same of JavaScript; the lines of comments are left out."""
    code = strip_comments(source)
    for match in _JS_STRING.finditer(code):
        if " " in match[0]:
            yield code.count("\n", 0, match.start()) + 1, match[0]


def shown_texts(path: Path) -> Iterator[tuple[int, str]]:
    """What a file says to a user or a model, with its lines."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return python_texts(source)
    if path.suffix == ".js":
        return script_texts(source)
    return iter([(1, source)])
