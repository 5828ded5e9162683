"""The config file on the command line."""

from __future__ import annotations

from nexi.errors import ConfigError


def show_or_edit(*, edit: bool) -> None:
    from nexi.config import DEFAULT_CONFIG, load_config, save_config
    from nexi.output import write

    if not edit:
        from nexi.config import nexi_home

        return write(f"{nexi_home() / 'config.json'}\n")
    import os
    import subprocess

    try:
        path = load_config().config_path
    except ConfigError:
        from nexi.config import nexi_home

        path = nexi_home() / "config.json"
    if not path.exists():
        from nexi.config import Config

        save_config(Config.from_dict(DEFAULT_CONFIG), path)
    from nexi.config import editor_command

    command = editor_command()
    try:
        subprocess.run([*command, os.fspath(path)], check=False)  # noqa: S603 - the user's own editor
    except OSError as error:
        raise ConfigError(
            f"the editor {command[0]!r} cannot be started", cause=str(error), fix=f"set EDITOR, or open {path} yourself"
        ) from error
    return None
