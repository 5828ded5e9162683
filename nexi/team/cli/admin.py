"""`nexi admin`: people, tokens, quotas, runs and the shared knowledge of a team server."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from nexi.cli.exits import report_errors
from nexi.cli.flags import HELP
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.output import print_json, print_note, write
from nexi.team.limits import MAX_LINK_MINUTES
from nexi.team.postgres.people import Quotas, describe_limits, list_limits
from nexi.team.postgres.schedules import INTERVALS, Schedules, name_interval
from nexi.text.controls import clean_line
from nexi.types import TEAM

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from nexi.team.assembly import Team

CLI = "nexi admin"  # whoever may run it on the server has no other name here
# the audit log in words: who did what to whom
ACTIONS: Mapping[str, str] = {
    "accept_knowledge": "accepted the knowledge base of {}",
    "add_knowledge": "added to the team's knowledge base: {}",
    "add_link": "created a sign-in link for {}",
    "add_schedule": "scheduled a question for {}",
    "add_token": "created a token: {}",
    "add_user": "added {}",
    "disable_user": "disabled {}",
    "enable_user": "enabled {}",
    "export_user": "exported the data of {}",
    "exported_by": "was shown that {} exported their data",
    "link_made_by": "was shown that {} created a sign-in link",
    "mute_knowledge": "muted the knowledge base of {}",
    "remove_knowledge": "removed from the team's knowledge base: {}",
    "remove_schedule": "removed schedule {}",
    "remove_user": "deleted {}",
    "revoke_token": "revoked token {}",
    "set_quotas": "changed the limits of {}",
    "set_role": "changed the role of {}",
    "share_knowledge": "shared a knowledge base with {}",
    "share_run": "shared run {}",
    "share_space": "shared space {}",
    "sign_in": "signed in",
    "sign_in_by_link": "signed in with a link",
    "token_made_by": "was shown that {} created a token",
}
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


@click.group("admin", context_settings=HELP)
def admin_command() -> None:
    """Manage the people, tokens, quotas and runs of a team server.

    It needs the database of the team: set NEXI_DATABASE_URL, or `database_url` in the config.
    """


@admin_command.group("users", invoke_without_command=True, context_settings=HELP)
@click.pass_context
def _users_group(ctx: click.Context) -> None:
    """List, add, disable, export and delete people."""
    if ctx.invoked_subcommand is None:
        with _open_team() as team:
            rows = [(row[0], row[1], row[2], "disabled" if row[3] else "") for row in team.people.list_all()]
            _print_rows(rows, "There are no people yet. Add the first one: nexi admin users add NAME --administrator")


@_users_group.command("add", context_settings=HELP)
@click.argument("name")
@click.option("--administrator", is_flag=True, help="Make this person an administrator.")
def _add_user(name: str, administrator: bool) -> None:
    """Add a person and print their first token."""
    with _open_team() as team:
        person = team.people.add(name, "administrator" if administrator else "user")
        token = team.people.add_token(person, "first")
        team.people.record(None, "add_user", person)
        team.people.record(person, "token_made_by", CLI)
        print_note(f"The id, name and token of {name}; the token is not shown again:")
        _print_rows([(person, name, token)])


@_users_group.command("disable", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
@click.option("--undo", is_flag=True, help="Let this person back in.")
def _disable_user(person: str, undo: bool) -> None:
    """Lock a person out, including all tokens and sessions."""
    with _open_team() as team:
        person_id = team.people.find(person)
        team.people.change(person_id, is_disabled=not undo)
        team.people.record(None, "enable_user" if undo else "disable_user", person_id)
        print_note(f"{person} can sign in again." if undo else f"{person} is locked out; --undo reverses it.")


@_users_group.command("rm", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
@click.option("--yes", is_flag=True, help="Don't prompt.")
def _remove_user(person: str, yes: bool) -> None:
    """Delete a person and their runs, history, tokens and files."""
    with _open_team() as team:
        person_id = team.people.find(person)
        if not yes:
            click.confirm(f"Delete {person} with all their runs, history, tokens and files?", abort=True, err=True)
        team.people.record(None, "remove_user", person_id)
        team.remove_person(person_id)
        print_note(f"{person} was deleted.")


@_users_group.command("export", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
def _export_user(person: str) -> None:
    """Print all data of a person as JSON.

    The person sees on their account that this was done.
    """
    with _open_team() as team:
        person_id = team.people.find(person)
        team.people.record(None, "export_user", person_id)
        team.people.record(person_id, "exported_by", CLI)
        print_json({"schema": "nexi-person-1", **team.people.export(person_id)})


@_users_group.command("link", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
def _link_user(person: str) -> None:
    """Print a one-time sign-in link, valid for an hour.

    The person sees on their account that this was done.
    """
    with _open_team() as team:
        person_id = team.people.find(person)
        team.people.record(None, "add_link", person_id)
        team.people.record(person_id, "link_made_by", CLI)
        print_note(f"At the address of the server, this signs {person} in once, within {MAX_LINK_MINUTES} minutes:")
        _print_rows([(f"{team.config.public_url.rstrip('/')}/login/link/{team.people.add_link(person_id)}",)])


@admin_command.group("tokens", invoke_without_command=True, context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
@click.pass_context
def _tokens_group(ctx: click.Context, person: str) -> None:
    """List, create and revoke a person's access tokens."""
    ctx.obj = person
    if ctx.invoked_subcommand is None:
        with _open_team() as team:
            rows = []
            for token in team.people.list_tokens(team.people.find(person)):
                access = "full access" if "ask" in token.scopes else "read-only"
                end = f"expires {_day(token.expires)}" if token.expires else "never expires"
                use = f"last used {_day(token.last_used)}" if token.last_used else "never used"
                rows.append((token.id, token.name, access, end, use))
            _print_rows(rows, f"{person} has no tokens.")


