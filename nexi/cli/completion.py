"""`nexi completion`: the script that completes subcommands, options, IDs and templates; also the completion of IDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INSTALL_LINES = {
    "bash": 'eval "$(nexi completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(nexi completion zsh)" in ~/.zshrc',
    "fish": "nexi completion fish > ~/.config/fish/completions/nexi.fish",
}


MAX_COMPLETED_RUNS = 50


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the IDs of recent runs, newest first, with state and question."""
    from click.shell_completion import CompletionItem

    from nexi.app.history import open_runs
    from nexi.config import load_config
    from nexi.errors import NexiError

    try:
        runs = open_runs(load_config()).list_runs(MAX_COMPLETED_RUNS)
    except NexiError:
        return []
    return [
        CompletionItem(run.id, help=f"{run.state}: {' '.join(run.query.split())[:60]}")
        for run in runs
        if run.id.startswith(incomplete)
    ]


def complete_history(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the IDs of recent answers, with their questions."""
    from click.shell_completion import CompletionItem

    from nexi.app.history import get_last_n_entries
    from nexi.errors import NexiError

    try:
        entries = get_last_n_entries(50)
    except NexiError:
        return []
    return [
        CompletionItem(e.id, help=" ".join(e.query.split())[:60])
        for e in entries
        if e.id.isalnum() and e.id.startswith(incomplete)
    ]


def complete_space(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of spaces."""
    from click.shell_completion import CompletionItem

    from nexi.app.factory import open_spaces
    from nexi.config import load_config
    from nexi.errors import NexiError

    try:
        spaces = open_spaces(load_config()).list_all()
    except NexiError:
        return []
    return [CompletionItem(space.name) for space in spaces if space.name.startswith(incomplete)]


@click.command("completion", epilog="\b\n" + "\n".join(f"{shell}: {line}" for shell, line in INSTALL_LINES.items()))
@click.argument("shell", type=click.Choice(list(INSTALL_LINES)))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from nexi.cli.exits import report_errors
    from nexi.output import write

    with report_errors():
        kind = get_completion_class(shell)
        if kind is None:  # only a shell that is no choice
            raise click.UsageError(f"no completion for {shell}")
        maker = kind(click.get_current_context().find_root().command, {}, "nexi", "_NEXI_COMPLETE")
        # not click's `source()`, whose version check needs that shell installed
        write(str(maker.source_template % maker.source_vars()) + "\n")
