"""Local model servers: what they offer and which windows they really give."""

from __future__ import annotations

from typing import Any

import pytest

from nexi.llm.local import (
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    LocalModel,
    LocalServer,
    describe_server,
    find_servers,
    ollama_model,
)
from nexi.net.addresses import is_loopback_url
from tests.stub import LLAMA_CPP_ROUTES, LM_STUDIO_ROUTES, OLLAMA_ROUTES, serving

OLLAMA_MODELS = (LocalModel("qwen2.5:7b", 16384, 32768), LocalModel("llama3.2:latest", None, 131072))
LM_STUDIO_MODELS = (LocalModel("gemma-3-4b", 4096, 131072), LocalModel("phi-4", None, 16384))
LLAMA_CPP_MODELS = (LocalModel("qwen.gguf", 8192, 32768),)


async def test_the_three_servers_are_found_with_their_models_and_windows() -> None:
    with serving(OLLAMA_ROUTES) as a, serving(LM_STUDIO_ROUTES) as b, serving(LLAMA_CPP_ROUTES) as c:
        found = await find_servers({OLLAMA: a, LM_STUDIO: b, LLAMA_CPP: c})
    assert found == [
        LocalServer(OLLAMA, f"http://127.0.0.1:{a}/v1", OLLAMA_MODELS),
        LocalServer(LM_STUDIO, f"http://127.0.0.1:{b}/v1", LM_STUDIO_MODELS),
        LocalServer(LLAMA_CPP, f"http://127.0.0.1:{c}/v1", LLAMA_CPP_MODELS),
    ]


@pytest.mark.parametrize(
    ("routes", "kind", "models"),
    [
        (OLLAMA_ROUTES, OLLAMA, OLLAMA_MODELS),
        (LM_STUDIO_ROUTES, LM_STUDIO, LM_STUDIO_MODELS),
        (LLAMA_CPP_ROUTES, LLAMA_CPP, LLAMA_CPP_MODELS),
    ],
    ids=[OLLAMA, LM_STUDIO, LLAMA_CPP],
)
async def test_a_server_on_another_port_is_recognised(
    routes: dict[str, Any], kind: str, models: tuple[LocalModel, ...]
) -> None:
    with serving(routes) as port:
        server = await describe_server(f"http://127.0.0.1:{port}/v1")
    assert server == LocalServer(kind, f"http://127.0.0.1:{port}/v1", models)


async def test_an_older_lm_studio_is_known_by_its_list_alone() -> None:
    with serving({"GET /v1/models": {"data": [{"id": "phi"}]}}) as port:
        assert await find_servers({LM_STUDIO: port}) == [
            LocalServer(LM_STUDIO, f"http://127.0.0.1:{port}/v1", (LocalModel("phi"),))
        ]


async def test_other_servers_are_known_by_their_port_and_the_common_list() -> None:
    listing = {"GET /v1/models": {"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 8192}]}}
    nexi = {"GET /v1/models": {"data": [{"id": "nexi", "owned_by": "nexi"}]}}
    with serving(listing) as a, serving(nexi) as own:
        url = f"http://127.0.0.1:{a}/v1"
        qwen = (LocalModel("qwen", 8192),)
        assert await find_servers({"vLLM": a}) == [LocalServer("vLLM", url, qwen)]
        assert await find_servers({OLLAMA: a}) == [LocalServer("OpenAI-compatible", url, qwen)]
        assert await find_servers({LLAMA_CPP: a, "LocalAI": a, "Jan": a}) == [LocalServer("LocalAI", url, qwen)]
        assert await find_servers({"vLLM": own}) == []
        assert await describe_server(url) is None


async def test_a_model_that_ollama_has_loaded_has_the_window_it_was_loaded_with() -> None:
    routes = {**OLLAMA_ROUTES, "GET /api/ps": {"models": [{"name": "llama3.2:latest", "context_length": 4096}]}}
    with serving(routes) as port:
        server = await describe_server(f"http://127.0.0.1:{port}/v1")
    assert server is not None
    assert server.model("llama3.2") == LocalModel("llama3.2:latest", 4096, 131072)


@pytest.mark.parametrize("answer", [{}, [], {"models": "no"}, b"<html>", b"\xff\xfe", {"data": {"id": 1}}, None])
async def test_what_is_none_of_them_is_not_taken_for_one(answer: Any) -> None:
    paths = ("GET /api/tags", "GET /api/v0/models", "GET /props", "GET /v1/models")
    with serving(dict.fromkeys(paths, answer)) as port:
        assert await find_servers(dict.fromkeys((OLLAMA, LM_STUDIO, LLAMA_CPP), port)) == []


async def test_nothing_is_found_where_nothing_listens_and_nothing_abroad_is_asked() -> None:
    assert await find_servers({OLLAMA: 9}) == []
    assert await describe_server("https://api.example.com/v1") is None


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.2/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.2/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_loopback_is_told_by_the_host(url: str, here: bool) -> None:
    assert is_loopback_url(url) is here


def test_the_window_of_a_modelfile_wins_over_what_the_model_was_made_for() -> None:
    show = {"parameters": "num_ctx 2048", "model_info": {"a.context_length": 32768}}
    assert ollama_model("m", show).context == 2048
    assert ollama_model("m", {"model_info": {"a.context_length": 32768}}).context == 32768
    assert ollama_model("m", None).context is None
