"""`nexi index` and `nexi sources`: index, list and remove sources. Only this module shows local paths."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nexi import app
from nexi.app.folders import Folders
from nexi.cli.completion import complete_space
from nexi.cli.exits import EXIT_FAILURE
from nexi.cli.flags import HELP, flag, json_option
from nexi.cli.runner import run_with_nexi
from nexi.errors import LLMError, NexiError, StoreError
from nexi.files import expand_home
from nexi.output import clean_line, is_tty, print_error, print_json, print_warning, write
from nexi.types import Scope, StoredSource

if TYPE_CHECKING:
    from nexi.app.intake import DocumentIndexing, Intake, Step

SOURCES_SCHEMA = "nexi-sources-1"
MAX_LISTED = 1000


@click.command("index", context_settings=HELP)
@click.argument("targets", nargs=-1, metavar="PATH|DIR|URL|SITEMAP...")
@flag("--watch", help="Keep running and index changes in the folder.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the indexed sources, to filter by later.")
@click.option("--space", metavar="NAME", shell_complete=complete_space, help="Put the sources into this space.")
@flag("--sitemap", help="Index the pages that the site's sitemaps list.")
@flag("--reembed", help="Recompute all vectors with the current embedder.")
@json_option
def _index_command(
    targets: tuple[str, ...], watch: bool, tags: tuple[str, ...], space: str | None, sitemap: bool, reembed: bool, as_json: bool
) -> None:
    """Index files, folders, URLs, feeds or a sitemap; `zotero:` is the library of the Zotero that runs here.

    Reads text, Markdown, HTML, code, PDF, EPUB, Office and OpenDocument files, CSV, e-mail, notebooks, RTF, LaTeX, subtitles
    and web archives. Unchanged sources are skipped, and files deleted from a folder are removed from the index. Links, files
    in other formats, and folders like .git and node_modules are skipped.
    """
    if not targets and not reembed:
        raise click.UsageError("name a file, a folder, a URL or a sitemap")
    if watch and len(targets) != 1:
        raise click.UsageError("--watch needs exactly one folder")
    from nexi.app.intake import DocumentIndexing

    async def index_targets(nexi: app.Nexi) -> Intake:
        all_tags = (*tags, nexi.spaces().get(space).tag) if space else tags
        with open_progress(quiet=as_json) as (show_step, show_status):
            indexing = DocumentIndexing(nexi, nexi.knowledge(), tags=all_tags, on_step=show_step, on_status=show_status)
            if watch:
                async for intake in indexing.watch(targets[0]):
                    _print_intake(intake, as_json=as_json)
            for target in targets:
                await (indexing.take_sitemap(target) if sitemap else indexing.take(target))
            await _embed_rest(nexi, indexing, afresh=reembed)
        for warning in indexing.taken.warnings:
            print_warning(warning)
        return indexing.taken

    intake = run_with_nexi(index_targets)
    _print_intake(intake, as_json=as_json)
    if intake.reasons and not intake.outcomes:
        if not as_json:
            print_error("nothing was indexed")
        raise SystemExit(EXIT_FAILURE)


def _print_intake(intake: Intake, *, as_json: bool) -> None:
    if as_json:
        return print_json({"schema": "nexi-index-1", **intake.as_json()})
    outcomes = ("stored", "unchanged", "linked", "removed")
    parts = [f"{intake.outcomes[name]:,} {name}" for name in outcomes if intake.outcomes[name]]
    if skip_count := sum(intake.reasons.values()):
        why = ", ".join(f"{count:,} {reason}" for reason, count in intake.reasons.most_common(8))
        parts.append(f"{skip_count:,} skipped ({why})")
    passages = f"{intake.chunks:,} new passage{'s' * (intake.chunks != 1)}"
    return write(f"{', '.join(parts or ['nothing to do'])}; {passages}\n")


async def _embed_rest(nexi: app.Nexi, indexing: DocumentIndexing, *, afresh: bool) -> None:
    """Compute missing vectors; pages that runs stored have none yet."""
    if not nexi.config.use_hybrid_search:
        return
    total = 0
    try:
        async for count in nexi.knowledge().embed_the_rest(nexi.gate(), afresh=afresh):
            total += count
    except (LLMError, StoreError) as error:
        if afresh:
            raise
        indexing.taken.warnings.append(f"some passages have no vector yet: {error}. {error.fix}".strip())
    if total:
        write(f"Embedded {total:,} passages\n", sys.stderr)


class _IndexProgress(NamedTuple):
    """What shows each document, and what takes longer than one; nothing by default."""

    show_step: Callable[[Step], None] = lambda step: None
    show_status: Callable[[str], None] = lambda text: None


@contextmanager
def open_progress(*, quiet: bool) -> Iterator[_IndexProgress]:
    """A bar with the current document on a terminal, else a line for each document; nothing if `quiet`."""
    if quiet or not is_tty(sys.stderr):
        line = _IndexProgress(lambda step: write(f"{step.outcome}  {clean_line(step.name)}\n", sys.stderr))
        yield _IndexProgress() if quiet else line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show_status(text: str) -> None:
            bar.update(task, description=clean_line(text)[:60].replace("[", "\\["))

        def show_step(step: Step) -> None:
            bar.update(task, completed=step.done, total=step.total)
            show_status(step.name)

        yield _IndexProgress(show_step, show_status)


@click.group("sources", invoke_without_command=True, context_settings=HELP)
@click.option("-n", "--num", type=click.IntRange(1), default=50, metavar="N", help="Show at most N sources.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only sources with this tag.")
@json_option
@click.pass_context
def _sources_command(ctx: click.Context, num: int, tags: tuple[str, ...], as_json: bool) -> None:
    """List indexed sources, newest first."""
    if ctx.invoked_subcommand is None:
        _list_sources("", num, tags, as_json=as_json)


@_sources_command.command("search")
@click.argument("text")
@click.option("-n", "--num", type=click.IntRange(1), default=50, metavar="N", help="Show at most N sources.")
@json_option
def _search_command(text: str, num: int, as_json: bool) -> None:
    """List sources whose URL, path, title or tag contains TEXT."""
    _list_sources(text, num, (), as_json=as_json)


@_sources_command.command("rm")
@click.argument("which", nargs=-1, required=True, metavar="URL|PATH...")
@json_option
def _remove_command(which: tuple[str, ...], as_json: bool) -> None:
    """Remove pages by URL, and files or whole folders by path."""
    import asyncio

    async def remove_sources(nexi: app.Nexi) -> int:
        knowledge, folders = nexi.knowledge(), Folders(nexi.config.state_dir / "folders.json")
        if not knowledge.may_hold_something():
            return 0
        paths = await asyncio.to_thread(lambda: [expand_home(w).absolute() for w in which if "://" not in w])
        urls = [w for w in which if "://" in w]
        async for source in knowledge.sources():
            own = folders.path_of(source.url)
            if own and any(own.is_relative_to(path) for path in paths):
                urls.append(source.url)
        count = await (await knowledge.open_store()).remove(urls) if urls else 0
        if not count:
            cause = "no indexed source matches"
            raise NexiError("nothing was removed", cause=cause, fix="`nexi sources` lists them", code="not_found")
        return count

    count = run_with_nexi(remove_sources)
    if as_json:
        print_json({"schema": SOURCES_SCHEMA, "removed": count})
    else:
        write(f"{count:,} removed\n")


def _list_sources(text: str, num: int, tags: tuple[str, ...], *, as_json: bool) -> None:
    async def find_sources(nexi: app.Nexi) -> list[tuple[StoredSource, str]]:
        """The sources that match, with the path of those that are files."""
        knowledge, folders = nexi.knowledge(), Folders(nexi.config.state_dir / "folders.json")
        matches: list[tuple[StoredSource, str]] = []
        if not knowledge.may_hold_something():
            return matches
        async for source in knowledge.sources(Scope(tags=tags)):
            path = str(folders.path_of(source.url) or "")
            if text.casefold() in f"{source.url}\n{path}\n{source.title}\n{' '.join(source.tags)}".casefold():
                matches.append((source, path))
            if len(matches) == min(num, MAX_LISTED):
                break
        return matches

    sources = run_with_nexi(find_sources)
    if as_json:
        names = ("url", "title", "domain", "language", "fetched_at", "published", "digest", "words", "tags")
        rows: list[dict[str, Any]] = []
        for source, path in sources:
            fields = {name: getattr(source, name) for name in names}
            rows.append({**fields, "path": path, "modified": source.updated, "chunks": source.chunk_count})
        return print_json({"schema": SOURCES_SCHEMA, "sources": rows})
    if not sources:
        return write("No matching sources.\n" if text or tags else "Nothing is indexed yet.\n")
    for source, path in sources:
        labels = "".join(f"  #{clean_line(tag.removeprefix('#'))}" for tag in source.tags)
        passages = f"{source.chunk_count:,} passage{'s' * (source.chunk_count != 1)}"
        title = clean_line(source.title or "(no title)")
        write(f"{clean_line(path or source.url)}\n    {title}  {source.fetched_at[:10]}  {passages}{labels}\n")
    return None
