"""Config: one value that says how nexi runs. Loaded, checked, saved; the only reader of the environment.

Above sit the doors and `app`, which pass a Config whole; below are the error words and the prompts. What a backend, a fetcher
or a model does with its settings is not known here, and nothing here reaches a network.

A setting comes from a flag, else the environment, else the file, else its default. Keys found in the environment are kept
apart from the settings, so they never reach the file, and each goes only to the host it belongs to.

What every search needs is imported here; saving, the setup and the prompts are imported when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.config.addresses import mask, without_password
from nexi.config.checks import CHECKS, Check, unknown_keys, validate_config
from nexi.config.environment import editor_command, is_dumb_terminal, nexi_cache, nexi_home, wants_color
from nexi.config.fields import ALWAYS_SAVED, SAVED, UNSAVED, Origin, Settings
from nexi.config.files import MAX_FILE_BYTES, load_config
from nexi.config.names import (
    DEFAULT_BASE_URL,
    DEFAULT_MODEL,
    EFFORT_LEVELS,
    EXTRACTIVE,
    FIELD_VARIABLES,
    FREE_BACKENDS,
    JUDGE_VARIABLE,
    KEY_VARIABLES,
    KEYED_BACKENDS,
    OLD_NAMES,
    PLACE_VARIABLES,
    REQUIRED,
    ROLES,
    EffortLevel,
    EndpointRole,
)
from nexi.config.settings import DEFAULT_CONFIG, Config, Endpoint

if TYPE_CHECKING:
    from nexi.config.prompts import get_compaction_prompt, get_extractor_prompt, get_system_prompt
    from nexi.config.saving import change_config, file_settings, save_config
    from nexi.config.setup import QUESTIONS, SEARXNG_QUESTION, Offer, Question, ensure_config, run_first_time_setup

DEFAULT_SYSTEM_PROMPT_TEMPLATE: str
EXTRACTOR_PROMPT_TEMPLATE: str
COMPACTION_PROMPT_TEMPLATE: str

_PROMPTS = (
    "COMPACTION_PROMPT_TEMPLATE",
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE",
    "EXTRACTOR_PROMPT_TEMPLATE",
    "get_compaction_prompt",
    "get_extractor_prompt",
    "get_system_prompt",
)
_SETUP = ("Offer", "QUESTIONS", "Question", "SEARXNG_QUESTION", "ensure_config", "run_first_time_setup")
_LATER = {
    **dict.fromkeys(_PROMPTS, "prompts"),
    **dict.fromkeys(("change_config", "file_settings", "save_config"), "saving"),
    **dict.fromkeys(_SETUP, "setup"),
}

__all__ = [
    "ALWAYS_SAVED",
    "CHECKS",
    "COMPACTION_PROMPT_TEMPLATE",
    "DEFAULT_BASE_URL",
    "DEFAULT_CONFIG",
    "DEFAULT_MODEL",
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE",
    "EFFORT_LEVELS",
    "EXTRACTIVE",
    "EXTRACTOR_PROMPT_TEMPLATE",
    "FIELD_VARIABLES",
    "FREE_BACKENDS",
    "JUDGE_VARIABLE",
    "KEYED_BACKENDS",
    "KEY_VARIABLES",
    "MAX_FILE_BYTES",
    "OLD_NAMES",
    "PLACE_VARIABLES",
    "QUESTIONS",
    "REQUIRED",
    "ROLES",
    "SAVED",
    "SEARXNG_QUESTION",
    "UNSAVED",
    "Check",
    "Config",
    "EffortLevel",
    "Endpoint",
    "EndpointRole",
    "Offer",
    "Origin",
    "Question",
    "Settings",
    "change_config",
    "editor_command",
    "ensure_config",
    "file_settings",
    "get_compaction_prompt",
    "get_extractor_prompt",
    "get_system_prompt",
    "is_dumb_terminal",
    "load_config",
    "mask",
    "nexi_cache",
    "nexi_home",
    "run_first_time_setup",
    "save_config",
    "unknown_keys",
    "validate_config",
    "wants_color",
    "without_password",
]


if not TYPE_CHECKING:  # the names are declared above; a checker would take any other name for one of them

    def __getattr__(name: str) -> Any:
        """What few commands need, from its own file."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
