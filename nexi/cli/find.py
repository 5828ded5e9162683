"""What is found, without an answer: `nexi find` prints hits, `nexi agentic` passages, and `nexi fetch` a page as Markdown.

Passages come from the knowledge base and, for what is missing, from the web.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from msgspec.structs import asdict

from nexi.cli.flags import HELP, filter_options, flag, json_option, make_json_option, parse_filters
from nexi.cli.runner import run_with_nexi
from nexi.config import load_config
from nexi.errors import NoEvidenceError
from nexi.output import clean_line, clean_text, print_json, print_note, print_warning, write
from nexi.routing.table import SERVICES
from nexi.routing.unreachable import explain_unreachable
from nexi.types import SearchOutcome

MAX_SNIPPET_CHARS = 500
MAX_PASSAGE_CHARS = 600
_share = partial(click.option, type=click.FloatRange(0, 1), metavar="N")
_limit = partial(click.option, type=click.IntRange(1, 20), metavar="N")


@click.command("find", context_settings=HELP)
@click.argument("query")
@filter_options
@flag("--local", help="Search the knowledge base only; no network access.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="With --local: only sources with this tag.")
@flag("--explain", help="Also show which services were asked, why, and what each said.")
@json_option
def _find_command(query: str, as_json: bool, local: bool, tags: tuple[str, ...], explain: bool, **options: Any) -> None:
    """Search and print the hits, without an answer."""
    if tags and not local:
        raise click.UsageError("--tag needs --local")
    web_query = parse_filters(options).query(query)
    if local:
        config = load_config().override(model="extractive")
        outcome = run_with_nexi(lambda nexi: nexi.find_known(web_query, tags=tags), config)
    else:
        outcome = run_with_nexi(lambda nexi: nexi.find(web_query))
    if explain and not as_json:
        for a in outcome.asked:
            result = f"{a.code}: {a.message}" if a.code else f"{a.hits} hit{'' if a.hits == 1 else 's'}"
            write(f"{a.service} ({clean_line(a.reason)}): {clean_line(result)}\n", sys.stderr)
        if not outcome.asked:
            write(f"{outcome.backend or 'no backend'}: {len(outcome.hits)} hits\n", sys.stderr)
    if not outcome.hits:
        reasons = "; ".join(f"{f.provider}: {f.message}" for f in outcome.failures)
        fixes = dict.fromkeys(f.fix for f in outcome.failures if f.fix)
        unreachable = explain_unreachable(outcome.failures)
        raise unreachable or NoEvidenceError("no results", cause=reasons, fix="; ".join(fixes))
    lines = (SERVICES[hit.backend].credit for hit in outcome.hits if hit.backend in SERVICES)
    credit_lines = list(dict.fromkeys(line.rstrip(".") for line in lines if line))  # services want them beside their results
    if not as_json:
        return _print_hits(outcome, credit_lines)
    hits = [
        {"title": h.title, "url": h.url, "snippet": h.snippet, "published": h.published, "backend": h.backend}
        | ({"paper": asdict(h.paper)} if h.paper else {})
        for h in outcome.hits
    ]
    failures = [asdict(failure) for failure in outcome.failures]
    about = {"asked": [asdict(answer) for answer in outcome.asked], "credits": credit_lines} if outcome.asked else {}
    fields = {"schema": "nexi-hits-1", "query": outcome.query, "backend": outcome.backend, "hits": hits, "failures": failures}
    return print_json({**fields, **about})


def _print_hits(outcome: SearchOutcome, credit_lines: Sequence[str]) -> None:
    """Print what failed, numbered hits with title, URL and snippet, and where they are from."""
    for f in outcome.failures:
        print_warning(f"{f.provider} failed ({f.code}): {f.message}" + (f". Fix: {f.fix}" if f.fix else ""))
    blocks = []
    for number, hit in enumerate(outcome.hits, 1):
        date = f" ({clean_line(hit.published)})" if hit.published else ""
        lines = [f"[{number}] {clean_line(hit.title or hit.url)}{date}", f"    {clean_line(hit.url)}"]
        snippet = clean_line(hit.snippet)
        excerpt = f"{snippet[:MAX_SNIPPET_CHARS].rstrip()}…" if len(snippet) > MAX_SNIPPET_CHARS else snippet
        blocks.append("\n".join(lines + ([f"    {excerpt}"] if excerpt else [])))
    write("\n\n".join(blocks) + "\n")
    count = len(outcome.hits)
    sources = dict.fromkeys(hit.backend for hit in outcome.hits) if outcome.asked else [outcome.backend]
    credit = "".join(f" {line}." for line in credit_lines)
    total = f"{count} hit{'' if count == 1 else 's'} from {', '.join(sources)}"
    write(f"{total}.{credit}\n" if credit else f"{total}\n", sys.stderr)


@click.command("agentic", context_settings=HELP)
@click.argument("words", nargs=-1, required=True, metavar='"QUESTION"')
@_share("--threshold", "completeness_threshold", help="Completeness, 0 to 1, that is enough.")
@_limit("--max-iter", "max_iterations", help="Maximum rounds of searching and reading.")
@_limit("--max-urls", "max_urls_per_iteration", help="Maximum pages read in one round.")
@_share("--url-threshold", "url_score_threshold", help="Read results that score above N, 0 to 1.")
@flag("--hints", "use_search_hints", help="Also search the knowledge base with terms of the pages just read.")
@make_json_option("Print the response as one JSON object.")
def _agentic_command(words: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Find passages in the knowledge base, and on the web what is missing.

    \b
      nexi agentic "how far is the Moon from Earth on average"
      nexi agentic --json --max-iter 1 "how far is the Moon"
    """
    settings = {name: value for name, value in options.items() if value is not None and value is not False}
    response = run_with_nexi(lambda nexi: nexi.agentic_search(" ".join(words), **settings))
    if not response["results"]:
        raise NoEvidenceError("there are no passages", cause=f"the search ended with {response['status']}", fix="nexi doctor")
    if as_json:
        return print_json(response)
    for number, passage in enumerate(response["results"], 1):
        text = " ".join(passage["content"].split())
        write(f"{number}. {passage['url']} ({passage['similarity_score']:.2f})\n   {text[:MAX_PASSAGE_CHARS]}\n")
    rounds, usage = response["iterations"], response["usage"]
    calls = f"{usage['searches']} searches, {usage['pages_read']} pages read, {usage['model_calls']} model calls"
    after = f"{rounds} round{'' if rounds == 1 else 's'}"
    return print_note(f"{response['status']}: {response['completeness']:.0%} complete after {after}; {calls}")


