"""Integrity of stored runs: bad lines by their checksums, lost page texts by their digests, and a log saved from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from nexi.events import Fact, PageFetched, RunStarted, Warned, decode, is_fact
from nexi.ports import PageStore
from nexi.runs.log_format import encode_fact, encode_header, parse_moment, try_unseal, unseal_line
from nexi.runs.pages import FilePages

LOST_FACT = "log_damaged"  # the code of the warning that a repair writes in the place of a fact it could not verify


class LogRepair(Struct, frozen=True):
    """A log that was repaired: how many facts were saved, which numbers are lost, and where the damaged file is."""

    run: str
    facts: int
    lost: tuple[int, ...]
    kept_aside: str


class _PageDamage(Struct, frozen=True):
    """Page texts that a run names and that are not what it read, as paths."""

    named: int
    missing: list[Path]
    changed: list[Path]


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
        lines = [encode_header(run_id, parse_moment(str(first_record.get("t", ""))) or now)]
    for number in range(1, max(facts, default=0) + 1):
        if line := facts.get(number):
            record = unseal_line(line)
            moment = parse_moment(str(record.get("t", ""))) or moment
            elapsed = float(record.get("s") or elapsed)
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
    losses = []
    if isinstance(pages, FilePages):
        damage = _find_page_damage(pages, facts)
        counts = [f"{len(paths)} {kind}" for paths, kind in ((damage.missing, "missing"), (damage.changed, "changed")) if paths]
        first = next(iter(damage.missing + damage.changed), None)
        losses += [f"of the {damage.named} page texts it read, {' and '.join(counts)}: {first}"] if first else []
    if lost := count_lost_facts(facts):
        losses.append(f"{lost} of its facts were damaged and are lost")
    return "; ".join(losses)


def _find_page_damage(pages: FilePages, facts: Iterable[Fact]) -> _PageDamage:
    """Compare every text that the facts name with the file it was kept in."""
    names: list[str] = []
    for fact in facts:
        conversation = fact.settings.get("conversation") if isinstance(fact, RunStarted) else None
        if isinstance(fact, PageFetched):
            names += (fact.digest, fact.links)
        elif isinstance(conversation, Mapping):
            names.append(str(conversation.get("digest") or ""))
    digests = dict.fromkeys(filter(None, names))
    lost = [pages.path_of(digest) for digest in digests if pages.read_text(digest) is None]
    return _PageDamage(len(digests), [path for path in lost if not path.exists()], [path for path in lost if path.exists()])
