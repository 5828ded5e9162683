"""Prompts of one search, with the instructions and prompt files of the user."""

from __future__ import annotations

from nexi.config._names import EFFORT_LEVELS
from nexi.config.settings import Config
from nexi.errors import ConfigError
from nexi.prompts import read_packaged_prompt, render


def get_system_prompt(effort: str, max_iter: int | None = None, *, today: str = "", config: Config | None = None) -> str:
    """The system prompt of the answering model; the instructions in the config, if any, come first."""
    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"there is no effort level {effort!r}", fix=f"use one of {', '.join(EFFORT_LEVELS)}")
    level = EFFORT_LEVELS[effort]
    most = level["max_iter"] if max_iter is None else max_iter
    values = {"today": today or "unknown", "effort": effort, "description": level["description"], "max_iter": most}
    folder = config.prompts_dir if config else None
    if config and config.system_prompt.strip():
        return render("custom_system", folder=folder, instructions=config.system_prompt.strip(), **values)
    return render("system", folder=folder, **values)


def get_compaction_prompt(original_query: str, content: str, target_words: int = 5000, *, config: Config | None = None) -> str:
    folder = config.prompts_dir if config else None
    return render("compaction", folder=folder, original_query=original_query, content=content, target_words=target_words)


def get_extractor_prompt(query: str, instructions: str = "", *, config: Config | None = None) -> str:
    """The prompt for reading one page, which follows in the next message."""
    folder = config.prompts_dir if config else None
    return render("extractor", folder=folder, query=query, instructions=instructions or "Answer the question.")


TEMPLATES = {
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE": "system",
    "EXTRACTOR_PROMPT_TEMPLATE": "extractor",
    "COMPACTION_PROMPT_TEMPLATE": "compaction",
}


def __getattr__(name: str) -> str:
    """Read a template on first use, by its documented name."""
    if name not in TEMPLATES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return read_packaged_prompt(TEMPLATES[name])
