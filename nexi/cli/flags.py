"""The flags of a question as typed values, built once from what click parsed; field names are click's parameter names.

A command that lacks a flag leaves its default, so that one function can serve `nexi "QUESTION"`, `nexi research`,
`nexi resume` and the prompt. Named tuples cost `nexi --last` and its like the least time to start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from nexi.app.request import ReportLength
    from nexi.types import Query


DEFAULT_HITS = 10


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
