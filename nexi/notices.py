"""Sentences for people that know their code and their values, so that a door can say them in another language.

On the way to a door a notice is an ordinary text. A JSON object that holds such texts carries a table of them (`add_notices`),
from text to code and values; `restore_notices` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["TABLE", "Notice", "add_notices", "join_cause", "join_causes", "join_sentences", "map_notice", "restore_notices"]

TABLE = "notices"  # the field of a JSON object that has the codes of its texts


class Notice(str):
    """A sentence in English, the code of its text, and its values by name; a value may be a notice too."""

    code: str
    values: Mapping[str, str]

    def __new__(cls, code: str, text: str, /, **values: object) -> Notice:
        return cls.restore(text.format(**values), code, {k: v if isinstance(v, str) else str(v) for k, v in values.items()})

    @classmethod
    def restore(cls, text: str, code: str, values: Mapping[str, str]) -> Notice:
        """The notice that was said in these words."""
        notice = super().__new__(cls, text)
        notice.code, notice.values = code, values
        return notice

    def __reduce__(self) -> tuple[Any, ...]:
        return Notice.restore, (str(self), self.code, dict(self.values))


def join_sentences(first: str, second: str) -> str:
    """Two sentences in a row, such as what happened and what to do; either may be empty."""
    if not (first and second):
        return first or second
    return _drop_empty_code(Notice("joined.sentences", "{first}. {second}", first=first, second=second))


def join_cause(message: str, cause: str) -> str:
    """What happened and why, in one sentence; the cause may be empty."""
    if not cause:
        return message
    return _drop_empty_code(Notice("joined.cause", "{message}: {cause}", message=message, cause=cause))


def join_causes(causes: Iterable[str]) -> str:
    first, *others = dict.fromkeys(causes)
    for cause in others:
        first = _drop_empty_code(Notice("joined.also", "{first}; {second}", first=first, second=cause))
    return first


def _drop_empty_code(notice: Notice) -> str:
    """What was joined of texts that have no code has nothing to translate."""
    return notice if any(isinstance(value, Notice) for value in notice.values.values()) else str(notice)


def map_notice(text: str, change: Callable[[str], str]) -> str:
    """A text with a change to all that is said in it; a notice stays one."""
    if not isinstance(text, Notice):
        return change(text)
    return Notice.restore(change(str(text)), text.code, {k: map_notice(v, change) for k, v in text.values.items()})


def list_notices(value: Any) -> dict[str, dict[str, Any]]:
    """The code and the values of every notice in a JSON value, and of those among their values, by their text."""
    notices: dict[str, dict[str, Any]] = {}
    pending = [value]
    while pending:
        match pending.pop():
            case Notice() as notice:
                notices[str(notice)] = {"code": notice.code, "values": {k: str(v) for k, v in notice.values.items()}}
                pending.extend(notice.values.values())
            case dict() as fields:
                pending.extend(fields.values())
            case list() | tuple() as items:
                pending.extend(items)
    return notices


def add_notices(value: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with the table of its notices, where it has any."""
    notices = list_notices(value)
    return {**value, TABLE: notices} if notices else value


def restore_notices(value: Any, table: Mapping[str, Mapping[str, Any]]) -> Any:
    """A JSON value whose texts are notices again where the table has them."""
    if isinstance(value, dict):
        return {name: restore_notices(item, table) for name, item in value.items()}
    if isinstance(value, list):
        return [restore_notices(item, table) for item in value]
    if not isinstance(value, str) or value not in table:
        return value
    rest = {text: entry for text, entry in table.items() if text != value}  # a damaged log may name itself
    values = table[value].get("values", {})
    return Notice.restore(value, str(table[value].get("code", "")), {k: restore_notices(v, rest) for k, v in values.items()})
