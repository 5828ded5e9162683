"""Clients of the Responses API in their default ways, from an environment of their own, against a real server."""

from __future__ import annotations

from pathlib import Path

from nexi.web.guard import GuardRules
from tests.clients.programs import needs_clients, run
from tests.web.world import MOON, QUESTION, serving

TOKEN = "a-token-for-clients"
OPENAI = """
import json, sys
import openai

base, token, question = sys.argv[1:]
client = openai.OpenAI(base_url=base + "/v1", api_key=token, max_retries=0)
whole = client.responses.create(model="nexi-s", input=question, tools=[{"type": "web_search"}])
part = whole.output[-1].content[0]
kinds, text = [], ""
with client.responses.stream(model="nexi-s", input=question) as stream:
    for event in stream:
        kinds.append(event.type)
        text += event.delta if event.type == "response.output_text.delta" else ""
    final = stream.get_final_response()
after = client.responses.create(model="nexi-s", input="And in which time does it orbit Earth?", previous_response_id=whole.id)
errors = {}
for name, call in {
    "model": lambda: client.responses.create(model="gpt-5", input=question),
    "path": lambda: client.files.list(),
    "embeddings": lambda: client.embeddings.create(model="nexi-embed-2", input="x"),
    "json": lambda: client.responses.create(model="nexi-s", input=question, text={"format": {"type": "json_object"}}),
}.items():
    try:
        call()
    except openai.APIStatusError as error:
        errors[name] = [type(error).__name__, error.status_code, error.code]
print(json.dumps({
    "text": whole.output_text, "status": whole.status, "types": [item.type for item in whole.output],
    "cited": [part.text[a.start_index:a.end_index] for a in part.annotations], "urls": [a.url for a in part.annotations],
    "total": whole.usage.total_tokens, "streamed": text, "final": final.output_text, "kinds": kinds,
    "after": after.output_text, "errors": errors,
    "prompt": client.completions.create(model="nexi-s", prompt=question).choices[0].text,
}))
"""
BACKGROUND = """
import json, sys, time
import openai

base, token, question = sys.argv[1:]
client = openai.OpenAI(base_url=base + "/v1", api_key=token, max_retries=0)
begun = client.responses.create(model="nexi-s", input=question, background=True)
last = [event for event in client.responses.retrieve(begun.id, stream=True)][-1]
whole = client.responses.retrieve(begun.id)
asked = [item.content[0].text for item in client.responses.input_items.list(begun.id)]
cancelled = client.responses.cancel(begun.id).status
client.responses.delete(begun.id)
try:
    client.responses.retrieve(begun.id)
except openai.NotFoundError as error:
    gone = error.code
print(json.dumps([begun.status, last.type, whole.status, whole.output_text, asked, cancelled, gone]))
"""
AGENTS = """
import asyncio, json, os, sys
import openai
from agents import Agent, Runner, WebSearchTool, set_default_openai_client, set_tracing_disabled

base, token, question = sys.argv[1:]
set_tracing_disabled(True)
set_default_openai_client(openai.AsyncOpenAI(base_url=base + "/v1", api_key=token, max_retries=0))

async def main():
    agent = Agent(name="asker", instructions="Be brief.", model="nexi-s", tools=[WebSearchTool()])
    first = await Runner.run(agent, question)
    streamed = Runner.run_streamed(agent, question)
    async for _ in streamed.stream_events():
        pass
    later = await Runner.run(agent, first.to_input_list() + [{"role": "user", "content": question}])
    return [first.final_output, streamed.final_output, later.final_output]

print(json.dumps(asyncio.run(main())))
"""
PYDANTIC_AI = """
import json, os, sys
base, token, question = sys.argv[1:]
os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = base + "/v1", token
from pydantic_ai import Agent

agent = Agent("openai:nexi-s", instructions="Be brief.")
first = agent.run_sync(question)
later = agent.run_sync(question, message_history=first.all_messages())
print(json.dumps([first.output, agent.run_stream_sync(question).get_output(), later.output]))
"""


@needs_clients
async def test_the_official_client_creates_streams_and_follows_up_responses(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(OPENAI, served.base, TOKEN, QUESTION)
    assert "384,400 km" in told["text"]
    assert (told["status"], told["types"][-1]) == ("completed", "message")
    assert set(told["types"][:-1]) == {"web_search_call"}
    assert (set(told["cited"]), set(told["urls"])) == ({"[1]"}, {MOON})
    assert told["streamed"] == told["final"] == told["text"]
    assert told["total"] >= 0
    assert (told["kinds"][0], told["kinds"][-1]) == ("response.created", "response.completed")
    assert "27.3 days" in told["after"]
    assert told["text"] in told["prompt"]
    assert told["errors"] == {
        "model": ["NotFoundError", 404, "model_not_found"],
        "path": ["NotFoundError", 404, "not_found"],
        "embeddings": ["NotFoundError", 404, "model_not_found"],
        "json": ["BadRequestError", 400, "bad_request"],
    }


@needs_clients
async def test_the_official_client_asks_in_the_background_and_has_the_response_again(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        status, last, after, text, asked, cancelled, gone = await run(BACKGROUND, served.base, TOKEN, QUESTION)
    assert (status, last, after, asked) == ("queued", "response.completed", "completed", [QUESTION])
    assert "384,400 km" in text
    assert (cancelled, gone) == ("completed", "not_found")


@needs_clients
async def test_openai_agents_runs_an_agent_on_its_default_model_class(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(AGENTS, served.base, TOKEN, QUESTION)
    assert ["384,400 km" in text for text in told] == [True, True, True]


@needs_clients
async def test_pydantic_ai_runs_an_agent_by_the_name_of_a_model(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(PYDANTIC_AI, served.base, TOKEN, QUESTION)
    assert ["384,400 km" in text for text in told] == [True, True, True]
