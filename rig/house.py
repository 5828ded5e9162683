"""Figures of how the package reads: names, size, surface, circles of imports, comments (standard library only).

  python -m rig.house                      the figures of today beside those of the start and the targets
  python -m rig.house --list participles   what is behind a figure, with file and line (others: see --help)
  python -m rig.house nexi/llm/extractive --list literals    the numbers of one package
  python -m rig.house --save               the same table in docs/house-figures.md

Only syntax trees and tokens are read, nothing is imported. A bare participle is a one-word name such as `told`, `listed`,
`waiting` or `usable`: it says that something happened or can happen, but not what the function does.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "docs" / "house-figures.md"
LISTS = ("participles", "one-word", "locals", "one-use", "duplicates", "public", "constants", "circles", "literals")

PARTICIPLE = re.compile(r"(?:ed|en|ing|able|ible)$")
IRREGULAR = """
    begun born bought bound brought built caught chose dealt done drawn felt found gone grown heard held hung kept known
    laid led left lent lost made meant met paid rebuilt said sat sent shown shrunk sold spent spun stood struck stuck
    sung sworn taught thought thrown told torn understood undone unknown unsent won worn
""".split()  # noqa: SIM905
# Verbs and nouns of the field that only end like a participle.
NOT_PARTICIPLES = """
    between bring building children disable embed embedding enable encoding exceed fastembed feed flatten happen heading
    lengthen listen mapping need nothing often open ping proceed reopen ring screen seed setting shorten speed string
    succeed table then thing tighten timing token variable warning when widen
""".split()  # noqa: SIM905
# A variable may be called `ranking` or `following`; these say only that something happened to it.
EMPTY_NAMES = """
    asked begun bound built chosen cut done drawn found given gone heard held kept known left lent made meant met missing named
    parsed said seen sent shown sought stated stored taken told waiting wanted written
""".split()  # noqa: SIM905
DUNDER = re.compile(r"__\w+__")
BROAD = {"Exception", "BaseException"}
HEADING = """# Code metrics

Written by `python -m rig.house --save`, which counts syntax trees and tokens of the package `nexi`. "Before" is the code
ahead of the revision of its names. A bare participle is a one-word name such as `told`, `waiting` or `usable`. A public name
is at the top level of a module, has no underscore in front, neither has its module, and `__all__` does not leave it out.
A variable with an empty name is a local variable or a parameter called `found`, `told`, `kept` or the like. A private function
is used once when its name stands once in the whole package, apart from its definition.
Import circles count lazy imports and imports for types. The length of a function leaves its docstring out.
`--list participles` prints the names behind a figure, with file and line.

The lines are more than before: document formats, the team server, the Responses API, languages, judges and most of the page
came in since. At their most they were 80,164 in 518 modules. Then modules with one reader were joined with it, one mechanism
took the place of two, and unused names went: 948 lines of `web/` and `app/`, 553 of `checking/` and `extract/`
with what they share, 522 of `formats/` and `stores/`, 495 of the interfaces and the search services, 376 of the command
line, 174 of `team/` and 434 of research, the agent and the logs.

