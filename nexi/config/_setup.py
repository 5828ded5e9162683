"""Setup: the first-time questions. How they are asked and answered is passed in as functions; the default is the terminal."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from nexi.config._values import PLACE_VARIABLES, complete_url, mask_key, parse_site
from nexi.config.fields import CHECKS
from nexi.config.settings import Config, load_config, save_config
from nexi.errors import ConfigError
from nexi.net.addresses import is_loopback_url

Ask: TypeAlias = Callable[[str], str]


@dataclass(frozen=True)
class SetupQuestion:
    name: str
    text: str
    secret: bool = False


QUESTIONS = (
    SetupQuestion("base_url", "URL of the model API (any OpenAI-compatible server)"),
    SetupQuestion("api_key", "API key (empty for a local server or for the built-in extractive model)", secret=True),
    SetupQuestion("model", "Model"),
    SetupQuestion("jina_key", "Jina key for search and reading (optional)", secret=True),
    SetupQuestion("default_effort", "Default effort: s quick, m balanced, l thorough"),
)
SEARXNG_QUESTION = SetupQuestion("searxng_url", "URL of your SearXNG with JSON enabled (empty: SEARXNG_URL or another service)")
REMOVE = "-"
OTHER_URL = "0"
MAX_LISTED_MODELS = 30


@dataclass(frozen=True)
class ModelOffer:
    """A model on this machine that the setup offers; `max_context` is None if its server does not report one."""

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
    """Load the configuration, or run the first-time setup if there is no file and the input is a terminal."""
    config = load_config(path, env)
    at_terminal = (sys.stdin is not None and sys.stdin.isatty()) if interactive is None else interactive
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
    offers: Sequence[ModelOffer] = (),
    questions: Sequence[SetupQuestion] = QUESTIONS,
    window: Callable[[str, str], int | None] | None = None,
    list_models: Callable[[str, str], Sequence[str]] | None = None,
    find_failures: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
    container_engine: str = "",
) -> Config:
    """Ask for the settings that matter, save them, and load the result. Raises ConfigError when the input ends.

    `window` returns the context window of the model at an address, if its server reports it, and `list_models` the models at
    an address with a key. With a `container_engine`, who has no SearXNG is asked whether nexi may start one.
    """
    env = os.environ if env is None else env
    say = say or partial(print, file=sys.stderr)
    config = load_config(path, {name: env[name] for name in PLACE_VARIABLES if name in env})
    say(f"These settings are saved in {config.config_path}. Enter keeps the value in brackets; {REMOVE} removes a key.")
    dialogue = _Dialogue(config, ask or _read_line, ask_secret or partial(getpass.getpass, stream=sys.stderr), say, list_models)
    try:
        while True:
            answers = dialogue.ask_all(offers, questions)
            if container_engine and answers.get("searxng_url") == "" and not env.get("SEARXNG_URL"):
                answers["searxng_autostart"] = dialogue.allows_container(container_engine)
            if window and "max_context" not in answers and (size := window(answers["base_url"], answers["model"])):
                answers["max_context"] = size
                say(f"The context window of {answers['model']} is {size} tokens.")
            if not find_failures or not find_failures(answers):
                break
            if dialogue.ask("Save anyway? [y/N] (N asks again): ").strip().lower() in ("y", "yes"):
                break
    except EOFError as error:
        raise ConfigError("setup was not completed", cause="the input ended", fix="run `nexi config setup` again") from error
    place = save_config(replace(config, **answers, page_base_url=""), config.config_path)
    say(f"Saved in {place}.")
    return load_config(path, env)


@dataclass(eq=False)
class _Dialogue:
    """Asks the questions; its functions read a line, read a secret and print a line."""

    config: Config
    ask: Ask
    ask_secret: Ask
    say: Callable[[str], None]
    list_models: Callable[[str, str], Sequence[str]] | None

    def ask_all(self, offers: Sequence[ModelOffer], questions: Sequence[SetupQuestion]) -> dict[str, Any]:
        answers = self._choose_offer(offers)
        names: Sequence[str] = ()
        for question in questions:
            if question.name == "api_key" and "base_url" in answers and "api_key" not in answers:
                answers["api_key"], names = self._ask_key(question, answers["base_url"])
            elif question.name == "model" and "model" not in answers:
                answers["model"] = self._ask_model(question, names)
            elif question.name not in answers:
                answers[question.name] = self._ask_question(question)
        return answers

    def _ask_key(self, question: SetupQuestion, base_url: str) -> tuple[str, Sequence[str]]:
        """The key of a server with the models it lists; a server on this machine is asked without one first."""
        if not self.list_models:
            return self._ask_question(question), ()
        if is_loopback_url(base_url):
            is_same = parse_site(base_url) == parse_site(self.config.base_url)
            former_key = self.config.api_key if is_same else ""
            if names := self.list_models(base_url, former_key):
                return former_key, names
            answer = self._ask_question(question, former_key)
            return answer, self.list_models(base_url, answer) if answer != former_key else ()
        answer = self._ask_question(question)
        return answer, self.list_models(base_url, answer)

    def allows_container(self, engine: str) -> bool:
        """Whether nexi may start a SearXNG itself; what was agreed before stays agreed."""
        text = f"Start a SearXNG container with {engine} when you search? The image is downloaded once; it stops with nexi"
        is_allowed = self.config.searxng_autostart
        answer = self.ask(f"{text} [{'Y/n' if is_allowed else 'y/N'}]: ").strip().lower()
        return answer in ("y", "yes") if answer else is_allowed

    def _choose_offer(self, offers: Sequence[ModelOffer]) -> dict[str, Any]:
        """The settings of the offer that the user chooses by number; none if the user wants another URL."""
        if not offers:
            return {}
        self.say("Models on this machine:\n" + "\n".join(f"  {n}  {offer.label}" for n, offer in enumerate(offers, 1)))
        first = "1" if self.config.endpoint("answer").is_extractive else OTHER_URL  # a model that is set up is kept
        prompt = f"Number of the model to use, {OTHER_URL} for another URL [{first}]: "
        while (answer := self.ask(prompt).strip() or first) != OTHER_URL:
            if answer.isdecimal() and 1 <= int(answer) <= len(offers):
                return offers[int(answer) - 1].answers
            self.say(f"There is no number {answer[:20]}.")
        return {}

    def _ask_model(self, question: SetupQuestion, names: Sequence[str]) -> str:
        """Ask for the model, by its number if the server lists its models."""
        if not names:
            return self._ask_question(question)
        listing = names[:MAX_LISTED_MODELS]
        more = f"\n  and {len(names) - len(listing)} more" if len(names) > len(listing) else ""
        self.say("Models there:\n" + "\n".join(f"  {n}  {name}" for n, name in enumerate(listing, 1)) + more)
        current = self.config.model if self.config.model in names else names[0]
        answer = self._ask_question(SetupQuestion("model", "Model, by number or name"), current)
        return listing[int(answer) - 1] if answer.isdecimal() and 1 <= int(answer) <= len(listing) else answer

    def _ask_question(self, question: SetupQuestion, current: str | None = None) -> str:
        current = str(getattr(self.config, question.name)) if current is None else current
        default = mask_key(current) if question.secret else current
        ask = self.ask_secret if question.secret else self.ask
        while True:
            answer = ask(f"{question.text} [{default}]: ").strip() or current
            answer = "" if question.secret and answer == REMOVE else answer
            answer = complete_url(answer) if question.name in ("base_url", "searxng_url") else answer
            problems = list(CHECKS[question.name](question.name, answer))
            if not problems:
                return answer
            self.say("; ".join(problems))


def _read_line(prompt: str) -> str:
    """Read a line. The prompt is no data, so it goes to stderr."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()
