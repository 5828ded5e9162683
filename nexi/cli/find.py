"""`nexi find`: prints the hits of one query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from nexi.cli.exits import report_errors
from nexi.cli.filters import filter_options
from nexi.errors import NexiError, NoEvidenceError

if TYPE_CHECKING:
    from nexi.types import Failure, Query, SearchOutcome

SCHEMA = "nexi-hits-1"
MAX_SNIPPET_CHARS = 500


@click.command("find", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("query")
@filter_options
@click.option("--local", is_flag=True, help="Search the knowledge base only; no network access.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="With --local: only sources with this tag.")
@click.option("--explain", is_flag=True, help="Also show which services were asked, why, and what each said.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def find_command(query: str, as_json: bool, local: bool, tags: tuple[str, ...], explain: bool, **options: Any) -> None:
    """Search and print the hits, without an answer."""
    if tags and not local:
        raise click.UsageError("--tag needs --local")
    from nexi.cli.flags import parse_filters

    with report_errors(as_json=as_json):
        wanted = parse_filters(options).query(query)
        outcome = _search_local(wanted, tags) if local else _search_web(wanted)
        if explain and not as_json:
            _print_explanation(outcome)
        if not outcome.hits:
            raise _no_hits_error(outcome)
        _print_hits(outcome, as_json=as_json)


def _search_web(query: Query) -> SearchOutcome:
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def search() -> SearchOutcome:
        async with Nexi(load_config()) as nexi:
            return await nexi.find(query)

    return asyncio.run(search())


def _search_local(query: Query, tags: tuple[str, ...]) -> SearchOutcome:
    import asyncio

    from nexi.app import Nexi
    from nexi.config import load_config

    async def search() -> SearchOutcome:
        async with Nexi(load_config().override(model="extractive")) as nexi:
            return await nexi.find_known(query, tags=tags)

    return asyncio.run(search())


def _print_explanation(outcome: SearchOutcome) -> None:
    """One line on stderr for each service that was asked."""
    from nexi.output import clean_line, write

    for answer in outcome.asked:
        said = f"{answer.code}: {answer.message}" if answer.code else f"{answer.hits} hit{'' if answer.hits == 1 else 's'}"
        write(f"{answer.service} ({clean_line(answer.reason)}): {clean_line(said)}\n", sys.stderr)
    if not outcome.asked:
        write(f"{outcome.backend or 'no backend'}: {len(outcome.hits)} hits\n", sys.stderr)


def _print_hits(outcome: SearchOutcome, *, as_json: bool) -> None:
    from nexi.output import print_json, print_warning, write

    if as_json:
        return print_json(_hits_json(outcome))
    for failure in outcome.failures:
        print_warning(_describe_failure(failure))
    write(_hits_text(outcome))
    count = len(outcome.hits)
    sources = dict.fromkeys(hit.backend for hit in outcome.hits) if outcome.asked else [outcome.backend]
    credit = "".join(f" {line}." for line in _credit_lines(outcome))
    total = f"{count} hit{'' if count == 1 else 's'} from {', '.join(sources)}"
    return write(f"{total}.{credit}\n" if credit else f"{total}\n", sys.stderr)


def _credit_lines(outcome: SearchOutcome) -> list[str]:
    """What services want to stand beside their results."""
    from nexi.routing.table import SERVICES

    lines = (SERVICES[hit.backend].credit for hit in outcome.hits if hit.backend in SERVICES)
    return list(dict.fromkeys(credit.rstrip(".") for credit in lines if credit))


def _hits_text(outcome: SearchOutcome) -> str:
    """Numbered hits: title, URL, snippet."""
    from nexi.output import clean_line

    blocks = []
    for number, hit in enumerate(outcome.hits, 1):
        date = f" ({clean_line(hit.published)})" if hit.published else ""
        lines = [f"[{number}] {clean_line(hit.title or hit.url)}{date}", f"    {clean_line(hit.url)}"]
        snippet = clean_line(hit.snippet)
        shown = f"{snippet[:MAX_SNIPPET_CHARS].rstrip()}…" if len(snippet) > MAX_SNIPPET_CHARS else snippet
        blocks.append("\n".join(lines + ([f"    {shown}"] if shown else [])))
    return "\n\n".join(blocks) + "\n"


def _hits_json(outcome: SearchOutcome) -> dict[str, Any]:
    hits = [
        {"title": h.title, "url": h.url, "snippet": h.snippet, "published": h.published, "backend": h.backend}
        | ({"paper": asdict(h.paper)} if h.paper else {})
        for h in outcome.hits
    ]
    failures = [{"provider": f.provider, "code": f.code, "message": f.message, "fix": f.fix} for f in outcome.failures]
    asked = [
        {"service": a.service, "reason": a.reason, "hits": a.hits, "code": a.code, "message": a.message} for a in outcome.asked
    ]
    about = {"asked": asked, "credits": _credit_lines(outcome)} if asked else {}
    return {"schema": SCHEMA, "query": outcome.query, "backend": outcome.backend, "hits": hits, "failures": failures, **about}


def _no_hits_error(outcome: SearchOutcome) -> NexiError:
    from nexi.routing.unreachable import explain_unreachable

    if unreachable := explain_unreachable(outcome.failures):
        return unreachable
    reasons = "; ".join(f"{f.provider}: {f.message}" for f in outcome.failures)
    fixes = dict.fromkeys(f.fix for f in outcome.failures if f.fix)
    return NoEvidenceError("no results", cause=reasons, fix="; ".join(fixes))


def _describe_failure(failure: Failure) -> str:
    return f"{failure.provider} failed ({failure.code}): {failure.message}" + (f". Fix: {failure.fix}" if failure.fix else "")
