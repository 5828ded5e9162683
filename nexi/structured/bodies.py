"""JSON values read into msgspec Structs: one declaration checks a body, documents it, and is the value that the code uses.

Doors and the search service stand above; `schema_check` below puts what is wrong into words, from the schema of the Struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from nexi.structured.schema_check import check_schema

T = TypeVar("T", bound=msgspec.Struct)


class BodyError(ValueError):
    """A value that does not fit its type; `problems` name the fields."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems[:3]))
        self.problems = problems


def read_value(value: object, kind: type[T]) -> T:
    """The value as `kind`. Raises BodyError."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problems = check_schema(value, schema_of(kind))
        if not problems:  # a schema cannot say everything that msgspec checks
            problem, _, path = str(error).replace("`", "").partition(" - at $")
            place = path.removeprefix(".")
            problems = [f"{place}: {problem[:1].lower()}{problem[1:]}" if place else problem]
        raise BodyError(problems) from error


@cache
def schema_of(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The JSON schema of a Struct, whole: without references, and with its choices in their order."""
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    orders = {frozenset(choices): choices for choices in _list_choices(kind)}
    tidied: Mapping[str, Any] = _tidy_schema(schema, components, orders)
    return tidied


def _list_choices(kind: Any) -> Iterator[tuple[Any, ...]]:
    """The choices of all Literals in a type. msgspec sorts them in its schema."""
    if get_origin(kind) is Literal:
        yield get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for hint in get_type_hints(kind, include_extras=True).values():
            yield from _list_choices(hint)
    else:
        for part in get_args(kind):
            yield from _list_choices(part)


def _tidy_schema(schema: Any, components: Mapping[str, Any], orders: Mapping[frozenset[Any], tuple[Any, ...]]) -> Any:
    tidy = partial(_tidy_schema, components=components, orders=orders)
    if name := schema.get("$ref"):
        schema = {**components[name], **{word: value for word, value in schema.items() if word != "$ref"}}
    tidied = {**schema}
    if "properties" in schema:
        tidied["properties"] = {name: tidy(part) for name, part in schema["properties"].items()}
    if "items" in schema:
        tidied["items"] = tidy(schema["items"])
    if "enum" in schema:
        tidied["enum"] = list(orders.get(frozenset(schema["enum"]), schema["enum"]))
    if not schema.get("default", True) or isinstance(schema.get("default"), dict):
        del tidied["default"]
    if not schema.get("required", True):
        del tidied["required"]
    options = [tidy(option) for option in tidied.pop("anyOf", ())]
    return {**_merge_options(options), **tidied}


def _merge_options(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Choices, or a type, that may also be null, as one schema: a problem is then said of all of it."""
    plain: dict[str, list[Any]] = {"null": [None], "boolean": [True, False]}
    if any("enum" in option for option in options) and all("enum" in o or o.get("type") in plain for o in options):
        return {"enum": [value for option in options for value in option.get("enum") or plain[option["type"]]]}
    if len(options) == 2 and options[1] == {"type": "null"} and isinstance(options[0].get("type"), str):
        return {**options[0], "type": [options[0]["type"], "null"]}
    return {"anyOf": options} if options else {}
