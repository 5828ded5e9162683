"""Asks at the terminal what a question means before it is researched, where it leaves that open.

In a pipe nothing is asked, and the report is about each reading.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nexi.answers.answered import narrow_question
from nexi.cli.exits import EXIT_CANCELLED
from nexi.cli.runner import run_with_nexi
from nexi.output import print_note, write
from nexi.text.controls import clean_line

if TYPE_CHECKING:
    from nexi.app import RunRequest
    from nexi.app.open_question import OpenQuestion
    from nexi.config import Config

ALL = "0"


def ask_back(config: Config, request: RunRequest) -> str:
    """The question as the user means it; unchanged where it is clear, or where the user wants all that it may mean."""
    open_question = run_with_nexi(lambda nexi: nexi.find_open_question(request), config)
    if not open_question:
        return request.question
    print_note(describe_choices(open_question), None)
    write("> ", sys.stderr)
    try:
        reply = sys.stdin.readline()
    except KeyboardInterrupt:
        raise SystemExit(EXIT_CANCELLED) from None
    if not reply:
        raise click.Abort
    return narrow_by_reply(request.question, open_question, reply.strip())


def describe_choices(open_question: OpenQuestion) -> str:
    """The question back, with the number of each reading."""
    if open_question.kind:
        return f"Which {open_question.kind} do you mean? Type its name, or {ALL} to research the question as it is."
    choices = [f"{number} {clean_line(reading)}" for number, reading in enumerate(open_question.readings, 1)]
    return f"Which one do you mean? Type its number: {' · '.join((*choices, f'{ALL} all of them'))}"


def narrow_by_reply(question: str, open_question: OpenQuestion, reply: str) -> str:
    """The question about the reading of that number, or about what was typed; unchanged for all of them."""
    readings = open_question.readings
    if reply.isdecimal() and 0 < int(reply) <= len(readings):
        return narrow_question(question, readings[int(reply) - 1])
    return question if reply in ("", ALL) or reply.isdecimal() else narrow_question(question, reply)
