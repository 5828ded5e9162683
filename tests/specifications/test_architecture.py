"""000 and 001: the loop, its tools and the command, where no other test holds a requirement."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nexi import __main__ as entry
from nexi import citations, cli, config
from nexi.backends.jina import Jina
from nexi.config import Config
from nexi.errors import BackendError, LLMError
from nexi.events import ContextCompacted
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.jina import JinaFetcher
from nexi.history import add_history_entry, create_entry
from nexi.runs.session import Session
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM, answering, calling, reading, searching
from nexi.types import FetchLimits, Hit, Message, Page, Query, Reply, StopReason
from tests.cli.command import pipe
from tests.scenarios.test_search import tool_texts
from tests.scenarios.world import MARS, MOON, PAGES, QUESTION, World

Make = Callable[..., Config]
ANSWER = "It has no air [1]."


class CountingWeb(FakeWeb):
    """Counts how many searches and pages are under way at once; each waits until nothing more begins."""

    now = most = 0

    async def _wait(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(30):
            await asyncio.sleep(0)
        self.now -= 1

    async def search(self, query: Query) -> list[Hit]:
        await self._wait()
        return await super().search(query)

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        await self._wait()
        return await super().fetch(url, limits)


class RecordingLLM(ScriptedLLM):
    """Remembers how many tokens each reply may have."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(*steps)
        self.max_tokens: list[int] = []

    async def complete(self, *args: Any, **options: Any) -> Reply:
        self.max_tokens.append(options["max_tokens"])
        return await super().complete(*args, **options)


# the loop


async def test_a_conversation_begins_with_the_system_prompt_and_the_question(make_config: Make) -> None:
    world = World(make_config(), searching("moon"), reading(MOON), answering(ANSWER))
    await world.ask()
    prompt = config.get_system_prompt("m", today=world.clock.now().date().isoformat(), config=make_config())
    assert world.llm.requests[0] == (Message("system", prompt), Message("user", QUESTION))


async def test_five_queries_of_one_call_are_searched_at_once(make_config: Make) -> None:
    web = CountingWeb(PAGES)
    queries = [f"moon {n}" for n in range(5)]
    world = World(make_config(prefetch=False), searching(*queries), reading(MOON), answering(ANSWER), web=web)
    await world.ask()
    assert (web.most, sorted(web.queries)) == (5, queries)


async def test_eight_pages_of_one_call_are_fetched_at_once(make_config: Make) -> None:
    pages = {f"https://moon.example/{n}": f"Moon page {n}. It has no air." for n in range(8)}
    web = CountingWeb(pages)
    world = World(make_config(prefetch=False), reading(*pages), answering(ANSWER), web=web)
    await world.ask(" ".join(pages))
    assert (web.most, sorted(web.fetched)) == (8, list(pages))


async def test_a_page_is_fetched_once_in_a_search(make_config: Make) -> None:
    world = World(make_config(), searching("moon", "mars"), reading(MOON), reading(MOON, MARS), answering(ANSWER))
    await world.ask()
    assert sorted(url for url in world.web.fetched if url in (MOON, MARS)) == [MARS, MOON]
    assert [page["url"] for page in tool_texts(world, 3)[2]["pages"]] == [MOON, MARS]  # type: ignore[attr-defined]


async def test_one_query_that_fails_leaves_the_results_of_the_others(make_config: Make) -> None:
    class HalfBroken(FakeWeb):
        async def search(self, query: Query) -> list[Hit]:
            if query.text == "mars":
                raise BackendError("it is closed", code="connect")
            return await super().search(query)

    world = World(
        make_config(prefetch=False), searching("mars", "moon"), reading(MOON), answering(ANSWER), web=HalfBroken(PAGES)
    )
    result = await world.ask()
    failed, found = tool_texts(world, 1)[0]["searches"]  # type: ignore[misc]
    assert (failed["query"], failed["results"], "it is closed" in failed["error"]) == ("mars", [], True)
    assert [hit["url"] for hit in found["results"]] == [MOON]
    assert result.answer.text == ANSWER


async def test_the_date_of_a_result_is_told_where_it_is_known(make_config: Make) -> None:
    class Dated(FakeWeb):
        async def search(self, query: Query) -> list[Hit]:
            return [Hit(MOON, "Moon", "far", "2024-01-01"), Hit(MARS, "Mars", "red")]

    world = World(make_config(prefetch=False), searching("moon"), reading(MOON), answering(ANSWER), web=Dated(PAGES))
    await world.ask()
    (search,) = tool_texts(world, 1)[0]["searches"]  # type: ignore[misc]
    assert search["results"] == [
        {"title": "Moon", "url": MOON, "description": "far", "published_time": "2024-01-01"},
        {"title": "Mars", "url": MARS, "description": "red"},
    ]