@_tokens_group.command("add", context_settings=HELP)
@click.argument("name")
@click.option("--read-only", is_flag=True, help="Make the token read-only.")
@click.option("--days", type=click.FloatRange(0, min_open=True), metavar="N", help="Days until it expires.")
@click.pass_obj
def _add_token(person: str, name: str, read_only: bool, days: float | None) -> None:
    """Create a token and print it; it is shown only once.

    The person sees on their account that this was done.
    """
    with _open_team() as team:
        person_id = team.people.find(person)
        token = team.people.add_token(person_id, name, ("read",) if read_only else ("read", "ask"), days)
        team.people.record(None, "add_token", f"{person_id} {name}")
        team.people.record(person_id, "token_made_by", CLI)
        print_note(f"A token for {person}, which is not shown again:")
        _print_rows([(token,)])


@_tokens_group.command("rm", context_settings=HELP)
@click.argument("token_id", metavar="TOKEN_ID")
def _revoke_token(token_id: str) -> None:
    """Revoke a token."""
    with _open_team() as team:
        if not team.people.revoke_token(token_id):
            raise NexiError(f"there is no token {token_id}", fix="nexi admin tokens NAME lists them", code="not_found")
        team.people.record(None, "revoke_token", token_id)
        print_note("The token was revoked.")


