"""What a space may be called and hold, how it is written down, and what is said where there is none such."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from nexi.config import EFFORT_LEVELS
from nexi.errors import NexiError
from nexi.types import Space

MAX_SPACES = 200  # of one person
MAX_INSTRUCTIONS_CHARS = 20_000
MAX_SERVICES = 50
_NAME = re.compile(r"[^\W_][\w.-]{0,39}")
_OF_ANOTHER = ("name", "owner", "owner_id")


def check_space(space: Space) -> Space:
    """The space as it can be kept. Raises NexiError with the code bad_space."""
    clean_space = msgspec.structs.replace(space, instructions=space.instructions.strip(), model=space.model.strip())
    problems = {
        f"{space.name[:60]!r} cannot be the name of a space": not _NAME.fullmatch(space.name),
        f"the instructions have {len(clean_space.instructions):,} characters": len(clean_space.instructions)
        > MAX_INSTRUCTIONS_CHARS,
        f"there is no effort level {space.effort[:20]!r}": bool(space.effort) and space.effort not in EFFORT_LEVELS,
        f"there is no scope {space.scope[:20]!r}": space.scope not in ("", "web", "local"),
        "the model of a space must be a name": not clean_space.model.isprintable() or len(clean_space.model) > 200,
        "the services of a space must be names": len(space.services) > MAX_SERVICES
        or not all(re.fullmatch(r"-?[\w.-]{1,60}", name) for name in space.services),
    }
    fixes = (
        "use letters, digits, hyphens, dots and underscores: at most 40, a letter or digit first",
        f"keep them within {MAX_INSTRUCTIONS_CHARS:,}",
        "use s, m or l",
        "use web or local, or leave it out",
        "write it as nexi models lists it",
        "write them as in search_backend or services",
    )
    for (problem, is_wrong), fix in zip(problems.items(), fixes, strict=True):
        if is_wrong:
            raise NexiError(problem, fix=fix, code="bad_space")
    return clean_space


def encode_space(space: Space) -> str:
    fields: dict[str, Any] = msgspec.to_builtins(space)
    return json.dumps({name: value for name, value in fields.items() if name not in _OF_ANOTHER and value})


def decode_space(name: str, text: str, owner: str = "", owner_id: str = "") -> Space:
    return msgspec.convert({**json.loads(text), "name": name, "owner": owner, "owner_id": owner_id}, Space)


def no_such_space(address: str) -> NexiError:
    return NexiError(f"there is no space {address[:100]!r}", fix="nexi spaces lists them", code="no_such_space")


def space_exists(name: str) -> NexiError:
    return NexiError(f"a space named {name!r} already exists", fix="change it, or choose another name", code="space_exists")


def too_many_spaces() -> NexiError:
    cause = f"the limit is {MAX_SPACES} per person"
    return NexiError("there are too many spaces", cause=cause, fix="remove one first", code="quota_reached")
