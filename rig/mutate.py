"""Mutation testing: change one thing in a module, run the tests that reach that line, and see whether they notice.

`python -m rig.mutate` runs every mutant, `--only budget` those of one core, `--sample 30` a seeded sample of each,
`--survivors` those that the table lists as survivors, after tests were added; `--save` writes the rows of these cores into
tests/mutation.md, `--show` lists the mutants that survived. A mutant is the module's source with one change, loaded in place
of the file by an import hook in a forked process; no file is touched. Forking makes it a tool for Linux and macOS.

A core that keeps money, private text or data has no survivors but those of tests/mutation-equivalents.txt, each with the reason
why no test can notice it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "mutation.md"
EQUIVALENTS = ROOT / "tests" / "mutation-equivalents.txt"
MIN_KILLED = 0.85  # of a core
MIN_KILLED_OF_FUNCTION = 0.6  # of a function with at least this many mutants
MIN_MUTANTS_OF_FUNCTION = 5
MIN_TIMEOUT_S = 60
TIMEOUT_FACTOR = 5  # of the time the tests take without a change
SEED = 7


@dataclass(frozen=True)
class Core:
    """A module and the tests that must hold it, the fastest first."""

    name: str
    path: str
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    is_strict: bool = False  # money, privacy and data: no survivors
    needs_postgres: bool = False

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".")


NO_POSTGRES = ("-k", "not postgres")
CORES = (
    Core("budget", "nexi/budget.py", ("tests/test_budget.py", "tests/properties/test_budget_properties.py"), is_strict=True),
    Core(
        "state",
        "nexi/research/state.py",
        ("tests/research/test_state.py", "tests/research/test_digest.py", "tests/properties/test_research_properties.py"),
    ),
    Core(
        "citations", "nexi/answers/citations.py", ("tests/test_citations.py", "tests/properties/test_citations_properties.py")
    ),
    Core("limits", "nexi/net/limits.py", ("tests/test_limits.py", "tests/properties/test_limits_properties.py")),
    Core("retry", "nexi/net/retry.py", ("tests/test_retry.py",)),
    Core("repeats", "nexi/agent/repeats.py", ("tests/test_repeats.py",)),
    Core("urls", "nexi/urls.py", ("tests/test_urls.py", "tests/properties/test_urls_properties.py")),
    Core(
        "answer",
        "nexi/answers/streaming.py",
        ("tests/test_answer.py", "tests/test_safe_markdown.py", "tests/test_code_addresses.py"),
    ),
    Core("scope", "nexi/app/local_scope.py", ("tests/app/test_local_scope.py",), is_strict=True),
    Core("guard", "nexi/fetchers/guard.py", ("tests/fetchers/test_guard.py",), is_strict=True),
    Core("resume", "nexi/app/resume.py", ("tests/app/test_resume.py",), is_strict=True),
    Core("log", "nexi/runs/log.py", ("tests/test_runlog.py", "tests/faults/test_disk_faults.py"), is_strict=True),
    Core("log_format", "nexi/runs/log_format.py", ("tests/test_log_format.py", "tests/test_runlog.py"), is_strict=True),
    Core(
        "store",
        "nexi/stores/_writing.py",
        ("tests/stores/test_sqlite.py", "tests/contract/test_knowledge_stores.py"),
        NO_POSTGRES,
        is_strict=True,
    ),
    Core(
        "loop",
        "nexi/agent/loop.py",
        (
            "tests/agent/test_loop.py",
            "tests/test_excerpts.py",
            "tests/scenarios/test_search.py",
            "tests/specifications/test_architecture.py",
        ),
    ),
    Core(
        "leases",
        "nexi/team/postgres/runs.py",
        (
            "tests/team/test_postgres_runs.py",
            "tests/team/test_postgres_retention.py",
            "tests/contract/test_run_logs.py",
            "tests/contract/test_run_stores.py",
            "tests/team/test_postgres.py",
            "tests/team/test_quotas.py::test_workers_at_once_begin_as_many_runs_as_may_run",
        ),
        ("-k", "not memory and not files and not restart and not goes_forward and not database_that"),
        is_strict=True,
        needs_postgres=True,
    ),
    Core(
        "sharing",
        "nexi/team/postgres/sharing.py",
        ("tests/team/test_postgres_sharing.py", "tests/team/test_spaces.py"),
        is_strict=True,
        needs_postgres=True,
    ),
    Core(
        "stored_runs",
        "nexi/app/stored_runs.py",
        ("tests/app/test_retention.py", "tests/test_run_repair.py", "tests/research/test_bundle.py"),
        is_strict=True,
    ),
    Core("token", "nexi/app/owner_token.py", ("tests/app/test_owner_token.py",), is_strict=True),
    Core("hosting", "nexi/app/hosting.py", ("tests/web/test_feeds.py", "tests/app/test_hosting.py")),
    Core("judge", "nexi/checking/judge.py", ("tests/checking/test_judge.py",)),
    Core(
        "rules",
        "nexi/checking/rules.py",
        (
            "tests/checking/test_rules.py",
            "tests/proof/test_verdict.py",
            "tests/proof/test_near_copies.py",
            "tests/proof/test_clauses.py",
        ),
    ),
)


@dataclass(frozen=True)
class Mutant:
    """A whole source with one change, and where and what that is; `lines` are those of the statement it is in."""

    line: int
    change: str
    source: str
    function: str = ""
    lines: range = range(0)


@dataclass(frozen=True)
class Result:
    core: Core
    killed: int
    survivors: tuple[Mutant, ...]
    mutants_of: Mapping[str, int] = field(default_factory=dict)  # by function
    hanging: tuple[Mutant, ...] = ()  # counted as killed; on a busy machine a slow test may look like this
    sampled_from: int = 0  # how many mutants there are, where only a sample was run

    @property
    def total(self) -> int:
        return self.killed + len(self.survivors)

    @property
    def faults(self) -> list[str]:
        """What keeps this core below its floors."""
        by_function = Counter(mutant.function for mutant in self.survivors)
        faults = [
            f"{name}: {count} of {self.mutants_of[name]} mutants survive"
            for name, count in by_function.items()
            if self.mutants_of.get(name, 0) >= MIN_MUTANTS_OF_FUNCTION
            and count > (1 - MIN_KILLED_OF_FUNCTION) * self.mutants_of[name]
        ]
        if self.share < MIN_KILLED:
            faults.append(f"{self.share:.0%} are killed, {MIN_KILLED:.0%} must be")
        if self.core.is_strict:
            lines = (ROOT / self.core.path).read_text(encoding="utf-8").splitlines()
            known = read_equivalents().get(self.core.path, set())
            faults += [
                f"line {mutant.line}, {mutant.change}: survives in code that has no survivors"
                for mutant in self.survivors
                if (mutant.change, lines[mutant.line - 1].strip()) not in known
            ]
        return faults

    @property
    def share(self) -> float:
        return self.killed / self.total if self.total else 1.0


def read_equivalents() -> dict[str, set[tuple[str, str]]]:
    """Mutants that no test can notice, by file: (change, line). A row is `path | change | line | reason`."""
    known: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in EQUIVALENTS.read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            path, change, code = row.split(" | ")[:3]
            known[path].add((change, code))
    return known


# --- making mutants

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift,
}  # fmt: skip


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def make_mutants(source: str) -> list[Mutant]:
    """Every mutant of a source, in the order of its lines. Annotations, docstrings and `if TYPE_CHECKING` stay as they are."""
    tree = ast.parse(source)
    skipped = set(_skipped_nodes(tree))
    statements = _map_statements(tree)
    mutants: list[Mutant] = []
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in skipped:
            continue
        for change, apply in _changes(node):
            mutated = copy.deepcopy(tree)
            apply(_nth_node(mutated, number))
            text = ast.unparse(ast.fix_missing_locations(mutated))
            if text != ast.unparse(tree):
                function, lines = statements.get(id(node), ("", range(0)))
                mutants.append(Mutant(_line_of(node), change, text, function, lines))
    return sorted(mutants, key=lambda mutant: (mutant.line, mutant.change))


def _map_statements(tree: ast.Module) -> dict[int, tuple[str, range]]:
    """The function and the lines of the innermost statement that each node is in; what only an import reaches has no lines."""
    places: dict[int, tuple[str, range]] = {}

    def visit(node: ast.AST, function: str, lines: range, *, is_at_import: bool) -> None:
        if isinstance(node, FUNCTIONS):  # a default value matters to all of the function
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            is_at_import = False
        elif isinstance(node, ast.stmt) and not is_at_import:
            body = getattr(node, "body", None)  # of a compound statement only its head belongs to it
            lines = range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)
        places[id(node)] = function, lines
        if isinstance(node, ast.ClassDef | FUNCTIONS):
            function = f"{function}.{node.name}".lstrip(".")
        for child in ast.iter_child_nodes(node):
            visit(child, function, lines, is_at_import=is_at_import)

    visit(tree, "", range(0), is_at_import=True)
    return places


def _line_of(node: ast.AST) -> int:
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def _nth_node(tree: ast.AST, number: int) -> ast.AST:
    return next(node for at, node in enumerate(ast.walk(tree)) if at == number)


def _skipped_nodes(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from map(id, ast.walk(node))
        for name in ("annotation", "returns"):
            if annotation := getattr(node, name, None):
                yield from map(id, ast.walk(annotation))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from map(id, ast.walk(node))


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    """What can be changed at a node, each as words and as a function that does it."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]
            yield f"{type(operator).__name__} -> {other.__name__}", _setter("ops", other(), at)
    elif isinstance(node, ast.BoolOp):
        other_bool = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} -> {other_bool.__name__}", _setter("op", other_bool())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        other_op = OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__} -> {other_op.__name__}", _setter("op", other_op())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not x -> x", _drop_not
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} -> {not node.value}", _setter("value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value} -> {node.value + 1}", _setter("value", node.value + 1)
        yield f"{node.value} -> {node.value - 1}", _setter("value", node.value - 1)
    elif isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
        yield "return None", _setter("value", None)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "negated condition", _negate
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter dropped", _setter("ifs", [])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "call dropped", _setter("value", ast.Constant(None))
    elif isinstance(node, ast.Break):
        yield "break -> continue", _to_continue


