"""Config: all settings in one value. Loads, checks and saves them; the only reader of the environment.

A setting comes from a flag, else the environment, else the file, else its default. Keys from the environment are kept apart
from the settings, so they are never written to the file, and each is sent only to the host it belongs to. Every search needs
what is imported here; the setup is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexi.config._environment import editor_command as editor_command
from nexi.config._environment import is_dumb_terminal as is_dumb_terminal
from nexi.config._environment import nexi_home as nexi_home
from nexi.config._environment import reader_environment as reader_environment
from nexi.config._environment import wants_color as wants_color
from nexi.config._values import DEFAULT_BASE_URL as DEFAULT_BASE_URL
from nexi.config._values import EFFORT_LEVELS as EFFORT_LEVELS
from nexi.config._values import EXTRACTIVE as EXTRACTIVE
from nexi.config._values import KEY_VARIABLES as KEY_VARIABLES
from nexi.config._values import KEYED_BACKENDS as KEYED_BACKENDS
from nexi.config._values import OLD_NAMES as OLD_NAMES
from nexi.config._values import ROLES as ROLES
from nexi.config._values import EndpointRole as EndpointRole
from nexi.config._values import hide_password as hide_password
from nexi.config._values import name_service as name_service
from nexi.config._values import parse_site as parse_site
from nexi.config.fields import CHECKS as CHECKS
from nexi.config.fields import FIELD_VARIABLES as FIELD_VARIABLES
from nexi.config.fields import LIST_SETTINGS as LIST_SETTINGS
from nexi.config.fields import NAME_OR_LIST_SETTINGS as NAME_OR_LIST_SETTINGS
from nexi.config.fields import SECRET_SETTINGS as SECRET_SETTINGS
from nexi.config.fields import TEXT_SETTINGS as TEXT_SETTINGS
from nexi.config.fields import describe_unknown_keys as describe_unknown_keys
from nexi.config.fields import validate_config as validate_config
from nexi.config.settings import DEFAULT_CONFIG as DEFAULT_CONFIG
from nexi.config.settings import Config as Config
from nexi.config.settings import Endpoint as Endpoint
from nexi.config.settings import change_config as change_config
from nexi.config.settings import get_compaction_prompt as get_compaction_prompt
from nexi.config.settings import get_extractor_prompt as get_extractor_prompt
from nexi.config.settings import get_system_prompt as get_system_prompt
from nexi.config.settings import load_config as load_config
from nexi.config.settings import read_file_settings as read_file_settings
from nexi.config.settings import save_config as save_config

if TYPE_CHECKING:
    from nexi.config._setup import QUESTIONS as QUESTIONS
    from nexi.config._setup import SEARXNG_QUESTION as SEARXNG_QUESTION
    from nexi.config._setup import ModelOffer as ModelOffer
    from nexi.config._setup import ensure_config as ensure_config
    from nexi.config._setup import run_first_time_setup as run_first_time_setup

DEFAULT_SYSTEM_PROMPT_TEMPLATE: str
EXTRACTOR_PROMPT_TEMPLATE: str
COMPACTION_PROMPT_TEMPLATE: str

_TEMPLATES = {
    "DEFAULT_SYSTEM_PROMPT_TEMPLATE": "system",
    "EXTRACTOR_PROMPT_TEMPLATE": "extractor",
    "COMPACTION_PROMPT_TEMPLATE": "compaction",
}
_SETUP = ("ModelOffer", "QUESTIONS", "SEARXNG_QUESTION", "ensure_config", "run_first_time_setup")

if not TYPE_CHECKING:  # the names are declared above; a checker would take any other name for one of them

    def __getattr__(name: str) -> Any:
        """Import what few commands need on first use."""
        if name in _TEMPLATES:
            from nexi.prompts import read_packaged_prompt

            return read_packaged_prompt(_TEMPLATES[name])
        if name not in _SETUP:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from nexi.config import _setup

        return getattr(_setup, name)
