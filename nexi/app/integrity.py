"""Checks and repairs of all stored runs, for `nexi doctor`. What is damaged is never deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from nexi.errors import StoreError
from nexi.events import Fact, RunFinished, RunResumed, SourceNumbered, Warned
from nexi.runs.directory import LogRepair, RunDirectory, describe_damage
from nexi.runs.log_format import DamagedLogError
from nexi.urls import is_web_url

_NOT_INDEXED = ("not_indexed", "store")  # the codes of warnings that a page did not get into the knowledge base


def find_damaged_runs(runs: RunDirectory, run_ids: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Read the logs of these runs and compare the page texts they name: those with a damaged log, and what finished ones have
    lost of their evidence. Logs of a newer nexi are left to it."""
    damaged_logs: list[str] = []
    losses: dict[str, str] = {}
    for run_id in run_ids:
        try:
            log = runs.open_log(run_id)
        except DamagedLogError:
            damaged_logs.append(run_id)
            continue
        except StoreError:
            continue
        if log.has_ended and (why := describe_damage(runs.pages, log.bare_facts)):
            losses[run_id] = why
    return damaged_logs, losses


def list_indexed_pages(runs: RunDirectory) -> list[str]:
    """The pages that all stored runs have put into the knowledge base, without those of damaged logs."""
    urls: dict[str, None] = {}
    for run_id in runs.run_ids():
        with suppress(StoreError):
            urls |= dict.fromkeys(list_indexed_urls(runs.open_log(run_id).bare_facts))
    return list(urls)


def list_indexed_urls(facts: Sequence[Fact]) -> list[str]:
    """The pages that a run has put into the knowledge base, none where its log leaves a doubt."""
    # a run waits for its pages and warns of those that were not stored; a resumed one does not store those of its earlier life
    has_doubt = any(isinstance(fact, RunResumed) or (isinstance(fact, Warned) and fact.code in _NOT_INDEXED) for fact in facts)
    if has_doubt or not any(isinstance(fact, RunFinished) for fact in facts):
        return []
    sources = [fact.source for fact in facts if isinstance(fact, SourceNumbered)]
    return [source.url for source in sources if is_web_url(source.url)]


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
