"""Plug-ins work behind the ports: the seeds', objects, files and installed packages; their faults are named failures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.app.components import list_extra_specs
from nexi.app.plugins import as_backend, as_fetcher
from nexi.config import Config
from nexi.doctor import _check_plugins
from nexi.errors import BackendError, ConfigError, FetchError
from nexi.plugins import FetchPlugin, SearchPlugin
from nexi.research.researcher import build_specs
from nexi.testing import FakeWeb, ScriptedLLM, answering, calling, reading, searching
from nexi.tools import ContentFetcher, SearchBackend
from nexi.types import FetchLimits, Hit, Page, Query
from tests.raising import has_code

URL = "https://a.example/x"


class Search:
    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
        results = [{"title": "A", "url": URL, "description": "about", "published_time": "2024-01-01"}]
        return {"searches": [{"query": queries[0], "results": results}]}


class Fetch:
    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
        return {"pages": [{"url": urls[0], "content": f"text for {api_key}"}]}


class Broken:
    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
        raise RuntimeError("boom")

    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
        return {"pages": [{"url": urls[0], "content": "", "error": "403"}]}


def test_the_seeds_protocols_recognise_their_plugins() -> None:
    assert isinstance(Search(), SearchBackend)
    assert isinstance(Fetch(), ContentFetcher)


async def test_a_search_plugin_becomes_a_backend() -> None:
    assert await SearchPlugin(Search(), name="mine").search(Query("q")) == [Hit(URL, "A", "about", "2024-01-01", "mine")]


async def test_a_fetch_plugin_becomes_a_fetcher() -> None:
    page = await FetchPlugin(Fetch(), name="mine", api_key="k").fetch(URL, FetchLimits())
    assert page == Page(URL, "text for k", fetcher="mine")


async def test_what_a_plugin_raises_is_that_backends_failure() -> None:
    with pytest.raises(BackendError, check=has_code("backend", "boom")):
        await SearchPlugin(Broken()).search(Query("q"))
    with pytest.raises(FetchError, check=has_code("error", "403")):
        await FetchPlugin(Broken()).fetch(URL, FetchLimits())


@pytest.mark.parametrize("answer", [None, [], {}, {"searches": []}, {"searches": [None]}, {"searches": [{"results": [1]}]}])
async def test_a_malformed_plugin_answer_is_empty(answer: Any) -> None:
    class Odd:
        async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
            return answer

    assert await SearchPlugin(Odd()).search(Query("q")) == []


async def test_plugins_given_to_nexi_are_wrapped(make_config: Callable[..., Config]) -> None:
    llm = ScriptedLLM(searching("a"), reading(URL), answering("It is so [1]."))
    async with Nexi(make_config(), llms={"answer": llm, "extract": llm}, backends=[Search()], fetchers=[Fetch()]) as nexi:
        result = await nexi.answer("a?")
    assert [s.url for s in result.answer.sources] == [URL]


# plug-ins of today's signature

GOOD = FakeWeb({URL: "# A page\n\nThe answer is forty-two metres."}, name="good")


class Raising:
    """A plug-in with a fault of its own in every method."""

    name = "faulty"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def search(self, query: Query) -> list[Hit]:
        raise self.error

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        raise self.error


async def test_a_plugin_that_raises_is_a_named_failure_and_the_next_one_answers(make_config: Callable[..., Config]) -> None:
    faulty = Raising(ValueError("boom!"))
    async with Nexi(make_config(model="extractive"), backends=[faulty, GOOD], fetchers=[faulty, GOOD]) as nexi:
        found = await nexi.find("the answer in metres")
        result = await nexi.answer("What is the answer in metres?")
        page = await nexi.fetch(URL)
    assert (found.backend, [hit.url for hit in found.hits]) == ("good", [URL])
    assert [(f.provider, f.code) for f in found.failures] == [("faulty", "plugin")]
    assert "ValueError: boom!" in found.failures[0].message
    assert "forty-two metres" in result.answer.text
    assert page.fetcher == "good"


@pytest.mark.parametrize("error", [KeyError("k"), ZeroDivisionError(), RuntimeError("x"), FetchError("odd")])
async def test_whatever_a_backend_raises_is_a_backend_error(error: Exception) -> None:
    with pytest.raises(BackendError, check=has_code("plugin", type(error).__name__)):
        await as_backend(Raising(error)).search(Query("q"))


async def test_errors_of_the_right_kind_pass_as_they_are() -> None:
    with pytest.raises(BackendError, check=has_code("quota", "spent")):
        await as_backend(Raising(BackendError("spent", code="quota"))).search(Query("q"))
    with pytest.raises(FetchError, check=has_code("timeout", "late")):
        await as_fetcher(Raising(FetchError("late", reason="timeout"))).fetch(URL, FetchLimits())


async def test_plain_functions_dictionaries_and_strings_will_do() -> None:
    class Plain:
        def search(self, query: Query) -> list[dict[str, str]]:
            return [{"url": URL, "title": query.text, "snippet": "about"}]

        def fetch(self, url: str, limits: FetchLimits) -> str:
            return "some text"

    assert await as_backend(Plain()).search(Query("q")) == [Hit(URL, "q", "about", "", "Plain")]
    assert await as_fetcher(Plain()).fetch(URL, FetchLimits(max_chars=4)) == Page(URL, "some", truncated=True, fetcher="Plain")


@pytest.mark.parametrize("answer", [None, 5, "hits", [5], [{}], {"url": URL}])
async def test_answers_that_are_no_hits_are_failures(answer: Any) -> None:
    class Odd:
        async def search(self, query: Query) -> Any:
            return answer

    with pytest.raises(BackendError, check=has_code("plugin", "Odd")):
        await as_backend(Odd()).search(Query("q"))


@pytest.mark.parametrize("answer", [None, 5, "", {"title": "x"}])
async def test_answers_that_are_no_pages_are_failures(answer: Any) -> None:
    class Odd:
        async def fetch(self, url: str, limits: FetchLimits) -> Any:
            return answer

    with pytest.raises(FetchError, check=has_code("error", "Odd")):
        await as_fetcher(Odd()).fetch(URL, FetchLimits())


@pytest.mark.parametrize("wrap", [as_backend, as_fetcher])
def test_an_object_without_the_method_is_refused_at_once(wrap: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigError, check=has_code("config", "object")):
        wrap(object())


# single files and installed packages

NOTES = """
from nexi.types import Hit

