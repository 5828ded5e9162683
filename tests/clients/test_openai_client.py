"""The official `openai` client, from an environment of its own, against a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nexi.web.guard import GuardRules
from tests.web.world import MOON, QUESTION, serving

PYTHON = Path(__file__).resolve().parents[2] / ".venv-clients" / "bin" / "python"
TOKEN = "a-token-for-clients"
PROGRAM = """
import json, sys
import openai

base, token, question = sys.argv[1:]
client = openai.OpenAI(base_url=base + "/v1", api_key=token, max_retries=0)
said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
whole = client.chat.completions.create(model="nexi-s", messages=said)
parts, marks, citations, usage = [], [], [], None
for chunk in client.chat.completions.create(
    model="nexi-s", messages=said, stream=True, stream_options={"include_usage": True}
):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        parts.append(choice.delta.content or "")
        marks += getattr(choice.delta, "annotations", None) or []
    citations = getattr(chunk, "citations", None) or citations
errors = {}
for name, call in {
    "model": lambda: client.chat.completions.create(model="gpt-4o", messages=said),
    "messages": lambda: client.chat.completions.create(model="nexi-s", messages=[]),
    "token": lambda: openai.OpenAI(base_url=base + "/v1", api_key="wrong", max_retries=0).models.list(),
}.items():
    try:
        call()
    except openai.APIStatusError as error:
        errors[name] = [type(error).__name__, error.status_code, error.code]
message = whole.choices[0].message
print(json.dumps({
    "models": [m.id for m in client.models.list()],
    "one": client.models.retrieve("nexi-m").id,
    "text": message.content,
    "cited": [message.content[a.url_citation.start_index:a.url_citation.end_index] for a in message.annotations],
    "urls": [a.url_citation.url for a in message.annotations],
    "citations": whole.citations,
    "total": whole.usage.total_tokens,
    "streamed": "".join(parts),
    "streamed_marks": len(marks),
    "streamed_citations": citations,
    "streamed_total": usage.total_tokens,
    "errors": errors,
}))
"""


@pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-clients: make test-clients makes it")
async def test_the_official_client_asks_streams_lists_and_fails_as_with_openai(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(served.base, TOKEN, QUESTION)
    assert told["models"][:4] == ["nexi-s", "nexi-m", "nexi-l", "nexi-deep"]
    assert told["one"] == "nexi-m"
    assert "384,400 km" in told["text"]
    assert set(told["cited"]) == {"[1]"}
    assert set(told["urls"]) == {MOON}
    assert told["citations"][0] == MOON
    assert told["streamed"] == told["text"]
    assert told["streamed_marks"] == len(told["cited"])
    assert told["streamed_citations"] == told["citations"]
    assert told["streamed_total"] == told["total"]
    assert told["errors"] == {
        "model": ["NotFoundError", 404, "model_not_found"],
        "messages": ["BadRequestError", 400, "bad_request"],
        "token": ["AuthenticationError", 401, "unauthorized"],
    }


async def run(*arguments: str) -> dict[str, object]:
    process = await asyncio.create_subprocess_exec(
        str(PYTHON),
        "-c",
        PROGRAM,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin", "NO_PROXY": "*"},
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    if b"ModuleNotFoundError" in err:
        pytest.skip("the openai client is not installed in .venv-clients")
    assert process.returncode == 0, err.decode()
    return dict(json.loads(out))
