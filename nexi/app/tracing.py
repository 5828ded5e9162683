"""Traces of runs for OpenTelemetry: how long each step took and how much of it there was, never what was asked or read."""

from __future__ import annotations

import functools
import time
from typing import Any

from nexi import __version__
from nexi.config import Config
from nexi.errors import ConfigError
from nexi.events import Event, ModelFailed, ModelReplied, PageFailed, PageFetched, RunFailed, RunFinished, SearchFinished
from nexi.install import install_command
from nexi.urls import host_of

NANOSECONDS = 1_000_000_000


def open_trace(config: Config, run_id: str, mode: str) -> _RunTrace | None:
    """The trace of a run; None where no collector is configured. Raises ConfigError."""
    return _RunTrace(_open_tracer(config.otel_endpoint), run_id, mode) if config.otel_endpoint else None


@functools.cache
def _open_tracer(endpoint: str) -> Any:
    """One tracer for a process; what it holds is sent in the background, and at exit."""
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError as error:
        fix = f"install it: {install_command('otel')}"
        raise ConfigError("traces need a library that is not installed", cause=str(error), fix=fix) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "nexi", "service.version": __version__}))
    provider.add_span_processor(_make_processor(endpoint))
    return provider.get_tracer("nexi", __version__)


def _make_processor(endpoint: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"))


class _RunTrace:
    """The spans of one run."""

    def __init__(self, tracer: Any, run_id: str, mode: str) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._span = tracer.start_span("run", attributes={"nexi.run": run_id, "nexi.mode": mode})
        self._context = set_span_in_context(self._span)

    def observe(self, event: Event) -> None:
        match event:
            case ModelReplied():
                tokens = {"input_tokens": event.usage.input_tokens, "output_tokens": event.usage.output_tokens}
                usage = {f"gen_ai.usage.{name}": count for name, count in tokens.items()}
                self._add("model call", event.seconds, **usage, **{"gen_ai.response.finish_reasons": event.finish})
            case ModelFailed():
                self._add("model call", event.seconds, **{"error.type": event.code})
            case SearchFinished():
                self._add("search", event.seconds, **{"nexi.backend": event.backend or "none", "nexi.hits": len(event.hits)})
            case PageFetched():
                self._add("page", event.seconds, **{"server.address": host_of(event.url), "nexi.chars": event.chars})
            case PageFailed():
                self._add("page", event.seconds, **{"server.address": host_of(event.url), "error.type": event.reason})
            case RunFinished() | RunFailed():
                self._span.set_attribute("nexi.stop", event.stop.value)
                if isinstance(event, RunFailed):
                    self._span.set_attribute("error.type", event.code)
                self.close()
            case _:
                pass

    def close(self) -> None:
        """End the span of the run; one that was left open is sent as it is. Closing twice is harmless."""
        if self._span.is_recording():
            self._span.end()

    def _add(self, name: str, seconds: float, **attributes: Any) -> None:
        """A span that ends now."""
        end = time.time_ns()
        start = end - int(seconds * NANOSECONDS)
        self._tracer.start_span(name, context=self._context, start_time=start, attributes=attributes).end(end)
