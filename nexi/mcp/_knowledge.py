"""The knowledge store behind `agentic_search` and `nexi_index`, where the config switches it on.

Above are the tools; below are `nexi.app.agentic` and `nexi.app.intake`. Files of this machine are not taken here: what a model
asks for may have come out of a web page, and `nexi index` is there for a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nexi.app import Nexi, RunRequest
from nexi.errors import QuestionError
from nexi.mcp import _schemas
from nexi.mcp._progress import ProgressReporter
from nexi.urls import is_web_url

SETTINGS = (
    "completeness_threshold",
    "max_iterations",
    "max_urls_per_iteration",
    "url_score_threshold",
    "use_search_hints",
)


def can_search(nexi: Nexi) -> bool:
    return nexi.config.agentic_search_enabled


def can_index(nexi: Nexi) -> bool:
    return nexi.config.knowledge


def agentic_defaults(nexi: Nexi) -> dict[str, Any]:
    """What agentic_search does where a client does not say."""
    return {name: getattr(nexi.config, f"agentic_search_{name}") for name in SETTINGS}


async def search_agentic(nexi: Nexi, query: str, options: Mapping[str, Any], teller: ProgressReporter) -> dict[str, Any]:
    """The seed's response. Raises QuestionError or ConfigError."""
    request = RunRequest(query, mode="agentic", agentic=options, door="mcp", keeps_log=False)
    result = await nexi.run(request).drive(teller.handle_event)
    response: dict[str, Any] = json.loads(result.answer.text)
    return response


async def index_pages(nexi: Nexi, urls: Sequence[str], tags: Sequence[str], teller: ProgressReporter) -> _schemas.Indexed:
    """Pages into the store, and what became of each. Raises NexiError where the store fails."""
    from nexi.app.intake import DocumentIndexing, Step

    steps: list[Step] = []
    for url in urls:
        if not is_web_url(url):
            fix = "give full web addresses; index your own files with `nexi index PATH`"
            raise QuestionError(f"{url[:200]!r} is not the address of a web page", fix=fix)
    taking = DocumentIndexing(nexi, nexi.knowledge(), tags=tags, on_step=steps.append)
    for number, url in enumerate(urls, 1):
        await taking.take(url)
        await teller.report_progress(number, len(urls), f"{steps[-1].outcome}: {url}" if steps else url)
    figures = taking.taken.as_json()
    counts = {name: figures[name] for name in ("stored", "unchanged", "linked", "chunks", "warnings")}
    return _schemas.Indexed(pages=[_schemas.IndexedPageOutcome(url=s.name, outcome=s.outcome) for s in steps], **counts)
