"""The command line: parses, calls the app and shows events. It decides nothing.

A subcommand is imported when it is called, and heavy modules by the function that needs them, so that `nexi --help` is instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from nexi import __version__
from nexi.cli import flags as shared
from nexi.cli.flags import COMMANDS

if TYPE_CHECKING:
    from nexi.cli.completion import Completion

MODULES: Mapping[str, str] = shared.TABLES["modules"]  # of subcommands that are not in the module of their name in nexi.cli
_EARLIER_NAMES: Mapping[str, str] = shared.TABLES["earlier_names"]  # which programs for earlier versions import from here

_OTHER_USAGE_ERRORS = (click.BadParameter, click.NoSuchOption, click.BadOptionUsage, click.BadArgumentUsage)


class _QuestionGroup(click.Group):
    """A group that takes its first word as the start of a question unless it names a subcommand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module = import_module(MODULES.get(cmd_name, f"nexi.cli.{cmd_name}"))
        commands = (value for value in vars(module).values() if isinstance(value, click.Command) and value.name == cmd_name)
        command: click.Command = next(commands, None) or getattr(module, f"{cmd_name}_command")  # the team's are loaded by name
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            from nexi.cli.manual import resolve_typo

            args = resolve_typo(args, COMMANDS)
        if not args or args[0] not in COMMANDS:
            args = ["ask", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and report its errors; explain stray words, which may have been meant as a question."""
        from nexi.cli.exits import report_errors

        try:
            with report_errors():
                return super().invoke(ctx)
        except click.UsageError as error:
            # a subcommand may have got words that it cannot use: `nexi open source software`
            if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
                has_stray_words = isinstance(error.param, click.Argument)
            else:
                has_stray_words = not isinstance(error, _OTHER_USAGE_ERRORS)
            if not has_stray_words or ctx.invoked_subcommand not in COMMANDS:
                raise
            hint = f'To ask a question that starts with this word, quote it: nexi "{ctx.invoked_subcommand} ..."'
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx=error.ctx) from error


class _QuestionContext(click.Context):
    """Names the command in usage errors as it is typed: `nexi`, not `nexi ask`."""

    @property
    def command_path(self) -> str:
        return "nexi"


class _QuestionCommand(shared.SavingCommand):
    """A question; its help groups the options under headings and lists the subcommands."""

    context_class = _QuestionContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from nexi.cli.manual import write_help

        write_help(self, ctx, formatter)


def _lazy_completion(name: str) -> Completion:
    """A completion function, whose module is imported when a shell asks."""
    return lambda ctx, param, incomplete: getattr(import_module("nexi.cli.completion"), name)(ctx, param, incomplete)


@click.group(cls=_QuestionGroup, add_help_option=False)
def main() -> None:
    """Ask the web, keep what you learn, prove every sentence."""


@main.command("ask", cls=_QuestionCommand, context_settings=shared.HELP)
@click.argument("words", nargs=-1, metavar='"QUESTION"', shell_complete=_lazy_completion("_complete_first_word"))
@click.option("-q", "--query-text", help="Pass the question as an option.")
@click.option("-e", "--effort", type=click.Choice(["s", "m", "l"]), help="Effort: quick, balanced or thorough.")
@click.option("--max-iter", "max_iterations", type=shared.COUNT, metavar="N", help="Maximum number of iterations.")
@click.option("--time-target", "--max-timeout", type=shared.MORE_THAN_ZERO, metavar="S", help="Aim to answer within S seconds.")
@click.option("--max-len", "max_output_tokens", type=shared.COUNT, metavar="N", help="Maximum length of the answer in tokens.")
@click.option("-m", "--model", help="Model to use; `extractive` is built in.")
@click.option("-s", "--system", metavar="TEXT", help="Instructions for the model.")
@click.option("--template", metavar="NAME", shell_complete=_lazy_completion("complete_template"), help="Use a saved template.")
@shared.flag("-c", "--continue", "go_on", help="Continue the last conversation.")
@shared.filter_options
@shared.source_options
@click.option("--space", metavar="NAME", shell_complete=_lazy_completion("complete_space"), help="Ask in this space.")
@shared.cost_options
@shared.flag("--deep", help="Research in rounds and write a report, as research does.")
@shared.research_options
@shared.flag("--strict", help="Omit sentences that are not found in the pages, or that a judge rejects.")
@shared.screen_options
@shared.flag("--no-stream", help="Print the answer only when it is complete.")
@shared.json_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "json", "ris", "bibtex", "csl"]),
    help="Output format: Markdown, JSON, or only the sources as references.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the answer to a new FILE; - for stdout.")
@shared.save_option
@shared.flag("--copy", help="Copy the answer to the clipboard.")
@shared.flag("-u", "--usage", help="Print time, tokens and cost, even when piped.")
@click.option("--last", type=shared.COUNT, metavar="N", help="Show the last N searches.")
@shared.flag("--prev", help="Show the last answer.")
@click.option("--show", metavar="ID", shell_complete=_lazy_completion("complete_history"), help="Show the answer with this ID.")
@shared.flag("--clear-history", help="Delete all search history.")
@shared.flag("--config", "show_config", help="Print the path of the config file.")
@shared.flag("--edit-config", help="Open the config file in an editor.")
@click.version_option(__version__, "--version", prog_name="nexi")
def _ask_command(words: tuple[str, ...], **options: Any) -> None:
    """Ask the web, keep what you learn, prove every sentence.

    \b
      nexi "how do rust async traits work"
      echo "what is the capital of france" | nexi --plain
      nexi                    (interactive prompt)
      nexi demo               (try it with no key and no network)
    """
    from nexi.cli.ask import dispatch_question
    from nexi.cli.exits import report_errors

    flags = shared.parse_flags(options)
    with report_errors(as_json=flags.output.as_json):
        dispatch_question(words, flags)


def __getattr__(name: str) -> Any:
    if name not in _EARLIER_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EARLIER_NAMES[name]), name)
