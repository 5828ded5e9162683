"""JSON written by models: reading, mending, checking."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from nexi.structured.json_reader import MAX_DEPTH, _JsonFragment, find_values, fix_surrogates, parse_json, parse_lenient
from nexi.structured.schema_check import MAX_PROBLEMS, check_schema

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "queries": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 5},
        "depth": {"type": "integer", "minimum": 1, "maximum": 3},
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["queries"],
    "additionalProperties": False,
}


def test_a_value_that_fits_has_no_problems() -> None:
    assert check_schema({"queries": ["a"], "depth": 2, "mode": "fast"}, SEARCH) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ([], ["expected an object, got an array"]),
        (None, ["expected an object, got null"]),
        ({}, ["queries: required, but missing"]),
        ({"queries": ["a"] * 9}, ["queries: expected 1 to 5 items, got 9"]),
        ({"queries": "a"}, ["queries: expected an array, got a string"]),
        ({"queries": ["a", 3]}, ["queries[1]: expected a string, got an integer"]),
        ({"queries": [""]}, ["queries[0]: expected at least 1 characters, got 0"]),
        ({"queries": ["a"], "depth": 9}, ["depth: expected 1 to 3, got 9"]),
        ({"queries": ["a"], "depth": True}, ["depth: expected an integer, got a boolean"]),
        ({"queries": ["a"], "depth": 2.0}, ["depth: expected an integer, got a number"]),
        ({"queries": ["a"], "mode": "odd"}, ['mode: expected one of "fast", "slow", got "odd"']),
        ({"queries": ["a"], "x": 1}, ["x: unknown field; the fields are queries, depth, mode"]),
    ],
)  # fmt: skip
def test_a_problem_names_the_place_the_wish_and_what_came(value: object, problems: list[str]) -> None:
    assert check_schema(value, SEARCH) == problems


@pytest.mark.parametrize(
    ("value", "schema", "problems"),
    [
        (1, {"type": ["integer", "null"]}, []),
        ("a", {"type": ["integer", "null"]}, ["expected an integer or null, got a string"]),
        (True, {"type": "number"}, ["expected a number, got a boolean"]),
        (1, {"enum": [True]}, ["expected one of true, got 1"]),
        (1, {"const": 2}, ["expected 2, got 1"]),
        (float("nan"), {"type": "number"}, ["expected a finite number"]),
        (float("inf"), {}, ["expected a finite number"]),
        ("abc", {"maxLength": 2}, ["expected at most 2 characters, got 3"]),
        ([1], {"minItems": 2, "maxItems": 2}, ["expected 2 items, got 1"]),
        (1, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, []),
        (None, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["expected a string, got null"]),
        (1, {"oneOf": [{"type": "number"}, {"type": "integer"}]}, ["fits more than one of the allowed forms"]),
        ({"a": [1]}, {"additionalProperties": {"items": {"type": "null"}}}, ["a[0]: expected null, got an integer"]),
        (object(), {"type": "string"}, ["expected a string, got object"]),
        (1, {"type": "odd"}, []),
        (1, {}, []),
    ],
)  # fmt: skip
def test_the_small_rules_of_json_schema_hold(value: object, schema: dict[str, Any], problems: list[str]) -> None:
    assert check_schema(value, schema) == problems


def test_problems_and_their_quotations_are_bounded() -> None:
    problems = check_schema(["x" * 1000] * 1000, {"items": {"enum": ["a"]}})
    assert len(problems) == MAX_PROBLEMS
    assert max(map(len, problems)) < 120


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "[Infinity]", "1e999", "{'a': 1}", "[1,]", "9" * 5000, "[" * 100_000, "\ufeff{}"]
)
def test_strict_reading_refuses_what_is_not_json(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_strict_reading_takes_the_last_of_two_keys_and_mends_half_characters() -> None:
    assert parse_json('{"a": 1, "a": "\\ud83d\\ude00\\ud800"}') == {"a": "😀\ufffd"}


def test_nesting_is_bounded_for_every_reader() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError):
        parse_json("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))
    with pytest.raises(ValueError):
        parse_lenient("[1, " * 100_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('\ufeff {"a": 1} ', {"a": 1}),
        ('Sure [1]:\n```json\n{"a": [1, 2,],}\n```\nDone.', {"a": [1, 2]}),
        ("{'a': 'it's', 'b': None, 'c': [True, False]}", {"a": "it's", "b": None, "c": [True, False]}),
        ("{a: 1, b-c: -2.5e1}", {"a": 1, "b-c": -25.0}),
        ('{"a": "cut in the mid', {"a": "cut in the mid"}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a": 1, "b": fal', {"a": 1}),
        ('{"a": true', {"a": True}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": "two\nlines \\_ \\u00e9 \\u12"}', {"a": "two\nlines _ é u12"}),
        ("None", None),
        ("```\n[1]\n```", [1]),
    ],
)
def test_lenient_reading_forgives_what_models_do(text: str, value: object) -> None:
    assert parse_lenient(text) == value


@pytest.mark.parametrize(
    "text", ["", "hello", "{see below}", "NaN", '{"a": NaN}', '{"a": 1e999}', '{"a": 1 "b": 2}', "x" * 10_000_000]
)
def test_lenient_reading_says_when_there_is_nothing_to_read(text: str) -> None:
    with pytest.raises(ValueError):
        parse_lenient(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[{" * 500_000, "'" * 100_000 + "{", '[{"a":1},' * 100_000])
def test_no_input_costs_more_than_a_value_error(text: str) -> None:
    with suppress(ValueError):
        parse_lenient(text)


def test_a_long_cut_string_is_read_whole() -> None:
    assert parse_lenient('{"answer": "' + "x" * 4_000_000) == {"answer": "x" * 4_000_000}


def test_values_in_a_text_are_found_with_their_places() -> None:
    text = 'a {"b": 1} c [2] d {"e": '
    assert list(find_values(text)) == [
        _JsonFragment(2, 10, {"b": 1}, True),
        _JsonFragment(13, 16, [2], True),
        _JsonFragment(19, 25, {}, False),
    ]


def test_half_characters_are_joined_or_replaced() -> None:
    assert fix_surrogates("a\ud83d\ude00b\udc00") == "a😀b\ufffd"
