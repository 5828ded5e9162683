"""`nexi completion`: the script that completes subcommands and options, and how IDs and names are completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem, get_completion_class

from nexi.cli.flags import COMMANDS
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.output import write

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

INSTALL_LINES = {
    "bash": 'eval "$(nexi completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(nexi completion zsh)" in ~/.zshrc',
    "fish": "nexi completion fish > ~/.config/fish/completions/nexi.fish",
}
MAX_COMPLETED = 50  # runs or answers, the latest


def _complete_first_word(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    if ctx.params.get("words"):
        return []
    return [CompletionItem(n, help=COMMANDS[n]) for n in sorted(COMMANDS) if n.startswith(incomplete)]


def _complete_names(list_names: Callable[[], list[tuple[str, str]]]) -> Completion:
    """Complete with the names that begin as what was typed, and what they stand for; none where they cannot be read."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name, help=about) for name, about in list_names() if name.startswith(incomplete)]
        except NexiError:
            return []

    return complete


@_complete_names
def complete_run() -> list[tuple[str, str]]:
    """The IDs of recent runs, newest first, with state and question."""
    from nexi.app.history import open_runs

    runs = open_runs(load_config()).list_runs(MAX_COMPLETED)
    return [(run.id, f"{run.state}: {' '.join(run.query.split())[:60]}") for run in runs]


@_complete_names
def complete_history() -> list[tuple[str, str]]:
    from nexi.app.history import get_last_n_entries

    return [(e.id, " ".join(e.query.split())[:60]) for e in get_last_n_entries(MAX_COMPLETED) if e.id.isalnum()]


@_complete_names
def complete_space() -> list[tuple[str, str]]:
    from nexi.app.factory import open_spaces

    return [(space.name, "") for space in open_spaces(load_config()).list_all()]


@_complete_names
def complete_template() -> list[tuple[str, str]]:
    from nexi.cli.templates import list_templates

    return [(template.name, template.first_line) for template in list_templates()]


@click.command("completion", epilog="\b\n" + "\n".join(f"{shell}: {line}" for shell, line in INSTALL_LINES.items()))
@click.argument("shell", type=click.Choice(list(INSTALL_LINES)))
def _completion_command(shell: str) -> None:
    """Print the completion script for a shell."""
    kind = get_completion_class(shell)
    if kind is None:  # only a shell that is no choice
        raise click.UsageError(f"no completion for {shell}")
    maker = kind(click.get_current_context().find_root().command, {}, "nexi", "_NEXI_COMPLETE")
    # not click's `source()`, whose version check needs that shell installed
    write(str(maker.source_template % maker.source_vars()) + "\n")