def _setter(field: str, value: object, at: int | None = None) -> Callable[[ast.AST], None]:
    def apply(node: ast.AST) -> None:
        if at is None:
            setattr(node, field, value)
        else:
            getattr(node, field)[at] = value

    return apply


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _drop_not(node: ast.AST) -> None:
    """`not x` becomes `bool(x)`: the operator is another, its place in the tree the same."""
    assert isinstance(node, ast.UnaryOp)
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _negate(node: ast.AST) -> None:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    node.test = ast.UnaryOp(ast.Not(), node.test)


def _to_continue(node: ast.AST) -> None:
    node.__class__ = ast.Continue


# --- running the tests of a core over a mutant


class MutantLoader(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """Loads one module from a text instead of its file."""

    def __init__(self, core: Core, source: str) -> None:
        self._core = core
        self._code = compile(source, str(ROOT / core.path), "exec")

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._core.module:
            return None
        return importlib.util.spec_from_file_location(name, ROOT / self._core.path, loader=self)

    def exec_module(self, module: object) -> None:
        exec(self._code, module.__dict__)


class CoreNeededError(BaseException):
    """An import needs the core; no `except` of the importing module may swallow this."""


class CoreBlocker(importlib.abc.MetaPathFinder):
    """Keeps the core from being imported, and with it every module that needs it."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name == self._core.module:
            raise CoreNeededError
        return None


def preload(core: Core) -> None:
    """Import once, before the forks, what the core's tests need and what does not need the core; a fork imports the rest."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as names:
        pid = os.fork()
        if pid == 0:
            import pytest

            with contextlib.suppress(BaseException), Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
                pytest.main(["-q", "--collect-only", "-p", "no:xdist", "--assert=plain", *core.tests])
            Path(names.name).write_text("\n".join(sys.modules), encoding="utf-8")
            os._exit(0)
        os.waitpid(pid, 0)
        modules = names.read().split()
    _forget_modules(lambda name: name.partition(".")[0] == "nexi")
    sys.meta_path.insert(0, CoreBlocker(core))
    for name in modules:
        if not name.startswith(("_", "tests", "rig", "conftest")):
            with contextlib.suppress(Exception, CoreNeededError):
                importlib.import_module(name)
    sys.meta_path.pop(0)
    # a package that needs the core is imported again, with all its modules
    _forget_modules(lambda name: name.startswith("nexi.") and name.rpartition(".")[0] not in sys.modules)


def _forget_modules(is_stale: Callable[[str], bool]) -> None:
    while names := [name for name in sys.modules if is_stale(name)]:
        for name in names:
            del sys.modules[name]


def run_mutant(core: Core, source: str, timeout_s: int, tests: Sequence[str] = ()) -> int:
    """How the core's tests, or these of them, end over this source: 0 if they pass, else an exit code or a signal, negated."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(timeout_s)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        sys.meta_path.insert(0, MutantLoader(core, source))
        _run_tests(["-x", *(tests or (*core.tests, *core.options))])
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _run_tests(arguments: Sequence[str], plugin: object = None) -> None:
    """In the forked process: never returns."""
    import pytest
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)  # a mutant is killed by the first failure, however large the example
    settings.register_profile("mutation", max_examples=50, database=None, deadline=None, phases=phases)
    settings.load_profile("mutation")
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        options = [
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "--assert=plain",
            "--hypothesis-seed=7",
        ]
        code = int(pytest.main([*options, "-m", "not slow", *arguments], plugins=[plugin] if plugin else None))
    except BaseException:
        code = 99
    os._exit(code)


class LineTracer:
    """A plugin of pytest: which test reaches which line of a module."""

    def __init__(self, path: Path, output: Path) -> None:
        import coverage

        self._path = path
        self._output = output
        self._coverage = coverage.Coverage(data_file=None, include=[str(path)], config_file=False)
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        contexts = self._coverage.get_data().contexts_by_lineno(str(self._path))
        self._output.write_text(json.dumps(contexts), encoding="utf-8")


def trace_tests(core: Core) -> dict[int, list[str]]:
    """The tests that reach each line of a core, in the order in which they ran; a line read at import has none."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "lines.json"
        pid = os.fork()
        if pid == 0:
            _run_tests([*core.tests, *core.options], LineTracer(ROOT / core.path, output))
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"the tests of {core.name} fail without any change: {' '.join(core.tests)}")
        contexts = json.loads(output.read_text(encoding="utf-8"))
    return {int(line): [name for name in names if name] for line, names in contexts.items()}


