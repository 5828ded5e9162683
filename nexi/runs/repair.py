"""Integrity of stored runs: bad lines by their checksums, lost page texts by their digests, and a log saved from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from nexi.events import Fact, PageFetched, RunStarted, Warned, decode, is_fact
from nexi.ports import PageStore
from nexi.runs.log_format import encode_fact, encode_header, try_unseal, unseal_line
from nexi.runs.pages import FilePages

LOST_FACT = "log_damaged"  # the code of the warning that a repair writes in the place of a fact it could not verify


class LogRepair(Struct, frozen=True):
    """A log that was repaired: how many facts were saved, which numbers are lost, and where the damaged file is."""

    run: str
    facts: int
    lost: tuple[int, ...]
    kept_aside: str


class PageDamage(Struct, frozen=True):
    """Page texts that a run names and that are not what it read, as paths."""

    named: int = 0
    missing: tuple[Path, ...] = ()
    changed: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed)

    def __str__(self) -> str:
        counts = [f"{len(paths)} {kind}" for paths, kind in ((self.missing, "missing"), (self.changed, "changed")) if paths]
        first = (*self.missing, *self.changed)[0] if self else ""
        return f"of the {self.named} page texts it read, {' and '.join(counts)}: {first}" if self else ""


def salvage_log(run_id: str, data: bytes, now: datetime) -> tuple[bytes, int, tuple[int, ...]]:
    """A sound log of every line that can be verified, how many facts it has, and the numbers of those that are lost, each of
    which a warning takes, so that no other fact moves."""
    first, *rest = data.split(b"\n")
    header = try_unseal(first)
    facts: dict[int, bytes] = {}  # lines that are whole facts by their checksum, under their numbers, in rising order
    for row in rest:
        record = try_unseal(row)
        if isinstance(place := record.get("n"), int) and place > next(reversed(facts), 0):
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                if is_fact(decode(record["fact"])):
                    facts[place] = row
    moment, elapsed = now, 0.0
    lines, lost = [first + b"\n"], []
    if not header:
        first_record = unseal_line(next(iter(facts.values()))) if facts else {}
        lines = [encode_header(run_id, _moment_of(first_record, now))]
    for number in range(1, max(facts, default=0) + 1):
        if line := facts.get(number):
            record = unseal_line(line)
            moment, elapsed = _moment_of(record, moment), float(record.get("s") or elapsed)
            lines.append(line + b"\n")
        else:
            warning = Warned(LOST_FACT, f"fact {number} of this log was damaged and is lost")
            lines.append(encode_fact(number, moment, elapsed, warning))
            lost.append(number)
    return b"".join(lines), len(facts), tuple(lost)


def count_lost_facts(facts: Iterable[Fact]) -> int:
    """How many facts of a log were lost when it was repaired."""
    return sum(isinstance(fact, Warned) and fact.code == LOST_FACT for fact in facts)


def describe_damage(pages: PageStore, facts: Sequence[Fact]) -> str:
    """What a run has lost of its log and its page texts, empty where it is whole; only files can lose a text unseen."""
    texts = str(_find_page_damage(pages, facts)) if isinstance(pages, FilePages) else ""
    lost = count_lost_facts(facts)
    return "; ".join(filter(None, (texts, f"{lost} of its facts were damaged and are lost" if lost else "")))


def _find_page_damage(pages: FilePages, facts: Iterable[Fact]) -> PageDamage:
    """Compare every text that the facts name with the file it was kept in."""
    names: list[str] = []
    for fact in facts:
        conversation = fact.settings.get("conversation") if isinstance(fact, RunStarted) else None
        if isinstance(fact, PageFetched):
            names += (fact.digest, fact.links)
        elif isinstance(conversation, Mapping):
            names.append(str(conversation.get("digest") or ""))
    digests = dict.fromkeys(filter(None, names))
    missing, changed = [], []
    for digest in digests:
        path = pages.path_of(digest)
        if not path.exists():
            missing.append(path)
        elif pages.read_text(digest) is None:
            changed.append(path)
    return PageDamage(len(digests), tuple(missing), tuple(changed))


def _moment_of(record: Mapping[str, Any], otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(str(record.get("t", "")))
    except ValueError:
        return otherwise
