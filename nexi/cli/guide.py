"""What `nexi --help` and the man page show: the options of `nexi.cli` under headings, and its subcommands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from nexi.cli import COMMANDS

__all__ = ["group_options", "write_help"]


HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Research": ("deep", "depth", "plan", "yes"),
    "Output": ("verbose", "plain", "no_stream", "as_json", "form", "output", "copy", "usage"),
    "History": ("last", "prev", "show", "clear_history"),
    "Configuration": ("show_config", "edit_config", "version", "help"),
}
HEADING_ORDER = ("Search", *HEADINGS)


def group_options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
    heading_by_name = {name: heading for heading, names in HEADINGS.items() for name in names}
    groups: dict[str, list[click.Parameter]] = {heading: [] for heading in HEADING_ORDER}
    for param in command.get_params(ctx):
        if isinstance(param, click.Option) and not param.hidden:
            groups[heading_by_name.get("help" if "--help" in param.opts else param.name or "", "Search")].append(param)
    yield from ((heading, params) for heading, params in groups.items() if params)


def write_help(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    for heading, params in group_options(command, ctx):
        with formatter.section(heading):
            # the help text without what click adds to it
            rows = [(record[0], str(getattr(p, "help", "") or "")) for p in params if (record := p.get_help_record(ctx))]
            formatter.write_dl(rows, col_max=28)
    with formatter.section("Commands (nexi COMMAND --help for details)"):
        formatter.write_dl([(name, COMMANDS[name]) for name in sorted(COMMANDS)], col_max=28)
