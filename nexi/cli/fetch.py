"""`nexi fetch`: prints one page as Markdown."""

from __future__ import annotations

import click

from nexi.cli.options import HELP, json_option
from nexi.cli.runner import run_with_nexi
from nexi.output import clean_line, clean_text, print_json, print_warning, write


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