@admin_command.command("quotas", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
@click.option("--runs", type=click.IntRange(0), metavar="N", help="Runs a day.")
@click.option("--tokens", type=click.IntRange(0), metavar="N", help="Tokens a day.")
@click.option("--cost", type=click.FloatRange(0), metavar="USD", help="Dollars a day.")
@click.option("--running", type=click.IntRange(1), metavar="N", help="Runs at once.")
@click.option("--storage", type=click.IntRange(0), metavar="MB", help="Megabytes stored.")
@click.option(
    "--models", metavar="NAMES", help="Models they may choose, separated by commas; '' allows only the configured one."
)
@click.option("--clear", is_flag=True, help="Remove all limits first.")
def _quotas_command(person: str, clear: bool, models: str | None, **given: Any) -> None:
    """Show or change a person's limits, with today's usage."""
    with _open_team() as team:
        person_id = team.people.find(person)
        names = {"runs": "runs_per_day", "tokens": "tokens_per_day", "cost": "cost_per_day", "running": "running"}
        if (megabytes := given.pop("storage")) is not None:
            names["storage"], given["storage"] = "storage_bytes", megabytes * 1_000_000
        changes: dict[str, Any] = {names[name]: value for name, value in given.items() if value is not None}
        if models is not None:
            changes["models"] = tuple(name.strip() for name in models.split(",") if name.strip())
        if changes or clear:
            team.people.set_quotas(person_id, replace(Quotas() if clear else team.people.quotas_of(person_id), **changes))
            team.people.record(None, "set_quotas", f"{person_id}: {describe_limits(changes)}")
        quotas, usage = team.people.quotas_of(person_id), team.people.usage_of(person_id)
        rows = [
            (label, f"{amount:g} used, no limit" if most is None else f"{amount:g} of {most:g} used")
            for label, amount, most in list_limits(quotas, usage)
        ]
        if quotas.models is not None:
            rows.append(("models", ", ".join(quotas.models) or "the configured one"))
        _print_rows(rows)


@admin_command.command("runs", context_settings=HELP)
@click.option("-n", "--num", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Show the last N.")
def _runs_command(num: int) -> None:
    """List everyone's runs, newest first (without the questions)."""
    with _open_team() as team:
        _print_rows([(*row[:4], _day(row[4])) for row in team.people.list_runs(num)], "There are no runs yet.")


@admin_command.command("audit", context_settings=HELP)
@click.option("-n", "--num", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Show the last N.")
def _audit_command(num: int) -> None:
    """Show the audit log, newest first."""
    with _open_team() as team:
        entries, rows = team.people.read_audit(num), []
        names = team.people.find_names(sorted({each for entry in entries for each in _ID.findall(f"{entry[1]} {entry[3]}")}))
        for at, person, action, subject, address in entries:
            rows.append((_day(at), names.get(person, person) or CLI, describe_action(action, subject, names), address))
        _print_rows(rows, "The audit log is empty.")


@admin_command.group("schedules", invoke_without_command=True, context_settings=HELP)
@click.pass_context
def _schedules_group(ctx: click.Context) -> None:
    """List, add and remove scheduled questions.

    The list has everyone's schedules, without the text of the questions.
    """
    if ctx.invoked_subcommand is None:
        with _open_team() as team:
            schedules = Schedules(team.database, team.clock).list_all()
            names = team.people.find_names([schedule.owner for schedule in schedules])
            rows = [(s.id, names[s.owner], f"every {name_interval(s.every)}", f"next {_day(s.next_at)}") for s in schedules]
            _print_rows(rows, "There are no schedules.")


@_schedules_group.command("add", context_settings=HELP)
@click.argument("person", metavar="NAME|ID")
@click.argument("question")
@click.option("--every", type=click.Choice(["hour", "day", "week"]), default="day", show_default=True, help="How often.")
@click.option("--at", type=click.DateTime(["%Y-%m-%d %H:%M"]), help="First time, in UTC, as 2026-12-31 07:00. [default: now]")
def _add_schedule(person: str, question: str, every: str, at: datetime | None) -> None:
    """Schedule a question for a person and print its ID; the answers are among their runs."""
    with _open_team() as team:
        person_id, first = team.people.find(person), at.replace(tzinfo=UTC) if at else None
        number = team.add_schedule(person_id, question, INTERVALS[every], first)
        team.people.record(None, "add_schedule", person_id)
        _print_rows([(number,)])


@_schedules_group.command("rm", context_settings=HELP)
@click.argument("schedule", type=click.IntRange(1), metavar="ID")
def _remove_schedule(schedule: int) -> None:
    """Remove a schedule."""
    with _open_team() as team:
        Schedules(team.database, team.clock).remove(schedule)
        team.people.record(None, "remove_schedule", str(schedule))
        print_note(f"Schedule {schedule} was removed.")


@admin_command.group("knowledge", invoke_without_command=True, context_settings=HELP)
@click.pass_context
def _knowledge_group(ctx: click.Context) -> None:
    """List, add and remove the sources that the whole team reads."""

    async def list_sources(team: Team) -> list[tuple[Any, ...]]:
        async with team.use_nexi(TEAM) as nexi:
            sources = await (await nexi.knowledge().open_store()).sources(count=1_000)
            return [(s.url, s.title, f"{s.chunk_count:,} passages") for s in sources]

    if ctx.invoked_subcommand is None:
        _print_rows(_run_with_team(list_sources), "The team has no shared sources yet.")


@_knowledge_group.command("add", context_settings=HELP)
@click.argument("targets", nargs=-1, required=True, metavar="PATH|DIR|URL|SITEMAP...")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the indexed sources, to filter by later.")
def _add_knowledge(targets: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Index files, folders, URLs or a sitemap for the whole team."""

    async def add_targets(team: Team) -> list[tuple[Any, ...]]:
        from nexi.app.intake import DocumentIndexing

        async with team.use_nexi(TEAM) as nexi:
            indexing = DocumentIndexing(nexi, nexi.knowledge(), tags=tags)
            for target in targets:
                await indexing.take(target)
        team.people.record(None, "add_knowledge", " ".join(targets))
        counts = (*indexing.taken.outcomes.items(), *indexing.taken.reasons.items())
        return [(f"{count:,}", outcome) for outcome, count in counts]

    _print_rows(_run_with_team(add_targets))


@_knowledge_group.command("rm", context_settings=HELP)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
def _remove_knowledge(urls: tuple[str, ...]) -> None:
    """Remove shared sources."""

    async def remove_urls(team: Team) -> list[tuple[Any, ...]]:
        async with team.use_nexi(TEAM) as nexi:
            count = await (await nexi.knowledge().open_store()).remove(urls)
        if not count:
            raise NexiError("the team has no such source", fix="nexi admin knowledge lists them", code="not_found")
        team.people.record(None, "remove_knowledge", " ".join(urls))
        return [(f"{count:,}", "removed")]

    _print_rows(_run_with_team(remove_urls))


@_knowledge_group.command("embed", context_settings=HELP)
@click.option(
    "--again", is_flag=True, help="Recompute all vectors with the configured model; the old ones are used until then."
)
def _embed_knowledge(again: bool) -> None:
    """Compute missing vectors for everyone."""

    async def embed_chunks(team: Team) -> list[tuple[Any, ...]]:
        total = sum([count async for count in team.embed_knowledge(afresh=again)])
        return [(f"{total:,}", "passages embedded")]

    _print_rows(_run_with_team(embed_chunks))


def describe_action(action: str, subject: str, names: Mapping[str, str]) -> str:
    """An entry of the audit log as a phrase, with the names of people in the place of their ids."""
    named = _ID.sub(lambda match: names.get(match[0], match[0]), subject)  # someone who was deleted has only an id
    return ACTIONS.get(action, f"{action} {{}}").format(named).strip()


def _run_with_team(work: Callable[[Team], Coroutine[Any, Any, list[tuple[Any, ...]]]]) -> list[tuple[Any, ...]]:
    async def run(team: Team) -> list[tuple[Any, ...]]:
        try:
            return await work(team)
        finally:
            await team.close()

    with _open_team() as team:
        return asyncio.run(run(team))


@contextmanager
def _open_team() -> Iterator[Team]:
    from nexi.team.assembly import Team, open_database

    with report_errors():
        config = load_config()
        team = Team(config, open_database(config))
        try:
            yield team
        finally:
            team.database.close()


def _day(moment: Any) -> str:
    return moment.strftime("%Y-%m-%d %H:%M") if moment else "-"


def _print_rows(rows: list[tuple[Any, ...]], otherwise: str = "") -> None:
    if not rows and otherwise:
        write(f"{otherwise}\n", sys.stderr)
    for row in rows:
        write("  ".join(clean_line(str(cell)) for cell in row if str(cell)) + "\n")
