"""The options that narrow a search: how many hits, which sites, how recent, what kind. Shared by a question and by `find`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from nexi.types import Query

Command = TypeVar("Command", bound=Callable[..., Any])

MOST_HITS = 100


def narrowing(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def query_of(text: str, options: dict[str, Any]) -> Query:
    """The query these options ask for."""
    from nexi.types import Query

    sites: tuple[str, ...] = options.get("sites") or ()
    return Query(
        text,
        count=options.get("num") or Query.count,
        sites=tuple(s for s in sites if not s.startswith("-")),
        excluded_sites=tuple(s[1:] for s in sites if s.startswith("-")),
        time_range=options.get("time_range") or "",
        focus=options.get("focus") or "",
    )


def _sites(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_site(value) for value in values)


def _site(value: str) -> str:
    """A site as search services know it: a host and perhaps a path, with `-` in front to leave it out."""
    import re

    text = value.strip().removeprefix("=")
    without, site = text.startswith("-"), re.sub(r"^[a-z]+://", "", text.removeprefix("-").lower()).rstrip("/")
    if not re.fullmatch(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[^\s\"']*)?", site):
        raise click.BadParameter(f"{value!r} is not a site; write it like example.com, or -example.com to leave it out")
    return f"-{site}" if without else site


_OPTIONS = (
    click.option("-n", "--num", type=click.IntRange(1, MOST_HITS), metavar="N", help="At most N hits per query."),
    click.option("-w", "--site", "sites", multiple=True, metavar="SITE", callback=_sites, help="Only SITE; -SITE without it."),
    click.option("-t", "--time", "time_range", type=click.Choice(["d", "w", "m", "y"]), help="Of the last day, week, ..."),
    click.option("--focus", type=click.Choice(["docs", "discussions", "papers", "code"]), help="Look among these first."),
)
