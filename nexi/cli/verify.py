"""`nexi verify`: checks an answer, a report or any Markdown with links against its pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import report_errors

if TYPE_CHECKING:
    from nexi.app import Target
    from nexi.checking.recheck import Verification

EXIT_NOT_VERIFIED = 5


@click.command("verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", metavar="FILE|ID")
@click.option("--refetch", is_flag=True, help="Fetch the pages again and report which are gone or changed.")
@click.option("--strict", is_flag=True, help="Also fail for sentences that cite nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Also show sentences that were found.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify_command(target: str, refetch: bool, strict: bool, verbose: bool, as_json: bool) -> None:
    """Check an answer, a report or any Markdown with links against the pages it cites.

    FILE can be - for stdin; ID is the ID of an answer or run.
    """
    from nexi.output import print_json, write
    from nexi.output.proof import verification_json, verification_markdown

    with report_errors(as_json=as_json):
        found = _verify_target(_read_target(target), refetch=refetch)
        if as_json:
            print_json(verification_json(found, target, strict=strict))
        else:
            write(verification_markdown(found, target, strict=strict, verbose=verbose))
        if found.failed(strict=strict):
            raise SystemExit(EXIT_NOT_VERIFIED)


def _read_target(target: str) -> Target:
    """Read a file or stdin; anything else is the ID of a run. Raises NexiError."""
    from nexi.app import Target
    from nexi.errors import StoreError
    from nexi.files import is_existing_path

    path = Path(target).expanduser()
    try:
        if target == "-":
            return Target(text=sys.stdin.buffer.read().decode("utf-8", "replace"))
        if is_existing_path(path) and path.is_file():
            return Target(text=path.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        cause = error.strerror or str(error)
        raise StoreError(f"cannot read {path}", cause=cause, fix="check the path and its permissions") from error
    return Target(id=target)


def _verify_target(target: Target, *, refetch: bool) -> Verification:
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def go() -> Verification:
        async with Nexi(load_config()) as nexi:
            return await nexi.verify(target, refetch=refetch)

    return asyncio.run(go())
