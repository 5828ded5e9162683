"""Every error, refusal and warning that the code can raise, with its wording, read from the sources.

A value that is only known at run time is `{}`, and two texts of which one is chosen are `one / other`. Where a text stands in
the sources does not matter, so moving or renaming code changes nothing here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

# What each name in the sources may stand for.
Names = Mapping[str, Sequence[ast.expr]]


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
        node.targets[0].id: [node.value]
        for node in [*nodes, *tree.body]
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if id(node) in top_level or _is_call_of(node.value, "Notice")
    }
    for node, names in _walk_calls(tree, constants):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        named = {word.arg: _render(word.value, names) for word in node.keywords if word.arg}
        if name in ERRORS and node.args:
            code = named.get("code") or named.get("reason") or ERRORS[name].code
            yield Entry(name, code, _render(node.args[0], names), named.get("cause", ""), named.get("fix", ""))
        elif name in MAKERS and len(node.args) > MAKERS[name][1]:
            at, text = MAKERS[name]
            code = at if isinstance(at, str) else _render(node.args[at], names)
            yield Entry(name, code, _render(node.args[text], names), named.get("cause", ""), named.get("fix", ""))


def _walk_calls(node: ast.AST, names: Names) -> Iterator[tuple[ast.Call, Names]]:
    """Each call with what the names in it may stand for: a value before it in its block, or the one an `if` gives instead."""
    for _, field in ast.iter_fields(node):
        names_here = names
        for child in field if isinstance(field, list) else [field]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.Call):
                yield child, names_here
            yield from _walk_calls(child, names_here)
            if isinstance(child, ast.stmt) and not isinstance(node, ast.Module):
                names_here = {**names_here, **_assigned(child, names_here)}


def _assigned(statement: ast.stmt, names: Names) -> dict[str, list[ast.expr]]:
    """What the names that a statement assigns may stand for after it."""
    found: dict[str, list[ast.expr]] = {}
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, statement.value)]
            if isinstance(target, ast.Tuple):
                values = (
                    statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value] * len(target.elts)
                )
                pairs = zip(target.elts, values, strict=False)
            found |= {name.id: [value] for name, value in pairs if isinstance(name, ast.Name)}
    elif isinstance(statement, ast.If | ast.With | ast.AsyncWith | ast.Try):
        for inner in [*statement.body, *getattr(statement, "orelse", [])]:
            for name, values in _assigned(inner, names).items():
                found[name] = [*found.get(name, names.get(name, [])), *values]
    return found


def _render(node: ast.expr, names: Names) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.IfExp):
        return " / ".join(_render(each, names) for each in (node.body, node.orelse))
    if isinstance(node, ast.BoolOp):
        return " / ".join(_render(each, names) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _render(node.left, names) + _render(node.right, names)
    if isinstance(node, ast.Name) and node.id in names:
        return " / ".join(dict.fromkeys(_render(value, {}) for value in names[node.id]))
    if _is_call_of(node, "Notice"):
        return re.sub(r"\{\w+\}", "{}", _render(node.args[1], names))  # type: ignore[attr-defined]
    if _is_call_of(node, "join_sentences"):
        return ". ".join(_render(part, names) for part in node.args)  # type: ignore[attr-defined]
    return "{}"


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
