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


@frozen
class Basket:
    owner: str
    items: list[str] = field(default_factory=list)


class Hamper(Basket):
    """A subclass that adds no field."""


def test_every_value_gets_a_default_of_its_own() -> None:
    first, second = Basket("a"), Basket("b")
    first.items.append("x")
    assert (first, second, Basket("c", ["y"])) == (Basket("a", ["x"]), Basket("b", []), Basket("c", items=["y"]))


def test_a_value_of_a_subclass_is_made_before_any_of_its_base() -> None:
    assert (Hamper("a").owner, Hamper("a").items) == ("a", [])


def test_a_value_without_its_fields_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) got an unexpected keyword argument 'z'"):
        Point(1, z=3)  # type: ignore[call-arg]