def search(query):
    return [Hit("https://a.example/x", "Notes", f"about {query.text}")]

async def fetch(url, limits):
    return {"title": "Notes", "text": "The answer is forty-two metres."}
"""


def install(config: Config, name: str, text: str) -> Path:
    config.plugins_dir.mkdir(exist_ok=True)
    path = config.plugins_dir / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


async def test_a_file_of_the_folder_searches_and_reads_by_its_name(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive", search_backend="notes", content_fetcher="notes")
    install(config, "notes", NOTES)
    async with Nexi(config) as nexi:
        found = await nexi.find("metres")
        result = await nexi.answer("What is the answer in metres?")
        with pytest.raises(FetchError, check=has_code("blocked", "169.254.169.254")):
            await nexi.fetch("http://169.254.169.254/")
    assert (found.backend, found.hits[0].snippet) == ("notes", "about metres")
    assert "forty-two metres" in result.answer.text


@pytest.mark.parametrize("text", ["raise OSError('no disk')", "def search(:", "import sys; sys.exit(3)", "x = 1"])
async def test_a_file_that_cannot_be_used_is_named_before_anything_is_spent(tmp_path: Path, text: str) -> None:
    config = Config(home=tmp_path, model="extractive", search_backend="notes")
    install(config, "notes", text)
    with pytest.raises(ConfigError, check=has_code("config", "notes.py")):
        await Nexi(config).find("x")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
async def test_a_file_that_every_user_may_change_is_not_run(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive", search_backend="notes")
    install(config, "notes", NOTES).chmod(0o666)
    with pytest.raises(ConfigError, check=has_code("config", "chmod o-w")):
        await Nexi(config).find("x")


# tools of the user

ORDERS = """
TOOL = "Look up what customers ordered."

def search(query):
    return [{"url": "https://a.example/x", "title": "Order 7", "snippet": query.text}]

def fetch(url, limits):
    return {"title": "Order 7", "text": "Order 7 is a telescope."}