@click.command("fetch", context_settings=HELP)
@click.argument("url")
@json_option
def _fetch_command(url: str, as_json: bool) -> None:
    """Fetch a page and print it as Markdown."""
    page = run_with_nexi(lambda nexi: nexi.fetch(url.strip()))
    warnings = [f"the page is too long: only its first {len(page.text):,} characters were read"] if page.truncated else []
    warnings += [page.unread] if page.unread else []
    if as_json:
        return print_json(
            {
                "schema": "nexi-page-1",
                "url": page.url,
                "final_url": page.final_url or page.url,
                "title": page.title,
                "text": page.text,
                "language": page.language,
                "author": page.author,
                "published": page.published,
                "modified": page.updated,
                "description": page.description,
                "headings": page.headings,
                "code_languages": page.code_languages,
                "links": page.links,
                "content_type": page.content_type,
                "bytes": page.downloaded_bytes,
                "truncated": page.truncated,
                "warnings": warnings,
                "fetcher": page.fetcher,
                "fetched_at": page.fetched_at,
            }
        )
    for warning in warnings:
        print_warning(warning)
    title, text = clean_line(page.title), clean_text(page.text).strip()
    # the title is the heading, unless the text starts with it
    begins = text.partition("\n")[0].lstrip("# ").strip() == title
    return write(f"{text}\n" if begins or not title else f"# {title}\n\n{text}\n")
