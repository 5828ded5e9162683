"""Past answers: `nexi history`, and the options --last, --prev, --show and --clear-history."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import count, groupby, islice

import click

from nexi.answers.export_formats import REFERENCE_FORMATS
from nexi.app import history as past_answers
from nexi.app.history import HistoryEntry, HistoryRead, open_runs
from nexi.cli.completion import complete_history, complete_space
from nexi.cli.delivery import reference_text
from nexi.cli.flags import HELP, HistoryFlags, OutputFlags, combine_options, flag, json_option
from nexi.config import load_config, nexi_home
from nexi.errors import NexiError
from nexi.events import AnswerChecked, decode
from nexi.files import lines_from_end
from nexi.output import clean_line, print_json, print_success, write

MAX_FACTS_READ = 20  # from the end of a log
DEFAULT_LISTED = 10
MAX_READ = 5_000  # the newest, among which repeated questions are found
MAX_REPEATS_NAMED = 5
NO_RUN = "only the answer is kept, not its run"


class _ListByDefault(click.Group):
    """A group whose default command is `list`: `nexi history 5`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("history", cls=_ListByDefault, context_settings=HELP)
def _history_command() -> None:
    """List, search, show and delete past answers."""


_with_filters = combine_options(
    click.option("--space", metavar="NAME", shell_complete=complete_space, help="Only questions asked in this space."),
    click.option("-e", "--effort", type=click.Choice(["s", "m", "l"]), help="Only questions asked with this effort."),
    flag("--all", "lists_all", help="A line for each time that a question was asked."),
)


@_history_command.command("list", context_settings=HELP)
@click.argument("n", type=click.IntRange(1), default=DEFAULT_LISTED)
@_with_filters
@json_option
def _list_command(n: int, as_json: bool, lists_all: bool, **filters: str | None) -> None:
    """List the last N questions by day, newest first; 10 by default. One that was asked several times is one line."""
    error = NexiError("no question of that kind was asked", code="not_found", fix="`nexi history` lists all of them")
    _print_days(_read_newest(MAX_READ), n, filters, error, as_json=as_json, lists_all=lists_all)


@_history_command.command("search", context_settings=HELP)
@click.argument("text")
@_with_filters
@json_option
def _search_command(text: str, as_json: bool, lists_all: bool, **filters: str | None) -> None:
    """List searches whose question or answer contains each word of TEXT."""
    history = past_answers.find_entries(text)
    _warn_about_damage(history)
    message = f"no question or answer contains {clean_line(text)[:60]!r}"
    error = NexiError(message, code="not_found", fix="`nexi history` lists past searches")
    _print_days(history, None, filters, error, as_json=as_json, lists_all=lists_all)


@_history_command.command("show", context_settings=HELP)
@click.argument("entry_id", metavar="ID", shell_complete=complete_history)
@json_option
@click.option("--format", "form", type=click.Choice(REFERENCE_FORMATS), help="Print only its sources, as references.")
def _show_command(entry_id: str, as_json: bool, form: str | None) -> None:
    """Show one search in full."""
    _show_by_id(entry_id, as_json=as_json, form=form or "")


@_history_command.command("rm", context_settings=HELP)
@click.argument("entry_id", metavar="ID", shell_complete=complete_history)
def _remove_command(entry_id: str) -> None:
    """Delete one search from the history."""
    if not past_answers.remove_entry(entry_id):
        raise _unknown_id_error(entry_id)
    print_success(f"Deleted {entry_id} from the history. Its run and pages are still in {nexi_home()}.")


@_history_command.command("clear", context_settings=HELP)
def _clear_command() -> None:
    """Delete the whole history."""
    _clear_history()


def run_history_flags(flags: HistoryFlags, output: OutputFlags) -> None:
    if flags.clear_history:
        return _clear_history()
    if flags.last:
        return _show_last_n(flags.last, as_json=output.as_json)
    if flags.prev:
        return _show_prev(as_json=output.as_json, form=output.form)
    return _show_by_id(flags.show or "", as_json=output.as_json, form=output.form)


def latest_entry() -> HistoryEntry:
    return _read_newest(1).entries[0]


def _read_newest(count: int) -> HistoryRead:
    """Read the last answers, with a note on damaged lines. Raises NexiError if there are none."""
    history = past_answers.read_last(count)
    _warn_about_damage(history)
    if not history.entries:
        raise NexiError("the history is empty", code="not_found", fix='ask a question: nexi "your question"')
    return history


