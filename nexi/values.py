"""Frozen values that are cheap to define.

`frozen` is `dataclass(frozen=True)` with one generated method instead of six: the others are the same for every class, so
they are written once. That one, `__init__`, is generated for the first value: a command that starts at once defines many
classes and makes values of few. `fields`, `replace` and `is_dataclass` work as usual.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a frozen value."""
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    made.__init__ = _first_init(made)
    made.__setattr__, made.__delattr__ = _set_once, _keep
    made.__eq__, made.__hash__ = _equal, _hash
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _show
    kind: type[T] = made
    return kind


def _first_init(cls: Any) -> Any:
    """An `__init__` that puts the generated one in its place when the first value is made."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807 - it stands for the method
        cls.__init__ = _generated_init(cls)
        cls.__init__(self, *values, **named)

    return __init__


def _generated_init(cls: Any) -> Any:
    """One parameter for each field, in order, put straight into the value."""
    given: dict[str, Any] = {}
    parameters, lines = [], []
    for f in fields(cls):
        value = f.name
        if f.default_factory is not MISSING:
            given[f"made_{f.name}"], given["absent"] = f.default_factory, MISSING
            parameters.append(f"{f.name}=absent")
            value = f"made_{f.name}() if {f.name} is absent else {f.name}"
        elif f.default is not MISSING:
            given[f"default_{f.name}"] = f.default
            parameters.append(f"{f.name}=default_{f.name}")
        else:
            parameters.append(f.name)
        lines.append(f"  own[{f.name!r}] = {value}\n")
    exec(f"def __init__(self, {', '.join(parameters)}):\n  own = self.__dict__\n{''.join(lines)}", given)  # noqa: S102
    given["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return given["__init__"]


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
