"""`nexi spaces`: questions, files and pages that belong together, with their instructions and defaults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from nexi.cli.completion import complete_space
from nexi.cli.exits import report_errors

if TYPE_CHECKING:
    from nexi.app import Nexi
    from nexi.types import Space, StoredSource

SCHEMA = "nexi-spaces-1"
MAX_SHOWN_SOURCES, MAX_SHOWN_RUNS = 50, 20
T = TypeVar("T")
_HELP = {"help_option_names": ["-h", "--help"]}
_SETTINGS = (
    click.option("-i", "--instructions", metavar="TEXT", help="Instructions for the model, given with every question."),
    click.option("-m", "--model", help="Model for questions in the space."),
    click.option("-e", "--effort", type=click.Choice(["", "s", "m", "l"]), help="Effort: quick, balanced or thorough."),
    click.option("--scope", type=click.Choice(["", "web", "local"]), help="local: its files only, no network access."),
    click.option("--service", "services", multiple=True, metavar="NAME", help="Only this search service; repeatable."),
)
_name = click.argument("name", shell_complete=complete_space)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


@click.group("spaces", invoke_without_command=True, context_settings=_HELP)
@_as_json
@click.pass_context
def spaces_command(ctx: click.Context, as_json: bool) -> None:
    """List spaces: questions and files that belong together."""
    if ctx.invoked_subcommand:
        return
    with report_errors(as_json=as_json):
        _print_spaces(_with_nexi(_list_spaces), as_json=as_json)


@spaces_command.command("add", context_settings=_HELP)
@_name
@click.argument("targets", nargs=-1, metavar="[PATH|DIR|URL]...")
@_setting_options
def _add_command(name: str, targets: tuple[str, ...], **settings: Any) -> None:
    """Add a space, with files and pages to search first."""
    from nexi.output import print_success
    from nexi.types import Space

    with report_errors():
        _with_nexi(lambda nexi: _add_space(nexi, Space(name, **_given(settings)), targets))
        print_success(f'Added the space {name}. Ask in it: nexi --space {name} "your question"')


@spaces_command.command("set", context_settings=_HELP)
@_name
@_setting_options
def _set_command(name: str, **settings: Any) -> None:
    """Change the instructions or defaults of a space; an empty value removes one."""
    from nexi.output import print_success

    with report_errors():
        if not (given := _given(settings)):
            raise click.UsageError("name what to change, for example --instructions")
        _with_nexi(lambda nexi: _change_space(nexi, name, given))
        print_success(f"Changed the space {name}.")


@spaces_command.command("show", context_settings=_HELP)
@_name
@_as_json
def _show_command(name: str, as_json: bool) -> None:
    """Show a space with its files, pages and questions."""
    with report_errors(as_json=as_json):
        _print_space(*_with_nexi(lambda nexi: _read_space(nexi, name)), as_json=as_json)


@spaces_command.command("rm", context_settings=_HELP)
@_name
@click.option("--with-files", is_flag=True, help="Also forget its files and pages, except those of other spaces.")
def _remove_command(name: str, with_files: bool) -> None:
    """Remove a space. Its questions stay in the history, its files in the knowledge base."""
    from nexi.app.spaces import remove_space
    from nexi.output import print_success

    with report_errors():
        removed = _with_nexi(lambda nexi: remove_space(nexi.ports, name, deletes_files=with_files))
        forgotten = f" and {removed} of its sources" if with_files else ""
        print_success(f"Removed the space {name}{forgotten}.")


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in settings.items() if value is not None and value != ()}
    services = given.get("services")
    return given | ({"services": tuple(filter(None, services))} if services else {})


def _with_nexi(work: Callable[[Nexi], Coroutine[Any, Any, T]]) -> T:
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def run() -> T:
        async with Nexi(load_config()) as nexi:
            return await work(nexi)

    return asyncio.run(run())


async def _list_spaces(nexi: Nexi) -> list[tuple[Space, int]]:
    from nexi.app.spaces import list_space_sources

    return [(space, len(await list_space_sources(nexi.ports, space))) for space in nexi.spaces().list_all()]


async def _add_space(nexi: Nexi, space: Space, targets: tuple[str, ...]) -> None:
    from nexi.app.intake import DocumentIndexing
    from nexi.output import print_warning, write

    nexi.spaces().add(space)
    taking = DocumentIndexing(nexi, nexi.knowledge(), tags=(space.tag,))
    for target in targets:
        await taking.take(target)
    for warning in (*taking.taken.warnings, *(f"{name} was skipped: {reason}" for name, reason in taking.taken.skipped)):
        print_warning(warning)
    if targets:
        write(f"Indexed {taking.taken.outcomes.total()} sources\n", sys.stderr)


async def _change_space(nexi: Nexi, name: str, given: dict[str, Any]) -> None:
    space = nexi.spaces().get(name)
    nexi.spaces().change(msgspec.structs.replace(space, **given))


async def _read_space(nexi: Nexi, name: str) -> tuple[Space, list[StoredSource], list[Any]]:
    from nexi.app.spaces import list_space_sources

    space = nexi.spaces().get(name)
    runs = [run for run in nexi.runs().list_runs() if run.space == space.address]
    return space, await list_space_sources(nexi.ports, space), runs[:MAX_SHOWN_RUNS]


def _print_spaces(spaces: list[tuple[Space, int]], *, as_json: bool) -> None:
    from nexi.output import clean_line, print_json, write

    if as_json:
        return print_json({"schema": SCHEMA, "spaces": [{**msgspec.to_builtins(s), "sources": n} for s, n in spaces]})
    if not spaces:
        return write("No spaces. Add one: nexi spaces add NAME PATH\n", sys.stderr)
    for space, count in spaces:
        parts = [f"{count} source{'s' * (count != 1)}", *_describe_defaults(space)]
        write(f"{space.address}  {clean_line(' · '.join(parts))}\n")
    return None


def _describe_defaults(space: Space) -> list[str]:
    defaults = (space.model, f"effort {space.effort}" if space.effort else "", f"scope {space.scope}" if space.scope else "")
    return [text for text in (*defaults, ", ".join(space.services)) if text]


def _print_space(space: Space, sources: list[StoredSource], runs: list[Any], *, as_json: bool) -> None:
    from nexi.output import clean_line, clean_text, print_json, write

    if as_json:
        shown = {"sources": [{"url": s.url, "title": s.title} for s in sources], "runs": [r.id for r in runs]}
        return print_json({"schema": SCHEMA, "space": {**msgspec.to_builtins(space), **shown}})
    lines = [space.address, *(f"  {text}" for text in _describe_defaults(space))]
    lines += ["", "Instructions:", clean_text(space.instructions)] if space.instructions else []
    named = [f"  {clean_line(source.title or source.url)}  {clean_line(source.url)}" for source in sources]
    more = len(named) - MAX_SHOWN_SOURCES
    lines += ["", "Files and pages:", *named[:MAX_SHOWN_SOURCES], *([f"  (+{more} more)"] if more > 0 else [])] if named else []
    lines += ["", "Questions:", *(f"  {run.id}  {clean_line(run.query)[:70]}" for run in runs)] if runs else []
    return write("\n".join(lines) + "\n")
