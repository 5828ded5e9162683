"""What an error is, apart from its wording, for `pytest.raises(..., check=...)`."""

from __future__ import annotations

from dataclasses import dataclass

from nexi.errors import NexiError


@dataclass(frozen=True)
class HasCode:
    """Whether an error has this code and names these values: files, settings, hosts and numbers, never its own words."""

    code: str
    values: tuple[str, ...]

    def __call__(self, error: NexiError) -> bool:
        return error.code == self.code and all(value in f"{error} {error.fix}" for value in self.values)


def has_code(code: str, *values: object) -> HasCode:
    return HasCode(code, tuple(map(str, values)))
