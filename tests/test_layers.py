"""The folder is the architecture: every import points down, and each library has one home."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "nexi"

WORDS, PURE, ENGINE, ADAPTER, ASSEMBLY, DOOR = "words", "pure", "engine", "adapter", "assembly", "door"

LAYER = {
    **dict.fromkeys(["__init__", "values", "types", "errors", "notices", "events", "budget"], WORDS),
    **dict.fromkeys(
        [
            "ports",
            "config",
            "prompts",
            "urls",
            "extract",
            "formats",
            "runs.__init__",
            "runs.log_format",
            "answers",
            "structured",
            "text",
            "net",
            "token_counter",
            "files",
            "install",
            "tasks",
            "focus",
            "spaces",
            "routing",
            "apis.__init__",
            "apis.search.__init__",
            "team.__init__",
            "team.limits",
            "checking.alignment",
            "checking.conflicts",
            "checking.evidence",
            "checking.lexicon",
            "checking.links",
            "checking.origins",
            "checking.pages",
            "checking.rules",
            "checking.sentences",
            "checking.values",
            "tables.cells",
            "tables.picking",
        ],
        PURE,
    ),
    **dict.fromkeys(
        [
            "agent",
            "tools",
            "compaction",
            "model",
            "reader",
            "searcher",
            "checking",
            "research",
            "knowledge",
            "apis.search",
            "tables",
            "runs.session",
            "runs.recording",
        ],
        ENGINE,
    ),
    **dict.fromkeys(["backends", "fetchers", "llm", "history", "pair_models", "plugins", "stores", "team.postgres"], ADAPTER),
    **dict.fromkeys(
        [
            "runs.log",
            "runs.directory",
            "net.suspensions",
        ],
        ADAPTER,
    ),
    **dict.fromkeys(["app", "apis.search.assembly", "team.assembly", "team.worker"], ASSEMBLY),
    **dict.fromkeys(
        [
            "search",
            "sync",
            "citations",
            "compat",
            "cli",
            "bench",
            "output",
            "doctor",
            "exports",
            "mcp",
            "mcp_server_cli",
            "__main__",
            "testing",
            "web",
            "apis.contracts",
            "apis.openai",
            "apis.openwebui",
            "apis.search.routes",
            "apis.searxng",
            "apis.tavily",
            "team.web",
            "team.cli",
        ],
        DOOR,
    ),
}
MAY_IMPORT = {
    WORDS: {WORDS},
    PURE: {WORDS, PURE},
    ENGINE: {WORDS, PURE, ENGINE},
    ADAPTER: {WORDS, PURE, ADAPTER},
    ASSEMBLY: {WORDS, PURE, ENGINE, ADAPTER, ASSEMBLY},
    DOOR: {WORDS, PURE, ENGINE, ADAPTER, ASSEMBLY, DOOR},
}
MIXED = {
    name.rpartition(".")[0] for name in LAYER if "." in name
}  # folders of several layers, whose `__init__` imports nothing
# The seeds' public faces that must reach upwards, each inside the one function that needs it.
DELEGATIONS = {
    ("tools", "compat"),
}
HOMES = {
    "starlette": {"web", "team.web", "apis.openai", "apis.openwebui", "apis.search.routes", "apis.searxng", "apis.tavily"},
    "uvicorn": {"web", "team.web", "mcp_server_cli"},
    "markdown_it": {"answers", "cli", "web", "output"},
    "mcp": {"mcp"},
    "mcp_types": {"mcp"},
    "pydantic": {"mcp"},
    "yaml": {"apis.search.assembly"},
    "numpy": {"stores", "pair_models"},
    "onnxruntime": {"pair_models", "stores"},
    "tokenizers": {"pair_models", "stores"},
    "qdrant_client": {"stores"},
    "fastembed": {"stores"},
    "model2vec": {"stores"},
    "httpx2": {"backends", "fetchers", "llm", "pair_models", "stores"},
    "httpcore2": {"fetchers", "backends", "llm"},
    "psycopg": {"team.postgres"},
    "psycopg_pool": {"team.postgres"},
    "authlib": {"team.web"},
    "opentelemetry": {"app"},
    "h2": {"fetchers"},
    "ada_url": {"urls"},
    "click": {"cli", "team.cli"},
    "rich": {"cli", "output"},
    "prompt_toolkit": {"cli"},
    "Stemmer": {"text"},
    "splintr": {"token_counter"},
    "tiktoken": {"token_counter"},
    "protego": {"fetchers"},
    "ddgs": {"backends"},
    "html_to_markdown": {"extract"},
    "resiliparse": {"extract"},
}


@cache
def imports_of(path: Path) -> list[tuple[str, bool]]:
    """(module, inside a function) for every import of a file; imports for type checking only do not count."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.module:
                found.append((child.module, inside))
                if child.module.split(".")[0] == "nexi":
                    named = ((f"{child.module}.{alias.name}", inside) for alias in child.names)
                    found.extend(row for row in named if is_module(row[0]))
            visit(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


NOT_DOORS = ("testing", "compat")  # fakes of the ports, and the functions of the first version over today's code


def test_doors_reach_engines_and_adapters_through_the_app() -> None:
    found = set()
    for path in sources():
        here = noun_of(path)
        if LAYER[here] != DOOR or here in NOT_DOORS:
            continue
        for module, _ in imports_of(path):
            parts = module.split(".")
            if parts[0] != "nexi" or len(parts) == 1 or ".".join(parts[1:]) in MIXED:
                continue
            there = noun_in(parts[1:])
            is_own = here.split(".")[0] == there.split(".")[0]  # a product's engine, which the app does not know
            if LAYER[there] in (ENGINE, ADAPTER) and not is_own:
                found.add((here, there))
    assert found == set()


def test_a_folder_of_several_layers_imports_nothing_by_itself() -> None:
    modules = [module for name in sorted(MIXED) for module, _ in imports_of(ROOT.joinpath(*name.split("."), "__init__.py"))]
    assert [module for module in modules if module.startswith("nexi")] == []


def list_entries(folder: str) -> set[tuple[str, str]]:
    """(file, module) for every import of a folder's modules from outside of it."""
    return {
        (name_of(path), module)
        for path in sources()
        for module, _ in imports_of(path)
        if noun_of(path).split(".")[0] != folder and f"{module}.".startswith(f"nexi.{folder}.")
    }


def test_the_rest_enters_the_team_server_by_its_one_door() -> None:
    assert list_entries("team") == {("web/server.py", "nexi.team")}


def test_the_rest_enters_the_interfaces_of_others_by_their_one_door_and_the_search_api_by_its_own() -> None:
    assert list_entries("apis") == {
        ("web/__init__.py", "nexi.apis"),
        ("web/server.py", "nexi.apis"),
        ("app/assembly.py", "nexi.apis.search"),
    }


def test_the_rest_enters_the_mcp_server_by_its_one_door() -> None:
    assert list_entries("mcp") == {(path, "nexi.mcp") for path in ("cli/mcp.py", "mcp_server_cli.py", "web/__init__.py")}


def test_the_rest_enters_the_formats_by_their_one_door() -> None:
    insides = {entry for entry in list_entries("formats") if entry[1] != "nexi.formats"}
    assert insides == {("fetchers/apart.py", "nexi.formats.worker")}  # the program that it starts


def test_reading_pages_of_the_web_knows_no_format_of_documents() -> None:
    assert [entry for entry in list_entries("formats") if entry[0].startswith("extract/")] == []


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").exists()


def noun_of(path: Path) -> str:
    """The name in LAYER that a file stands under: its own, where its folder is of several layers, or its folder's."""
    return noun_in(path.relative_to(ROOT).with_suffix("").parts)


def noun_in(parts: Sequence[str]) -> str:
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in LAYER), ".".join(parts[:2]))


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_every_module_has_a_layer() -> None:
    assert sorted({noun_of(p) for p in sources()} - set(LAYER)) == []


