"""The options that several commands share, each with one spelling and one help text, and the flags of a question as values.

The values are built once from what click parsed; field names are click's parameter names. A command that lacks a flag leaves
its default, so that one function can serve `nexi "QUESTION"`, `nexi research`, `nexi resume` and the prompt. Named tuples cost
`nexi --last` and its like the least time to start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from nexi.app.request import ReportLength
    from nexi.types import Query

Command = TypeVar("Command", bound=Callable[..., Any])
TABLES = json.loads(Path(__file__).with_name("commands.json").read_bytes())
# The subcommands, each with its line in the help: help imports no subcommand, and a test compares the lines.
COMMANDS: Mapping[str, str] = TABLES["commands"]
MAX_HITS, DEFAULT_HITS = 100, 10
FOCUS_KINDS = ("docs", "discussions", "papers", "code", "news", "places")
HELP = {"help_option_names": ["-h", "--help"]}
LOG_LEVELS = ("debug", "info", "warning", "error")
COUNT, MORE_THAN_ZERO, FILE = click.IntRange(1), click.FloatRange(0, min_open=True), click.Path(path_type=Path)
flag = partial(click.option, is_flag=True)

JSON_ERRORS = "nexi.json_errors"  # in the `meta` of click's context: whether errors are printed as JSON


def _print_errors_as_json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    ctx.meta[JSON_ERRORS] = value
    return value


def make_json_option(text: str) -> Callable[[Command], Command]:
    return flag("--json", "as_json", callback=_print_errors_as_json, help=text)


json_option = make_json_option("Print one JSON object.")


def combine_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that adds all these options, in this order."""

    def add_options(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options


def _parse_sites(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Sites as search services take them: a host and perhaps a path, with `-` in front to exclude it."""
    sites = []
    for value in values:
        text = value.strip().removeprefix("=")
        is_excluded, site = text.startswith("-"), re.sub(r"^[a-z]+://", "", text.removeprefix("-").lower()).rstrip("/")
        if not re.fullmatch(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?(?:/[^\s\"']*)?", site):
            raise click.BadParameter(f"{value!r} is not a site; write it like example.com, or -example.com to exclude it")
        sites.append(f"-{site}" if is_excluded else site)
    return tuple(sites)


filter_options = combine_options(
    click.option("-n", "--num", type=click.IntRange(1, MAX_HITS), metavar="N", help="Maximum number of hits per query."),
    click.option(
        "-w",
        "--site",
        "sites",
        multiple=True,
        metavar="SITE",
        callback=_parse_sites,
        help="Search only SITE; -SITE excludes it.",
    ),
    click.option(
        "-t",
        "--time",
        "time_range",
        type=click.Choice(["d", "w", "m", "y"]),
        help="Only from the last day, week, month or year.",
    ),
    click.option("--lang", "language", metavar="CODE", help="Prefer pages in this language, such as en or de."),
    click.option("--focus", type=click.Choice(FOCUS_KINDS), help="Prefer this kind of source."),
)
research_options = combine_options(
    click.option(
        "--depth", type=click.IntRange(1, 3), metavar="N", help="Research depth, 1 to 3; by default the coordinator decides."
    ),
    click.option(
        "--length",
        type=click.Choice(["brief", "standard", "long"]),
        help="Length of the report: about 300, 1,000 or 3,000 words.",
    ),
    flag("--plan", help="Review and edit the research plan before it runs."),
    flag("--yes", help="Don't prompt; accept the plan."),
)
source_options = combine_options(
    click.option("-f", "--file", "files", multiple=True, metavar="PATH", help="Also use this file, folder or URL."),
    flag("--local", help="Answer from the knowledge base only; no network access."),
    flag("--web", help="Answer from the web only, without the knowledge base."),
)
cost_options = combine_options(
    click.option("--max-cost", type=MORE_THAN_ZERO, metavar="USD", help="Maximum cost in USD."),
    click.option("--max-tokens", type=COUNT, metavar="N", help="Maximum number of tokens in total."),
)
save_option = click.option(
    "--save",
    type=click.Choice(["folder", "vault"]),
    is_flag=False,
    flag_value="folder",
    metavar="[vault]",
    help="Save the answer as a report file, as research does; `--save vault` as a note of your vault.",
)
screen_options = combine_options(
    flag("-v", "--verbose", help="Show every model call, tool call and token count."),
    flag("--plain", help="Disable colours and emoji."),
)


class SavingCommand(click.Command):
    """A command with `--save`, after which a question may follow: the next word is a place only if it is `vault`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `--save` and its place become one word, so that the parser does not take the question for it
        words: list[str] = []
        for number, word in enumerate(args):
            if word == "--":
                return super().parse_args(ctx, words + args[number:])
            if word == "vault" and number and args[number - 1] == "--save":
                words[-1] = "--save=vault"
            else:
                words.append("--save=folder" if word == "--save" else word)
        return super().parse_args(ctx, words)


class _FilterFlags(NamedTuple):
    num: int | None = None
    sites: tuple[str, ...] = ()
    time_range: str = ""
    language: str = ""
    focus: str = ""

    def query(self, text: str = "") -> Query:
        from nexi.types import Query

        return Query(
            text,
            count=self.num or DEFAULT_HITS,
            sites=tuple(site for site in self.sites if not site.startswith("-")),
            excluded_sites=tuple(site[1:] for site in self.sites if site.startswith("-")),
            time_range=self.time_range,
            language=self.language,
            focus=self.focus,
        )


class _LimitFlags(NamedTuple):
    max_iterations: int | None = None
    time_target: float | None = None
    max_output_tokens: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None


class OutputFlags(NamedTuple):
    """How an answer is shown, and where it goes."""

    verbose: bool = False
    plain: bool = False
    no_stream: bool = False
    as_json: bool = False
    form: str = ""
    output: str | None = None
    save: str = ""  # where a report goes besides the screen: "folder" or "vault"
    copy: bool = False
    usage: bool = False

    @property
    def is_references(self) -> bool:
        """Whether only the sources are wanted, in a format that reference managers read."""
        from nexi.answers.export_formats import REFERENCE_FORMATS

        return self.form in REFERENCE_FORMATS


class HistoryFlags(NamedTuple):
    """The flags that show or clear past answers instead of asking."""

    last: int | None = None
    prev: bool = False
    show: str | None = None
    clear_history: bool = False

    @property
    def is_set(self) -> bool:
        return bool(self.last or self.prev or self.show is not None or self.clear_history)


class AskFlags(NamedTuple):
    query_text: str = ""
    effort: str = ""
    model: str = ""
    system: str = ""
    template: str = ""
    go_on: bool = False
    files: tuple[str, ...] = ()
    local: bool = False
    web: bool = False
    space: str = ""
    strict: bool = False
    deep: bool = False
    depth: int = 0
    length: ReportLength = ""
    plan: bool = False
    yes: bool = False
    show_config: bool = False
    edit_config: bool = False
    filters: _FilterFlags = _FilterFlags()
    limits: _LimitFlags = _LimitFlags()
    output: OutputFlags = OutputFlags()
    history: HistoryFlags = HistoryFlags()

    @property
    def is_research(self) -> bool:
        return bool(self.deep or self.depth or self.length or self.plan)


Flags = TypeVar("Flags", _FilterFlags, _LimitFlags, OutputFlags, HistoryFlags, AskFlags)


def parse_flags(options: Mapping[str, Any]) -> AskFlags:
    values = dict(options)
    output = _take_fields(OutputFlags, values)
    as_json = output.as_json or output.form == "json"
    plain = output.plain or output.form == "md" or as_json
    groups = {
        "filters": _take_fields(_FilterFlags, values),
        "limits": _take_fields(_LimitFlags, values),
        "history": _take_fields(HistoryFlags, values),
        "output": output._replace(as_json=as_json, plain=plain),
    }
    flags = _take_fields(AskFlags, values, groups)
    if values:
        raise TypeError(f"no flag is called {', '.join(values)}")
    return flags


def parse_filters(options: Mapping[str, Any]) -> _FilterFlags:
    return _take_fields(_FilterFlags, dict(options))


def _take_fields(kind: type[Flags], values: dict[str, Any], groups: Mapping[str, Any] | None = None) -> Flags:
    """Build a value from the parameters named like its fields, and remove them; None leaves the default."""
    names = [name for name in kind._fields if name not in (groups or {})]
    own = {name: values.pop(name) for name in names if name in values}
    return kind(**{name: value for name, value in own.items() if value is not None}, **(groups or {}))
