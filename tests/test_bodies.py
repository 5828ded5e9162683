"""A Struct checks a JSON value, names what is wrong in plain words, and is its own schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from nexi.structured.schema_check import BodyError, read_value, schema_of


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """How."""

    size: Literal["s", "m", "l"] | None = None
    count: Annotated[int, Meta(ge=1, le=3, description="How many.")] | None = None
    answer: bool | Literal["basic"] | None = None
    share: Annotated[float, Meta(gt=0)] = 0.5


class Whole(Struct, frozen=True):
    """What."""

    text: Annotated[str, Meta(min_length=1, max_length=5)]
    part: Annotated[Part, Meta(description="More of it.")] = Part()
    words: tuple[Annotated[str, Meta(min_length=1)], ...] = ()


def test_a_value_that_fits_becomes_the_struct() -> None:
    value = {"text": "a", "part": {"size": "l", "count": None, "answer": True}, "words": ["b"], "unknown": 1}
    assert read_value(value, Whole) == Whole("a", Part("l", None, True), ("b",))


def test_the_schema_of_a_struct_has_no_references_and_keeps_the_order_of_choices() -> None:
    assert schema_of(Whole) == {
        "title": "Whole",
        "description": "What.",
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 5},
            "words": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "part": {
                "title": "Part",
                "description": "More of it.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "size": {"enum": ["s", "m", "l", None]},
                    "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 3, "description": "How many."},
                    "answer": {"enum": [True, False, "basic", None]},
                    "share": {"type": "number", "exclusiveMinimum": 0, "default": 0.5},
                },
            },
        },
    }


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "expected an object, got an array"),
        ({}, "text: required, but missing"),
        ({"text": 1}, "text: expected a string, got an integer"),
        ({"text": ""}, "text: expected 1 to 5 characters, got 0"),
        ({"text": "a", "part": {"size": "x"}}, 'part.size: expected one of "s", "m", "l", got "x"'),
        ({"text": "a", "part": {"sise": "s"}}, "part.sise: unknown field; the fields are size, count, answer, share"),
        ({"text": "a", "part": {"count": True}}, "part.count: expected an integer or null, got a boolean"),
        ({"text": "a", "part": {"share": 0}}, "part.share: expected float > 0.0"),
        (
            {"text": 1, "words": ["a", ""]},
            "text: expected a string, got an integer; words[1]: expected at least 1 characters, got 0",
        ),
    ],
)
def test_what_does_not_fit_is_named_in_words(value: Any, problem: str) -> None:
    with pytest.raises(BodyError) as error:
        read_value(value, Whole)
    assert str(error.value) == problem