"""


async def test_a_model_may_call_a_tool_of_the_user_and_cite_what_it_found(tmp_path: Path) -> None:
    config = Config(
        home=tmp_path,
        api_key="k",
        search_backend="wikipedia",
        content_fetcher="orders",
        tools=("orders",),
        verify_judge=False,
    )
    install(config, "orders", ORDERS)
    llm = ScriptedLLM(calling("orders", query="order 7"), reading(URL), answering("Order 7 is a telescope [1]."))
    async with Nexi(config, llms={"answer": llm, "extract": llm}) as nexi:
        result = await nexi.answer("What is order 7?")
    assert (result.answer.text, [source.url for source in result.answer.sources]) == ("Order 7 is a telescope [1].", [URL])
    assert llm.offered[0] == ("orders", "web_search", "web_get", "final_answer")


async def test_a_researcher_has_the_tools_of_the_user_too(tmp_path: Path) -> None:
    config = Config(home=tmp_path, tools=("my-orders",))
    install(config, "my-orders", ORDERS)
    (spec,) = list_extra_specs(config, ["my_orders"])
    assert spec.description == "Look up what customers ordered."
    assert [s.name for s in build_specs([spec])] == ["search", "my_orders", "scrape", "final_answer"]


def test_a_tool_that_asks_others_is_not_offered_to_a_local_question_nor_any_to_a_guest(tmp_path: Path) -> None:
    config = Config(home=tmp_path, tools=("orders", "shelf"))
    install(config, "orders", ORDERS)
    install(config, "shelf", f"{ORDERS}\nlocal = True\n")
    ports = Nexi(config).ports.with_config(config, is_offline=True)
    assert [ports.can_use_extra(name) for name in config.tools] == [False, True]
    assert config.for_guests().tools == ()


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("orders", "def search(query): return []", "TOOL"),
        ("orders", "TOOL = 'x'\ndef fetch(url, limits): return ''", "search(query)"),
        ("orders", "", "orders.py"),
        ("arxiv", ORDERS, "rename the file"),
        ("missing", "", "missing.py does not exist"),
    ],
)
async def test_a_tool_that_cannot_be_used_is_named_before_anything_is_spent(
    tmp_path: Path, name: str, text: str, cause: str
) -> None:
    config = Config(home=tmp_path, api_key="k", search_backend="wikipedia", tools=(name,))
    if name != "missing":
        install(config, name, text)
    llm = ScriptedLLM()
    with pytest.raises(ConfigError, check=has_code("config", cause)):
        await Nexi(config, llms={"answer": llm, "extract": llm}).answer("What is order 7?")
    assert llm.requests == []


async def test_the_built_in_model_calls_no_tool_and_misses_none(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive", search_backend="notes", content_fetcher="notes", tools=("missing",))
    install(config, "notes", NOTES)
    async with Nexi(config) as nexi:
        result = await nexi.answer("What is the answer in metres?")
        async with nexi.research("What is the answer in metres?") as run:
            async for _ in run:
                pass
    assert ["forty-two metres" in one.answer.text for one in (result, run.result())] == [True, True]


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (("grep",), 'tools has "grep", and nexi has a tool of that name: rename the file'),
        (("web-get",), 'tools has "web-get", and nexi has a tool of that name: rename the file'),
        (("../x",), 'tools must have the names of files in the folder plugins, in small letters (got "../x")'),
        ("orders", 'tools must be a list of names (got "orders")'),
    ],
)
def test_the_name_of_a_tool_is_the_name_of_a_file_and_of_no_other_tool(tools: Any, problem: str) -> None:
    with pytest.raises(ConfigError, check=has_code("config", problem)):
        Config(tools=tools)


def entry_points_of(*entries: EntryPoint) -> Callable[..., list[EntryPoint]]:
    def find(group: str, name: str = "") -> list[EntryPoint]:
        return [entry for entry in entries if entry.group == group and name in ("", entry.name)]

    return find


def make_faulty_backend(settings: object, sender: object) -> Raising:
    return Raising(KeyError("no such field"))


def make_nothing(settings: object, sender: object) -> None:
    raise OSError("no licence file")


async def test_a_backend_of_an_installed_package_is_guarded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("theirs", f"{__name__}:make_faulty_backend", "nexi.backends"),
        EntryPoint("unlicensed", f"{__name__}:make_nothing", "nexi.backends"),
        EntryPoint("broken", "no_such_module_here:x", "nexi.backends"),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", entry_points_of(*entries))
    config = Config(home=tmp_path, model="extractive", search_backend=("theirs", "notes"))
    install(config, "notes", NOTES)
    async with Nexi(config) as nexi:
        found = await nexi.find("metres")
    assert ([(f.provider, f.code) for f in found.failures], found.backend) == ([("theirs", "plugin")], "notes")
    for name in ("unlicensed", "broken"):
        with pytest.raises(ConfigError, check=has_code("config", name)):
            await Nexi(config.override(search_backend=name)).find("metres")


async def test_the_doctor_lists_plug_ins_with_their_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("theirs", f"{__name__}:make_faulty_backend", "nexi.backends")
    monkeypatch.setattr("importlib.metadata.entry_points", entry_points_of(entry))
    config = Config(home=tmp_path, model="extractive", search_backend="notes")
    install(config, "notes", NOTES)
    install(config, "broken", "raise OSError('no disk')")
    install(config, "searxng", NOTES)
    listed = {check.name: check for check in await _check_plugins(config)}
    assert {name: check.ok for name, check in listed.items()} == {
        "plug-in broken": False,
        "plug-in notes": True,
        "plug-in searxng": False,
        "plug-in theirs": True,
    }
    assert "search_backend" not in listed["plug-in notes"].message
    assert "search_backend" in listed["plug-in theirs"].message
    assert "no disk" in listed["plug-in broken"].cause
