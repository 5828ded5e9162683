"""Operations: `/healthz`, `/readyz`, `/metrics` and `/openapi.json`, for the operator; and the numbers of one process.

`guard` counts requests, `hosting` shows every event of a run; Prometheus reads the numbers, and none of them is a question, a
key or an address. The OpenAPI document is put together from the modules that serve the paths, so that it says what is there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from nexi import __version__, events
from nexi.web.contract import Contract
from nexi.web.payload import json_reply

HELP: Mapping[str, tuple[str, str]] = {
    "nexi_requests_total": ("counter", "Requests by route, method and status."),
    "nexi_request_seconds": ("histogram", "Seconds until a response began, by route."),
    "nexi_refusals_total": ("counter", "Requests that were refused before a door saw them, by reason."),
    "nexi_runs_started_total": ("counter", "Runs that were started here, by mode."),
    "nexi_runs_ended_total": ("counter", "Runs that ended here, by mode and by how they ended."),
    "nexi_runs_active": ("gauge", "Runs in progress in this process."),
    "nexi_completeness": ("summary", "Completeness of what was known, from 0 to 1, as judged."),
    "nexi_sentences_checked_total": ("counter", "Sentences of answers that were compared with their pages."),
    "nexi_sentences_found_total": ("counter", "Sentences of answers that were found in their pages and not judged."),
    "nexi_sentences_supported_total": ("counter", "Sentences of answers that a tested judge found supported by their pages."),
    "nexi_searches_total": ("counter", "Searches, by the backend that answered; none where all failed."),
    "nexi_urls_found_total": ("counter", "URLs that searches found."),
    "nexi_urls_crawled_total": ("counter", "Pages that were read."),
    "nexi_urls_failed_total": ("counter", "Pages that could not be read, by reason."),
    "nexi_model_calls_total": ("counter", "Calls of a model that were answered."),
    "nexi_model_failures_total": ("counter", "Calls of a model that were not."),
    "nexi_tokens_total": ("counter", "Tokens of model calls, by direction."),
    "nexi_embeddings_total": ("counter", "Chunks that were embedded."),
    "nexi_knowledge_searches_total": ("counter", "Questions put to the knowledge store."),
    "nexi_cost_dollars_total": ("counter", "What model calls cost in US dollars, where the price is known."),
}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
Labels = tuple[tuple[str, str], ...]
CONTRACT = Contract("Operations")
TEXT = {"text/plain": {"schema": {"type": "string"}}}
ANSWERS = {"200": {"description": "It does.", "content": TEXT}}
NOT_NOW = {"503": {"description": "Not now; Retry-After says when.", "content": TEXT}}
NUMBERS = {"200": {"description": "The numbers.", "content": TEXT}}
DOCUMENT = {"200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}}}


@CONTRACT.serve("GET /healthz", "Whether the process answers.", responses=ANSWERS, security=[])
async def healthz(request: Request) -> Response:
    return PlainTextResponse("ok\n")


@CONTRACT.serve("GET /readyz", "Whether it takes work.", responses={**ANSWERS, **NOT_NOW}, security=[])
async def _readyz(request: Request) -> Response:
    """Not while it shuts down, nor with all the runs it can carry."""
    host = request.app.state.host
    if host.draining or host.is_full:
        return PlainTextResponse("draining\n" if host.draining else "full\n", 503, {"retry-after": "5"})
    return PlainTextResponse("ready\n")


@CONTRACT.serve("GET /metrics", "Numbers for Prometheus.", responses=NUMBERS)
async def _show_metrics(request: Request) -> Response:
    state = request.app.state
    return PlainTextResponse(state.metrics.text({"nexi_runs_active": state.host.active}), media_type=METRICS_TYPE)


@CONTRACT.serve("GET /openapi.json", "This document.", responses=DOCUMENT)
async def _show_openapi(request: Request) -> Response:
    return json_reply(request.app.state.openapi)


def assemble_document(parts: Iterable[dict[str, Any]], *, is_open: Callable[[str, str], bool]) -> dict[str, Any]:
    """One OpenAPI document of the paths of all modules. `is_open` says which methods of which paths need no token."""
    paths = {path: operations for part in parts for path, operations in part.items()}
    for path, operations in paths.items():
        for method, operation in operations.items():
            if is_open(method.upper(), path):
                operation.setdefault("security", [{}, {"token": []}])
    return {
        "openapi": "3.1.0",
        "info": {"title": "nexi", "version": __version__, "summary": "Answers with proof, over HTTP."},
        "paths": paths,
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


class Metrics:
    """Counters of one process. One event loop, no locks."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, Labels], float] = {}
        self._buckets: dict[str, list[int]] = {}  # how many requests of each route took how long

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0) + amount

    def value(self, name: str, **labels: str) -> float:
        return self._values.get((name, tuple(sorted(labels.items()))), 0)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        self.count("nexi_requests_total", route=route, method=method, status=str(status))
        self.count("nexi_request_seconds_sum", seconds, route=route)
        self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1

    def observe(self, event: events.Event, mode: str = "search") -> None:
        """Count what an event says."""
        match event:
            case events.ModelReplied():
                self.count("nexi_model_calls_total")
                self.count("nexi_tokens_total", event.usage.input_tokens, direction="input")
                self.count("nexi_tokens_total", event.usage.output_tokens, direction="output")
                self.count("nexi_cost_dollars_total", event.usage.cost or 0.0)
            case events.ModelFailed():
                self.count("nexi_model_failures_total")
            case events.SearchFinished():
                self.count("nexi_searches_total", backend=event.backend or "none")  # where every one failed
                self.count("nexi_urls_found_total", len(event.hits))
            case events.PageFetched():
                self.count("nexi_urls_crawled_total")
            case events.PageFailed():
                self.count("nexi_urls_failed_total", reason=event.reason)
            case events.PageIndexed():
                self.count("nexi_embeddings_total", event.embedded)
            case events.KnowledgeSearched():
                self.count("nexi_knowledge_searches_total")
            case events.Judged(about="completeness"):
                self.count("nexi_completeness_sum", event.score)
                self.count("nexi_completeness_count")
            case events.AnswerChecked():
                self.count("nexi_sentences_checked_total", len(event.review.proof.checked))
                self.count("nexi_sentences_found_total", event.review.proof.found)
                self.count("nexi_sentences_supported_total", event.review.proof.supported)
            case events.RunFinished() | events.RunFailed():
                self.count("nexi_runs_ended_total", mode=mode, stop=event.stop.value)

    def text(self, gauges: Mapping[str, float] | None = None) -> str:
        """Every metric there is, also those that are still zero."""
        values = self._values | {(name, ()): value for name, value in (gauges or {}).items()}
        lines: list[str] = []
        for name, (kind, meaning) in HELP.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            if kind == "histogram":
                lines += [line for route in self._buckets for line in self._list_times(name, route)]
                continue
            zeros = [f"{name}_sum 0", f"{name}_count 0"] if kind == "summary" else [f"{name} 0"]
            names = {name} if kind != "summary" else {name, f"{name}_sum", f"{name}_count"}
            lines += [_format_sample(n, labels, v) for (n, labels), v in values.items() if n in names] or zeros
        return "\n".join(lines) + "\n"

    def _list_times(self, name: str, route: str) -> list[str]:
        """As Prometheus counts them: each bucket holds those before it."""
        label, totals = ("route", route), list(accumulate(self._buckets[route]))
        bounds = [*(f"{limit:g}" for limit in BUCKETS), "+Inf"]
        lines = [_format_sample(f"{name}_bucket", (("le", le), label), n) for le, n in zip(bounds, totals, strict=True)]
        lines.append(_format_sample(f"{name}_sum", (label,), self.value(f"{name}_sum", route=route)))
        return [*lines, _format_sample(f"{name}_count", (label,), totals[-1])]


def _format_sample(name: str, labels: Labels, value: float) -> str:
    texts = {key: text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, text in labels}
    pairs = ",".join(f'{key}="{text}"' for key, text in texts.items())
    return f"{name}{{{pairs}}} {value:.10g}" if pairs else f"{name} {value:.10g}"
