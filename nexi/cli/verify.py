"""`nexi verify`: checks a text sentence by sentence, or audits the citations of a report that any tool wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from nexi import app
from nexi.cli.delivery import write_export
from nexi.cli.exits import EXIT_CONTRADICTED, EXIT_NOT_VERIFIED, report_errors
from nexi.cli.flags import HELP, MORE_THAN_ZERO, cost_options, flag, json_option
from nexi.cli.runner import run_with_nexi
from nexi.config import load_config
from nexi.errors import StoreError
from nexi.files import expand_home, is_existing_path
from nexi.output import write
from nexi.urls import is_web_url


@click.command("verify", context_settings=HELP)
@click.argument("target", metavar="FILE|URL|ID")
@flag("--audit", help="Follow the links of a report; give precision and recall of its citations.")
@click.option("-f", "--against", multiple=True, metavar="PATH", help="Check against this file, folder or URL.")
@flag("--web", help="Search the web for what cites nothing.")
@flag("--local", help="Use stored pages and local models only; no network access.")
@flag("--refetch", help="Fetch the pages again and report which are gone or changed.")
@flag("--strict", help="Also fail for sentences that cite nothing.")
@click.option("--time-target", type=MORE_THAN_ZERO, metavar="S", help="Stop searching and judging after S seconds.")
@cost_options
@flag("-v", "--verbose", help="Also show sentences that were found, with their passages.")
@json_option
@click.option("--format", "form", type=click.Choice(["md", "json", "html"]), help="Output format; html is one page.")
@click.option("-o", "--output", metavar="FILE", help="Write to a new FILE; - for stdout.")
def _verify_command(
    target: str,
    audit: bool,
    against: tuple[str, ...],
    web: bool,
    local: bool,
    refetch: bool,
    strict: bool,
    verbose: bool,
    as_json: bool,
    form: str | None,
    output: str | None,
    **limits: Any,
) -> None:
    """Check a text sentence by sentence against the pages it cites, or against others.

    FILE can be - for stdin; ID is the ID of an answer or run. A text without citations is checked against what --against
    names, what --web finds, or the knowledge base. The exit code is 7 if a page contradicts a sentence, and 5 if a sentence
    is not found in its pages.

    \b
      nexi verify answer.md
      nexi verify notes.txt --against paper.pdf --against https://example.org/page
      nexi verify --audit report.md --format html -o audit.html
    """
    from nexi.exports import export_verification
    from nexi.output.proof import verification_json, verification_markdown

    form_by_suffix = {".json": "json", ".html": "html", ".htm": "html"}
    form = form or ("json" if as_json else form_by_suffix.get(Path(output or "").suffix.lower(), "md"))
    if audit and (against or web or local):
        raise click.UsageError("--audit checks citations against the pages they name; leave --against, --web and --local out")
    if local and web:
        raise click.UsageError("--local and --web contradict each other")
    with report_errors(as_json=form == "json"):
        request = app.VerifyRequest(_read_target(target), against, web, audit, refetch, local, app.RunLimits(**limits))
        verification = run_with_nexi(lambda nexi: nexi.verify(request))
        name = "stdin" if target == "-" else target
        if form == "html":
            text = export_verification(verification, name, strict=strict)
        elif form == "json":
            text = json.dumps(verification_json(verification, name, strict=strict), ensure_ascii=False, indent=2) + "\n"
        else:
            text = verification_markdown(verification, name, strict=strict, verbose=verbose)
        if output and output != "-":
            write_export(text.encode("utf-8", "replace"), output, "the verification")
        else:
            write(text)
        if verification.is_contradicted:
            raise SystemExit(EXIT_CONTRADICTED)
        if verification.failed(strict=strict):
            raise SystemExit(EXIT_NOT_VERIFIED)


def _read_target(target: str) -> app.Target:
    """Read a file or stdin; an address is a page, and anything else is the ID of a run. Raises NexiError."""
    import asyncio

    from nexi.formats import find_format, sniff_type

    if is_web_url(target):
        return app.Target(url=target.strip())
    path = expand_home(target)
    try:
        if target == "-":
            return app.Target(text=sys.stdin.buffer.read().decode("utf-8", "replace"))
        if is_existing_path(path) and path.is_file():
            data = path.read_bytes()
            file_format = find_format(sniff_type(data))
            if file_format is None or file_format.is_text:
                return app.Target(text=data.decode("utf-8", "replace"))
            # of a PDF, Word file or the like, what it says
            from nexi.app.documents import read_document

            return app.Target(text=asyncio.run(read_document(path, str(path), load_config().ocr_languages)).text)
    except OSError as error:
        cause = error.strerror or str(error)
        raise StoreError(f"cannot read {path}", cause=cause, fix="check the path and its permissions") from error
    return app.Target(id=target)
