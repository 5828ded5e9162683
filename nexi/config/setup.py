"""Setup: the first-time questions and their answers. Asking and saying come in as functions; the terminal is the default."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from nexi.config.addresses import mask
from nexi.config.checks import CHECKS
from nexi.config.files import load_config
from nexi.config.names import PLACE_VARIABLES
from nexi.config.saving import save_config
from nexi.config.settings import Config
from nexi.errors import ConfigError
from nexi.values import frozen

Ask: TypeAlias = Callable[[str], str]


@frozen
class Question:
    name: str
    text: str
    secret: bool = False


QUESTIONS = (
    Question("base_url", "Address of the model's API (any OpenAI-compatible server)"),
    Question("api_key", "API key (empty for a local server or for the built-in extractive model)", secret=True),
    Question("model", "Model"),
    Question("jina_key", "Jina key for search and reading (optional)", secret=True),
    Question("default_effort", "Default effort: s quick, m balanced, l thorough"),
)
SEARXNG_QUESTION = Question("searxng_url", "Address of your SearXNG with JSON on (empty: SEARXNG_URL, or another service)")
REMOVE = "-"


@frozen
class Offer:
    """A model that was found and can be chosen in the setup; `max_context` is None where its server does not say."""

    label: str
    base_url: str
    model: str
    max_context: int | None = None

    @property
    def answers(self) -> dict[str, Any]:
        window = {"max_context": self.max_context} if self.max_context else {}
        return {"base_url": self.base_url, "api_key": "", "model": self.model, **window}


def ensure_config(
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    *,
    interactive: bool | None = None,
    setup: Callable[[Path | str | None, Mapping[str, str] | None], Config] | None = None,
) -> Config:
    """The configuration; where there is no file yet and a person is at the terminal, the first-time setup."""
    config = load_config(path, env)
    at_terminal = _at_terminal() if interactive is None else interactive
    if config.config_path.exists() or not at_terminal:
        return config
    return (setup or run_first_time_setup)(path, env)


def run_first_time_setup(
    path: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    *,
    ask: Ask | None = None,
    ask_secret: Ask | None = None,
    say: Callable[[str], None] | None = None,
    offers: Sequence[Offer] = (),
    questions: Sequence[Question] = QUESTIONS,
    window: Callable[[str, str], int | None] | None = None,
) -> Config:
    """Ask for the settings that matter, save them, and load the result. Raises ConfigError when the input ends.

    One of `offers` may be chosen by its number in place of address, key and model. `window` tells the real context window
    of the model at an address, where its server does.
    """
    env = os.environ if env is None else env
    say = say or _say
    config = load_config(path, {name: env[name] for name in PLACE_VARIABLES if name in env})
    say(f"Settings for nexi; they are saved in {config.config_path}. Enter keeps what is in brackets, {REMOVE} removes a key.")
    try:
        answers = _choice(offers, ask or _ask, say)
        for q in questions:
            if q.name not in answers:
                answers[q.name] = _answer(q, config, (ask_secret or _ask_secret) if q.secret else (ask or _ask), say)
    except EOFError as error:
        raise ConfigError("the setup was not finished", cause="the input ended", fix="run `nexi config setup` again") from error
    if window and "max_context" not in answers and (size := window(answers["base_url"], answers["model"])):
        answers["max_context"] = size
        say(f"The server gives {answers['model']} a window of {size} tokens.")
    place = save_config(Config(**{**vars(config), **answers}), config.config_path)
    say(f"Saved in {place}.")
    return load_config(path, env)


def _choice(offers: Sequence[Offer], ask: Ask, say: Callable[[str], None]) -> dict[str, Any]:
    """The settings of the model that was chosen by its number; none where another address is wanted."""
    if not offers:
        return {}
    say("Models on this machine:\n" + "\n".join(f"  {n}  {offer.label}" for n, offer in enumerate(offers, 1)))
    while given := ask("Number of the model to use (Enter for another address): ").strip():
        if given.isdecimal() and 1 <= int(given) <= len(offers):
            return offers[int(given) - 1].answers
        say(f"There is no number {given[:20]}.")
    return {}


def _answer(question: Question, config: Config, ask: Ask, say: Callable[[str], None]) -> str:
    """Ask until the answer is valid."""
    current = str(getattr(config, question.name))
    shown = mask(current) if question.secret else current
    while True:
        given = ask(f"{question.text} [{shown}]: ").strip() or current
        given = "" if question.secret and given == REMOVE else given
        problems = list(CHECKS[question.name](question.name, given))
        if not problems:
            return given
        say("; ".join(problems))


def _at_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _ask(prompt: str) -> str:
    """The prompt is no data, so it does not go to stdout."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def _ask_secret(prompt: str) -> str:
    import getpass

    return getpass.getpass(prompt, sys.stderr)
