"""Config: all settings in one value. Loads, checks and saves them; the only reader of the environment.

The doors and `app` above pass a Config whole; the errors and the prompts are below. What a backend, a fetcher or a model does
with its settings is not known here, and nothing here uses the network.

A setting comes from a flag, else the environment, else the file, else its default. Keys from the environment are kept apart
from the settings, so they are never written to the file, and each is sent only to the host it belongs to.

To add a setting, declare it in `fields.Settings` and add its row to the tables in the documentation.

Every search needs what is imported here; the setup and the prompts are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.config._environment import editor_command, is_dumb_terminal, nexi_cache, nexi_home, reader_environment, wants_color
from nexi.config._files import change_config, load_config, read_file_settings, save_config
from nexi.config._names import (
    DEFAULT_BASE_URL,
    EFFORT_LEVELS,
    EXTRACTIVE,
    JUDGE_VARIABLE,
    KEY_VARIABLES,
    KEYED_BACKENDS,
    OLD_NAMES,
    PLACE_VARIABLES,
    ROLES,
    EndpointRole,
    name_service,
)
from nexi.config._values import hide_password, mask_key, parse_site
from nexi.config.fields import (
    ALWAYS_SAVED,
    CHECKS,
    DECLARATIONS,
    FIELD_VARIABLES,
    LIST_SETTINGS,
    NAME_OR_LIST_SETTINGS,
    SAVED,
    SECRET_SETTINGS,
    TEXT_SETTINGS,
    describe_unknown_keys,
    validate_config,
)
from nexi.config.settings import DEFAULT_CONFIG, Config, Endpoint

if TYPE_CHECKING:
    from nexi.config._prompts import get_compaction_prompt, get_extractor_prompt, get_system_prompt
    from nexi.config._setup import QUESTIONS, SEARXNG_QUESTION, ModelOffer, SetupQuestion, ensure_config, run_first_time_setup

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
_SETUP = ("ModelOffer", "QUESTIONS", "SEARXNG_QUESTION", "SetupQuestion", "ensure_config", "run_first_time_setup")
_LAZY = {
    **dict.fromkeys(_PROMPTS, "_prompts"),
    **dict.fromkeys(_SETUP, "_setup"),
}

__all__ = [
    "ALWAYS_SAVED",
    "CHECKS",
    "COMPACTION_PROMPT_TEMPLATE",
    "DECLARATIONS",
    "DEFAULT_BASE_URL",
    "DEFAULT_CONFIG",
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE",
    "EFFORT_LEVELS",
    "EXTRACTIVE",
    "EXTRACTOR_PROMPT_TEMPLATE",
    "FIELD_VARIABLES",
    "JUDGE_VARIABLE",
    "KEYED_BACKENDS",
    "KEY_VARIABLES",
    "LIST_SETTINGS",
    "NAME_OR_LIST_SETTINGS",
    "OLD_NAMES",
    "PLACE_VARIABLES",
    "QUESTIONS",
    "ROLES",
    "SAVED",
    "SEARXNG_QUESTION",
    "SECRET_SETTINGS",
    "TEXT_SETTINGS",
    "Config",
    "Endpoint",
    "EndpointRole",
    "ModelOffer",
    "SetupQuestion",
    "change_config",
    "describe_unknown_keys",
    "editor_command",
    "ensure_config",
    "get_compaction_prompt",
    "get_extractor_prompt",
    "get_system_prompt",
    "hide_password",
    "is_dumb_terminal",
    "load_config",
    "mask_key",
    "name_service",
    "nexi_cache",
    "nexi_home",
    "parse_site",
    "read_file_settings",
    "reader_environment",
    "run_first_time_setup",
    "save_config",
    "validate_config",
    "wants_color",
]


if not TYPE_CHECKING:  # the names are declared above; a checker would take any other name for one of them

    def __getattr__(name: str) -> Any:
        """Import what few commands need on first use."""
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
