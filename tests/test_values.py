"""Our frozen values behave like frozen dataclasses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace

import pytest

from nexi.values import frozen


@frozen
class Point:
    """A place."""

    x: int
    y: int = 2
    label: str = field(default="", compare=False, repr=False)


def test_values_are_equal_by_their_compared_fields() -> None:
    assert Point(1) == Point(1, 2, "other")
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2)
    assert len({Point(1), Point(1, label="x"), Point(3)}) == 2


def test_values_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 5  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        point.z = 5  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1)


def test_values_show_themselves_and_work_with_dataclass_functions() -> None:
    assert repr(Point(1, label="hidden")) == "Point(x=1, y=2)"
    assert is_dataclass(Point)
    assert [f.name for f in fields(Point)] == ["x", "y", "label"]
    assert replace(Point(1), y=9) == Point(1, 9)
    match Point(1, 4):
        case Point(x, y):
            assert (x, y) == (1, 4)