@contextlib.contextmanager
def share_postgres() -> Iterator[None]:
    """One server for all forks: it takes seconds to start, and one that a hanging fork had started would go on for ever."""
    import psycopg

    from rig import postgres

    with postgres.running_postgres(is_durable=False) as server:

        def create_database(name: str, template: str = "template1") -> str:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"create database {name} template {template}")
            return server.url_of(name)

        @contextlib.contextmanager
        def database_of_fork(**_: object) -> Iterator[SimpleNamespace]:
            url = create_database(f"fork_{os.getpid()}", "migrated")
            yield SimpleNamespace(url=url, url_of=server.url_of, has_distances=server.has_distances)

        url = create_database("migrated")
        pid = os.fork()
        if pid == 0:
            from nexi.team.postgres.database import Database

            Database(url).open().close()
            os._exit(0)
        os.waitpid(pid, 0)
        with mock.patch.object(postgres, "running_postgres", database_of_fork):
            yield


def run_core(core: Core, mutants: Sequence[Mutant], jobs: int) -> Result:
    with share_postgres() if core.needs_postgres else contextlib.nullcontext():
        return _run_core(core, mutants, jobs)


def _run_core(core: Core, mutants: Sequence[Mutant], jobs: int) -> Result:
    preload(core)
    started = time.monotonic()
    tests = trace_tests(core)
    timeout_s = max(MIN_TIMEOUT_S, int(TIMEOUT_FACTOR * (time.monotonic() - started)))

    def run(mutant: Mutant) -> int:
        names = dict.fromkeys(name for line in mutant.lines for name in tests.get(line, ()))
        if mutant.lines and not names:
            return 0  # no test reaches it
        return run_mutant(core, mutant.source, timeout_s, list(names))

    with ThreadPoolExecutor(jobs) as pool:  # each thread forks a process and waits for it
        codes = list(pool.map(run, mutants))
    survivors = tuple(mutant for mutant, code in zip(mutants, codes, strict=True) if code == 0)
    hanging = tuple(mutant for mutant, code in zip(mutants, codes, strict=True) if code == -signal.SIGALRM)
    mutants_of = Counter(mutant.function for mutant in mutants)
    return Result(core, len(mutants) - len(survivors), survivors, mutants_of, hanging=hanging)


