"""The options that filter a search: how many hits, which sites, how recent, what kind. Shared by a question and `find`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_HITS = 100

FOCUS_KINDS = ("docs", "discussions", "papers", "code", "news", "places")


def filter_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _parse_sites(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_parse_site(value) for value in values)


def _parse_site(value: str) -> str:
    """A site as search services take it: a host and perhaps a path, with `-` in front to exclude it."""
    import re

    text = value.strip().removeprefix("=")
    is_excluded, site = text.startswith("-"), re.sub(r"^[a-z]+://", "", text.removeprefix("-").lower()).rstrip("/")
    if not re.fullmatch(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[^\s\"']*)?", site):
        raise click.BadParameter(f"{value!r} is not a site; write it like example.com, or -example.com to exclude it")
    return f"-{site}" if is_excluded else site


_OPTIONS = (
    click.option("-n", "--num", type=click.IntRange(1, MAX_HITS), metavar="N", help="Maximum number of hits per query."),
    click.option(
        "-w",
        "--site",
        "sites",
        multiple=True,
        metavar="SITE",
        callback=_parse_sites,
        help="Search only SITE; -SITE excludes it.",
    ),
    click.option(
        "-t",
        "--time",
        "time_range",
        type=click.Choice(["d", "w", "m", "y"]),
        help="Only from the last day, week, month or year.",
    ),
    click.option("--focus", type=click.Choice(FOCUS_KINDS), help="Prefer this kind of source."),
)
