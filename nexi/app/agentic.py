"""`agentic_search` over the clients of one config: the engine's four stages, with this store, these judges and this web.

Above, `Nexi.agentic_search` and the doors that offer it; below, `nexi.knowledge.agentic`. What the web gives is kept as
evidence like any page that is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from nexi.app.emit import QuietEmit
from nexi.app.knowledge import settings_of
from nexi.app.options import clean_question
from nexi.errors import ConfigError
from nexi.ports import Emit
from nexi.types import Page, Query, SearchOutcome

if TYPE_CHECKING:
    from nexi.app.assembly import Nexi
    from nexi.knowledge.settings import KnowledgeSettings

ASKED = ("completeness_threshold", "max_iterations", "max_urls_per_iteration", "url_score_threshold", "use_search_hints")


async def agentic_search(nexi: Nexi, query: str, asked: Mapping[str, Any], emit: Emit | None = None) -> dict[str, Any]:
    """The seed's response. Raises QuestionError or ConfigError."""
    from nexi.knowledge.agentic import Web
    from nexi.knowledge.agentic import agentic_search as search
    from nexi.knowledge.judge import Judge

    settings, emit = asked_settings(nexi, asked), emit or QuietEmit()
    knowledge, question = nexi.knowledge(), clean_question(query)

    async def find(wanted: Query) -> SearchOutcome:
        return await nexi.searcher(emit).search(wanted)

    async def read(url: str) -> Page:
        page = await nexi.fetch(url)
        await nexi.pages().put(page.text)
        return page

    return await search(
        question,
        retriever=await knowledge.retriever(emit),
        indexer=await knowledge.indexer(emit, embeds=await knowledge.embeds_behind_a_run()),
        judge=Judge(knowledge.judge_llm(), emit=emit, temperature=settings.llm_temperature),
        web=Web(find, read),
        emit=emit,
        settings=settings,
    )


def asked_settings(nexi: Nexi, asked: Mapping[str, Any]) -> KnowledgeSettings:
    """The settings of one call. Raises ConfigError for one that is switched off or unknown."""
    settings = settings_of(nexi.config)
    if not settings.enabled:
        raise ConfigError(
            "agentic_search is switched off",
            cause="agentic_search_enabled is false",
            fix="nexi config set agentic_search_enabled true, and unset AGENTIC_SEARCH_ENABLED",
        )
    unknown = sorted(set(asked) - set(ASKED))
    if unknown:
        raise ConfigError(f"agentic_search has no {unknown[0]}", fix=f"it takes {', '.join(ASKED)}")
    wrong = [f.name for f in fields(settings) if isinstance(asked.get(f.name), str)]
    if wrong:
        raise ConfigError(f"{wrong[0]} must be a number, or true or false", cause=f"it is {asked[wrong[0]]!r}")
    return replace(settings, **{name: value for name, value in asked.items() if value is not None})