@pytest.mark.parametrize(("count", "is_taken"), [(0, False), (1, True), (8, True), (9, False)])
async def test_web_get_takes_one_to_eight_addresses(make_config: Make, count: int, is_taken: bool) -> None:
    urls = [f"https://moon.example/{n}" for n in range(count)]
    web = FakeWeb({MOON: PAGES[MOON], **dict.fromkeys(urls, "Moon. It has no air.")})
    get = calling("web_get", urls=urls, instructions="the air", get_full=True, use_chunks=False)
    world = World(make_config(prefetch=False), get, reading(MOON), answering(ANSWER), web=web)
    await world.ask(" ".join([MOON, *urls]))
    assert ("error" not in tool_texts(world, 1)[0], len(web.fetched)) == (is_taken, count + 1 if is_taken else 1)


async def test_a_summary_of_a_page_is_asked_for_with_2000_tokens(make_config: Make) -> None:
    extractor = RecordingLLM(Reply("No air."))
    get = calling("web_get", urls=[MOON], instructions="the air")
    world = World(make_config(prefetch=False), get, answering(ANSWER), extract=extractor)
    await world.ask(f"What does {MOON} say?")
    assert extractor.max_tokens == [2000]


async def test_the_length_of_an_answer_reaches_the_model(make_config: Make) -> None:
    llm = RecordingLLM(searching("moon"), reading(MOON), answering(ANSWER))
    await World(make_config(), answer=llm).ask(max_output_tokens=321)
    assert llm.max_tokens == [321, 321, 321]


# the window


def wordy_world(make_config: Make, summary: Any) -> tuple[World, list[str]]:
    """Six long pages in a small window; a request for a summary is answered with this."""
    urls = [f"https://moon.example/{n}" for n in range(6)]
    web = FakeWeb({url: f"Moon page {n}. " + "The Moon is far away from here, they say. " * 200 for n, url in enumerate(urls)})

    def read_next(messages: Sequence[Message]) -> Reply:
        if "PRESERVE EXACTLY" in messages[-1].content:
            if isinstance(summary, Exception):
                raise summary
            return Reply(summary)
        numbered = len(world.session.book.sources)
        return reading(urls[numbered]) if numbered < 6 else answering("The Moon is far away [1].")

    settings = make_config(max_context=12_000, max_output_tokens=500, preserve_last_n_messages=1, prefetch=False)
    world = World(settings, *[read_next] * 30, web=web)
    world.session = Session()
    return world, urls


async def test_a_conversation_that_cannot_be_made_to_fit_ends_in_an_answer_with_a_warning(make_config: Make) -> None:
    world, urls = wordy_world(make_config, LLMError("no summary", code="server"))
    result = await world.ask(" ".join(urls), session=world.session)
    assert result.answer.stop is StopReason.CONTEXT_LIMIT
    assert "The Moon is far away" in result.answer.text
    assert any("window" in warning for warning in result.answer.warnings)


async def test_a_compaction_that_fails_leaves_the_conversation_as_it_was(make_config: Make) -> None:
    world, urls = wordy_world(make_config, LLMError("no summary", code="server"))
    await world.ask(" ".join(urls), session=world.session)
    compacted = [fact for fact in world.facts if isinstance(fact, ContextCompacted)]
    assert compacted
    assert [(fact.ok, fact.tokens_after == fact.tokens_before) for fact in compacted] == [(False, True)] * len(compacted)


# Jina


def test_jina_is_asked_at_the_address_of_the_specification() -> None:
    request = Jina("key").request(Query("bm25 & more"))
    assert (request.url, dict(request.params)["q"]) == ("https://s.jina.ai/", "bm25 & more")
    assert request.headers["Authorization"] == "Bearer key"


