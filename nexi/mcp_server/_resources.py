"""Past runs, reports and exports as resources: `nexi://runs`, `nexi://runs/{id}`, `nexi://runs/{id}/events`,
`nexi://reports/{id}`, `nexi://spaces` and `nexi://exports/{id}/FORMAT`.

Above is the server; below are the host of runs, which reads run logs, and `nexi.exports`. Nothing is written here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, Resource, ResourceTemplateReference

from nexi.answers.export_formats import EXPORT_FORMATS, ExportFormat
from nexi.errors import StoreError
from nexi.events import encode
from nexi.exports import export_run
from nexi.mcp_server import _views
from nexi.output import answer_json

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from nexi.app import RunSummary
    from nexi.app.hosting import RunHost, RunSnapshot

JSON, MARKDOWN, LINES = "application/json", "text/markdown", "application/jsonl"
NAME_CHARS = 80
MAX_LISTED = 20
DEPTHS = ("1", "2", "3")


def register_resources(server: MCPServer[Any], host: RunHost) -> None:
    """Offer the runs of a host."""

    @server.resource("nexi://runs", name="runs", title="Past runs", mime_type=JSON)
    async def runs() -> str:
        """The latest runs, newest first, with their state."""
        return _to_json({"runs": [_views.run_listed(run) for run in await _latest_runs(host, 200)]})

    @server.resource("nexi://spaces", name="spaces", title="Spaces", mime_type=JSON)
    async def spaces() -> str:
        """The spaces that a question can be asked in, with their instructions and defaults."""
        known = await asyncio.to_thread(host.nexi.spaces().list_all)
        return _to_json({"spaces": [_views.show_space(space) for space in known]})

    @server.resource("nexi://runs/{run_id}", name="run", title="A run", mime_type=JSON)
    async def run(run_id: str) -> str:
        """One run: the answer with its sources and proof, or how far it is."""
        return _to_json(await _run_json(host, run_id))

    @server.resource("nexi://runs/{run_id}/events", name="events", title="The events of a run", mime_type=LINES)
    async def events(run_id: str) -> str:
        """Everything that happened in a run, one JSON object a line."""
        seen = await read_run(host, run_id)
        return "".join(json.dumps(_views.replace_surrogates(encode(fact)), ensure_ascii=False) + "\n" for fact in seen.facts)

    @server.resource("nexi://reports/{run_id}", name="report", title="A report", mime_type=MARKDOWN)
    async def report(run_id: str) -> str:
        """The answer or report of a run as a Markdown document."""
        return (await export_file(host, run_id, "md")).decode()

    for known in EXPORT_FORMATS.values():
        _register_export(server, host, known)

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK leaves it untyped
    async def complete(
        ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        return Completion(values=await _complete_argument(host, ref, argument.name, argument.value))


def _register_export(server: MCPServer[Any], host: RunHost, known: ExportFormat) -> None:
    @server.resource(
        f"nexi://exports/{{run_id}}/{known.name}",
        name=f"export-{known.name}",
        title=f"A run as {known.title}",
        description=f"A finished run as a file: {known.title}.",
        mime_type=known.media_type,
    )
    async def export(run_id: str) -> str | bytes:
        body = await export_file(host, run_id, known.name)
        return body.decode() if known.is_text else body


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
    seen = await read_run(host, run_id)
    if seen.state != "finished":
        fix = "wait for it" if seen.state == "running" else f"resume it: nexi resume {run_id}"
        raise StoreError(f"run {run_id} has no answer", cause=f"it is {seen.state}", fix=fix)
    return await export_run(host.nexi.runs(), host.nexi.pages(), run_id, form)


async def _run_json(host: RunHost, run_id: str) -> dict[str, Any]:
    seen = await read_run(host, run_id)
    if result := seen.result():
        return {**answer_json(result, seen.start_fact.query, seen.start_fact.model), "read": _read_in(seen.facts)}
    return {"schema": "nexi-run-1", **_views.show_research(seen).model_dump(mode="json"), "mode": seen.start_fact.mode}


def _read_in(facts: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(fact.source.url for fact in facts if fact.kind == "source_numbered"))


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


async def _complete_argument(host: RunHost, ref: object, name: str, begun: str) -> list[str]:
    """The ids of runs for a resource, the depths for the prompt."""
    if isinstance(ref, ResourceTemplateReference) and name == "run_id":
        return [run.id for run in await _latest_runs(host, 100) if run.id.startswith(begun)]
    return [d for d in DEPTHS if d.startswith(begun)] if name == "depth" else []


def _to_json(value: object) -> str:
    return json.dumps(_views.replace_surrogates(value), ensure_ascii=False, indent=2)
