"""`--save [vault]`: where a report goes besides the screen. The word after it is a place only if it is `vault`."""

from __future__ import annotations

import click

PLACES = ("folder", "vault")

save_option = click.option(
    "--save",
    type=click.Choice(PLACES),
    is_flag=False,
    flag_value="folder",
    metavar="[vault]",
    help="Save the answer as a report file, as research does; `--save vault` as a note of your vault.",
)


class SavingCommand(click.Command):
    """A command with `--save`, after which a question may follow at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `--save` and its place become one word, so that the parser does not take the question for it
        words: list[str] = []
        for number, word in enumerate(args):
            if word == "--":
                return super().parse_args(ctx, words + args[number:])
            if word == "vault" and number and args[number - 1] == "--save":
                words[-1] = "--save=vault"
            else:
                words.append("--save=folder" if word == "--save" else word)
        return super().parse_args(ctx, words)
