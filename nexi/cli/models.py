"""`nexi models`: the models of the configured endpoint and of local servers, with their context windows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from nexi.cli.exits import EXIT_FAILURE
from nexi.cli.flags import flag, json_option
from nexi.cli.runner import run_with_nexi
from nexi.cli.settings import format_window
from nexi.config import Config, hide_password, load_config
from nexi.errors import LLMError, NexiError
from nexi.output import clean_line, print_failure, print_json, print_note, write

if TYPE_CHECKING:
    from nexi.app import Nexi
    from nexi.app.pair_models import Grade
    from nexi.types import Approach

SCHEMA = "nexi-models-1"
BUILT_IN = "built in"
USES = {
    "tools": "searches, reads and answers with tools",
    "passages": "does not use tools well: nexi searches and reads, and the model writes the answer from passages",
}


class _ListedModel(Struct, frozen=True):
    """An available model; `window` is the context its server gives it, `largest` what it supports."""

    server: str
    base_url: str
    model: str
    window: int | None = None
    largest: int | None = None
    in_use: bool = False


@click.command("models")
@flag("--probe", help="Test whether the model can use tools, and how well the judge tells supported from unsupported.")
@json_option
def _models_command(probe: bool, as_json: bool) -> None:
    """List the available models.

    Lists the models of the configured endpoint, and of model servers on this machine. A star marks the one
    in use. Use another with `-m MODEL`, or set it with `nexi config set model MODEL`. With --probe the model is tested instead:
    three requests show whether it gets tools or passages, and 60 pairs (about 12,000 tokens) how far a judge's verdicts count.
    """
    if not probe:
        return _print_models(*asyncio.run(_list_models(load_config())), as_json=as_json)
    from nexi.app.pair_models import describe_grade, grade_judge
    from nexi.app.resolve import probe_tool_use

    async def probe_models(nexi: Nexi) -> tuple[str, Approach, str, Grade]:
        if nexi.config.endpoint("judge").is_extractive:
            raise NexiError("there is no judge to test", cause="no model is configured", fix="nexi config setup")
        gate = nexi.gate()
        answering, judge = gate.open_llm("answer", "probe"), gate.open_llm("judge", "probe")
        approach = await probe_tool_use(nexi.config, answering)
        return answering.name, approach, judge.name, await grade_judge(nexi.config, judge, nexi.clock)

    model, approach, judge, grade = run_with_nexi(probe_models)
    if as_json:
        judge_grade = {"model": judge, **grade.as_json(), "may_raise": grade.may_raise}
        return print_json({"schema": SCHEMA, "judge": judge_grade, "answer": {"model": model, "approach": approach}})
    return write(f"{clean_line(model)}: {USES[approach]}\n{clean_line(judge)}: {describe_grade(grade)}\n")


async def _list_models(config: Config, ports: Mapping[str, int] | None = None) -> tuple[list[_ListedModel], LLMError | None]:
    """The models, and why those of the endpoint cannot be listed."""
    from nexi.app.local_models import PORTS, describe_server, find_servers, list_endpoint_models

    endpoint = config.endpoint("answer")
    async with asyncio.TaskGroup() as group:
        listing = group.create_task(list_endpoint_models(config))
        local = group.create_task(find_servers(PORTS if ports is None else ports))
        own = group.create_task(describe_server(endpoint.base_url))
    (names, problem), here = listing.result(), own.result()
    servers = {s.base_url: s for s in local.result()}
    rows = [_ListedModel(BUILT_IN, "", "extractive", in_use=endpoint.is_extractive)]
    kind, base_url = here.kind if here else "endpoint", hide_password(endpoint.base_url)
    for name in names:
        model = here.model(name) if here else None
        window, largest = (model.window, model.largest) if model else (None, None)
        rows.append(_ListedModel(kind, base_url, name, window, largest, name == endpoint.model))
    for server in servers.values():
        if here is None or server.base_url != here.base_url:
            rows += [_ListedModel(server.kind, server.base_url, m.name, m.window, m.largest) for m in server.models]
    return rows, problem


def _print_models(rows: Sequence[_ListedModel], problem: LLMError | None = None, *, as_json: bool) -> None:
    if as_json:
        models = [
            {"server": r.server, "base_url": r.base_url, "model": r.model, "context": r.window or r.largest, "in_use": r.in_use}
            for r in rows
        ]
        failure = {"error": str(problem), "code": problem.code, "fix": problem.fix} if problem else None
        print_json({"schema": SCHEMA, "models": models, "problem": failure})
    else:
        width = max(len(clean_line(row.model)) for row in rows)
        kinds = max(len(row.server) for row in rows)
        for row in rows:  # a star marks the model in use
            size = "" if row.server == BUILT_IN else format_window(row.window, row.largest)
            place = f"{size}, {row.base_url}" if row.base_url and row.window is None and row.largest is None else size
            line = f"{'*' if row.in_use else ' '} {clean_line(row.model):<{width}}  {row.server:<{kinds}}  {place}"
            write(f"{line.rstrip()}\n")
        if len(rows) == 1:
            print_note("No other models found. Configure an endpoint or start a local server, then run: nexi config setup")
        if problem:
            print_failure(problem)
    if problem:
        raise SystemExit(EXIT_FAILURE)
