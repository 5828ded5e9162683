"""`nexi verify`: checks a text sentence by sentence, or audits the citations of a report that any tool wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nexi.cli.exits import EXIT_CONTRADICTED, EXIT_NOT_VERIFIED, report_errors

if TYPE_CHECKING:
    from nexi.app import Target, VerifyRequest
    from nexi.checking.recheck import Verification


@click.command("verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", metavar="FILE|URL|ID")
@click.option("--audit", is_flag=True, help="Follow the links of a report; give precision and recall of its citations.")
@click.option("-f", "--against", multiple=True, metavar="PATH", help="Check against this file, folder or URL.")
@click.option("--web", is_flag=True, help="Search the web for what cites nothing.")
@click.option("--local", is_flag=True, help="Use stored pages and local models only; no network access.")
@click.option("--refetch", is_flag=True, help="Fetch the pages again and report which are gone or changed.")
@click.option("--strict", is_flag=True, help="Also fail for sentences that cite nothing.")
@click.option(
    "--time-target", type=click.FloatRange(0, min_open=True), metavar="S", help="Stop searching and judging after S seconds."
)
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Maximum cost in USD.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Maximum number of tokens in total.")
@click.option("-v", "--verbose", is_flag=True, help="Also show sentences that were found, with their passages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--format", "form", type=click.Choice(["md", "json", "html"]), help="Output format; html is one page.")
@click.option("-o", "--output", metavar="FILE", help="Write to a new FILE; - for stdout.")
def verify_command(
    target: str,
    audit: bool,
    against: tuple[str, ...],
    web: bool,
    local: bool,
    refetch: bool,
    strict: bool,
    time_target: float | None,
    max_cost: float | None,
    max_tokens: int | None,
    verbose: bool,
    as_json: bool,
    form: str | None,
    output: str | None,
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
    from nexi.app import RunLimits, VerifyRequest

    form = form or ("json" if as_json else _form_of_name(output))
    if audit and (against or web or local):
        raise click.UsageError("--audit checks citations against the pages they name; leave --against, --web and --local out")
    if local and web:
        raise click.UsageError("--local and --web contradict each other")
    with report_errors(as_json=form == "json"):
        limits = RunLimits(time_target=time_target, max_cost=max_cost, max_tokens=max_tokens)
        request = VerifyRequest(_read_target(target), against, web, audit, refetch, local, limits)
        found = _verify(request)
        name = "stdin" if target == "-" else target
        _deliver(_render(found, name, form, strict=strict, verbose=verbose), output)
        if found.is_contradicted:
            raise SystemExit(EXIT_CONTRADICTED)
        if found.failed(strict=strict):
            raise SystemExit(EXIT_NOT_VERIFIED)


def _form_of_name(output: str | None) -> str:
    """The format that the name of a file stands for."""
    suffix = Path(output or "").suffix.lower()
    return {".json": "json", ".html": "html", ".htm": "html"}.get(suffix, "md")


def _read_target(target: str) -> Target:
    """Read a file or stdin; an address is a page, and anything else is the ID of a run. Raises NexiError."""
    from nexi.app import Target
    from nexi.errors import StoreError
    from nexi.files import is_existing_path
    from nexi.urls import is_web_url

    if is_web_url(target):
        return Target(url=target.strip())
    path = Path(target).expanduser()
    try:
        if target == "-":
            return Target(text=sys.stdin.buffer.read().decode("utf-8", "replace"))
        if is_existing_path(path) and path.is_file():
            return Target(text=_read_file(path))
    except OSError as error:
        cause = error.strerror or str(error)
        raise StoreError(f"cannot read {path}", cause=cause, fix="check the path and its permissions") from error
    return Target(id=target)


def _read_file(path: Path) -> str:
    """The text of a file; of a PDF, Word file or the like, what it says."""
    import asyncio

    from nexi.extract.formats import find_format, sniff_type

    data = path.read_bytes()
    known = find_format(sniff_type(data))
    if known is None or known.is_text:
        return data.decode("utf-8", "replace")
    from nexi.app.documents import read_document
    from nexi.config import load_config

    return asyncio.run(read_document(path, str(path), load_config().ocr_languages)).text


def _verify(request: VerifyRequest) -> Verification:
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def go() -> Verification:
        async with Nexi(load_config()) as nexi:
            return await nexi.verify(request)

    return asyncio.run(go())


def _render(found: Verification, name: str, form: str, *, strict: bool, verbose: bool) -> str:
    import json

    from nexi.output.verification import verification_json, verification_markdown

    if form == "html":
        from nexi.exports import export_verification

        return export_verification(found, name, strict=strict)
    if form == "json":
        return json.dumps(verification_json(found, name, strict=strict), ensure_ascii=False, indent=2) + "\n"
    return verification_markdown(found, name, strict=strict, verbose=verbose)


def _deliver(text: str, output: str | None) -> None:
    from nexi.cli.runs import write_export
    from nexi.output import write

    if output and output != "-":
        return write_export(text.encode("utf-8", "replace"), output, "the verification")
    return write(text)
