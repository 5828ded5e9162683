"""Every error, refusal and warning that the code can raise, with its wording, read from the sources.

A value that is only known at run time is `{}`, and two texts of which one is chosen are `one / other`. Where a text stands in
the sources does not matter, so moving or renaming code changes nothing here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nexi import errors

ERRORS = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.NexiError)
}
# What else makes a message, with the positions of code and text. "" stands for the code that the name implies.
MAKERS: Mapping[str, tuple[int | str, int]] = {
    "build_refusal": (1, 2),
    "bad_request": ("bad_request", 0),
    "ProxyFault": ("proxy", 0),
    "Warned": (0, 1),
    "warn": (0, 1),
    "Notice": (0, 1),
}


@dataclass(frozen=True, order=True)
class Entry:
    kind: str
    code: str
    message: str
    cause: str
    fix: str

    def __str__(self) -> str:
        lines = [f"{self.kind} {self.code}", f"  {self.message}"]
        lines += [f"  {name}: {text}" for name, text in (("cause", self.cause), ("fix", self.fix)) if text]
        return "\n".join(lines)


def list_messages(sources: Iterable[Path]) -> list[Entry]:
    found = {entry for path in sources for entry in find_entries(path.read_text(encoding="utf-8"))}
    return sorted(entry for entry in found if re.search(r"[a-z]", entry.message.replace("{}", "")))


def find_entries(source: str) -> Iterator[Entry]:
    tree = ast.parse(source)
    nodes, top_level = [*ast.walk(tree)], {id(node) for node in tree.body}
    constants = {
        node.targets[0].id: node.value
        for node in [*nodes, *tree.body]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if id(node) in top_level or _is_call_of(node.value, "Notice")
    }
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        named = {word.arg: _render(word.value, constants) for word in node.keywords if word.arg}
        if name in ERRORS and node.args:
            code = named.get("code") or named.get("reason") or ERRORS[name].code
            yield Entry(name, code, _render(node.args[0], constants), named.get("cause", ""), named.get("fix", ""))
        elif name in MAKERS and len(node.args) > MAKERS[name][1]:
            at, text = MAKERS[name]
            code = at if isinstance(at, str) else _render(node.args[at], constants)
            yield Entry(name, code, _render(node.args[text], constants), named.get("cause", ""), named.get("fix", ""))


def _render(node: ast.expr, constants: Mapping[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.IfExp):
        return " / ".join(_render(each, constants) for each in (node.body, node.orelse))
    if isinstance(node, ast.BoolOp):
        return " / ".join(_render(each, constants) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _render(node.left, constants) + _render(node.right, constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return _render(constants[node.id], {})
    if _is_call_of(node, "Notice"):
        return re.sub(r"\{\w+\}", "{}", _render(node.args[1], constants))  # type: ignore[attr-defined]
    if _is_call_of(node, "join_sentences"):
        return ". ".join(_render(part, constants) for part in node.args)  # type: ignore[attr-defined]
    return "{}"


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
