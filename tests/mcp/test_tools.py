"""Every tool as a client sees it: its description, its results, its words for what goes wrong."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError

from nexi.answers.citations import unlink_citations
from nexi.answers.export_formats import EXPORT_FORMATS
from nexi.app import Nexi, RunOpening
from nexi.errors import FetchError
from nexi.events import RunFailed
from nexi.mcp import create_server
from tests.mcp.world import ANSWER, QUESTION, Gate, config_for, inside, text_of, until

TOOLS = [
    "nexi_search",
    "nexi_find",
    "nexi_fetch",
    "nexi_research",
    "nexi_research_status",
    "nexi_research_result",
    "nexi_research_cancel",
    "nexi_verify",
    "nexi_table",
]
READ_ONLY = {
    "nexi_search",
    "nexi_find",
    "nexi_fetch",
    "nexi_research_status",
    "nexi_research_result",
    "nexi_verify",
    "nexi_table",
}
CLOSED_WORLD = {"nexi_research_status", "nexi_research_result", "nexi_research_cancel"}


async def test_the_tools_are_listed_with_title_hints_and_output_schema(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert [name for name in tools if name in TOOLS] == TOOLS
    assert all(tool.title and tool.description and tool.annotations and tool.output_schema for tool in tools.values())
    assert {n for n in TOOLS if tools[n].annotations.read_only_hint} == READ_ONLY
    assert {n for n in TOOLS if not tools[n].annotations.open_world_hint} == CLOSED_WORLD
    assert [t for t in tools.values() if t.annotations.destructive_hint] == []


async def test_the_search_tool_has_the_parameters_of_the_seed(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        tool = next(t for t in (await client.list_tools()).tools if t.name == "nexi_search")
    schema = tool.input_schema
    assert list(schema["properties"]) == [
        *("query", "effort", "max_iter", "time_target", "max_timeout", "verbose"),
        # beyond the seed
        *("scope", "only_local", "space", "focus", "count", "sites", "excluded_sites", "time_range", "language"),
        *("attachments", "continues", "model", "max_tokens", "max_output_tokens", "strict", "system_prompt", "max_cost"),
    ]
    assert schema["required"] == ["query"]
    assert schema["properties"]["effort"]["default"] == "m"
    assert schema["properties"]["effort"]["enum"] == ["s", "m", "l"]


async def test_an_answer_comes_as_markdown_with_sources_and_as_structured_content(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        tool = next(t for t in (await client.list_tools()).tools if t.name == "nexi_search")
        result = await client.call_tool("nexi_search", {"query": QUESTION, "effort": "s"})
    found = result.structured_content
    jsonschema.validate(found, tool.output_schema)
    lines = text_of(result).splitlines()
    assert lines[:5] == [ANSWER, "", "## Sources", "", f"[1] Moon facts: {web}/moon.test/facts"]
    assert lines[6].startswith("Checked: 1 of 1 sentence found in the cited pages. *")
    assert found["answer"] == ANSWER
    assert found["sources"] == [{"n": 1, "url": f"{web}/moon.test/facts", "title": "Moon facts"}]
    assert (found["stop"], found["model"], found["question"]) == ("final_answer", "extractive", QUESTION)


async def test_progress_only_rises_and_says_what_goes_on(web: str, tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))

    async with inside(config_for(web, tmp_path)) as (client, _):
        await client.call_tool("nexi_search", {"query": QUESTION}, progress_callback=hear)
    assert [p for p, _ in told] == [float(n + 1) for n in range(len(told))]
    assert "Thinking" in told[0][1]
    assert any(f'Searched "{QUESTION}": 2 results from searxng' in message for _, message in told)


async def test_verbose_lists_the_steps(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        plain = await client.call_tool("nexi_search", {"query": QUESTION})
        verbose = await client.call_tool("nexi_search", {"query": QUESTION, "verbose": True})
    assert "## Steps" not in text_of(plain)
    assert "web_search" in text_of(verbose).partition("## Steps")[2]


@pytest.mark.parametrize("name", ["time_target", "max_timeout"])
async def test_both_names_of_the_time_limit_are_taken(web: str, tmp_path: Path, name: str) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_search", {"query": QUESTION, name: 0.000001})
    assert result.is_error
    assert result.meta["nexi/error"]["code"] == "no_evidence"


async def test_raw_hits_are_found(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_find", {"query": "moon craters", "count": 1})
        nothing = await client.call_tool("nexi_find", {"query": "zzzzqqq"})
    (hit,) = result.structured_content["hits"]
    assert (hit["url"], hit["title"], result.structured_content["backend"]) == (
        f"{web}/moon.test/facts",
        "Moon facts",
        "searxng",
    )
    assert text_of(result).startswith(f"1. Moon facts\n   {web}/moon.test/facts\n   ")
    assert (nothing.is_error, nothing.structured_content["hits"]) == (False, [])


async def test_a_search_service_that_is_down_is_an_error_with_its_fix(tmp_path: Path) -> None:
    config = config_for("http://127.0.0.1:9", tmp_path)
    async with inside(config) as (client, _):
        result = await client.call_tool("nexi_find", {"query": "moon"})
    error = (result.meta or {})["nexi/error"]
    assert (result.is_error, error["code"], error["cause"].partition(":")[0], bool(error["fix"])) == (
        True,
        "backend",
        "searxng",
        True,
    )


async def test_a_long_page_is_read_in_stretches(web: str, tmp_path: Path) -> None:
    url = f"{web}/moon.test/facts"
    async with inside(config_for(web, tmp_path)) as (client, _):
        whole = (await client.call_tool("nexi_fetch", {"url": url})).structured_content
        first = await client.call_tool("nexi_fetch", {"url": url, "max_chars": 40})
        second = await client.call_tool("nexi_fetch", {"url": url, "start": 40})
        past = await client.call_tool("nexi_fetch", {"url": url, "start": 10_000})
    assert (whole["next_start"], whole["title"], whole["author"]) == (None, "Moon facts", "Selene")
    assert first.structured_content["text"] + second.structured_content["text"] == whole["text"]
    assert first.structured_content["next_start"] == 40
    assert text_of(first).endswith(f"[There are {whole['chars'] - 40:,} more characters: start=40]")
    assert past.structured_content["text"] == ""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("not a page", "not a page"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("http://127.0.0.1:1/private", "private"),
        ("", "''"),
    ],
)
async def test_a_page_that_may_not_be_read_is_refused_in_words(web: str, tmp_path: Path, url: str, said: str) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_fetch", {"url": url})
    assert result.is_error
    assert said in text_of(result)


async def test_research_starts_at_once_and_its_report_can_be_fetched_later(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        begun = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content
        done = await client.call_tool("nexi_research_result", {"run_id": begun["id"], "wait_s": 30})
        status = (await client.call_tool("nexi_research_status", {"run_id": begun["id"]})).structured_content
        nothing = await client.call_tool("nexi_research_cancel", {"run_id": begun["id"]})
    assert (begun["state"], begun["question"]) == ("running", QUESTION)
    assert (status["state"], status["progress"], status["error"]) == ("finished", 1.0, "")
    assert {r["phase"] for r in status["researchers"]} == {"reported"}
    assert done.structured_content["state"] == "finished"
    assert ANSWER in text_of(done)
    assert text_of(done).startswith(f'---\nquestion: "{QUESTION}"\n')
    assert done.structured_content["sources"][0] == {"n": 1, "url": f"{web}/moon.test/facts", "title": "Moon facts"}
    assert nothing.structured_content["done"] == "nothing"


async def test_a_report_outlives_the_server_that_made_it(web: str, tmp_path: Path) -> None:
    config = config_for(web, tmp_path)
    async with inside(config) as (client, _):
        begun = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content
        first = await client.call_tool("nexi_research_result", {"run_id": begun["id"], "wait_s": 30})
    async with inside(config) as (client, _):
        again = await client.call_tool("nexi_research_result", {"run_id": begun["id"]})
    assert again.structured_content == first.structured_content


async def test_a_run_that_still_works_says_so_and_is_cancelled_on_request(web: str, tmp_path: Path) -> None:
    gate = Gate()
    async with inside(config_for(web, tmp_path), backends=[gate]) as (client, nexi):
        begun = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content
        await gate.asked.wait()
        waiting = await client.call_tool("nexi_research_result", {"run_id": begun["id"]})
        cancelled = (await client.call_tool("nexi_research_cancel", {"run_id": begun["id"]})).structured_content
        after = await client.call_tool("nexi_research_result", {"run_id": begun["id"]})
        status = (await client.call_tool("nexi_research_status", {"run_id": begun["id"]})).structured_content
        last = nexi.runs().open_log(begun["id"]).facts[-1][1]
    assert (status["state"], status["status"]) == ("stopped", "Research: stopped")
    assert (waiting.is_error, waiting.structured_content["state"]) == (False, "running")
    assert "There is no report yet" in text_of(waiting)
    assert (cancelled["done"], cancelled["state"]) == ("cancelled", "stopped")
    assert (after.is_error, after.structured_content["state"]) == (False, "stopped")
    assert "was stopped before it had a report" in text_of(after)
    assert isinstance(last, RunFailed)


async def test_a_run_may_be_asked_to_write_its_report_now(web: str, tmp_path: Path) -> None:
    gate = Gate()
    async with inside(config_for(web, tmp_path), backends=[gate]) as (client, _):
        begun = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content
        await gate.asked.wait()
        asked = await client.call_tool("nexi_research_cancel", {"run_id": begun["id"], "write_report": True})
        gate.open.set()
        after = await client.call_tool("nexi_research_result", {"run_id": begun["id"], "wait_s": 30})
    assert asked.structured_content["done"] == "asked_to_stop"
    assert (after.is_error, after.structured_content["state"]) == (False, "stopped")  # nothing had been read


async def test_more_research_than_there_is_room_for_is_refused_with_the_ids_under_way(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path), backends=[Gate()]) as (client, _):
        begun = [(await client.call_tool("nexi_research", {"question": QUESTION})).structured_content["id"] for _ in range(4)]
        refused = await client.call_tool("nexi_research", {"question": QUESTION})
    assert refused.is_error
    assert all(run_id in text_of(refused) for run_id in begun)


async def test_research_that_breaks_does_not_take_the_server_with_it(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: RunOpening) -> None:
        raise RuntimeError("secret-canary")

    async with inside(config_for(web, tmp_path)) as (client, _):
        with monkeypatch.context() as patched:
            patched.setattr(RunOpening, "__aenter__", broken)
            failed = await client.call_tool("nexi_research", {"question": QUESTION})
        found = await client.call_tool("nexi_find", {"query": "moon"})
        begun = await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})
    assert failed.is_error
    assert "secret-canary" not in failed.model_dump_json()
    assert (len(found.structured_content["hits"]), begun.structured_content["state"]) == (2, "running")


async def test_leaving_ends_the_research_that_still_runs(web: str, tmp_path: Path) -> None:
    gate, config = Gate(), config_for(web, tmp_path)
    async with inside(config, backends=[gate]) as (client, nexi):
        begun = (await client.call_tool("nexi_research", {"question": QUESTION})).structured_content
        await gate.asked.wait()
    assert isinstance(nexi.runs().open_log(begun["id"]).facts[-1][1], RunFailed)


async def test_cancelling_a_search_stops_its_run(web: str, tmp_path: Path) -> None:
    gate = Gate()
    async with inside(config_for(web, tmp_path), backends=[gate]) as (client, nexi):
        call = asyncio.create_task(client.call_tool("nexi_search", {"query": QUESTION}))
        await gate.asked.wait()
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: nexi.runs().list_runs()[0].state == "failed")
        (run,) = nexi.runs().list_runs()
        last = nexi.runs().open_log(run.id).facts[-1][1]
    assert isinstance(last, RunFailed)
    assert last.code == "cancelled"


async def test_an_answer_can_be_verified_by_its_id_and_as_text(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        answer = (await client.call_tool("nexi_search", {"query": QUESTION})).structured_content
        by_id = await client.call_tool("nexi_verify", {"run_id": answer["id"]})
        wrong = f"The Moon is 12 km from Earth. [1]\n\nSources:\n[1] {web}/moon.test/facts"
        as_text = await client.call_tool("nexi_verify", {"text": wrong, "refetch": True})
    assert (by_id.structured_content["ok"], by_id.structured_content["proof"]["found"]) == (True, 1)
    assert (as_text.is_error, as_text.structured_content["ok"]) == (False, False)


@pytest.mark.parametrize("arguments", [{}, {"text": "  "}, {"text": "a [1]", "run_id": "abcdef"}])
async def test_verifying_nothing_or_two_things_is_refused(web: str, tmp_path: Path, arguments: dict[str, Any]) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_verify", arguments)
    assert result.is_error
    assert "give text, run_id or url, and only one of them" in text_of(result)


async def test_a_report_is_audited_and_a_text_checked_against_pages(web: str, tmp_path: Path) -> None:
    moon = f"{web}/moon.test/facts"
    report = f"The Moon is 384,400 km from Earth on average [1]({moon}). It is made of cheese [2]({web}/gone.test/)."
    async with inside(config_for(web, tmp_path)) as (client, _):
        audit = await client.call_tool("nexi_verify", {"text": report, "audit": True})
        plain = await client.call_tool("nexi_verify", {"text": "The Moon is 12 km from Earth on average.", "against": [moon]})
        file = await client.call_tool("nexi_verify", {"text": "The Moon is far away.", "against": ["/etc/passwd"]})
    assert (audit.structured_content["precision"], audit.structured_content["recall"]) == (0.5, 0.5)
    assert "Precision 50%" in text_of(audit)
    assert (plain.structured_content["contradicted"], plain.structured_content["counts"]["contradicted"]) == (True, 1)
    assert file.is_error


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("nexi_search", {}, "query: Field required"),
        ("nexi_search", {"query": 5}, "query: Input should be a valid string (given '5')"),
        ("nexi_search", {"query": QUESTION, "effort": "xl"}, "effort: Input should be 's', 'm' or 'l' (given 'xl')"),
        ("nexi_search", {"query": QUESTION, "max_iter": 0}, "max_iter: "),
        ("nexi_search", {"query": QUESTION, "time_target": -1}, "time_target: "),
        ("nexi_search", {"query": " \x00 "}, ""),
        ("nexi_find", {"query": "moon", "count": 10_000}, "count: "),
        ("nexi_find", {"query": "moon", "time_range": "century"}, "time_range: "),
        ("nexi_fetch", {"url": ["a"]}, "url: Input should be a valid string"),
        ("nexi_research", {"question": QUESTION, "depth": 9}, "depth: "),
        ("nexi_research_status", {"run_id": "../../etc"}, "../../etc"),
        ("nexi_research_status", {"run_id": "ffffff"}, "ffffff"),
        ("nexi_research_result", {"run_id": "ffffff", "wait_s": -1}, "wait_s: "),
        ("nexi_research_cancel", {"run_id": ""}, "''"),
        ("nexi_verify", {"run_id": "ffffff"}, "ffffff"),
    ],
)
async def test_bad_arguments_are_answered_in_words_and_never_with_a_traceback(
    web: str, tmp_path: Path, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert said in text_of(result)
    assert "Traceback" not in text_of(result)
    assert "pydantic" not in text_of(result)


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol_that_names_those_that_are(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        names = {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rm_rf", {})
    assert (refused.value.code, sorted(names & set(re.findall(r"\w+", str(refused.value))))) == (-32602, sorted(names))


async def test_a_fault_of_ours_is_told_without_its_text(web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Nexi, url: str) -> None:
        raise RuntimeError("secret-canary")

    monkeypatch.setattr(Nexi, "fetch", broken)
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_fetch", {"url": "https://example.com/"})
    assert (result.meta or {})["nexi/error"]["code"] == "internal"
    assert "secret-canary" not in result.model_dump_json()


async def test_halves_of_characters_in_a_page_do_not_end_the_connection(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Nexi, url: str) -> None:
        raise FetchError("half \ud800 a character", fix="none \udfff")

    monkeypatch.setattr(Nexi, "fetch", broken)
    async with inside(config_for(web, tmp_path)) as (client, _):
        result = await client.call_tool("nexi_fetch", {"url": "https://example.com/"})
    assert text_of(result) == "Error: half \ufffd a character\nTo fix it: none \ufffd"


async def test_naughty_strings_through_every_text_argument_bring_an_answer_or_words(web: str, tmp_path: Path) -> None:
    places = [
        ("nexi_find", "query"),
        ("nexi_fetch", "url"),
        ("nexi_research_status", "run_id"),
        ("nexi_verify", "text"),
        ("nexi_verify", "run_id"),
    ]
    async with Nexi(config_for(web, tmp_path)) as nexi:
        server = create_server(nexi)

        async def check(place: tuple[str, str], text: str) -> None:
            result = await server.call_tool(place[0], {place[1]: text})
            assert "Traceback" not in result.model_dump_json()
            assert "fault in nexi" not in result.model_dump_json()

        loop = asyncio.get_running_loop()

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(place=st.sampled_from(places), text=st.text(max_size=60) | st.sampled_from(NAUGHTY))
        def hold(place: tuple[str, str], text: str) -> None:
            asyncio.run_coroutine_threadsafe(check(place, text), loop).result(30)

        await asyncio.to_thread(hold)


NAUGHTY = [
    "undefined",
    "NULL",
    "1;DROP TABLE users",
    "../../../../etc/passwd%00",
    "<script>alert(1)</script>",
    "${jndi:ldap://127.0.0.1/a}",
    "{{7*7}}",
    "%s%s%s%n",
    "\u202etest\u202c",
    "ثم نفس سقطت",
    "👩‍👩‍👧‍👦",
    "Ṱ̺̺̕o͞ ̷i̲̬͇̪͙n̝̗͕v̟̜̘̦͟o̶̙̰̠kè͚̮̺̪̹̱̤",
    "\ufeff\ufffe\uffff",
    "http://127.0.0.1:1/%%30%30",
    "http://[::1",
    "https://127.0.0.1/" + "a" * 5000,
    "[1]: javascript:alert(1)",
    "[" * 500,
    "()" * 500,
    "\\x41\\u0041\n\r\t\x0b\x1b[31m",
]


# resources and the prompt


async def test_past_runs_and_reports_are_resources(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        run_id = (await client.call_tool("nexi_search", {"query": QUESTION})).structured_content["id"]
        listed = {str(r.uri): r.title for r in (await client.list_resources()).resources}
        templates = [t.uri_template for t in (await client.list_resource_templates()).resource_templates]
        runs = json.loads(await read(client, "nexi://runs"))
        run = json.loads(await read(client, f"nexi://runs/{run_id}"))
        events = [json.loads(line) for line in (await read(client, f"nexi://runs/{run_id}/events")).splitlines()]
        report = await read(client, f"nexi://reports/{run_id}")
    assert listed == {"nexi://runs": "Past runs", "nexi://spaces": "Spaces", f"nexi://reports/{run_id}": QUESTION}
    exports = [f"nexi://exports/{{run_id}}/{form}" for form in EXPORT_FORMATS]
    assert templates == ["nexi://runs/{run_id}", "nexi://runs/{run_id}/events", "nexi://reports/{run_id}", *exports]
    assert [(r["id"], r["question"], r["state"]) for r in runs["runs"]] == [(run_id, QUESTION, "finished")]
    assert (run["schema"], run["answer"]) == ("nexi-answer-1", ANSWER)
    assert (events[0]["kind"], events[-1]["kind"]) == ("run_started", "run_finished")
    assert ANSWER in unlink_citations(report)


@pytest.mark.parametrize("uri", ["nexi://runs/ffffff", "nexi://reports/ffffff", "nexi://runs/zzz", "nexi://nothing"])
async def test_a_resource_that_is_not_there_says_so(web: str, tmp_path: Path, uri: str) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
    assert refused.value.code == -32602


async def test_the_ids_of_runs_are_completed(web: str, tmp_path: Path) -> None:
    from mcp_types import ResourceTemplateReference

    async with inside(config_for(web, tmp_path)) as (client, _):
        run_id = (await client.call_tool("nexi_search", {"query": QUESTION})).structured_content["id"]
        ref = ResourceTemplateReference(uri="nexi://reports/{run_id}")
        found = await client.complete(ref, {"name": "run_id", "value": run_id[:2]})
    assert found.completion.values == [run_id]


async def test_the_research_prompt_names_the_question_and_the_tools(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        (prompt,) = (await client.list_prompts()).prompts
        got = await client.get_prompt("research", {"question": QUESTION, "depth": "2"})
    text = got.messages[0].content.text
    assert [(a.name, a.required) for a in prompt.arguments] == [("question", True), ("depth", False)]
    assert QUESTION in text
    assert "nexi_research with the question and depth 2." in text


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    return str(content.text)


@pytest.mark.parametrize(("name", "arguments"), [("nope", {}), ("research", {})])
async def test_a_prompt_that_is_not_there_or_lacks_its_question_is_refused_as_a_client_error(
    web: str, tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name, arguments)
    assert refused.value.code == -32602


# knowledge


async def test_agentic_search_gives_the_response_of_the_seed_and_tells_progress(web: str, tmp_path: Path) -> None:
    told: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with inside(config_for(web, tmp_path, knowledge=True)) as (client, _):
        tool = next(t for t in (await client.list_tools()).tools if t.name == "agentic_search")
        result = await client.call_tool(
            "agentic_search", {"query": QUESTION, "max_iterations": 1, "url_score_threshold": 0.1}, progress_callback=hear
        )
    found = result.structured_content
    jsonschema.validate(found, tool.output_schema)
    assert json.loads(text_of(result)) == found
    assert list(found) == ["success", "query", "iterations", "completeness", "results", "search_history", "status", "usage"]
    assert (found["success"], found["query"], found["iterations"]) == (True, QUESTION, 1)
    assert [step["action"] for step in found["search_history"]][:3] == ["local_check", "web_search", "crawl"]
    assert list(found["results"][0]) == ["content", "url", "similarity_score", "chunk_index"]
    assert any("Searched" in message for message in told)


async def test_the_defaults_of_agentic_search_are_the_seeds_or_the_configs(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path, agentic_search_max_iterations=5)) as (client, _):
        tool = next(t for t in (await client.list_tools()).tools if t.name == "agentic_search")
    given = {name: field.get("default") for name, field in tool.input_schema["properties"].items()}
    assert given == {
        "query": None,
        "completeness_threshold": 0.8,
        "max_iterations": 5,
        "max_urls_per_iteration": 3,
        "url_score_threshold": 0.7,
        "use_search_hints": False,
    }


async def test_pages_are_indexed_and_found_again_and_files_are_not_taken(web: str, tmp_path: Path) -> None:
    url = f"{web}/moon.test/facts"
    async with inside(config_for(web, tmp_path, knowledge=True)) as (client, _):
        first = await client.call_tool("nexi_index", {"urls": [url], "tags": ["moon"]})
        again = (await client.call_tool("nexi_index", {"urls": [url]})).structured_content
        lost = (await client.call_tool("nexi_index", {"urls": [f"{web}/moon.test/nothing"]})).structured_content
        file = await client.call_tool("nexi_index", {"urls": ["/etc/passwd"]})
    assert first.structured_content["pages"] == [{"url": url, "outcome": "stored"}]
    assert text_of(first).startswith("1 stored, 0 already in the knowledge base, ")
    assert again["pages"] == [{"url": url, "outcome": "unchanged"}]
    assert lost["pages"][0]["outcome"].startswith("skipped: ")
    assert (file.is_error, "nexi index PATH" in text_of(file)) == (True, True)


async def test_what_is_switched_off_is_not_offered(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path, knowledge=False, agentic_search_enabled=False)) as (client, _):
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == TOOLS


async def test_an_argument_that_a_tool_does_not_have_is_refused_and_nothing_is_asked(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        for name, arguments in (("nexi_search", {"local": True}), ("nexi_find", {"only_local": True})):
            result = await client.call_tool(name, {"query": QUESTION, **arguments})
            assert result.is_error
            assert f"{name} has no argument {next(iter(arguments))!r}" in text_of(result)


async def test_values_of_pages_come_as_a_table(web: str, tmp_path: Path) -> None:
    arguments = {"columns": ["How far is the Moon from Earth on average?"], "documents": [f"{web}/moon.test/facts"]}
    async with inside(config_for(web, tmp_path)) as (client, _):
        table = await client.call_tool("nexi_table", arguments)
        file = await client.call_tool("nexi_table", {"columns": ["price"], "documents": ["/etc/passwd"]})
    (row,) = table.structured_content["rows"]
    assert "384,400 km" in row["cells"][0]["quote"]
    assert "| Document |" in text_of(table)
    assert (file.is_error, "is not an address" in text_of(file)) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"attachments": ["/etc/passwd"]}, "'/etc/passwd' is not the address of a web page"),
        ({"attachments": [""]}, "'' is not the address of a web page"),
        ({"scope": "web", "only_local": True}, "the scope web leaves the knowledge base out"),
        ({"continues": "../x"}, "is not a run id"),
    ],
)
async def test_files_of_the_server_and_contradictions_are_refused(
    web: str, tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    async with inside(config_for(web, tmp_path)) as (client, _):
        for tool, question in (("nexi_search", "query"), ("nexi_research", "question")):
            result = await client.call_tool(tool, {question: QUESTION, **arguments})
            assert (result.is_error, words in text_of(result)) == (True, True)