def _clear_history() -> None:
    past_answers.clear_history()
    print_success(f"Deleted the history. Runs and pages are still in {nexi_home()}.")


def _show_last_n(n: int, *, as_json: bool = False) -> None:
    history = _read_newest(n)
    if as_json:
        return _print_json(history.entries, history.damaged)
    return write("\n\n".join(_preview([entry], number) for number, entry in enumerate(history.entries, 1)) + "\n")


def _show_prev(*, as_json: bool = False, form: str = "") -> None:
    _print_full(latest_entry(), as_json=as_json, form=form)


def _show_by_id(entry_id: str, *, as_json: bool = False, form: str = "") -> None:
    entry = past_answers.get_entry_by_id(entry_id)
    if entry is None:
        raise _unknown_id_error(entry_id)
    _print_full(entry, as_json=as_json, form=form)


def _print_days(
    history: HistoryRead, most: int | None, filters: dict[str, str | None], error: NexiError, *, as_json: bool, lists_all: bool
) -> None:
    """Print previews under the names of their days; in JSON every entry has its own place. Raises the error for no match."""
    conditions = [(name, value) for name, value in filters.items() if value]
    entries = [entry for entry in history.entries if all(getattr(entry, name) == value for name, value in conditions)]
    if not entries:
        raise error
    if as_json:
        return _print_json(entries[:most], history.damaged)
    groups = [[entry] for entry in entries] if lists_all else past_answers.fold_repeats(entries)
    numbers = count(1)
    days = groupby(groups[:most], key=lambda group: past_answers.name_day(group[0].ts))
    parts = [part for day, day_groups in days for part in (day, *(_preview(group, next(numbers)) for group in day_groups))]
    return write("\n\n".join(parts) + "\n")


def _preview(group: Sequence[HistoryEntry], number: int) -> str:
    """One question with its newest answer, and the ids of those before."""
    newest, *earlier = group
    text = past_answers.format_entry_preview(newest, number) + ("" if _is_run_kept(newest.id) else f" ({NO_RUN})")
    if not earlier:
        return text
    ids = [entry.id for entry in earlier[:MAX_REPEATS_NAMED]] + (["…"] if len(earlier) > MAX_REPEATS_NAMED else [])
    return f"{text}\n    Asked {len(group)} times; before: {', '.join(ids)}"


def _print_full(entry: HistoryEntry, *, as_json: bool, form: str = "") -> None:
    if form in REFERENCE_FORMATS:
        from nexi.app.conversation import cited_sources

        return write(reference_text(cited_sources(open_runs(load_config()), entry), form, entry.ts))
    if as_json:
        return _print_json([entry])
    figures = _read_figures(entry.id) if _is_run_kept(entry.id) else f"Note: {NO_RUN}"
    return write(past_answers.format_entry_full(entry) + "\n" + (f"\n{figures}\n" if figures else ""))


def _is_run_kept(run_id: str) -> bool:
    return run_id.isalnum() and (load_config().runs_dir / run_id).is_dir()


def _read_figures(run_id: str) -> str:
    """The verification line of an answer, while its run is kept; read from the end of the log, which is quick."""
    from nexi.output.proof import figures_line

    try:
        for line in islice(lines_from_end(load_config().runs_dir / run_id / "log.jsonl"), MAX_FACTS_READ):
            if b'"kind":"answer_checked"' in line:
                fact = decode(json.loads(line)["fact"])
                return figures_line(fact.review) if isinstance(fact, AnswerChecked) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # the run was deleted or is damaged; the history still has the answer
    return ""


def _print_json(entries: Sequence[HistoryEntry], damaged: int = 0) -> None:
    print_json({"schema": "nexi-history-1", "entries": [entry.to_dict() for entry in entries], "damaged": damaged})


def _warn_about_damage(history: HistoryRead) -> None:
    if history.damaged:
        write(f"{history.damaged} damaged line{'' if history.damaged == 1 else 's'} skipped\n", sys.stderr)


def _unknown_id_error(entry_id: str) -> NexiError:
    message = f"no search with ID {clean_line(entry_id)[:60]}"
    cause = "" if len(entry_id) == 6 and entry_id.isalnum() else "an ID has six hexadecimal digits, such as 3fa9c1"
    return NexiError(message, cause=cause, code="not_found", fix="`nexi history` lists IDs")
