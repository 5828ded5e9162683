"""What `nexi --help` and the man page show: the options of `nexi.cli` under headings, and its subcommands.

Also recognises a mistyped subcommand, so that it does not become a search that costs something. A test keeps the man page
`nexi(1)` up to date, which is generated:

    python -m nexi.cli.manual > man/nexi.1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import click

from nexi.cli import main
from nexi.cli.exits import EXIT_USAGE
from nexi.cli.flags import COMMANDS

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Research": ("deep", "depth", "plan", "yes"),
    "Output": ("verbose", "plain", "no_stream", "as_json", "form", "output", "copy", "usage"),
    "History": ("last", "prev", "show", "clear_history"),
    "Configuration": ("show_config", "edit_config", "version", "help"),
}
MIN_LETTERS = 4  # of a word before other words


def _group_options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, list[click.Parameter]]]:
    heading_by_name = {name: heading for heading, names in HEADINGS.items() for name in names}
    groups: dict[str, list[click.Parameter]] = {heading: [] for heading in ("Search", *HEADINGS)}
    for param in command.get_params(ctx):
        if isinstance(param, click.Option) and not param.hidden:
            groups[heading_by_name.get("help" if "--help" in param.opts else param.name or "", "Search")].append(param)
    yield from ((heading, params) for heading, params in groups.items() if params)


def write_help(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    for heading, params in _group_options(command, ctx):
        with formatter.section(heading):
            # the help text without what click adds to it
            rows = [(record[0], str(getattr(p, "help", "") or "")) for p in params if (record := p.get_help_record(ctx))]
            formatter.write_dl(rows, col_max=28)
    with formatter.section("Commands (nexi COMMAND --help for details)"):
        formatter.write_dl([(name, COMMANDS[name]) for name in sorted(COMMANDS)], col_max=28)


def resolve_typo(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments, with a mistyped first word replaced if the user says so. Raises UsageError off a terminal."""
    word, *rest = arguments
    command = _find_meant_command(arguments, commands)
    if command is None:
        return list(arguments)
    suggestion = " ".join(["nexi", command, *rest])
    as_question = f'To ask it as a question: nexi -q "{" ".join(arguments)}"'
    if sys.stdin.isatty() and sys.stderr.isatty():
        if click.confirm(f"Did you mean `{suggestion}`?", default=True, err=True):
            return [command, *rest]
        click.echo(f"Nothing was asked. {as_question}", err=True)
        raise click.exceptions.Exit(EXIT_USAGE)
    raise click.UsageError(f"There is no command {word!r}. Did you mean `{suggestion}`?\n{as_question}")


def _find_meant_command(words: Sequence[str], commands: Collection[str]) -> str | None:
    """The command that the first word is probably a typo of."""
    # a word alone is hardly a question; before other words only one letter may be wrong
    word = words[0]
    if not word.isascii() or not word.isalpha():
        return None
    if len(words) == 1:
        from difflib import get_close_matches

        return next(iter(get_close_matches(word.lower()[:40], commands, n=1, cutoff=0.8)), None)
    if len(word) < MIN_LETTERS or not word.islower():
        return None
    return next((command for command in sorted(commands) if _is_one_letter_off(word, command)), None)


def _is_one_letter_off(word: str, command: str) -> bool:
    if abs(len(word) - len(command)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(word, command, strict=False)) if a != b), min(len(word), len(command)))
    mine, other = word[start:], command[start:]
    if len(mine) == len(other):
        return mine[1:] == other[1:] or (mine[:2] == other[:2][::-1] and mine[2:] == other[2:])
    return mine[1:] == other if len(mine) > len(other) else mine == other[1:]


def _render_manual() -> str:
    options: list[str] = []
    commands: list[str] = []
    question, ctx = _load_command("ask")
    for heading, params in _group_options(question, ctx):
        options.append(f".SS {heading}")
        options += [line for param in params for line in _param_lines(param, ctx)]
    for name in sorted(COMMANDS):
        command, ctx = _load_command(name)
        commands += _command_lines(command, ctx, f"nexi {name}")
        for inner, child in sorted(command.commands.items()) if isinstance(command, click.Group) else []:
            commands += _command_lines(child, click.Context(child, info_name=inner, parent=ctx), f"nexi {name} {inner}")
    page = Path(__file__).with_name("manual.roff").read_text(encoding="utf-8")
    return page.replace("@OPTIONS@", "\n".join(options)).replace("@COMMANDS@", "\n".join(commands))


def _command_lines(command: click.Command, ctx: click.Context, name: str) -> Iterator[str]:
    words = " ".join(p.make_metavar(ctx) for p in command.get_params(ctx) if isinstance(p, click.Argument))
    yield f".SS {_escape_roff(f'{name} {words}'.strip())}"
    paragraphs = [" ".join(block.split()) for block in (command.help or "").replace("\b", "").split("\n\n")]
    for number, paragraph in enumerate(filter(None, paragraphs)):
        yield from ([".PP"] if number else [])
        yield _escape_roff(paragraph)
    for param in command.get_params(ctx):
        if isinstance(param, click.Option) and "--help" not in param.opts:
            yield from _param_lines(param, ctx)


def _param_lines(param: click.Parameter, ctx: click.Context) -> Iterator[str]:
    record = param.get_help_record(ctx)
    if record:
        yield from (".TP", f"\\fB{_escape_roff(record[0])}\\fR", _escape_roff(str(getattr(param, "help", "") or "")))


def _load_command(name: str) -> tuple[click.Command, click.Context]:
    root = click.Context(main, info_name="nexi")
    command = main.get_command(root, name)
    if command is None:
        raise LookupError(name)
    return command, command.context_class(command, info_name=name, parent=root, **command.context_settings)


def _escape_roff(text: str) -> str:
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-").replace("`", ""))


if __name__ == "__main__":
    sys.stdout.write(_render_manual())
