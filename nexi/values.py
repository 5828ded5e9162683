"""Frozen values that are cheap to define.

`frozen` is `dataclass(frozen=True)` with one generated method instead of six: the others are the same for every class, so
they are written once. Defining a class so costs a third, and a command that starts at once defines many. `fields`,
`replace` and `is_dataclass` work as usual.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a frozen value."""
    made: Any = dataclass(repr=False, eq=False)(cls)
    made.__setattr__, made.__delattr__ = _set_once, _keep
    made.__eq__, made.__hash__ = _equal, _hash
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _show
    kind: type[T] = made
    return kind


def _set_once(self: Any, name: str, value: Any) -> None:
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _keep(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _compared(self: Any) -> tuple[Any, ...]:
    own = self.__dict__
    return tuple(own[name] for name, field in self.__dataclass_fields__.items() if field.compare and name in own)


def _equal(self: Any, other: object) -> Any:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _show(self: Any) -> str:
    parts = (f"{n}={self.__dict__[n]!r}" for n, f in self.__dataclass_fields__.items() if f.repr and n in self.__dict__)
    return f"{type(self).__qualname__}({', '.join(parts)})"
