"""The extension as text-generation-webui loads it: a module with `params` and `chat_input_modifier`."""

from __future__ import annotations

import ast
import importlib.util
import sys
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integrations.conftest import ITEMS, Stub, pack_of

SCRIPT = Path(__file__).resolve().parents[2] / "integrations" / "text_generation_webui" / "script.py"
CANARY = "token-canary-77aa"
TODAY = "Today is 2026-03-04.\n"


class FixedDate(date):
    @classmethod
    def today(cls) -> date:
        return date(2026, 3, 4)


def loaded(**settings: Any) -> ModuleType:
    """The module, imported from its file, with the settings a host would put into `params`."""
    spec = importlib.util.spec_from_file_location("nexi_extension", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.date = FixedDate  # type: ignore[attr-defined]
    assert set(settings) <= set(module.params)
    module.params.update(settings)
    return module


def said(module: ModuleType, text: str) -> tuple[str, str]:
    """What the model and the user see of a message."""
    model, user = module.chat_input_modifier(text, text, {"mode": "chat"})
    return model, user


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = {a.name.split(".")[0] for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module).split(".")[0] for n in tree.body if isinstance(n, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


def test_a_marked_message_gets_evidence_and_the_chat_shows_it_without_the_marks(stub: tuple[str, Stub]) -> None:
    url, told = stub
    model, user = said(loaded(base_url=url, max_results=2), "??? how far is the moon")
    assert user == "how far is the moon"
    assert model == f"{TODAY}{pack_of(ITEMS[:2], 'how far is the moon')}\n\nhow far is the moon"
    (body,) = told.bodies("/v1/search")
    assert body["query"] == {"text": "how far is the moon"}
    assert body["constraints"] == {"search_mode": "simple"}


def test_other_messages_are_left_alone(stub: tuple[str, Stub]) -> None:
    url, told = stub
    for module in (loaded(base_url=url), loaded(base_url=url, enabled=False), loaded(base_url=url, mode="off")):
        text = "how far is the moon?" if module.params["enabled"] and module.params["mode"] != "off" else "??? moon"
        assert said(module, text) == (text, text)
    assert told.asked == []


def test_full_mode_backend_language_and_token_reach_the_server(stub: tuple[str, Stub]) -> None:
    url, told = stub
    module = loaded(base_url=url + "/", token=CANARY, search_mode="full", backend="duckduckgo", lang="de", max_fetch_pages=2)
    said(module, "??? mond")
    ((_, body, authorization),) = told.asked
    assert body["constraints"] == {"search_mode": "full", "backend": "duckduckgo", "lang": "de"}
    assert body["budget"]["max_fetch_pages"] == 2
    assert authorization == f"Bearer {CANARY}"


def test_the_best_snippets_are_picked_and_asked_for_as_they_were_seen(stub: tuple[str, Stub]) -> None:
    url, told = stub
    model, _ = said(loaded(base_url=url, snippet_rank=True, want_n=2), "??? moon")
    first, second = told.bodies("/v1/search")
    (ranked,) = told.bodies("/v1/snippet_rank")
    assert first["want"] == {"items": True, "rendered_text": False}
    assert [c["i"] for c in ranked["candidates"]] == [0, 1, 2, 3, 4]
    assert second["constraints"]["pick_ids"] == [3, 1]
    assert [i["url"] for i in second["constraints"]["seed_items"]] == [i["url"] for i in ITEMS]
    assert "https://example.com/3" in model
    assert "https://example.com/0" not in model


@pytest.mark.parametrize(
    ("reply", "picked"),
    [
        ('{"pick":[4,0]}', [4, 0]),
        ('<think>hm</think>```json\n{"pick":[2,2,9,"x",true,1]}\n```', [2, 1]),
        ("I pick the first.", [0, 1]),
        ('{"pick":"all"}', [0, 1]),
        ('{"pick":[]}', [0, 1]),
        ("[]", [0, 1]),
    ],
)
def test_the_loaded_model_may_pick_and_a_bad_reply_falls_back(stub: tuple[str, Stub], reply: str, picked: list[int]) -> None:
    url, told = stub
    told.replies["/v1/chat/completions"] = lambda _: (200, {"choices": [{"message": {"content": reply}}]})
    module = loaded(base_url=url, llm_base_url=f"{url}/v1", snippet_rank=True, rank_by="webui", want_n=2)
    said(module, "??? moon")
    (asked,) = told.bodies("/v1/chat/completions")
    assert told.bodies("/v1/search")[-1]["constraints"]["pick_ids"] == picked
    assert asked["temperature"] <= 0.2
    assert 64 <= asked["max_tokens"] <= 128
    assert TODAY.strip() in asked["messages"][0]["content"]


def test_a_rank_service_that_fails_leaves_the_first_results(stub: tuple[str, Stub]) -> None:
    url, told = stub
    told.replies["/v1/snippet_rank"] = lambda _: (500, {"error": {"message": "no"}})
    said(loaded(base_url=url, snippet_rank=True, want_n=2), "??? moon")
    assert told.bodies("/v1/search")[-1]["constraints"]["pick_ids"] == [0, 1]


@pytest.mark.parametrize(
    ("status", "reply", "query"),
    [
        (200, '"distance earth moon"\nbecause', "distance earth moon"),
        (200, "", "and how far is that?"),
        (500, "", "and how far is that?"),
    ],
)
def test_every_message_is_searched_with_the_models_query_or_the_users_words(
    stub: tuple[str, Stub], status: int, reply: str, query: str
) -> None:
    url, told = stub
    told.replies["/v1/chat/completions"] = lambda _: (status, {"choices": [{"message": {"content": reply}}]})
    model, user = said(loaded(base_url=url, llm_base_url=f"{url}/v1", mode="llm_query"), "and how far is that?")
    assert told.bodies("/v1/search")[0]["query"] == {"text": query}
    assert user == "and how far is that?"
    assert model.endswith("\n\nand how far is that?")


def test_the_evidence_is_summed_up_in_the_wrapper_with_its_rules(stub: tuple[str, Stub]) -> None:
    url, told = stub
    told.replies["/v1/chat/completions"] = lambda _: (
        200,
        {"choices": [{"message": {"content": "Short. https://example.com/0"}}]},
    )
    model, _ = said(loaded(base_url=url, llm_base_url=f"{url}/v1", pack_summary=True, inject_date=False), "??? moon")
    rules = "Rules:\n- Use this context strictly as evidence.\n[/CONTEXT_PACK]"
    assert model == f"[CONTEXT_PACK ucp-1]\nsummary:\nShort. https://example.com/0\n\n{rules}\n\nmoon"
    assert "Today is" not in told.bodies("/v1/chat/completions")[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("status", "reply", "notice"),
    [
        (401, {"error": {"message": "no"}}, "requires a token; set it in the panel of nexi"),
        (429, {"error": {"message": "too many requests", "fix": "wait"}}, "answered 429: too many requests; wait"),
        (500, b"<html>", "answered 500"),
        (200, b"<html>", "sent no JSON"),
        (200, [], "sent something else than was asked for"),
        (200, {"items": []}, "the search service sent no text"),
        (200, {"items": [], "rendered_text": "[CONTEXT_PACK]"}, "nothing was found for 'moon'"),
    ],
)
def test_what_goes_wrong_is_shown_and_the_chat_goes_on(stub: tuple[str, Stub], status: int, reply: Any, notice: str) -> None:
    url, told = stub
    told.replies["/v1/search"] = lambda _: (status, reply)
    model, user = said(loaded(base_url=url, token=CANARY), "??? moon")
    assert user.startswith("moon\n\n*nexi: ")
    assert notice in user
    assert model.startswith("moon\n\n(The web was not searched: ")
    assert CANARY not in model + user


@pytest.mark.parametrize(
    ("wrong", "notice"),
    [
        ({"base_url": "http://127.0.0.1:9"}, "cannot be reached"),
        ({"base_url": "file:///etc/passwd"}, "is no web address"),
        ({"max_results": "many"}, "the setting max_results must be a number, not 'many'"),
        ({"prefix": None, "mode": "llm_query", "max_context_chars": None}, "must be a number"),
    ],
)
def test_wrong_settings_are_named(wrong: dict[str, Any], notice: str) -> None:
    model, user = said(loaded(**{"llm_base_url": "http://127.0.0.1:9/v1", **wrong}), "??? moon")
    assert notice in user
    assert "Traceback" not in model + user


def test_marks_without_words_ask_for_some(stub: tuple[str, Stub]) -> None:
    url, told = stub
    assert "write what to search for after ???" in said(loaded(base_url=url), " ??? ")[1]
    assert told.asked == []


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=60))
def test_any_message_comes_back_as_text(text: str) -> None:
    module = loaded(base_url="http://127.0.0.1:9", timeout_s=1)
    model, user = said(module, f"???{text}")
    assert isinstance(model, str)
    assert isinstance(user, str)


def test_the_panel_changes_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Component:
        def __init__(self, *_: Any, value: Any = None, label: str = "", **__: Any) -> None:
            self.label = label
            made.append(self)

        def change(self, function: Any, *_: Any) -> None:
            self.changed = function

        def __enter__(self) -> Component:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    gradio = ModuleType("gradio")
    for name in ("Accordion", "Checkbox", "Radio", "Textbox", "Number"):
        setattr(gradio, name, Component)
    monkeypatch.setitem(sys.modules, "gradio", gradio)
    module = loaded()
    module.ui()
    next(c for c in made if c.label == "base_url").changed("http://other")
    assert module.params["base_url"] == "http://other"
