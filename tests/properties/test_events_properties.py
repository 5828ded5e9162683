"""What holds of every event: it survives the codec and JSON, whatever its texts."""

from __future__ import annotations

import json
import typing
from enum import Enum
from typing import Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexi import events
from nexi.events import KINDS, decode, encode
from nexi.types import Usage

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
surrogates = st.text(st.characters(exclude_categories=()), max_size=20)


def values_for(hint: Any) -> st.SearchStrategy[Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is str:
        return surrogates
    if hint is float:
        return st.floats(allow_nan=False)
    if hint in (int, bool):
        return st.from_type(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if origin is tuple:
        return st.lists(values_for(args[0]), max_size=3).map(tuple)
    if type(None) in args:
        return st.none() | values_for(args[0])
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return st.builds(hint, **{n: values_for(t) for n, t in fields_of(hint).items()})
    return st.dictionaries(surrogates, plain, max_size=3)


def fields_of(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {name: hints[name] for name in cls.__struct_fields__}


any_event = st.one_of([values_for(cls) for cls in KINDS.values()])


@given(any_event)
def test_every_event_survives_the_codec(event: events.Event) -> None:
    assert decode(json.loads(json.dumps(encode(event)))) == event


@given(any_event)
def test_encoding_is_plain_json_with_the_kind_first(event: events.Event) -> None:
    data = encode(event)
    assert next(iter(data)) == "kind"
    assert json.loads(json.dumps(data)) == data


usages = st.builds(Usage, st.integers(0, 99), st.integers(0, 99), st.booleans(), st.none() | st.integers(0, 9).map(float))


@given(usages, usages, usages)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Usage() == a