"""
# The figures of the package before its names were revised, as this script gave them.
BEFORE = {
    "bare participles, % of functions": "11.2",
    "one-word names, % of functions": "62.7",
    "words in a function's name, mean": "1.42",
    "local variables with an empty name, %": "9.0",
    "parameters with an empty name, %": "3.1",
    "private functions used once, % of functions": "33",
    "class names used more than once": "38",
    "public functions and classes per 1,000 lines": "28.2",
    "public constants per 1,000 lines": "21.9",
    "files in the largest import circle": "19 (sizes 19, 5, 3)",
    "files / lines": "342 / 52,820",
    "lines with Any": "843",
    "functions": "3,897",
    "function length, median / p95 / max": "6 / 17 / 55",
    "comments per 100 lines of code": "1.6",
    "broad excepts per 1,000 lines": "0.2",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    """A name and where it stands."""

    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


@dataclass(frozen=True)
class Source:
    """One module of the package."""

    path: str
    module: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_private(self) -> bool:
        return any(part.startswith("_") and not DUNDER.fullmatch(part) for part in self.module.split("."))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def walk(self) -> Iterator[ast.AST]:
        return iter(self.nodes)


@dataclass(frozen=True)
class Figure:
    """One row of the table: `value` is what the target is about, `shown` is how it reads."""

    name: str
    shown: str
    value: float
    most: float | None = None

    @property
    def target(self) -> str:
        return "" if self.most is None else f"at most {self.most:,g}"

    @property
    def is_met(self) -> bool:
        return self.most is None or self.value <= self.most


def read_package(folder: Path) -> list[Source]:
    found = []
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder.parent)
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        found.append(Source(path.as_posix(), module, file.read_text(encoding="utf-8")))
    return found


def find_functions(sources: list[Source]) -> list[tuple[Place, Function]]:
    """Every function and method but the ones that Python names (`__init__`)."""
    return [
        (Place(s.path, node.lineno, node.name), node)
        for s in sources
        for node in s.walk()
        if isinstance(node, Function) and not DUNDER.fullmatch(node.name)
    ]


def split_words(name: str) -> list[str]:
    return [word for word in name.split("_") if word]


def is_one_word(name: str) -> bool:
    return len(split_words(name)) <= 1


def is_participle(name: str) -> bool:
    word = name.strip("_")
    if not is_one_word(name) or word in NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or PARTICIPLE.search(word) is not None


def find_variables(sources: list[Source]) -> tuple[list[Place], list[Place]]:
    """(local variables, parameters), once for each function that has them (an outer function has those of its inner ones)."""
    variables: list[Place] = []
    parameters: list[Place] = []
    for s in sources:
        for function in (node for node in s.walk() if isinstance(node, Function)):
            names = {n.id: n.lineno for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            variables += [Place(s.path, line, name) for name, line in names.items()]
            arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
            parameters += [Place(s.path, a.lineno, a.arg) for a in arguments if a.arg not in ("self", "cls")]
    return variables, parameters


def find_one_use_functions(sources: list[Source]) -> list[Place]:
    """Private functions whose name stands at one place only, apart from their definition."""
    uses: Counter[str] = Counter()
    for s in sources:
        uses.update(n.id if isinstance(n, ast.Name) else n.attr for n in s.walk() if isinstance(n, ast.Name | ast.Attribute))
    return [place for place, _ in find_functions(sources) if place.name.startswith("_") and uses[place.name] == 1]


def count_any(sources: list[Source]) -> int:
    """Lines of code that name the type `Any`, imports apart."""
    return sum(len({n.lineno for n in s.walk() if isinstance(n, ast.Name) and n.id == "Any"}) for s in sources)


def find_duplicate_classes(sources: list[Source]) -> dict[str, list[Place]]:
    places = defaultdict(list)
    for s in sources:
        for node in s.walk():
            if isinstance(node, ast.ClassDef):
                places[node.name].append(Place(s.path, node.lineno, node.name))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def find_public_names(sources: list[Source]) -> tuple[list[Place], list[Place]]:
    """(functions and classes, constants and aliases) at the top of a module that others are invited to import."""
    definitions: list[Place] = []
    constants: list[Place] = []
    for s in sources:
        exported = read_exports(s.tree)
        for node in [] if s.is_private else s.tree.body:
            for name in bound_names(node):
                if not name.startswith("_") and (exported is None or name in exported):
                    found = definitions if isinstance(node, Function | ast.ClassDef) else constants
                    found.append(Place(s.path, node.lineno, name))
    return definitions, constants


def bound_names(node: ast.stmt) -> list[str]:
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def read_exports(tree: ast.Module) -> set[str] | None:
    """The names in `__all__`, or None where a module has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return None


def find_circles(sources: list[Source]) -> list[list[str]]:
    """Modules that reach each other by imports, lazy ones and those for types included; the longest circle first."""
    modules = {s.module for s in sources}
    graph = {s.module: sorted(find_imports(s, modules) - {s.module}) for s in sources}
    circles = [group for group in strong_components(graph) if len(group) > 1]
    return sorted(circles, key=lambda group: (-len(group), group))


