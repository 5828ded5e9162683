"""Traces of a run: its spans, what they say, and what they do not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nexi.app import Nexi
from nexi.app import run as run_module
from nexi.app.request import RunRequest, RunScope
from nexi.config import Config
from nexi.errors import ConfigError, NexiError
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching

MOON = "https://moon.example/facts"
QUESTION = "How far is the xylophone?"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    monkeypatch.setattr(run_module, "_make_processor", lambda endpoint: SimpleSpanProcessor(kept))
    run_module._open_tracer.cache_clear()
    yield kept
    run_module._open_tracer.cache_clear()


async def run_once(home: Path, scope: RunScope = "both", **settings: Any) -> str:
    config = Config(home=home, base_url="http://127.0.0.1:9/v1", model="m", verify_judge=False, suggestions=False, **settings)
    web = FakeWeb({MOON: "The Moon is 384,400 km from Earth."})
    llm = ScriptedLLM(searching("moon"), reading(MOON), answering("It is 384,400 km [1]."))
    async with Nexi(config, llms={"answer": llm}, backends=(web,), fetchers=(web,)) as nexi:
        async with nexi.run(RunRequest(QUESTION, scope=scope)) as run:
            async for _ in run:
                pass
        return run.id


async def test_a_run_is_a_span_with_its_model_calls_searches_and_pages(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    run_id = await run_once(tmp_path, otel_endpoint="http://collector.example:4318")
    done = spans.get_finished_spans()
    (whole,) = [span for span in done if span.name == "run"]
    assert sorted(span.name for span in done) == ["model call", "model call", "model call", "page", "run", "search"]
    assert {span.parent.span_id for span in done if span.parent} == {whole.context.span_id}
    assert dict(whole.attributes or {}) == {"nexi.run": run_id, "nexi.mode": "search", "nexi.stop": "final_answer"}
    (page,) = [span for span in done if span.name == "page"]
    assert (page.attributes or {})["server.address"] == "moon.example"
    assert all(span.start_time <= span.end_time for span in done)
    assert "xylophone" not in "".join(span.to_json() for span in done)


async def test_no_endpoint_is_no_trace(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    await run_once(tmp_path)
    assert spans.get_finished_spans() == ()


@pytest.mark.parametrize(("endpoint", "traced"), [("http://collector.example:4318", 0), ("http://127.0.0.1:4318", 1)])
async def test_a_local_question_is_traced_on_this_machine_only(
    endpoint: str, traced: int, tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    with contextlib.suppress(NexiError):
        await run_once(tmp_path, "local", otel_endpoint=endpoint)
    assert sum(span.name == "run" for span in spans.get_finished_spans()) == traced


async def test_a_missing_library_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    run_module._open_tracer.cache_clear()
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match="not installed") as refused:
        await run_once(tmp_path, otel_endpoint="http://collector.example:4318")
    assert refused.value.fix.startswith("install it: ")


def test_spans_go_to_the_collector_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = run_module._make_processor("http://127.0.0.1:9/")
    try:
        assert processor.span_exporter._endpoint == "http://127.0.0.1:9/v1/traces"
    finally:
        processor.shutdown()
