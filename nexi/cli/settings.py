"""`nexi config`: shows, changes and sets up the settings; also --config and --edit-config."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from nexi import config as configuration
from nexi.cli.flags import json_option
from nexi.config import Config, ModelOffer, change_config, load_config, nexi_home, read_file_settings
from nexi.errors import ConfigError
from nexi.output import print_json, print_note, print_success, print_warning, write

VALUE_WORDS = {"none": None, "yes": True, "on": True, "no": False, "off": False}


@click.group("config", invoke_without_command=True)
@json_option
@click.pass_context
def _config_command(ctx: click.Context, as_json: bool) -> None:
    """Show, change and set up the configuration.

    Without a command it shows the path and all settings, keys masked. KEY is a setting or a part of one: roles.judge.model,
    api_keys.brave, prices.MODEL. Separate list items with commas: `nexi config set search_backend searxng,wikipedia`.
    `nexi config add` leaves the other items of a list.
    """
    if ctx.invoked_subcommand:
        return None
    config = load_config()
    if not as_json and not config.config_path.exists() and sys.stdin.isatty() and sys.stdout.isatty():
        write("There is no config file yet. Set up nexi now? [Y/n] ", sys.stderr)
        if sys.stdin.readline().strip().lower() in ("", "y", "yes"):
            config = run_setup()
    exists, settings = config.config_path.exists(), config.to_masked_dict()
    if as_json:
        about = {"schema": "nexi-config-1", "path": str(config.config_path), "exists": exists}
        sources = {name: _setting_source(config, name) for name in config.to_dict()}
        return print_json({**about, "settings": settings, "sources": sources, "notes": list(config.notes)})
    for note in config.notes:
        print_warning(note)
    width = max(map(len, settings))
    lines = [f"{config.config_path}{'' if exists else '  (does not exist yet)'}", ""]
    for name, value in settings.items():
        source = _setting_source(config, name)
        lines.append(f"{name:<{width}}  {_format_value(value)}{f'  ({source})' if source != 'default' else ''}".rstrip())
    write("\n".join(lines) + "\n")
    if config.endpoint("answer").is_extractive and config.model != "extractive":
        write("\nNo model is configured. Choose one: nexi config setup\n", sys.stderr)
    return None


@_config_command.command("path")
def _path_command() -> None:
    """Print the path of the config file."""
    write(f"{nexi_home() / 'config.json'}\n")


@_config_command.command("get")
@click.argument("key")
def _get_command(key: str) -> None:
    """Print the effective value of a setting, keys masked."""
    name, parts = _split_key(key)
    value = load_config().to_masked_dict()[name]
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            raise ConfigError(f"{key} is not set", fix=f"nexi config set {key} VALUE")
        value = value[part]
    write(_format_value(value) + "\n")


@_config_command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value", required=False)
def _set_command(key: str, value: str | None) -> None:
    """Change a setting in the config file.

    Without VALUE it is read from stdin, which keeps keys out of the shell history.
    """
    if value is None and not sys.stdin.isatty():
        value = sys.stdin.readline().rstrip("\r\n")
    elif value is None:
        import getpass

        if not any(part in configuration.SECRET_SETTINGS for part in key.split(".")):
            raise click.UsageError("Missing argument 'VALUE'.")
        try:
            value = getpass.getpass(f"{key}: ", sys.stderr)
        except EOFError as error:
            raise ConfigError("nothing was changed", cause="no value was entered", fix=f"nexi config set {key}") from error
    name, parts = _split_key(key)
    new_value = _parse_value(name, parts, value)
    if parts:
        new_value = _set_part(read_file_settings().get(name), parts, new_value, key)
    earlier = _listed_items(name, read_file_settings())
    place = change_config({name: new_value})
    lost = [item for item in earlier if item not in _listed_items(name, {name: new_value})]
    print_success(f"Set {key} in {place}." + (f" No longer in it: {', '.join(lost)}." if lost else ""))
    _warn_if_overridden(name)


@_config_command.command("add")
@click.argument("key")
@click.argument("value")
def _add_command(key: str, value: str) -> None:
    """Add to a list in the config file, such as allow_private.

    The other items stay; `nexi config set` replaces them.
    """
    name, _ = _split_key(key)
    if name not in configuration.LIST_SETTINGS:
        raise ConfigError(f"cannot add to {key}", cause=f"{key} is not a list", fix=f"nexi config set {key} VALUE")
    new_items = _listed_items(name, {name: _parse_names(name, value)})
    items = list(dict.fromkeys((*_listed_items(name, read_file_settings()), *new_items)))
    place = change_config({name: items})
    print_success(f"Set {key} to {', '.join(items)} in {place}.")
    _warn_if_overridden(name)


@_config_command.command("unset")
@click.argument("key")
def _unset_command(key: str) -> None:
    """Reset a setting to its default."""
    name, parts = _split_key(key)
    if not parts:
        place = change_config({}, remove=[name])
    else:
        place = change_config({name: _remove_part(read_file_settings().get(name), parts, key)})
    print_success(f"Unset {key} in {place}.")


@_config_command.command("setup")
def _setup_command() -> None:
    """Set up nexi interactively: find local models, test model and search, and save."""
    run_setup()


def _listed_items(name: str, settings: Mapping[str, Any]) -> list[str]:
    value = settings.get(name) if name in configuration.LIST_SETTINGS else None
    return [str(item) for item in value] if isinstance(value, list) else [value] if isinstance(value, str) and value else []


def _warn_if_overridden(name: str) -> None:
    if name in load_config().origin.env:
        variables = " or ".join(configuration.FIELD_VARIABLES.get(name, ("a variable",)))
        print_warning(f"the environment overrides it; to use the file, unset {variables}")


def _split_key(key: str) -> tuple[str, tuple[str, ...]]:
    """Split a key into setting and path. Model names may contain dots. Raises ConfigError."""
    name, _, rest = key.partition(".")
    name = configuration.OLD_NAMES.get(name, name)
    if name not in configuration.CHECKS:
        raise ConfigError(configuration.describe_unknown_keys({name: None})[0], fix="`nexi config` lists every setting")
    if not rest:
        return name, ()
    if name == "prices":
        model, _, side = rest.rpartition(".")
        return name, (model, side) if model and side in ("input", "output") else (rest,)
    if name == "roles":
        return name, tuple(rest.split(".", 1))
    if name in ("api_keys", "service_urls"):
        return name, (rest,)
    raise ConfigError(f"unknown setting {key}", cause=f"{name} has no parts", fix=f"nexi config set {name} VALUE")


def _parse_value(name: str, parts: tuple[str, ...], word: str) -> Any:
    """Parse a typed word for this setting: text as is, lists by comma, else JSON."""
    last = parts[-1] if len(parts) == 2 else name
    if name == "api_keys" and parts:
        return _parse_json(word, word) if word.startswith("[") else word
    if last in configuration.TEXT_SETTINGS or (name == "service_urls" and parts):
        return word
    if last in configuration.LIST_SETTINGS:
        return _parse_names(last, word)
    return _parse_json(word, VALUE_WORDS.get(word.strip().lower(), word))


def _parse_names(name: str, word: str) -> Any:
    if word.strip().startswith("["):
        return _parse_json(word, word)
    names = [part.strip() for part in word.split(",") if part.strip()]
    return names if name not in configuration.NAME_OR_LIST_SETTINGS or len(names) > 1 else (names or [""])[0]


def _parse_json(word: str, otherwise: Any) -> Any:
    try:
        return json.loads(word.lower() if word.strip().lower() in ("true", "false", "null") else word)
    except (ValueError, RecursionError):
        return otherwise


def _set_part(whole: Any, parts: tuple[str, ...], value: Any, key: str) -> dict[str, Any]:
    first, *rest = parts
    mapping: dict[str, Any] = dict(_require_mapping(whole, key))
    mapping[first] = _set_part(mapping.get(first), tuple(rest), value, key) if rest else value
    return mapping


def _remove_part(whole: Any, parts: tuple[str, ...], key: str) -> dict[str, Any]:
    """Copy a setting without one part, and without objects that this leaves empty. Raises ConfigError."""
    first, *rest = parts
    mapping = dict(_require_mapping(whole, key))
    if first not in mapping:
        raise ConfigError(f"{key} is not set", fix="`nexi config` lists every setting")
    inner = _remove_part(mapping[first], tuple(rest), key) if rest else {}
    return {**{k: v for k, v in mapping.items() if k != first}, **({first: inner} if inner else {})}


def _require_mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        cause = "the file has a different kind of value there"
        raise ConfigError(f"cannot change {key}", cause=cause, fix="nexi --edit-config")
    return value or {}


def _setting_source(config: Config, name: str) -> str:
    if name in config.origin.env or name == "environment_keys":
        return "environment"
    names = {name, *(old for old, new in configuration.OLD_NAMES.items() if new == name)}
    in_file = names & set(config.origin.file)
    return "file" if in_file and config.to_dict()[name] != configuration.DEFAULT_CONFIG[name] else "default"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)


def run_setup() -> Config:
    """Run the first-time setup with the local models to choose from. Raises ConfigError without a terminal."""
    from nexi.app.factory import find_container_engine
    from nexi.app.local_models import PORTS

    if not sys.stdin.isatty():
        fix = "nexi config set KEY VALUE"
        raise ConfigError("setup is interactive and needs a terminal", cause="stdin is not a terminal", fix=fix)
    *kinds, last_kind = PORTS
    write(f"Looking for {', '.join(kinds)} and {last_kind} on this machine ...\n", sys.stderr)
    offers = _local_model_offers(PORTS)
    names = ("base_url", "api_key", "model", "searxng_url")
    config = configuration.run_first_time_setup(
        offers=offers,
        questions=[q for q in (*configuration.QUESTIONS, configuration.SEARXNG_QUESTION) if q.name in names],
        window=_detect_window,
        list_models=_list_models_at,
        find_failures=_find_failures,
        say=lambda text: write(f"{text}\n", sys.stderr),
        container_engine=find_container_engine(),
    )
    write("More, if you want it: nexi config set default_effort l, nexi config set jina_key KEY\n", sys.stderr)
    return config


def _local_model_offers(ports: Mapping[str, int]) -> list[ModelOffer]:
    """The models of local servers; prints which were found and which were not."""
    import asyncio

    from nexi.app.local_models import find_servers

    servers = asyncio.run(find_servers(ports))
    server_names = [f"{s.kind} at {s.base_url} ({len(s.models)} model{'s' * (len(s.models) != 1)})" for s in servers]
    absent_kinds = [kind for kind in ports if kind not in {s.kind for s in servers}]
    write(f"Found: {', '.join(server_names) or 'none'}.\n", sys.stderr)
    if server_names and absent_kinds:
        write(f"Not found: {', '.join(absent_kinds)}.\n", sys.stderr)
    return [
        ModelOffer(f"{m.name}  ({s.kind}, {format_window(m.window, m.largest)})", s.base_url, m.name, m.context)
        for s in servers
        for m in s.models
    ]


def _list_models_at(base_url: str, api_key: str) -> list[str]:
    """The models that an address lists; prints why there are none."""
    import asyncio

    from nexi.app.local_models import list_endpoint_models

    names, error = asyncio.run(list_endpoint_models(Config(base_url=base_url, api_key=api_key, model="any")))
    if error:
        print_warning(f"no list of models: {error}")
    return names


def _find_failures(answers: Mapping[str, Any]) -> list[str]:
    """Test model and search with these answers and print the results; return the failures."""
    import asyncio

    from nexi.doctor import examine_settings

    write("Testing model and search ...\n", sys.stderr)
    settings = {name: value for name, value in answers.items() if value}  # the environment fills in what is empty
    checks = asyncio.run(examine_settings(load_config().override(**settings)))
    for check in checks:
        if check.ok:
            print_success(f"  ok      {check.name}: {check.message}")
        else:
            cause = f": {check.cause}" if check.cause else ""
            print_note(f"  failed  {check.name}: {check.message}{cause}", None, "red")
            if check.fix:
                print_note(f"          Fix: {check.fix}", None, "dim")
    works = all(any(c.ok for c in checks if c.area == area) for area in ("model", "search"))
    return [] if works else [check.message for check in checks if not check.ok]


def _detect_window(base_url: str, model: str) -> int | None:
    """The context window that a local server gives a model, if it reports one."""
    import asyncio

    from nexi.app.local_models import describe_server

    server = asyncio.run(describe_server(base_url))
    server_model = server.model(model) if server else None
    return server_model.context if server_model else None


def format_window(tokens: int | None, largest: int | None) -> str:
    if tokens:
        return f"{tokens} tokens"
    return f"up to {largest} tokens" if largest else "window unknown"


def edit_config() -> None:
    """Open the config file in the user's editor; write the defaults first if there is none."""
    import subprocess

    try:
        path = load_config().config_path
    except ConfigError:
        path = nexi_home() / "config.json"
    if not path.exists():
        configuration.save_config(Config.from_dict(configuration.DEFAULT_CONFIG), path)
    command = configuration.editor_command()
    try:
        subprocess.run([*command, os.fspath(path)], check=False)  # noqa: S603 - the user's own editor
    except OSError as error:
        fix = f"set EDITOR, or open {path} yourself"
        raise ConfigError(f"cannot start the editor {command[0]!r}", cause=str(error), fix=fix) from error
