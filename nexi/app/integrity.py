"""Checks and repairs of all stored runs, for `nexi doctor`.

The doctor and its command are above; below is the run directory. What is damaged is named here and never deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nexi.errors import StoreError
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import DamagedLogError
from nexi.runs.repair import LogRepair, describe_damage

__all__ = ["LogRepair", "RunDamage", "find_damaged_runs", "repair_logs"]


class RunDamage(Struct, frozen=True):
    """Runs with a damaged log, and what finished runs have lost of their evidence."""

    logs: tuple[str, ...]
    evidence: dict[str, str]


def find_damaged_runs(runs: RunDirectory, run_ids: Sequence[str]) -> RunDamage:
    """Read the logs of these runs and compare the page texts they name; logs of a newer nexi are left to it."""
    logs: list[str] = []
    evidence: dict[str, str] = {}
    for run_id in run_ids:
        try:
            log = runs.open_log(run_id)
        except DamagedLogError:
            logs.append(run_id)
            continue
        except StoreError:
            continue
        if log.has_ended and (why := describe_damage(runs.pages, [fact for _, fact in log.facts])):
            evidence[run_id] = why
    return RunDamage(tuple(logs), evidence)


def repair_logs(runs: RunDirectory) -> tuple[list[LogRepair], dict[str, StoreError]]:
    """Repair every damaged log; the errors say which could not be repaired."""
    repaired: list[LogRepair] = []
    refused: dict[str, StoreError] = {}
    for run_id in runs.run_ids():
        try:
            runs.open_log(run_id)
        except DamagedLogError:
            try:
                repaired += filter(None, [runs.repair_log(run_id)])
            except StoreError as error:
                refused[run_id] = error
        except StoreError:
            continue
    return repaired, refused