def pick_mutants(mutants: Sequence[Mutant], sample: int) -> Sequence[Mutant]:
    if not sample or sample >= len(mutants):
        return mutants
    chosen = random.Random(SEED).sample(range(len(mutants)), sample)
    return [mutants[at] for at in sorted(chosen)]


def pick_saved_survivors(core: Core, mutants: Sequence[Mutant], table: Path = TABLE) -> list[Mutant]:
    """The mutants of a core that the table lists as survivors. The module must not have changed since it was measured."""
    saved = table.read_text(encoding="utf-8")
    section = next((part for part in saved.split("\n## ")[1:] if part.split()[0] == core.name), "")
    listed = Counter(line.removeprefix("- ") for line in section.splitlines() if line.startswith("- "))
    if f"| {core.name} | `{core.path}` | {len(mutants)} |" not in saved:
        raise SystemExit(f"{core.name}: the table is of another version of the module; run all its mutants")
    lines = (ROOT / core.path).read_text(encoding="utf-8").splitlines()
    return [mutant for mutant in mutants if render_survivor(mutant, lines) in listed]


HEAD = f"""# Mutants that the tests notice

Written by `make mutate SAVE=1` (see `rig/mutate.py`). A mutant is the module with one change: another comparison or operator,
`and` for `or`, a negated condition, a number one larger or smaller, a call or a filter dropped, `return None`. It is
killed when one of the module's tests that reach its line fails. At least {MIN_KILLED:.0%} must be killed in each module and
{MIN_KILLED_OF_FUNCTION:.0%} in each function; where money, private text or data is kept, all but those that
`tests/mutation-equivalents.txt` names, with the reason why no test can notice them.

Mutants that cannot change what the module does count as survivors too; they are in the list below with the others.
"""


