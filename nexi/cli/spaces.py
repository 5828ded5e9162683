"""`nexi spaces`: questions, files and pages that belong together, with their instructions and defaults."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from nexi import app
from nexi.cli.completion import complete_space
from nexi.cli.flags import HELP, combine_options, flag, json_option
from nexi.cli.runner import run_with_nexi
from nexi.output import clean_line, clean_text, print_json, print_success, print_warning, write
from nexi.types import Space, StoredSource

SCHEMA = "nexi-spaces-1"
MAX_SHOWN_SOURCES, MAX_SHOWN_RUNS = 50, 20
_setting_options = combine_options(
    click.option("-i", "--instructions", metavar="TEXT", help="Instructions for the model, given with every question."),
    click.option("-m", "--model", help="Model for questions in the space."),
    click.option("-e", "--effort", type=click.Choice(["", "s", "m", "l"]), help="Effort: quick, balanced or thorough."),
    click.option("--scope", type=click.Choice(["", "web", "local"]), help="local: its files only, no network access."),
    click.option("--service", "services", multiple=True, metavar="NAME", help="Only this search service; repeatable."),
)
_name = click.argument("name", shell_complete=complete_space)


@click.group("spaces", invoke_without_command=True, context_settings=HELP)
@json_option
@click.pass_context
def _spaces_command(ctx: click.Context, as_json: bool) -> None:
    """List spaces: questions and files that belong together."""
    if ctx.invoked_subcommand:
        return None

    async def list_spaces(nexi: app.Nexi) -> list[tuple[Space, int]]:
        from nexi.app.spaces import list_space_sources

        return [(space, len(await list_space_sources(nexi.ports, space))) for space in nexi.spaces().list_all()]

    spaces = run_with_nexi(list_spaces)
    if as_json:
        return print_json({"schema": SCHEMA, "spaces": [{**msgspec.to_builtins(s), "sources": n} for s, n in spaces]})
    if not spaces:
        return write("No spaces. Add one: nexi spaces add NAME PATH\n", sys.stderr)
    for space, count in spaces:
        parts = [f"{count} source{'s' * (count != 1)}", *_describe_defaults(space)]
        write(f"{space.address}  {clean_line(' · '.join(parts))}\n")
    return None


@_spaces_command.command("add", context_settings=HELP)
@_name
@click.argument("targets", nargs=-1, metavar="[PATH|DIR|URL]...")
@_setting_options
def _add_command(name: str, targets: tuple[str, ...], **settings: Any) -> None:
    """Add a space, with files and pages to search first."""
    from nexi.app.intake import DocumentIndexing

    async def add_space(nexi: app.Nexi) -> None:
        space = Space(name, **_drop_unset(settings))
        nexi.spaces().add(space)
        indexing = DocumentIndexing(nexi, nexi.knowledge(), tags=(space.tag,))
        for target in targets:
            await indexing.take(target)
        skipped = (f"{source} was skipped: {reason}" for source, reason in indexing.taken.skipped)
        for warning in (*indexing.taken.warnings, *skipped):
            print_warning(warning)
        if targets:
            write(f"Indexed {indexing.taken.outcomes.total()} sources\n", sys.stderr)

    run_with_nexi(add_space)
    print_success(f'Added the space {name}. Ask in it: nexi --space {name} "your question"')


@_spaces_command.command("set", context_settings=HELP)
@_name
@_setting_options
def _set_command(name: str, **settings: Any) -> None:
    """Change the instructions or defaults of a space; an empty value removes one."""
    if not (changes := _drop_unset(settings)):
        raise click.UsageError("name what to change, for example --instructions")

    async def change_space(nexi: app.Nexi) -> None:
        nexi.spaces().change(msgspec.structs.replace(nexi.spaces().get(name), **changes))

    run_with_nexi(change_space)
    print_success(f"Changed the space {name}.")


@_spaces_command.command("show", context_settings=HELP)
@_name
@json_option
def _show_command(name: str, as_json: bool) -> None:
    """Show a space with its files, pages and questions."""

    async def read_space(nexi: app.Nexi) -> tuple[Space, list[StoredSource], list[app.RunSummary]]:
        from nexi.app.spaces import list_space_sources

        space = nexi.spaces().get(name)
        runs = [run for run in nexi.runs().list_runs() if run.space == space.address]
        return space, await list_space_sources(nexi.ports, space), runs[:MAX_SHOWN_RUNS]

    space, sources, runs = run_with_nexi(read_space)
    if as_json:
        contents = {"sources": [{"url": s.url, "title": s.title} for s in sources], "runs": [r.id for r in runs]}
        return print_json({"schema": SCHEMA, "space": {**msgspec.to_builtins(space), **contents}})
    lines = [space.address, *(f"  {text}" for text in _describe_defaults(space))]
    if space.instructions:
        lines += ["", "Instructions:", clean_text(space.instructions)]
    if sources:
        lines += ["", "Files and pages:"]
        lines += [f"  {clean_line(s.title or s.url)}  {clean_line(s.url)}" for s in sources[:MAX_SHOWN_SOURCES]]
        more = len(sources) - MAX_SHOWN_SOURCES
        lines += [f"  (+{more} more)"] if more > 0 else []
    if runs:
        lines += ["", "Questions:", *(f"  {run.id}  {clean_line(run.query)[:70]}" for run in runs)]
    return write("\n".join(lines) + "\n")


@_spaces_command.command("rm", context_settings=HELP)
@_name
@flag("--with-files", help="Also forget its files and pages, except those of other spaces.")
def _remove_command(name: str, with_files: bool) -> None:
    """Remove a space. Its questions stay in the history, its files in the knowledge base."""
    from nexi.app.spaces import remove_space

    count = run_with_nexi(lambda nexi: remove_space(nexi.ports, name, deletes_files=with_files))
    source_note = f" and {count} of its sources" if with_files else ""
    print_success(f"Removed the space {name}{source_note}.")


def _drop_unset(settings: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in settings.items() if value is not None and value != ()}
    services = values.get("services")
    return values | ({"services": tuple(filter(None, services))} if services else {})


def _describe_defaults(space: Space) -> list[str]:
    defaults = (space.model, f"effort {space.effort}" if space.effort else "", f"scope {space.scope}" if space.scope else "")
    return [text for text in (*defaults, ", ".join(space.services)) if text]
