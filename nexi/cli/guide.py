"""What `nexi --help`, the man page and shell completion show: headings for the options and a line for each subcommand.

The options and subcommands are defined in `nexi.cli`; the lines are repeated here so that help imports no subcommand. A
test keeps them equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from nexi.cli import COMMANDS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["group_options", "write_help"]


SUMMARIES: Mapping[str, str] = {
    "admin": "Manage the people, tokens, quotas and runs of a team server.",
    "agentic": "Find passages in the knowledge base, and on the web what is missing.",
    "bench": "Ask the questions in FILE and score the answers.",
    "completion": "Print the completion script for a shell.",
    "config": "Show, change and set up the configuration.",
    "demo": "Ask nexi's own handbook: no API key, no network.",
    "doctor": "Check the setup and suggest fixes.",
    "evidence": "Show the passages behind source N of the last answer, or behind all its sources.",
    "export": "Export the answer of a run, or with --bundle the whole run.",
    "fetch": "Fetch a page and print it as Markdown.",
    "find": "Search and print the hits, without an answer.",
    "history": "List, search, show and delete past answers.",
    "index": "Index files, folders, URLs or a sitemap.",
    "mcp": "Run the MCP server on stdin and stdout, or over HTTP.",
    "models": "List the available models.",
    "open": "Open source N of the last answer in the browser.",
    "proof": "Install, inspect and remove a local model that checks sentences against their sources.",
    "replay": "Replay a finished run from its log, offline, and compare the answers.",
    "research": "Research a question in rounds and write a report.",
    "resume": "Resume a run that was interrupted, stopped, or ended by a limit or a failing provider.",
    "runs": "List runs, newest first.",
    "searxng": "Start, stop and inspect a local SearXNG container.",
    "serve": "Run the HTTP server: web page, runs, and the OpenAI, SearXNG, Tavily and Open WebUI APIs.",
    "sources": "List indexed sources, newest first.",
    "spaces": "List spaces: questions and files that belong together.",
    "stop": "Tell a running run to answer now with what it has read.",
    "table": "Extract values from documents into a table, each with its quote.",
    "templates": "List the saved templates.",
    "token": "Print the token that a server on this machine knows its owner by.",
    "verify": "Check a text sentence by sentence, or audit the citations of a report.",
    "work": "Run the questions of a team server, with any number of other workers.",
}
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Research": ("deep", "depth", "plan", "yes"),
    "Output": ("verbose", "plain", "no_stream", "as_json", "form", "output", "copy", "usage"),
    "History": ("last", "prev", "show", "clear_history"),
    "Configuration": ("show_config", "edit_config", "version", "help"),
}
HEADING_ORDER = ("Search", *HEADINGS)


def group_options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
    """Yield the options of a question by heading."""
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
        formatter.write_dl([(name, SUMMARIES.get(name, "")) for name in sorted(COMMANDS)], col_max=28)


def complete_first_word(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a subcommand as the first word."""
    from click.shell_completion import CompletionItem

    if ctx.params.get("words"):
        return []
    return [CompletionItem(n, help=SUMMARIES.get(n, "")) for n in sorted(COMMANDS) if n.startswith(incomplete)]