def find_imports(source: Source, modules: set[str]) -> set[str]:
    found: set[str] = set()
    for node in source.walk():
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_base(source, node)
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= names & modules
            if names - modules:
                found.add(base)
    return found & modules


def resolve_base(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    above = len(parts) - node.level + source.path.endswith("__init__.py")
    return ".".join([*parts[:above], *([node.module] if node.module else [])])


def strong_components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Kosaraju's algorithm: order by finish, then collect backwards."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        order += walk_depth_first(start, graph, seen)
    backwards: dict[str, list[str]] = defaultdict(list)
    for module, imported in graph.items():
        for other in imported:
            backwards[other].append(module)
    seen = set()
    return [sorted(group) for start in reversed(order) if (group := walk_depth_first(start, backwards, seen))]


def walk_depth_first(start: str, graph: dict[str, list[str]], seen: set[str]) -> list[str]:
    """Nodes that are new from `start`, each after all it leads to."""
    if start in seen:
        return []
    seen.add(start)
    finished, stack = [], [(start, iter(graph.get(start, [])))]
    while stack:
        node, following = stack[-1]
        new = next((other for other in following if other not in seen), None)
        if new is None:
            finished.append(node)
            stack.pop()
        else:
            seen.add(new)
            stack.append((new, iter(graph.get(new, []))))
    return finished


def function_length(node: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def count_comments(sources: list[Source]) -> tuple[int, int]:
    """(comments, lines of code): lines that hold a token which is neither a comment nor only white space."""
    comments = code = 0
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for s in sources:
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(s.text).readline):
            comments += token.type == tokenize.COMMENT
            if token.type not in layout:
                lines.update(range(token.start[0], token.end[0] + 1))
        code += len(lines)
    return comments, code


def find_literals(sources: list[Source]) -> list[Place]:
    """Numbers in the code but 0, 1, 2 and -1; the index of an element is none, the end of a slice is one."""
    places = []
    for s in sources:
        indices = {id(n.slice) for n in s.walk() if isinstance(n, ast.Subscript)}
        numbers = (n for n in s.walk() if isinstance(n, ast.Constant) and type(n.value) in (int, float))
        counted = (n for n in numbers if n.value not in (0, 1, 2) and id(n) not in indices)
        places += [Place(s.path, n.lineno, repr(n.value)) for n in sorted(counted, key=lambda n: (n.lineno, n.col_offset))]
    return places


def count_broad_excepts(sources: list[Source]) -> int:
    handlers = [node for s in sources for node in s.walk() if isinstance(node, ast.ExceptHandler)]
    return sum(h.type is None or any(isinstance(n, ast.Name) and n.id in BROAD for n in ast.walk(h.type)) for h in handlers)


def measure(sources: list[Source]) -> list[Figure]:
    functions = find_functions(sources)
    names = [place.name for place, _ in functions]
    lines = sum(len(s.text.splitlines()) for s in sources)
    one_word = percent(sum(map(is_one_word, names)), len(names))
    participles = percent(sum(map(is_participle, names)), len(names))
    words = statistics.fmean(len(split_words(name)) for name in names)
    duplicates = len(find_duplicate_classes(sources))
    public, constants = (per_thousand(len(found), lines) for found in find_public_names(sources))
    circles = [len(circle) for circle in find_circles(sources)]
    lengths = sorted(function_length(node) for _, node in functions)
    comments, code = count_comments(sources)
    broad = per_thousand(count_broad_excepts(sources), lines)
    variables, parameters = (share_of_empty_names(places) for places in find_variables(sources))
    one_use = percent(len(find_one_use_functions(sources)), len(names))
    any_lines = count_any(sources)
    return [
        Figure("bare participles, % of functions", f"{participles:.1f}", participles, 2),
        Figure("one-word names, % of functions", f"{one_word:.1f}", one_word, 45),
        Figure("words in a function's name, mean", f"{words:.2f}", words),
        Figure("local variables with an empty name, %", f"{variables:.1f}", variables, 1.5),
        Figure("parameters with an empty name, %", f"{parameters:.1f}", parameters, 1.5),
        Figure("private functions used once, % of functions", f"{one_use:.1f}", one_use, 15),
        Figure("class names used more than once", f"{duplicates}", duplicates, 5),
        Figure("public functions and classes per 1,000 lines", f"{public:.1f}", public, 20),
        Figure("public constants per 1,000 lines", f"{constants:.1f}", constants),
        Figure("files in the largest import circle", show_circles(circles), max(circles, default=0), 6),
        Figure("files / lines", f"{len(sources):,} / {lines:,}", lines, 76_000),
        Figure("lines with Any", f"{any_lines:,}", any_lines),
        Figure("functions", f"{len(names):,}", len(names)),
        Figure("function length, median / p95 / max", show_lengths(lengths), lengths[-1]),
        Figure("comments per 100 lines of code", f"{percent(comments, code):.1f}", percent(comments, code)),
        Figure("broad excepts per 1,000 lines", f"{broad:.1f}", broad),
    ]


def share_of_empty_names(places: list[Place]) -> float:
    return percent(sum(place.name in EMPTY_NAMES for place in places), len(places))


def percent(part: int, whole: int) -> float:
    return 100 * part / max(1, whole)


def per_thousand(part: int, whole: int) -> float:
    return 1000 * part / max(1, whole)


def show_circles(sizes: list[int]) -> str:
    return f"{max(sizes)} (sizes {', '.join(map(str, sizes))})" if sizes else "none"


def show_lengths(lengths: list[int]) -> str:
    p95 = lengths[min(len(lengths) - 1, int(0.95 * len(lengths)))]
    return f"{statistics.median(lengths):g} / {p95} / {lengths[-1]}"


def list_offenders(sources: list[Source], kind: str) -> list[str]:
    if kind == "duplicates":
        return [str(place) for places in find_duplicate_classes(sources).values() for place in places]
    if kind in ("public", "constants"):
        return [str(place) for place in find_public_names(sources)[kind == "constants"]]
    if kind == "circles":
        return [f"{len(circle)}: {' '.join(circle)}" for circle in find_circles(sources)]
    if kind == "locals":
        return [str(place) for places in find_variables(sources) for place in places if place.name in EMPTY_NAMES]
    if kind == "one-use":
        return list(map(str, find_one_use_functions(sources)))
    if kind == "literals":
        return list(map(str, find_literals(sources)))
    fits = is_participle if kind == "participles" else is_one_word
    return [str(place) for place, _ in find_functions(sources) if fits(place.name)]


def render_table(figures: list[Figure]) -> str:
    rows = [f"| {f.name} | {BEFORE.get(f.name, '')} | {f.shown} | {f.target} |" for f in figures]
    return "\n".join(["| figure | before | after | target |", "|---|---|---|---|", *rows])


def print_table(figures: list[Figure]) -> None:
    print(f"{'':45} {'before':>20} {'now':>20}  target")
    for f in figures:
        print(f"{f.name:45} {BEFORE.get(f.name, ''):>20} {f.shown:>20}  {f.target}{'' if f.is_met else ', not met'}")


def main(arguments: list[str] | None = None, table: Path = SAVED) -> None:
    parser = argparse.ArgumentParser(prog="python -m rig.house", description="Figures of how the package reads.")
    parser.add_argument("package", nargs="?", type=Path, default=ROOT / "nexi", help="the folder of a package; nexi by default")
    parser.add_argument("--list", choices=LISTS, help="print what is behind a figure, with file and line")
    parser.add_argument("--save", action="store_true", help="write docs/house-figures.md")
    options = parser.parse_args(arguments)
    sources = read_package(options.package)
    if options.list:
        print("\n".join(list_offenders(sources, options.list)))
        return
    figures = measure(sources)
    print_table(figures)
    if options.save:
        table.write_text(f"{HEADING}{render_table(figures)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
