"""The man page `nexi(1)`, generated from the options and subcommands.

    python -m nexi.cli.manual > man/nexi.1

A test keeps the page in `man/` up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from nexi.cli import COMMANDS, main
from nexi.cli.guide import group_options


def _render_manual() -> str:
    options: list[str] = []
    commands: list[str] = []
    question, ctx = _load_command("ask")
    for heading, params in group_options(question, ctx):
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
