"""How the answering model is used: with tools of its own, or for a sentence or two over passages that nexi chose for it.

A test with `nexi models --probe` is kept for each model and server. Without one the size decides.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nexi.config import Config, get_system_prompt
from nexi.errors import StoreError
from nexi.files import read_json_object, write_json_object
from nexi.llm.local import LocalModel
from nexi.ports import LLM
from nexi.tools.specs import FINAL_ANSWER, SPECS, WEB_GET, WEB_SEARCH, parse_arguments
from nexi.types import Approach, Message, ToolSpec

FILE_NAME = "approaches.json"
MAX_SMALL_BILLIONS = 9.5  # models of 9B by name have up to 9.4
MAX_ENTRIES = 200
MAX_TEST_TOKENS = 300
_SIZE = re.compile(r"(?<![A-Za-z0-9.])e?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![A-Za-z0-9])", re.I)
_TEST_QUESTION = "How high is the tower of Ebenau?"
_TEST_URL = "https://ebenau.example/tower"
_TEST_HITS = {
    "searches": [{"results": [{"title": "The tower of Ebenau", "url": _TEST_URL, "description": "History, height."}]}]
}
_TEST_PAGE = {"pages": [{"url": _TEST_URL, "content": f"[1] {_TEST_URL}\n---\nThe tower of Ebenau is 57 metres high."}]}


def choose_approach(config: Config, model: LocalModel | None = None) -> tuple[Approach, bool]:
    """How the answering model is used, and whether it is small. "" is for a model of unknown size that was never tested."""
    endpoint = config.endpoint("answer")
    if endpoint.is_extractive:
        return "tools", False
    is_small = _is_small_model(endpoint.model, model)
    return _kept_approach(config) or ("passages" if is_small else ""), is_small


def _is_small_model(name: str, model: LocalModel | None = None) -> bool:
    """Whether a model has at most about 9 billion parameters, by its server's word or by its name."""
    sizes = [float(size) / (1 if unit in "bB" else 1000) for size, unit in _SIZE.findall(name)]
    billions = (model.billions if model else None) or max(sizes, default=0.0)
    return 0 < billions <= MAX_SMALL_BILLIONS


def _kept_approach(config: Config) -> Approach:
    """What a test of this model at this server showed; "" without one."""
    approach = read_json_object(config.state_dir / FILE_NAME).get(config.endpoint("answer").label)
    return approach if approach in ("tools", "passages") else ""


def _keep_approach(config: Config, approach: Approach) -> None:
    """Remember the result of a test. Raises StoreError."""
    path = config.state_dir / FILE_NAME
    approaches = {**read_json_object(path), config.endpoint("answer").label: approach}
    write_json_object(path, dict(list(approaches.items())[-MAX_ENTRIES:]), "How a model is used could not be kept")


async def probe_tool_use(config: Config, llm: LLM) -> Approach:
    """Let a model search, read and answer once, and keep how it is used from now on. Raises LLMError."""
    approach: Approach = "tools"
    messages = [Message("system", get_system_prompt("s", config=config)), Message("user", _TEST_QUESTION)]
    # each step with its result and with what its arguments must be: the page that was found, the answer with its source
    steps: tuple[tuple[ToolSpec, dict[str, Any], Callable[[dict[str, Any]], bool]], ...] = (
        (WEB_SEARCH, _TEST_HITS, lambda given: "ebenau" in str(given.get("queries", "")).lower()),
        (WEB_GET, _TEST_PAGE, lambda given: given.get("urls") == [_TEST_URL]),
        (FINAL_ANSWER, {}, lambda given: all(part in str(given.get("answer", "")) for part in ("57", "[1]"))),
    )
    for spec, result, is_sound in steps:
        reply = await llm.complete(messages, SPECS, max_tokens=MAX_TEST_TOKENS, temperature=0.0)
        call = next((c for c in reply.tool_calls if c.name == spec.name), None)
        arguments, problem = parse_arguments(call, spec) if call else ({}, "")
        if call is None or problem or not is_sound(arguments):
            approach = "passages"
            break
        messages += [Message("assistant", "", (call,)), Message("tool", json.dumps(result), tool_call_id=call.id)]
    with suppress(StoreError):
        await asyncio.to_thread(_keep_approach, config, approach)
    return approach
