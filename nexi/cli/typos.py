"""Recognises a mistyped subcommand, so that it does not become a search that costs something."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

from nexi.cli.exits import EXIT_USAGE

MIN_LETTERS = 4


def resolve_typo(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments, with a mistyped first word replaced if the user says so. Raises UsageError off a terminal."""
    word, *rest = arguments
    command = find_meant_command(arguments, commands)
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


def find_meant_command(words: Sequence[str], commands: Collection[str]) -> str | None:
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