async def test_the_reader_is_asked_with_the_headers_of_the_specification() -> None:
    heads: list[list[str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n"))
        body = b"Title: Moon\n\nMarkdown Content:\nFar.\n"
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    fetcher = JinaFetcher(guard=AddressGuard(), clock=FakeClock(), base_url=base, resolve=public, api_key="Key")
    await fetcher.fetch("http://moon.test/facts", FetchLimits())
    await fetcher.aclose()
    server.close()
    assert heads[0][0] == "get /http://moon.test/facts http/1.1"
    assert {"x-retain-images: none", "x-retain-links: gpt-oss", "authorization: bearer key"} <= set(heads[0])


# settings


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("base_url", value) for value in ("ftp://a.example", "a.example", 7)),
        *((name, value) for name in ("model", "tokenizer_encoding") for value in ("", 7)),
        *(("default_effort", value) for value in ("xl", "", 7)),
        *((name, value) for name in ("max_timeout", "max_output_tokens", "max_context") for value in (0, -1, "many")),
        *(("compact_target_words", value) for value in (0, -1, "many")),
        *(("auto_compact_thresh", value) for value in (-0.1, 1.1, "half")),
        *(("preserve_last_n_messages", value) for value in (-1, "all")),
        ("jina_key", 7),
    ],
)
def test_every_rule_of_the_specification_refuses_what_it_forbids(name: str, bad: Any) -> None:
    settings: dict[str, Any] = {**config.DEFAULT_CONFIG}
    assert config.validate_config(settings) == (True, [])
    is_valid, problems = config.validate_config({**settings, name: bad})
    assert (is_valid, len(problems)) == (False, 1)


# the command


def run_command(monkeypatch: pytest.MonkeyPatch, *args: str, stdin: Any = None) -> int:
    monkeypatch.setattr(sys, "stdin", stdin or io.StringIO())
    with pytest.raises(SystemExit) as ended:
        cli.main(list(args))
    return int(ended.value.code or 0)


def test_the_configuration_is_opened_in_the_editor_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/opened\n')
    editor.chmod(0o700)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EDITOR", f"{editor} --wait")
    assert run_command(monkeypatch, "--edit-config") == 0
    path = tmp_path / "home" / "config.json"
    assert (tmp_path / "opened").read_text() == f"--wait {path}\n"
    assert json.loads(path.read_text())["default_effort"] == "m"


def test_on_windows_the_output_is_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="cp1252") for _ in range(2)]
    monkeypatch.setattr(cli, "main", lambda **_: [print("月", file=stream, flush=True) for stream in streams])
    with monkeypatch.context() as patched:
        patched.setattr(sys, "platform", "win32")
        patched.setattr(sys, "stdout", streams[0])
        patched.setattr(sys, "stderr", streams[1])
        patched.setattr(entry.gc, "set_threshold", lambda _: None)
        entry.main()
    assert [stream.buffer.getvalue().strip().decode() for stream in streams] == ["月", "月"]  # type: ignore[attr-defined]


def test_an_old_answer_is_shown_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    entries = [create_entry(f"question {n}", f"answer {n}", [], "m", 1, 1.0, 5) for n in range(2)]
    for kept in entries:
        add_history_entry(kept, tmp_path / "history.jsonl")
    assert run_command(monkeypatch, "--show", entries[0].id) == 0
    shown = capsys.readouterr().out
    assert ("answer 0" in shown, "answer 1" in shown) == (True, False)


def test_the_sources_of_an_old_answer_are_numbered_as_its_citations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    kept = create_entry("q", "Far [1], and red [2].", [MOON, MARS], "m", 1, 1.0, 5)
    add_history_entry(kept, tmp_path / "history.jsonl")
    for arguments in (("--prev",), ("--show", kept.id)):
        assert run_command(monkeypatch, *arguments) == 0
        shown = capsys.readouterr().out
        assert (f"[1] {MOON}" in shown, f"[2] {MARS}" in shown) == (True, True)


@pytest.mark.parametrize("leave", ["exit", "quit", "q"])
@pytest.mark.parametrize("explain", ["help", "h"])
def test_the_words_of_the_prompt_leave_and_explain_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], leave: str, explain: str
) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    with pipe(f"{explain}\n{leave}\nHow far is the Moon?\n".encode()) as stdin:
        monkeypatch.setattr(stdin, "isatty", lambda: True)
        assert run_command(monkeypatch, "--plain", stdin=stdin) == 0
    captured = capsys.readouterr()
    assert "/sources" in captured.out + captured.err
    assert not (tmp_path / "runs").exists()


def test_the_citations_module_formats_what_an_answer_cites() -> None:
    assert citations.extract_citation_markers("Far [1], and red [2].") == {1, 2}
    text = citations.format_citations_section({1: MOON, 2: MARS}, {MOON: "Moon"})
    assert (f"[1] Moon - {MOON}" in text, f"[2] {MARS}" in text) == (True, True)
