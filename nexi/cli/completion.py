"""`nexi completion`: the script that completes subcommands, options, history IDs and templates."""

from __future__ import annotations

import click

INSTALL_LINES = {
    "bash": 'eval "$(nexi completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(nexi completion zsh)" in ~/.zshrc',
    "fish": "nexi completion fish > ~/.config/fish/completions/nexi.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(f"{shell}: {line}" for shell, line in INSTALL_LINES.items()))
@click.argument("shell", type=click.Choice(list(INSTALL_LINES)))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell."""
    from nexi.cli.exits import report_errors
    from nexi.output import write

    with report_errors():
        write(_completion_script(shell) + "\n")


def _completion_script(shell: str) -> str:
    """The script as click writes it, without click's version check, which needs that shell installed."""
    from click.shell_completion import get_completion_class

    from nexi.cli import main

    kind = get_completion_class(shell)
    if kind is None:  # only a shell that is no choice
        raise click.UsageError(f"no completion for {shell}")
    maker = kind(main, {}, "nexi", "_NEXI_COMPLETE")
    return str(maker.source_template % maker.source_vars())
