"""JSON values checked against a schema, with problems in words that a model can act on, and read into msgspec Structs.

Engines, doors and the model adapter stand above; nothing stands below. It knows no tool, no prompt and no network. Of JSON
Schema it reads types, const, enum, anyOf, oneOf, properties, required, additionalProperties, items and the bounds of sizes and
numbers. Of a Struct one declaration checks a body, documents it, and is the value that the code uses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
MAX_PROBLEMS = 20
_CLASSES: Mapping[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": Mapping,
}


def object_schema(
    properties: Mapping[str, Any], *, required: Sequence[str] | None = None, is_closed: bool = False
) -> dict[str, Any]:
    """The schema of an object with all of these properties, or those that are `required`; of a closed one, with no others."""
    names = list(properties) if required is None else list(required)
    schema = {"type": "object", "properties": dict(properties), "required": names}
    return {**schema, "additionalProperties": False} if is_closed else schema


def check_schema(value: object, schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with `value`, in words a model can act on; empty when nothing is."""
    return list(islice(_find_problems(value, schema, ""), MAX_PROBLEMS))


def _find_problems(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield _locate_problem(path, "expected a finite number")
        return
    if not _is_of_kind(value, schema):
        kinds = " or ".join(_with_article(kind) for kind in _allowed_types(schema))
        yield _locate_problem(path, f"expected {kinds}, got {_describe_value(value)}")
        return
    yield from _choice_problems(value, schema, path)
    if isinstance(value, Mapping):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list | tuple):
        yield from _range_problems(len(value), schema, ("minItems", "maxItems"), "items", path)
        if isinstance(items := schema.get("items"), Mapping):
            for position, item in enumerate(value):
                yield from _find_problems(item, items, f"{path}[{position}]")
    elif isinstance(value, str):
        yield from _range_problems(len(value), schema, ("minLength", "maxLength"), "characters", path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _range_problems(value, schema, ("minimum", "maximum"), "", path)


def _choice_problems(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if "const" in schema and not _is_same(value, schema["const"]):
        yield _locate_problem(path, f"expected {_shorten_value(schema['const'])}, got {_shorten_value(value)}")
    allowed = schema.get("enum")
    if isinstance(allowed, Sequence) and not any(_is_same(value, item) for item in allowed):
        choices = ", ".join(_shorten_value(item) for item in allowed if item is not None)  # null is what one leaves out
        yield _locate_problem(path, f"expected one of {choices}, got {_shorten_value(value)}")
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word) or ()
        problems_by_branch = [list(islice(_find_problems(value, branch, path), MAX_PROBLEMS)) for branch in branches]
        if branches and all(problems_by_branch):
            # the nearest branch is what was meant: one of the value's kind, with the fewest problems
            of_kind = [_is_of_kind(value, branch) for branch in branches]
            yield from min(zip(of_kind, problems_by_branch, strict=True), key=lambda branch: (not branch[0], len(branch[1])))[1]
        elif word == "oneOf" and problems_by_branch.count([]) > 1:
            yield _locate_problem(path, "fits more than one of the allowed forms")


def _object_problems(value: Mapping[Any, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    fields: Mapping[str, Any] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            yield _locate_problem(_join_path(path, name), "required, but missing")
    others = schema.get("additionalProperties")
    for name, item in value.items():
        place = _join_path(path, name if name in fields else shorten_text(str(name)))
        if name in fields:
            yield from _find_problems(item, fields[name], place)
        elif others is False:
            yield _locate_problem(place, f"unknown field; the fields are {', '.join(fields) or 'none'}")
        elif isinstance(others, Mapping):
            yield from _find_problems(item, others, place)


def _range_problems(size: float, schema: Mapping[str, Any], names: tuple[str, str], unit: str, path: str) -> Iterator[str]:
    low, high = schema.get(names[0]), schema.get(names[1])
    if (low is None or size >= low) and (high is None or size <= high):
        return
    if low is not None and high is not None:
        bounds = f"{low} to {high}" if low != high else f"{low}"
    else:
        bounds = f"at least {low}" if low is not None else f"at most {high}"
    yield _locate_problem(path, f"expected {bounds}{' ' + unit if unit else ''}, got {_shorten_value(size)}")


def _allowed_types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(kind) if isinstance(kind, list | tuple) else ()


def _is_of_kind(value: object, schema: Mapping[str, Any]) -> bool:
    kinds = _allowed_types(schema)
    return not kinds or any(_is_a(value, kind) for kind in kinds)


def _is_a(value: object, kind: str) -> bool:
    """Whole floats are refused as integers: what passes here is used as an index or a count."""
    is_no_number = kind in ("integer", "number") and isinstance(value, bool)
    return isinstance(value, _CLASSES.get(kind, object)) and not is_no_number


def _is_same(value: object, other: object) -> bool:
    """Equality without Python's True == 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _describe_value(value: object) -> str:
    return next((_with_article(kind) for kind in _CLASSES if _is_a(value, kind)), type(value).__name__)


def _with_article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _shorten_value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(shorten_text(value), ensure_ascii=False)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return shorten_text(repr(value)) if isinstance(value, int | float) else _describe_value(value)


def shorten_text(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _locate_problem(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


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
