"""Past runs, reports and exports as resources: `nexi://runs`, `nexi://runs/{id}`, `nexi://runs/{id}/events`,
`nexi://reports/{id}`, `nexi://spaces` and `nexi://exports/{id}/FORMAT`.

Above is the server; below are the host of runs, which reads run logs, and `nexi.exports`. Nothing is written here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, Resource, ResourceTemplateReference

from nexi.answers.export_formats import EXPORT_FORMATS, ExportFormat
from nexi.app import RunSummary
from nexi.app.hosting import RunHost, RunSnapshot
from nexi.errors import StoreError
from nexi.events import SourceNumbered, encode
from nexi.exports import export_run
from nexi.mcp import _views
from nexi.output import answer_json

JSON, MARKDOWN, LINES = "application/json", "text/markdown", "application/jsonl"
NAME_CHARS = 80
MAX_LISTED = 20
DEPTHS = ("1", "2", "3")


def register_resources(server: MCPServer[Any], host: RunHost) -> None:
    """Offer the runs of a host."""

    @server.resource("nexi://runs", name="runs", title="Past runs", mime_type=JSON)
    async def list_runs() -> str:
        """The latest runs, newest first, with their state."""
        runs = await _latest_runs(host, 200)
        lines = [{"id": r.id, "created": r.created, "question": r.query, "mode": r.mode, "state": r.shown_state} for r in runs]
        return _to_json({"runs": lines})

    @server.resource("nexi://spaces", name="spaces", title="Spaces", mime_type=JSON)
    async def list_spaces() -> str:
        """The spaces that a question can be asked in, with their instructions and defaults."""
        listing = await asyncio.to_thread(host.nexi.spaces().list_all)
        names = ("instructions", "model", "effort", "scope", "services")
        # a question names a space by its address
        return _to_json({"spaces": [{"space": s.address, **{name: getattr(s, name) for name in names}} for s in listing]})

    @server.resource("nexi://runs/{run_id}", name="run", title="A run", mime_type=JSON)
    async def run(run_id: str) -> str:
        """One run: the answer with its sources and proof, or how far it is."""
        snapshot = await read_run(host, run_id)
        started, result = snapshot.start_fact, snapshot.result()
        if result is None:
            view = _views.show_research(snapshot).model_dump(mode="json")
            return _to_json({"schema": "nexi-run-1", **view, "mode": started.mode})
        sources = dict.fromkeys(fact.source.url for fact in snapshot.facts if isinstance(fact, SourceNumbered))
        return _to_json({**answer_json(result), "read": list(sources)})

    @server.resource("nexi://runs/{run_id}/events", name="events", title="The events of a run", mime_type=LINES)
    async def events(run_id: str) -> str:
        """Everything that happened in a run, one JSON object a line."""
        facts = (await read_run(host, run_id)).facts
        return "".join(json.dumps(_views.replace_surrogates(encode(fact)), ensure_ascii=False) + "\n" for fact in facts)

    @server.resource("nexi://reports/{run_id}", name="report", title="A report", mime_type=MARKDOWN)
    async def report(run_id: str) -> str:
        """The answer or report of a run as a Markdown document."""
        return (await export_file(host, run_id, "md")).decode()

    for form in EXPORT_FORMATS.values():
        _register_export(server, host, form)

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK leaves it untyped
    async def complete(
        ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        values = list(DEPTHS) if argument.name == "depth" else []
        if isinstance(ref, ResourceTemplateReference) and argument.name == "run_id":
            values = [run.id for run in await _latest_runs(host, 100)]
        return Completion(values=[value for value in values if value.startswith(argument.value)])


def _register_export(server: MCPServer[Any], host: RunHost, form: ExportFormat) -> None:
    @server.resource(
        f"nexi://exports/{{run_id}}/{form.name}",
        name=f"export-{form.name}",
        title=f"A run as {form.title}",
        description=f"A finished run as a file: {form.title}.",
        mime_type=form.media_type,
    )
    async def export(run_id: str) -> str | bytes:
        body = await export_file(host, run_id, form.name)
        return body.decode() if form.is_text else body


async def read_run(host: RunHost, run_id: str) -> RunSnapshot:
    """A run as it stands, as far as its log can be read. Raises StoreError when there is none."""
    return await host.snapshot_of(run_id, reads_damaged=True)


async def _latest_runs(host: RunHost, count: int = MAX_LISTED) -> Sequence[RunSummary]:
    """Past runs, newest first; none where the folder cannot be read."""
    try:
        return await asyncio.to_thread(host.nexi.runs().list_runs, count)
    except (OSError, StoreError):
        return ()


async def export_file(host: RunHost, run_id: str, form: str) -> bytes:
    """A finished run in one of EXPORT_FORMATS. Raises NexiError."""
    snapshot = await read_run(host, run_id)
    if snapshot.state != "finished":
        fix = "wait for it" if snapshot.state == "running" else f"resume it: nexi resume {run_id}"
        raise StoreError(f"run {run_id} has no answer", cause=f"it is {snapshot.state}", fix=fix)
    return await export_run(host.nexi.runs(), host.nexi.pages(), run_id, form)


async def recent_resources(host: RunHost) -> list[Resource]:
    """The latest finished runs, so that a client can offer them by name."""
    runs = [run for run in await _latest_runs(host) if run.state == "finished"]
    return [
        Resource(
            uri=f"nexi://reports/{run.id}",
            name=f"report-{run.id}",
            title=_views.replace_surrogates(" ".join(run.query.split())[:NAME_CHARS]) or run.id,
            description=f"{'Report' if run.mode == 'research' else 'Answer'} of {run.created[:10]}, run {run.id}.",
            mime_type=MARKDOWN,
        )
        for run in runs
    ]


def _to_json(value: object) -> str:
    return json.dumps(_views.replace_surrogates(value), ensure_ascii=False, indent=2)