def render_row(result: Result) -> str:
    sample = f" of a sample; there are {result.sampled_from}" if result.sampled_from else ""
    return f"| {result.core.name} | `{result.core.path}` | {result.total} | {result.killed} | {result.share:.0%}{sample} |"


def render_survivor(mutant: Mutant, lines: Sequence[str]) -> str:
    return f"{mutant.change}: `{lines[mutant.line - 1].strip()}`"


def render_survivors(result: Result) -> str:
    """The survivors of a core, each with its line, so that a reader can judge them."""
    lines = (ROOT / result.core.path).read_text(encoding="utf-8").splitlines()
    each = [f"- {render_survivor(mutant, lines)}" for mutant in result.survivors]
    return "\n".join([f"## {result.core.name}", "", *(each or ["none"])])


def save_results(results: Sequence[Result], table: Path = TABLE) -> None:
    """Write the rows and survivors of these cores; those of other cores stay as they were measured."""
    saved = table.read_text(encoding="utf-8") if table.exists() else ""
    rows = {line.split()[1]: line for line in saved.splitlines() if line.count("|") == 6 and "`" in line}
    parts = {part.split()[0]: f"## {part}".strip() for part in saved.split("\n## ")[1:]}
    rows |= {result.core.name: render_row(result) for result in results}
    parts |= {result.core.name: render_survivors(result) for result in results}
    names = [core.name for core in CORES if core.name in rows]
    lines = ["| core | module | mutants | killed | share |", "|---|---|---|---|---|", *(rows[name] for name in names)]
    table.write_text("\n".join([HEAD, *lines, "", "\n\n".join(parts[name] for name in names), ""]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=[core.name for core in CORES], help="one core; repeatable")
    parser.add_argument("--sample", type=int, default=0, help="a seeded sample of each core's mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--save", action="store_true", help="write these cores into tests/mutation.md")
    parser.add_argument("--survivors", action="store_true", help="only the mutants that tests/mutation.md lists as survivors")
    parser.add_argument("--show", action="store_true", help="list the mutants that survived")
    options = parser.parse_args()
    os.chdir(ROOT)
    import hypothesis.strategies  # noqa: F401  loaded once, before the forks
    import pytest  # noqa: F401

    results = []
    for core in [core for core in CORES if not options.only or core.name in options.only]:
        started = time.monotonic()
        mutants = make_mutants((ROOT / core.path).read_text(encoding="utf-8"))
        if options.survivors:
            result = run_core(core, pick_saved_survivors(core, mutants), options.jobs)
            killed = len(mutants) - len(result.survivors)
            result = replace(result, killed=killed, mutants_of=Counter(mutant.function for mutant in mutants))
        else:
            result = run_core(core, pick_mutants(mutants, options.sample), options.jobs)
            result = replace(result, sampled_from=len(mutants) if result.total < len(mutants) else 0)
        results.append(result)
        seconds = time.monotonic() - started
        print(f"{core.name}: {result.killed} of {result.total} killed ({result.share:.0%}), {seconds:.0f} s", flush=True)
        for mutant in result.survivors if options.show else ():
            print(f"  {core.path}:{mutant.line}: {mutant.change}: {mutant.function}")
        for mutant in result.hanging if options.show else ():
            print(f"  {core.path}:{mutant.line}: {mutant.change}: {mutant.function}: took more than its time")
        if options.save:
            save_results([result])
    faults = [f"{result.core.name}: {fault}" for result in results for fault in result.faults]
    print("\n".join(faults))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
