"""`nexi token`: prints the token of the owner of a server on this machine."""

from __future__ import annotations

import click

from nexi.app.owner_token import OwnerToken
from nexi.cli.options import HELP
from nexi.config import load_config
from nexi.errors import ConfigError
from nexi.output import write


@click.command("token", context_settings=HELP)
@click.option(
    "--new", "makes_new", is_flag=True, help="Replace the token: browsers and programs that have the old one are out."
)
def _token_command(makes_new: bool) -> None:
    """Print the token that a server on this machine knows its owner by.

    Programs send it as `Authorization: Bearer TOKEN`. Browsers get it from the link that `nexi serve` prints, or
    ask for it.
    """
    config = load_config()
    if makes_new and config.token:
        raise ConfigError(
            "the token was not replaced", cause="it is set by NEXI_TOKEN, or by token in the config", fix="change it there"
        )
    owner = OwnerToken(config.state_dir)
    token = config.token or (owner.renew() if makes_new else owner.ensure())
    write(f"{token}\n")
