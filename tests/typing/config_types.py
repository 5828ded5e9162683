"""What type checkers must find in the use of Config. mypy checks this file: an ignore that ignores nothing is an error there.

Nothing here runs; `tests/test_config.py` has the same mistakes at run time.
"""

from __future__ import annotations

from typing import assert_type

from nexi.config import Config


def use_settings_with_their_types(config: Config) -> None:
    assert_type(config.max_pages, int)
    assert_type(config.max_cost, float | None)
    assert_type(config.allow_private, tuple[str, ...])
    assert_type(config.max_timeout, int | None)
    assert_type(Config(max_pages=5, time_target=None, api_keys={"brave": ("a", "b")}), Config)
    assert_type(Config(max_timeout=240), Config)
    assert_type(config.override(max_pages=5, search_backend=("searxng", "jina")), Config)


def mistake_the_type_of_a_setting(config: Config) -> None:
    Config(max_pages="x")  # type: ignore[arg-type]
    Config(time_target="60")  # type: ignore[arg-type]
    config.override(max_pages="x")  # type: ignore[arg-type]
    config.override(api_keys=["k"])  # type: ignore[arg-type]


def mistake_the_name_of_a_setting(config: Config) -> None:
    Config(modle="m")  # type: ignore[call-arg]
    config.override(modle="m")  # type: ignore[call-arg]
    print(config.modle)  # type: ignore[attr-defined]


def change_a_frozen_config(config: Config) -> None:
    config.model = "m"  # type: ignore[misc]
