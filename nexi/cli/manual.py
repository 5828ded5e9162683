"""The man page `nexi(1)`, generated from the options and subcommands.

    python -m nexi.cli.manual > man/nexi.1

A test keeps the page in `man/` up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from nexi.cli import COMMANDS, main
from nexi.cli.guide import group_options

ABOUT = "ask the web, keep what you learn, prove every sentence"
DESCRIPTION = (
    "nexi searches the web, reads pages, and answers with citations of pages it has read. The question is the argument, "
    "the option \\-q, or stdin, in this order; on a terminal without a question nexi starts an interactive prompt. Data "
    "goes to stdout, everything else to stderr. Nothing prompts unless stdin is a terminal."
)
EXITS = (
    ("0", "Success."),
    ("1", "Failure."),
    ("2", "Usage or configuration error."),
    ("5", "No evidence: no page was read, so there is no answer, or a verification failed."),
    ("6", "Not answered: the pages that were read do not answer the question; the closest passages were printed."),
    ("7", "Contradicted: for verify, a page says otherwise than a sentence."),
    ("130", "Ctrl\\-C."),
    ("143", "SIGTERM."),
)
FILES = (
    ("config.json", "settings; nexi config path prints its location"),
    ("history.jsonl", "past answers"),
    ("runs/, pages/", "logs of runs, and the texts of pages they read"),
    ("templates/NAME.md", "instructions for \\-\\-template NAME"),
)


def render_manual() -> str:
    lines = ['.TH NEXI 1 "" "nexi" "User commands"', ".SH NAME", f"nexi \\- {ABOUT}", ".SH SYNOPSIS", ".B nexi"]
    lines += ['[\\fIOPTIONS\\fR] "\\fIQUESTION\\fR"', ".br", ".B nexi", "\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]"]
    lines += [".SH DESCRIPTION", DESCRIPTION, ".SH OPTIONS"]
    question, ctx = _load_command("ask")
    for heading, params in group_options(question, ctx):
        lines.append(f".SS {heading}")
        lines += [line for param in params for line in _param_lines(param, ctx)]
    lines.append(".SH COMMANDS")
    for name in sorted(COMMANDS):
        command, ctx = _load_command(name)
        lines += _command_lines(command, ctx, f"nexi {name}")
        for inner, child in sorted(command.commands.items()) if isinstance(command, click.Group) else []:
            lines += _command_lines(child, click.Context(child, info_name=inner, parent=ctx), f"nexi {name} {inner}")
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXITS:
        lines += [".TP", f".B {code}", meaning]
    lines.append(".SH FILES")
    for name, meaning in FILES:
        lines += [".TP", f".I {name}", meaning]
    return "\n".join(lines) + "\n"


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
    kind = command.context_class
    return command, kind(command, info_name=name, parent=root, **command.context_settings)


def _escape_roff(text: str) -> str:
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-").replace("`", ""))


if __name__ == "__main__":
    sys.stdout.write(render_manual())