def test_every_import_points_down() -> None:
    culprits = []
    for path in sources():
        here = noun_of(path)
        for module, inside in imports_of(path):
            parts = module.split(".")
            if parts[0] != "nexi" or len(parts) == 1:
                continue
            if ".".join(parts[1:]) in MIXED:
                continue
            there = noun_in(parts[1:])
            allowed = here == there or LAYER[there] in MAY_IMPORT[LAYER[here]] or (inside and (here, there) in DELEGATIONS)
            family = LAYER[here] == LAYER[there] == ADAPTER and here.split(".")[0] != there.split(".")[0]
            if not allowed or family:
                culprits.append(f"{path.relative_to(ROOT)} imports nexi.{there}")
    assert culprits == []


@pytest.mark.parametrize("package", ["agent", "research"])
def test_the_modules_of_an_engine_import_each_other_in_one_direction_even_for_types(package: str) -> None:
    graph = {}
    for path in (ROOT / package).glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        graph[path.stem] = {m.rpartition(".")[2] for m in modules if m.startswith(f"nexi.{package}.")}
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(graph)  # raises CycleError


def test_every_library_has_one_home() -> None:
    culprits = []
    for path in sources():
        for module, _ in imports_of(path):
            homes = HOMES.get(module.split(".")[0])
            here = noun_of(path)
            if homes is not None and homes.isdisjoint((here, here.split(".")[0])):
                culprits.append(f"{path.relative_to(ROOT)} imports {module}")
    assert culprits == []


def test_only_config_reads_the_environment() -> None:
    """Where tesseract finds its languages is a word to tesseract, read in the process that starts it."""
    culprits = [
        str(path.relative_to(ROOT))
        for path in sources()
        if noun_of(path) != "config" and any(w in path.read_text(encoding="utf-8") for w in ("os.environ", "os.getenv"))
    ]
    assert culprits == ["formats/ocr.py", "install.py"]  # the second switches off what libraries would report


CLIENTS = ("nexi.llm.openai.client", "nexi.llm.embeddings", "nexi.stores.embedders")
CLIENT_HOMES = ("llm/", "stores/", "app/factory.py")
GATE = ("app/gate.py", "app/factory.py")
CLIENT_METHODS = ("llm", "llm_at", "embedder")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_only_the_factory_builds_clients_of_models_and_embedders() -> None:
    culprits = [
        f"{name_of(path)} imports {module}"
        for path in sources()
        for module, _ in imports_of(path)
        if module in CLIENTS and not name_of(path).startswith(CLIENT_HOMES)
    ]
    assert culprits == ["app/gate.py imports nexi.llm.embeddings"]  # the size of a batch


def test_only_the_gate_asks_the_factory_for_a_model_or_an_embedder() -> None:
    culprits = []
    uses_one = re.compile(rf"\.\s*(?:{'|'.join(CLIENT_METHODS)})\b")
    for path in sources():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if uses_one.search(text) else ():
            if isinstance(node, ast.Attribute) and node.attr in CLIENT_METHODS and name_of(path) not in GATE:
                holder = ast.unparse(node.value)
                if holder.rpartition(".")[2].strip("_") in ("ports", "nexi", "factory", "knowledge()"):
                    culprits.append(f"{name_of(path)} uses {holder}.{node.attr}")
    assert culprits == ["apis/search/service.py uses ports.llm"] * 2  # its own ports, which the gate has filled
